"""A committed log goes to another node as a whole: all of it or none, and nothing that is not committed."""

from __future__ import annotations

import errno
import random
from collections.abc import Iterator

import pytest

from tests.log.crash_points import Images, Violation, small
from tests.log.cuts import Image, whole
from tests.log.disk import SimulatedFiles
from tests.log.replicas import Following, Leading, NumberedFiles, led, promoted
from tests.log.test_disk_model import BATCHES
from tests.log.test_replica import state_of
from tests.log.walk import Later
from tests.log.world import State, same
from warrenmq.log import snapshot
from warrenmq.log.format import LogCorrupt, LogError
from warrenmq.log.replica.replica import Replica
from warrenmq.log.runner import Runner

pytestmark = pytest.mark.pure


def leader(committed: int) -> tuple[Leading, list[State]]:
    """A leader with checkpoints and compacted segments, of whose last turns only so many are committed."""
    world = Leading(NumberedFiles(), small())
    world.log.begin_epoch()
    for batch in BATCHES * 3:
        batch(world)
        world.end_turn()
        world.commit()
        world.maintain()
    assert world.log.maintenance.compactions
    states = [world.history[int(world.log.batch) - 1]]
    for batch in BATCHES[:3]:
        batch(world)
        world.end_turn()
        if committed:
            world.commit()
            committed -= 1
        states.append(world.history[int(world.log.batch) - 1])
    return world, states


def send(plan: snapshot.Snapshot, following: Following, most: int = 100) -> None:
    incoming = following.replica.receive()
    for piece in plan.pieces(most):
        incoming.piece(piece.name, piece.offset, piece.data)
    incoming.finish(plan.manifest)


def planned(world: Leading) -> snapshot.Snapshot:
    plan = snapshot.plan(world.log)
    assert plan is not None
    return plan


@pytest.mark.parametrize("committed", [0, 1, 3])
def test_a_snapshot_is_the_log_as_far_as_it_is_committed(committed: int) -> None:
    world, states = leader(committed)
    plan = planned(world)
    following = Following(NumberedFiles())
    node = following.replica.node
    send(plan, following)
    following.replica.close()
    snapshot.release(world.log)
    following = Following(following.files)
    assert following.replica.node == node
    assert following.replica.log_id == plan.log_id
    assert following.replica.end == plan.position == world.log.committed_position()
    assert following.replica.epochs.numbers == plan.epochs.numbers == [1]
    log, recovered = promoted(following.replica, 2)
    assert same(state_of(log, recovered), states[committed], set())


def test_a_node_goes_on_behind_its_snapshot_with_what_the_leader_wrote() -> None:
    world, states = leader(1)
    plan = planned(world)
    following = Following(NumberedFiles())
    send(plan, following)
    snapshot.release(world.log)
    following.replica.close()
    following = Following(following.files)
    assert following.take([batch for batch in world.others.submitted if batch.follows >= plan.position])
    assert following.replica.end == world.log.end_position()
    following.cut(plan.position)
    assert following.take([batch for batch in world.others.submitted if batch.follows >= plan.position])
    new = led(following.replica, 2, world)
    assert same(new.state, states[3], set())
    new.publish(b"and on", 1)
    new.end_turn()
    new.commit()
    new.maintain()
    new.check_reads()


def test_nothing_is_removed_or_rewritten_while_a_snapshot_is_held() -> None:
    world, _ = leader(3)
    plan = planned(world)
    for queue in (1, 2, 3):
        world.purge(queue)
    world.publish(b"x" * 2000, 1)
    world.end_turn()
    world.commit()
    world.maintain()
    following = Following(NumberedFiles())
    send(plan, following)
    snapshot.release(world.log)
    world.maintain()
    assert any(name not in world.files.names("/data") for name, _ in plan.files)


def test_a_snapshot_does_not_come_over_a_log_nor_out_of_order_nor_out_of_the_folder() -> None:
    world, _ = leader(3)
    following = Following(NumberedFiles())
    incoming = following.replica.receive()
    name = "segment-0000000001.log"
    for bad in ("../manifest", "manifest", "node", "segment-1.log", name + ".incoming", "x/" + name):
        with pytest.raises(LogCorrupt):
            incoming.piece(bad, 0, b"x")
    incoming.piece(name, 0, b"abc")
    with pytest.raises(LogCorrupt, match="should have"):
        incoming.piece(name, 4, b"d")
    with pytest.raises(LogCorrupt, match="did not come"):
        incoming.finish(planned(world).manifest)
    incoming.abandon()
    assert not [left for left in following.files.names("/data") if "segment" in left]
    following.replica.adopt(int(world.log.maintenance.manifest.log_id))
    follower_with_log = Following(NumberedFiles())
    follower_with_log.replica.adopt(int(world.log.maintenance.manifest.log_id))
    first = Leading(NumberedFiles(), small())
    first.publish(b"a", 1)
    first.end_turn()
    other = Following(NumberedFiles())
    other.replica.adopt(int(first.log.maintenance.manifest.log_id))
    assert other.take(first.others.submitted)
    with pytest.raises(LogError, match="empty log"):
        other.replica.receive()


def test_a_snapshot_waits_for_the_cut_that_empties_the_log() -> None:
    world, _ = leader(3)
    following = Following(NumberedFiles())
    following.replica.adopt(int(world.log.maintenance.manifest.log_id))
    first = Leading(NumberedFiles(), small())
    first.publish(b"a", 1)
    first.end_turn()
    following.replica.adopt(int(first.log.maintenance.manifest.log_id))
    assert following.take(first.others.submitted)
    later = Later()
    following.replica.attach(following.heard, later, Runner())
    later.done = following.replica.done
    following.cut(0)
    assert later.task is not None
    plan = planned(world)
    send(plan, following)
    following.replica.close()
    assert Following(following.files).replica.end == plan.position


class Watched:
    """Every folder that a crash may leave while one log takes the place of another."""

    def __init__(
        self, files: SimulatedFiles, before: tuple[int, int], after: tuple[int, int], images: Images = whole
    ) -> None:
        self.files = files
        self.images = images
        self.allowed = {before, after}  # (log, end)
        self.seen: dict[int, tuple[int, int]] = {}
        self.ends: set[tuple[int, int]] = set()
        files.observe = self.look

    def look(self, kind: str, name: str) -> None:
        for image in self.images(self.files):
            key = hash(frozenset(image.items()))
            if key not in self.seen:
                self.seen[key] = self.found(image, f"before {kind} {name} ({self.files.operations})")
                self.ends.add(self.seen[key])

    def found(self, image: Image, where: str) -> tuple[int, int]:
        try:
            replica = Replica.open("/data", NumberedFiles(image), small())
            found = (int(replica.log_id) if replica.end else 0, int(replica.end))
            if replica.end:
                replica.promote(9)
        except LogError as error:
            raise Violation(f"{where}: {error}") from error
        if found not in self.allowed:
            raise Violation(f"{where}: {found}, not one of {self.allowed}")
        return found


def test_every_crash_while_a_snapshot_comes_leaves_nothing_or_all_of_it() -> None:
    world, _ = leader(3)
    plan = planned(world)
    following = Following(NumberedFiles())
    watched = Watched(following.files, (0, 0), (plan.log_id, plan.position))
    send(plan, following, 4 << 20)
    watched.look("the end", "")
    assert watched.ends == watched.allowed


def some(disk: SimulatedFiles) -> Iterator[Image]:
    """A few of the folders that a crash may leave: so many names change at once that all of them are too many."""
    return disk.images(6, random.Random(disk.operations))


def test_a_snapshot_whose_arrival_fails_anywhere_comes_again() -> None:
    world, _ = leader(3)
    plan = planned(world)
    plain = Following(NumberedFiles())
    begun = plain.files.operations
    send(plan, plain, 4 << 20)
    for at in range(begun, plain.files.operations):
        following = Following(NumberedFiles())
        files = following.files
        files.fault = lambda kind, name, at=at, files=files: errno.EIO if files.operations == at + 1 else 0  # type: ignore[misc]
        with pytest.raises(OSError, match="cannot"):
            send(plan, following, 4 << 20)
        following.replica.close()
        watched = Watched(files, (0, 0), (plan.log_id, plan.position), some)
        following = Following(files)
        if not following.replica.end:
            send(plan, following, 4 << 20)
            following.replica.close()
            following = Following(files)
        watched.look("the end", "")
        assert following.replica.end == plan.position


def test_every_crash_while_a_log_is_given_up_leaves_it_or_none_under_a_new_number() -> None:
    world, _ = leader(3)
    plan = planned(world)
    following = Following(NumberedFiles())
    send(plan, following, 4 << 20)
    following.replica.close()
    following = Following(following.files)
    node = following.replica.node
    watched = Watched(following.files, (0, 0), (plan.log_id, plan.position))
    following.replica.renew(0)
    watched.look("the end", "")
    assert watched.ends == watched.allowed
    for image in whole(following.files):
        assert Replica.open("/data", NumberedFiles(image), small()).node != node
