"""The confirms notes' third statement, for real: persistent messages, a disk that is held, and the log's word."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.rawclient import RawClient
from warrenmq.testing import Broker, FaultyDisk


@pytest.fixture
def disk() -> Iterator[FaultyDisk]:
    made = FaultyDisk()
    yield made
    made.release()


@pytest.fixture
def broker(disk: FaultyDisk) -> Iterator[Broker]:
    with Broker(disk=disk) as started:
        yield started
        disk.release()


def publisher(broker: Broker) -> RawClient:
    client = RawClient(broker.port).handshake().open(1)
    client.call(1, "queue.declare", queue="durable", durable=True)
    client.call(1, "queue.declare", queue="transient")
    client.call(1, "confirm.select")
    client.frames.clear()
    return client


def test_a_persistent_message_on_a_durable_queue_is_confirmed_when_it_is_on_the_disk(
    broker: Broker, disk: FaultyDisk
) -> None:
    with publisher(broker) as client:
        disk.hold()
        client.publish(1, "", "durable", b"x", delivery_mode=2)
        assert disk.wait_until_held()
        client.quiet(0.2)
        assert client.frames == [], "confirmed before the sync"
        disk.release()
        assert client.wait("basic.ack", "basic.nack").name == "basic.ack"


@pytest.mark.parametrize(("queue", "mode"), [("durable", 1), ("transient", 2), ("transient", 1), ("nowhere", 2)])
def test_what_need_not_survive_is_confirmed_at_once_however_busy_the_disk(
    broker: Broker, disk: FaultyDisk, queue: str, mode: int
) -> None:
    with publisher(broker) as client:
        disk.hold()
        client.publish(1, "", queue, b"x", delivery_mode=mode)
        assert client.wait("basic.ack", "basic.nack").name == "basic.ack"


def test_a_consumer_that_acks_before_the_sync_does_not_bring_the_confirm_forward(
    broker: Broker, disk: FaultyDisk
) -> None:
    """RabbitMQ confirms early here; Warren always waits for the sync."""
    with publisher(broker) as client, RawClient(broker.port).handshake().open(1) as consumer:
        consumer.call(1, "basic.consume", queue="durable", consumer_tag="t")
        disk.hold()
        client.publish(1, "", "durable", b"x", delivery_mode=2)
        consumer.wait_message("basic.deliver")
        consumer.send_method(1, "basic.ack", delivery_tag=1)
        consumer.call(1, "basic.qos")
        client.quiet(0.2)
        assert client.frames == []
        disk.release()
        assert client.wait("basic.ack", "basic.nack").name == "basic.ack"


def test_a_message_that_the_disk_refuses_for_good_is_nacked_and_never_acked(broker: Broker, disk: FaultyDisk) -> None:
    with publisher(broker) as client:
        disk.fail()
        client.publish(1, "", "durable", b"x", delivery_mode=2)
        assert client.wait("basic.ack", "basic.nack").name == "basic.nack"
        disk.repair()
