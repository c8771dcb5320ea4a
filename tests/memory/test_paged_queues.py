"""A backlog that is not in memory behaves like one that is: order, flags, priorities, TTL, limits, leases, restarts."""

from __future__ import annotations

import errno
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from warrenmq.log.runner import Runner
from warrenmq.testing.core import Core
from warrenmq.testing.core_client import CoreClient, Got
from warrenmq.testing.faults import FaultyDisk

COUNT = 700
MANY = 1 << 40  # as if other queues had filled the memory: the window is then 256 messages


class Paged:
    """A queue of COUNT messages, most of them paged out."""

    def __init__(
        self,
        folder: Path,
        arguments: Mapping[str, object] | None = None,
        durable: bool = True,
        count: int = COUNT,
        disk: FaultyDisk | None = None,
        **properties: object,
    ) -> None:
        self.folder = folder
        self.core = Core(folder, disk)
        self.core.broker.services.windowed = MANY
        self.client = self.core.client(persistent=True)
        self.client.open()
        self.client.declare("q", durable, arguments)
        self.publish(range(count), **properties)

    def publish(self, numbers: range, **properties: Any) -> None:
        self.client.feed(b"".join(self.client.published("", "q", b"%d" % n, **properties) for n in numbers))

    def assert_paged(self) -> None:
        assert sum(fifo.paged for fifo in self.core.classic("q")._order.fifos) > 100

    def again(self, clean: bool = False) -> None:
        if clean:
            self.core.stop()
        else:
            self.core.log.flush()
            self.core.crash()
        self.core = Core(self.folder)
        self.client = self.core.client(persistent=True)
        self.client.open()


def deliveries(client: CoreClient, queue: str = "q", channel: int = 1) -> list[Got]:
    client.send("basic.consume", channel, queue=queue, consumer_tag="reader")
    return [told for told in client.take() if told.name == "basic.deliver"]


def give_back(world: Paged) -> None:
    """All that the reader holds; very many go back a slice a turn."""
    world.client.send("basic.cancel", consumer_tag="reader")
    world.client.send("basic.nack", delivery_tag=0, multiple=True, requeue=True)
    world.core.settle()
    world.client.take()


def bodies(told: list[Got]) -> list[int]:
    return [int(each.body) for each in told]


def flags(told: list[Got]) -> list[bool]:
    return [each.method.bit("redelivered") for each in told]


def test_content_and_order_are_those_of_the_publishes(tmp_path: Path) -> None:
    world = Paged(tmp_path, content_type="text/plain", message_id="same")
    world.assert_paged()
    told = deliveries(world.client)
    assert bodies(told) == list(range(COUNT)) and not any(flags(told))
    assert {each.method.str("routing_key") for each in told} == {"q"}


def test_messages_of_mixed_durability_keep_their_order(tmp_path: Path) -> None:
    world = Paged(tmp_path, count=400)
    for number in range(400, 600):
        world.publish(range(number, number + 1), delivery_mode=1 + number % 2)
    assert bodies(deliveries(world.client)) == list(range(600))


@pytest.mark.parametrize("taken", [3, 300, COUNT])
def test_requeued_messages_come_first_flagged_and_in_order(tmp_path: Path, taken: int) -> None:
    world = Paged(tmp_path)
    world.client.send("basic.qos", prefetch_count=taken)
    told = deliveries(world.client)
    assert bodies(told) == list(range(taken))
    give_back(world)
    other = world.core.client(persistent=True)
    other.open()
    told = deliveries(other)
    assert bodies(told) == list(range(COUNT))
    assert flags(told) == [number < taken for number in range(COUNT)]


def test_single_messages_from_the_middle_go_back_to_their_place(tmp_path: Path) -> None:
    world = Paged(tmp_path)
    world.client.send("basic.qos", prefetch_count=500)
    deliveries(world.client)
    world.client.send("basic.cancel", consumer_tag="reader")
    for tag in (450, 10, 300, 11):
        world.client.send("basic.nack", delivery_tag=tag, requeue=True)
    world.client.take()
    other = world.core.client(persistent=True)
    other.open()
    back = {9, 10, 299, 449}
    assert bodies(deliveries(other)) == sorted(back) + list(range(500, COUNT))


def priority_of(number: int) -> int:
    return (number * 7) % 4


def test_priorities_hold_on_what_is_paged_out(tmp_path: Path) -> None:
    for restart in (False, True):
        folder = tmp_path / str(restart)
        folder.mkdir()
        world = Paged(folder, {"x-max-priority": 3}, count=0)
        count = 4 * COUNT
        for number in range(count):
            world.publish(range(number, number + 1), priority=priority_of(number))
        world.assert_paged()
        if restart:
            world.again()
        expected = sorted(range(count), key=lambda n: (-priority_of(n), n))
        assert bodies(deliveries(world.client)) == expected


@pytest.mark.parametrize("restart", [False, True])
def test_a_requeued_message_keeps_its_priority_after_it_was_paged_out(tmp_path: Path, restart: bool) -> None:
    world = Paged(tmp_path, {"x-max-priority": 3}, count=500, priority=3)
    world.publish(range(500, 510), priority=1)
    if restart:
        world.again()
    world.client.send("basic.qos", prefetch_count=400)
    assert bodies(deliveries(world.client)) == list(range(400))
    give_back(world)
    other = world.core.client(persistent=True)
    other.open()
    assert bodies(deliveries(other)) == list(range(510))


def test_a_dead_letter_keeps_its_priority_after_it_was_paged_out(tmp_path: Path) -> None:
    world = Paged(tmp_path, {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}, count=0)
    world.client.declare("dead", arguments={"x-max-priority": 3})
    for number in range(600):
        world.publish(range(number, number + 1), priority=number % 4)
    deliveries(world.client)
    world.client.send("basic.nack", delivery_tag=0, multiple=True, requeue=False)
    world.core.settle()
    other = world.core.client(persistent=True)
    other.open()
    assert bodies(deliveries(other, "dead")) == sorted(range(600), key=lambda n: (-(n % 4), n))


@pytest.mark.parametrize("restart", [False, True])
def test_paged_messages_expire_from_the_head(tmp_path: Path, restart: bool) -> None:
    arguments = {"x-message-ttl": 1000, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    world = Paged(tmp_path, arguments)
    world.client.declare("dead")
    world.core.advance(500)
    world.publish(range(COUNT, COUNT + 10))
    if restart:
        clock = world.core.clock
        world.core.log.flush()
        world.core.crash()
        world.core = Core(world.folder, clock=clock)
        world.client = world.core.client(persistent=True)
        world.client.open()
    world.core.advance(499)
    assert world.core.ready("q") == COUNT + 10
    world.core.advance(1)
    assert world.core.ready("q") == 10 and world.core.ready("dead") == COUNT
    world.core.advance(500)
    assert world.core.ready("q") == 0
    assert bodies(deliveries(world.client, "dead")) == list(range(COUNT + 10))


def test_a_message_that_expires_behind_a_head_that_does_not_waits_for_it(tmp_path: Path) -> None:
    world = Paged(tmp_path)
    world.publish(range(COUNT, COUNT + 5), expiration="100")
    world.core.advance(1000)
    assert world.core.ready("q") == COUNT + 5
    assert bodies(deliveries(world.client)) == list(range(COUNT))
    assert world.core.ready("q") == 0


@pytest.mark.parametrize("restart", [False, True])
def test_purge_takes_everything_that_waits_and_leaves_what_is_with_consumers(tmp_path: Path, restart: bool) -> None:
    world = Paged(tmp_path)
    world.client.send("basic.qos", prefetch_count=300)
    deliveries(world.client)
    other = world.core.client(persistent=True)
    other.open()
    other.send("queue.purge", queue="q")
    (told,) = other.take()
    assert told.method.int("message_count") == COUNT - 300
    if restart:
        world.again()
        assert bodies(deliveries(world.client)) == list(range(300))
    else:
        world.client.send("basic.ack", delivery_tag=0, multiple=True)
        assert world.core.log.maintenance.live_bytes() == 0


@pytest.mark.parametrize("restart", [False, True])
def test_drop_head_drops_from_the_head_of_a_paged_queue(tmp_path: Path, restart: bool) -> None:
    world = Paged(tmp_path, {"x-max-length": 500, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"})
    assert world.core.ready("q") == 500
    if restart:
        world.again()
    assert bodies(deliveries(world.client)) == list(range(COUNT - 500, COUNT))


def test_a_limit_set_by_policy_reaches_what_is_paged_out(tmp_path: Path) -> None:
    world = Paged(tmp_path)
    world.core.broker.begin_turn()
    world.core.queue("q").take_policy("short", None, {"max-length": 10})
    world.core.broker.end_turn()
    assert bodies(deliveries(world.client)) == list(range(COUNT - 10, COUNT))


@pytest.mark.parametrize("restart", [False, True])
def test_leases_of_paged_messages(tmp_path: Path, restart: bool) -> None:
    world = Paged(tmp_path)
    world.core.broker.begin_turn()
    lease = world.core.classic("q").leases.create(500, -1, 60_000, "guest", "key")
    world.core.broker.end_turn()
    assert lease.count() == 500 and world.core.ready("q") == COUNT - 500
    if restart:
        world.again()
    leases = world.core.classic("q").leases
    (lease,) = leases.all()
    assert lease.left == 500 and world.core.ready("q") == COUNT - 500
    world.core.broker.begin_turn()
    assert leases.ack(lease, 0, 99) == 100
    leases.requeue(lease, lease.open_slots(100, 499))
    leases.acted(lease)
    world.core.broker.end_turn()
    told = deliveries(world.client)
    assert bodies(told) == list(range(100, COUNT))
    assert all(flags(told)[:400])


@pytest.mark.parametrize("clean", [False, True])
def test_a_paged_queue_after_a_restart(tmp_path: Path, clean: bool) -> None:
    world = Paged(tmp_path)
    world.client.send("basic.qos", prefetch_count=300)
    deliveries(world.client)
    world.client.send("basic.ack", delivery_tag=100, multiple=True)
    world.again(clean)
    world.publish(range(COUNT, COUNT + 10))
    told = deliveries(world.client)
    assert bodies(told) == list(range(100, COUNT + 10))
    assert all(flags(told)[:300])
    if clean:
        assert not any(flags(told)[300:])


def test_a_consumer_that_holds_thousands_does_not_lose_their_content(tmp_path: Path) -> None:
    """Beyond the window an outstanding delivery is only an address; requeued or dead-lettered it is whole again."""
    world = Paged(tmp_path, {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}, count=9000)
    world.client.declare("dead")
    assert len(deliveries(world.client)) == 9000
    world.client.send("basic.nack", delivery_tag=9000, requeue=False)
    give_back(world)
    other = world.core.client(persistent=True)
    other.open()
    assert bodies(deliveries(other, "dead")) == [8999]
    other.send("basic.cancel", consumer_tag="reader")
    assert bodies(deliveries(other)) == list(range(8999))


# --- transient messages under pressure


def spilled(folder: Path, disk: FaultyDisk | None = None, **properties: object) -> Paged:
    world = Paged(folder, {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}, False, 0, disk)
    world.core.broker.services.pressure.memory_half_full = True
    properties.setdefault("delivery_mode", 1)
    world.publish(range(COUNT), **properties)
    world.assert_paged()
    return world


def test_a_transient_backlog_spills_under_pressure_and_comes_back_whole(tmp_path: Path) -> None:
    world = spilled(tmp_path)
    assert world.core.transient.disk_bytes() > 0
    told = deliveries(world.client)
    assert bodies(told) == list(range(COUNT))
    give_back(world)
    other = world.core.client(persistent=True)
    other.open()
    told = deliveries(other)
    assert bodies(told) == list(range(COUNT)) and all(flags(told))


def test_a_spilled_message_is_let_go_when_it_is_purged(tmp_path: Path) -> None:
    world = spilled(tmp_path)
    world.client.send("queue.purge", queue="q")
    assert all(spill.held == 0 for spill in world.core.transient.open_files.values())


def test_spilled_messages_are_gone_after_a_restart_and_so_are_their_files(tmp_path: Path) -> None:
    world = spilled(tmp_path)
    world.again()
    assert not [path.name for path in tmp_path.iterdir() if path.name.startswith("spill-")]


def test_a_persistent_message_that_was_spilled_is_still_persistent(tmp_path: Path) -> None:
    """In a transient queue it may be lost; dead-lettered to a durable one it is not."""
    world = spilled(tmp_path, delivery_mode=2)
    world.client.declare("dead")
    deliveries(world.client)
    world.client.send("basic.nack", delivery_tag=0, multiple=True, requeue=False)
    world.core.settle()
    world.again()
    assert bodies(deliveries(world.client, "dead")) == list(range(COUNT))


def test_a_disk_that_takes_no_spill_costs_memory_and_nothing_else(tmp_path: Path) -> None:
    disk = FaultyDisk()
    world = Paged(tmp_path, None, False, 0, disk)
    world.core.broker.services.pressure.memory_half_full = True
    world.publish(range(300), delivery_mode=1)
    disk.fail("write", errno.ENOSPC)
    filling = b"." * 4000
    world.client.feed(
        b"".join(world.client.published("", "q", b"%d" % n + filling, delivery_mode=1) for n in range(300, 600))
    )
    told = deliveries(world.client)
    assert [int(each.body.rstrip(b".")) for each in told] == list(range(600))


def test_a_runner_is_inline_here(tmp_path: Path) -> None:
    """The tests above count on commits being over when a call returns."""
    assert type(Core(tmp_path).committer) is Runner
