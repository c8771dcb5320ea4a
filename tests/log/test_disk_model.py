"""The disk model: whatever a power cut leaves of the unsynced writes, recovery finds what was promised.

Exhaustive over short histories (every operation of the disk is a crash point; every write, sync and creation fails
once), random over long ones. ``disk.py`` is the disk, ``world.py`` the miniature broker and the judge.
"""

from __future__ import annotations

import copy
import errno
import itertools
import random
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.log.disk import SimulatedFiles
from tests.log.world import World, found_state, judge, same
from warren.log.format import LogCorrupt
from warren.log.log import Log
from warren.log.settings import LogSettings

Step = Callable[[World], None]


def small(zero_ahead: bool = False) -> LogSettings:
    """Segments of about two batches, checkpoints at once, no waiting."""
    return LogSettings(
        segment_bytes=700,
        checkpoint_bytes=1,
        retry_ms=1,
        chunk_bytes=64,
        zero_ahead=zero_ahead,
        slack_bytes=0,
        reserve_bytes=0,
    )


class Violation(BaseException):
    """A promise broken, seen from inside the log's own disk work, which catches ordinary exceptions."""


class CrashPoints:
    """Judges every image a power cut could leave at every operation of the disk."""

    def __init__(self, disk: SimulatedFiles, limit: int, seed: int) -> None:
        self.disk = disk
        self.limit = limit
        self.rng = random.Random(seed)
        self.world: World | None = None
        self.judged = 0
        self.points = 0
        self.seen: set[int] = set()
        disk.observe = self.look

    def look(self, kind: str, name: str) -> None:
        world = self.world
        self.points += 1
        if world is None:
            return
        for image in self.disk.images(self.limit, self.rng):
            key = hash((tuple(sorted(image.items())), world.promised))
            if key in self.seen:
                continue
            self.seen.add(key)
            self.judge(image, world, f"before {kind} {name} (operation {self.disk.operations})")

    def judge(self, image: dict[str, bytes], world: World, where: str) -> None:
        self.judged += 1
        try:
            log, recovered = Log.open("/data", SimulatedFiles(image), small())
            judge(found_state(log, recovered), world.history, world.promised, world.lost)
        except (AssertionError, LogCorrupt) as error:
            raise Violation(f"{where}: {error}") from error


# six batches over three segments and more: a roll every second batch, sharing, moves, a drop, chunks, and maintenance
# that checkpoints, removes and compacts in between
def batch_1(w: World) -> None:
    w.define("one", b"1")
    w.publish(b"a" * 120, 1)
    w.publish(b"b" * 120, 1, 2)


def batch_2(w: World) -> None:
    w.publish(b"c" * 120, 2)
    w.publish(b"d" * 10, 3, w.passing)
    w.deliver(w.passing)
    w.settle(1)
    w.deliver(2)


def batch_3(w: World) -> None:
    w.publish_in_chunks([b"e" * 60, b"f" * 60], 1)
    w.move(3, 1)
    w.define("two", b"2" * 40)


def batch_4(w: World) -> None:
    w.settle(2)
    w.settle(2)
    w.undefine("one")
    w.publish(b"g" * 120, w.passing)


def batch_5(w: World) -> None:
    w.drop_passing()
    w.publish(b"h" * 120, 1, 2)


def batch_6(w: World) -> None:
    w.purge(1)
    w.publish(b"i" * 30, 2)


BATCHES: list[Step] = [batch_1, batch_2, batch_3, batch_4, batch_5, batch_6]


def run_history(world: World, batches: list[Step]) -> None:
    now = 0
    for batch in batches:
        batch(world)
        world.end_turn()
        world.maintain()
        now += 10
        world.log.tick(now)
    world.log.tick(now + 10)
    world.maintain()


def test_the_short_history_has_a_roll_a_compaction_and_a_removal() -> None:
    disk = SimulatedFiles()
    world = World(disk, small())
    run_history(world, BATCHES)
    assert world.log.active.number >= 3
    assert world.log.maintenance.compactions >= 1
    assert world.log.maintenance.removed >= 1
    assert world.promised == 6
    world.check_reads()


def test_every_crash_point_of_the_short_history_recovers_what_was_promised() -> None:
    disk = SimulatedFiles()
    points = CrashPoints(disk, limit=128, seed=1)
    points.world = World(disk, small())
    run_history(points.world, BATCHES)
    assert points.world.promised == 6
    assert points.points > 40 and points.judged > 300


def fault_points() -> list[tuple[int, str]]:
    """Every operation of the short history that may fail."""
    disk = SimulatedFiles()
    found: list[tuple[int, str]] = []

    def note(kind: str, name: str) -> int:
        found.append((disk.operations, kind))
        return 0

    world = World(disk, small())
    disk.fault = note
    run_history(world, BATCHES)
    return found


@pytest.mark.parametrize("length", [1, 3])
@pytest.mark.parametrize("share", range(4))
def test_every_failing_operation_at_every_crash_point_loses_nothing_promised(share: int, length: int) -> None:
    """One operation fails (or three in a row, so that the second attempt fails too); then every crash point."""
    operations = [at for at, _ in fault_points()]
    for at in operations[share::4]:
        disk = SimulatedFiles()
        points = CrashPoints(disk, limit=6, seed=at)
        failed: list[int] = []

        def fault(kind: str, name: str, at: int = at, disk: SimulatedFiles = disk, failed: list[int] = failed) -> int:
            if at <= disk.operations < at + length:
                failed.append(disk.operations)
                return errno.EIO
            return 0

        points.world = world = World(disk, small())
        disk.fault = fault
        try:
            run_history(world, BATCHES)
        except Violation as error:
            raise AssertionError(f"operation {at} fails {length} times: {error}") from error
        assert failed
        # the disk is well again: service is back, everything is promised, memory and disk agree
        assert world.log.flush() or (world.log.retry() is None and world.log.flush())
        assert not world.log.failing
        world.check_reads()
        log, recovered = Log.open("/data", SimulatedFiles(disk.kept_image()), small())
        assert same(found_state(log, recovered), world.state, set()), f"operation {at}"


def test_every_order_of_two_of_these_batches_survives_every_crash_point_and_a_failed_sync() -> None:
    every_order(2)


@pytest.mark.soak
def test_every_order_of_four_of_these_batches_survives_every_crash_point_and_a_failed_sync() -> None:
    every_order(4)


def every_order(longest: int) -> None:
    """All sequences of up to so many of the six batches, each once sound and once with its middle sync failing."""
    for length in range(1, longest + 1):
        for number, batches in enumerate(itertools.product(BATCHES, repeat=length)):
            syncs = 0
            for failing in (False, True):
                disk = SimulatedFiles()
                points = CrashPoints(disk, limit=4, seed=number)
                points.world = World(disk, small())
                seen = [0]

                def fault(kind: str, name: str, seen: list[int] = seen, at: int = syncs // 2 * failing) -> int:
                    seen[0] += kind == "sync"
                    return errno.EIO if kind == "sync" and seen[0] == at else 0

                disk.fault = fault
                try:
                    run_history(points.world, list(batches))
                except Violation as error:
                    raise AssertionError(f"{[batch.__name__ for batch in batches]}: {error}") from error
                syncs = seen[0]
                assert points.world.promised >= length


def test_zeros_written_ahead_change_nothing() -> None:
    disk = SimulatedFiles()
    points = CrashPoints(disk, limit=6, seed=3)
    points.world = World(disk, small(zero_ahead=True))
    run_history(points.world, BATCHES[:3])
    assert points.world.promised == 3


def test_a_turned_bit_in_synced_data_is_never_taken_for_data() -> None:
    """Refused, or cut where no header names it as synced (the last commit only), or in garbage: never a wrong state."""
    disk = SimulatedFiles()
    world = World(disk, small())
    run_history(world, BATCHES)
    world.publish(b"j" * 50, 1)
    world.end_turn()
    image = disk.synced_image()
    outcomes = {"refused": 0, "cut": 0, "unharmed": 0}
    rng = random.Random(5)
    for name in sorted(image):
        for at in range(0, len(image[name]), 3):
            damaged = bytearray(image[name])
            damaged[at] ^= 1 << rng.randrange(8)
            try:
                log, recovered = Log.open("/data", SimulatedFiles({**image, name: bytes(damaged)}), small())
                found = found_state(log, recovered)
            except LogCorrupt as error:
                assert "/data/" in str(error)
                outcomes["refused"] += 1
                continue
            except Exception as error:
                raise AssertionError(f"{name} at {at}: {error!r}") from error
            turn = judge(found, world.history, world.promised - 1, world.lost)
            outcomes["unharmed" if turn == world.promised else "cut"] += 1
    assert outcomes["refused"] > 100 and outcomes["cut"] > 0


OPERATIONS = st.sampled_from(
    [
        lambda w: w.publish(b"%d" % w.message_id * 20, 1 + w.message_id % 4),
        lambda w: w.publish(b"%d" % w.message_id * 20, 1 + w.message_id % 4),
        lambda w: w.publish(b"%d" % w.message_id * 30, 1, 2, 3),
        lambda w: w.publish_in_chunks([b"%d" % w.message_id * 10, b"." * 20], 1 + w.message_id % 4),
        lambda w: w.settle(1 + w.message_id % 4),
        lambda w: w.settle(1 + w.message_id % 3),
        lambda w: w.settle(1, max(w.state.queues.get(1, {}), default=None)),
        lambda w: w.move(1 + w.message_id % 4, 1 + (w.message_id + 1) % 4),
        lambda w: w.purge(2),
        lambda w: w.publish(b"%d" % w.message_id * 20, w.passing, 1),
        lambda w: w.publish(b"%d" % w.message_id * 20, w.passing),
        lambda w: w.drop_passing(),
        lambda w: w.deliver(1),
        lambda w: w.deliver(w.passing),
        lambda w: w.define(f"q{w.message_id % 5}", b"%d" % w.message_id),
        lambda w: w.undefine(f"q{w.message_id % 5}"),
        lambda w: w.end_turn(),
        lambda w: w.end_turn(),
        lambda w: w.end_turn(False),
        lambda w: w.maintain(),
        lambda w: w.log.tick(w.log._now + 60),
    ]
)


HISTORIES = (
    st.lists(OPERATIONS, min_size=20, max_size=150),
    st.integers(0, 2**32),
    st.sets(st.integers(5, 250), max_size=6),
    st.integers(0, 2),
)
SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]


@settings(max_examples=40, deadline=None, suppress_health_check=SLOW)
@given(*HISTORIES)
def test_long_random_histories_survive_crashes_and_faults(
    operations: list[Step], seed: int, faults: set[int], restarts: int
) -> None:
    live_through(operations, seed, faults, restarts)


@pytest.mark.soak
@settings(max_examples=20_000, deadline=None, suppress_health_check=SLOW)
@given(*HISTORIES)
def test_very_many_random_histories_survive_crashes_and_faults(
    operations: list[Step], seed: int, faults: set[int], restarts: int
) -> None:
    live_through(operations, seed, faults, restarts)


def live_through(operations: list[Step], seed: int, faults: set[int], restarts: int) -> None:
    rng = random.Random(seed)
    disk = SimulatedFiles()
    world = World(disk, small())
    for _ in range(restarts + 1):
        points = CrashPoints(disk, limit=2, seed=seed)
        points.world = world
        disk.fault = lambda kind, name, disk=disk: errno.ENOSPC if disk.operations in faults else 0
        for operation in operations:
            operation(world)
            if rng.random() < 0.2:
                world.check_reads()
        world.end_turn(rng.random() < 0.5)
        image = rng.choice(list(disk.images(8, rng)))
        disk = SimulatedFiles(image)
        world = restarted(world, disk)


def restarted(before: World, disk: SimulatedFiles) -> World:
    """Go on from what a crash left; the model becomes what was found, once it has been judged."""
    world = World(disk, small())
    found = found_state(world.log, world.recovered)
    judge(found, before.history, before.promised, before.lost)
    world.state = found
    world.history = {int(world.log.batch) - 1: copy.deepcopy(found)}
    world.positions = dict(before.positions)
    world.passing = before.passing + 1
    world.message_id = max(world.message_id, before.message_id)
    for queue, index in world.recovered.queues.items():
        for position, address in zip(index.positions, index.addresses, strict=True):
            world.addresses[(queue, int(position))] = int(address)
    return world
