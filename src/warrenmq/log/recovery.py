"""From a data folder to the state it stands for.

Duty: read the manifest, find the end of the log, replay what is behind the manifest's position, rebuild the segments'
tables and every queue's index. Reads only: a crash during recovery changes nothing. All definitions are known after
``begin``, which takes next to no time; the messages, which may take minutes, are read a step at a time, so that clients
may come meanwhile. Rules (``docs/log.md``):

- The walk ends at the first batch that does not check. At or beyond the highest position that anything valid names as
  synced it is the torn tail: cut there, and everything behind it, even what checks. Before it, it is corruption:
  refused with file, offset and the command that salvages.
- A file named by a later header as closed at an offset is read up to that offset and no further.
"""

from __future__ import annotations

from typing import Final, final

from librt.strings import read_i32_le, read_i64_le
from librt.vecs import append, vec
from mypy_extensions import i64, u8

from warrenmq.log import clean
from warrenmq.log import manifest as manifests
from warrenmq.log.epochs import KEY, KIND, Epochs, from_text
from warrenmq.log.files import Files
from warrenmq.log.format import BatchHeader, FileHeader, LogCorrupt, read_file_header, seed
from warrenmq.log.holders import AS_WRITTEN, DEAD, Holders
from warrenmq.log.index import QueueIndex
from warrenmq.log.installing import INCOMING
from warrenmq.log.layout import (
    ADDRESS,
    BATCH_HEADER,
    FILE_HEADER,
    HOLDER,
    HOLDER_EXPIRY_AT,
    HOLDER_FLAGS_AT,
    HOLDER_POSITION_AT,
    HOLDER_QUEUE_AT,
    RECORD_BITS,
    SUMMED,
)
from warrenmq.log.ledger import CURE, read_ledger
from warrenmq.log.manifest import Manifest, ManifestSegment, read_whole
from warrenmq.log.reading import end_before
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
from warrenmq.log.scan import DAMAGED, BatchCursor
from warrenmq.log.segment import MANY, Part, Segment, file_name, ledger_name, parse_file_name
from warrenmq.log.shipping import position
from warrenmq.log.state import LogState

STEP: Final = 1 << 20  # octets of the log, some milliseconds


@final
class Recovered:
    """The finds of a start. ``clean``: the last stop was a clean one, so nothing was delivered without being known."""

    def __init__(self) -> None:
        self.epoch: i64 = 1
        self.clean: bool = False
        self.definitions: dict[tuple[str, str], bytes] = {}
        self.queues: dict[int, QueueIndex] = {}
        self.delivered_up_to: dict[int, int] = {}
        self.next_message_id: i64 = 1
        self.cut: str = ""  # where a torn tail was cut, for the log line


@final
class Uncommitted:
    """A batch behind what is known to be on all nodes that count: its place, and what a checkpoint will need of it."""

    def __init__(self, position: i64, number: i64, segment: i64, offset: i64, changes: bytes) -> None:
        self.position: Final = position  # the log's end behind it
        self.number: Final = number
        self.segment: Final = segment  # of the log's end behind it
        self.offset: Final = offset  # of the log's end, in its segment
        self.changes: Final = changes
        self.octets: i64 = len(changes)  # of its payload, as far as it is in memory


@final
class TailSegment:
    """A segment at or behind the manifest's position, as its files' headers describe it."""

    def __init__(self, number: i64) -> None:
        self.number: Final = number
        self.headers: list[FileHeader] = []
        self.end: i64 = -1  # named by the segment behind it


@final
class SegmentReading:
    """A segment whose records are being read."""

    def __init__(self, segment: Segment, holders: Holders, cursor: BatchCursor) -> None:
        self.segment: Final = segment
        self.holders: Final = holders
        self.cursor: Final = cursor


@final
class Recovery:
    """One recovery; afterwards ``recovered`` is the broker's, the rest the log's."""

    def __init__(self, folder: str, files: Files) -> None:
        self.folder: Final = folder
        self.files: Final = files
        self.recovered: Final = Recovered()
        self.state: Final = LogState()
        self.absorbed: LogState = self.state  # what the next checkpoint begins with: as far as is committed
        self.limit: i64 = -1  # batches behind this position are not known to be committed; -1: there are no other nodes
        self.uncommitted: list[Uncommitted] = []
        self.end: i64 = 0  # the position behind the last batch
        self.committed: i64 = 0  # the position behind the last batch that is known to be committed
        self.epochs: Epochs = Epochs()
        self.segments: dict[int, Segment] = {}
        self.chunked: dict[int, vec[i64]] = {}
        self.manifest: Manifest = Manifest(0)
        self.use_marker: bool = True  # False: read everything, whatever a clean stop left
        self.follows: bool = (
            False  # batches may be missing that were known when a segment was rewritten; they will come
        )
        self.last_time: i64 = 0  # of day, in µs, of the newest batch: what was told up to then; 0: not known
        self.fresh: bool = False  # a new folder: the manifest has to be written first
        self.garbage: list[str] = []
        self.damaged: list[int] = []  # addresses of records whose bodies do not check
        self.last_segment: i64 = 0  # the end of the log
        self.last_part: i64 = 0
        self.last_base: i64 = 0
        self.last_end: i64 = 0
        self.synced_segment: i64 = 0  # the highest position that the manifest or a batch names as synced
        self.synced_offset: i64 = 0
        self.highest: i64 = 0  # highest segment number any file has
        self.done_bytes: i64 = 0
        self.total_bytes: i64 = 0
        self._unread: list[int] = []  # segments whose records are still to be read, the last first
        self._reading: SegmentReading | None = None
        self._over: bool = True
        self._queue: i64 = -1
        self._index: QueueIndex = QueueIndex()

    def run(self) -> None:
        self.begin()
        while self.step():
            pass

    def begin(self) -> None:
        """Where the log ends, and every definition; after a clean stop the messages too."""
        names = self.files.names(self.folder)
        if not self._read_manifest(names):
            return
        tail = self._tail_segments(names)
        if clean.NAME in names:
            self.garbage.append(clean.NAME)  # good for one start
            if self.use_marker and self._clean_start(tail):
                return
        self._replay_changes(tail)
        self.recovered.definitions = dict(self.state.definitions)
        known: dict[int, ManifestSegment] = {}
        for entry in self.manifest.segments:
            known[int(entry.number)] = entry
            if entry.number < self.manifest.segment:
                self._old_segment(entry)
        for found in tail:
            segment = self._new_segment(found)
            ledger_of = known.get(int(found.number))
            segment.ledger = 0 if ledger_of is None else ledger_of.ledger
        self._estimate()
        self._unread = sorted(self.segments, reverse=True)
        self._over = False

    def step(self) -> bool:
        """Read about ``STEP`` octets more; says whether anything is left to be read."""
        if self._over:
            return False
        reading = self._reading
        if reading is None:
            if not self._unread:
                self._over = True
                self._link_chunks()
                self._finish()
                return False
            segment = self.segments[self._unread.pop()]
            holders = Holders(self.changes_of(segment))
            cursor = self._cursor(segment.number, segment.parts, segment.end)
            cursor.tolerated = segment.end
            reading = SegmentReading(segment, holders, cursor)
            self._reading = reading
        if not self._read_records(reading):
            self._reading = None
        return True

    def read_bytes(self) -> i64:
        """How much of the segments has been read, of ``total_bytes``."""
        return self.done_bytes if self._reading is None else self.done_bytes + self._reading.cursor.at

    def give_up(self) -> None:
        """Nobody wants to know the rest any more."""
        self._over = True
        if self._reading is not None:
            self._reading.cursor.close()
            self._reading = None

    # --- the manifest and the files

    def _read_manifest(self, names: list[str]) -> bool:
        """False when the folder is new."""
        segments = [name for name in names if parse_file_name(name) is not None]
        if manifests.NAME not in names:
            if segments:
                raise LogCorrupt(f"{self.folder}: segments but no manifest; {CURE}")
            self.manifest = Manifest(self.files.random_id())
            self.fresh = True
            return False
        path = f"{self.folder}/{manifests.NAME}"
        self.manifest = manifests.decode(read_whole(self.files, path), path)
        m = self.manifest
        self.state.begin(m)
        if self.limit >= 0:
            self.absorbed = LogState()
            self.absorbed.begin(m)
        if m.segment > 0:
            self.end = end_before(self.folder, self.files, m.segment, m.offset)
            self.committed = self.end
            self.epochs.wrote(int(m.epoch), 0)
        known = m.definitions.get((KIND, KEY))
        if known is not None:
            self.epochs = from_text(known)
        self.recovered.epoch = m.epoch
        self.last_segment = m.segment
        self.last_end = m.offset
        self.synced_segment = m.segment
        self.synced_offset = m.offset
        return True

    def header_of(self, name: str) -> FileHeader | None:
        path = f"{self.folder}/{name}"
        descriptor = self.files.open(path, False)
        try:
            header = read_file_header(self.files.read(descriptor, FILE_HEADER, 0), path)
        finally:
            self.files.close(descriptor)
        if header is not None and header.log_id != self.manifest.log_id:
            raise LogCorrupt(f"{path}: belongs to another log; move it out of the folder")
        return header

    def _tail_segments(self, names: list[str]) -> list[TailSegment]:
        """The segments at or behind the manifest's position, each with where it was closed."""
        m = self.manifest
        kept = {int(entry.number) for entry in m.segments}
        ledgers = {ledger_name(entry.number, entry.generation) for entry in m.segments}
        by_number: dict[int, TailSegment] = {}
        torn: list[str] = []
        for name in names:
            parsed = parse_file_name(name)
            if parsed is None:
                if name.endswith((".new", ".compact", INCOMING)) or (name.endswith(".ledger") and name not in ledgers):
                    self.garbage.append(name)
                continue
            number, part = parsed
            self.highest = max(self.highest, number)
            if number < m.segment:
                if number not in kept:
                    self.garbage.append(name)
                continue
            header = self.header_of(name)
            if header is None:
                torn.append(name)
                continue
            by_number.setdefault(number, TailSegment(number)).headers.append(header)
            if header.epoch > self.recovered.epoch:
                self.recovered.epoch = header.epoch
        tail = [by_number[number] for number in sorted(by_number)]
        if m.segment > 0 and (not tail or tail[0].number != m.segment):
            raise LogCorrupt(f"{self.folder}/{file_name(m.segment, 0)}: missing, but the manifest needs it; {CURE}")
        if m.segment == 0 and tail and min(tail[0].headers, key=part_of).previous_segment != 0:
            raise LogCorrupt(f"{self.folder}/{file_name(1, 0)}: missing or not readable; {CURE}")
        for index, found in enumerate(tail):
            self._check_chain(found, tail[index + 1] if index + 1 < len(tail) else None)
        self.garbage.extend(torn)  # being made when the power went; a file the chain needs was missed above
        return tail

    def _check_chain(self, found: TailSegment, following: TailSegment | None) -> None:
        """Parts without a gap, closed by the segment behind."""
        headers = sorted(found.headers, key=part_of)
        found.headers = headers
        for part, header in enumerate(headers):
            if header.part != part or header.segment != found.number:
                raise LogCorrupt(f"{self.folder}/{file_name(found.number, part)}: missing or not readable; {CURE}")
        if following is None:
            return
        opening = min(following.headers, key=part_of)
        if opening.part != 0:
            raise LogCorrupt(f"{self.folder}/{file_name(following.number, 0)}: missing or not readable; {CURE}")
        if opening.previous_segment != found.number:
            raise LogCorrupt(
                f"{self.folder}: segment {following.number} follows {opening.previous_segment}, "
                f"but segment {found.number} stands between; {CURE}"
            )
        found.end = opening.previous_end
        # parts begun and never synced stay behind the one that was closed
        found.headers = [header for header in headers if header.part <= opening.previous_part]

    def _clean_start(self, tail: list[TailSegment]) -> bool:
        """Take over the marker of a clean stop. False: it does not fit what stands here, so scan."""
        m = self.manifest
        found = clean.decode(read_whole(self.files, f"{self.folder}/{clean.NAME}"))
        if found is None or found.log_id != m.log_id or found.checkpoint != m.checkpoint:
            return False
        if len(tail) > 1 or (tail and tail[0].number != m.segment):
            return False
        if set(found.segments) != {int(entry.number) for entry in m.segments}:
            return False
        for entry in m.segments:
            header = self.header_of(file_name(entry.number, 0))
            segment = found.segments[int(entry.number)]
            if header is None or header.generation != entry.generation or segment.generation != entry.generation:
                return False
            segment.parts = [Part(part, base) for part, base in entry.parts]
            segment.old = header.version < SUMMED
            segment.end = entry.end
            segment.ledger = entry.ledger
        self.segments = found.segments
        self.chunked = found.chunked
        self.recovered.queues = found.queues
        self.recovered.clean = True
        if m.segments:
            self.last_part, self.last_base = m.segments[-1].parts[-1]
        self._finish()
        return True

    # --- first pass: the end of the log, and all changes behind the manifest's position

    def _replay_changes(self, tail: list[TailSegment]) -> None:
        state = self.state
        for found in tail:
            parts = [Part(header.part, header.base) for header in found.headers]
            last = found.end < 0
            cursor = self._cursor(found.number, parts, found.end)
            cursor.tolerated = self._known_synced(found)
            while cursor.next() or self._synced_all_the_same(cursor):
                header = cursor.header
                self.last_time = max(self.last_time, header.time)
                self._note_synced(header)
                if header.epoch > self.recovered.epoch:
                    self.recovered.epoch = header.epoch
                if header.number > state.batch:
                    state.batch = header.number
                if found.number > self.manifest.segment or cursor.begin >= self.manifest.offset:
                    state.absorb(cursor.changes)
                    self._note_batch(cursor)
            if not last and cursor.at != found.end:
                self._corrupt(cursor)
            if last:
                for header in cursor.headers_behind():
                    self._note_synced(header)
                if self._known_synced(found) > cursor.at:
                    self._corrupt(cursor)
                if (found.number, cursor.at) < (self.synced_segment, self.synced_offset):
                    self._corrupt(cursor)
                where = cursor.file_offset(cursor.at)
                if cursor.problem and cursor.problem != "nothing written" and cursor.file_size > where:
                    self.recovered.cut = f"{cursor.path}: cut at offset {where}: {cursor.problem}"
                found.end = cursor.at
            self.last_segment = found.number
            self.last_part = parts[-1].part
            self.last_base = parts[-1].base
            self.last_end = found.end
            cursor.close()
        state.segment = self.last_segment
        state.offset = self.last_end

    def _note_batch(self, cursor: BatchCursor) -> None:
        """A batch behind the manifest's position: its epoch, and whether a checkpoint may have it in."""
        header = cursor.header
        self.epochs.wrote(int(header.epoch), int(self.end))
        self.end = position(header.segment, cursor.at)
        if self.limit < 0:
            self.committed = self.end
            return
        if self.end > self.limit:
            self.uncommitted.append(Uncommitted(self.end, header.number, header.segment, cursor.at, cursor.changes))
            return
        self.committed = self.end
        absorbed = self.absorbed
        absorbed.absorb(cursor.changes)
        absorbed.segment = header.segment
        absorbed.offset = cursor.at
        absorbed.batch = header.number

    def _known_synced(self, found: TailSegment) -> i64:
        """Up to here everything in this segment was synced, by what has been read so far."""
        if found.end >= 0:
            return found.end
        closed = found.headers[-1].base if found.headers else 0  # the last part's header closed all before it
        return max(closed, self.synced_offset) if self.synced_segment == found.number else closed

    def _synced_all_the_same(self, cursor: BatchCursor) -> bool:
        """In the last segment a damaged body may be a torn one: not if something behind it names it as synced."""
        if cursor.problem != DAMAGED:
            return False
        for header in cursor.headers_behind():
            self._note_synced(header)
        if self.synced_segment != cursor.segment or self.synced_offset <= cursor.tolerated:
            return False
        cursor.tolerated = self.synced_offset
        return cursor.next()

    def _note_synced(self, header: BatchHeader) -> None:
        if (header.synced_segment, header.synced_offset) > (self.synced_segment, self.synced_offset):
            self.synced_segment = header.synced_segment
            self.synced_offset = header.synced_offset

    def _cursor(self, number: i64, parts: list[Part], end: i64) -> BatchCursor:
        return BatchCursor(self.folder, self.files, seed(self.manifest.log_id), number, parts, end)

    def _corrupt(self, cursor: BatchCursor) -> None:
        where = cursor.file_offset(cursor.at) if cursor.parts else 0
        problem = cursor.problem or "the batches end elsewhere"
        cursor.close()
        raise LogCorrupt(f"{cursor.path}: offset {where}: {problem}, where synced data stood; {CURE}")

    # --- second pass: records

    def _old_segment(self, entry: ManifestSegment) -> None:
        segment = Segment(entry.number)
        try:
            header = self.header_of(file_name(entry.number, 0))
        except FileNotFoundError:
            header = None
        if header is None:
            raise LogCorrupt(f"{self.folder}/{file_name(entry.number, 0)}: missing or not readable; {CURE}")
        segment.generation = header.generation
        segment.old = header.version < SUMMED
        segment.manifest_generation = entry.generation
        if header.generation == entry.generation + 1:
            # compacted, and the folder lost power before the next checkpoint: the new file contains the ledger
            segment.parts = [Part(0, 0)]
            segment.end = header.length
        elif header.generation == entry.generation:
            segment.parts = [Part(part, base) for part, base in entry.parts]
            segment.end = entry.end
            segment.ledger = entry.ledger
        else:
            raise LogCorrupt(f"{self.folder}/{file_name(entry.number, 0)}: not the one the manifest names; {CURE}")
        segment.sparse = header.generation > 0
        self.segments[int(entry.number)] = segment

    def _new_segment(self, found: TailSegment) -> Segment:
        segment = Segment(found.number)
        segment.parts = [Part(header.part, header.base) for header in found.headers]
        segment.old = found.headers[0].version < SUMMED
        segment.end = found.end
        self.segments[int(found.number)] = segment
        return segment

    def _estimate(self) -> None:
        for segment in self.segments.values():
            self.total_bytes += segment.end

    def changes_of(self, segment: Segment) -> bytes:
        """All changes that concern this segment's records, in order: its ledger, then what was replayed."""
        data = b""
        if segment.ledger > 0:
            path = f"{self.folder}/{ledger_name(segment.number, segment.generation)}"
            data = read_ledger(self.files, path, segment.ledger)
        pending = self.state.pending.get(int(segment.number))
        return data if pending is None else data + pending.value()

    def _read_records(self, reading: SegmentReading) -> bool:
        """Some batches more; says whether there may be further ones."""
        segment = reading.segment
        cursor = reading.cursor
        enough = cursor.at + STEP
        while cursor.next():
            self.last_time = max(self.last_time, cursor.header.time)
            for record in cursor.damaged:
                self.damaged.append(segment.number << 32 | record)
            if cursor.header.records > 0:
                self._read_batch(segment, cursor, reading.holders)
            if cursor.at >= enough:
                return True
        if cursor.at != segment.end:
            self._corrupt(cursor)
        cursor.close()
        self.done_bytes += segment.end
        self._resolve(segment, reading.holders)
        return False

    def _resolve(self, segment: Segment, holders: Holders) -> None:
        """All records of a segment are known: who holds those that are not as they were written."""
        holders.resolve()
        for record, held in holders.exact.items():
            slot = segment.slot(record)
            if held:
                self._set_references(segment, slot, record, len(held))
                for queue, position, expiry, flags in held:
                    self._entry(queue, position, segment.number << 32 | record, expiry, flags)
        segment.count_bytes()

    def _read_batch(self, segment: Segment, cursor: BatchCursor, holders: Holders) -> None:
        data = cursor.messages
        at: i64 = 0
        end: i64 = len(data)
        base = cursor.begin + BATCH_HEADER
        number = segment.number
        while at < end:
            size = record_size(data, at)
            if size <= 0 or at + size > end:
                raise LogCorrupt(f"{cursor.path}: a record in a batch that checks has no known kind; {CURE}")
            record = number_of(data, at)
            if is_chunk(data[at]):
                self._add(segment, record, base + at, size, 0)
                at += size
                continue
            message_id = message_id_of(data, at)
            if message_id >= self.state.next_message_id:
                self.state.next_message_id = message_id + 1
            kind = holders.classify(record, data, at)
            if is_chunked(data[at]) and kind != DEAD and int(record) not in cursor.damaged:
                self._note_chunks(number << 32 | record, data, at)
            if kind == AS_WRITTEN:
                count = holder_count(data, at)
                self._add(segment, record, base + at, size, count)
                held = holders_start(data, at)
                address = number << 32 | record
                while count > 0:
                    self._entry(
                        i64(read_i32_le(data, held + HOLDER_QUEUE_AT)),
                        read_i64_le(data, held + HOLDER_POSITION_AT),
                        address,
                        read_i64_le(data, held + HOLDER_EXPIRY_AT),
                        i64(read_i32_le(data, held + HOLDER_FLAGS_AT)),
                    )
                    held += HOLDER
                    count -= 1
            else:
                self._add(segment, record, base + at, size, 0)
            at += size

    def _add(self, segment: Segment, record: i64, offset: i64, size: i64, holders: i64) -> None:
        if segment.sparse:
            segment.add_number(record)
        elif record != segment.next_record():
            raise LogCorrupt(
                f"{self.folder}/{file_name(segment.number, 0)}: record {record} where {segment.next_record()} should "
                f"stand; {CURE}"
            )
        segment.add(holders, record)
        segment.place(offset, size)

    def _set_references(self, segment: Segment, slot: i64, record: i64, count: i64) -> None:
        if count < MANY:
            segment.references[slot] = u8(count)
        else:
            segment.references[slot] = u8(MANY)
            segment.many[record] = count
        segment.live += 1

    def _entry(self, queue: i64, position: i64, address: i64, expiry: i64, flags: i64) -> None:
        if queue != self._queue:
            found = self.recovered.queues.get(queue)
            if found is None:
                found = QueueIndex()
                self.recovered.queues[queue] = found
            self._queue = queue
            self._index = found
        self._index.add(position, address, expiry, flags)

    # --- chunks, and what the broker gets

    def _note_chunks(self, address: i64, data: bytes, at: i64) -> None:
        begin = body_start(data, at)
        length = body_length(data, at)
        chunks = vec[i64]()
        index: i64 = 0
        while index < length:
            chunks = append(chunks, read_i64_le(data, begin + index))
            index += ADDRESS
        self.chunked[address] = chunks

    def _link_chunks(self) -> None:
        """The chunks of live messages are live; all others are not. A chunk may belong to several messages. Who follows
        may have a snapshot or a log that was cut, and so lack the batch that settles a message, but not the rewritten
        segment in which its chunks are no more."""
        for address in list(self.chunked):
            segment = self.segments[address >> 32]
            if segment.holders(address & RECORD_BITS) == 0:
                del self.chunked[address]
                continue
            for chunk in self.chunked[address]:
                home = self.segments.get(chunk >> 32)
                if (home is None or not home.refer(chunk & RECORD_BITS)) and not self.follows:
                    raise LogCorrupt(f"{self.folder}: part of message {address:#x} is missing; {CURE}")

    def _finish(self) -> None:
        recovered = self.recovered
        for index in recovered.queues.values():
            index.sort()
        recovered.definitions = dict(self.state.definitions)
        recovered.delivered_up_to = dict(self.state.delivered)
        recovered.next_message_id = self.state.next_message_id
        self.absorbed.next_message_id = self.state.next_message_id


def part_of(header: FileHeader) -> int:
    return int(header.part)
