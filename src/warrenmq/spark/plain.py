"""Queues of plain RabbitMQ as Spark sources: at least once, because nothing but an open channel can settle a delivery.

Duty: the driver holds one connection, takes messages with manual acknowledgements, hands them to the tasks inside the
partitions, and acknowledges when Spark commits the batch. When the driver dies, RabbitMQ puts back what was not
acknowledged and it comes again in a later batch: nothing is lost, some messages come twice (``redelivered`` is set;
tell them apart by ``message_id``). Not here: streams and leases, which do better.

The data travels in the partitions and not in Spark's block store, because a task that is repeated must see it again.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from warrenmq.client import Channel, ChannelClosed, Connection, ConnectionClosed, Message, Timeout
from warrenmq.spark.bad_records import bad_table
from warrenmq.spark.columns import BATCH_BYTES, BATCH_ROWS, Columns
from warrenmq.spark.compat import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from warrenmq.spark.connect import BrokerLost, connect
from warrenmq.spark.gathering import Gathering
from warrenmq.spark.httpapi import HttpApi
from warrenmq.spark.looking import IDLE
from warrenmq.spark.options import OptionError, Options
from warrenmq.spark.pacing import at_a_rate
from warrenmq.spark.waiting import waiting

if TYPE_CHECKING:
    import pyarrow as pa

MOST_ROWS = 20_000  # in one batch when no limit is set: the driver holds them
MOST_BYTES = 32 * 1024 * 1024
PARTITION_BYTES = 900_000  # Spark warns about tasks of more than 1000 KiB


@dataclass
class HeldPartition(InputPartition):
    """Record batches as Arrow's stream format."""

    data: bytes


@dataclass
class QueuePartition(InputPartition):
    queue: str
    count: int


@contextmanager
def naming(options: Options) -> Iterator[None]:
    """A lost broker is told by its address. All that was not acknowledged goes back to the queues and comes again."""
    try:
        yield
    except (ChannelClosed, ConnectionClosed, Timeout) as lost:
        raise BrokerLost(f"the connection to {options.address} was lost: {lost}") from None


class QueueChannel:
    """One queue consumed by the driver: what was delivered and is not acknowledged yet."""

    def __init__(self, connection: Connection, queue: str, prefetch: int) -> None:
        self.queue = queue
        self.channel: Channel = connection.channel()
        try:
            self.waiting = self.channel.queue_declare(queue, passive=True).int("message_count")
            self.channel.basic_qos(min(prefetch, 65_535))
            self.channel.basic_consume(queue)
        except ChannelClosed as closed:
            raise OptionError(f"queue '{queue}' cannot be read: {closed.text}") from None
        self._left: list[Message] = []

    def take(self, rows: int, size: int, patience: float) -> list[Message]:
        """Up to so many messages or bytes, waiting a moment for the first."""
        taken: list[Message] = []
        held = 0
        while len(taken) < rows and held < size:
            if not self._left:
                self._left = self.channel.receive(patience if not taken else IDLE)
                if not self._left:
                    break
            count = 0
            for message in self._left:
                if len(taken) >= rows or held >= size:
                    break
                taken.append(message)
                held += len(message.body)
                count += 1
            self._left = self._left[count:]
        return taken

    def put_back(self, messages: list[Message]) -> None:
        """They come first the next time."""
        self._left = messages + self._left


@at_a_rate
class PlainStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A streaming read. The checkpoint's offset only counts batches: {"batch": n, "open": unsettled?}."""

    def __init__(self, options: Options, schema: StructType) -> None:
        self.options = options
        self.schema = schema
        self._connection: Connection | None = None
        self._queues: list[QueueChannel] = []
        self._batches: dict[int, list[pa.RecordBatch]] = {}
        self._tags: dict[int, list[tuple[QueueChannel, int]]] = {}
        self._left: dict[str, int] | None = None
        self._current: dict[str, Any] = {"batch": 0, "open": False}
        self._gathering = Gathering(options)

    def __getstate__(self) -> dict[str, Any]:
        return dict(PlainStreamReader(self.options, self.schema).__dict__)

    def initialOffset(self) -> dict[str, Any]:
        return {"batch": 0, "open": False}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self.options.max_offsets_per_trigger or MOST_ROWS)

    def prepareForTriggerAvailableNow(self) -> None:
        self._left = {queue.queue: queue.waiting for queue in self._consuming()}

    def latestOffset(self, start: dict[str, Any] | None = None, limit: ReadLimit | None = None) -> dict[str, Any]:
        at = start or self._current
        number = int(at["batch"]) + 1
        if number in self._batches:
            return {"batch": number, "open": True}
        queues = self._consuming()
        # "Everything" is bounded all the same: the driver's memory is.
        rows = MOST_ROWS if isinstance(limit, ReadAllAvailable) else self.options.max_offsets_per_trigger or MOST_ROWS
        size = self.options.max_bytes_per_trigger or MOST_BYTES
        batches: list[pa.RecordBatch] = []
        tags: list[tuple[QueueChannel, int]] = []
        with naming(self.options):
            taken = [(queue, self._take(queue, rows // len(queues), size // len(queues))) for queue in queues]
            count = sum(len(messages) for _, messages in taken)
            full = sum(len(message.body) for _, messages in taken for message in messages) >= size
            if self._left is None and not full and not isinstance(limit, ReadAllAvailable):
                if self._gathering.waits(count, rows):
                    for queue, messages in taken:
                        queue.put_back(messages)
                    taken = []
            for queue, messages in taken:
                if not messages:
                    if self._left is not None:
                        self._left[queue.queue] = 0  # others took the rest
                    continue
                if self._left is not None:
                    self._left[queue.queue] -= len(messages)
                tags.append((queue, int(messages[-1].delivery_tag)))
                bad = bad_table(self.options, f"{queue.queue}-batch-{number}-{uuid.uuid4().hex[:8]}")
                columns = Columns(self.schema, queue.queue, bad)
                for start_row in range(0, len(messages), 1000):
                    columns.extend(messages[start_row : start_row + 1000])
                    batches.append(columns.take())
                if bad is not None:
                    bad.close()
        if batches:
            self._batches[number] = batches
            self._tags[number] = tags
            self._current = {"batch": number, "open": True}
        elif at.get("open"):
            self._current = {"batch": number, "open": False}  # an empty batch, so that the last one is committed
        else:
            return at
        return self._current

    def _take(self, queue: QueueChannel, rows: int, size: int) -> list[Message]:
        rows = max(1, rows)
        if self._left is not None:
            rows = min(rows, self._left.get(queue.queue, 0))
        return queue.take(rows, max(1, size), 1.0) if rows else []

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """For the query's progress (``progress.lag``), without what RabbitMQ has already sent ahead to this process.

        Asked over a connection of its own: here the answer would come behind all of that, which may not fit in memory.
        """
        return {"behind": waiting(self.options, [queue.queue for queue in self._queues])}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        # After a restart there is nothing to give for a batch that was under way: its messages are in the queue again
        # and come with a later batch.
        self._current = end
        return [HeldPartition(data) for data in packed(self._batches.get(int(end["batch"]), []))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        assert isinstance(partition, HeldPartition)
        with pa.ipc.open_stream(partition.data) as reader:
            yield from reader

    def commit(self, end: dict[str, Any]) -> None:
        number = int(end["batch"])
        with naming(self.options):
            for batch in [each for each in self._tags if each <= number]:
                for queue, tag in self._tags.pop(batch):
                    queue.channel.basic_ack(tag, multiple=True)
                self._batches.pop(batch, None)
            if self._connection is not None:
                self._connection.flush()

    def stop(self) -> None:
        if self._connection is not None:
            self._connection.close()

    def _consuming(self) -> list[QueueChannel]:
        if self._connection is None:
            self._connection = connect(self.options, "queue source")
            # Two batches are unacknowledged at a time: Spark commits one while the next is under way.
            prefetch = 2 * (self.options.max_offsets_per_trigger or MOST_ROWS) + 1000
            if "prefetchCount" in self.options.given:
                prefetch = self.options.prefetch_count
            names = HttpApi(self.options).names(stream=False)
            with naming(self.options):
                self._queues = [QueueChannel(self._connection, name, prefetch) for name in names]
        return self._queues


def packed(batches: list[pa.RecordBatch]) -> list[bytes]:
    """Record batches in pieces small enough to travel in a task."""

    pieces: list[bytes] = []
    held: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        if held and size + batch.nbytes > PARTITION_BYTES:
            pieces.append(_ipc(held))
            held, size = [], 0
        held.append(batch)
        size += batch.nbytes
    if held:
        pieces.append(_ipc(held))
    return pieces


def _ipc(batches: list[pa.RecordBatch]) -> bytes:
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batches[0].schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return bytes(sink.getvalue())


@at_a_rate
class PlainBatchReader(DataSourceReader):
    """A batch read: what is in the queues now. Read on open channels that are then dropped, so everything goes back.

    Each action reads anew, and what is read is marked redelivered afterwards: plain RabbitMQ offers nothing better.
    """

    def __init__(self, options: Options, schema: StructType) -> None:
        self.options = options
        self.schema = schema

    def partitions(self) -> Sequence[InputPartition]:
        counts = waiting(self.options, HttpApi(self.options).names(stream=False))
        return [QueuePartition(name, count) for name, count in counts.items()]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, QueuePartition)
        if not partition.count:
            return
        connection = connect(self.options, f"queue {partition.queue}")
        bad = bad_table(self.options, f"{partition.queue}-read")
        columns = Columns(self.schema, partition.queue, bad)
        done = 0
        stop = time.monotonic() + 60
        try:
            channel = connection.channel()
            channel.basic_consume(partition.queue)
            while done < partition.count and time.monotonic() < stop:
                messages = channel.receive(2.0)[: partition.count - done]
                if not messages:
                    break  # another consumer took the rest
                stop = time.monotonic() + 60
                columns.extend(messages)
                done += len(messages)
                if len(columns) >= BATCH_ROWS or columns.bytes >= BATCH_BYTES:
                    yield columns.take()
        except (ChannelClosed, ConnectionClosed, Timeout) as lost:
            raise BrokerLost(f"queue '{partition.queue}' at {self.options.address} was lost: {lost}") from None
        finally:
            connection.abort()
        if len(columns):
            yield columns.take()
        if bad is not None:
            bad.close()
