"""From deliveries to Arrow columns.

Duty: collect deliveries and turn them into record batches with exactly the schema Spark asked for. Properties are taken
apart by compiled code, straight into Arrow's buffers (``client/columns.py``); a block with anything unusual in it, such
as text that is no UTF-8, is decoded message by message instead. Columns nobody asked for are not collected. Not here:
the socket, and what to read (``stream.py``, ``leased.py``, ``plain.py``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from warrenmq.client.columns import Maps, Numbers, PropertyColumns, Texts
from warrenmq.client.deliveries import Deliveries
from warrenmq.spark.bad_records import COLUMN, BadTable, Faults, said
from warrenmq.spark.compat import arrow_schema
from warrenmq.spark.headers import all_names_are_text, text_of_octets, to_maps
from warrenmq.spark.schema import PROPERTIES
from warrenmq.spark.worker import freeze_imports
from warrenmq.wire.content import decode_properties
from warrenmq.wire.fields import encode_table, printable
from warrenmq.wire.replies import AmqpError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from warrenmq.client import Message

OFFSET_HEADER = "x-stream-offset"
BATCH_ROWS = 10_000  # rows of one record batch, at most
BATCH_BYTES = 16 * 1024 * 1024
PROPERTY_NAMES = tuple(name for name, _ in PROPERTIES)
MAPS = frozenset(
    name for name, kind in PROPERTIES if kind.startswith("map")
)  # empty where there is nothing, never null
MICROSECONDS = 1_000_000
# Spark's timestamps end with the year 294247; what lies beyond (AMQP's are unsigned 64 bit) is no time.
LATEST_TIMESTAMP = 2**63 // MICROSECONDS - 1


class Columns:
    """Deliveries collected for one record batch after another."""

    def __init__(self, schema: StructType, queue: str, bad: BadTable | None = None, lease: str = "") -> None:
        self.arrow = arrow_schema(schema)
        self.queue = queue
        self.lease = lease
        self.slots: list[int] = []  # of what was collected, where the column is asked for
        self.names = set(self.arrow.names)
        self.wanted = [name for name in PROPERTY_NAMES if name in self.names]
        self._bad = bad
        self.collected = Deliveries(self._parts())

    def _parts(self) -> list[str]:
        return [*self.names, *(["header"] if self.wanted else [])]

    def __len__(self) -> int:
        return self.collected.rows

    @property
    def bytes(self) -> int:
        """Octets of bodies collected."""
        return self.collected.octets

    def extend(self, messages: list[Message]) -> None:
        """Many at once, as ``Channel.receive`` gives them."""
        self.collected.extend(messages)

    def take(self) -> pa.RecordBatch:
        """What was collected, as one record batch; collecting starts afresh."""
        import pyarrow as pa

        collected = self.collected
        self.collected = Deliveries(self._parts())
        slots, self.slots = self.slots, []
        count = collected.rows
        faults: Faults = {}
        properties = properties_of(collected.headers, self.wanted, self.arrow, faults) if self.wanted else {}
        arrays: list[pa.Array] = []
        for field in self.arrow:
            if field.name in properties:
                arrays.append(properties[field.name])
            elif field.name == "queue":
                arrays.append(pa.repeat(pa.scalar(self.queue, field.type), count))
            elif field.name == "lease":
                arrays.append(pa.repeat(pa.scalar(self.lease, field.type), count))
            elif field.name == "slot":
                arrays.append(pa.array(slots, field.type))
            elif field.name == "exchange":
                arrays.append(_texts(collected.exchanges, field, faults))
            elif field.name == "routing_key":
                arrays.append(_texts(collected.routing_keys, field, faults))
            elif field.name == "redelivered":
                arrays.append(pa.array(collected.redelivered, field.type))
            elif field.name == "offset":
                collected.offsets.pad(count)
                arrays.append(_array(collected.offsets, field.type))
            elif field.name == COLUMN:
                arrays.append(pa.nulls(count, field.type))  # until all cells were looked at
            else:
                arrays.append(_array(collected.bodies, field.type))
        batch = pa.RecordBatch.from_arrays(arrays, schema=self.arrow)
        freeze_imports("read")
        return self._without_faults(batch, faults) if faults else batch

    def _without_faults(self, batch: pa.RecordBatch, faults: Faults) -> pa.RecordBatch:
        """Rows with a cell that cannot be said: told in their column, or taken out."""
        import pyarrow as pa

        records = said(faults, batch.num_rows)
        if COLUMN in self.names:
            index = self.arrow.get_field_index(COLUMN)
            batch = batch.set_column(index, self.arrow.field(index), pa.array(records, pa.string()))
        if self._bad is None:
            return batch
        rows = sorted(faults)
        bad = batch.take(pa.array(rows))
        self._bad.add(bad.drop_columns([COLUMN]) if COLUMN in self.names else bad, [records[row] for row in rows])
        return batch.filter(pa.array([row not in faults for row in range(batch.num_rows)]))


def _texts(values: list[str], field: pa.Field, faults: Faults) -> pa.Array:
    import pyarrow as pa

    try:
        return pa.array(values, field.type)
    except UnicodeEncodeError:
        for row, value in enumerate(values):
            if printable(value) != value:
                faults.setdefault(row, {})[field.name] = value.encode("utf-8", "surrogateescape")
        return pa.array([printable(value) for value in values], field.type)


# --- properties


def properties_of(headers: list[bytes], wanted: list[str], arrow: pa.Schema, faults: Faults) -> dict[str, pa.Array]:
    """A column for every property asked for."""
    quick = PropertyColumns(wanted, text_of_octets)
    if quick.add(headers):
        quick.end()
        found = {name: _array(_column(quick, name), arrow.field(name).type) for name in wanted}
        if all(column is not None for column in found.values()):
            return found
    return properties_one_by_one(headers, wanted, arrow, faults)


def properties_one_by_one(
    headers: list[bytes], wanted: list[str], arrow: pa.Schema, faults: Faults | None = None
) -> dict[str, pa.Array]:
    """The long way, which takes whatever there is; what the quick one gives must be the same."""
    import pyarrow as pa

    rows = []
    for number, header in enumerate(headers):
        bad: dict[str, bytes] = {}
        rows.append(_decode(header, wanted, bad))
        if bad and faults is not None:
            faults.setdefault(number, {}).update(bad)
    return {name: pa.array([row[index] for row in rows], arrow.field(name).type) for index, name in enumerate(wanted)}


def _decode(header: bytes, wanted: list[str], bad: dict[str, bytes]) -> tuple[Any, ...]:
    try:
        properties = decode_properties(header)
    except AmqpError:  # no broker lets such a one in, but one may have it from an earlier version
        bad["header"] = header
        return tuple([] if name in MAPS else None for name in wanted)
    headers: list[tuple[str, str | None]] = []
    types: list[tuple[str, str]] = []
    table = properties.headers
    if table is not None:
        # The offset has its own column; published again it would only be a stale number.
        table = {name: field for name, field in table.items() if name != OFFSET_HEADER}
        if ("headers" in wanted or "header_types" in wanted) and not all_names_are_text(table):
            bad["headers"] = encode_table(table)
        texts, letters = to_maps(table)
        headers = list(texts.items())
        types = list(letters.items())
    values: list[Any] = []
    for name in wanted:
        if name == "headers":
            values.append(headers)
        elif name == "header_types":
            values.append(types)
        elif name == "timestamp":
            seconds = properties.timestamp
            if seconds is not None and seconds > LATEST_TIMESTAMP:
                bad[name] = b"%d" % seconds
                seconds = None
            values.append(None if seconds is None else seconds * MICROSECONDS)
        else:
            value = getattr(properties, name)
            if isinstance(value, str) and printable(value) != value:
                bad[name] = value.encode("utf-8", "surrogateescape")
                value = printable(value)
            values.append(value)
    return tuple(values)


def _column(quick: PropertyColumns, name: str) -> Texts | Numbers | Maps:
    found = quick.texts.get(name)
    return getattr(quick, name) if found is None else found


def _array(column: Texts | Numbers | Maps, kind: pa.DataType) -> pa.Array | None:
    """The buffers of a column as an Arrow array; None when some text is no UTF-8."""
    import pyarrow as pa

    rows = column.rows
    if isinstance(column, Maps):
        names = _array(column.names, kind.key_type)
        values = _array(column.values, kind.item_type)
        if names is None or values is None:
            return None
        entries = pa.StructArray.from_arrays([names, values], fields=[kind.key_field, kind.item_field])
        return pa.Array.from_buffers(kind, rows, [None, pa.py_buffer(column.ends.getvalue())], 0, children=[entries])
    if column.missing == rows:
        return pa.nulls(rows, kind)
    there = _bits(column.there.getvalue()) if column.missing else None
    if isinstance(column, Numbers):
        return pa.Array.from_buffers(kind, rows, [there, pa.py_buffer(column.data.getvalue())], column.missing)
    ends, data = column.ends.getvalue(), column.data.getvalue()
    if not pa.types.is_binary(kind) and not _is_text(data, ends):
        return None
    return pa.Array.from_buffers(kind, rows, [there, pa.py_buffer(ends), pa.py_buffer(data)], column.missing)


def _bits(there: bytes) -> pa.Buffer:
    import numpy
    import pyarrow as pa

    return pa.py_buffer(numpy.packbits(numpy.frombuffer(there, numpy.uint8), bitorder="little"))


def _is_text(data: bytes, ends: bytes) -> bool:
    """Is every value of the column UTF-8? All of it must be, and no value may begin in the middle of a character."""
    if data.isascii():
        return True
    import numpy

    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    starts = numpy.frombuffer(ends, "<i4")
    firsts = numpy.frombuffer(data, numpy.uint8)[starts[starts < len(data)]]
    return not ((firsts & 0xC0) == 0x80).any()
