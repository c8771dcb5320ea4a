"""Columns as publishes on the wire: Arrow's buffers in, frames out, without a Python object per message.

Duty: for each row a basic.publish frame, a content header frame and the body's frames, one behind the other. Columns
are laid out as Arrow does it (``client/columns.py`` has the grammar). All rows or none: a row that cannot be said, or
is unusual, makes ``write`` say so, and the caller goes the long way (``spark/encode.py``), whose octets are the measure
of these. Not here: Arrow itself, sending, and which row it was.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

from librt.strings import BytesWriter, read_i32_le, read_i64_le, write_i16_be, write_i32_be, write_i64_be
from mypy_extensions import i32, i64, u8

from warrenmq.client.encoder import write_channel
from warrenmq.wire.constants import (
    CLASS_BASIC,
    FRAME_BODY,
    FRAME_END,
    FRAME_HEADER,
    FRAME_METHOD,
    FRAME_OVERHEAD,
    ID_BASIC_PUBLISH,
)
from warrenmq.wire.content import write_frame
from warrenmq.wire.field_types import LETTER_LONGSTR, LETTER_VOID
from warrenmq.wire.properties import (
    FLAG_DELIVERY_MODE,
    FLAG_HEADERS,
    FLAG_MESSAGE_ID,
    FLAG_PRIORITY,
    FLAG_TIMESTAMP,
)

MOST_SHORT: Final = 255  # octets of a short string
TOO_LONG: Final = 0x10000  # no flag of a property
MOST_ENTRIES: Final = 64  # of a table, before searching it for its own names takes long


@final
class TextColumn:
    """A column of texts or octets. ``data`` begins with the first row's; ``there`` has an octet a row, or none when all
    are."""

    def __init__(self, ends: bytes, data: bytes, there: bytes, flag: int = 0) -> None:
        self.ends: Final = ends
        self.data: Final = data
        self.there: Final = there
        self.flag: Final[i64] = flag  # of the property
        self.base: Final[i64] = i64(read_i32_le(ends, 0))

    def has(self, row: i64) -> bool:
        return len(self.there) == 0 or self.there[row] != 0

    def of(self, row: i64) -> bytes:
        start = i64(read_i32_le(self.ends, row * 4)) - self.base
        return self.data[start : i64(read_i32_le(self.ends, row * 4 + 4)) - self.base]


@final
class NumberColumn:
    """A column of signed numbers of 64 bits."""

    def __init__(self, data: bytes, there: bytes) -> None:
        self.data: Final = data
        self.there: Final = there

    def has(self, row: i64) -> bool:
        return len(self.there) == 0 or self.there[row] != 0

    def of(self, row: i64) -> i64:
        return read_i64_le(self.data, row * 8)


@final
class MapColumn:
    """A column of maps from text to text, where an empty one is none; names and values begin with the first row's."""

    def __init__(self, ends: bytes, names: TextColumn, values: TextColumn, there: bytes) -> None:
        self.ends: Final = ends
        self.names: Final = names
        self.values: Final = values
        self.there: Final = there
        self.base: Final[i64] = i64(read_i32_le(ends, 0))

    def has(self, row: i64) -> bool:
        return (len(self.there) == 0 or self.there[row] != 0) and self.edge(row) != self.edge(row + 1)

    def edge(self, row: i64) -> i64:
        """The first entry of that row."""
        return i64(read_i32_le(self.ends, row * 4)) - self.base


@final
class Publishes:
    """The rows of a batch. What is no column is the same for all rows.

    ``convert`` gives a header's value as it stands on the wire, by letter and text, and raises ValueError or TypeError
    when there is none. The lists are columns of short strings in wire order: up to content_encoding, up to expiration,
    and behind the timestamp.
    """

    def __init__(
        self,
        rows: int,
        body: TextColumn,
        generated: list[str],
        delivery_mode: int,
        mandatory: bool,
        convert: Callable[[str, str], bytes],
    ) -> None:
        self.rows: Final[i64] = rows
        self.body: Final = body
        self.generated: Final = generated  # ids of rows that have none
        self.mode: Final[i64] = delivery_mode
        self.mandatory: Final = mandatory
        self.convert: Final = convert
        self.exchange = b""
        self.routing_key = b""
        self.exchanges: TextColumn | None = None
        self.routing_keys: TextColumn | None = None
        self.mandatories = b""  # an octet a row
        self.first: list[TextColumn] = []
        self.middle: list[TextColumn] = []
        self.last: list[TextColumn] = []
        self.message_ids: TextColumn | None = None
        self.delivery_modes: NumberColumn | None = None
        self.priorities: NumberColumn | None = None
        self.timestamps: NumberColumn | None = None  # in seconds
        self.headers: MapColumn | None = None
        self.header_types: MapColumn | None = None

    def write(self, out: BytesWriter, channel: i64, frame_max: i64) -> bool:
        """All frames of all rows. False: some row is unusual, and what was written is void."""
        exchange = self.exchange
        routing_key = self.routing_key
        mandatory = self.mandatory
        publish = b""
        row: i64 = 0
        while row < self.rows:
            fresh = row == 0
            exchanges = self.exchanges
            if exchanges is not None:
                name = exchanges.of(row) if exchanges.has(row) else self.exchange
                if name != exchange:
                    exchange = name
                    fresh = True
            keys = self.routing_keys
            if keys is not None:
                key = keys.of(row) if keys.has(row) else self.routing_key
                if key != routing_key:
                    routing_key = key
                    fresh = True
            if len(self.mandatories) > 0 and (self.mandatories[row] != 0) != mandatory:
                mandatory = not mandatory
                fresh = True
            if fresh:
                if len(exchange) > MOST_SHORT or len(routing_key) > MOST_SHORT:
                    return False
                publish = _publish(channel, exchange, routing_key, mandatory)
            out.write(publish)
            body = self.body.of(row)
            if not self._header(out, row, channel, len(body)):
                return False
            _write_body(out, channel, body, frame_max)
            row += 1
        return True

    def _header(self, out: BytesWriter, row: i64, channel: i64, body_size: i64) -> bool:
        out.append(FRAME_HEADER)
        write_channel(out, channel)
        begin = len(out)
        write_i32_be(out, 0)  # the frame's size, and the flags below, are known at the end
        write_i32_be(out, CLASS_BASIC << 16)  # class and weight
        write_i64_be(out, body_size)
        write_i16_be(out, 0)
        flags = _write_texts(out, self.first, row)
        headers = self.headers
        if headers is not None and headers.has(row):
            if not self._table(out, headers, row):
                return False
            flags |= FLAG_HEADERS
        mode = self.mode
        modes = self.delivery_modes
        if modes is not None and modes.has(row):
            mode = modes.of(row)
        out.append(int(mode))
        flags |= FLAG_DELIVERY_MODE
        priorities = self.priorities
        if priorities is not None and priorities.has(row):
            out.append(int(priorities.of(row)))
            flags |= FLAG_PRIORITY
        flags |= _write_texts(out, self.middle, row)
        ids = self.message_ids
        own = ids.of(row) if ids is not None and ids.has(row) else self.generated[row].encode("utf-8")
        if len(own) > MOST_SHORT:
            return False
        out.append(len(own))
        out.write(own)
        flags |= FLAG_MESSAGE_ID
        timestamps = self.timestamps
        if timestamps is not None and timestamps.has(row):
            write_i64_be(out, timestamps.of(row))
            flags |= FLAG_TIMESTAMP
        flags |= _write_texts(out, self.last, row)
        if flags & TOO_LONG:
            return False
        _patch(out, begin, len(out) - begin - 4)
        out[begin + 16] = u8(flags >> 8)
        out[begin + 17] = u8(flags & 0xFF)
        out.append(FRAME_END)
        return True

    def _table(self, out: BytesWriter, headers: MapColumn, row: i64) -> bool:
        begin = len(out)
        write_i32_be(out, 0)
        entry = headers.edge(row)
        end = headers.edge(row + 1)
        if end - entry > MOST_ENTRIES:
            return False
        types = self.header_types
        if types is not None and not types.has(row):
            types = None
        seen: list[bytes] = []
        while entry < end:
            name = headers.names.of(entry)
            if len(name) > MOST_SHORT or name in seen:
                return False
            seen.append(name)
            out.append(len(name))
            out.write(name)
            letter = b"" if types is None else _letter(types, row, name)
            if not headers.values.has(entry):
                out.append(LETTER_VOID)
            elif len(letter) == 0 or letter == b"S":
                text = headers.values.of(entry)
                out.append(LETTER_LONGSTR)
                write_i32_be(out, i32(len(text)))
                out.write(text)
            else:
                try:
                    out.write(self.convert(letter.decode("utf-8"), headers.values.of(entry).decode("utf-8")))
                except (ValueError, TypeError):
                    return False
            entry += 1
        _patch(out, begin, len(out) - begin - 4)
        return True


def _letter(types: MapColumn, row: i64, name: bytes) -> bytes:
    """Of entries with one name the last counts; empty when there is none."""
    entry = types.edge(row + 1)
    first = types.edge(row)
    while entry > first:
        entry -= 1
        if types.names.of(entry) == name:
            return types.values.of(entry) if types.values.has(entry) else b""
    return b""


def _write_texts(out: BytesWriter, columns: list[TextColumn], row: i64) -> i64:
    """The flags of those that are there; TOO_LONG among them when one is no short string."""
    flags: i64 = 0
    for column in columns:
        if column.has(row):
            octets = column.of(row)
            if len(octets) > MOST_SHORT:
                return TOO_LONG
            out.append(len(octets))
            out.write(octets)
            flags |= column.flag
    return flags


def _patch(out: BytesWriter, at: i64, size: i64) -> None:
    """A 32 bit number where there was room left for it."""
    out[at] = u8((size >> 24) & 0xFF)
    out[at + 1] = u8((size >> 16) & 0xFF)
    out[at + 2] = u8((size >> 8) & 0xFF)
    out[at + 3] = u8(size & 0xFF)


def _publish(channel: i64, exchange: bytes, routing_key: bytes, mandatory: bool) -> bytes:
    """The whole frame."""
    payload = BytesWriter()
    write_i32_be(payload, ID_BASIC_PUBLISH)
    write_i16_be(payload, 0)  # the ticket
    payload.append(len(exchange))
    payload.write(exchange)
    payload.append(len(routing_key))
    payload.write(routing_key)
    payload.append(1 if mandatory else 0)
    out = BytesWriter()
    write_frame(out, FRAME_METHOD, channel, payload.getvalue())
    return out.getvalue()


def _write_body(out: BytesWriter, channel: i64, body: bytes, frame_max: i64) -> None:
    size: i64 = len(body)
    most = size if frame_max == 0 else frame_max - FRAME_OVERHEAD
    at: i64 = 0
    while at < size:
        write_frame(out, FRAME_BODY, channel, body if size <= most else body[at : at + most])
        at += most
