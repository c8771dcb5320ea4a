"""From deliveries to Arrow columns.

Duty: collect deliveries and turn them into record batches with exactly the schema Spark asked for. Properties are
decoded once per distinct header, not once per message: messages of one publisher mostly share theirs, and in a stream
they differ in nothing but ``x-stream-offset``, which is cut out before comparing. Columns nobody asked for are not
decoded at all. Not here: the socket, and what to read (``stream.py``, ``leased.py``, ``plain.py``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from warren.spark.headers import to_maps
from warren.spark.schema import PROPERTIES
from warren.wire.content import decode_properties

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from warren.client import Message

OFFSET_HEADER = "x-stream-offset"
# How the header stands in a content header's table: name as a short string, then a signed 64 bit number.
OFFSET_MARK = b"\x0fx-stream-offsetl"
OFFSET_AT = len(OFFSET_MARK)
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


class Columns:
    """Deliveries collected for one record batch after another."""

    def __init__(self, schema: StructType, queue: str) -> None:
        from pyspark.sql.pandas.types import to_arrow_schema

        self.arrow: pa.Schema = to_arrow_schema(schema, timezone="UTC")
        self.queue = queue
        names = set(self.arrow.names)
        self.wanted = [name for name in PROPERTY_NAMES if name in names]
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
        self.exchanges += [message.exchange for message in messages]
        self.routing_keys += [message.routing_key for message in messages]
        self.redelivered += [message.redelivered for message in messages]
        self.headers += [message.header for message in messages]
        self.bodies += bodies
        self.offsets += [-1] * len(messages) if offsets is None else offsets
        self.bytes += sum(map(len, bodies))

    def take(self) -> pa.RecordBatch:
        """What was collected, as one record batch; collecting starts afresh."""
        import pyarrow as pa

        count = len(self.bodies)
        properties = self._decoded() if self.wanted else []
        arrays: list[pa.Array] = []
        for field in self.arrow:
            if field.name in self.wanted:
                index = self.wanted.index(field.name)
                column = [values[index] for values in properties]
                if not any(value is not None for value in column):
                    arrays.append(pa.nulls(count, field.type))
                else:
                    arrays.append(pa.array(column, field.type))
            elif field.name == "queue":
                arrays.append(pa.array([self.queue] * count, field.type))
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

    def _decoded(self) -> list[tuple[Any, ...]]:
        memory = self._memory
        decoded: list[tuple[Any, ...]] = []
        for header in self.headers:
            at = header.find(OFFSET_MARK)
            # Without the body size in front, and without the offset.
            key = header[12:] if at < 0 else header[12:at] + header[at + OFFSET_AT + 8 :]
            values = memory.get(key)
            if values is None:
                values = self._decode(header)
                if len(memory) >= REMEMBERED:
                    memory.clear()
                memory[key] = values
            decoded.append(values)
        return decoded

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
