"""The topology that rabbitmqctl and `warren ctl` are asked about: the same on both brokers, made over HTTP and AMQP."""

from __future__ import annotations

import base64
import contextlib
from collections.abc import Callable, Iterator

import pika

Http = Callable[[str, str, object], object]  # method, path below /api, body

DEAD = {"x-dead-letter-exchange": "amq.direct", "x-max-length": 5}
OBJECTS: list[tuple[str, str, object]] = [
    ("PUT", "/vhosts/v1", {"description": "the first", "tags": "a,b"}),
    ("PUT", "/users/u1", {"password": "p1", "tags": "management,monitoring"}),
    ("PUT", "/users/u2", {"password": "p2", "tags": ""}),
    ("PUT", "/permissions/%2F/u1", {"configure": "^u1", "write": ".*", "read": ""}),
    ("PUT", "/permissions/v1/u1", {"configure": ".*", "write": ".*", "read": ".*"}),
    ("PUT", "/permissions/v1/guest", {"configure": ".*", "write": ".*", "read": ".*"}),
    ("PUT", "/topic-permissions/%2F/u1", {"exchange": "amq.topic", "write": "^a", "read": "^b"}),
    ("PUT", "/vhost-limits/v1/max-queues", {"value": 10}),
    ("PUT", "/user-limits/u1/max-channels", {"value": 3}),
    (
        "PUT",
        "/policies/%2F/p1",
        {"pattern": "^q", "definition": {"max-length": 9}, "priority": 1, "apply-to": "queues"},
    ),
    (
        "PUT",
        "/policies/%2F/p2",
        {"pattern": "^ex", "definition": {"alternate-exchange": "amq.fanout"}, "priority": 0, "apply-to": "exchanges"},
    ),
    (
        "PUT",
        "/operator-policies/%2F/o1",
        {"pattern": "^q", "definition": {"message-ttl": 600000}, "priority": 2, "apply-to": "queues"},
    ),
    ("PUT", "/global-parameters/g1", {"value": {"a": [1, "x"]}}),
    ("PUT", "/exchanges/%2F/ex.topic", {"type": "topic", "durable": True, "arguments": {"n": 1, "t": "x"}}),
    ("PUT", "/exchanges/%2F/ex.inner", {"type": "headers", "durable": False, "auto_delete": True, "internal": True}),
    ("PUT", "/queues/%2F/q.durable", {"durable": True, "arguments": DEAD}),
    ("PUT", "/queues/%2F/q.plain", {"durable": False}),
    ("PUT", "/queues/v1/in.v1", {"durable": True}),
    ("POST", "/bindings/%2F/e/ex.topic/q/q.durable", {"routing_key": "a.*", "arguments": {"k": "v"}}),
    ("POST", "/bindings/%2F/e/ex.topic/e/ex.inner", {"routing_key": "#"}),
]
NAMED = {"product": "ctl", "version": "1", "platform": "any", "information": "none", "connection_name": "named"}


@contextlib.contextmanager
def topology(http: Http, port: int) -> Iterator[None]:
    """Everything declared, two messages waiting, one taken, one connection with two channels and a consumer."""
    for method, path, body in OBJECTS:
        http(method, path, body)
    parameters = pika.ConnectionParameters(host="127.0.0.1", port=port, heartbeat=0, client_properties=NAMED)
    connection = pika.BlockingConnection(parameters)
    try:
        channel = connection.channel()
        channel.confirm_delivery()
        for number in range(3):
            properties = pika.BasicProperties(delivery_mode=2, timestamp=1700000000 + number)
            channel.basic_publish("", "q.durable", base64.b64encode(bytes(30)), properties)
        channel.basic_get("q.durable")
        channel.queue_declare("q.exclusive", exclusive=True)
        other = connection.channel()
        other.basic_qos(prefetch_count=7)
        other.basic_consume("q.exclusive", lambda *_: None, consumer_tag="the-tag", arguments={"x-priority": 4})
        yield
    finally:
        with contextlib.suppress(pika.exceptions.AMQPError):
            connection.close()
