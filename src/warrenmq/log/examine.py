"""Looking at a folder without changing it: what is in it, and does all of it check.

Duty: facts for ``warren log inspect`` and ``warren log verify``. Not here: printing (``cli/log/command.py``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

from mypy_extensions import i64

from warrenmq.log import clean
from warrenmq.log.files import Files
from warrenmq.log.format import seed
from warrenmq.log.layout import BATCH_HEADER, RECORD_BITS
from warrenmq.log.record import is_chunk, number_of, record_size
from warrenmq.log.recovery import Recovery
from warrenmq.log.scan import BatchCursor
from warrenmq.log.segment import Segment

Progress = Callable[[str, int, int], None]


@final
class SegmentFacts:
    """The findings about one segment."""

    def __init__(self, segment: Segment) -> None:
        self.number: Final = segment.number
        self.generation: Final = segment.generation
        self.files: Final = len(segment.parts)
        self.bytes: Final = segment.end
        self.ledger: Final = segment.ledger
        self.records: Final = len(segment.references)
        self.live: Final = segment.live
        self.live_bytes: Final = segment.live_bytes


@final
class Facts:
    """The findings about a whole folder."""

    def __init__(self, found: Recovery) -> None:
        self.found: Final = found
        self.segments: list[SegmentFacts] = []
        for number in sorted(found.segments):
            self.segments.append(SegmentFacts(found.segments[number]))

    def held_damaged(self) -> list[int]:
        """Addresses of the records whose bodies do not check and that somebody holds."""
        segments = self.found.segments
        return [address for address in self.found.damaged if segments[address >> 32].holders(address & RECORD_BITS) > 0]


def examine(folder: str, files: Files, progress: Progress | None = None) -> Facts:
    """Everything read and checked, as a start would, and more: also after a clean stop. Raises LogError."""
    found = Recovery(folder, files)
    found.use_marker = False
    found.begin()
    while found.step():
        if progress is not None:
            progress("records", found.read_bytes(), found.total_bytes)
    return Facts(found)


@final
class RecordFacts:
    """One record, for listing."""

    def __init__(self, segment: i64, record: i64, kind: int, batch: i64, offset: i64, size: i64, live: i64) -> None:
        self.segment: Final = segment
        self.record: Final = record
        self.chunk: Final = is_chunk(kind)
        self.batch: Final = batch
        self.offset: Final = offset
        self.size: Final = size
        self.holders: Final = live


def records(facts: Facts, segment: i64, limit: i64) -> list[RecordFacts]:
    """The first records of one segment."""
    found = facts.found
    one = found.segments[int(segment)]
    listed: list[RecordFacts] = []
    cursor = BatchCursor(found.folder, found.files, seed(found.manifest.log_id), segment, one.parts, one.end)
    cursor.tolerated = one.end
    while len(listed) < limit and cursor.next():
        data = cursor.messages
        at: i64 = 0
        while at < len(data) and len(listed) < limit:
            size = record_size(data, at)
            record = number_of(data, at)
            listed.append(
                RecordFacts(
                    segment,
                    record,
                    data[at],
                    cursor.header.number,
                    cursor.begin + BATCH_HEADER + at,
                    size,
                    one.holders(record),
                )
            )
            at += size
    cursor.close()
    return listed


def has_marker(folder: str, files: Files) -> bool:
    return clean.NAME in files.names(folder)
