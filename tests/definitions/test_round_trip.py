"""Definitions move RabbitMQ -> Warren -> RabbitMQ and come back equal; Warren's own survive a restart."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.support import web
from tests.support.brokers import RunningBroker
from warrenmq.testing import Broker

SECTIONS = [
    "users",
    "vhosts",
    "permissions",
    "topic_permissions",
    "parameters",
    "policies",
    "queues",
    "exchanges",
    "bindings",
]
HERE = "defs/one"  # a vhost that has to be quoted
OURS = (HERE, "defs-two")
AT = quote(HERE, safe="")


CLIENT = web.Client()  # making one loads certificates, which takes longer than a request


def call(base: str, method: str, path: str, body: Any = None, user: tuple[str, str] = ("guest", "guest")) -> Any:
    content = json.dumps(body) if body is not None else None
    headers = {"content-type": "application/json", "connection": "close"}
    response = CLIENT.request(method, f"{base}/api{path}", content=content, auth=user, headers=headers)
    assert response.status_code < 300, f"{method} {path}: {response.status_code} {response.text}"
    return response.json() if response.content else None


def furnish(base: str) -> None:
    """A bit of everything that definitions can say."""
    for vhost in OURS:
        call(base, "PUT", f"/vhosts/{quote(vhost, safe='')}", {})
        everything = {"configure": ".*", "write": ".*", "read": ".*"}
        call(base, "PUT", f"/permissions/{quote(vhost, safe='')}/guest", everything)
    call(base, "PUT", "/users/defs-alice", {"password": "secret", "tags": "management,policymaker"})
    call(base, "PUT", "/users/defs-bob", {"password_hash": "", "tags": ""})
    call(base, "PUT", "/user-limits/defs-alice/max-channels", {"value": 12})
    call(base, "PUT", f"/permissions/{AT}/defs-alice", {"configure": "^alice", "write": "", "read": "^(?!secret).*"})
    call(
        base,
        "PUT",
        f"/topic-permissions/{AT}/defs-alice",
        {"exchange": "amq.topic", "write": "^{username}", "read": ".*"},
    )
    call(base, "PUT", f"/vhost-limits/{AT}/max-queues", {"value": 100})
    call(
        base,
        "PUT",
        f"/policies/{AT}/ttl",
        {
            "pattern": "^tmp",
            "definition": {"message-ttl": 5000, "max-length": 7, "overflow": "reject-publish"},
            "priority": 3,
            "apply-to": "queues",
        },
    )
    call(
        base,
        "PUT",
        f"/policies/{AT}/ae",
        {"pattern": "^x", "definition": {"alternate-exchange": "rest"}, "apply-to": "exchanges"},
    )
    call(base, "PUT", f"/operator-policies/{AT}/cap", {"pattern": ".*", "definition": {"max-length": 1000}})
    for name, body in {
        "direct": {"type": "direct", "durable": True},
        "rest": {"type": "fanout", "durable": True, "auto_delete": True},
        "inner": {"type": "topic", "durable": False, "internal": True},
        "match": {"type": "headers", "durable": True, "arguments": {"alternate-exchange": "rest"}},
    }.items():
        call(base, "PUT", f"/exchanges/{AT}/{name}", body)
    queues: dict[str, dict[str, object]] = {
        "plain": {"durable": True},
        "transient": {"durable": False, "auto_delete": True},
        "with arguments é": {
            "durable": True,
            "arguments": {
                "x-max-length": 10,
                "x-dead-letter-exchange": "rest",
                "x-dead-letter-routing-key": "dead",
                "x-message-ttl": 60000,
                "x-max-priority": 5,
                "x-overflow": "reject-publish",
                "own": {"nested": [1, "two", 3.5, True]},
                "large": 99999999999,
            },
        },
    }
    for name, queue in queues.items():
        call(base, "PUT", f"/queues/{AT}/{quote(name, safe='')}", queue)
    call(base, "PUT", "/queues/defs-two/plain", {"durable": True})
    call(base, "POST", f"/bindings/{AT}/e/direct/q/plain", {"routing_key": "a/b c"})
    call(base, "POST", f"/bindings/{AT}/e/direct/q/plain", {"routing_key": ""})
    call(base, "POST", f"/bindings/{AT}/e/amq.topic/q/transient", {"routing_key": "a.#"})
    call(base, "POST", f"/bindings/{AT}/e/direct/e/inner", {"routing_key": "on"})
    call(base, "POST", f"/bindings/{AT}/e/match/q/plain", {"arguments": {"x-match": "any", "k": "v", "n": "1"}})


def tear_down(base: str) -> None:
    for vhost in OURS:
        call(base, "DELETE", f"/vhosts/{quote(vhost, safe='')}")
    for user in ("defs-alice", "defs-bob"):
        call(base, "DELETE", f"/users/{user}")


def ours(document: dict[str, Any]) -> dict[str, list[str]]:
    """What concerns our vhosts and users, in an order that does not matter."""
    found = {}
    for section in SECTIONS:
        parts = [
            part
            for part in document[section]
            if part.get("vhost", part.get("name")) in OURS or str(part.get("name")).startswith("defs-")
        ]
        found[section] = sorted(json.dumps(part, sort_keys=True) for part in parts)
    return found


@pytest.mark.oracle
def test_definitions_of_a_real_rabbitmq_come_back_equal(rabbitmq: RunningBroker) -> None:
    furnish(rabbitmq.http_url)
    try:
        exported = call(rabbitmq.http_url, "GET", "/definitions")
        with Broker() as broker:
            call(broker.http_url, "POST", "/definitions", exported)
            through = call(broker.http_url, "GET", "/definitions")
            assert ours(through) == ours(exported)
            assert through["global_parameters"] == exported["global_parameters"]
            who = call(broker.http_url, "GET", "/whoami", user=("defs-alice", "secret"))
            assert who == {"name": "defs-alice", "tags": ["management", "policymaker"]}
            queue = call(broker.http_url, "GET", f"/queues/{AT}/plain")
            assert queue["effective_policy_definition"] == {"max-length": 1000}
            tear_down(rabbitmq.http_url)
            call(rabbitmq.http_url, "POST", "/definitions", through)
        again = call(rabbitmq.http_url, "GET", "/definitions")
        assert ours(again) == ours(exported)
        assert all(ours(exported).values()), "every section was tried"
    finally:
        tear_down(rabbitmq.http_url)


@pytest.mark.oracle
def test_what_rabbitmqctl_writes_as_pairs_is_imported_as_the_objects_it_stands_for(rabbitmq: RunningBroker) -> None:
    """Definitions of operator policies, and global parameters; over HTTP the same RabbitMQ writes objects."""
    definition = {"max-length": 10, "expires": 1000}
    parameter = {"a": {"b": 1}, "l": [1, 2]}
    rabbitmq.ctl("set_operator_policy", "--apply-to", "queues", "defs-limit", "^x", json.dumps(definition))
    rabbitmq.ctl("set_global_parameter", "defs-parameter", json.dumps(parameter))
    file = Path(tempfile.gettempdir()) / f"defs-{os.getpid()}.json"  # where RabbitMQ's user may write
    try:
        rabbitmq.ctl("export_definitions", str(file))
        exported = json.loads(file.read_text())
    finally:
        file.unlink(missing_ok=True)
        rabbitmq.ctl("clear_operator_policy", "defs-limit")
        rabbitmq.ctl("clear_global_parameter", "defs-parameter")
    assert "[[" in json.dumps([exported["parameters"], exported["global_parameters"]]), "no pairs any more?"
    with Broker() as broker:
        call(broker.http_url, "POST", "/definitions", exported)
        found = call(broker.http_url, "GET", "/operator-policies/%2F/defs-limit")
        assert found["definition"] == definition
        assert call(broker.http_url, "GET", "/global-parameters/defs-parameter")["value"] == parameter


def test_what_is_imported_survives_a_restart(tmp_path: Path) -> None:
    with Broker(data_dir=tmp_path) as broker:
        furnish(broker.http_url)
        before = ours(call(broker.http_url, "GET", "/definitions"))
        durable = [one for one in before["queues"] if json.loads(one)["durable"]]
        broker.restart()
        after = ours(call(broker.http_url, "GET", "/definitions"))
        for section in ("users", "vhosts", "permissions", "topic_permissions", "parameters", "policies"):
            assert after[section] == before[section]
        assert after["queues"] == durable
        refused = web.put(
            f"{broker.http_url}/api/vhost-limits/{AT}/max-queues", json={"value": 2}, auth=("guest", "guest")
        )
        assert refused.status_code == 204
        third = web.put(f"{broker.http_url}/api/queues/{AT}/third", json={}, auth=("guest", "guest"))
        assert third.status_code == 400 and "queue limit" in third.json()["reason"]


def test_one_vhosts_definitions_fit_into_another() -> None:
    with Broker() as broker:
        furnish(broker.http_url)
        part = call(broker.http_url, "GET", f"/definitions/{AT}")
        assert all("vhost" not in one for one in part["queues"] + part["exchanges"] + part["bindings"])
        call(broker.http_url, "PUT", "/vhosts/copy", {})
        call(broker.http_url, "POST", "/definitions/copy", part)
        copied = call(broker.http_url, "GET", "/definitions/copy")
        for section in ("queues", "exchanges", "bindings"):
            assert copied[section] == part[section]
        assert [one["name"] for one in copied["policies"]] == ["ttl", "ae"]


def test_nothing_is_half_imported() -> None:
    with Broker() as broker:
        before = call(broker.http_url, "GET", "/definitions")
        document = {
            "users": [{"name": "early", "password": "x", "tags": ""}],
            "vhosts": [{"name": "early"}],
            "queues": [{"name": "early", "vhost": "early", "durable": True}, {"name": "q", "vhost": "/", "durable": 1}],
        }
        refused = web.post(f"{broker.http_url}/api/definitions", json=document, auth=("guest", "guest"))
        assert refused.status_code == 400
        assert refused.json()["reason"] == "queues[1].durable: expected true or false, got 1"
        assert call(broker.http_url, "GET", "/definitions") == before


def test_a_queue_that_exists_stays_as_it_is_when_definitions_say_otherwise() -> None:
    with Broker() as broker:
        call(broker.http_url, "PUT", "/queues/%2F/kept", {"durable": True})
        document = {"queues": [{"name": "kept", "vhost": "/", "durable": False, "arguments": {"x-max-length": 1}}]}
        call(broker.http_url, "POST", "/definitions", document)
        kept = call(broker.http_url, "GET", "/queues/%2F/kept")
        assert (kept["durable"], kept["arguments"]) == (True, {})


def test_a_form_with_a_file_is_imported_too() -> None:
    with Broker() as broker:
        document = json.dumps({"queues": [{"name": "uploaded", "vhost": "/", "durable": True}]})
        answer = web.post(
            f"{broker.http_url}/api/definitions", files={"file": ("d.json", document)}, auth=("guest", "guest")
        )
        assert answer.status_code == 204
        assert call(broker.http_url, "GET", "/queues/%2F/uploaded")["durable"] is True


def test_an_oversized_document_is_refused_and_a_large_one_is_imported_whole() -> None:
    with Broker() as broker:
        with web.Client(auth=("guest", "guest")) as client:
            oversized = b'{"queues": [' + b" " * (33 << 20) + b"]}"
            assert client.post(f"{broker.http_url}/api/definitions", content=oversized).status_code == 413
            queues = [{"name": f"q{number}", "vhost": "/", "durable": True} for number in range(5000)]
            wrong = {"queues": [*queues, {"name": "last", "vhost": "nowhere"}]}
            answer = client.post(f"{broker.http_url}/api/definitions", json=wrong)
            assert answer.json()["reason"] == 'queues[5000].vhost: no such vhost "nowhere"'
            assert call(broker.http_url, "GET", "/overview")["object_totals"]["queues"] == 0
            assert client.post(f"{broker.http_url}/api/definitions", json={"queues": queues}).status_code == 204
            assert call(broker.http_url, "GET", "/overview")["object_totals"]["queues"] == 5000


def test_a_documents_explosive_patterns_are_harmless() -> None:
    evil = {"pattern": "(a+)+$", "definition": {"max-length": 1}}
    document = {
        "queues": [{"name": "a" * 240 + f"!{number}", "vhost": "/", "durable": False} for number in range(500)],
        "policies": [{"vhost": "/", "name": f"p{number}", **evil} for number in range(3)],
    }
    with Broker() as broker:
        answer = web.post(f"{broker.http_url}/api/definitions", json=document, auth=("guest", "guest"))
        assert answer.status_code == 204
        assert call(broker.http_url, "GET", "/queues?page=1&page_size=1&columns=policy")["items"] == [{"policy": None}]
