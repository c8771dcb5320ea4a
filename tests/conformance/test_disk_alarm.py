"""While the disk is too full, publishers wait and consumers do not: the same words and the same order as RabbitMQ."""

from __future__ import annotations

import time
from typing import Any

import pika
import pytest

from tests.support.brokers import BrokerUnavailable, RunningBroker, start_rabbitmq, start_warren

FULL, ROOMY = "9000GB", "1MB"
PATIENCE = 120.0


def set_limit(broker: RunningBroker, limit: str) -> None:
    """And wait until the broker has looked at its disk again."""
    nodes: Any = broker.http("GET", "/api/nodes")[1]
    if broker.is_warren:
        assert broker.http("PUT", f"/api/nodes/{nodes[0]['name']}/limits", {"disk_free_limit": limit})[0] == 204
    else:
        broker.ctl("set_disk_free_limit", limit)
    until = time.monotonic() + PATIENCE
    while nodes[0].get("disk_free_alarm") is not (limit == FULL):  # a fresh RabbitMQ does not say
        assert time.monotonic() < until, "the alarm did not change"
        time.sleep(0.1)
        nodes = broker.http("GET", "/api/nodes")[1]


def story(broker: RunningBroker) -> list[object]:
    """What a publisher and a consumer see of an alarm, from before it to behind its end."""
    told: list[object] = []
    consuming = pika.BlockingConnection(pika.URLParameters(broker.url))
    channel = consuming.channel()
    channel.queue_declare("q")
    channel.basic_publish("", "q", b"before")
    set_limit(broker, FULL)
    channel.basic_consume("q", lambda _c, _m, _p, body: told.append(body), auto_ack=True)
    wait(consuming, told, 1)
    publishing = pika.BlockingConnection(pika.URLParameters(broker.url))
    publishing.add_on_connection_blocked_callback(lambda _c, frame: told.append(("blocked", frame.method.reason)))
    publishing.add_on_connection_unblocked_callback(lambda _c, _frame: told.append("unblocked"))
    publishing.channel().basic_publish("", "q", b"first")
    wait(publishing, told, 2)
    request = {"properties": {}, "routing_key": "q", "payload": "http", "payload_encoding": "string"}
    told.append(broker.http("POST", "/api/exchanges/%2F/amq.default/publish", request))
    wait(consuming, told, 4)  # HTTP's message, and not the one that was published before it
    status, said = broker.http("GET", "/api/health/checks/local-alarms")
    assert isinstance(said, dict)
    told.append((status, said["reason"], [alarm["resource"] for alarm in said["alarms"]]))
    set_limit(broker, ROOMY)
    wait(publishing, told, 6)
    wait(consuming, told, 7)
    publishing.close()
    consuming.close()
    return told


def wait(connection: Any, told: list[object], count: int) -> None:
    until = time.monotonic() + PATIENCE
    while len(told) < count:
        assert time.monotonic() < until, told
        connection.process_data_events(0.1)


STORY = [
    b"before",
    ("blocked", "low on disk"),
    (200, {"routed": True}),
    b"http",
    (503, "There are alarms in effect on the node", ["disk space"]),
    "unblocked",
    b"first",
]


def test_publishers_wait_and_consumers_and_http_do_not_while_the_disk_is_too_full() -> None:
    with start_warren() as warren:
        assert story(warren) == STORY


def test_rabbitmq_does_the_same_while_its_disk_is_too_full() -> None:
    try:
        with start_rabbitmq(("rabbitmq_management",)) as oracle:
            assert story(oracle) == STORY
    except BrokerUnavailable as missing:
        pytest.skip(str(missing))
