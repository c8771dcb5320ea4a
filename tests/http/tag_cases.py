"""The endpoints of the management API with what a user of each kind is answered.

``CASES`` lists requests; ``tests/http/tag_answers.json`` holds the status codes a real RabbitMQ 3.10 gave to each kind
of user (recorded by running this file against a node: ``python -m tests.http.tag_cases URL``).
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from tests.support import web

ANSWERS = Path(__file__).with_name("tag_answers.json")
ADMIN = ("guest", "guest")

# name -> (tags, has permissions on "/")
USERS: dict[str, tuple[str, bool]] = {
    "t-none": ("", True),
    "t-management": ("management", True),
    "t-management-elsewhere": ("management", False),
    "t-policymaker": ("policymaker", True),
    "t-policymaker-elsewhere": ("policymaker", False),
    "t-monitoring": ("monitoring", True),
    "t-monitoring-elsewhere": ("monitoring", False),
    "t-administrator": ("administrator", True),
    "t-administrator-elsewhere": ("administrator", False),
}
PERMISSIONS = {"configure": ".*", "write": ".*", "read": ".*"}


@dataclass
class Case:
    method: str
    path: str
    body: Any = None
    # requests that put things back as they should be before the case runs
    before: list[tuple[str, str, Any]] = field(default_factory=list)

    @property
    def name(self) -> str:
        return f"{self.method} {self.path}"


QUEUE = ("PUT", "/queues/%2F/t-queue", {"durable": True})
EXCHANGE = ("PUT", "/exchanges/%2F/t-exchange", {"type": "direct", "durable": True})
BINDING = ("POST", "/bindings/%2F/e/t-exchange/q/t-queue", {"routing_key": "k"})
POLICY_BODY = {"pattern": "^nothing$", "definition": {"max-length": 5}}
POLICY = ("PUT", "/policies/%2F/t-policy", POLICY_BODY)
OPERATOR = ("PUT", "/operator-policies/%2F/t-policy", POLICY_BODY)
VICTIM = ("PUT", "/users/t-victim", {"password": "x", "tags": ""})
VICTIM_MAY = ("PUT", "/permissions/%2F/t-victim", PERMISSIONS)
VICTIM_TOPIC = ("PUT", "/topic-permissions/%2F/t-victim", {"exchange": "amq.topic", "write": ".*", "read": ".*"})
VHOST: tuple[str, str, dict[str, object]] = ("PUT", "/vhosts/t-vhost", {})

CASES = [
    Case("GET", "/whoami"),
    Case("GET", "/overview"),
    Case("GET", "/cluster-name"),
    Case("PUT", "/cluster-name", {"name": "t-cluster"}),
    Case("GET", "/nodes"),
    Case("GET", "/extensions"),
    Case("GET", "/feature-flags"),
    Case("GET", "/definitions"),
    Case("POST", "/definitions", {"queues": []}),
    Case("GET", "/definitions/%2F"),
    Case("POST", "/definitions/%2F", {"queues": []}),
    Case("GET", "/vhosts"),
    Case("GET", "/vhosts/%2F"),
    Case("PUT", "/vhosts/t-vhost", {}, [VHOST]),
    Case("DELETE", "/vhosts/t-vhost", None, [VHOST]),
    Case("GET", "/vhosts/%2F/permissions"),
    Case("GET", "/vhosts/%2F/topic-permissions"),
    Case("GET", "/vhosts/%2F/connections"),
    Case("GET", "/vhosts/%2F/channels"),
    Case("GET", "/vhost-limits"),
    Case("GET", "/vhost-limits/%2F"),
    Case("PUT", "/vhost-limits/%2F/max-queues", {"value": -1}),
    Case("DELETE", "/vhost-limits/%2F/max-queues"),
    Case("GET", "/users"),
    Case("GET", "/users/without-permissions"),
    Case("GET", "/users/t-victim", None, [VICTIM]),
    Case("PUT", "/users/t-victim", {"password": "x", "tags": ""}, [VICTIM]),
    Case("DELETE", "/users/t-victim", None, [VICTIM]),
    Case("POST", "/users/bulk-delete", {"users": ["t-victim"]}, [VICTIM]),
    Case("GET", "/users/t-victim/permissions", None, [VICTIM]),
    Case("GET", "/users/t-victim/topic-permissions", None, [VICTIM]),
    Case("GET", "/user-limits", None, [VICTIM]),
    Case("GET", "/user-limits/t-victim", None, [VICTIM]),
    Case("PUT", "/user-limits/t-victim/max-channels", {"value": 5}, [VICTIM]),
    Case("DELETE", "/user-limits/t-victim/max-channels", None, [VICTIM]),
    Case("GET", "/permissions"),
    Case("GET", "/permissions/%2F/t-victim", None, [VICTIM, VICTIM_MAY]),
    Case("PUT", "/permissions/%2F/t-victim", PERMISSIONS, [VICTIM, VICTIM_MAY]),
    Case("DELETE", "/permissions/%2F/t-victim", None, [VICTIM, VICTIM_MAY]),
    Case("GET", "/topic-permissions"),
    Case("GET", "/topic-permissions/%2F/t-victim", None, [VICTIM, VICTIM_TOPIC]),
    Case("PUT", "/topic-permissions/%2F/t-victim", VICTIM_TOPIC[2], [VICTIM, VICTIM_TOPIC]),
    Case("DELETE", "/topic-permissions/%2F/t-victim", None, [VICTIM, VICTIM_TOPIC]),
    Case("GET", "/policies"),
    Case("GET", "/policies/%2F"),
    Case("GET", "/policies/%2F/t-policy", None, [POLICY]),
    Case("PUT", "/policies/%2F/t-policy", POLICY_BODY, [POLICY]),
    Case("DELETE", "/policies/%2F/t-policy", None, [POLICY]),
    Case("GET", "/operator-policies"),
    Case("GET", "/operator-policies/%2F"),
    Case("GET", "/operator-policies/%2F/t-policy", None, [OPERATOR]),
    Case("PUT", "/operator-policies/%2F/t-policy", POLICY_BODY, [OPERATOR]),
    Case("DELETE", "/operator-policies/%2F/t-policy", None, [OPERATOR]),
    Case("GET", "/parameters"),
    Case("GET", "/parameters/vhost-limits"),
    Case("GET", "/parameters/vhost-limits/%2F"),
    Case(
        "PUT",
        "/parameters/vhost-limits/%2F/limits",
        {"value": {"max-queues": -1}},
        [("PUT", "/vhost-limits/%2F/max-queues", {"value": -1})],
    ),
    Case("GET", "/global-parameters"),
    Case("PUT", "/global-parameters/t-parameter", {"value": 1}),
    Case("GET", "/global-parameters/t-parameter", None, [("PUT", "/global-parameters/t-parameter", {"value": 1})]),
    Case("DELETE", "/global-parameters/t-parameter", None, [("PUT", "/global-parameters/t-parameter", {"value": 1})]),
    Case("GET", "/exchanges"),
    Case("GET", "/exchanges/%2F"),
    Case("GET", "/exchanges/%2F/amq.topic"),
    Case("GET", "/exchanges/%2F/amq.topic/bindings/source"),
    Case("GET", "/exchanges/%2F/amq.topic/bindings/destination"),
    Case("PUT", "/exchanges/%2F/t-exchange", EXCHANGE[2], [EXCHANGE]),
    Case("DELETE", "/exchanges/%2F/t-exchange", None, [EXCHANGE]),
    Case(
        "POST",
        "/exchanges/%2F/amq.fanout/publish",
        {"routing_key": "", "properties": {}, "payload": "", "payload_encoding": "string"},
    ),
    Case("GET", "/queues"),
    Case("GET", "/queues/%2F"),
    Case("GET", "/queues/%2F/t-queue", None, [QUEUE]),
    Case("GET", "/queues/%2F/t-queue/bindings", None, [QUEUE]),
    Case("PUT", "/queues/%2F/t-queue", QUEUE[2], [QUEUE]),
    Case("DELETE", "/queues/%2F/t-queue/contents", None, [QUEUE]),
    Case("POST", "/queues/%2F/t-queue/get", {"count": 1, "ackmode": "ack_requeue_false", "encoding": "auto"}, [QUEUE]),
    Case("DELETE", "/queues/%2F/t-queue", None, [QUEUE]),
    Case("GET", "/bindings"),
    Case("GET", "/bindings/%2F"),
    Case("GET", "/bindings/%2F/e/t-exchange/q/t-queue", None, [QUEUE, EXCHANGE, BINDING]),
    Case("GET", "/bindings/%2F/e/t-exchange/q/t-queue/k", None, [QUEUE, EXCHANGE, BINDING]),
    Case("POST", "/bindings/%2F/e/t-exchange/q/t-queue", {"routing_key": "k"}, [QUEUE, EXCHANGE, BINDING]),
    Case("DELETE", "/bindings/%2F/e/t-exchange/q/t-queue/k", None, [QUEUE, EXCHANGE, BINDING]),
    Case("GET", "/connections"),
    Case("GET", "/connections/no-such"),
    Case("DELETE", "/connections/no-such"),
    Case("GET", "/channels"),
    Case("GET", "/channels/no-such"),
    Case("GET", "/consumers"),
    Case("GET", "/consumers/%2F"),
    Case("GET", "/health/checks/alarms"),
    Case("GET", "/health/checks/local-alarms"),
    Case("GET", "/health/checks/virtual-hosts"),
    Case("GET", "/health/checks/protocol-listener/amqp"),
    Case("GET", "/health/checks/node-is-quorum-critical"),
    Case("GET", "/health/checks/certificate-expiration/1/days"),
    Case("GET", "/aliveness-test/%2F"),
    Case("GET", "/healthchecks/node"),
    Case("POST", "/rebalance/queues", {}),
    Case("DELETE", "/reset"),
]


def send(client: web.Client, base: str, method: str, path: str, body: Any, user: tuple[str, str]) -> httpx.Response:
    content = None if body is None else json.dumps(body)
    # RabbitMQ drops the connection when it refuses a request whose body it has not read: use each only once.
    headers = {"content-type": "application/json", "connection": "close"}
    return client.request(method, f"{base}/api{path}", content=content, auth=user, headers=headers)


def set_up(client: web.Client, base: str) -> None:
    for name, (tags, may) in USERS.items():
        send(client, base, "PUT", f"/users/{name}", {"password": "secret", "tags": tags}, ADMIN)
        if may:
            send(client, base, "PUT", f"/permissions/%2F/{name}", PERMISSIONS, ADMIN)


def ask(client: web.Client, base: str, case: Case) -> dict[str, int]:
    """The status code each kind of user gets."""
    answers = {}
    for name in USERS:
        for method, path, body in case.before:
            send(client, base, method, path, body, ADMIN)
        answers[name] = send(client, base, case.method, case.path, case.body, (name, "secret")).status_code
    return answers


def clean_up(client: web.Client, base: str) -> None:
    for name in USERS:
        send(client, base, "DELETE", f"/users/{name}", None, ADMIN)
    for path in (
        "/users/t-victim",
        "/vhosts/t-vhost",
        "/queues/%2F/t-queue",
        "/exchanges/%2F/t-exchange",
        "/policies/%2F/t-policy",
        "/operator-policies/%2F/t-policy",
        "/vhost-limits/%2F/max-queues",
        "/queues/%2F/aliveness-test",
        "/global-parameters/t-parameter",
    ):
        send(client, base, "DELETE", path, None, ADMIN)


def record(base: str) -> None:
    with web.Client() as client:
        set_up(client, base)
        answers = {case.name: ask(client, base, case) for case in CASES}
        clean_up(client, base)
    lines = [f"  {json.dumps(name)}: {json.dumps(codes)}" for name, codes in answers.items()]
    ANSWERS.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    record(sys.argv[1])
