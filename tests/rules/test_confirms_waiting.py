"""Confirms of publishes that wait for the disk: each for its own batch and its own queues."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from warrenmq.broker.publish.confirms import Confirms
from warrenmq.broker.publish.publishing import Publishing
from warrenmq.log.batch import OpenBatch
from warrenmq.testing.core import Core
from warrenmq.testing.core_client import CoreClient
from warrenmq.testing.faults import FaultyDisk

pytestmark = pytest.mark.pure


@pytest.fixture
def disk() -> FaultyDisk:
    return FaultyDisk()


@pytest.fixture
def core(tmp_path: Path, disk: FaultyDisk) -> Core:
    """Its commits end when the test says so."""
    return Core(tmp_path, files=disk, held=True)


@pytest.fixture
def client(core: Core) -> CoreClient:
    """It confirms, and has used up a few numbers before: tags are not the numbers that the broker counts."""
    client = core.client(persistent=True)
    for queue in ("a", "b"):
        client.declare(queue)
        client.send("queue.bind", queue=queue, exchange="amq.fanout")
        core.commit()
    client.declare("memory", durable=False)
    client.declare("full", arguments={"x-max-length": 0, "x-overflow": "reject-publish"})
    for _ in range(3):
        client.publish("", "memory", b"before", mandatory=True)
    client.send("confirm.select")
    client.take()
    return client


def publishing(client: CoreClient) -> Publishing:
    return client.connection.channels[1].publishing


def publish(client: CoreClient, *queues: str) -> Callable[[], None]:
    """As part of another's turn."""
    return lambda: client.connection.feed(b"".join(client.published("", queue, b"x") for queue in queues))


def delete(core: Core, queue: str) -> None:
    other = core.client()
    other.send("queue.delete", queue=queue)


# -- by batch ------------------------------------------------------------------------------------------------------


def test_a_publish_is_not_confirmed_with_the_batch_before_its_own(core: Core, client: CoreClient) -> None:
    client.publish("", "a", b"1")
    client.publish("", "a", b"2")  # the first is on its way already
    assert core.commit_one()
    assert client.story() == ["ack 1"]
    assert core.commit_one()
    assert client.story() == ["ack 2"]


def test_a_batch_without_a_publish_of_this_channel_confirms_nothing_to_it(core: Core, client: CoreClient) -> None:
    other = core.client(persistent=True)
    other.open(1, "confirm.select")
    other.publish("", "b", b"1")
    client.publish("", "a", b"2")
    assert core.commit_one()
    assert client.story() == [] and other.story() == ["ack 1"]
    core.commit()
    assert client.story() == ["ack 1"]


def test_what_a_batch_confirms_beside_a_later_message_is_one_frame(core: Core, client: CoreClient) -> None:
    client.publish("", "a", b"1")
    core.commit_one(publish(client, "memory"))
    assert client.story() == ["ack 2+"]


def test_three_in_one_turn_of_which_one_is_confirmed_at_once(core: Core, client: CoreClient) -> None:
    client.core.broker.begin_turn()
    publish(client, "a", "memory", "a")()
    core.end_turn()
    assert client.story() == ["ack 2"]
    core.commit()
    assert client.story() == ["ack 3+"]


def test_acks_around_a_nack_and_around_what_waits(core: Core, client: CoreClient) -> None:
    client.feed(b"".join(client.published("", queue, b"x") for queue in ("memory", "full", "a", "memory", "full")))
    assert client.story() == ["ack 1+", "ack 4", "nack 2", "nack 5"]
    core.commit()
    assert client.story() == ["ack 3"]


def test_the_frames_of_ack_and_nack_are_as_rabbitmq_writes_them(client: CoreClient) -> None:
    """A nack has requeue set, an ack has no such bit."""
    client.publish("", "memory", b"x")
    client.publish("", "full", b"x")
    ack, nack = client.take()
    assert (ack.name, ack["multiple"]) == ("basic.ack", False)
    assert (nack.name, nack["multiple"], nack["requeue"]) == ("basic.nack", True, True)
    assert b"\x00\x3c\x00\x50\x00\x00\x00\x00\x00\x00\x00\x03\x00\xce" in raw(client, "memory")


def raw(client: CoreClient, queue: str) -> bytes:
    """The octets that answer a publish."""
    client.core.broker.begin_turn()
    publish(client, queue)()
    client.core.end_turn()
    return bytes(client.sink.data)


def test_however_many_wait_for_a_batch_they_are_one_range(core: Core, client: CoreClient) -> None:
    for count in (200, 300):
        client.feed(b"".join(client.published("", "a", b"x") for _ in range(count)))
    assert len(publishing(client).confirms.waiting) == 2  # the second batch began when the first was on its way
    assert publishing(client).unanswered() == 500
    core.commit()
    assert client.story() == ["ack 200+", "ack 500+"]


def test_how_long_publishes_waited_for_their_confirms_is_counted_for_each_of_them(
    core: Core, client: CoreClient
) -> None:
    times = core.broker.services.tally.confirm_times
    other = core.client(persistent=True)
    other.publish("", "a", b"x", mandatory=True)  # waits too, but for no confirm
    core.commit()
    client.publish("", "memory", b"x")  # waits for nothing
    assert (sum(times.counts), times.total) == (0, 0)
    client.feed(b"".join(client.published("", "a", b"x") for _ in range(3)))
    core.advance(7)
    core.commit()
    assert client.story() == ["ack 1", "ack 4+"]
    assert (sum(times.counts), times.total) == (3, 3 * 7_000)


# -- by queue ------------------------------------------------------------------------------------------------------


def test_a_deleted_queue_confirms_its_own_messages_alone(core: Core, client: CoreClient) -> None:
    client.feed(client.published("", "a", b"1") + client.published("", "b", b"2") + client.published("", "a", b"3"))
    delete(core, "b")
    assert client.story() == ["ack 2"]
    core.commit()
    assert client.story() == ["ack 3+"]


def test_a_message_that_still_has_a_queue_waits_for_its_batch_and_no_longer(core: Core, client: CoreClient) -> None:
    client.publish("amq.fanout", "", b"1")
    client.publish("", "a", b"2")
    delete(core, "b")
    assert client.story() == []
    assert core.commit_one()
    assert client.story() == ["ack 1"]
    core.commit()
    assert client.story() == ["ack 2"]


# -- a disk that fails ---------------------------------------------------------------------------------------------


def test_nacks_of_a_failed_batch_come_in_order_with_those_of_its_turn(
    core: Core, client: CoreClient, disk: FaultyDisk
) -> None:
    client.feed(client.published("", "a", b"1") + client.published("", "a", b"2"))
    disk.fail()
    assert core.commit_one()  # it is tried once more, in another file
    assert client.story() == []
    assert core.commit_one(publish(client, "full"))
    assert client.story() == ["nack 3+"]


# -- a channel that ends -------------------------------------------------------------------------------------------


def test_what_was_not_told_when_the_connection_was_lost_is_counted_as_abandoned(core: Core, client: CoreClient) -> None:
    tally = core.broker.services.tally
    client.publish("", "a", b"waits")
    core.broker.begin_turn()
    publish(client, "memory", "memory", "full", "memory", "full")()
    client.connection.lost("cut")
    core.end_turn()
    assert (tally.abandoned, tally.acked, tally.nacked, tally.numbered) == (6, 0, 0, 6)
    core.commit()


def test_a_channel_that_is_over_has_told_what_it_told(core: Core, client: CoreClient) -> None:
    tally = core.broker.services.tally
    client.feed(b"".join(client.published("", queue, b"x") for queue in ("memory", "memory", "full", "a")))
    client.send("channel.close", reply_code=200)
    assert (tally.acked, tally.nacked, tally.abandoned, tally.numbered) == (2, 1, 1, 4)
    core.commit()
    assert "basic.ack" not in client.names()[1:]


def test_mandatory_publishes_before_confirm_select_are_not_confirmed_and_not_owed(core: Core) -> None:
    client = core.client(persistent=True)
    client.declare("a")
    client.feed(b"".join(client.published("", "a", b"x", mandatory=True) for _ in range(3)))
    client.send("confirm.select")
    client.feed(client.published("", "a", b"x"))
    assert publishing(client).unanswered() == 1
    client.take()
    core.commit()
    assert client.story() == ["ack 1"]


def test_nothing_is_owed_at_first() -> None:
    confirms = Confirms(OpenBatch(0).confirmed)
    assert not confirms.owed() and confirms.unanswered() == 0
