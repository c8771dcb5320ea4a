"""Alarms and credit: who is not read, who is told, who goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.limits.gate import advance
from tests.support.rawclient import publish
from warrenmq.broker.connection.jobs import CONNECTIONS
from warrenmq.broker.durability.flow import AT_FIRST, CREDIT, LEAST, Allowance
from warrenmq.broker.services.alarms import Alarms
from warrenmq.testing.core import Core, HeldRunner
from warrenmq.testing.core_client import CoreClient
from warrenmq.wire.methods import method_frame

pytestmark = pytest.mark.pure

MIB = 1 << 20


class Machine:
    """Memory and disk as the test wants them."""

    def __init__(self) -> None:
        self.used = 0
        self.free = 1 << 40

    def memory_used(self) -> int:
        return self.used

    def disk_free(self) -> int:
        return self.free


@pytest.fixture
def machine() -> Machine:
    return Machine()


@pytest.fixture
def core(tmp_path: Path, machine: Machine) -> Core:
    core = Core(tmp_path)
    core.broker.services.pressure.alarms = Alarms(machine.memory_used, machine.disk_free, 1000)
    return core


def look(core: Core, *clients: CoreClient) -> None:
    core.broker.begin_turn()
    core.broker.update_alarms()
    core.broker.end_turn()
    for client in clients:
        client._collect()


@pytest.fixture
def client(core: Core) -> CoreClient:
    client = core.client()
    client.call("queue.declare", queue="q")
    client.take()
    return client


def test_a_publisher_is_blocked_when_it_publishes_and_told_once_per_episode(
    core: Core, machine: Machine, client: CoreClient
) -> None:
    machine.used = 500
    look(core, client)
    assert client.story() == [] and not client.sink.paused
    client.fill("q", "a")
    blocked = client.take()
    assert [got.name for got in blocked] == ["connection.blocked"] and blocked[0]["reason"] == "low on memory"
    assert client.sink.paused
    client.fill("q", "b")  # had come already
    machine.free = 0
    look(core, client)
    assert client.story() == []
    machine.used = 0
    look(core, client)
    assert client.story() == [] and client.sink.paused, "the disk is still low"
    machine.free = 1 << 40
    look(core, client)
    assert client.story() == ["connection.unblocked"] and not client.sink.paused
    machine.free = 0
    look(core, client)
    client.fill("q", "c")
    assert client.take()[0]["reason"] == "low on disk"


def test_of_very_many_that_were_blocked_a_few_a_turn_are_heard_again(core: Core, machine: Machine) -> None:
    clients = [core.client() for _ in range(3 * CONNECTIONS)]
    machine.used = 2000
    look(core)
    for one in clients:
        one.publish("", "nowhere", b"x")
        one.publish("", "nowhere", b"x")
    machine.used = 0

    def heard() -> int:
        return sum(not one.connection.reading.blocked for one in clients)

    assert heard() == 0
    look(core)
    counts = [heard()]
    while counts[-1] < len(clients):
        advance(core, 1)
        counts.append(heard())
        assert len(counts) < 50
    assert counts == [CONNECTIONS, 2 * CONNECTIONS, 3 * CONNECTIONS]


def test_both_reasons_are_named(core: Core, machine: Machine, client: CoreClient) -> None:
    machine.used, machine.free = 500, 0
    look(core, client)
    client.fill("q", "a")
    assert client.take()[0]["reason"] == "low on disk & memory"


def test_a_client_without_the_capability_is_held_and_told_nothing(core: Core, machine: Machine) -> None:
    client = core.client(**{"connection.blocked": False})  # type: ignore[arg-type]
    machine.used = 500
    look(core, client)
    client.publish("", "q", b"a")
    assert client.sink.paused and client.take() == []
    machine.used = 0
    look(core, client)
    assert not client.sink.paused and client.take() == []


def test_whoever_only_consumes_is_neither_held_nor_told_and_drains_on(
    core: Core, machine: Machine, client: CoreClient
) -> None:
    consumer = core.client()
    client.fill("q", *"abc")
    machine.used = 500
    look(core, client)
    client.fill("q", "d")
    consumer.consume("q", prefetch=1)
    seen = []
    for tag in range(1, 4):
        seen += consumer.delivered()
        consumer.send("basic.ack", delivery_tag=tag)
    assert seen == list("abc")
    assert not consumer.sink.paused
    assert consumer.call("queue.declare", queue="new").name == "queue.declare-ok"


def ready(core: Core) -> int:
    return int(core.broker.vhosts["/"].queues["q"].ready)


@pytest.mark.parametrize("alarm", ["memory", "disk"])
def test_what_is_published_under_an_alarm_waits_until_it_clears(
    core: Core, machine: Machine, client: CoreClient, alarm: str
) -> None:
    """From the content header on nothing is heard, not even of the first message."""
    client.call("confirm.select")
    client.take()
    machine.used, machine.free = (500, 1 << 40) if alarm == "memory" else (0, 0)
    look(core, client)
    client.publish("", "q", b"a")
    client.publish("", "q", b"b")
    client.send("queue.declare", queue="other")
    assert client.story() == ["connection.blocked"] and ready(core) == 0
    machine.used, machine.free = 0, 1 << 40
    look(core, client)
    assert client.story() == ["connection.unblocked", "queue.declare-ok", "ack 2+"] and ready(core) == 2


def test_a_first_message_without_a_body_is_whole_with_its_header_and_gets_through(
    core: Core, machine: Machine, client: CoreClient
) -> None:
    client.call("confirm.select")
    client.take()
    machine.used = 500
    look(core, client)
    client.publish("", "q", b"")
    client.publish("", "q", b"")
    assert client.story() == ["connection.blocked", "ack 1"] and ready(core) == 1
    machine.used = 0
    look(core, client)
    assert client.story() == ["connection.unblocked", "ack 2"] and ready(core) == 2


def test_a_body_that_is_under_way_when_the_alarm_comes_waits(core: Core, machine: Machine, client: CoreClient) -> None:
    client.feed(publish(1, "", "q", b"0123456789", frame_max=13)[:-13])  # pieces of five octets, the last is missing
    machine.used = 500
    look(core, client)
    client.feed(publish(1, "", "q", b"0123456789", frame_max=13)[-13:])
    assert client.story() == ["connection.blocked"] and ready(core) == 1, "the frame that blocked it was the last"
    client.publish("", "q", b"more")
    assert ready(core) == 1


def test_a_refused_publish_blocks_and_nothing_behind_it_is_heard(
    core: Core, machine: Machine, client: CoreClient
) -> None:
    machine.used = 500
    look(core, client)
    client.feed(publish(1, "none", "q", b"") + publish(1, "", "q", b"x") + method_frame(2, "channel.open"))
    assert client.story() == ["connection.blocked", "channel.close 404"]
    machine.used = 0
    look(core, client)
    assert client.story() == ["connection.unblocked", "channel.open-ok"]


def test_a_blocked_client_that_goes_leaves_nothing(core: Core, machine: Machine, client: CoreClient) -> None:
    machine.used = 500
    look(core, client)
    client.fill("q", "a")
    core.broker.begin_turn()
    client.connection.lost("cut")
    core.broker.end_turn()
    machine.used = 0
    look(core)
    assert len(core.broker.connections) == 0


def test_a_blocked_client_misses_no_heartbeats(core: Core, machine: Machine, client: CoreClient) -> None:
    client.connection.heartbeat = 10
    client.connection.arm_heartbeat()
    machine.used = 500
    look(core, client)
    client.fill("q", "a")
    advance(core, 600_000)
    assert not client.sink.closed


# -- credit --------------------------------------------------------------------------------------------------------


@pytest.fixture
def held(tmp_path: Path) -> Core:
    return Core(tmp_path, held=True)


def publisher(held: Core, queue: str) -> CoreClient:
    client = held.client(persistent=True)
    client.open()
    client.declare(queue)
    client.send("confirm.select")
    client.take()
    return client


def test_a_flood_stops_being_read_until_the_log_has_caught_up(held: Core) -> None:
    client = publisher(held, "q")
    sent = 0
    while client.reading:
        client.publish("", "q", b"x" * 100_000)
        sent += 100_000
        assert sent < 4 * CREDIT, "nobody stops it"
    assert AT_FIRST // 2 < sent <= AT_FIRST + 100_000
    assert client.connection.reading.in_flow
    held.commit()
    assert client.reading and not client.connection.reading.in_flow
    assert client.connection.reading.flow_until > held.clock.now_ms(), "shown as flow a little longer"
    client.publish("", "q", b"x")
    held.commit()
    assert [told.name for told in client.take()][-1] == "basic.ack"


def test_a_slow_publisher_beside_a_flood_is_served_all_the_while(held: Core) -> None:
    flood, slow = publisher(held, "flood"), publisher(held, "slow")
    while flood.reading:
        flood.publish("", "flood", b"x" * 500_000)
    for n in range(20):
        slow.publish("", "slow", b"%d" % n)
        assert slow.reading and not slow.connection.reading.in_flow
    held.commit()
    assert sum(told.name == "basic.ack" for told in slow.take()) >= 1
    assert held.ready("slow") == 20


def test_credit_grows_on_a_quick_disk_up_to_its_limit() -> None:
    allowance = Allowance()
    for batch in range(1, 10):
        allowance.charge(batch, 1 << 20, batch * 100)
        allowance.synced(batch, batch * 100 + 5, True)
    assert allowance.limit == CREDIT


def test_credit_does_not_grow_when_nobody_runs_out_of_it() -> None:
    allowance = Allowance()
    allowance.charge(1, 1 << 20, 0)
    allowance.synced(1, 5, False)
    assert allowance.limit == AT_FIRST


def test_credit_shrinks_on_a_slow_disk_so_that_others_do_not_wait_behind_a_flood() -> None:
    allowance = Allowance()
    for batch in range(1, 10):
        allowance.charge(batch, 4 << 20, batch * 1000)
        allowance.synced(batch, batch * 1000 + 800, True)
    assert allowance.limit == LEAST


def test_a_disk_whose_every_sync_is_slow_is_not_starved_of_data() -> None:
    """There the time is not in the bytes: writing less would only be slower."""
    allowance = Allowance()
    for batch in range(1, 20):
        allowance.charge(batch, 1000, batch * 1000)
        allowance.synced(batch, batch * 1000 + 200, False)
    for batch in range(20, 40):
        allowance.charge(batch, 8 << 20, batch * 1000)
        allowance.synced(batch, batch * 1000 + 240, True)
    assert allowance.limit == CREDIT


def test_several_batches_synced_together_count_from_the_first() -> None:
    allowance = Allowance()
    allowance.charge(1, 1 << 20, 0)
    allowance.charge(2, 1 << 20, 300)
    allowance.synced(2, 310, True)
    assert allowance.limit == AT_FIRST // 2


def test_small_messages_use_credit_too(held: Core) -> None:
    client = publisher(held, "q")
    batch = b"".join(client.published("", "q", b"x") for _ in range(1000))
    for _ in range(100):
        if not client.reading:
            break
        client.feed(batch)
    assert not client.reading


def test_transient_messages_and_consumers_use_no_credit(held: Core) -> None:
    client = publisher(held, "q")
    for _ in range(200):
        client.publish("", "q", b"x" * 100_000, delivery_mode=1)
    assert client.reading and not client.connection.reading.in_flow


def test_a_flood_while_an_alarm_is_on_is_read_again_when_both_are_over(held: Core) -> None:
    client = publisher(held, "q")
    while not client.connection.reading.in_flow:
        client.publish("", "q", b"x" * 500_000)
    held.broker.services.pressure.alarms = Alarms(lambda: 500, lambda: 1 << 40, 1000)
    held.broker.update_alarms()
    client.publish("", "q", b"x" * 500_000)
    held.commit()
    assert not client.reading, "the alarm is still on"
    held.broker.services.pressure.alarms = None
    held.broker.begin_turn()
    held.broker.update_alarms()
    held.broker.end_turn()
    assert client.reading
    assert isinstance(held.committer, HeldRunner)
