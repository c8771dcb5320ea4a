"""A batch read of a queue of Warren that only looks: a range of positions, fixed when it is planned.

Nothing is taken from consumers, leased or marked. Every action on the DataFrame looks anew at what waits in the queue
then; what consumers take meanwhile is missing from it. Duty: planning the ranges and reading them over the broker's
HTTP API (its form is in ``http/messages/peek.py``). Not here: reads that must see the same messages each time
(``leased.py``).
"""

from __future__ import annotations

import http.client
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from warrenmq.client import Message
from warrenmq.spark.bad_records import bad_table
from warrenmq.spark.columns import BATCH_BYTES, BATCH_ROWS, Columns
from warrenmq.spark.connect import BrokerLost
from warrenmq.spark.httpapi import HttpApi
from warrenmq.spark.leased import parts_of
from warrenmq.spark.options import Options
from warrenmq.spark.pacing import at_a_rate
from warrenmq.spark.patience import Patience

if TYPE_CHECKING:
    import pyarrow as pa

TOGETHER = 500  # messages handed on at a time


class CutOff(Exception):
    """The answer ended before its end."""


@dataclass
class PeekPartition(InputPartition):
    """Positions ``first`` up to, not including, ``end``."""

    queue: str
    first: int
    end: int


@at_a_rate
class PeekedBatchReader(DataSourceReader):
    """The planner and reader of such a range, cut into partitions."""

    def __init__(self, options: Options, schema: StructType) -> None:
        self.options = options
        self.schema = schema

    def partitions(self) -> Sequence[InputPartition]:
        api = HttpApi(self.options)
        names = api.names(stream=False)
        found: list[InputPartition] = []
        for name in names:
            first, end, messages = api.positions(name)
            parts = parts_of(self.options, messages, len(names)) if messages else 0
            edges = [first + (end - first) * part // parts for part in range(parts + 1)] if parts else []
            found += [PeekPartition(name, a, b) for a, b in zip(edges, edges[1:], strict=False) if a < b]
        return found or [PeekPartition("", 0, 0)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, PeekPartition)
        with bad_table(self.options, f"{partition.queue}-{partition.first}-{partition.end}") as bad:
            columns = Columns(self.schema, partition.queue, bad)
            for messages in look(self.options, partition):
                columns.extend(messages)
                if len(columns) >= BATCH_ROWS or columns.bytes >= BATCH_BYTES:
                    yield columns.take()
            if len(columns):
                yield columns.take()


def look(options: Options, partition: PeekPartition) -> Iterator[list[Message]]:
    """The messages of a range; an answer that is cut off is asked for again from where it ended."""
    at = partition.first
    patience = Patience(options)
    while at < partition.end:
        try:
            with HttpApi(options).peek(partition.queue, at, partition.end) as response:
                for last, messages in _messages(response):
                    at = last + 1
                    patience.progressed()
                    yield messages
            return
        except (OSError, http.client.HTTPException, CutOff) as error:
            if not patience.again():
                where = options.http_address
                raise BrokerLost(f"queue '{partition.queue}' at {where} cannot be looked at: {error}") from None


def _messages(response: http.client.HTTPResponse) -> Iterator[tuple[int, list[Message]]]:
    """Position of the last one, and some messages."""
    held: list[Message] = []
    last = -1
    size = 0
    while True:
        (position,) = struct.unpack(">q", _exactly(response, 8))
        if position < 0:
            break
        redelivered = _exactly(response, 1) == b"\1"
        exchange, routing_key = _short(response), _short(response)
        header = _exactly(response, int.from_bytes(_exactly(response, 4), "big"))
        body = _exactly(response, int.from_bytes(_exactly(response, 8), "big"))
        held.append(Message(0, redelivered, exchange, routing_key, header, body))
        last = position
        size += len(body)
        if len(held) >= TOGETHER or size >= BATCH_BYTES:
            yield last, held
            held, size = [], 0
    if held:
        yield last, held


def _short(response: http.client.HTTPResponse) -> str:
    return _exactly(response, _exactly(response, 1)[0]).decode("utf-8", "surrogateescape")


def _exactly(response: http.client.HTTPResponse, count: int) -> bytes:
    data = response.read(count)
    if len(data) < count:
        raise CutOff("the answer was cut off")
    return data
