"""A very long transient body leaves memory some a turn and comes back some a turn, whatever happens meanwhile."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from tests.faults.test_bit_rot import rot
from tests.limits.gate import advance
from tests.rules.test_long_bodies import BODY, MIB, PIECE
from tests.rules.test_long_letters import Traffic, bodies, one_turn, traffic_by_turn
from warrenmq.broker.queue.lease import Lease
from warrenmq.broker.queue.put_away import AT_ONCE
from warrenmq.broker.queue.read_ahead import PARTS
from warrenmq.testing.core import Core
from warrenmq.testing.core_client import CoreClient

pytestmark = pytest.mark.slices

LONG_ONE = BODY.replace(b"0", b"z")
MOST = AT_ONCE + 2 * MIB  # and what the log zeroes ahead


class Full(Traffic):
    """Has no room for spills when it is told so."""

    full = False

    def write(self, descriptor: int, parts: list[bytes], offset: int) -> None:
        if self.full:
            raise OSError(errno.ENOSPC, "no room")
        super().write(descriptor, parts, offset)


@pytest.fixture
def files() -> Full:
    return Full()


@pytest.fixture
def core(tmp_path: Path, files: Full) -> Core:
    return Core(tmp_path, files)


def spilling(core: Core, **arguments: object) -> CoreClient:
    """A queue in which a long body is on its way out of memory, behind one that fills the window."""
    core.broker.services.pressure.memory_half_full = True
    client = core.client()
    wanted = {"x-" + key.replace("_", "-"): value for key, value in arguments.items()}
    client.declare("q", False, wanted)
    client.publish("", "q", BODY)
    client.publish("", "q", LONG_ONE)
    assert core.broker.services.jobs.busy()
    return client


def held(core: Core) -> int:
    """Records that the transient store keeps."""
    return sum(int(spill.held) for spill in core.transient.open_files.values())


def test_it_is_written_and_read_some_a_turn_and_keeps_its_place(core: Core, files: Full) -> None:
    client = spilling(core)
    client.publish("", "q", b"behind")
    written = [octets for _, octets in traffic_by_turn(core, files)]
    assert sum(written) > len(LONG_ONE) and max(written) < MOST
    assert held(core) > 50 and not core.classic("q")._fifo._resident
    other = core.client()
    other.send("basic.consume", queue="q", no_ack=True)
    read = [octets for octets, _ in traffic_by_turn(core, files)]
    assert sum(read) > len(LONG_ONE) and max(read) <= (PARTS + 1) * 2 * PIECE
    assert [got.body for got in other.deliveries()] == [BODY, LONG_ONE, b"behind"]
    assert held(core) == 0


@pytest.mark.parametrize("end", ["taken", "queue.purge", "queue.delete", "no room"])
def test_what_was_written_of_one_that_stays_no_longer_is_given_back(core: Core, files: Full, end: str) -> None:
    client = spilling(core)
    one_turn(core)
    if end == "taken":
        for wanted in (BODY, LONG_ONE):
            assert client.call("basic.get", queue="q", no_ack=True).body == wanted
    elif end == "no room":
        files.full = True
    else:
        client.call(end, queue="q")
    traffic_by_turn(core, files)
    assert held(core) == 0
    if end == "no room":
        files.full = False
        for wanted in (BODY, LONG_ONE):
            assert client.call("basic.get", queue="q", no_ack=True).body == wanted


@pytest.mark.parametrize("way", ["expired", "maxlen"])
def test_one_that_becomes_a_dead_letter_is_read_some_a_turn(core: Core, files: Full, way: str) -> None:
    letters: dict[str, object] = {"dead_letter_exchange": "", "dead_letter_routing_key": "dead"}
    client = spilling(core, **(letters | ({"message_ttl": 1000} if way == "expired" else {})))
    client.declare("dead", False)
    traffic_by_turn(core, files)
    assert held(core) > 50
    core.broker.services.pressure.memory_half_full = False
    files.take()
    if way == "expired":
        core.clock.set_ms(core.clock.now_ms() + 1000)
        one_turn(core)
    else:
        core.policy("^q$", max_length=0)
    read = [octets for octets, _ in traffic_by_turn(core, files)]
    assert sum(read) > len(LONG_ONE) and max(read) <= (PARTS + 1) * 2 * PIECE
    assert bodies(core) == [BODY, LONG_ONE]
    assert held(core) == 0


def leased(core: Core, files: Full) -> tuple[CoreClient, Lease]:
    """A long one that has left memory, and was leased."""
    client = spilling(core)
    traffic_by_turn(core, files)
    assert client.call("basic.get", queue="q", no_ack=True).body == BODY
    core.broker.begin_turn()
    lease = core.classic("q").leases.create(1, -1, 60_000, "spark", "")
    core.broker.end_turn()
    assert core.ready("q") == 0
    files.take()
    return client, lease


def released(core: Core, files: Full, lease: Lease) -> list[int]:
    """How much was read in each turn until all of it was back."""
    core.broker.begin_turn()
    core.classic("q").leases.release(lease)
    core.broker.end_turn()
    read = [files.take()[0]]
    for _ in range(50):
        if lease.left == 0:
            break
        advance(core, 1)
        read.append(files.take()[0])
    assert lease.left == 0
    return read


def test_one_that_is_leased_and_goes_back_is_read_some_a_turn_and_whole(core: Core, files: Full) -> None:
    client, lease = leased(core, files)
    read = released(core, files, lease)
    assert sum(read) > len(LONG_ONE) and max(read) <= (PARTS + 1) * 2 * PIECE
    core.settle()
    assert client.call("basic.get", queue="q", no_ack=True).body == LONG_ONE
    assert held(core) == 0


def test_one_that_is_settled_while_it_is_read_to_go_back_is_read_no_further(core: Core, files: Full) -> None:
    _, lease = leased(core, files)
    leases = core.classic("q").leases
    core.broker.begin_turn()
    leases.release(lease)
    assert core.broker.services.jobs.busy()
    leases.ack(lease, 0, 0)
    leases.acted(lease)
    core.broker.end_turn()
    files.take()
    advance(core, 10)
    assert files.take()[0] < MIB and held(core) == 0 and core.ready("q") == 0


def test_a_damaged_one_that_is_to_go_back_is_set_aside(core: Core, files: Full) -> None:
    _, lease = leased(core, files)
    core.transient.flush()
    rot(core.folder, b"1zzzz1 ", files="spill-*")
    released(core, files, lease)
    assert core.ready("q") == 0 and core.broker.services.damaged.count() == 1


def test_a_damaged_one_is_set_aside_and_those_behind_it_go_on(core: Core, files: Full) -> None:
    client = spilling(core)
    client.publish("", "q", b"behind")
    traffic_by_turn(core, files)
    core.transient.flush()
    rot(core.folder, b"1zzzz1 ", files="spill-*")
    other = core.client()
    other.send("basic.consume", queue="q", no_ack=True)
    traffic_by_turn(core, files)
    assert [got.body for got in other.deliveries()] == [BODY, b"behind"]
    assert core.broker.services.damaged.count() == 1
