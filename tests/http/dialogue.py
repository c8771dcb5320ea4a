"""A long conversation with the management API, and what a real RabbitMQ 3.10 answered.

``STEPS`` is the conversation; ``dialogue_answers.json`` the answers, recorded by running this file against a fresh node
(``python -m tests.http.dialogue HTTP-URL AMQP-PORT``). Errors are compared word for word; successful answers by shape:
what RabbitMQ has, Warren has too, with the same kind of value behind it. Steps marked ``differs`` are where Warren
answers otherwise on purpose.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pika

from tests.http.tag_cases import ADMIN, send
from tests.support import web

ANSWERS = Path(__file__).with_name("dialogue_answers.json")

# What only an Erlang node reports, and what a broker without samples in the background does not have.
ERLANG = {
    "backing_queue_status",
    "garbage_collection",
    "reductions",
    "reductions_details",
    "recoverable_slaves",
    "erlang_version",
    "release_series_support_status",
    "ra_open_file_metrics",
    "metrics_gc_queue_length",
    "idle_since",
    "socket_opts",
    "config_files",
    "log_files",
    "cowboy_opts",
    "ssl_opts",
    "message_stats",
    "global_parameters",  # which of them there are depends on what happened before
}
NODE_COUNTERS = ("gc_", "io_", "mnesia_", "msg_store_", "queue_index_", "context_switches")


@dataclass
class Step:
    method: str
    path: str
    body: Any = None
    differs: str = ""  # why Warren answers otherwise

    @property
    def name(self) -> str:
        return f"{self.method} {self.path} {'' if self.body is None else json.dumps(self.body)}".strip()


def steps(*rows: Any) -> list[Step]:
    return [Step(*row) for row in rows]


ALL = {"configure": ".*", "write": ".*", "read": ".*"}
STRING = {"properties": {}, "payload": "x", "payload_encoding": "string"}
CRASHES = "RabbitMQ crashes with 500"

USERS = steps(
    ("PUT", "/users/bob", {"password": "x", "tags": "management"}),
    ("PUT", "/users/bob", {"password": "x", "tags": ["management", "policymaker"]}),
    ("PUT", "/users/nameless", {"tags": ""}),
    ("PUT", "/users/tagless", {"password": "x"}),
    ("PUT", "/users/hashed", {"password_hash": "", "tags": "administrator,foo"}),
    ("PUT", "/users/badhash", {"password_hash": "notbase64", "tags": ""}),
    ("GET", "/users"),
    ("GET", "/users/bob"),
    ("GET", "/users/nobody"),
    ("DELETE", "/users/nobody"),
    ("PUT", "/permissions/%2F/bob", {"configure": ".*", "write": ".*"}),
    ("PUT", "/permissions/%2F/nobody", ALL),
    ("PUT", "/permissions/nov/bob", ALL),
    ("PUT", "/permissions/%2F/bob", ALL),
    ("PUT", "/permissions/%2F/bob", ALL),
    ("PUT", "/permissions/%2F/bob", {"configure": "[", "write": "", "read": ""}, "it sends code points"),
    ("GET", "/permissions/%2F/bob"),
    ("GET", "/permissions"),
    ("PUT", "/topic-permissions/%2F/bob", {"exchange": "amq.topic", "write": "^a", "read": "^{username}"}),
    ("PUT", "/topic-permissions/%2F/bob", {"exchange": "amq.topic", "write": "^a", "read": "^b"}),
    ("GET", "/topic-permissions/%2F/bob"),
    ("GET", "/users/bob/permissions"),
    ("GET", "/users/bob/topic-permissions"),
    ("GET", "/vhosts/%2F/permissions"),
    ("GET", "/vhosts/%2F/topic-permissions"),
    ("GET", "/users/without-permissions"),
    ("PUT", "/user-limits/bob/max-connections", {"value": 5}),
    ("PUT", "/user-limits/bob/foo", {"value": 5}),
    ("PUT", "/user-limits/nobody/max-connections", {"value": 5}),
    ("PUT", "/user-limits/bob/max-channels", {"value": "x"}),
    ("GET", "/user-limits"),
    ("GET", "/user-limits/bob"),
    ("GET", "/user-limits/nobody"),
    ("DELETE", "/user-limits/bob/max-channels"),
    ("POST", "/users/bulk-delete", {"users": ["nameless", "nobody"]}),
    ("POST", "/users/bulk-delete", {}),
    ("POST", "/users/bulk-delete", {"users": ["hashed"]}),
    ("DELETE", "/permissions/%2F/bob"),
    ("DELETE", "/permissions/%2F/bob"),
    ("DELETE", "/topic-permissions/%2F/bob"),
    ("DELETE", "/topic-permissions/%2F/bob"),
    ("GET", "/permissions/%2F/bob"),
    ("GET", "/topic-permissions/%2F/bob"),
    ("DELETE", "/users/bob"),
)

VHOSTS = steps(
    ("PUT", "/vhosts/v1", {}),
    ("PUT", "/vhosts/v1"),
    ("PUT", "/vhosts/v2", {"description": "d", "tags": "a,b", "tracing": True}),
    ("GET", "/vhosts/v2"),
    ("GET", "/vhosts"),
    ("GET", "/vhosts/nov"),
    ("PUT", "/vhost-limits/v2/max-queues", {"value": 5}),
    ("PUT", "/vhost-limits/v2/max-connections", {"value": -1}),
    ("PUT", "/vhost-limits/v2/foo", {"value": 5}),
    ("PUT", "/vhost-limits/v2/max-queues", {"value": "x"}),
    ("PUT", "/vhost-limits/nov/max-queues", {"value": 5}),
    ("GET", "/vhost-limits"),
    ("GET", "/vhost-limits/v2"),
    ("GET", "/vhost-limits/v1"),
    ("GET", "/parameters/vhost-limits"),
    ("GET", "/parameters/vhost-limits/v2"),
    ("GET", "/parameters/vhost-limits/v2/limits"),
    ("DELETE", "/vhost-limits/v2/max-connections"),
    ("DELETE", "/vhost-limits/v2/nope"),
    ("DELETE", "/vhosts/v1"),
    ("DELETE", "/vhosts/v1"),
    ("DELETE", "/vhosts/v2"),
    ("PUT", "/global-parameters/foo", {"value": {"a": [1, 2]}}),
    ("PUT", "/global-parameters/foo", {"value": {"a": [1, 2, 3]}}),
    ("PUT", "/global-parameters/foo", {}),
    ("GET", "/global-parameters/foo"),
    ("DELETE", "/global-parameters/foo"),
    ("DELETE", "/global-parameters/foo"),
    ("GET", "/global-parameters/foo"),
    ("PUT", "/parameters/foo/%2F/x", {"value": 1}),
    ("GET", "/parameters/foo/%2F/x"),
    ("GET", "/parameters/federation"),
)


def _policies() -> list[Step]:
    """Every key with a value that makes sense and one that does not."""
    rows: list[Any] = [("PUT", "/policies/nov/p", {"pattern": "a", "definition": {"max-length": 5}})]
    for body in (
        {"pattern": "[", "definition": {"max-length": 1}},
        {"pattern": 1, "definition": {"max-length": 1}},
        {"pattern": "zz"},
        {"definition": {"max-length": 1}},
        {"pattern": "zz", "definition": {}},
        {"pattern": "zz", "definition": {"foo": 1}},
        {"pattern": "zz", "definition": {"foo": 1, "bar": 2}},
        {"pattern": "zz", "definition": {"max-length": 1}, "apply-to": "foo"},
        {"pattern": "zz", "definition": {"max-length": 1}, "priority": "x"},
        {"pattern": "zz", "definition": {"max-length": 1}, "priority": 1.5},
        {"pattern": "zz", "definition": {"max-length": 1}, "apply-to": "queues", "priority": 7},
    ):
        rows.append(("PUT", "/policies/%2F/p", body))
    refusable: dict[str, list[object]] = {
        "max-length": ["x", -1, 1.5, True, None, [1, 2], {"a": 1}, 5],
        "max-length-bytes": [-1, 5],
        "message-ttl": [-1, "100", 99999999999999],
        "expires": [0, 99999999999999],
        "overflow": ["x", "reject-publish-dlx"],
        "alternate-exchange": [1, "x"],
        "dead-letter-exchange": [1, "x"],
        "dead-letter-routing-key": [1, "x"],
        "dead-letter-strategy": ["x", "at-most-once"],
        "delivery-limit": [-1, 0],
        "queue-mode": ["x", "lazy"],
        "queue-version": [3, 2],
        "queue-leader-locator": ["x", "balanced"],
        "queue-master-locator": ["x", "min-masters"],
        "initial-cluster-size": ["x", 3],
        "max-in-memory-length": [-1, 5],
        "max-in-memory-bytes": [-1, 5],
        "stream-max-segment-size-bytes": [-1, 5],
        "max-age": ["1Q", "1h"],
        "ha-mode": ["foo", "all"],
        "ha-params": [1],
    }
    for key, values in refusable.items():
        for value in values:
            rows.append(("PUT", "/policies/%2F/p", {"pattern": "zz", "definition": {key: value}}))
    for key, value in {"overflow": "drop-head", "dead-letter-exchange": "x", "max-length": 5, "expires": 10000}.items():
        rows.append(("PUT", "/operator-policies/%2F/p", {"pattern": "zz", "definition": {key: value}}))
    for path in (
        "/policies/%2F/p",
        "/policies/%2F",
        "/policies",
        "/operator-policies/%2F/p",
        "/parameters",
        "/parameters/operator_policy",
        "/policies/%2F/none",
    ):
        rows.append(("GET", path))
    for path in ("/policies/%2F/p", "/policies/%2F/p", "/operator-policies/%2F/p"):
        rows.append(("DELETE", path))
    return steps(*rows)


QUEUES = steps(
    ("PUT", "/queues/%2F/q1", {"durable": True}),
    ("PUT", "/queues/%2F/q1", {"durable": True}),
    ("PUT", "/queues/%2F/q1", {"durable": False}),
    ("PUT", "/queues/%2F/q1", {"durable": True, "arguments": {"x-max-length": 5}}),
    ("PUT", "/queues/%2F/q2", {"durable": "yes"}),
    ("PUT", "/queues/%2F/q2", {"durable": 1}),
    ("PUT", "/queues/%2F/q2", []),
    ("PUT", "/queues/%2F/q2", {"arguments": {"x-message-ttl": -1}}),
    ("PUT", "/queues/%2F/q2", {"arguments": {"a": None}}),
    ("PUT", "/queues/%2F/q2", {"node": "nope@x"}),
    ("PUT", "/queues/%2F/amq.foo", {}),
    ("PUT", "/queues/nov/q1", {"durable": True}),
    ("PUT", "/queues/%2F/q2", {"arguments": {"x-max-length": 10, "a": [1, "b", {"c": 2}], "f": 1.5, "t": True}}),
    ("GET", "/queues/%2F/q2"),
    ("GET", "/queues/%2F/q2?columns=name,arguments,durable"),
    ("GET", "/queues"),
    ("GET", "/queues/%2F"),
    ("GET", "/queues/nov"),
    ("GET", "/queues/%2F/none"),
    ("GET", "/queues?page=1&page_size=1"),
    ("GET", "/queues?page=1&page_size=1&columns=name"),
    ("GET", "/queues/%2F?sort=name&sort_reverse=true&columns=name"),
    ("GET", "/queues?page=1&name=2&columns=name"),
    ("GET", "/queues?page=1&name=^q.$&use_regex=true&columns=name"),
    ("GET", "/queues?page=0"),
    ("GET", "/queues?page=x"),
    ("GET", "/queues?page=1&page_size=501"),
    ("GET", "/queues?page=9&page_size=5&columns=name"),
    ("GET", "/queues?page=1&name=%5B&use_regex=true"),
    ("PUT", "/exchanges/%2F/x1", {"type": "direct"}),
    ("PUT", "/exchanges/%2F/x1", {"type": "direct"}),
    ("PUT", "/exchanges/%2F/x1", {"type": "fanout"}),
    ("PUT", "/exchanges/%2F/x2", {}),
    ("PUT", "/exchanges/%2F/x3", {"type": "x-nope"}),
    ("PUT", "/exchanges/%2F/x3", {"type": "topic", "arguments": {"alternate-exchange": "amq.fanout"}}),
    ("PUT", "/exchanges/%2F/amq.direct", {"type": "direct"}),
    ("PUT", "/exchanges/%2F/amq.direct", {"type": "direct", "durable": True}),
    ("PUT", "/exchanges/%2F/amq.foo", {"type": "direct"}),
    ("PUT", "/exchanges/%2F/amq.default", {"type": "direct"}),
    ("GET", "/exchanges/%2F/x3"),
    ("GET", "/exchanges/%2F"),
    ("GET", "/exchanges/%2F/none"),
    ("DELETE", "/exchanges/%2F/amq.direct"),
    ("DELETE", "/exchanges/%2F/amq.default"),
    ("DELETE", "/exchanges/%2F/none"),
    ("POST", "/bindings/%2F/e/x1/q/none", {"routing_key": "k"}),
    ("POST", "/bindings/%2F/e/none/q/q1", {"routing_key": "k"}),
    ("POST", "/bindings/%2F/e/x1/q/q1", {"routing_key": "a/b c%~", "arguments": {"foo": "bar"}}),
    ("POST", "/bindings/%2F/e/x1/q/q1", {}),
    ("POST", "/bindings/%2F/e/x1/q/q1", {"routing_key": "k"}),
    ("POST", "/bindings/%2F/e/x1/e/x2", {"routing_key": "k"}),
    ("POST", "/bindings/%2F/e/amq.default/q/q1", {}),
    ("GET", "/bindings/%2F/e/x1/q/q1/~"),
    ("GET", "/bindings/%2F/e/x1/q/q1/k"),
    ("GET", "/bindings/%2F/e/x1/q/q1/none"),
    ("GET", "/bindings/%2F/e/x1/e/x2"),
    ("GET", "/bindings/%2F/e/x1/q/none"),
    ("GET", "/exchanges/%2F/x2/bindings/destination"),
    ("GET", "/exchanges/%2F/x2/bindings/source"),
    ("DELETE", "/exchanges/%2F/x1?if-unused=true"),
    ("DELETE", "/bindings/%2F/e/x1/q/q1/~"),
    ("DELETE", "/bindings/%2F/e/x1/q/q1/~"),
    ("POST", "/exchanges/%2F/x2/publish", {"routing_key": "k", **STRING}),
    ("POST", "/exchanges/%2F/amq.default/publish", {"routing_key": "q1", **STRING}),
    (
        "POST",
        "/exchanges/%2F/amq.default/publish",
        {
            "routing_key": "q1",
            "payload": "eA==",
            "payload_encoding": "base64",
            "properties": {
                "headers": {"a": 1, "b": "c"},
                "delivery_mode": 2,
                "expiration": "100000",
                "timestamp": 123,
                "priority": 3,
                "content_type": "text/plain",
                "user_id": "guest",
            },
        },
    ),
    ("POST", "/exchanges/%2F/amq.default/publish", {"routing_key": "q1", **STRING, "properties": {"priority": "x"}}),
    ("POST", "/exchanges/%2F/amq.default/publish", {"routing_key": "q1", **STRING, "payload_encoding": "foo"}),
    (
        "POST",
        "/exchanges/%2F/amq.default/publish",
        {"routing_key": "q1", **STRING, "payload": "$$", "payload_encoding": "base64"},
    ),
    ("POST", "/exchanges/%2F/amq.default/publish", {"routing_key": "q1", "properties": {}, "payload": "x"}),
    ("POST", "/exchanges/%2F/amq.default/publish", {"routing_key": "none", **STRING}),
    ("POST", "/exchanges/%2F/none/publish", {"routing_key": "none", **STRING}),
    (
        "POST",
        "/exchanges/%2F/amq.default/publish",
        {"routing_key": "q1", **STRING, "properties": {"expiration": "abc"}},
    ),
    ("POST", "/exchanges/%2F/amq.default/publish", {"routing_key": "q1", **STRING, "properties": {"user_id": "abc"}}),
    ("POST", "/queues/%2F/q1/get", {"count": 5, "ackmode": "ack_requeue_true", "encoding": "auto"}),
    ("POST", "/queues/%2F/q1/get", {"count": 5, "ackmode": "ack_requeue_true", "encoding": "base64", "truncate": 0}),
    ("POST", "/queues/%2F/q1/get", {"count": 1, "ackmode": "reject_requeue_true", "encoding": "auto"}),
    ("POST", "/queues/%2F/q1/get", {"count": 1, "ackmode": "ack_requeue_false", "encoding": "auto"}),
    ("POST", "/queues/%2F/q1/get", {"count": 1, "ackmode": "ack_requeue_false", "encoding": "nope"}),
    ("POST", "/queues/%2F/q1/get", {"count": 1, "ackmode": "nope", "encoding": "auto"}, CRASHES),
    ("POST", "/queues/%2F/q1/get", {"ackmode": "ack_requeue_false", "encoding": "auto"}),
    ("POST", "/queues/%2F/q1/get", {"count": 1, "requeue": True, "encoding": "auto"}),
    ("POST", "/queues/%2F/q1/get", {"count": 0, "ackmode": "ack_requeue_false", "encoding": "auto"}),
    ("POST", "/queues/%2F/q1/get", {"count": "x", "ackmode": "ack_requeue_false", "encoding": "auto"}),
    ("POST", "/queues/%2F/none/get", {"count": 1, "ackmode": "ack_requeue_false", "encoding": "auto"}),
    ("DELETE", "/queues/%2F/q1?if-empty=true"),
    ("DELETE", "/queues/%2F/q1/contents"),
    ("DELETE", "/queues/%2F/none/contents"),
    ("POST", "/queues/%2F/q1/actions", {"action": "foo"}),
    ("PUT", "/queues/%2F/full", {"arguments": {"x-max-length": 0, "x-overflow": "reject-publish"}}),
    ("POST", "/exchanges/%2F/amq.default/publish", {"routing_key": "full", **STRING}),
    ("DELETE", "/queues/%2F/full"),
    ("DELETE", "/queues/%2F/q1?if-empty=true"),
    ("DELETE", "/queues/%2F/q1"),
    ("DELETE", "/queues/%2F/q2"),
    ("DELETE", "/exchanges/%2F/x1"),
    ("DELETE", "/exchanges/%2F/x2"),
    ("DELETE", "/exchanges/%2F/x3"),
)

NODE = steps(
    ("GET", "/overview"),
    ("GET", "/overview?columns=object_totals"),
    ("GET", "/nodes"),
    ("GET", "/whoami"),
    ("GET", "/auth"),
    ("GET", "/nothing"),
    ("GET", "/connections"),
    ("GET", "/connections/none"),
    ("GET", "/channels"),
    ("GET", "/channels/none"),
    ("GET", "/consumers"),
    ("GET", "/consumers/%2F"),
    ("GET", "/vhosts/%2F/connections"),
    ("GET", "/definitions"),
    ("GET", "/definitions/%2F"),
    ("POST", "/definitions", []),
    ("POST", "/definitions/nov", {}),
    ("POST", "/definitions", {"vhosts": []}),
    ("DELETE", "/overview"),
    ("POST", "/queues/%2F/q1", {}),
    ("POST", "/rebalance/queues", {}),
    ("DELETE", "/reset"),
    ("GET", "/health/checks/alarms"),
    ("GET", "/health/checks/local-alarms"),
    ("GET", "/health/checks/virtual-hosts"),
    ("GET", "/health/checks/port-listener/1", None, "it has other ports"),
    ("GET", "/health/checks/port-listener/x"),
    ("GET", "/health/checks/protocol-listener/amqp"),
    ("GET", "/health/checks/protocol-listener/mqtt", None, "it has other protocols"),
    ("GET", "/health/checks/certificate-expiration/1/days"),
    ("GET", "/health/checks/certificate-expiration/x/days"),
    ("GET", "/health/checks/certificate-expiration/1/foo"),
    ("GET", "/health/checks/node-is-mirror-sync-critical"),
    ("GET", "/health/checks/node-is-quorum-critical"),
    ("GET", "/aliveness-test/%2F"),
    ("DELETE", "/queues/%2F/aliveness-test"),
    ("GET", "/healthchecks/node"),
)

# while a client is there, and after RabbitMQ has had time to gather its statistics
LIVE = steps(
    ("GET", "/connections"),
    ("GET", "/channels"),
    ("GET", "/consumers"),
    ("GET", "/queues/%2F/live-queue"),
    ("GET", "/queues"),
    ("GET", "/exchanges/%2F/live-exchange"),
    ("GET", "/vhosts"),
    ("GET", "/vhosts/%2F"),
    ("GET", "/overview"),
    ("GET", "/nodes"),
    ("GET", "/vhosts/%2F/connections"),
    ("GET", "/vhosts/%2F/channels"),
    ("GET", "/bindings"),
    ("GET", "/bindings/%2F/e/live-exchange/q/live-queue/a.%23"),
    ("GET", "/queues/%2F/live-queue/bindings"),
    ("DELETE", "/queues/%2F/live-queue?if-unused=true"),
    ("DELETE", "/queues/%2F/live-exclusive"),
)

PARTS = {"users": USERS, "vhosts": VHOSTS, "policies": _policies(), "queues": QUEUES, "node": NODE, "live": LIVE}


@contextmanager
def visitor(port: int) -> Iterator[None]:
    """A client with a bit of everything, for the live part."""
    connection = pika.BlockingConnection(
        pika.ConnectionParameters(port=port, client_properties={"connection_name": "visitor"})
    )
    channel = connection.channel()
    channel.confirm_delivery()
    channel.basic_qos(prefetch_count=5)
    channel.queue_declare("live-queue", durable=True, arguments={"x-max-length": 100})
    channel.exchange_declare("live-exchange", "topic", durable=True, arguments={"alternate-exchange": "amq.fanout"})
    channel.queue_bind("live-queue", "live-exchange", "a.#")
    channel.exchange_bind("amq.fanout", "live-exchange", "e2e")
    channel.basic_publish("live-exchange", "a.b", b"one", pika.BasicProperties(delivery_mode=2))
    channel.basic_consume("live-queue", lambda *_: None)
    channel.queue_declare("live-exclusive", exclusive=True)
    try:
        yield
    finally:
        channel.queue_delete("live-queue")
        channel.exchange_delete("live-exchange")
        connection.close()


def shape(value: Any) -> Any:
    """Keys and kinds of values: what programs that read the API depend on."""
    if isinstance(value, dict):
        return {
            "NODE" if "@" in key else key: shape(one)
            for key, one in sorted(value.items())
            if key not in ERLANG and not key.startswith(NODE_COUNTERS)
        }
    if isinstance(value, list):
        shapes: list[Any] = []
        for one in value:
            if shape(one) not in shapes:
                shapes.append(shape(one))
        return sorted(shapes, key=json.dumps)
    if isinstance(value, bool) or value is None:
        return "bool" if isinstance(value, bool) else "null"
    return "number" if isinstance(value, (int, float)) else "text"


NOT_TOLD = {
    "messages_ram",
    "messages_ready_ram",
    "messages_unacknowledged_ram",
    "messages_paged_out",
    "messages_persistent",
    "message_bytes_ram",
    "message_bytes_paged_out",
    "message_bytes_persistent",
    "consumer_utilisation",
    "consumer_capacity",
    "memory",
    "recv_cnt",
    "send_cnt",
}
"""What nobody counts is left out rather than made up (`docs/http-api.md`)."""


def covers(ours: Any, theirs: Any) -> bool:
    """Whether everything in one shape is in the other, with the same kinds of values."""
    if isinstance(theirs, dict):
        return isinstance(ours, dict) and all(
            key in NOT_TOLD or (key in ours and covers(ours[key], one)) for key, one in theirs.items()
        )
    if isinstance(theirs, list):
        return isinstance(ours, list) and all(any(covers(one, wanted) for one in ours) for wanted in theirs)
    return bool(ours == theirs)


def agrees(ours: dict[str, Any], theirs: dict[str, Any]) -> bool:
    if ours["status"] != theirs["status"] or ("body" in ours) != ("body" in theirs):
        return False
    if ours["status"] >= 400:
        return bool(ours.get("body") == theirs.get("body"))
    return covers(ours.get("body"), theirs.get("body"))


def answer(response: httpx.Response) -> dict[str, Any]:
    """What is compared of an answer."""
    found: dict[str, Any] = {"status": response.status_code}
    if response.content:
        body = response.json()
        found["body"] = body if response.status_code >= 400 else shape(body)
    return found


def talk(base: str, part: list[Step]) -> list[dict[str, Any]]:
    with web.Client() as client:
        return [answer(send(client, base, step.method, step.path, step.body, ADMIN)) for step in part]


def key(name: str, number: int, step: Step) -> str:
    return f"{name} {number} {step.name}"


def record(base: str, port: int) -> None:
    lines = []
    for name, part in PARTS.items():
        if name == "live":
            with visitor(port):
                time.sleep(7)  # RabbitMQ gathers statistics every 5 s
                answers = talk(base, part)
        else:
            answers = talk(base, part)
        for number, (step, found) in enumerate(zip(part, answers, strict=True)):
            lines.append(f"  {json.dumps(key(name, number, step))}: {json.dumps(found)}")
    ANSWERS.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    record(sys.argv[1], int(sys.argv[2]))
