"""Reading a range of a stream's offsets, in a task.

Duty: the messages of a range as record batches, over as many connections as it takes; a gap that retention made while
nobody looked is data loss, at the head of the range, after a lost connection or in the middle. Not here: which ranges
there are (``stream.py``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from warrenmq.client import ChannelClosed, ConnectionClosed, Field, Timeout
from warrenmq.client.deliveries import StreamRange
from warrenmq.spark.bad_records import bad_table
from warrenmq.spark.columns import BATCH_BYTES, BATCH_ROWS, Columns
from warrenmq.spark.connect import STALLED, BrokerLost, connect, is_warren
from warrenmq.spark.looking import Replaced, Streams, consume, lost
from warrenmq.spark.options import Options
from warrenmq.spark.patience import Patience
from warrenmq.spark.secret import Login

if TYPE_CHECKING:
    import pyarrow as pa

ROWS_PER_PARTITION = 50_000
MOST_PARTITIONS = 16  # unless minPartitions asks for more


@dataclass
class StreamPartition(InputPartition):
    """Messages ``start`` up to, not including, ``end``, of the stream with this id (None: whichever has the name)."""

    stream: str
    start: int
    end: int
    id: str | None = None


@dataclass(frozen=True)
class Range:
    """The offsets that a batch reads of one stream."""

    start: int
    end: int
    id: str | None = None


def cut(stream: str, whole: Range, parts: int) -> list[StreamPartition]:
    """A range in equal pieces."""
    count = whole.end - whole.start
    if count <= 0:
        return []
    parts = max(1, min(parts, count))
    edges = [whole.start + count * part // parts for part in range(parts + 1)]
    return [StreamPartition(stream, a, b, whole.id) for a, b in zip(edges, edges[1:], strict=False)]


def cut_all(ranges: dict[str, Range], options: Options) -> list[StreamPartition]:
    minimum = options.min_partitions
    # Tasks that share a rate gain nothing by being many, and keep below it when they do not all run at once.
    most = MOST_PARTITIONS if options.max_rows_per_second is None else 1
    sizes = {stream: max(0, each.end - each.start) for stream, each in ranges.items()}
    total = sum(sizes.values())
    partitions: list[StreamPartition] = []
    for stream, each in ranges.items():
        parts = min(most, -(-sizes[stream] // ROWS_PER_PARTITION))
        if minimum is not None and total:
            parts = max(parts, -(-minimum * sizes[stream] // total))
        partitions.extend(cut(stream, each, parts))
    return partitions


def read_range(options: Options, schema: StructType, partition: StreamPartition) -> Iterator[pa.RecordBatch]:
    """The messages of a range. A lost connection is opened again where reading stopped."""
    with bad_table(options, f"{partition.stream}-{partition.start}-{partition.end}") as bad:
        yield from _read(options, Columns(schema, partition.stream, bad), partition)


def _read(options: Options, columns: Columns, partition: StreamPartition) -> Iterator[pa.RecordBatch]:
    patience = Patience(options)
    reading = StreamRange(columns.collected, partition.start, partition.end)
    while reading.at < partition.end:
        connection = connect(options, f"stream {partition.stream}")
        try:
            channel = connection.channel()
            login = Login(options, connection)
            channel.collect(reading)
            reading.allowed = 0
            consume(channel, partition.stream, Field("l", reading.at), options.prefetch_count, partition.id)
            while reading.at < partition.end:
                login.refresh()
                if not channel.collected(STALLED):
                    where = f"'{partition.stream}' at {options.address}"
                    raise BrokerLost(f"stream {where} gave nothing at {reading.at} for {STALLED:g} s")
                channel.basic_ack(reading.delivery_tag, multiple=True)
                patience.progressed()
                _check_gap(options, partition, reading)
                # RabbitMQ numbers a chunk of its own with each new segment: in the middle of reading that is no gap.
                reading.allowed = 0 if is_warren(connection) else 1
                if len(columns) >= BATCH_ROWS or columns.bytes >= BATCH_BYTES:
                    yield columns.take()
                    reading.into = columns.collected
        except Replaced:
            at = reading.at
            lost(options, f"stream '{partition.stream}' was deleted and declared anew while it was read at {at}")
            break  # nothing of the old one is left
        except ChannelClosed as closed:
            raise BrokerLost(f"stream '{partition.stream}' cannot be read: {closed.text}") from None
        except (ConnectionClosed, Timeout) as gone:
            if not patience.again():
                times = patience.failures
                raise BrokerLost(f"the connection to {options.address} was lost {times} times: {gone}") from None
        finally:
            connection.abort()
    _check_gap(options, partition, reading)  # the connection may have gone with the last messages
    if len(columns):
        yield columns.take()


def _check_gap(options: Options, partition: StreamPartition, reading: StreamRange) -> None:
    """Offsets are missing: data loss if the stream does not begin before them any more, else only its numbering."""
    if reading.gap < 0:
        return
    first = Streams(options).first(partition.stream)
    if first > reading.gap:
        gone = min(first, partition.end) - 1
        lost(options, f"offsets {reading.gap} to {gone} of stream '{partition.stream}' are gone (retention)")
    reading.gap = -1
