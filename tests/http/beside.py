"""Requests that are generated, asked of RabbitMQ and of Warren alike: routes, by users, by what may be wrong with them.

``REQUESTS`` is what makes sense; ``mutations`` makes of each what does not: no body, no JSON, a member that is missing,
null or of another kind, a vhost or an object that is not there. Every kind of user asks all of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.support import web

ALL = {"configure": ".*", "write": ".*", "read": ".*"}
USERS: dict[str, tuple[str, dict[str, str] | None]] = {
    "guest": ("", None),  # the administrator that is there
    "b-narrow": ("management", {"configure": "^own", "write": "^own", "read": "^own"}),
    "b-elsewhere": ("management", None),
    "b-monitoring": ("monitoring", None),
    "b-policymaker": ("policymaker", ALL),
    "b-administrator": ("administrator", None),
}
MESSAGE = {"routing_key": "b-queue", "properties": {}, "payload": "x", "payload_encoding": "string"}
GET = {"count": 1, "ackmode": "ack_requeue_true", "encoding": "auto"}
POLICY = {"pattern": "^nothing$", "definition": {"max-length": 5}, "priority": 1, "apply-to": "queues"}
TOPIC = {"exchange": "amq.topic", "write": ".*", "read": ".*"}


@dataclass(frozen=True)
class Ask:
    method: str
    path: str
    body: Any = None
    raw: str = ""  # sent as it is, in place of the body
    odd: bool = False  # a member is of a kind that makes no sense
    taken: bool = False  # but programs send it, and it has to be taken

    @property
    def name(self) -> str:
        body = self.raw or ("" if self.body is None else json.dumps(self.body))
        return f"{self.method} {self.path} {body}".strip()


REQUESTS = [
    Ask("GET", "/queues/%2F"),
    Ask("GET", "/queues/%2F/b-queue"),
    Ask("GET", "/queues/%2F/b-queue/bindings"),
    Ask("PUT", "/queues/%2F/b-queue", {"durable": True, "auto_delete": False, "arguments": {}}),
    Ask("DELETE", "/queues/%2F/b-queue/contents"),
    Ask("POST", "/queues/%2F/b-queue/get", GET),
    Ask("POST", "/queues/%2F/b-queue/actions", {"action": "sync"}),
    Ask("GET", "/exchanges/%2F"),
    Ask("GET", "/exchanges/%2F/b-exchange"),
    Ask("GET", "/exchanges/%2F/b-exchange/bindings/source"),
    Ask("GET", "/exchanges/%2F/b-exchange/bindings/destination"),
    Ask(
        "PUT",
        "/exchanges/%2F/b-exchange",
        {"type": "direct", "durable": True, "auto_delete": False, "internal": False, "arguments": {}},
    ),
    Ask("POST", "/exchanges/%2F/amq.default/publish", MESSAGE),
    Ask("POST", "/exchanges/%2F/b-exchange/publish", MESSAGE),
    Ask("GET", "/bindings"),
    Ask("GET", "/bindings/%2F"),
    Ask("GET", "/bindings/%2F/e/b-exchange/q/b-queue"),
    Ask("GET", "/bindings/%2F/e/b-exchange/q/b-queue/k"),
    Ask("POST", "/bindings/%2F/e/b-exchange/q/b-queue", {"routing_key": "k", "arguments": {}}),
    Ask("DELETE", "/bindings/%2F/e/b-exchange/q/b-queue/none"),
    Ask("GET", "/policies/%2F"),
    Ask("GET", "/policies/%2F/b-policy"),
    Ask("PUT", "/policies/%2F/b-policy", POLICY),
    Ask("GET", "/operator-policies/%2F"),
    Ask("GET", "/operator-policies/%2F/b-policy"),
    Ask("PUT", "/operator-policies/%2F/b-policy", POLICY),
    Ask("GET", "/parameters/vhost-limits"),
    Ask("GET", "/parameters/vhost-limits/%2F"),
    Ask("GET", "/parameters/vhost-limits/%2F/limits"),
    Ask("GET", "/global-parameters/b-parameter"),
    Ask("PUT", "/global-parameters/b-parameter", {"value": 1}),
    Ask("GET", "/vhost-limits/%2F"),
    Ask("PUT", "/vhost-limits/%2F/max-queues", {"value": -1}),
    Ask("GET", "/user-limits/b-user"),
    Ask("PUT", "/user-limits/b-user/max-channels", {"value": 5}),
    Ask("GET", "/users/b-user"),
    Ask("PUT", "/users/b-user", {"password": "x", "tags": "management"}),
    Ask("GET", "/users/b-user/permissions"),
    Ask("GET", "/users/b-user/topic-permissions"),
    Ask("POST", "/users/bulk-delete", {"users": []}),
    Ask("GET", "/permissions/%2F/b-user"),
    Ask("PUT", "/permissions/%2F/b-user", ALL),
    Ask("GET", "/topic-permissions/%2F/b-user"),
    Ask("PUT", "/topic-permissions/%2F/b-user", TOPIC),
    Ask("GET", "/vhosts/%2F"),
    Ask("GET", "/vhosts/%2F/permissions"),
    Ask("GET", "/vhosts/%2F/topic-permissions"),
    Ask("PUT", "/vhosts/b-vhost", {"description": "d", "tags": "a", "tracing": False}),
    Ask("GET", "/vhosts/%2F/connections"),
    Ask("GET", "/vhosts/%2F/channels"),
    Ask("GET", "/consumers"),
    Ask("GET", "/consumers/%2F"),
    Ask("GET", "/connections/none"),
    Ask("GET", "/connections/none/channels"),
    Ask("DELETE", "/connections/none"),
    Ask("GET", "/connections/username/b-user"),
    Ask("DELETE", "/connections/username/b-user"),
    Ask("GET", "/channels/none"),
    Ask("GET", "/nodes/none"),
    Ask("GET", "/definitions/%2F"),
    Ask("POST", "/definitions/%2F", {"queues": []}),
    Ask("PUT", "/cluster-name", {"name": "n"}),
    Ask("GET", "/aliveness-test/%2F"),
    Ask("GET", "/whoami"),
    Ask("GET", "/nothing"),
    Ask("POST", "/nothing", {}),
]
KINDS: list[Any] = [None, 5, -1, 1.5, "text", "", True, [], [1], {}, {"a": 1}]
WITH_VHOST = (
    "/queues/%2F",
    "/exchanges/%2F",
    "/bindings/%2F",
    "/policies/%2F",
    "/operator-policies/%2F",
    "/parameters/vhost-limits/%2F",
    "/vhost-limits/%2F",
    "/permissions/%2F",
    "/topic-permissions/%2F",
    "/vhosts/%2F",
    "/consumers/%2F",
    "/definitions/%2F",
    "/aliveness-test/%2F",
)


def mutations(ask: Ask) -> Iterator[Ask]:
    yield ask
    if ask.path.startswith(WITH_VHOST):
        yield Ask(ask.method, ask.path.replace("%2F", "b-no-vhost", 1), ask.body)
    if ask.method != "PUT":
        for name in ("b-queue", "b-exchange", "b-policy", "b-user", "b-parameter"):
            if name in ask.path:
                yield Ask(ask.method, ask.path.replace(name, "b-none"), ask.body)
    if not isinstance(ask.body, dict):
        return
    for raw in ("{", "[]", "5", '"text"', "null", " ", "{}", '{"a": 1}'):
        yield Ask(ask.method, ask.path, raw=raw)
    yield Ask(ask.method, ask.path)
    for key in ask.body:
        yield Ask(ask.method, ask.path, {one: value for one, value in ask.body.items() if one != key})
        for value in KINDS:
            odd = type(value) is not type(ask.body[key]) or value == [1] or key == "type"
            yield Ask(ask.method, ask.path, {**ask.body, key: value}, "", odd, key == "arguments" and value == [])


def every(user: str = "guest") -> list[Ask]:
    """All of it for the administrator; the others ask for nothing odd, for they are refused before that counts."""
    found = [one for ask in REQUESTS for one in mutations(ask)]
    return found if user == "guest" else [one for one in found if not one.odd and not one.raw]


def prepare(send: Any) -> None:
    """What is there before each round; the administrator does it."""
    for method, path, body in (
        ("PUT", "/users/b-user", {"password": "x", "tags": ""}),
        ("PUT", "/permissions/%2F/b-user", ALL),
        ("PUT", "/queues/%2F/b-queue", {"durable": True}),
        ("PUT", "/exchanges/%2F/b-exchange", {"type": "direct", "durable": True}),
        ("POST", "/bindings/%2F/e/b-exchange/q/b-queue", {"routing_key": "k"}),
        ("PUT", "/policies/%2F/b-policy", POLICY),
        ("PUT", "/operator-policies/%2F/b-policy", POLICY),
        ("PUT", "/global-parameters/b-parameter", {"value": 1}),
        ("PUT", "/vhost-limits/%2F/max-queues", {"value": -1}),
        ("DELETE", "/topic-permissions/%2F/b-user", None),
        ("DELETE", "/vhosts/b-vhost", None),
    ):
        send(method, path, body)


def users(send: Any) -> None:
    for name, (tags, permissions) in USERS.items():
        if name != "guest":
            send("PUT", f"/users/{name}", {"password": "secret", "tags": tags})
            if permissions is not None:
                send("PUT", f"/permissions/%2F/{name}", permissions)


def clean(send: Any) -> None:
    for path in (
        "/queues/%2F/b-queue",
        "/exchanges/%2F/b-exchange",
        "/policies/%2F/b-policy",
        "/operator-policies/%2F/b-policy",
        "/global-parameters/b-parameter",
        "/vhosts/b-vhost",
        "/vhost-limits/%2F/max-queues",
        "/users/b-user",
        "/queues/%2F/aliveness-test",
        *(f"/users/{name}" for name in USERS if name != "guest"),
    ):
        send("DELETE", path, None)


def answers(base: str, asked: list[Ask], user: str) -> list[tuple[int, Any]]:
    """Status and body of each; of a success only the status."""
    found: list[tuple[int, Any]] = []
    with web.Client(headers={"connection": "close"}) as client:

        def send(method: str, path: str, body: Any) -> None:
            client.request(method, f"{base}/api{path}", json=body, auth=("guest", "guest"))

        login = (user, "guest" if user == "guest" else "secret")
        users(send)
        prepare(send)
        for one in asked:
            content = one.raw or (None if one.body is None else json.dumps(one.body))
            answer = client.request(
                one.method,
                f"{base}/api{one.path}",
                content=content,
                auth=login,
                headers={"content-type": "application/json"},
            )
            try:
                body = answer.json() if answer.content and answer.status_code >= 400 else None
            except ValueError:
                body = answer.text
            found.append((answer.status_code, body))
            if one.method != "GET" and answer.status_code < 300:
                prepare(send)
        clean(send)
    return found
