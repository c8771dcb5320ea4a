"""Reading batches back from the segments, for a node that lacks them.

Duty: from which position on a log still has its batches as they were written, and the batches from there, each checked
before it is handed out. A reading is made on the broker's thread, and read on any one thread: segments that are held
back (``maintenance``) are neither removed nor rewritten, and what stands in them never changes. Not here: what is done
with a batch.
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from warrenmq.log.files import Files
from warrenmq.log.format import LogCorrupt, LogError, read_file_header, seed
from warrenmq.log.layout import FILE_HEADER
from warrenmq.log.scan import BatchCursor
from warrenmq.log.segment import Part, Segment, file_name
from warrenmq.log.shipping import ShippedBatch, offset_of, position, segment_of


def end_before(folder: str, files: Files, segment: i64, offset: i64) -> i64:
    """The position behind the last batch before this place: a segment may have been begun without one."""
    if offset > 0 or segment == 0:
        return position(segment, offset)
    path = folder + "/" + file_name(segment, 0)
    try:
        descriptor = files.open(path, False)
    except FileNotFoundError:
        return position(segment, offset)
    try:
        header = read_file_header(files.read(descriptor, FILE_HEADER, 0), path)
    finally:
        files.close(descriptor)
    if header is None or header.generation > 0:
        return position(segment, offset)
    return end_before(folder, files, header.previous_segment, header.previous_end)


def first_as_written(segments: dict[int, Segment], going: i64) -> i64:
    """The first of the last segments that all are as they were written; 0 when not even the last one is. Those up to
    ``going`` are just being removed or rewritten. What stands before a segment that is gone is of no use without it:
    it may have settled that, or changed definitions."""
    first: i64 = 0
    last: i64 = 0
    for number in sorted(segments, reverse=True):
        if last > 0 and number != last - 1:
            break
        last = number
        segment = segments[number]
        if number <= going or segment.generation > 0 or segment.old or segment.unreadable:
            break
        if segment.parts:
            first = number
    return first


@final
class Span:
    """The batches of one segment that are to be read."""

    def __init__(self, segment: i64, parts: list[Part], begin: i64, end: i64) -> None:
        self.segment: Final = segment
        self.parts: Final = parts
        self.begin: Final = begin
        self.end: Final = end


@final
class Reading:
    """The batches between two positions: those on disk first, then those that are in memory still."""

    def __init__(
        self,
        folder: str,
        files: Files,
        log_id: i64,
        segments: dict[int, Segment],
        first: i64,
        end: i64,
        unsynced: list[ShippedBatch],
    ) -> None:
        self.folder: Final = folder
        self.files: Final = files
        self.seed: Final = seed(log_id)
        self.follows: i64 = first
        self.end: Final = end
        self.spans: list[Span] = []
        self.memory: list[ShippedBatch] = []
        self.cursor: BatchCursor | None = None
        for batch in unsynced:
            if batch.follows >= first and batch.end() <= end:
                self.memory.append(batch)
        last = self.memory[0].follows if self.memory else end
        for number in sorted(segments):
            segment = segments[number]
            if number < segment_of(first) or number > segment_of(last):
                continue
            begin = offset_of(first) if number == segment_of(first) else i64(0)
            finish = offset_of(last) if number == segment_of(last) else segment.end
            if begin < finish:
                self.spans.append(Span(number, segment.parts[:], begin, finish))

    def next(self, most: i64) -> list[ShippedBatch]:
        """Batches in a row, about so many octets, at least one; none at the end. LogCorrupt: one does not check."""
        found: list[ShippedBatch] = []
        octets: i64 = 0
        while octets < most:
            batch = self._read()
            if batch is None:
                break
            found.append(batch)
            octets += batch.size()
        return found

    def _read(self) -> ShippedBatch | None:
        if not self.spans:
            if self.memory:
                batch = self.memory.pop(0)
                self.follows = batch.end()
                return batch
            if self.follows != self.end:
                raise LogError(f"{self.folder}: the batches end at {self.follows:#x}, not at {self.end:#x}")
            return None
        span = self.spans[0]
        if not span.parts:
            raise LogError(f"{self.folder}: segment {span.segment} has no file yet")
        if self.cursor is None:
            self.cursor = BatchCursor(self.folder, self.files, self.seed, span.segment, span.parts, span.end)
            self.cursor.at = span.begin
        cursor = self.cursor
        try:
            there = cursor.next()
        except FileNotFoundError:
            raise LogError(f"{cursor.path}: was not held back, and is gone") from None
        if not there:
            where = f"{cursor.path}: offset {cursor.file_offset(cursor.at)}"
            header_at_front = read_file_header(self.files.read(cursor.descriptor, FILE_HEADER, 0), cursor.path)
            if header_at_front is not None and header_at_front.generation > 0:
                raise LogError(f"{where}: was not held back, and is written anew")
            raise LogCorrupt(f"{where}: {cursor.problem}")
        header = cursor.header
        batch = ShippedBatch(
            self.follows,
            span.segment,
            cursor.begin,
            header.epoch,
            header.number,
            header.first_record,
            header.records,
            cursor.messages,
            cursor.changes,
            header.crc,
            header.time,
        )
        self.follows = batch.end()
        if cursor.at == span.end:
            self.close()
            del self.spans[0]
        return batch

    def close(self) -> None:
        """Let go of the file that is open."""
        if self.cursor is not None:
            self.cursor.close()
            self.cursor = None
