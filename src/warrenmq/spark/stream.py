"""Streams as Spark sources: ranges of offsets, which can be read as often as Spark wants.

Duty: how offsets are cut into batches. An offset in the checkpoint is the next one to read of each stream, with the
stream's id where it has one. Nothing is settled at the broker: a stream keeps what was read, so a batch that is run
again reads the same messages, which is what makes the source exactly-once into a sink that is. What cannot be read any
more (retention, a stream declared anew) is data loss and never passed over in silence.

Not here: asking the broker (``looking.py``), reading a range (``stream_reading.py``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from warrenmq.spark.compat import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from warrenmq.spark.gathering import Gathering
from warrenmq.spark.looking import Replaced, Streams, lost
from warrenmq.spark.options import Options
from warrenmq.spark.pacing import at_a_rate
from warrenmq.spark.pushdown import PushFilters, Wanted
from warrenmq.spark.stream_reading import Range, StreamPartition, cut_all, read_range

if TYPE_CHECKING:
    import pyarrow as pa


@at_a_rate
class StreamBatchReader(DataSourceReader):
    """A batch read: from ``startingOffsets`` up to ``endingOffsets`` as they are now, less what filters leave out."""

    def __init__(self, options: Options, schema: StructType) -> None:
        self.options = options
        self.schema = schema
        self.wanted = Wanted()

    @property
    def pushFilters(self) -> PushFilters:
        return PushFilters(self.wanted)

    def partitions(self) -> Sequence[InputPartition]:
        streams = Streams(self.options)
        ranges: dict[str, Range] = {}
        names = streams.names()
        streams.check_names(names)
        for name in self.wanted.names(names):
            id = streams.id(name)
            start, end = self.wanted.narrow(streams, name, streams.start(name), streams.stop(name))
            if start < end and isinstance(self.options.starting.of(name), int):
                start = streams.check(name, start)
            ranges[name] = Range(start, max(start, end), id)
        found: list[InputPartition] = list(cut_all(ranges, self.options))
        # Spark reads an empty list as "one partition of nothing", so it gets one that says so.
        return found or [StreamPartition("", 0, 0)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, StreamPartition)
        return read_range(self.options, self.schema, partition)


@at_a_rate
class StreamStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A streaming read. The checkpoint's offset is {"streams": {name: next offset}, "ids": {name: id}}.

    Checkpoints of earlier versions, and those of plain RabbitMQ, have no "ids".
    """

    def __init__(self, options: Options, schema: StructType) -> None:
        self.options = options
        self.schema = schema
        self._streams: Streams | None = None
        self._target: dict[str, int] | None = None  # AvailableNow: the ends when the query started
        self._checked = False  # AvailableNow: the checkpoint was compared with what there is
        self._current: dict[str, Any] | None = None  # Spark before 4.2 does not say where it stands
        self._latest: dict[str, Any] | None = None  # where the streams ended when the last batch was planned
        self._gathering = Gathering(options)

    @property
    def streams(self) -> Streams:
        if self._streams is None:
            self._streams = Streams(self.options)
        return self._streams

    def __getstate__(self) -> dict[str, Any]:
        return dict(StreamStreamReader(self.options, self.schema).__dict__)

    def initialOffset(self) -> dict[str, Any]:
        names = self.streams.names()
        self.streams.check_names(names)
        ids = {name: self.streams.id(name) for name in names}
        self._current = _offset({name: self.streams.start(name) for name in names}, ids)
        return self._current

    def getDefaultReadLimit(self) -> ReadLimit:
        most = self.options.max_offsets_per_trigger
        if most is not None:
            return ReadMaxRows(most)
        # Bytes are turned into a number of messages below; the number here only says that there is a limit.
        limited = self.options.max_bytes_per_trigger is not None or self.options.min_offsets_per_trigger is not None
        return ReadMaxRows(2**31 - 1) if limited else ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        self._target = {name: self.streams.end(name) for name in self.streams.names()}

    def latestOffset(self, start: dict[str, Any] | None = None, limit: ReadLimit | None = None) -> dict[str, Any]:
        began = start or self._current
        names = list(self._target) if self._target is not None else self.streams.names()
        if began is None:
            ends = self._target or {name: self.streams.end(name) for name in names}
            return _offset(ends, {name: self.streams.id(name) for name in ends})
        at: dict[str, int] = dict(began["streams"])
        ids: dict[str, str | None] = dict(began.get("ids", {}))
        ends = self._ends(names, at, ids)
        waiting = {name: max(0, ends.get(name, at[name]) - at[name]) for name in at}
        there = {name: at[name] + count for name, count in waiting.items()}
        if not isinstance(limit, ReadAllAvailable):
            if self._target is None and self._gathering.waits(sum(waiting.values())):
                waiting = dict.fromkeys(waiting, 0)
            waiting = self._limited(waiting)
        behind = {name: there[name] - at[name] - waiting[name] for name in at}
        self._latest = {"streams": there, "behind": behind}
        if at == began["streams"] and not any(waiting.values()):
            return began  # nothing new, and no batch only because an id has become known
        return _offset({name: at[name] + waiting[name] for name in at}, ids)

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """For the query's progress (``progress.lag``): Spark asks after each latestOffset."""
        return self._latest

    def _ends(self, names: list[str], at: dict[str, int], ids: dict[str, str | None]) -> dict[str, int]:
        """Where the streams end; ``at`` and ``ids`` are corrected for streams that are new or were declared anew."""
        known = self._target if self._checked else None
        ends: dict[str, int] = {}
        for name in names:
            if name not in at:  # a stream that has appeared since
                ids[name] = self.streams.id(name)
                at[name] = self.streams.first(name)
            if known is not None and name in known:
                ends[name] = known[name]
                continue
            ends[name] = self._end(name, at, ids)
        if self._target is not None:
            self._checked = True
            self._target = {name: min(ends[name], max(self._target[name], at[name])) for name in names}
            return self._target
        return ends

    def _end(self, name: str, at: dict[str, int], ids: dict[str, str | None]) -> int:
        try:
            end = self.streams.end(name, ids.get(name), at[name])
            if end >= at[name]:
                if ids.get(name) is None:
                    ids[name] = self.streams.id(name)
                return end
            text = f"stream '{name}' ends with {end - 1}, before offset {at[name]} of the checkpoint"
        except Replaced:
            text = f"stream '{name}' was deleted and declared anew since offset {at[name]} of the checkpoint"
        lost(self.options, text)
        self._streams = None  # what it has seen was of the other stream
        ids[name] = self.streams.id(name)
        end = self.streams.end(name)
        at[name] = self.streams.first(name)
        return end

    def _limited(self, waiting: dict[str, int]) -> dict[str, int]:
        """Fewer, in proportion, but at least one of each that has any."""
        total = sum(waiting.values())
        most = self.options.max_offsets_per_trigger or total
        if self.options.max_bytes_per_trigger is not None and total:
            size = sum(self.streams.mean_size(name) * count for name, count in waiting.items()) / total
            most = min(most, max(1, int(self.options.max_bytes_per_trigger / size)))
        if total <= most:
            return waiting
        return {name: min(count, max(1, most * count // total)) if count else 0 for name, count in waiting.items()}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        self._current = end
        ranges: dict[str, Range] = {}
        for name, stop in end["streams"].items():
            begin = start["streams"].get(name)
            before, id = start.get("ids", {}).get(name), end.get("ids", {}).get(name)
            anew = begin is None or begin > stop or (before is not None and before != id)
            if begin == stop and not anew:
                continue
            try:
                begin = self.streams.first(name, id) if anew else self.streams.check(name, begin, id)
            except Replaced:
                lost(self.options, f"stream '{name}' was deleted and declared anew before offset {stop - 1} was read")
                continue
            ranges[name] = Range(min(stop, begin), stop, id)
        return cut_all(ranges, self.options)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, StreamPartition)
        return read_range(self.options, self.schema, partition)

    def commit(self, end: dict[str, Any]) -> None:
        """Nothing: the checkpoint holds the place, the stream keeps its messages."""


def _offset(streams: dict[str, int], ids: dict[str, str | None]) -> dict[str, Any]:
    known = {name: id for name, id in ids.items() if id is not None}
    return {"streams": streams, "ids": known} if known else {"streams": streams}
