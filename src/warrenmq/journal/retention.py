"""How long the journal is kept: by age and by size, the oldest first, and what was removed is known as a gap.

Duty: which segments' files go, and the one file that says so: a row `gap` from the first event that was removed to the
last, with their number. It has its name before anything is removed, and the name says up to which segment; whoever
finds files that it speaks of removes them. What the journal still adds to is never removed. Not here: what is in the
files (``writer``), how often (``process``).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

import pyarrow.parquet as pq

from warrenmq.journal.columns import EventColumns
from warrenmq.journal.files import REMOVED, JournalFile, current
from warrenmq.journal.parquet import table
from warrenmq.journal.writer import Writer


@dataclass
class Span:
    """Some events: from when to when, and how many."""

    since: int
    until: int
    count: int

    def add(self, other: Span) -> None:
        if other.count > 0:
            self.since = min(self.since or other.since, other.since)
            self.until = max(self.until, other.until)
            self.count += other.count


def trim(writer: Writer, now: int, max_age: int, max_bytes: int) -> int:
    """Remove what is older than ``max_age`` µs, and the oldest of what is more than ``max_bytes``; 0 is no limit.

    Returns how many events were removed.
    """
    files = current(writer.files)
    sizes = {one: octets(one) for one in files}
    total = sum(sizes.values())
    last = max((one.segment for one in files), default=0)
    victims: list[JournalFile] = []
    span = Span(0, 0, 0)
    for segment, together in groupby(files, lambda one: one.segment):  # the oldest first
        if segment in (REMOVED, last):
            continue
        told = Span(0, 0, 0)
        of_segment = list(together)
        for one in of_segment:
            told.add(told_by(one))
        too_old = max_age > 0 and told.until < now - max_age
        if not too_old and not 0 < max_bytes < total:
            break
        total -= sum(sizes[one] for one in of_segment)
        victims += of_segment
        span.add(told)
    if not victims:
        return 0
    removed = span.count
    before = [one for one in files if one.segment == REMOVED]
    for one in before:
        span.add(removed_by(one))
    columns = EventColumns()
    columns.gap(span.since, span.until, span.count)
    writer.save(REMOVED, 0, victims[-1].segment, table(columns, {}))
    for one in [*before, *victims]:
        writer.remove(one)
    return removed


def octets(one: JournalFile) -> int:
    return sum(path.stat().st_size for path in (one.path, one.index) if path.exists())


def told_by(one: JournalFile) -> Span:
    times = pq.ParquetFile(one.path).read(["time"]).column("time")
    return Span(times[0].value, times[-1].value, len(times)) if len(times) else Span(0, 0, 0)


def removed_by(one: JournalFile) -> Span:
    rows = pq.ParquetFile(one.path).read(["time", "until", "number"])
    return Span(rows["time"][0].value, rows["until"][0].value, rows["number"][0].as_py())
