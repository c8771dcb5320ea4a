"""A follower's knowledge of its log, kept up to date: what a start would have to read all segments for.

Duty: the tables of the segments and what each queue holds, as far as batches are committed; and the follower's own
housekeeping on them (checkpoints, removal, compaction: ``Maintenance``, as on a leader). Its node then leads without a
scan (``found``). Not here: batches on their way to the disk (``replica``).

Invariants:
- Only what is committed is taken in, so nothing has to be taken out again. What a start found is in the tables at once,
  committed or not; where that is cut, all of this is made anew from the disk.
- A part of a long body counts as held until its message claims it, or an epoch begins: the leader whose client was
  sending it is gone then, and the message cannot come any more.
"""

from __future__ import annotations

from typing import Final, final

from librt.strings import read_i32_le, read_i64_le
from librt.vecs import append, vec
from mypy_extensions import i64

from warrenmq.log.batch import Sealed
from warrenmq.log.change import change_size
from warrenmq.log.core import Core
from warrenmq.log.epochs import Epochs
from warrenmq.log.files import Files
from warrenmq.log.layout import (
    ADDRESS,
    ADDRESS_AT,
    BATCH_HEADER,
    DROP,
    ENQUEUE,
    ENQUEUE_EXPIRY_AT,
    ENQUEUE_FLAGS_AT,
    ENQUEUE_POSITION_AT,
    HOLDER,
    HOLDER_EXPIRY_AT,
    HOLDER_FLAGS_AT,
    HOLDER_POSITION_AT,
    HOLDER_QUEUE_AT,
    QUEUE_AT,
    RECORD_BITS,
    REQUEUE,
    REQUEUE_FLAGS_AT,
    REQUEUE_POSITION_AT,
    RUN_COUNT_AT,
    SETTLE,
    SETTLE_RUN,
)
from warrenmq.log.maintenance import Maintenance
from warrenmq.log.outage import Outage
from warrenmq.log.record import (
    body_length,
    body_start,
    holder_count,
    holders_start,
    is_chunk,
    is_chunked,
    message_id_of,
    number_of,
    record_size,
)
from warrenmq.log.recovery import Recovery, Uncommitted
from warrenmq.log.replica.rows import Rows, rows_of
from warrenmq.log.segment import Part, Segment
from warrenmq.log.settings import LogSettings
from warrenmq.log.shipping import position, segment_of
from warrenmq.log.tail import Tail

FIRST_TASK: Final = 1 << 40  # its tasks have numbers that no work of the replica's has
KEPT_SEGMENTS: Final = 4  # stay as they were written: who comes back may ask this node, should it lead by then


@final
class Warm(Core):
    """Tables that follow the log."""

    def __init__(self, folder: str, files: Files, settings: LogSettings, found: Recovery) -> None:
        super().__init__(folder, files, settings, found)
        del self.segments[self.active.number]  # nothing is appended here
        last = max(segment_of(found.end), found.manifest.segment)
        for number in list(self.segments):
            if number > last:
                del self.segments[number]  # begun, and stayed without a batch: the replica removes its file
        self.active = Segment(0)
        self._segment = self.active
        self.next_task = FIRST_TASK
        self.highest: i64 = found.highest
        self.last_message_id: i64 = found.state.next_message_id - 1
        self.queues: dict[int, Rows] = {}
        for queue, index in found.recovered.queues.items():
            self.queues[queue] = rows_of(index)
        self.last_time: i64 = found.last_time  # of day, of the newest batch (µs)
        self.epoch_taken: i64 = -1  # of the last batch that was taken in
        self.unclaimed: set[int] = set()  # parts of bodies whose message has not come
        self.maintenance: Final = Maintenance(self, Outage(self), found)
        self.maintenance.reserved = True  # room is held back by who leads
        self._queue: i64 = -1
        self._rows: Rows = Rows()

    # --- batches

    def takes(self, sealed: Sealed) -> None:
        """A committed batch."""
        if sealed.segment not in self.segments:
            self.segments[sealed.segment] = Segment(sealed.segment)
            self.highest = max(self.highest, sealed.segment)
        segment = self.find(sealed.segment)
        if sealed.epoch != self.epoch_taken:
            self.forget_unclaimed()
            self.epoch_taken = sealed.epoch
        self.batch = sealed.number
        self.last_time = max(self.last_time, sealed.time)
        self._records(segment, sealed)
        self._changes(sealed.changes)
        segment.end = sealed.at + sealed.size()
        self.batch = sealed.number + 1
        self.synced = self.committed = self.promised = sealed.number

    def _records(self, segment: Segment, sealed: Sealed) -> None:
        data = sealed.messages
        base = sealed.at + BATCH_HEADER
        at: i64 = 0
        end: i64 = len(data)
        while at < end:
            size = record_size(data, at)
            record = number_of(data, at)
            address = segment.number << 32 | record
            if is_chunk(data[at]):
                segment.add(1, record)
                segment.place(base + at, size)
                self.unclaimed.add(address)
                at += size
                continue
            self.last_message_id = max(self.last_message_id, message_id_of(data, at))
            count = holder_count(data, at)
            segment.add(count, record)
            segment.place(base + at, size)
            if is_chunked(data[at]) and count > 0:
                self._claim(address, data, at)
            held = holders_start(data, at)
            while count > 0:
                self.rows(i64(read_i32_le(data, held + HOLDER_QUEUE_AT))).add(
                    read_i64_le(data, held + HOLDER_POSITION_AT),
                    address,
                    read_i64_le(data, held + HOLDER_EXPIRY_AT),
                    i64(read_i32_le(data, held + HOLDER_FLAGS_AT)),
                )
                held += HOLDER
                count -= 1
            at += size

    def _claim(self, address: i64, data: bytes, at: i64) -> None:
        """The parts of this message's body are its own now, or one message's more."""
        begin = body_start(data, at)
        length = body_length(data, at)
        chunks = vec[i64]()
        index: i64 = 0
        while index < length:
            chunk = read_i64_le(data, begin + index)
            chunks = append(chunks, chunk)
            if int(chunk) in self.unclaimed:
                self.unclaimed.discard(chunk)
            else:
                home = self.segments.get(chunk >> 32)
                if home is not None:
                    home.refer(chunk & RECORD_BITS)
            index += ADDRESS
        self.chunked[address] = chunks

    def _changes(self, data: bytes) -> None:
        at: i64 = 0
        end: i64 = len(data)
        while at < end:
            kind = data[at]
            if kind == SETTLE or kind == SETTLE_RUN:
                address = read_i64_le(data, at + ADDRESS_AT)
                count: i64 = 1
                if kind == SETTLE_RUN:
                    count = i64(read_i32_le(data, at + RUN_COUNT_AT))
                rows = self.rows(i64(read_i32_le(data, at + QUEUE_AT)))
                while count > 0:
                    if rows.settle(address):
                        self._release(address)
                    address += 1
                    count -= 1
            elif kind == ENQUEUE:
                address = read_i64_le(data, at + ADDRESS_AT)
                if self.find(address >> 32).hold(address & RECORD_BITS):
                    self.rows(i64(read_i32_le(data, at + QUEUE_AT))).add(
                        read_i64_le(data, at + ENQUEUE_POSITION_AT),
                        address,
                        read_i64_le(data, at + ENQUEUE_EXPIRY_AT),
                        i64(read_i32_le(data, at + ENQUEUE_FLAGS_AT)),
                    )
            elif kind == REQUEUE:
                self.rows(i64(read_i32_le(data, at + QUEUE_AT))).requeue(
                    read_i64_le(data, at + ADDRESS_AT),
                    read_i64_le(data, at + REQUEUE_POSITION_AT),
                    i64(read_i32_le(data, at + REQUEUE_FLAGS_AT)),
                )
            elif kind == DROP:
                dropped = self.queues.pop(int(read_i32_le(data, at + QUEUE_AT)), None)
                self._queue = -1
                if dropped is not None:
                    for address in dropped.held():
                        self._release(address)
            at += change_size(data, at)

    def rows(self, queue: i64) -> Rows:
        if queue != self._queue:
            found = self.queues.get(queue)
            if found is None:
                found = Rows()
                self.queues[queue] = found
            self._queue = queue
            self._rows = found
        return self._rows

    def _release(self, address: i64) -> None:
        """One queue less holds it. With the last one, the parts of its body go too."""
        segment = self.find(address >> 32)
        if not segment.release(address & RECORD_BITS):
            return
        segment.dead_at = max(segment.dead_at, self.batch)
        if self.chunked and int(address) in self.chunked:
            for chunk in self.chunked.pop(address):
                self._release_chunk(chunk)

    def _release_chunk(self, chunk: i64) -> None:
        home = self.segments.get(chunk >> 32)
        if home is not None and home.release(chunk & RECORD_BITS):
            home.dead_at = max(home.dead_at, self.batch)

    def forget_unclaimed(self) -> None:
        for chunk in self.unclaimed:
            self._release_chunk(chunk)
        self.unclaimed.clear()

    # --- the disk

    def files_are(self, parts: dict[int, list[Part]]) -> None:
        """Which files the last segments consist of now."""
        for number, listed in parts.items():
            segment = self.segments.get(number)
            if segment is not None and segment.generation == 0:
                segment.parts = listed[:]

    def maintain(self, now_ms: i64, budget_ms: i64) -> bool:
        """Some of the housekeeping. True when there is more to do."""
        self.now = now_ms
        self.maintenance.last_message_id = self.last_message_id
        self.maintenance.lagging(1, KEPT_SEGMENTS * self.settings.segment_bytes)
        return self.maintenance.run(budget_ms)

    def done(self, number: i64) -> None:
        task = self.tasks.pop(number, None)
        if task is not None:
            self.maintenance.done(task)

    def wait(self) -> None:
        """Until no housekeeping is under way. What was begun and not finished is given up."""
        self.maintenance.wait()
        self.maintenance.compaction = None

    def close(self) -> None:
        self.wait()
        self.reader.close()

    # --- the end of following

    def found(self, tail: Tail, end: i64, committed: i64, epochs: Epochs, left: list[Uncommitted]) -> Recovery | None:
        """What a scan of the folder would find; ``left`` is in the tables and not committed. None: only a scan knows,
        as the last checkpoint is in doubt."""
        maintenance = self.maintenance
        if maintenance.doubtful is not None:
            return None
        self.forget_unclaimed()
        maintenance.last_message_id = self.last_message_id
        maintenance.absorb_all()
        found = Recovery(self.folder, self.files)
        absorbed = maintenance.state
        found.manifest = maintenance.manifest
        found.absorbed = absorbed
        state = found.state
        state.definitions = dict(absorbed.definitions)
        state.delivered = dict(absorbed.delivered)
        state.batch = absorbed.batch
        for batch in left:
            state.absorb(batch.changes)
            state.batch = batch.number
        state.next_message_id = max(state.next_message_id, self.last_message_id + 1)
        absorbed.next_message_id = state.next_message_id
        found.uncommitted = left
        found.end = end
        found.committed = committed
        found.epochs = epochs.copy()
        found.segments = self.segments
        found.chunked = self.chunked
        found.highest = max(self.highest, max(tail.segment, tail.open_segment))
        found.last_segment = tail.segment
        found.last_part = tail.part
        found.last_end = tail.end
        found.last_time = self.last_time
        recovered = found.recovered
        for queue, rows in self.queues.items():
            index = rows.index()
            if len(index) > 0:
                recovered.queues[queue] = index
        recovered.definitions = dict(state.definitions)
        recovered.delivered_up_to = dict(state.delivered)
        recovered.next_message_id = state.next_message_id
        return found


def uncommitted(sealed: Sealed) -> Uncommitted:
    """A batch that is in the log and not known to be on all nodes that count."""
    offset = sealed.at + sealed.size()
    end = position(sealed.segment, offset)
    batch = Uncommitted(end, sealed.number, sealed.segment, offset, sealed.changes)
    batch.octets = len(sealed.messages) + len(sealed.changes)
    return batch
