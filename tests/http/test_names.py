"""Names that are none are refused, wherever they stand in a request, and never crash anything."""

from __future__ import annotations

import logging
from typing import Any
from urllib.parse import quote

import msgspec
import pytest

from tests.http.conftest import Api
from warrenmq.client import Connection
from warrenmq.http.endpoint import Endpoint
from warrenmq.http.table import ENDPOINTS

LONG = "a" * 256
WIDE = "ä" * 128  # 128 characters, 256 octets
NUL = "a\0b"
NO_NAMES = {"long": LONG, "wide": WIDE, "nul": NUL}
GOOD: dict[str, str] = {
    "vhost": "/",
    "name": "some-name",
    "user": "some-user",
    "exchange": "amq.topic",
    "source": "amq.direct",
    "type": "q",
    "destination": "some-name",
    "props": "~",
    "component": "vhost-limits",
    "node": "no-such-node",
    "id": "some-id",
    "password": "x",
    "protocol": "amqp",
    "port": "1",
    "within": "1",
    "unit": "days",
}
BODIES: dict[str, Any] = {
    "/exchanges/{vhost}/{name}/publish": {
        "routing_key": "k",
        "payload": "x",
        "payload_encoding": "string",
        "properties": {
            "content_type": "t",
            "content_encoding": "t",
            "correlation_id": "t",
            "reply_to": "t",
            "expiration": "1",
            "message_id": "t",
            "type": "t",
            "user_id": "guest",
            "app_id": "t",
            "cluster_id": "t",
            "headers": {"h": "v"},
        },
    },
    "/queues/{vhost}/{name}/get": {"count": 1, "ackmode": "ack_requeue_true", "encoding": "auto", "truncate": 1},
    "/queues/{vhost}/{name}": {"node": "n", "arguments": {"x-dead-letter-exchange": "x"}},
    "/queues/{vhost}/{name}/actions": {"action": "sync"},
    "/queues/{vhost}/{name}/leases": {"count": 1, "owner": "o", "key": "k"},
    "/queues/{vhost}/{name}/move": {"target": "t", "key": "k", "header": ["a:b"], "text": "t"},
    "/queues/{vhost}/{name}/copy": {"target": "t"},
    "/queues/{vhost}/{name}/redrive": {"exchange": "x", "routing_key": "k"},
    "/exchanges/{vhost}/{name}": {"type": "topic", "arguments": {"alternate-exchange": "x"}},
    "/bindings/{vhost}/e/{source}/{type}/{destination}": {"routing_key": "k", "arguments": {"a": "b"}},
    "/users/{user}": {"password": "p", "tags": "management"},
    "/users/bulk-delete": {"users": ["nobody"]},
    "/permissions/{vhost}/{user}": {"configure": ".*", "write": ".*", "read": ".*"},
    "/topic-permissions/{vhost}/{user}": {"exchange": "amq.topic", "write": ".*", "read": ".*"},
    "/policies/{vhost}/{name}": {
        "pattern": "zz",
        "apply-to": "all",
        "definition": {"dead-letter-exchange": "x", "dead-letter-routing-key": "k"},
    },
    "/operator-policies/{vhost}/{name}": {"pattern": "zz", "definition": {"max-length": 5}, "apply-to": "queues"},
    "/parameters/{component}/{vhost}/{name}": {"value": {"max-queues": -1}},
    "/global-parameters/{name}": {"value": {"a": "b"}},
    "/vhosts/{vhost}": {"description": "d", "tags": "a,b", "default_queue_type": "classic"},
    "/vhost-limits/{vhost}/{name}": {"value": 1},
    "/user-limits/{user}/{name}": {"value": 1},
    "/cluster-name": {"name": "n"},
    "/backup": {"folder": "relative"},
    "/nodes/{node}/log_level": {"level": "info"},
    "/nodes/{node}/limits": {"memory_limit": "1GB"},
    "/whatif": {
        "put": {
            "policies": [{"name": "p", "vhost": "/", "pattern": "zz", "definition": {"dead-letter-exchange": "x"}}]
        },
        "since": "2030-01-31T12:00:00Z",
        "until": "2030-01-31T12:00:00Z",
    },
    "/delayed/{vhost}/{id}/reschedule": {"deliver_at": "2030-01-31T12:00:00Z"},
    "/definitions": {
        "vhosts": [{"name": "v", "description": "d"}],
        "users": [{"name": "u", "password_hash": "", "tags": "t", "hashing_algorithm": "h"}],
        "permissions": [{"user": "some-user", "vhost": "/", "configure": "", "write": "", "read": ""}],
        "topic_permissions": [{"user": "some-user", "vhost": "/", "exchange": "x", "write": "", "read": ""}],
        "parameters": [{"component": "vhost-limits", "vhost": "/", "name": "limits", "value": {}}],
        "global_parameters": [{"name": "g", "value": "x"}],
        "policies": [{"name": "p", "vhost": "/", "pattern": "zz", "definition": {"max-length": 1}, "apply-to": "all"}],
        "queues": [{"name": "q", "vhost": "/", "durable": True, "arguments": {"a": "b"}}],
        "exchanges": [{"name": "e", "vhost": "/", "type": "direct", "durable": True, "arguments": {"a": "b"}}],
        "bindings": [
            {
                "source": "e",
                "vhost": "/",
                "destination": "q",
                "destination_type": "queue",
                "routing_key": "k",
                "arguments": {"a": "b"},
            }
        ],
    },
}
BODIES["/cluster/transfer"] = {"to": "another"}
BODIES["/definitions/{vhost}"] = {
    key: BODIES["/definitions"][key] for key in ("policies", "queues", "exchanges", "bindings")
}


def filled(endpoint: Endpoint, **instead: str) -> str:
    path = endpoint.path
    for name, value in {**GOOD, **instead}.items():
        path = path.replace("{" + name + "}", quote(value, safe=""))
    return path


def parameters(endpoint: Endpoint) -> list[str]:
    return [one[1:-1] for one in endpoint.segments if one.startswith("{")]


def texts(value: Any, place: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where texts stand in a body, values and names of members alike."""
    if isinstance(value, str):
        return [place]
    if isinstance(value, dict):
        return [one for key, inner in value.items() for one in [(*place, ("key", key)), *texts(inner, (*place, key))]]
    if isinstance(value, list):
        return [one for number, inner in enumerate(value) for one in texts(inner, (*place, number))]
    return []


def with_text(value: Any, place: tuple[Any, ...], text: str) -> Any:
    """A copy with another text in one place."""
    if not place:
        return text
    first, *rest = place
    if isinstance(first, tuple):
        return {text if key == first[1] else key: inner for key, inner in value.items()}
    if isinstance(value, dict):
        return {key: with_text(inner, tuple(rest), text) if key == first else inner for key, inner in value.items()}
    return [with_text(inner, tuple(rest), text) if number == first else inner for number, inner in enumerate(value)]


@pytest.mark.parametrize("kind", [*NO_NAMES, "octets", "escape"])
def test_no_name_in_a_path_crashes_anything_and_a_put_refuses_it(
    api: Api, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    wrong = []
    with caplog.at_level(logging.ERROR, "warrenmq"):
        for endpoint in ENDPOINTS:
            for parameter in parameters(endpoint):
                marker = "zzmarkerzz"
                sent = {"octets": "%ff", "escape": "%zz"}.get(kind) or quote(NO_NAMES[kind], safe="")
                path = filled(endpoint, **{parameter: marker}).replace(marker, sent)
                body = BODIES.get(endpoint.path, {}) if endpoint.method in ("PUT", "POST") else None
                answer = api.ask(endpoint.method, path, body)
                refused = kind in ("octets", "escape") or (endpoint.method == "PUT" and parameter != "props")
                crashed = answer.status_code >= 500 and "failed" not in answer.text  # a health check may say so
                if crashed or (refused and answer.status_code != 400):
                    wrong.append(f"{endpoint.method} {endpoint.path} {parameter}: {answer.status_code} {answer.text}")
    assert not wrong, "\n".join(wrong)
    assert not [one for one in caplog.records if one.exc_info]


@pytest.mark.parametrize("kind", NO_NAMES)
def test_no_text_in_a_body_crashes_anything(api: Api, kind: str, caplog: pytest.LogCaptureFixture) -> None:
    wrong = []
    with caplog.at_level(logging.ERROR, "warrenmq"):
        api.put("/queues/%2F/some-name", {})
        api.put("/users/some-user", {"password": "x", "tags": ""})
        for endpoint in ENDPOINTS:
            body = BODIES.get(endpoint.path)
            if body is None or endpoint.method not in ("PUT", "POST"):
                continue
            for place in texts(body):
                answer = api.ask(endpoint.method, filled(endpoint), with_text(body, place, NO_NAMES[kind]))
                without = answer.status_code == 503 and endpoint.path == "/whatif"  # there is no journal to ask
                if answer.status_code >= 500 and not without:
                    wrong.append(f"{endpoint.method} {endpoint.path} {place}: {answer.status_code} {answer.text[:80]}")
    assert not wrong, "\n".join(wrong)
    assert not [one for one in caplog.records if one.exc_info]


def test_every_body_that_is_taken_is_among_those_that_were_tried() -> None:
    for endpoint in ENDPOINTS:
        if endpoint.body is None or not issubclass(endpoint.body, msgspec.Struct):
            continue
        has_text = any("str" in str(field.type) for field in msgspec.structs.fields(endpoint.body))
        assert not has_text or endpoint.path in BODIES, endpoint.path


MADE = [
    ("PUT", "/exchanges/%2F/x", {"type": LONG}),
    ("PUT", "/topic-permissions/%2F/guest", {"exchange": LONG, "write": "", "read": ""}),
    ("PUT", "/topic-permissions/%2F/guest", {"exchange": NUL, "write": "", "read": ""}),
    ("PUT", "/cluster-name", {"name": LONG}),
    ("PUT", "/cluster-name", {"name": NUL}),
    ("PUT", "/queues/%2F/x", {"arguments": {LONG: 1}}),
    ("POST", "/queues/%2F/some-name/leases", {"count": 1, "owner": LONG}),
    ("POST", "/queues/%2F/some-name/leases", {"count": 1, "key": NUL}),
    ("POST", "/bindings/%2F/e/amq.direct/q/some-name", {"routing_key": LONG}),
    ("POST", "/bindings/%2F/e/amq.direct/q/some-name", {"arguments": {LONG: 1}}),
    ("POST", "/backup", {"folder": "/tmp/" + NUL}),
    *[
        ("POST", "/definitions", {section: [{**row, key: name}]})
        for section, row, key in (
            ("vhosts", {}, "name"),
            ("users", {"password_hash": ""}, "name"),
            ("queues", {"vhost": "/"}, "name"),
            ("exchanges", {"vhost": "/", "type": "direct"}, "name"),
            ("global_parameters", {"value": 1}, "name"),
            ("policies", {"vhost": "/", "pattern": "zz", "definition": {"max-length": 1}}, "name"),
            ("parameters", {"component": "c", "vhost": "/", "value": 1}, "name"),
            ("topic_permissions", {"user": "guest", "vhost": "/", "write": "", "read": ""}, "exchange"),
        )
        for name in (LONG, NUL)
    ],
]


@pytest.mark.parametrize("method, path, body", MADE)
def test_what_would_become_a_name_is_refused_in_a_body_too(api: Api, method: str, path: str, body: Any) -> None:
    api.put("/queues/%2F/some-name", {})
    answer = api.ask(method, path, body)
    assert answer.status_code == 400, answer.text
    assert answer.json()["reason"] not in ("", "not_json")


def test_a_long_name_is_refused_in_rabbitmqs_words(api: Api) -> None:
    answer = api.ask("PUT", f"/queues/%2F/{LONG}", {})
    assert answer.json() == {
        "error": "bad_request",
        "reason": "queue should be less than 255 bytes, actually was 256\n",
    }
    assert api.ask("PUT", f"/queues/%2F/{LONG[:255]}", {}).status_code == 201
    assert api.ask("DELETE", f"/queues/%2F/{LONG[:255]}").status_code == 204
    assert api.ask("GET", f"/queues/%2F/{LONG}").status_code == 404


def test_a_queue_of_an_amqp_client_is_found_whatever_its_name(api: Api) -> None:
    with Connection(api.broker.url) as connection:
        connection.channel().queue_declare(NUL)
    shown = api.get("/queues/%2F/a%00b")
    assert shown["name"] == NUL
    peek = {"count": 1, "ackmode": "ack_requeue_true", "encoding": "auto"}
    assert api.ask("POST", "/queues/%2F/a%00b/get", peek).json() == []
    assert api.ask("DELETE", "/queues/%2F/a%00b").status_code == 204
