"""From deliveries to Arrow columns.

Duty: collect deliveries and turn them into record batches with exactly the schema Spark asked for. Properties are
decoded once per distinct header, not once per message: messages of one publisher mostly share theirs, and in a stream
they differ in nothing but ``x-stream-offset``, which is left out of the comparison. Where all headers are equally long
they are compared as one block of octets, without a step of Python per message. Columns nobody asked for are not
collected. Not here: the socket, and what to read (``stream.py``, ``leased.py``, ``plain.py``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from warrenmq.spark.compat import arrow_schema
from warrenmq.spark.headers import to_maps
from warrenmq.spark.schema import PROPERTIES
from warrenmq.wire.content import decode_properties

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from warrenmq.client import Message

OFFSET_HEADER = "x-stream-offset"
# How the header stands in a content header's table: name as a short string, then a signed 64 bit number.
OFFSET_MARK = b"\x0fx-stream-offsetl"
OFFSET_AT = len(OFFSET_MARK)
BODY_SIZE = slice(4, 12)  # of a content header: differs with the body, says nothing about properties
REMEMBERED = 4096  # distinct headers; beyond it the memory starts afresh
PROPERTY_NAMES = tuple(name for name, _ in PROPERTIES)
MICROSECONDS = 1_000_000
# Spark's timestamps end with the year 294247; what lies beyond (AMQP's are unsigned 64 bit) is no time.
LATEST_TIMESTAMP = 2**63 // MICROSECONDS - 1


def stream_offset(header: bytes) -> int:
    """The offset a stream delivery carries in its headers; -1 when there is none."""
    at = header.find(OFFSET_MARK)
    if at < 0:
        return -1
    return int.from_bytes(header[at + OFFSET_AT : at + OFFSET_AT + 8], "big", signed=True)


def stream_offsets(headers: list[bytes]) -> list[int]:
    """The offsets of many deliveries."""
    block = _block(headers)
    if block is None:
        return [stream_offset(header) for header in headers]
    at = headers[0].find(OFFSET_MARK)
    # The same place in every header, unless somebody publishes headers of one length and different order.
    if at < 0 or (block[:, at : at + OFFSET_AT] != block[0, at : at + OFFSET_AT]).any():
        return [stream_offset(header) for header in headers]
    numbers: list[int] = block[:, at + OFFSET_AT : at + OFFSET_AT + 8].copy().view(">i8").ravel().tolist()
    return numbers


def _block(headers: list[bytes]) -> Any:
    """Headers of one length as a table of octets, a row each; None when their lengths differ."""
    import numpy

    size = len(headers[0]) if headers else 0
    joined = b"".join(headers)
    if not size or len(joined) != size * len(headers) or set(map(len, headers)) != {size}:
        return None
    return numpy.frombuffer(joined, numpy.uint8).reshape(len(headers), size)


class Columns:
    """Deliveries collected for one record batch after another."""

    def __init__(self, schema: StructType, queue: str) -> None:
        self.arrow = arrow_schema(schema)
        self.queue = queue
        self.names = set(self.arrow.names)
        self.wanted = [name for name in PROPERTY_NAMES if name in self.names]
        self._memory: dict[bytes, tuple[Any, ...]] = {}
        self._start()

    def _start(self) -> None:
        self.exchanges: list[str] = []
        self.routing_keys: list[str] = []
        self.redelivered: list[bool] = []
        self.headers: list[bytes] = []
        self.bodies: list[bytes] = []
        self.offsets: list[int] = []
        self.bytes = 0

    def __len__(self) -> int:
        return len(self.bodies)

    def extend(self, messages: list[Message], offsets: list[int] | None = None) -> None:
        """Many at once, as ``Channel.receive`` gives them."""
        bodies = [message.body for message in messages]
        self.bodies += bodies
        self.bytes += sum(map(len, bodies))
        names = self.names
        if "exchange" in names:
            self.exchanges += [message.exchange for message in messages]
        if "routing_key" in names:
            self.routing_keys += [message.routing_key for message in messages]
        if "redelivered" in names:
            self.redelivered += [message.redelivered for message in messages]
        if self.wanted:
            self.headers += [message.header for message in messages]
        if "offset" in names:
            self.offsets += [-1] * len(messages) if offsets is None else offsets

    def take(self) -> pa.RecordBatch:
        """What was collected, as one record batch; collecting starts afresh."""
        import pyarrow as pa

        count = len(self.bodies)
        properties = self._properties(count) if self.wanted else {}
        arrays: list[pa.Array] = []
        for field in self.arrow:
            if field.name in properties:
                arrays.append(properties[field.name])
            elif field.name == "queue":
                arrays.append(pa.repeat(pa.scalar(self.queue, field.type), count))
            elif field.name == "exchange":
                arrays.append(pa.array(self.exchanges, field.type))
            elif field.name == "routing_key":
                arrays.append(pa.array(self.routing_keys, field.type))
            elif field.name == "redelivered":
                arrays.append(pa.array(self.redelivered, field.type))
            elif field.name == "offset":
                known = [None if offset < 0 else offset for offset in self.offsets]
                arrays.append(pa.array(known, field.type))
            else:
                arrays.append(pa.array(self.bodies, field.type))
        batch = pa.RecordBatch.from_arrays(arrays, schema=self.arrow)
        self._start()
        return batch

    # --- properties

    def _properties(self, count: int) -> dict[str, pa.Array]:
        """A column for every property asked for: the distinct values, spread over the rows by their number."""
        import pyarrow as pa

        distinct, numbers = self._distinct()
        found: dict[str, pa.Array] = {}
        spread = None
        for index, name in enumerate(self.wanted):
            kind = self.arrow.field(name).type
            values = [each[index] for each in distinct]
            if all(value is None for value in values):
                found[name] = pa.nulls(count, kind)
                continue
            column = pa.array(values, kind)
            if len(distinct) < count or numbers is not None:
                if spread is None:
                    spread = pa.array([0] * count if numbers is None else numbers, pa.int32())
                column = column.take(spread)
            found[name] = column
        return found

    def _distinct(self) -> tuple[list[tuple[Any, ...]], list[int] | None]:
        """The distinct property values, and which of them each row has (None: all rows the first)."""
        headers = self.headers
        if self._all_alike():
            return [self._decode(headers[0])], None
        memory = self._memory
        places: dict[bytes, int] = {}
        distinct: list[tuple[Any, ...]] = []
        numbers: list[int] = []
        for header in headers:
            at = header.find(OFFSET_MARK)
            key = header[12:] if at < 0 else header[12:at] + header[at + OFFSET_AT + 8 :]
            place = places.get(key)
            if place is None:
                values = memory.get(key)
                if values is None:
                    values = self._decode(header)
                    if len(memory) >= REMEMBERED:
                        memory.clear()
                    memory[key] = values
                place = places[key] = len(distinct)
                distinct.append(values)
            numbers.append(place)
        return distinct, numbers

    def _all_alike(self) -> bool:
        """Whether the headers differ in nothing but body size and stream offset."""
        headers = self.headers
        if len(headers) < 2:
            return len(headers) == 1
        block = _block(headers)
        if block is None:
            return False
        same = (block == block[0]).all(axis=0)
        same[BODY_SIZE] = True
        at = headers[0].find(OFFSET_MARK)
        if at >= 0:
            same[at + OFFSET_AT : at + OFFSET_AT + 8] = True
        return bool(same.all())

    def _decode(self, header: bytes) -> tuple[Any, ...]:
        properties = decode_properties(header)
        headers: list[tuple[str, str | None]] | None = None
        types: list[tuple[str, str]] | None = None
        table = properties.headers
        if table is not None:
            # The offset has its own column; published again it would only be a stale number.
            table = {name: field for name, field in table.items() if name != OFFSET_HEADER}
            texts, letters = to_maps(table)
            headers = list(texts.items()) if texts else None
            types = list(letters.items()) if letters else None
        values: list[Any] = []
        for name in self.wanted:
            if name == "headers":
                values.append(headers)
            elif name == "header_types":
                values.append(types)
            elif name == "timestamp":
                seconds = properties.timestamp
                values.append(None if seconds is None or seconds > LATEST_TIMESTAMP else seconds * MICROSECONDS)
            else:
                value = getattr(properties, name)
                values.append(_printable(value) if isinstance(value, str) else value)
        return tuple(values)


def _printable(text: str) -> str:
    """Arrow takes no surrogates: octets that were no UTF-8 are replaced."""
    return text if text.isascii() else text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
