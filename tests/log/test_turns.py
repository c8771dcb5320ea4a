"""What the log promises during a turn and about commits: order, grouping, truth about syncs, reading."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.log.disk import SimulatedFiles
from tests.log.world import World, _vec, found_state, restarted, same
from warrenmq.log.files import Files
from warrenmq.log.format import LogError
from warrenmq.log.layout import ENQUEUE_FIXED
from warrenmq.log.log import Log
from warrenmq.log.runner import Runner, Task, ThreadRunner
from warrenmq.log.settings import Listener, LogSettings


class Held(Runner):
    """A runner that does nothing until it is told to."""

    def __init__(self) -> None:
        self.tasks: list[Task] = []

    def submit(self, task: Task) -> bool:
        self.tasks.append(task)
        return False

    def wait(self) -> None:
        for task in self.tasks:
            task.run()

    def finish(self, log: Log) -> None:
        task = self.tasks.pop(0)
        task.run()
        log.done(task.number)


class Seen(Listener):
    def __init__(self) -> None:
        self.batches: list[int] = []

    def synced(self, batch: int) -> None:
        self.batches.append(int(batch))


def put(log: Log, body: bytes, queue: int = 1, position: int = 1) -> int:
    address = int(log.append(1, b"header", body, "exchange", b"key", flags=2, holders=1))
    log.hold(address, queue, position, 0, 0)
    return address


def held_log() -> tuple[Log, Held, Seen, SimulatedFiles]:
    disk = SimulatedFiles()
    log, _ = Log.open("/data", disk, LogSettings())
    committer, seen = Held(), Seen()
    log.attach(seen, committer, Runner())
    return log, committer, seen, disk


def test_a_message_is_read_from_memory_until_it_is_synced_and_from_disk_afterwards() -> None:
    log, committer, _, _ = held_log()
    address = put(log, b"one")
    assert log.read(address).body == b"one"  # its turn is open
    log.end_turn(True)
    assert log.read(address).body == b"one"  # its commit is in flight
    later = put(log, b"two")
    assert [m and m.body for m in log.read_many([address, later])] == [b"one", b"two"]
    committer.finish(log)
    assert log.read(address).body == b"one"
    assert [m and m.body for m in log.read_many([address, later])] == [b"one", b"two"]


def test_what_arrives_during_a_commit_is_one_batch_with_one_sync() -> None:
    log, committer, seen, disk = held_log()
    put(log, b"first")
    log.end_turn(True)
    for n in range(5):
        put(log, b"%d" % n, position=n + 2)
        log.end_turn(True)
    assert len(committer.tasks) == 1, "one commit in flight"
    committer.finish(log)
    assert seen.batches == [1]
    syncs: list[str] = []
    disk.observe = lambda kind, name: syncs.append(kind) if kind == "sync" else None
    committer.finish(log)
    assert seen.batches == [1, 6] and syncs == ["sync"]
    assert not committer.tasks


def test_a_turn_nobody_waits_for_is_synced_within_fifty_milliseconds() -> None:
    log, committer, seen, _ = held_log()
    put(log, b"quiet")
    log.end_turn(False)
    log.tick(1000)
    log.tick(1049)
    assert not committer.tasks
    log.tick(1050)
    committer.finish(log)
    assert seen.batches == [1]


def test_a_turn_that_is_still_open_is_never_committed() -> None:
    log, committer, _, disk = held_log()
    put(log, b"closed")
    log.end_turn(False)
    put(log, b"open", position=2)
    log.tick(1)
    log.tick(1000)
    assert not committer.tasks and log.flush() and not committer.tasks
    log.end_turn(True)
    committer.finish(log)
    assert log.synced == 2


def test_a_turn_without_a_trace_is_synced_at_once() -> None:
    log, committer, seen, _ = held_log()
    assert log.end_turn(True) == 1 and seen.batches == [1]
    put(log, b"x")
    log.end_turn(True)
    log.end_turn(True)  # empty, behind a commit in flight
    assert seen.batches == [1]
    committer.finish(log)
    assert seen.batches[-1] == 3


def test_a_large_batch_is_committed_although_nobody_waits() -> None:
    log, committer, _, _ = held_log()
    for n in range(20):
        put(log, bytes(100_000), position=n + 1)
        log.end_turn(False)
    assert committer.tasks


class Recorder(Files):
    """The real file layer, with every write and sync noted in one sequence with what the log says."""

    def __init__(self, events: list[tuple[str, int]], broken: bool) -> None:
        self.events = events
        self.broken = broken

    def write(self, descriptor: int, parts: list[bytes], offset: int) -> None:
        super().write(descriptor, parts, offset)
        self.events.append(("write", sum(len(part) for part in parts)))

    def sync(self, descriptor: int) -> None:
        if not self.broken:
            super().sync(descriptor)
            self.events.append(("sync", 0))


class RecordedListener(Listener):
    def __init__(self, events: list[tuple[str, int]]) -> None:
        self.events = events

    def synced(self, batch: int) -> None:
        self.events.append(("synced", int(batch)))


def unsynced_reports(events: list[tuple[str, int]]) -> int:
    """How often the log reported a sync while something written had not been synced."""
    dirty = False
    wrong = 0
    for kind, _ in events:
        if kind == "write":
            dirty = True
        elif kind == "sync":
            dirty = False
        elif dirty:
            wrong += 1
    return wrong


@pytest.mark.parametrize("broken", [False, True])
def test_every_report_of_a_sync_is_preceded_by_one_that_covers_it(tmp_path: Path, broken: bool) -> None:
    """... and the check fails when the sync is taken out."""
    events: list[tuple[str, int]] = []
    log, _ = Log.open(str(tmp_path), Recorder(events, broken), LogSettings(segment_bytes=5000))
    log.attach(RecordedListener(events), Runner(), Runner())
    events.clear()
    for n in range(60):
        address = put(log, b"x" * 200, position=n + 1)
        if n % 3:
            log.settle(1, address)
        log.end_turn(n % 4 != 0)
    log.flush()
    assert sum(1 for kind, _ in events if kind == "synced") > 20
    assert (unsynced_reports(events) > 0) == broken


def test_the_commit_thread_posts_one_number_for_each_commit(tmp_path: Path) -> None:
    import queue

    posts: queue.Queue[int] = queue.Queue()
    log, _ = Log.open(str(tmp_path), Files(), LogSettings())
    seen = Seen()
    log.attach(seen, ThreadRunner(posts.put, "log"), ThreadRunner(posts.put, "files"))
    for n in range(20):
        put(log, b"body", position=n + 1)
        log.end_turn(True)
        while log.synced < n + 1:
            log.done(posts.get(timeout=60))
    assert seen.batches == list(range(1, 21))
    assert log.close()


def test_a_commit_that_is_held_begins_when_its_thread_is_let_go(tmp_path: Path) -> None:
    import queue

    posts: queue.Queue[int] = queue.Queue()
    log, _ = Log.open(str(tmp_path), Files(), LogSettings())
    committer = ThreadRunner(posts.put, "log")
    committer.hold()
    log.attach(Seen(), committer, ThreadRunner(posts.put, "files"))
    put(log, b"body")
    log.end_turn(True)
    assert committer.tasks.empty() and log.in_flight is not None
    committer.let_go()
    log.done(posts.get(timeout=60))
    assert log.synced == 1
    assert log.close()


def test_flush_waits_for_the_thread_and_a_late_post_does_no_harm(tmp_path: Path) -> None:
    import queue

    posts: queue.Queue[int] = queue.Queue()
    log, _ = Log.open(str(tmp_path), Files(), LogSettings())
    log.attach(Seen(), ThreadRunner(posts.put, "log"), ThreadRunner(posts.put, "files"))
    put(log, b"body")
    log.end_turn(True)
    assert log.flush() and log.synced == 1
    log.done(posts.get(timeout=60))
    assert log.close()


def test_a_message_for_many_queues_is_written_once_and_dies_with_the_last() -> None:
    disk = SimulatedFiles()
    world = World(disk, LogSettings())
    world.publish(b"shared" * 100, *range(1, 301))
    world.end_turn()
    assert sum(len(inode.current) for inode in disk.names_now.values()) < 1 << 20 | 20_000
    for queue in range(1, 300):
        world.settle(queue)
    world.end_turn()
    log, recovered = Log.open("/data", SimulatedFiles(disk.synced_image()), LogSettings())
    assert list(recovered.queues) == [300]
    world.check_reads()
    world.settle(300)
    assert world.log.segments[1].live == 0


def test_settling_in_runs_and_one_by_one_is_the_same() -> None:
    for order in ("runs", "single", "backwards"):
        disk = SimulatedFiles()
        log, _ = Log.open("/data", disk, LogSettings())
        addresses = [put(log, b"x", queue=1, position=n + 1) for n in range(100)]
        log.end_turn(True)
        gone = addresses[10:90]
        if order == "single":
            for address in gone:
                log.settle(1, address)
        else:
            log.settle_many(1, _vec(gone if order == "runs" else gone[::-1]))
        log.end_turn(True)
        _, recovered = Log.open("/data", SimulatedFiles(disk.synced_image()), LogSettings())
        assert [int(a) for a in recovered.queues[1].addresses] == addresses[:10] + addresses[90:]


def test_what_came_back_is_found_at_its_new_place_with_its_new_flags_however_old_the_news() -> None:
    disk = SimulatedFiles()
    settings = LogSettings(segment_bytes=4000, checkpoint_bytes=1, slack_bytes=0)
    world = World(disk, settings)
    for number in range(40):
        world.publish(bytes([number]) * 300, 1)
        world.end_turn()
    address = world.addresses[(1, 1)]
    for flags in (5, -7):
        new = world.next_position(1)
        world.log.requeue(1, address, new, flags)
        world.end_turn()
        for stage in ("replayed", "in the ledger", "compacted"):
            _, recovered = Log.open("/data", SimulatedFiles(disk.synced_image()), settings)
            index = recovered.queues[1]
            found = (int(index.addresses[-1]), int(index.positions[-1]), int(index.flags[-1]))
            assert found == (address, new, flags), stage
            assert len(index) == len(set(index.addresses)), stage
            if stage == "in the ledger":
                for position in range(2, 12) if flags > 0 else range(12, 30):
                    world.settle(1, position)
                world.end_turn()
            world.maintain()


def test_a_ledger_of_nothing_but_returns_is_compacted_too() -> None:
    disk = SimulatedFiles()
    world = World(disk, LogSettings(segment_bytes=4000, checkpoint_bytes=1, slack_bytes=0))
    world.publish(b"x" * 300, 1)
    for _ in range(3000):
        world.requeue(1)
        world.end_turn()
        world.maintain()
    assert world.log.maintenance.disk_bytes() < 5 * 4000


def test_a_dead_message_cannot_enter_another_queue() -> None:
    log, _ = Log.open("/data", SimulatedFiles(), LogSettings())
    address = put(log, b"x")
    log.settle(1, address)
    with pytest.raises(LogError, match="gone"):
        log.hold(address, 2, 1, 0, 0)


def test_nothing_comes_between_a_message_and_those_it_is_appended_for() -> None:
    log, _ = Log.open("/data", SimulatedFiles(), LogSettings())
    body = log.begin_body()
    address = log.append(1, b"header", b"x", "exchange", b"key", flags=0, holders=2)
    log.hold(address, 1, 1, 0, 0)
    for act in (
        lambda: log.append(2, b"header", b"y", "exchange", b"key", flags=0, holders=1),
        lambda: log.body_chunk(body, b"y"),
        lambda: log.end_turn(True),
    ):
        with pytest.raises(LogError, match="more holders than have been named"):
            act()
    log.hold(address, 2, 1, 0, 0)
    log.end_turn(True)
    assert list(log.queues_of(address)) == [1, 2]


def test_a_message_that_nobody_holds_is_not_appended() -> None:
    log, _ = Log.open("/data", SimulatedFiles(), LogSettings())
    with pytest.raises(LogError, match="for 0 holders"):
        log.append(1, b"header", b"x", "exchange", b"key", flags=0, holders=0)
    put(log, b"x")


@pytest.mark.parametrize("queues", [1, 2, 40])
def test_those_a_message_is_appended_for_stand_in_its_record_and_a_later_one_is_a_change(queues: int) -> None:
    log, _ = Log.open("/data", SimulatedFiles(), LogSettings())
    address = log.append(1, b"header", b"x", "exchange", b"key", flags=0, holders=queues)
    for queue in range(1, queues + 1):
        log.hold(address, queue, 1, 0, 0)
    assert len(log.current.changes) == 0
    log.hold(address, queues + 1, 1, 0, 0)
    assert len(log.current.changes) == ENQUEUE_FIXED


def test_a_long_body_is_kept_in_chunks_and_read_back_whole_or_piece_by_piece() -> None:
    disk = SimulatedFiles()
    settings = LogSettings(chunk_bytes=1000, segment_bytes=4000, checkpoint_bytes=1, slack_bytes=0)
    world = World(disk, settings)
    pieces = [bytes([n]) * 900 for n in range(12)]
    world.publish_in_chunks(pieces, 1, turns_between=True)  # over several segments
    world.end_turn()
    world.publish(b"y" * 5000, 2)  # cut by the log itself
    world.end_turn()
    world.check_reads()
    address = world.addresses[(1, 1)]
    assert world.log.read_parts(address) == pieces
    assert world.log.active.number > 3
    world.maintain()
    world.check_reads()
    log, recovered = Log.open("/data", SimulatedFiles(disk.synced_image()), settings)
    assert same(found_state(log, recovered), world.state, set())
    world.settle(1)
    world.settle(2)
    world.end_turn()
    world.publish(b"z", 3)
    world.end_turn()
    world.maintain()
    assert world.log.maintenance.live_bytes() < 200, "the chunks died with their messages"
    assert not world.log.chunked


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("copies", [1, 300])
def test_the_chunks_that_messages_share_are_written_once_and_die_with_the_last(copies: int, clean: bool) -> None:
    disk = SimulatedFiles()
    settings = LogSettings(chunk_bytes=1000, segment_bytes=4000, checkpoint_bytes=1, slack_bytes=0)
    world = World(disk, settings)
    pieces = [bytes([n]) * 900 for n in range(12)]
    world.publish_in_chunks(pieces, 1, turns_between=True)
    world.end_turn()
    whole = world.log.maintenance.live_bytes()
    for _ in range(copies):
        world.share(1, 1, 2)
    world.end_turn()
    world.settle(1)
    world.end_turn()
    world.maintain()
    world.check_reads()
    assert world.log.maintenance.live_bytes() < whole + copies * 400
    if clean:
        assert world.log.close(world.indexes())
    world = restarted(world, World(SimulatedFiles(disk.synced_image()), settings))
    for left in range(copies, 0, -1):
        if left == 1:
            world.check_reads()
        world.settle(2)
        world.end_turn()
        world.publish(b"z", 3)
        world.end_turn()
        world.settle(3)
        world.maintain()
        assert (not world.log.chunked) == (left == 1)
    assert world.log.maintenance.live_bytes() < 200


def test_a_shared_body_that_is_given_up_leaves_the_other_message_its_own() -> None:
    world = World(SimulatedFiles(), LogSettings(chunk_bytes=1000, segment_bytes=4000, checkpoint_bytes=1))
    world.publish(b"x" * 5000, 1)
    world.publish(b"short", 2)
    assert world.log.share_body(world.addresses[(2, 1)]) == 0
    handle = world.log.share_body(world.addresses[(1, 1)])
    world.end_turn()
    world.log.abandon_body(handle)
    world.publish(b"z", 3)
    world.end_turn()
    world.maintain()
    world.check_reads()


def test_a_body_that_never_became_a_message_leaves_no_trace() -> None:
    disk = SimulatedFiles()
    world = World(disk, LogSettings(segment_bytes=1000, checkpoint_bytes=1))
    handle = world.log.begin_body()
    world.log.body_chunk(handle, b"x" * 3000)
    world.end_turn()
    world.log.abandon_body(handle)
    world.publish(b"y" * 2000, 1)
    world.end_turn()
    world.publish(b"z", 1)
    world.end_turn()
    world.maintain()
    assert 1 not in world.log.segments
    _, recovered = Log.open("/data", SimulatedFiles(disk.synced_image()), LogSettings())
    assert len(recovered.queues[1]) == 2


def test_reading_many_gives_what_reading_one_by_one_gives() -> None:
    rng = random.Random(4)
    world = World(SimulatedFiles(), LogSettings(segment_bytes=20_000, chunk_bytes=2000, checkpoint_bytes=1))
    for n in range(300):
        world.publish(b"%d" % n * rng.randrange(1, 900), 1)
        if rng.random() < 0.3:
            world.settle(1, rng.choice(sorted(world.state.queues[1])))
        if rng.random() < 0.3:
            world.end_turn()
        if rng.random() < 0.05:
            world.maintain()
    addresses = sorted(world.addresses.values())
    assert [m and m.body for m in world.log.read_many(addresses)] == [world.log.read(a).body for a in addresses]
    rng.shuffle(addresses)
    assert [m and m.body for m in world.log.read_many(addresses)] == [world.log.read(a).body for a in addresses]
    world.check_reads()
