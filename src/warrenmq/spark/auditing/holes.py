"""Why something may be missing: files that are not there, and gaps that the journal itself tells of.

Duty: what lies between the files, with its time, and whether the journal explains it. What nothing explains is a file
that is missing. Not here: which messages are concerned (``tables``).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import unquote

from warrenmq.journal.columns import GAP
from warrenmq.journal.files import NAME, REMOVED
from warrenmq.spark.auditing.listing import File, Missing, missing
from warrenmq.spark.auditing.reading import times

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

FILE_MISSING = "file missing"
GAP_TOLD = "gap"  # the journal says so itself
BEFORE = "before"  # these files are the later part of a journal

SCHEMA = "log string, first bigint, last bigint, since bigint, until bigint, because string, says string"
COLUMNS = tuple(column.split()[0] for column in SCHEMA.split(", "))
EVER = 1 << 62


@dataclass(frozen=True)
class Hole:
    """Segments of which something is not told, and from when to when that was (µs)."""

    log: str
    first: int
    last: int
    since: int
    until: int
    because: str
    says: str


def holes_of(spark: SparkSession, files: Sequence[File], notes: DataFrame, partial: bool) -> list[Hole]:
    """All holes of these files, which are those that count. ``partial``: what is before the first is not missed."""
    gaps = _gaps(notes)
    absent = missing(list(files))
    told = _times(spark, [file for one in absent for file in (one.before, one.behind) if file is not None])
    unknown = {_place(gap) for gap in gaps if gap["number"] is None}
    removed = {file.log: file for file in files if file.segment == REMOVED}  # one counts of each log
    there: dict[str, list[int]] = {}
    for file in files:
        there.setdefault(file.log, []).append(file.segment)  # in their order
    found = [hole for gap in gaps if (hole := _told(gap, removed, there)) is not None]
    for one in absent:
        since = told[one.before.name][1] if one.before is not None else 0
        until = told[one.behind.name][0]
        up_to = removed[one.log].end if one.log in removed else 0
        if one.end is None and one.first <= up_to:
            if one.last <= up_to:
                continue  # the gap of what was removed says so
            one = Missing(one.log, up_to + 1, one.last, 0, None, one.before, one.behind)
        because = FILE_MISSING
        if (one.log, one.behind.segment) in unknown:
            because = GAP_TOLD
        elif partial and one.before is None:
            because = BEFORE
        found.append(Hole(one.log, one.first, one.last, since, until, because, str(one)))
    return found


def _place(gap: Row) -> tuple[str, int]:
    """Log and segment of the file that tells of a gap."""
    match = NAME.fullmatch(unquote(gap["file"]))
    return (match[1], int(match[2])) if match is not None else ("", -1)


def _gaps(notes: DataFrame) -> list[Row]:
    """Those in which anything may have happened. One that counts its events left out publishes and deliveries only:
    what entered a queue and left it is told all the same. There may be one a second of these."""
    removed = notes["file"].rlike(f"^journal-[0-9a-f]+-{REMOVED:010d}-")
    return notes.where((notes["kind"] == GAP) & (notes["number"].isNull() | removed)).collect()


def _told(gap: Row, removed: Mapping[str, File], there: Mapping[str, Sequence[int]]) -> Hole | None:
    log, segment = _place(gap)
    if segment == REMOVED:
        counts = removed.get(log)
        up_to = counts.end if counts is not None and counts.name == unquote(gap["file"]) else 0
        if set(there.get(log, ())).issuperset(range(1, up_to + 1)):
            return None  # another file tells more of what was removed, or the segments were moved here before
        says = f"log {log}: removed by retention up to segment {up_to}, {gap['number']} events"
        return Hole(log, 1, up_to, gap["at"], gap["until"], GAP_TOLD, says)
    segments = there.get(log, ())
    place = bisect_left(segments, segment)
    before = segments[place - 1] if place and segments[place - 1] > REMOVED else 0
    says = f"log {log}: gone before it was written, between segments {before} and {segment}"
    return Hole(log, before, segment, gap["at"], gap["until"], GAP_TOLD, says)


def _times(spark: SparkSession, files: Sequence[File]) -> dict[str, tuple[int, int]]:
    """The first and the last time of each; of one without events any."""
    return {file.name: (EVER, 0) for file in files} | times(spark, files)


def table_of(spark: SparkSession, holes: Sequence[Hole]) -> DataFrame:
    rows = [(one.log, one.first, one.last, one.since, one.until, one.because, one.says) for one in holes]
    return spark.createDataFrame(rows, SCHEMA)
