"""The mandatory guide, as Warren keeps it: tracked by sequence number and queues, forgotten at the first acceptance.

RabbitMQ has not done this since 3.8; the disk is held so that "routed" and "accepted" are two moments.
"""

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


def publish_to_two(broker: Broker, disk: FaultyDisk, confirm: bool = True) -> RawClient:
    """A mandatory persistent message routed to the durable queues a and b, which neither has accepted yet."""
    client = RawClient(broker.port).handshake().open(1).open(2)
    for queue in ("a", "b"):
        client.call(1, "queue.declare", queue=queue, durable=True)
        client.call(1, "queue.bind", queue=queue, exchange="amq.fanout")
    if confirm:
        client.call(1, "confirm.select")
    client.frames.clear()
    disk.hold()
    client.publish(1, "amq.fanout", "k", b"both", mandatory=True, delivery_mode=2)
    assert disk.wait_until_held()
    return client


def names(client: RawClient) -> list[str]:
    return [frame.name for frame in client.frames if frame.channel == 1]


def tracked(broker: Broker) -> int:
    """How many mandatory messages the broker's channels are waiting for."""

    def count() -> int:
        return sum(
            len(channel.publishing.mandatory)
            for connection in broker.server.broker.connections
            for channel in connection.channels.values()
        )

    return broker.call(count)


def test_a_routed_message_is_tracked_until_a_queue_has_accepted_it(broker: Broker, disk: FaultyDisk) -> None:
    with publish_to_two(broker, disk) as client:
        assert tracked(broker) == 1
        disk.release()
        client.wait("basic.ack", "basic.nack")
        assert names(client) == ["basic.ack"]
        assert tracked(broker) == 0


def test_both_queues_fail_one_return_then_one_nack(broker: Broker, disk: FaultyDisk) -> None:
    with publish_to_two(broker, disk) as client:
        broker.fail_queue("a")
        client.quiet(0.1)
        assert names(client) == [], "the other queue may still accept it"
        broker.fail_queue("b")
        client.wait("basic.ack", "basic.nack")
        disk.release()
        client.quiet(0.2)
        assert names(client) == ["basic.return", "header", "body", "basic.nack"]
        assert client.frames[0].values == {
            "reply_code": 312,
            "reply_text": "NO_ROUTE",
            "exchange": "amq.fanout",
            "routing_key": "k",
        }
        assert tracked(broker) == 0


def test_one_queue_accepts_and_one_fails_no_return_but_a_nack(broker: Broker, disk: FaultyDisk) -> None:
    with publish_to_two(broker, disk) as client:
        broker.fail_queue("b")
        disk.release()
        client.wait("basic.ack", "basic.nack")
        client.quiet(0.2)
        assert names(client) == ["basic.nack"]


def test_all_queues_deleted_normally_one_return_then_an_ack(broker: Broker, disk: FaultyDisk) -> None:
    with publish_to_two(broker, disk) as client:
        for queue in ("a", "b"):
            client.send_method(2, "queue.delete", queue=queue)
        client.wait("basic.ack", "basic.nack")
        disk.release()
        client.quiet(0.2)
        assert names(client) == ["basic.return", "header", "body", "basic.ack"]


def test_without_confirm_mode_the_return_comes_alone(broker: Broker, disk: FaultyDisk) -> None:
    with publish_to_two(broker, disk, confirm=False) as client:
        broker.fail_queue("a")
        broker.fail_queue("b")
        client.wait_message("basic.return")
        disk.release()
        client.quiet(0.2)
        assert names(client) == ["basic.return", "header", "body"]


def test_a_message_that_is_not_mandatory_is_never_returned_when_its_queue_fails(
    broker: Broker, disk: FaultyDisk
) -> None:
    with RawClient(broker.port).handshake().open(1) as client:
        client.call(1, "queue.declare", queue="a", durable=True)
        client.call(1, "confirm.select")
        client.frames.clear()
        disk.hold()
        client.publish(1, "", "a", b"x", delivery_mode=2)
        assert disk.wait_until_held()
        broker.fail_queue("a")
        client.wait("basic.ack", "basic.nack")
        disk.release()
        client.quiet(0.2)
        assert names(client) == ["basic.nack"]
