"""A very long body that is read where it stays, in a stream or under a lease, or looked at where it waits, is read some
a turn, and what is behind it does not overtake it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.test_bit_rot import rot
from tests.rules.test_long_bodies import BODY, MIB, PIECE
from tests.rules.test_long_letters import Traffic, traffic_by_turn
from tests.rules.test_long_spills import LONG_ONE, Full, held, spilling
from warrenmq.broker.queue.lease_view import LeaseView, view_of
from warrenmq.broker.queue.peek import peek
from warrenmq.broker.queue.read_ahead import PARTS
from warrenmq.broker.queue.wanted import Wanted
from warrenmq.testing.core import Core
from warrenmq.testing.core_client import CoreClient
from warrenmq.wire.fields import from_python

pytestmark = pytest.mark.slices

MOST_READ = (PARTS + 1) * 2 * PIECE
STREAM = {"x-queue-type": "stream"}


@pytest.fixture
def files() -> Full:
    return Full()


@pytest.fixture
def core(tmp_path: Path, files: Full) -> Core:
    return Core(tmp_path, files)


def read_by_turn(core: Core, files: Traffic) -> list[int]:
    return [octets for octets, _ in traffic_by_turn(core, files)]


def stream(core: Core, *bodies: bytes) -> None:
    """On disk, and nothing of it in memory."""
    client = core.client(persistent=True)
    client.declare("s", True, STREAM)
    for body in bodies:
        client.publish("", "s", body)
    core.restart()


def reader(core: Core, offset: object = "first", prefetch: int = 100) -> CoreClient:
    client = core.client()
    client.call("basic.qos", prefetch_count=prefetch)
    client.send("basic.consume", queue="s", consumer_tag="c", arguments={"x-stream-offset": offset})
    return client


def test_a_long_message_of_a_stream_is_read_some_a_turn_by_each_reader(core: Core, files: Full) -> None:
    stream(core, b"before", BODY, b"behind")
    files.take()
    one, two = reader(core), reader(core, 1)
    read = read_by_turn(core, files)
    assert sum(read) > 2 * len(BODY) and max(read) <= 2 * MOST_READ
    got = one.deliveries()
    assert [each.body for each in got] == [b"before", BODY, b"behind"]
    assert [each.headers["x-stream-offset"] for each in got] == [0, 1, 2]
    assert [each.body for each in two.deliveries()] == [BODY, b"behind"]


def test_a_reader_that_goes_meanwhile_ends_the_reading(core: Core, files: Full) -> None:
    stream(core, BODY)
    client = reader(core)
    assert core.broker.services.jobs.busy()
    client.call("basic.cancel", consumer_tag="c")
    assert sum(read_by_turn(core, files)) < len(BODY) and not client.deliveries()


def test_a_stream_that_is_deleted_meanwhile_ends_the_reading(core: Core, files: Full) -> None:
    stream(core, BODY)
    client = reader(core)
    core.client().call("queue.delete", queue="s")
    assert sum(read_by_turn(core, files)) < len(BODY) and not client.deliveries()


def test_a_damaged_long_message_is_passed_over(core: Core, files: Full) -> None:
    stream(core, BODY, b"behind")
    core.log.flush()
    rot(core.folder, b"2000000 ")
    client = reader(core)
    read_by_turn(core, files)
    assert [got.body for got in client.deliveries()] == [b"behind"]
    assert core.broker.services.damaged.count() == 1


def lease(core: Core, count: int) -> str:
    core.broker.begin_turn()
    leases = core.classic("q").leases
    made = leases.create(count, -1, 60_000, "spark", "")
    core.broker.end_turn()
    while made.filling:
        core.broker.begin_turn()
        leases.fill(made)
        core.broker.end_turn()
    return made.id


def lessee(core: Core, id: str) -> CoreClient:
    client = core.client()
    client.call("basic.qos", prefetch_count=100)
    client.send("basic.consume", queue="q", consumer_tag="c", arguments={"x-lease": id})
    return client


def test_a_long_message_under_a_lease_is_read_some_a_turn(core: Core, files: Full) -> None:
    client = core.client(persistent=True)
    client.declare("q")
    for body in (b"before", BODY, b"behind"):
        client.publish("", "q", body)
    id = lease(core, 3)
    files.take()
    other = lessee(core, id)
    read = read_by_turn(core, files)
    assert sum(read) > len(BODY) and max(read) <= MOST_READ
    assert [got.body for got in other.deliveries()] == [b"before", BODY, b"behind"]


def test_a_spilled_one_too(core: Core, files: Full) -> None:
    spilling(core)
    traffic_by_turn(core, files)
    id = lease(core, 2)
    files.take()
    other = lessee(core, id)
    read = read_by_turn(core, files)
    assert sum(read) > len(LONG_ONE)
    assert [got.body for got in other.deliveries()] == [BODY, LONG_ONE]


def test_many_under_a_lease_are_not_read_all_at_once(core: Core, files: Full) -> None:
    client = core.client(persistent=True)
    client.declare("q")
    bodies = [b"%d" % number * (3 << 20) for number in range(10)]
    for body in bodies:
        client.publish("", "q", body)
    queue = core.queue("q")
    id = lease(core, 10)
    view = view_of(queue, from_python({"x-lease": id}))
    assert isinstance(view, LeaseView)
    files.take()
    assert len(view.read_messages(0, 128)) == 1
    assert files.take()[0] < 4 * MIB
    other = lessee(core, id)
    read_by_turn(core, files)
    assert [got.body for got in other.deliveries()] == bodies


@pytest.mark.parametrize("way", ["back", "rejected"])
def test_one_that_goes_back_from_a_lease_is_not_read_before_somebody_wants_it(
    core: Core, files: Full, way: str
) -> None:
    client = core.client(persistent=True)
    client.declare("dead")
    client.declare("q", True, {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"})
    for body in (b"before", BODY, b"behind"):
        client.publish("", "q", body)
    id = lease(core, 3)
    files.take()
    core.broker.begin_turn()
    leases = core.classic("q").leases
    made = leases.get(id)
    if way == "back":
        leases.requeue(made, [0, 1, 2])
    else:
        leases.reject(made, [0, 1, 2])
    leases.acted(made)
    core.broker.end_turn()
    assert sum(read_by_turn(core, files)) < MIB
    name = "q" if way == "back" else "dead"
    core.restart(clean=False)
    files.take()
    other = core.client()
    other.send("basic.consume", queue=name, no_ack=True)
    assert max(read_by_turn(core, files)) <= MOST_READ
    assert [got.body for got in other.deliveries()] == [b"before", BODY, b"behind"]


@pytest.mark.parametrize("end", ["back", "rejected", "acknowledged", "queue.delete"])
def test_one_in_memory_alone_is_leased_and_goes_back_without_being_written_or_read(
    core: Core, files: Full, end: str
) -> None:
    client = core.client()
    client.declare("dead", False)
    client.declare("q", False, {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"})
    for body in (b"before", BODY, b"behind"):
        client.publish("", "q", body)
    files.take()
    id = lease(core, 3)
    other = lessee(core, id)
    traffic = traffic_by_turn(core, files)
    assert sum(map(sum, traffic)) < MIB
    assert [got.body for got in other.deliveries()] == [b"before", BODY, b"behind"]
    core.broker.begin_turn()
    leases = core.classic("q").leases
    made = leases.get(id)
    if end == "back":
        leases.requeue(made, [0, 1, 2])
    elif end == "rejected":
        leases.reject(made, [0, 1, 2])
    elif end == "acknowledged":
        leases.ack(made, 0, 2)
    leases.acted(made)
    core.broker.end_turn()
    if end == "queue.delete":
        client.call("queue.delete", queue="q")
    assert sum(map(sum, traffic_by_turn(core, files))) < MIB
    assert held(core) == 0 and not core.transient._in_memory
    if end in ("back", "rejected"):
        last = core.client()
        last.send("basic.consume", queue="q" if end == "back" else "dead", no_ack=True)
        assert [got.body for got in last.deliveries()] == [b"before", BODY, b"behind"]


def test_a_spilled_one_is_looked_at_in_parts(core: Core, files: Full) -> None:
    spilling(core)
    traffic_by_turn(core, files)
    core.broker.services.pressure.memory_half_full = False
    before = held(core)
    core.broker.begin_turn()
    (seen,) = peek(core.queue("q"), [], Wanted(), 2, 3, 1).messages
    core.broker.end_turn()
    assert files.take()[0] < MIB and seen.size == len(LONG_ONE)
    assert seen.beginning(100) == LONG_ONE[:100]
    assert files.take()[0] < 2 * MIB
    assert b"".join(seen.part(number) for number in range(seen.parts())) == LONG_ONE
    assert held(core) == before
