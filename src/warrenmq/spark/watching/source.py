"""The journal as a stream of rows, each once.

Duty: how the journal's growth is cut into batches. An offset in the checkpoint says of each log which segment, how many
rows of it, and up to which time it was told: not which files, as those are joined and renamed. A batch that is run
again has the same rows, whichever files they are in by then. What cannot be read any more is told as a row ``MISSED``.

The journal has no rows while its broker has nothing to tell, and then nothing would become overdue: so a log's time
goes on with the clock, ``behind`` it, until all that may be waited for is overdue, and then rests.

Not here: the files (``folders``), which rows are wanted (``rows``).
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from warrenmq.spark.auditing.listing import File
from warrenmq.spark.compat import ReadAllAvailable, ReadLimit, SupportsTriggerAvailableNow
from warrenmq.spark.watching.folders import Journals, Listing, NotThere
from warrenmq.spark.watching.rows import COLUMNS, DDL, clock_row, missed_row, rows_of

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

NAME = "warren-watched"
TOGETHER = 16  # segments of a log in one batch
SECOND = 1_000_000

Place = list[int]  # segment, rows of it that were told, up to which time (µs)


@dataclass(frozen=True)
class Reading:
    """The settings of a source, as the one option ``reading``: JSON."""

    paths: list[str]
    window: int  # µs
    rest: int  # µs after its last event a log's time no longer goes on with the clock
    tick: int  # µs from one batch to the next when nothing happens
    behind: int  # µs that the journal may be behind
    latest: bool  # what is there when the query starts for the first time is not looked at


class Part(InputPartition):
    """Some rows of a segment; without a segment the time of a log alone."""

    def __init__(self, log: str, segment: int, first: int, last: int, since: int, until: int) -> None:
        self.log = log
        self.segment = segment
        self.first = first
        self.last = last
        self.since = since  # when the rows before were told
        self.until = until


class WatchedSource(DataSource):
    """The source that Spark asks for a reader."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)

    def schema(self) -> str:
        return DDL

    def streamReader(self, schema: StructType) -> WatchedReader:  # noqa: ARG002  (Spark's)
        return WatchedReader(Reading(**json.loads(self.options["reading"])))


class WatchedReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The offset is {"logs": {log: place}}; that of the first batch also says from where, if not from the beginning."""

    def __init__(self, reading: Reading, clock: Callable[[], float] = time.time) -> None:
        self.reading = reading
        self.clock = clock
        self._journals: Journals | None = None
        self._target: dict[str, Place] | None = None  # AvailableNow: how far they were when the query started
        self._begin: dict[str, Place] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"reading": self.reading, "clock": time.time, "_journals": None, "_target": None, "_begin": None}

    @property
    def journals(self) -> Journals:
        if self._journals is None:
            self._journals = Journals(self.reading.paths)
        return self._journals

    def initialOffset(self) -> dict[str, Any]:
        return {"logs": {}, "initial": True}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        self._target = self.journals.asked(self._ends)

    def latestOffset(
        self,
        start: dict[str, Any] | None = None,
        limit: ReadLimit | None = None,  # noqa: ARG002  (Spark's)
    ) -> dict[str, Any]:
        return self.journals.asked(lambda listing: self._latest(listing, start))

    def _latest(self, listing: Listing, start: dict[str, Any] | None) -> dict[str, Any]:
        ends = self._target if self._target is not None else self._ends(listing)
        at: dict[str, Place] = start["logs"] if start is not None else {}
        more: dict[str, Any] = {}
        if self.reading.latest and (start is None or start.get("initial")):
            if self._begin is None:
                self._begin = self._ends(listing)
            more["from"] = at = self._begin
        reached = {log: self._reach(listing.get(log, {}), at.get(log), end) for log, end in ends.items()}
        for log, place in at.items():
            reached[log] = max(place, reached.get(log, place))  # a journal that is gone stays where it was
        return {"logs": reached, **more}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        return self.journals.asked(lambda listing: self._parts(listing, start, end))

    def _parts(self, listing: Listing, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        begin = end.get("from", start["logs"]) if start.get("initial") else start["logs"]
        found: list[InputPartition] = []
        for log, (segment, rows, until) in sorted(end["logs"].items()):
            first, done, since = begin.get(log, [0, 0, 0])
            segments = listing.get(log, {})
            if (first, done) < (segment, rows):
                for number in _through(segments, first, segment):
                    at = done if number == first else 0
                    there = rows if number == segment else self.journals.rows(segments.get(number, []))
                    if at != there or number not in segments:
                        found.append(Part(log, number, at, there, since, until))
            if begin.get(log) != [segment, rows, until]:
                found.append(Part(log, 0, 0, 0, since, until))
        return found or [Part("", 0, 0, 0, 0, 0)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Part)
        one = partition
        if not one.log:
            return
        if not one.segment:
            yield clock_row(one.log, one.until)
            return
        at = one.first
        try:
            if one.last < one.first:  # its files are gone, or those with its beginning
                raise NotThere
            for table in self.journals.read(one.log, one.segment, one.first, one.last, COLUMNS):
                yield rows_of(table, one.log, one.segment, at, self.reading.window)
                at += table.num_rows
            if one.last == one.first:
                raise NotThere
        except NotThere:
            yield missed_row(one.log, one.segment, at, one.since, one.until)

    def commit(self, end: dict[str, Any]) -> None:
        """Nothing: the journal keeps its files as long as it wants."""

    def _ends(self, listing: Listing) -> dict[str, Place]:
        return {log: self._end(segments) for log, segments in listing.items()}

    def _end(self, segments: dict[int, list[File]]) -> Place:
        last = max(segments)
        told = self.journals.last(segments[last])
        if not told and last - 1 in segments:  # one that was begun has no events yet
            told = self.journals.last(segments[last - 1])
        return [last, self.journals.rows(segments[last]), self._time(told)]

    def _time(self, told: int) -> int:
        """How far a log's time is that told its last event then."""
        now = int(self.clock() * SECOND) - self.reading.behind
        now = min(now, told + self.reading.rest)
        return max(told, told + (now - told) // self.reading.tick * self.reading.tick)

    def _reach(self, segments: dict[int, list[File]], at: Place | None, end: Place) -> Place:
        """Not more than some segments at once, so that a batch is not larger than a worker."""
        between = [number for number in sorted(segments) if (at or [0])[0] <= number < end[0]]
        if len(between) <= TOGETHER:
            return end
        number = between[TOGETHER - 1]
        files = segments[number]
        return [number, self.journals.rows(files), max(self.journals.last(files), at[2] if at else 0)]


def _through(segments: dict[int, list[File]], first: int, last: int) -> Sequence[int]:
    """Which segments lie between: where it goes on, also those that are gone; before the first of all there is none."""
    if first:
        return range(first, last + 1)
    begin = min(segments, default=last)
    return range(min(begin, last), last + 1)
