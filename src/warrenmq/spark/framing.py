"""From Arrow columns to frames, without a Python object per row.

Duty: hand the buffers of a record batch to compiled code (``client/publishes.py``), which writes all its rows for the
wire. For what it does not take (a cell that cannot be said, text that is no UTF-8, headers whose values are no text)
the answer is None, and the batch goes the long way (``encode.py``): whatever both ways take, they say in the same
octets. Not here: publishing (``publisher.py``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from librt.strings import BytesWriter

from warrenmq.client.publishes import MapColumn, NumberColumn, Publishes, TextColumn
from warrenmq.spark.headers import octets_of_text
from warrenmq.wire.properties import PROPERTIES

if TYPE_CHECKING:
    import pyarrow as pa

MOST_OCTETS = 8 * 1024 * 1024  # of the columns of a batch: its frames are held as one piece
LATEST = 253_402_300_800  # seconds; Python's times end with the year 9999, and the long way with them
FIRST = ("content_type", "content_encoding")
MIDDLE = ("correlation_id", "reply_to", "expiration")
LAST = ("type", "user_id", "app_id", "cluster_id")


class Unusual(Exception):
    """A batch that is for the long way."""


class Framing:
    """The parts that are equal for all batches of a task. Exchange and routing key stand in for missing columns and
    nulls."""

    def __init__(self, exchange: str, routing_key: str, persistent: bool, mandatory: bool) -> None:
        self.exchange = exchange.encode("utf-8", "surrogateescape")
        self.routing_key = routing_key.encode("utf-8", "surrogateescape")
        self.delivery_mode = 2 if persistent else 1
        self.mandatory = mandatory

    def frames(self, batch: pa.RecordBatch, generated: list[str], channel: int, frame_max: int) -> bytes | None:
        """All rows, ready to be sent on that channel; None when the long way has to be gone."""
        if not batch.num_rows or batch.nbytes > MOST_OCTETS:
            return None
        try:
            rows = self._publishes(batch, generated)
        except Unusual:
            return None
        out = BytesWriter()
        return out.getvalue() if rows.write(out, channel, frame_max) else None

    def _publishes(self, batch: pa.RecordBatch, generated: list[str]) -> Publishes:
        # A column of nulls only is no column.
        columns = {
            name: column
            for name, column in zip(batch.schema.names, batch.columns, strict=True)
            if column.null_count < len(column)
        }
        if "body" not in columns or columns["body"].null_count:
            raise Unusual
        rows = Publishes(
            batch.num_rows, _octets(columns["body"]), generated, self.delivery_mode, self.mandatory, octets_of_text
        )
        rows.exchange, rows.routing_key = self.exchange, self.routing_key
        if "exchange" in columns:
            rows.exchanges = _texts(columns["exchange"])
        if "routing_key" in columns:
            rows.routing_keys = _texts(columns["routing_key"])
        if "mandatory" in columns:
            rows.mandatories = _flags(columns["mandatory"].fill_null(self.mandatory))
        flags = {row.name: row.flag for row in PROPERTIES}
        for names, found in ((FIRST, rows.first), (MIDDLE, rows.middle), (LAST, rows.last)):
            found += [_texts(columns[name], flags[name]) for name in names if name in columns]
        if "message_id" in columns:
            rows.message_ids = _texts(columns["message_id"])
        if "delivery_mode" in columns:
            rows.delivery_modes = _numbers(columns["delivery_mode"], 255)
        if "priority" in columns:
            rows.priorities = _numbers(columns["priority"], 255)
        if "timestamp" in columns:
            rows.timestamps = _numbers(_seconds(columns["timestamp"]), LATEST - 1)
        if "headers" in columns:
            rows.headers = _maps(columns["headers"])
            if "header_types" in columns:
                rows.header_types = _maps(columns["header_types"])
        return rows


def _texts(column: pa.Array, flag: int = 0) -> TextColumn:
    import pyarrow as pa

    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        raise Unusual
    found = _octets(column, flag)
    if not found.data.isascii():
        try:
            column.validate(full=True)
        except pa.ArrowInvalid:
            raise Unusual from None
    return found


def _octets(column: pa.Array, flag: int = 0) -> TextColumn:
    import pyarrow as pa

    kinds = pa.types
    if kinds.is_large_string(column.type) or kinds.is_large_binary(column.type):
        column = column.cast(pa.binary())
    elif not (kinds.is_string(column.type) or kinds.is_binary(column.type)):
        raise Unusual
    _, offsets, data = column.buffers()
    ends = _ends(column, offsets)
    first, last = _edges(ends)
    return TextColumn(ends, b"" if data is None else data[first:last].to_pybytes(), _there(column), flag)


def _numbers(column: pa.Array, most: int) -> NumberColumn:
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_integer(column.type):
        raise Unusual
    wide = column.cast(pa.int64())
    edges = pc.min_max(wide).as_py()
    if edges["min"] < 0 or edges["max"] > most:
        raise Unusual
    data = wide.buffers()[1][wide.offset * 8 : (wide.offset + len(wide)) * 8]
    return NumberColumn(data.to_pybytes(), _there(column))


def _seconds(column: pa.Array) -> pa.Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_timestamp(column.type):
        return column
    if column.type.unit != "us":
        raise Unusual
    microseconds = column.view(pa.int64())
    if pc.min(microseconds).as_py() < 0:
        raise Unusual
    return pc.divide(microseconds, 1_000_000)


def _maps(column: pa.Array) -> MapColumn:
    import pyarrow as pa

    if not pa.types.is_map(column.type):
        raise Unusual
    ends = _ends(column, column.buffers()[1])
    first, last = _edges(ends)
    names, values = column.keys[first:last], column.items[first:last]
    if not len(values):
        values = values.cast(pa.string())
    return MapColumn(ends, _texts(names), _texts(values), _there(column))


def _ends(column: pa.Array, ends: pa.Buffer | None) -> bytes:
    """Where the rows of this slice end, and where the first begins."""
    if ends is None or not len(column):  # without rows there need not be one
        return bytes(4)
    octets: bytes = ends[column.offset * 4 : (column.offset + len(column) + 1) * 4].to_pybytes()
    return octets


def _edges(ends: bytes) -> tuple[int, int]:
    return int.from_bytes(ends[:4], "little"), int.from_bytes(ends[-4:], "little")


def _there(column: pa.Array) -> bytes:
    return b"" if not column.null_count else _flags(column.is_valid())


def _flags(column: pa.Array) -> bytes:
    """An octet for each."""
    import pyarrow as pa

    octets = column.cast(pa.uint8())
    found: bytes = octets.buffers()[1][octets.offset : octets.offset + len(octets)].to_pybytes()
    return found
