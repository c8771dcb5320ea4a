"""The disk model: whatever a crash leaves of the unsynced writes, recovery finds what was promised.

The short history is six batches over three segments, with rolls, checkpoints, a compaction and removals. Exhaustive
about it, in every run of the tests, at every operation of the disk and behind the last one:
- All subsets of the unsynced writes and names; with them each write torn at every byte (either end of it missing) and
  with a bit turned in every byte. No two writes are ever in doubt together there, so nothing is left out.
- The same with zeros written ahead.
- Every operation failing once, and three times in a row: all subsets; each single write torn and turned every 64 bytes,
  whatever becomes of the others.
- A second crash, in the recovery or the next batch: all subsets of both, and the first with each write torn and turned
  every 64 bytes.
- A process killed at every operation, which keeps the unsynced writes unsynced, and started again before the power
  goes: all subsets. The same where the kernel could not write them, so that only writing them again brings them to the
  disk: also each write torn and turned every 64 bytes; and with every operation of the start failing: all subsets.
- Every operation failing, the process killed at each of the next four, started again, a power cut: all subsets.
- Every order of up to two of the batches, sound and with each of its syncs failing: all subsets.

Under ``soak``: the failing operations with each single write torn and turned at every byte; one and three of them and
then a kill at any later operation, with damage every 64 bytes; every order of up to six of the batches, and of up to
four with each sync failing. Two writes damaged together after a fault, and long
histories, are left to chance (``test_random_histories.py``). ``disk.py`` is the disk, ``cuts.py`` says what a crash may
leave, ``crash_points.py`` watches, ``world.py`` is the miniature broker and the judge.
"""

from __future__ import annotations

import errno
import itertools
import random
from collections.abc import Callable, Iterator

import pytest

from tests.log.crash_points import CrashPoints, Images, Recoveries, Violation, small, started
from tests.log.cuts import Image, damaged, whole
from tests.log.disk import SimulatedFiles
from tests.log.world import World, found_state, judge, restarted, same
from warrenmq.log.damage import RecordDamaged
from warrenmq.log.format import LogCorrupt
from warrenmq.log.log import Log
from warrenmq.log.settings import LogSettings

Step = Callable[[World], None]
NONE = range(0)  # of the operations fails


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
    w.requeue(2)
    w.define("two", b"2" * 40)


def batch_4(w: World) -> None:
    w.bury(1, 3)
    w.settle(2)
    w.settle(2)
    w.undefine("one")
    w.publish(b"g" * 120, w.passing)


def batch_5(w: World) -> None:
    w.settle(3)
    w.drop_passing()
    w.publish(b"h" * 120, 1, 2)


def batch_6(w: World) -> None:
    w.purge(1)
    w.publish(b"i" * 30, 2)


BATCHES: list[Step] = [batch_1, batch_2, batch_3, batch_4, batch_5, batch_6]


def whole_and_damaged(step: int) -> Images:
    def images(disk: SimulatedFiles) -> Iterator[Image]:
        yield from whole(disk)
        yield from damaged(disk, step)

    return images


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


def watched(points: CrashPoints, batches: list[Step], settings: LogSettings | None = None) -> World:
    """The history from an empty folder to its end, every crash point judged."""
    points.world = world = World(points.disk, small() if settings is None else settings)
    run_history(world, batches)
    points.look("the end", "")
    return world


def test_the_short_history_has_a_roll_a_compaction_and_a_removal() -> None:
    disk = SimulatedFiles()
    world = World(disk, small())
    run_history(world, BATCHES)
    assert world.log.active.number >= 3
    assert world.log.maintenance.compactions >= 1
    assert world.log.maintenance.removed >= 1
    assert world.promised == 6
    world.check_reads()


@pytest.mark.parametrize("zero_ahead", [False, True])
def test_every_crash_point_of_the_short_history_recovers_what_was_promised(zero_ahead: bool) -> None:
    points = CrashPoints(SimulatedFiles(), whole_and_damaged(1))
    world = watched(points, BATCHES, small(zero_ahead))
    assert world.promised == 6
    assert points.at_once == 1, "more than one write could be damaged at once: enumerate them together"
    assert points.points > 80 and points.judged > 8_000


def fault_points() -> list[int]:
    """Every operation of the short history: each may fail."""
    disk = SimulatedFiles()
    world = World(disk, small())
    first = disk.operations
    run_history(world, BATCHES)
    return list(range(first, disk.operations))


@pytest.mark.parametrize("length", [1, 3])
def test_every_failing_operation_at_every_crash_point_loses_nothing_promised(length: int) -> None:
    every_failure(length, 64)


@pytest.mark.soak
@pytest.mark.parametrize("length", [1, 3])
def test_every_failing_operation_and_every_damaged_byte_loses_nothing_promised(length: int) -> None:
    every_failure(length, 1)


def every_failure(length: int, step: int) -> None:
    """One operation fails (or three in a row, so that the second attempt fails too); then every crash point."""
    recoveries = Recoveries()
    judged = 0
    for at in fault_points():
        disk = SimulatedFiles()
        points = CrashPoints(disk, whole_and_damaged(step), recoveries)
        failed: list[int] = []

        def fault(kind: str, name: str, at: int = at, disk: SimulatedFiles = disk, failed: list[int] = failed) -> int:
            # ``operations`` counts this one already
            if at < disk.operations <= at + length:
                failed.append(disk.operations)
                return errno.EIO
            return 0

        disk.fault = fault
        try:
            world = watched(points, BATCHES)
        except Violation as error:
            raise AssertionError(f"operation {at} fails {length} times: {error}") from error
        assert failed
        judged += points.judged
        # the disk is well again: service is back, everything is promised, memory and disk agree
        assert world.log.flush() or (world.log.retry() is None and world.log.flush())  # type: ignore[func-returns-value]
        assert not world.log.failing
        world.check_reads()
        log, recovered = Log.open("/data", SimulatedFiles(disk.kept_image()), small())
        assert same(found_state(log, recovered), world.state, set()), f"operation {at}"
    print(f"{judged} folders judged, {len(recoveries.found)} different ones")


def after_a_crash(w: World) -> None:
    w.publish(b"z" * 100, 1, 2)
    w.settle(2)
    w.define("three", b"3")


def go_on(points: CrashPoints, before: World) -> None:
    """A new process on this disk: recovery and one more batch, every crash point judged."""
    world = restarted(before, started(points.disk))
    points.world = world
    run_history(world, [after_a_crash])
    points.look("the end", "")
    world.check_reads()


def test_a_second_crash_in_recovery_or_the_next_batch_loses_nothing_promised() -> None:
    recoveries = Recoveries()
    again: dict[int, CrashPoints] = {}
    first_images = whole_and_damaged(64)

    def crash(disk: SimulatedFiles) -> Iterator[Image]:
        for image in first_images(disk):
            before = first.world
            key = hash((frozenset(image.items()), 0 if before is None else before.promised))
            if before is not None and key not in again:
                again[key] = points = CrashPoints(SimulatedFiles(image), whole, recoveries, before)
                go_on(points, before)
            yield image

    first = CrashPoints(SimulatedFiles(), crash, recoveries)
    watched(first, BATCHES)
    assert len(again) > 50
    assert sum(points.judged for points in again.values()) > 3_000


class Killed(BaseException):
    """The process ends here; the page cache lives on."""


@pytest.mark.parametrize("zero_ahead", [False, True])
def test_a_power_cut_after_a_killed_process_was_started_again_loses_nothing_promised(zero_ahead: bool) -> None:
    """What recovery reads may be in the page cache only: whoever builds on it must make it durable first."""
    recoveries = Recoveries()
    for at in fault_points():
        killed_and_started(recoveries, at, zero_ahead=zero_ahead)


@pytest.mark.parametrize("zero_ahead", [False, True])
def test_what_the_kernel_failed_to_write_behind_a_killed_process_is_written_again(zero_ahead: bool) -> None:
    """Everything not synced is read from the page cache, and no sync alone brings it to the disk any more."""
    recoveries = Recoveries()
    for at in fault_points():
        killed_and_started(recoveries, at, zero_ahead=zero_ahead, writeback_fails=True, images=whole_and_damaged(64))


def test_a_failed_operation_then_a_kill_then_a_power_cut_lose_nothing_promised() -> None:
    """What a failed sync left in the page cache is read by the next process as if it were on the disk."""
    every_failure_then_kill(1, 4, whole)


@pytest.mark.soak
@pytest.mark.parametrize("length", [1, 3])
def test_a_failed_operation_then_a_kill_at_any_time_then_a_power_cut_lose_nothing_promised(length: int) -> None:
    every_failure_then_kill(length, len(fault_points()), whole_and_damaged(64))


def every_failure_then_kill(length: int, within: int, images: Images) -> None:
    """So many operations in a row fail, from each on; the process dies before each of so many behind the first."""
    recoveries = Recoveries()
    for failed in fault_points():
        for at in range(failed + 1, failed + 1 + within):
            killed_and_started(recoveries, at, range(failed, min(failed + length, at)), images=images)


@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC])
def test_a_start_that_fails_at_any_operation_is_made_up_for_by_the_next(code: int) -> None:
    """Nor does what a failed start left in the page cache count as being on the disk. Without room it does not fail."""
    recoveries = Recoveries()
    for at in fault_points():
        for failing in range(at, at + 8):  # the start's own operations, and the first behind it
            killed_and_started(recoveries, at, range(failing, failing + 1), writeback_fails=True, code=code)


def killed_and_started(
    recoveries: Recoveries,
    at: int,
    failing: range = NONE,
    zero_ahead: bool = False,
    writeback_fails: bool = False,
    images: Images = whole,
    code: int = errno.EIO,
) -> None:
    """A process dies before this operation, the next goes on; ``failing`` operations fail. Every crash point is judged.

    ``writeback_fails``: what was not synced when it died, the kernel could not write either.
    """
    disk = SimulatedFiles()
    disk.fault = lambda kind, name: code if disk.operations - 1 in failing else 0  # it counts this one already
    world = World(disk, small(zero_ahead))

    def kill(kind: str, name: str) -> None:
        if disk.operations == at:
            raise Killed

    disk.observe = kill
    try:
        run_history(world, BATCHES)
    except Killed:
        pass
    if writeback_fails:
        disk.lose_writeback()
    try:
        go_on(CrashPoints(disk, images, recoveries, world), world)
    except Violation as error:
        raise AssertionError(f"operations {failing} fail, killed before operation {at}: {error}") from error


def test_every_order_of_two_of_these_batches_survives_every_crash_point_and_every_failed_sync() -> None:
    every_order(2, True)


@pytest.mark.soak
def test_every_order_of_four_of_these_batches_survives_every_crash_point_and_every_failed_sync() -> None:
    every_order(4, True)


@pytest.mark.soak
def test_every_order_of_six_of_these_batches_survives_every_crash_point() -> None:
    every_order(6, False)


def every_order(longest: int, failing: bool) -> None:
    """All sequences of up to so many of the six batches, sound; then with each of their syncs failing in turn."""
    recoveries = Recoveries()
    runs = judged = 0
    for length in range(1, longest + 1):
        for batches in itertools.product(BATCHES, repeat=length):
            failed = 0  # none
            syncs = 0
            while failed <= syncs:
                points = CrashPoints(SimulatedFiles(), whole, recoveries)
                syncs = with_a_failed_sync(points, list(batches), failed)
                failed += 1
                runs += 1
                judged += points.judged
                if not failing:
                    break
    print(f"{runs} histories, {judged} folders judged, {len(recoveries.found)} different ones")


def with_a_failed_sync(points: CrashPoints, batches: list[Step], failed: int) -> int:
    """How many syncs there were; this one of them, from 1, fails."""
    seen = 0

    def fault(kind: str, name: str) -> int:
        nonlocal seen
        if kind != "sync" or points.world is None:
            return 0
        seen += 1
        return errno.EIO if seen == failed else 0

    points.disk.fault = fault
    try:
        world = watched(points, batches)
    except Violation as error:
        raise AssertionError(f"{[batch.__name__ for batch in batches]}, sync {failed} fails: {error}") from error
    assert world.promised >= len(batches)
    return seen


def test_a_turned_bit_in_synced_data_is_never_taken_for_data() -> None:
    """Refused, or that message's alone, or cut where no header names it as synced (the last commit only), or in
    garbage: never a wrong state."""
    disk = SimulatedFiles()
    world = World(disk, small())
    run_history(world, BATCHES)
    world.publish(b"j" * 50, 1)
    world.end_turn()
    image = disk.synced_image()
    outcomes = {"refused": 0, "one message": 0, "cut": 0, "unharmed": 0}
    rng = random.Random(5)
    for name in sorted(image):
        for at in range(0, len(image[name]), 3):
            damaged = bytearray(image[name])
            damaged[at] ^= 1 << rng.randrange(8)
            try:
                log, recovered = Log.open("/data", SimulatedFiles({**image, name: bytes(damaged)}), small())
                found = found_state(log, recovered)
            except RecordDamaged as error:
                assert "record" in str(error)
                outcomes["one message"] += 1
                continue
            except LogCorrupt as error:
                assert "/data/" in str(error)
                outcomes["refused"] += 1
                continue
            except Exception as error:
                raise AssertionError(f"{name} at {at}: {error!r}") from error
            turn = judge(found, world.history, world.promised - 1, world.lost)
            outcomes["unharmed" if turn == world.promised else "cut"] += 1
    assert outcomes["refused"] > 100 and outcomes["one message"] > 10 and outcomes["cut"] > 0
