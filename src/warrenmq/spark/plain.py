"""Queues of plain RabbitMQ as Spark sources: at least once, because nothing but an open channel can settle a delivery.

Duty: the driver holds one connection, takes messages with manual acknowledgements, hands them to the tasks inside the
partitions, and acknowledges when Spark commits the batch. When the driver dies, RabbitMQ puts back what was not
acknowledged and it comes again in a later batch: nothing is lost, some messages come twice (``redelivered`` is set;
tell them apart by ``message_id``). It is the same when only the connection is lost. Not here: the connection
(``consuming.py``); streams and leases, which do better.

The data travels in the partitions and not in Spark's block store, because a task that is repeated must see it again.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from warrenmq.client import ChannelClosed, ConnectionClosed, Timeout
from warrenmq.spark.addresses import failed
from warrenmq.spark.bad_records import bad_table
from warrenmq.spark.columns import BATCH_BYTES, BATCH_ROWS, Columns
from warrenmq.spark.compat import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from warrenmq.spark.connect import BrokerLost, connect
from warrenmq.spark.consuming import Consuming, Held
from warrenmq.spark.gathering import Gathering
from warrenmq.spark.httpapi import HttpApi
from warrenmq.spark.options import Options
from warrenmq.spark.pacing import at_a_rate
from warrenmq.spark.secret import Login
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
    """A share of a queue's messages for one task."""

    queue: str
    count: int


@at_a_rate
class PlainStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A streaming read. The checkpoint's offset only counts batches: {"batch": n, "open": unsettled?}."""

    def __init__(self, options: Options, schema: StructType) -> None:
        self.options = options
        self.schema = schema
        # Two batches are unacknowledged at a time: Spark commits one while the next is under way.
        prefetch = 2 * (options.max_offsets_per_trigger or MOST_ROWS) + 1000
        self._consuming = Consuming(options, options.prefetch_count if "prefetchCount" in options.given else prefetch)
        self._batches: dict[int, list[pa.RecordBatch]] = {}
        self._held: dict[int, list[Held]] = {}
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
        self._left = self._consuming.waiting()

    def latestOffset(self, start: dict[str, Any] | None = None, limit: ReadLimit | None = None) -> dict[str, Any]:
        at = start or self._current
        number = int(at["batch"]) + 1
        if number in self._batches:
            return {"batch": number, "open": True}
        # "Everything" is bounded all the same: the driver's memory is.
        rows = MOST_ROWS if isinstance(limit, ReadAllAvailable) else self.options.max_offsets_per_trigger or MOST_ROWS
        size = self.options.max_bytes_per_trigger or MOST_BYTES
        batches: list[pa.RecordBatch] = []
        held: list[Held] = []
        taken = self._consuming.take(rows, size, self._left)
        count = sum(len(messages) for _, messages in taken)
        full = sum(len(message.body) for _, messages in taken for message in messages) >= size
        patient = self._left is None and not full and not isinstance(limit, ReadAllAvailable)
        if patient and self._gathering.waits(count, rows):
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
            held.append(self._consuming.hold(queue, messages))
            with bad_table(self.options, f"{queue.queue}-batch-{number}-{uuid.uuid4().hex[:8]}") as bad:
                columns = Columns(self.schema, queue.queue, bad)
                for start_row in range(0, len(messages), 1000):
                    columns.extend(messages[start_row : start_row + 1000])
                    batches.append(columns.take())
        if batches:
            self._batches[number] = batches
            self._held[number] = held
            self._current = {"batch": number, "open": True}
        elif at.get("open"):
            self._current = {"batch": number, "open": False}  # an empty batch, so that the last one is committed
        else:
            return at
        return self._current

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """For the query's progress (``progress.lag``), without what RabbitMQ has already sent ahead to this process.

        Asked over a connection of its own: here the answer would come behind all of that, which may not fit in memory.
        """
        return {"behind": waiting(self.options, self._consuming.names)}

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
        done = [batch for batch in self._batches if batch <= int(end["batch"])]
        self._consuming.acknowledge([held for batch in done for held in self._held.pop(batch)])
        for batch in done:
            del self._batches[batch]

    def stop(self) -> None:
        self._consuming.stop()


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
        with bad_table(self.options, f"{partition.queue}-read") as bad:
            columns = Columns(self.schema, partition.queue, bad)
            yield from self._consume(partition, columns)
            if len(columns):
                yield columns.take()

    def _consume(self, partition: QueuePartition, columns: Columns) -> Iterator[pa.RecordBatch]:
        connection = connect(self.options, f"queue {partition.queue}")
        done = 0
        try:
            channel = connection.channel()
            login = Login(self.options, connection)
            channel.basic_consume(partition.queue)
            while done < partition.count:
                login.refresh()
                messages = channel.receive(2.0)[: partition.count - done]
                if not messages:
                    break  # another consumer took the rest
                columns.extend(messages)
                done += len(messages)
                if len(columns) >= BATCH_ROWS or columns.bytes >= BATCH_BYTES:
                    yield columns.take()
        except (ChannelClosed, ConnectionClosed, Timeout) as lost:
            failed(self.options.hosts)  # Spark repeats the task
            raise BrokerLost(f"queue '{partition.queue}' at {self.options.address} was lost: {lost}") from None
        finally:
            connection.abort()
