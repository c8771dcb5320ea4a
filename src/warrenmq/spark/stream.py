"""Streams as Spark sources: ranges of offsets, which can be read as often as Spark wants.

Duty: which offsets there are, how they are cut into batches and partitions, and reading one partition. An offset in the
checkpoint is the next one to read of each stream. Nothing is settled at the broker: a stream keeps what was read, so a
batch that is run again reads the same messages, which is what makes the source exactly-once into a sink that is.

RabbitMQ says nothing about a stream's end over AMQP 0-9-1, so the end is found by reading its last chunk. Only offsets
that were *seen* become the end of a batch: offsets may have gaps, and waiting for one in a gap would never end.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from warrenmq.client import Channel, ChannelClosed, ClientError, Connection, ConnectionClosed, Field, Timeout
from warrenmq.client.columns import stream_offsets
from warrenmq.spark.columns import Columns
from warrenmq.spark.compat import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from warrenmq.spark.connect import BrokerLost, connect
from warrenmq.spark.httpapi import HttpApi
from warrenmq.spark.options import OptionError, Options

if TYPE_CHECKING:
    import pyarrow as pa

BATCH_ROWS = 10_000
BATCH_BYTES = 16 * 1024 * 1024
ROWS_PER_PARTITION = 50_000
MOST_PARTITIONS = 16  # unless minPartitions asks for more
IDLE = 0.1  # seconds without a message after which the last chunk is taken to be read
FIRST = 5.0  # seconds without any message after which a stream is taken to be empty: the broker never says so
LOOKING = 0.5  # seconds at most to look for the end of a stream that is being written
STALLED = 60.0  # seconds without a message in the middle of a range


class DataLoss(RuntimeError):
    """Offsets that should be read are gone (retention); the text names them."""


@dataclass
class StreamPartition(InputPartition):
    """Messages ``start`` up to, not including, ``end``."""

    stream: str
    start: int
    end: int


class Streams:
    """Looks into streams: where they begin and end. One connection, opened when first needed."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self._connection: Connection | None = None
        self._ends: dict[str, int] = {}
        self._sizes: dict[str, float] = {}  # mean body size seen at the end of the stream

    def names(self) -> list[str]:
        return HttpApi(self.options).names(stream=True)

    def first(self, stream: str) -> int:
        """The first offset there is; for an empty stream, the first there will be."""
        found = self._look(stream, "first", 1, FIRST)
        return found[0] if found else self._ends.get(stream, 0)

    def at_time(self, stream: str, moment: datetime) -> int:
        """The first offset of the chunk that holds this time: some messages may be older."""
        found = self._look(stream, Field("T", int(moment.timestamp())), 1, FIRST)
        return found[0] if found else self.end(stream)

    def end(self, stream: str) -> int:
        """One more than the last offset seen."""
        known = self._ends.get(stream)
        found = self._look(stream, "last", 10_000, FIRST)
        if found:
            self._ends[stream] = max(found[1] + 1, known or 0)
        return self._ends.get(stream, 0)

    def mean_size(self, stream: str) -> float:
        return max(1.0, self._sizes.get(stream, 1.0))

    def resolve(self, stream: str, spec: str) -> int:
        if spec == "earliest":
            return self.first(stream)
        if spec == "latest":
            return self.end(stream)
        if spec.isdigit():
            return int(spec)
        return self.at_time(stream, datetime.fromisoformat(spec))

    def check(self, stream: str, start: int) -> int:
        """Where reading from ``start`` really begins: later when retention has taken messages, if that is allowed."""
        first = self.first(stream)
        if start >= first:
            return start
        if self.options.fail_on_data_loss:
            raise DataLoss(
                f"offsets {start} to {first - 1} of stream '{stream}' are gone (retention); "
                "option failOnDataLoss=false goes on without them"
            )
        return first

    def _look(self, stream: str, spec: object, prefetch: int, patience: float) -> tuple[int, int] | None:
        """First and last offset delivered from there on, within a moment; None when nothing came."""
        for attempt in range(self.options.retries + 1):
            try:
                return self._try(stream, spec, prefetch, patience)
            except (ConnectionClosed, Timeout) as closed:
                # The broker went away: a restarted one is asked again (``connect`` waits for it).
                self._drop()
                if attempt == self.options.retries:
                    raise BrokerLost(f"the connection to {self.options.address} was lost: {closed}") from None
        raise AssertionError("unreachable")

    def _try(self, stream: str, spec: object, prefetch: int, patience: float) -> tuple[int, int] | None:
        channel = self._channel()
        try:
            consume(channel, stream, spec, prefetch)
            lowest = highest = -1
            stop = 0.0
            while not stop or time.monotonic() < stop:
                messages = channel.receive(patience if lowest < 0 else IDLE)
                if not messages:
                    break
                stop = stop or time.monotonic() + LOOKING
                offsets = stream_offsets(messages)
                lowest = offsets[0] if lowest < 0 else lowest
                highest = max(highest, offsets[-1])
                self._sizes[stream] = sum(len(message.body) for message in messages) / len(messages)
                if prefetch == 1:
                    break
                channel.basic_ack(int(messages[-1].delivery_tag), multiple=True)
            return (lowest, highest) if lowest >= 0 else None
        except ChannelClosed as closed:
            raise OptionError(f"'{stream}' cannot be read as a stream: {closed.text}") from None
        except Timeout:
            self._drop()  # or closing the channel would wait for an answer once more
            raise
        finally:
            channel.close()

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.abort()
            self._connection = None

    def _channel(self) -> Channel:
        connection = self._connection
        if connection is not None:
            try:
                return connection.channel()
            except ClientError:
                connection.abort()
        self._connection = connect(self.options, "stream planning")
        return self._connection.channel()


def consume(channel: Channel, stream: str, spec: object, prefetch: int) -> str:
    channel.basic_qos(prefetch)
    return channel.basic_consume(stream, arguments={"x-stream-offset": spec})


def cut(stream: str, start: int, end: int, parts: int) -> list[StreamPartition]:
    """A range in equal pieces."""
    count = end - start
    if count <= 0:
        return []
    parts = max(1, min(parts, count))
    edges = [start + count * part // parts for part in range(parts + 1)]
    return [StreamPartition(stream, a, b) for a, b in zip(edges, edges[1:], strict=False)]


def cut_all(ranges: dict[str, tuple[int, int]], minimum: int | None) -> list[StreamPartition]:
    total = sum(max(0, end - start) for start, end in ranges.values())
    partitions: list[StreamPartition] = []
    for stream, (start, end) in ranges.items():
        parts = min(MOST_PARTITIONS, -(-max(0, end - start) // ROWS_PER_PARTITION))
        if minimum is not None and total:
            parts = max(parts, -(-minimum * (end - start) // total))
        partitions.extend(cut(stream, start, end, parts))
    return partitions


def read_range(options: Options, schema: StructType, partition: StreamPartition) -> Iterator[pa.RecordBatch]:
    """The messages of a range as record batches. A lost connection is opened again where reading stopped."""
    columns = Columns(schema, partition.stream)
    at = partition.start
    lost = 0
    while at < partition.end:
        connection = connect(options, f"stream {partition.stream}")
        try:
            channel = connection.channel()
            consume(channel, partition.stream, Field("l", at), options.prefetch_count)
            while at < partition.end:
                messages = channel.receive(STALLED)
                if not messages:
                    raise BrokerLost(
                        f"stream '{partition.stream}' at {options.address} gave nothing at {at} for {STALLED:g} s"
                    )
                channel.basic_ack(int(messages[-1].delivery_tag), multiple=True)
                lost = 0
                offsets = stream_offsets(messages)
                if offsets[0] > at and at == partition.start:
                    _check_gap(options, partition, offsets[0])
                if offsets[0] < at or offsets[-1] >= partition.end:
                    kept = [n for n, offset in enumerate(offsets) if at <= offset < partition.end]
                    past = offsets[-1] >= partition.end - 1
                    messages, offsets = [messages[n] for n in kept], [offsets[n] for n in kept]
                    columns.extend(messages, offsets)
                    at = partition.end if past else (offsets[-1] + 1 if offsets else at)
                else:
                    columns.extend(messages, offsets)
                    at = offsets[-1] + 1
                if len(columns) >= BATCH_ROWS or columns.bytes >= BATCH_BYTES:
                    yield columns.take()
        except ChannelClosed as closed:
            raise BrokerLost(f"stream '{partition.stream}' cannot be read: {closed.text}") from None
        except (ConnectionClosed, Timeout) as closed:
            lost += 1
            if lost > options.retries:
                raise BrokerLost(f"the connection to {options.address} was lost {lost} times: {closed}") from None
        finally:
            connection.abort()
    if len(columns):
        yield columns.take()


def _check_gap(options: Options, partition: StreamPartition, found: int) -> None:
    """Reading began later than asked: retention, unless it is only a gap in the numbering."""
    if options.fail_on_data_loss and found >= partition.end:
        raise DataLoss(
            f"offsets {partition.start} to {partition.end - 1} of stream '{partition.stream}' are gone (retention)"
        )


class StreamBatchReader(DataSourceReader):
    """A batch read: from ``startingOffsets`` up to ``endingOffsets`` as they are now."""

    def __init__(self, options: Options, schema: StructType) -> None:
        self.options = options
        self.schema = schema

    def partitions(self) -> Sequence[InputPartition]:
        streams = Streams(self.options)
        ranges: dict[str, tuple[int, int]] = {}
        for name in streams.names():
            end = streams.end(name)
            if self.options.ending_offsets != "latest":
                end = min(end, streams.resolve(name, self.options.ending_offsets))
            start = streams.resolve(name, self.options.starting_offsets)
            if self.options.starting_offsets.isdigit():
                start = streams.check(name, start)
            ranges[name] = (start, max(start, end))
        found: list[InputPartition] = list(cut_all(ranges, self.options.min_partitions))
        # Spark reads an empty list as "one partition of nothing", so it gets one that says so.
        return found or [StreamPartition("", 0, 0)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, StreamPartition)
        return read_range(self.options, self.schema, partition)


class StreamStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A streaming read. The checkpoint's offset is {"streams": {name: next offset}}."""

    def __init__(self, options: Options, schema: StructType) -> None:
        self.options = options
        self.schema = schema
        self._streams: Streams | None = None
        self._target: dict[str, int] | None = None  # AvailableNow: the ends when the query started
        self._current: dict[str, int] | None = None  # Spark before 4.2 does not say where it stands

    @property
    def streams(self) -> Streams:
        if self._streams is None:
            self._streams = Streams(self.options)
        return self._streams

    def __getstate__(self) -> dict[str, Any]:
        return {"options": self.options, "schema": self.schema, "_streams": None, "_target": None, "_current": None}

    def initialOffset(self) -> dict[str, Any]:
        start = self.options.starting_offsets
        self._current = {name: self.streams.resolve(name, start) for name in self.streams.names()}
        return {"streams": dict(self._current)}

    def getDefaultReadLimit(self) -> ReadLimit:
        most = self.options.max_offsets_per_trigger
        if most is not None:
            return ReadMaxRows(most)
        # Bytes are turned into a number of messages below; the number here only says that there is a limit.
        return ReadMaxRows(2**31 - 1) if self.options.max_bytes_per_trigger is not None else ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        self._target = {name: self.streams.end(name) for name in self.streams.names()}

    def latestOffset(self, start: dict[str, Any] | None = None, limit: ReadLimit | None = None) -> dict[str, Any]:
        at = dict(start["streams"]) if start is not None else self._current
        names = list(self._target) if self._target is not None else self.streams.names()
        ends = self._target or {name: self.streams.end(name) for name in names}
        if at is None:
            return {"streams": dict(ends)}
        for name in names:
            if name not in at:  # a stream that has appeared since
                at[name] = self.streams.first(name)
        waiting = {name: max(0, ends.get(name, at[name]) - at[name]) for name in at}
        if not isinstance(limit, ReadAllAvailable):
            waiting = self._limited(waiting)
        return {"streams": {name: at[name] + waiting[name] for name in at}}

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
        self._current = dict(end["streams"])
        ranges: dict[str, tuple[int, int]] = {}
        for name, stop in end["streams"].items():
            begin = start["streams"].get(name)
            begin = self.streams.first(name) if begin is None else begin
            if begin < stop:
                ranges[name] = (min(stop, self.streams.check(name, begin)), stop)
        return cut_all(ranges, self.options.min_partitions)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, StreamPartition)
        return read_range(self.options, self.schema, partition)

    def commit(self, end: dict[str, Any]) -> None:
        """Nothing: the checkpoint holds the place, the stream keeps its messages."""
