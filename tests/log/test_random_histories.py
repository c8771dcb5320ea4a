"""Long histories at random: operations, faults, crashes and restarts in any order.

The short ones, exhaustively: ``test_disk_model.py``.
"""

from __future__ import annotations

import errno
import random
from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.log.crash_points import CrashPoints, small, started
from tests.log.disk import SimulatedFiles
from tests.log.world import World, restarted

Step = Callable[[World], None]

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
        lambda w: w.bury(1 + w.message_id % 4, 1 + (w.message_id + 2) % 4),
        lambda w: w.requeue(1 + w.message_id % 4),
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
        lambda w: w.log.tick(w.log.now + 60),
    ]
)


HISTORIES = (
    st.lists(OPERATIONS, min_size=20, max_size=150),
    st.integers(0, 2**32),
    st.sets(st.integers(5, 250), max_size=6),
    st.integers(0, 2),
)
SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]


@settings(max_examples=40, suppress_health_check=SLOW)
@given(*HISTORIES)
def test_long_random_histories_survive_crashes_and_faults(
    operations: list[Step], seed: int, faults: set[int], restarts: int
) -> None:
    live_through(operations, seed, faults, restarts)


@pytest.mark.soak
@settings(max_examples=20_000, suppress_health_check=SLOW)
@given(*HISTORIES)
def test_very_many_random_histories_survive_crashes_and_faults(
    operations: list[Step], seed: int, faults: set[int], restarts: int
) -> None:
    live_through(operations, seed, faults, restarts)


def full_at(disk: SimulatedFiles, operations: set[int], kind: str, name: str) -> int:
    """What the disk says when it is asked: it has no room at these operations."""
    return errno.ENOSPC if disk.operations in operations else 0


def live_through(operations: list[Step], seed: int, faults: set[int], restarts: int) -> None:
    rng = random.Random(seed)
    disk = SimulatedFiles()
    world = World(disk, small())
    for _ in range(restarts + 1):
        CrashPoints(disk, lambda disk: disk.images(2, rng), before=world)
        disk.fault = partial(full_at, disk, faults)
        for operation in operations:
            operation(world)
            if rng.random() < 0.2:
                world.check_reads()
        world.end_turn(rng.random() < 0.5)
        if rng.random() < 0.5:
            disk = SimulatedFiles(rng.choice(list(disk.images(8, rng))))
        elif rng.random() < 0.5:
            disk.lose_writeback()
        # else the process is killed: the same disk, with all that is not synced yet
        world = restarted(world, started(disk))
