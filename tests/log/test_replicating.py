"""A leader's log: what it hands to other nodes, what it waits for, and what it keeps for them."""

from __future__ import annotations

import errno

import pytest

from tests.log.crash_points import small
from tests.log.disk import SimulatedFiles
from tests.log.replicas import Leading, all_batches, content
from tests.log.test_disk_model import BATCHES, run_history
from tests.log.world import State, World, found_state, same
from warrenmq.log.format import LogError
from warrenmq.log.log import Log
from warrenmq.log.recovery import Recovered
from warrenmq.log.replicating import MOST_BATCHES
from warrenmq.log.shipping import position

pytestmark = pytest.mark.pure


def leading() -> Leading:
    return Leading(SimulatedFiles(), small())


def test_a_single_node_commits_and_promises_what_it_has_synced() -> None:
    world = World(SimulatedFiles(), small())
    run_history(world, BATCHES)
    world.end_turn(False)
    assert world.log.synced == world.log.committed == world.log.promised == world.log.batch - 1


def test_a_turn_is_told_when_all_nodes_have_it_and_promised_later() -> None:
    world = leading()
    world.publish(b"a", 1)
    turn = world.end_turn()
    assert world.log.synced == turn
    assert (world.promised, world.log.committed, world.log.promised) == (0, 0, 0)
    world.commit()
    assert (world.promised, world.log.committed, world.log.promised) == (turn, turn, 0)
    world.log.promised_to(world.others.synced_to)
    assert world.log.promised == turn


def test_a_turn_without_a_trace_waits_for_the_turns_before_it() -> None:
    world = leading()
    assert world.end_turn() == world.log.promised == 1
    world.publish(b"a", 1)
    world.end_turn()
    world.end_turn()
    assert world.log.synced == 3
    assert world.log.committed == 1
    world.commit()
    assert (world.log.committed, world.log.promised) == (3, 1)
    world.promise()
    assert world.log.promised == 3


def test_nothing_is_committed_that_the_own_disk_lacks_nor_promised_that_is_not_committed() -> None:
    world = leading()
    world.publish(b"a", 1)
    world.end_turn()
    with pytest.raises(LogError, match="own disk"):
        world.log.committed_to(world.others.synced_to + 1)
    with pytest.raises(LogError, match="is committed"):
        world.log.promised_to(world.others.synced_to)


def test_what_is_handed_over_is_what_stands_on_the_disk_and_can_be_read_back() -> None:
    world = leading()
    world.log.hold_back(0, 1 << 30)
    run_history(world, BATCHES)
    world.commit()
    world.maintain()
    assert [content(batch) for batch in all_batches(world.log)] == [content(b) for b in world.others.submitted]
    assert len(world.others.submitted) == len(BATCHES)
    assert world.log.end_position() == world.log.synced_position() == world.others.submitted[-1].end()
    assert len({batch.segment for batch in world.others.submitted}) >= 3


def test_segments_that_nobody_lacks_are_not_held_back_and_no_longer_readable() -> None:
    world = leading()
    run_history(world, BATCHES)
    for _ in range(3):
        world.publish(b"x" * 300, 1)
        world.end_turn()
        world.settle(1)
        world.end_turn()
        world.commit()
        world.maintain()
    first = world.log.readable_from()
    assert first > 0
    assert [content(b) for b in all_batches(world.log)] == [
        content(batch) for batch in world.others.submitted if batch.follows >= first
    ]
    with pytest.raises(LogError, match="not there"):
        world.log.reading(0, world.log.end_position())


def test_a_checkpoint_has_nothing_in_it_that_is_not_committed() -> None:
    world = leading()
    committed = 0
    for index, batch in enumerate(BATCHES * 3):
        batch(world)
        world.end_turn()
        if index % 4 == 3:
            world.commit()
            committed = world.others.synced_to
        world.maintain()
        manifest = world.log.maintenance.manifest
        assert position(manifest.segment, manifest.offset) <= committed
    assert world.log.maintenance.checkpoints > 2
    assert world.log.close()
    assert position(manifest.segment, manifest.offset) <= committed


def test_nothing_that_died_in_uncommitted_turns_is_removed() -> None:
    """Another leader may cut those turns off: what they settled is alive again then."""
    world = leading()
    world.publish(b"a" * 800, 1)
    world.publish(b"b" * 800, 2)
    world.end_turn()
    world.publish(b"c" * 800, 2)
    world.end_turn()
    world.publish(b"d" * 800, 2)
    world.end_turn()
    world.commit()
    world.maintain()
    files = world.files
    assert isinstance(files, SimulatedFiles)
    names = files.names("/data")
    world.settle(1)
    world.settle(2)
    world.end_turn()
    world.maintain()
    assert [name for name in names if name.endswith(".log") and name not in files.names("/data")] == []
    world.commit()
    world.maintain()
    assert "segment-0000000001.log" not in files.names("/data")


def test_with_very_much_under_way_no_further_batch_is_closed() -> None:
    world = leading()
    for _ in range(MOST_BATCHES + 10):
        world.publish(b"a", 1)
        world.end_turn()
    assert len(world.others.submitted) == MOST_BATCHES
    world.log.tick(10_000)
    world.log.tick(20_000)
    assert len(world.others.submitted) == MOST_BATCHES
    world.promise()
    assert len(world.others.submitted) == MOST_BATCHES + 1
    world.promise()
    assert world.log.promised == world.log.batch - 1


def failing(world: Leading, times: int) -> None:
    """The disk fails so many syncs from now on."""
    files = world.files
    assert isinstance(files, SimulatedFiles)
    left = times

    def fault(kind: str, name: str) -> int:
        nonlocal left
        if kind == "sync" and left:
            left -= 1
            return errno.EIO
        return 0

    files.fault = fault


def test_a_batch_that_goes_to_another_file_is_the_same_batch_and_handed_over_once() -> None:
    world = leading()
    batch_of(world, b"a")
    failing(world, 1)
    batch_of(world, b"b")
    batch_of(world, b"c")
    world.commit()
    assert [content(b) for b in all_batches(world.log)] == [content(b) for b in world.others.submitted]
    assert len(world.others.submitted) == 3
    assert not world.failures


def batch_of(world: World, body: bytes) -> None:
    world.publish(body * 50, 1)
    world.end_turn()


def test_what_nobody_has_seen_may_be_replaced_when_the_disk_takes_it_at_last() -> None:
    world = leading()
    batch_of(world, b"a")
    failing(world, 2)
    batch_of(world, b"b")
    assert world.failures and world.log.failing and not world.log.over
    assert len(world.others.submitted) == 1
    assert world.log.end_position() == world.others.synced_to
    world.log.retry()
    batch_of(world, b"c")
    world.promise()
    assert not world.log.failing
    assert world.log.promised == world.log.batch - 1
    assert [content(b) for b in all_batches(world.log)] == [content(b) for b in world.others.submitted]


def test_what_others_have_seen_is_never_replaced_and_the_log_is_over() -> None:
    world = leading()
    batch_of(world, b"a")
    world.promise()
    world.others.gives_back = False
    failing(world, 2)
    batch_of(world, b"b")
    files = world.files
    assert isinstance(files, SimulatedFiles)
    assert world.log.over and not world.failures
    operations = files.operations
    batch_of(world, b"c")
    world.log.tick(10_000)
    world.log.retry()
    world.maintain()
    assert not world.log.flush()
    assert files.operations == operations, "something was written"
    assert world.log.promised == 1


def test_an_epoch_begins_with_a_batch_that_says_where_each_epoch_began() -> None:
    world = leading()
    world.log.begin_epoch()
    batch_of(world, b"a")
    world.promise()
    world.maintain()
    assert [batch.epoch for batch in world.others.submitted] == [1, 1]
    assert world.log.close()
    log, recovered = Log.open("/data", world.files, small())
    assert recovered.definitions[("cluster", "epochs")] == b'{"epochs": [[1, 0]]}'
    assert same(found_state_but(log, recovered), world.state, set())


def found_state_but(log: Log, recovered: Recovered) -> State:
    """What was found, but for what the log says of itself."""
    state = found_state(log, recovered)
    state.definitions.pop(("cluster", "epochs"))
    return state
