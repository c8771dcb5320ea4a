"""The firehose's copies are RabbitMQ's to the byte, but for the names of node and connection."""

from __future__ import annotations

import re

from tests.support.brokers import RunningBroker, shared_rabbitmq, shared_warren
from tests.support.rawclient import RawClient

PROPERTIES: list[dict[str, object]] = [
    {
        "content_type": "t",
        "content_encoding": "e",
        "headers": {"a": 1, "b": None},
        "delivery_mode": 2,
        "priority": 3,
        "correlation_id": "c",
        "reply_to": "r",
        "expiration": "60000",
        "message_id": "m",
        "timestamp": 2**40 + 17,
        "type": "ty",
        "user_id": "guest",
        "app_id": "ap",
        "cluster_id": "cl",
    },
    {},
    {"timestamp": 2**31},
    {"headers": {"CC": ["f.other"]}},
]


def copies(broker: RunningBroker) -> list[tuple[str, bytes]]:
    """What comes of a few publishes and deliveries: routing keys and header frames, in order for each key."""
    found = []
    with RawClient(broker.port).handshake().open(1) as client:
        client.call(1, "queue.declare", queue="f.trace", exclusive=True)
        client.call(1, "queue.declare", queue="f.q", exclusive=True)
        client.call(1, "queue.bind", queue="f.trace", exchange="amq.rabbitmq.trace", routing_key="*.")
        client.call(1, "queue.bind", queue="f.trace", exchange="amq.rabbitmq.trace", routing_key="*.f.q")
        assert broker.http("PUT", "/api/vhosts/%2F", {"tracing": True})[0] == 204
        try:
            for properties in PROPERTIES:
                client.publish(1, "", "f.q", b"x", **properties)
            client.call(1, "basic.consume", queue="f.q", no_ack=True)
            for _ in PROPERTIES:
                client.wait_message()
        finally:
            assert broker.http("PUT", "/api/vhosts/%2F", {"tracing": False})[0] == 204
        client.call(1, "basic.consume", queue="f.trace", no_ack=True)
        for _ in range(2 * len(PROPERTIES)):
            first, head, _ = client.wait_message()
            level = re.sub(rb"(\x04node|\x0aconnection)S....[^\x00-\x1f]+", rb"\1", head, flags=re.DOTALL)
            found.append((first.text("routing_key"), level[18:]))
        client.finish()
    return sorted(found, key=lambda each: each[0])


def test_what_is_traced_is_told_as_rabbitmq_tells_it() -> None:
    ours, theirs = copies(shared_warren()), copies(shared_rabbitmq())
    assert [key for key, _ in theirs] == ["deliver.f.q"] * len(PROPERTIES) + ["publish."] * len(PROPERTIES)
    assert ours == theirs
