"""What batches tell beside what they are for: the time of each turn, who published, who was delivered what, and why a
message left its queue."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.log.world import _vec
from warrenmq.log.batch import OpenBatch
from warrenmq.log.event_reader import Witness, tell
from warrenmq.log.events import MOST_BYTES, NOBODY, REDELIVERED, Events, Named
from warrenmq.log.fates import MOST_A_SECOND, Fates
from warrenmq.log.files import Files
from warrenmq.log.format import BatchHeader, seed
from warrenmq.log.log import Log
from warrenmq.log.record import message_id_of
from warrenmq.log.scan import BatchCursor
from warrenmq.log.segment import Part
from warrenmq.log.settings import LogSettings

pytestmark = pytest.mark.pure


class Recording(Witness):
    """A witness that keeps everything."""

    def __init__(self) -> None:
        self.seen: list[tuple[Any, ...]] = []
        self.names: dict[int, bytes] = {}

    def message(self, time: int, address: int, data: bytes, at: int, who: int, number: int) -> None:
        self.seen.append((time, "message", message_id_of(data, at), self.names.get(who, b""), number))

    def entered(self, time: int, queue: int, address: int, position: int) -> None:
        self.seen.append((time, "entered", queue, address & 0xFFFFFFFF, position))

    def left(self, time: int, queue: int, address: int, count: int, cause: int) -> None:
        self.seen.append((time, "left", queue, address & 0xFFFFFFFF, count, cause))

    def came_back(self, time: int, queue: int, address: int, position: int) -> None:
        self.seen.append((time, "came back", queue, address & 0xFFFFFFFF, position))

    def queue_gone(self, time: int, queue: int) -> None:
        self.seen.append((time, "gone", queue))

    def delivered(
        self, time: int, who: int, queue: int, position: int, address: int, count: int, tag: int, flags: int
    ) -> None:
        record = address & 0xFFFFFFFF
        self.seen.append((time, "delivered", self.names[who], queue, position, record, count, tag, flags))

    def named(self, who: int, text: bytes) -> None:
        self.names[who] = text

    def defined(self, kind: str, key: str, value: bytes) -> None:
        self.seen.append(("defined", kind, key, value))

    def undefined(self, kind: str, key: str) -> None:
        self.seen.append(("undefined", kind, key))

    def level(self, time: int, queue: int, vhost: str, level: int, sample: int) -> None:
        self.seen.append(("level", queue, vhost, level, sample))

    def gap(self, since: int, until: int, count: int) -> None:
        self.seen.append(("gap", since, until, count))

    def interrupted(self, since: int, until: int) -> None:
        self.seen.append(("interrupted", since, until))


def opened(folder: Path) -> Log:
    return Log.open(str(folder), Files(), LogSettings())[0]


def told(folder: Path) -> list[tuple[Any, ...]]:
    """Everything that the folder's segments tell, in order."""
    witness = Recording()
    for path in sorted(folder.glob("segment-*.log")):
        number = int(path.name[8:18])
        log_id = int.from_bytes(path.read_bytes()[16:24], "little", signed=True)
        cursor = BatchCursor(str(folder), Files(), seed(log_id), number, [Part(0, 0)], -1)
        while cursor.next():
            tell(cursor.header, cursor.messages, cursor.changes, witness)
    return witness.seen


def publish(log: Log, number: int) -> int:
    address = log.append(number, b"header", b"body", "exchange", b"keys", 0, holders=1)
    log.hold(address, 1, number, 0, 0)
    return address


def test_what_happens_in_a_turn_has_the_turns_time(tmp_path: Path) -> None:
    log = opened(tmp_path)
    log.keep_open()  # several turns in one batch
    log.time = 100
    first = publish(log, 1)
    log.end_turn(False)
    log.time = 200
    publish(log, 2)
    log.settle(1, first)
    log.end_turn(False)
    log.time = 300
    log.requeue(1, first + 1, 9, 0)
    log.hold(first + 1, 2, 1, 0, 0)
    log.let_close()
    log.end_turn(True)
    assert log.close()
    record = first & 0xFFFFFFFF
    assert told(tmp_path) == [
        (100, "message", 1, b"", 0),
        (200, "message", 2, b"", 0),
        (200, "left", 1, record, 1, 0),
        (300, "came back", 1, record + 1, 9),
        (300, "entered", 2, record + 1, 1),
    ]


def test_publishes_and_deliveries_in_a_row_are_one_event_and_are_told_apart_again(tmp_path: Path) -> None:
    log = opened(tmp_path)
    events = log.current.events
    alice, bob = events.name(b"alice"), events.name(b"bob")
    log.time = 5
    addresses = [publish(log, number) for number in range(1, 7)]
    for n, (who, number) in enumerate([(alice, 1), (alice, 2), (alice, 3), (bob, 0), (bob, 0), (alice, 4)]):
        events.published(who, addresses[n], number)
    for n in range(3):
        events.delivered(bob, 1, n + 1, addresses[n], n + 1, 0)
    events.delivered(bob, 1, 4, addresses[3], 4, REDELIVERED)
    events.delivered(bob, 1, 5, addresses[4], 6, REDELIVERED)  # a tag was left out
    log.end_turn(True)
    assert log.close()
    assert told(tmp_path) == [
        (5, "message", 1, b"alice", 1),
        (5, "message", 2, b"alice", 2),
        (5, "message", 3, b"alice", 3),
        (5, "message", 4, b"bob", 0),
        (5, "message", 5, b"bob", 0),
        (5, "message", 6, b"alice", 4),
        (5, "delivered", b"bob", 1, 1, 0, 3, 1, 0),
        (5, "delivered", b"bob", 1, 4, 3, 1, 4, REDELIVERED),
        (5, "delivered", b"bob", 1, 5, 4, 1, 6, REDELIVERED),
    ]


def test_every_segment_names_whom_it_speaks_of(tmp_path: Path) -> None:
    log, _ = Log.open(str(tmp_path), Files(), LogSettings(segment_bytes=4096))
    who = log.current.events.name(b"who")
    for number in range(1, 200):
        address = publish(log, number)
        log.current.events.published(who, address, number)
        log.end_turn(True)
    assert log.close()
    segments = sorted(tmp_path.glob("segment-*.log"))
    assert len(segments) > 3
    for path in segments:
        (alone := tmp_path / path.stem).mkdir()
        (alone / path.name).write_bytes(path.read_bytes())
        assert {one[3] for one in told(alone) if one[1] == "message"} == {b"who"}


def test_a_delivery_alone_is_written_within_a_second_and_nobody_waits_for_it(tmp_path: Path) -> None:
    log = opened(tmp_path)
    address = publish(log, 1)
    log.end_turn(True)
    assert log.flush()
    synced = log.synced
    log.current.events.delivered(log.current.events.name(b"c"), 1, 1, address, 1, 0)
    log.end_turn(False)
    assert log.synced == synced + 1  # such a turn owes the disk nothing
    log.tick(1000)
    log.tick(1900)
    assert not [one for one in told(tmp_path) if one[1] == "delivered"]
    log.tick(2100)
    assert [one for one in told(tmp_path) if one[1] == "delivered"]
    assert log.close()


def test_what_is_in_memory_at_a_clean_stop_is_written(tmp_path: Path) -> None:
    log = opened(tmp_path)
    log.current.events.delivered(log.current.events.name(b"c"), 1, 1, 1 << 32, 1, 0)
    log.end_turn(False)
    assert log.close()
    assert [one[1] for one in told(tmp_path)] == ["delivered"]


def test_events_change_nothing_that_a_start_finds(tmp_path: Path) -> None:
    log = opened(tmp_path)
    events = log.current.events
    who = events.name(b"who")
    addresses = [publish(log, number) for number in range(1, 5)]
    for number, address in enumerate(addresses):
        events.published(who, address, number + 1)
        events.delivered(who, 1, number + 1, address, number + 1, 0)
    log.settle_many(1, _vec(addresses[:2]))
    events.left_out(3)
    log.end_turn(True)
    log.define("queue", "a", b"1")
    log.end_turn(True)
    assert log.close()
    again, found = Log.open(str(tmp_path), Files(), LogSettings())
    assert sorted(found.queues[1].addresses) == addresses[2:]
    assert found.definitions == {("queue", "a"): b"1"}
    assert again.close()


def test_what_does_not_fit_while_the_disk_takes_nothing_is_counted_with_its_time() -> None:
    events = Events()
    events.segment = 1
    who = events.name(b"x" * 1000)
    time = 0
    while len(events.out) <= MOST_BYTES:
        time += 1
        events.published(events.name(b"x" * 100_000), time * 3, 0)
        events.end_turn(time, 0, 0)
    for n in range(10):
        events.published(who, n * 3, 0)
    events.end_turn(time + 1, 0, 0)
    events.delivered(who, 1, 1, 1, 1, 0)
    events.end_turn(time + 5, 0, 0)
    taken = events.take()
    assert len(taken) <= MOST_BYTES + 200_000
    witness = Recording()
    header = BatchHeader(1, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, time)
    tell(header, b"", taken, witness)
    assert witness.seen == [("gap", time + 1, time + 5, 11)]
    events.delivered(who, 1, 1, 1, 1, 0)
    events.end_turn(time + 9, 0, 0)
    tell(header, b"", events.take(), witness)
    assert [one[1] for one in witness.seen[1:]] == ["delivered"]


def test_a_gap_alone_is_written_within_a_second(tmp_path: Path) -> None:
    log = opened(tmp_path)
    log.time = 7
    log.fates.left_out(3)
    log.end_turn(False)
    log.time = 9
    log.fates.left_out(2)
    log.end_turn(False)
    log.tick(1000)
    assert told(tmp_path) == []
    log.tick(2100)
    assert told(tmp_path) == [("gap", 7, 9, 5)]
    assert log.close()


def test_a_thousand_messages_without_a_record_that_are_alike_cost_no_more_than_one() -> None:
    def cost(count: int) -> int:
        batch = OpenBatch(1)
        queue, consumer = Named(7, b"{}"), batch.events.name(b"{}")
        for n in range(1, count + 1):
            batch.unlogged.message(n, b"header", "exchange", b"keys")
            batch.unlogged.entered(queue, n, 1 << 62 | n)
            batch.events.know(queue)
            batch.events.delivered(consumer, 7, n, 1 << 62 | n, n, 0)
            batch.unlogged.left(queue, 1 << 62 | n, 1)
        batch.end_turn(5)
        return len(batch.events.take())

    assert cost(1000) == cost(1) < 300


def test_levels_are_told_again_in_every_segment(tmp_path: Path) -> None:
    log, _ = Log.open(str(tmp_path), Files(), LogSettings(segment_bytes=4096))
    seven, eight = Named(7, b"{}"), Named(8, b"{}")
    log.levels.put(NOBODY, "quiet", 0, 1)
    log.levels.put(seven, "/", 2, 10)
    log.levels.put(eight, "/", 2, 10)
    log.levels.forget(eight, "/")
    for number in range(1, 200):
        publish(log, number)
        log.end_turn(True)
    assert log.close()
    segments = sorted(tmp_path.glob("segment-*.log"))
    assert len(segments) > 3
    for path in segments[:-1]:
        (alone := tmp_path / path.stem).mkdir()
        (alone / path.name).write_bytes(path.read_bytes())
        levels = [one for one in told(alone) if one[0] == "level"]
        assert set(levels) >= {("level", 0, "quiet", 0, 1), ("level", 7, "/", 2, 10)}
        assert (("level", 8, "/", -1, 1) in levels) == (path is segments[0])


def test_no_more_than_so_many_fates_of_transient_messages_are_told_a_second() -> None:
    fates = Fates(Events())
    told = [time for time in range(0, 3_000_000, 500) if fates.allows(time)]
    assert told == [second + n * 500 for second in (0, 1_000_000, 2_000_000) for n in range(MOST_A_SECOND)]


def test_an_event_of_a_later_warren_is_skipped_by_a_start_and_by_whoever_reads(tmp_path: Path) -> None:
    log = opened(tmp_path)
    log.time = 7
    publish(log, 1)
    log.current.events.out.write(bytes([250, 3, 0, 0, 0]) + b"new")
    log.end_turn(True)
    assert log.close()
    assert told(tmp_path) == [(7, "message", 1, b"", 0)]
    again, recovered = Log.open(str(tmp_path), Files(), LogSettings())
    assert again.close() and list(recovered.queues) == [1]


# -- a crash -------------------------------------------------------------------------------------------------------


def interruptions(folder: Path) -> list[tuple[Any, ...]]:
    return [one for one in told(folder) if one[0] == "interrupted"]


def let_go(log: Log) -> None:
    """The process is gone, and with it its lock."""
    log.tail.close()
    log.files.close(log._lock)


def begun(folder: Path, time: int) -> Log:
    """A log whose broker does something at this time, which is on disk."""
    log = opened(folder)
    log.time = time
    log.define("kind", f"key {time}", b"value")
    log.end_turn(True)
    assert log.flush()
    return log


def test_a_start_after_a_crash_says_from_when_to_when_something_may_not_have_been_told(tmp_path: Path) -> None:
    first = begun(tmp_path, 1000)
    let_go(first)
    second = begun(tmp_path, 5000)
    let_go(second)
    assert interruptions(tmp_path) == [("interrupted", 1000, 5000)]
    third = begun(tmp_path, 9000)
    assert interruptions(tmp_path)[-1:] == [("interrupted", 5000, 9000)]
    assert third.close()


def test_a_start_after_a_clean_stop_and_a_new_folder_say_nothing(tmp_path: Path) -> None:
    assert begun(tmp_path, 1000).close({})
    assert interruptions(tmp_path) == []
    assert begun(tmp_path, 5000).close({})
    assert interruptions(tmp_path) == []


def test_a_crash_is_told_though_nothing_happens_after_it(tmp_path: Path) -> None:
    first = begun(tmp_path, 1000)
    let_go(first)
    second = opened(tmp_path)
    second.time = 7000
    second.end_turn(False)
    second.tick(1)
    second.tick(1001)
    assert interruptions(tmp_path) == [("interrupted", 1000, 7000)]
    assert second.close()


def test_a_crash_before_the_crash_was_told_is_one_with_it(tmp_path: Path) -> None:
    first = begun(tmp_path, 1000)
    let_go(first)
    second = opened(tmp_path)
    let_go(second)
    begun(tmp_path, 9000).close()
    assert interruptions(tmp_path) == [("interrupted", 1000, 9000)]


def test_a_crash_is_told_from_the_last_batch_though_that_is_of_an_older_segment(tmp_path: Path) -> None:
    first = begun(tmp_path, 1000)
    while first.maintain(1000):
        pass
    let_go(first)
    second = opened(tmp_path)
    let_go(second)  # nothing was written
    begun(tmp_path, 9000)
    assert interruptions(tmp_path) == [("interrupted", 1000, 9000)]
