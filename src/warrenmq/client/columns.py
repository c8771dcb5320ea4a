"""Deliveries as columns: the buffers that Arrow wants, filled without a Python object per value.

Duty: take the properties of many messages apart, and lay each property's values one behind the other: octets, where
each value ends, which rows have one. A property nobody asked for is walked over; one that no
message has costs nothing. Not here: Arrow itself, and whatever is unusual. A content header that is malformed makes
``add`` say so, text that is no UTF-8 is for the caller to see; it then decodes that block the long way
(``spark/columns.py``), whose answers are the measure of these.

    column of texts    ends  = 0 *end-of-value          32 bit, little-endian, one more than there are rows
                       data  = *octet
    column of numbers  data  = *value                   32 or 64 bit, little-endian
    column of maps     ends  = 0 *number-of-entries-so-far     over a column of names and a column of values
    texts and numbers  there = *octet                   one a row: 1 where the row has a value
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

from librt.strings import BytesWriter, read_i16_be, read_i32_be, read_i64_be, write_i32_le, write_i64_le
from mypy_extensions import i32, i64

from warrenmq.client.offsets import OFFSET_NAME
from warrenmq.wire.content import HEADER_FIXED
from warrenmq.wire.field_types import LETTER_BOOL, LETTER_LONG, LETTER_LONGSTR, LETTER_SIGNEDINT
from warrenmq.wire.fields import value_end
from warrenmq.wire.octets import longstr_end, need, shortstr_end
from warrenmq.wire.properties import FLAG_DELIVERY_MODE, FLAG_HEADERS, FLAG_PRIORITY, FLAG_TIMESTAMP, PROPERTIES
from warrenmq.wire.replies import AmqpError

MICROSECONDS: Final = 1_000_000
LATEST_TIMESTAMP: Final = 9223372036853  # seconds; what lies beyond does not fit into 64 bits of microseconds


@final
class Texts:
    """A column of texts. Rows that are passed over have none."""

    def __init__(self) -> None:
        self.rows: i64 = 0
        self.missing: i64 = 0
        self.ends: Final = BytesWriter()
        self.data: Final = BytesWriter()
        self.there: Final = BytesWriter()
        write_i32_le(self.ends, 0)

    def put(self, row: i64, octets: bytes) -> None:
        if row > self.rows:
            self.pad(row)
        self.data.write(octets)
        write_i32_le(self.ends, i32(len(self.data)))
        self.there.append(1)
        self.rows = row + 1

    def pad(self, rows: i64) -> None:
        """Up to that many rows have no value."""
        end = i32(len(self.data))
        while self.rows < rows:
            write_i32_le(self.ends, end)
            self.there.append(0)
            self.missing += 1
            self.rows += 1


@final
class Numbers:
    """A column of numbers, 4 or 8 octets each. Rows that are passed over have none."""

    def __init__(self, wide: bool) -> None:
        self.wide: Final = wide
        self.rows: i64 = 0
        self.missing: i64 = 0
        self.data: Final = BytesWriter()
        self.there: Final = BytesWriter()

    def put(self, row: i64, value: i64) -> None:
        if row > self.rows:
            self.pad(row)
        self._write(value)
        self.there.append(1)
        self.rows = row + 1

    def pad(self, rows: i64) -> None:
        while self.rows < rows:
            self._write(0)
            self.there.append(0)
            self.missing += 1
            self.rows += 1

    def _write(self, value: i64) -> None:
        if self.wide:
            write_i64_le(self.data, value)
        else:
            write_i32_le(self.data, i32(value))


@final
class Maps:
    """A column of maps from text to text. Rows that are passed over have an empty one, never none.

    Spark goes through all nulls of a column of maps anew with every row that it writes, so that a column of nothing
    but nulls takes it longer than all other columns together.
    """

    def __init__(self) -> None:
        self.rows: i64 = 0
        self.entries: i64 = 0
        self.names: Final = Texts()
        self.values: Final = Texts()
        self.ends: Final = BytesWriter()
        write_i32_le(self.ends, 0)

    def put(self, name: bytes, value: bytes) -> None:
        self.names.put(self.entries, name)
        self.values.put(self.entries, value)
        self.entries += 1

    def put_nothing(self, name: bytes) -> None:
        """An entry without a value."""
        self.names.put(self.entries, name)
        self.entries += 1
        self.values.pad(self.entries)

    def end_row(self, row: i64, before: i64) -> None:
        """All entries of a row are there; ``before``: how many there were without them."""
        if self.entries == before:
            return
        if row > self.rows:
            self.pad(row, before)
        write_i32_le(self.ends, i32(self.entries))
        self.rows = row + 1

    def pad(self, rows: i64, entries: i64) -> None:
        while self.rows < rows:
            write_i32_le(self.ends, i32(entries))
            self.rows += 1


@final
class PropertyColumns:
    """The properties of one block of messages after another, of each that was asked for by name.

    ``convert`` gives the text of a header's value that is no text, number or boolean: it gets the letter and octets.
    """

    def __init__(self, wanted: list[str], convert: Callable[[bytes], bytes | None]) -> None:
        self._convert: Final = convert
        self.texts: Final[dict[str, Texts]] = {}
        self._by_bit: Final[list[Texts | None]] = [None for _ in range(16)]
        for row in PROPERTIES:
            if row.type == "shortstr" and row.name in wanted:
                column = Texts()
                self.texts[row.name] = column
                self._by_bit[row.bit] = column
        self.delivery_mode: Final = Numbers(False)
        self.priority: Final = Numbers(False)
        self.timestamp: Final = Numbers(True)
        self.headers: Final = Maps()
        self.header_types: Final = Maps()
        self._maps: Final = "headers" in wanted or "header_types" in wanted
        self.rows: i64 = 0

    def add(self, headers: list[bytes]) -> bool:
        """Take apart these content headers, a row each. False: one of them is unusual, and all columns are void."""
        try:
            for header in headers:
                if not self._row(header):
                    return False
                self.rows += 1
        except AmqpError:
            return False
        return True

    def end(self) -> None:
        """Every column gets as many rows as there were headers."""
        for column in self.texts.values():
            column.pad(self.rows)
        self.delivery_mode.pad(self.rows)
        self.priority.pad(self.rows)
        self.timestamp.pad(self.rows)
        self.headers.pad(self.rows, self.headers.entries)
        self.header_types.pad(self.rows, self.header_types.entries)

    def _row(self, header: bytes) -> bool:
        row = self.rows
        end: i64 = len(header)
        if end < HEADER_FIXED:
            return False
        flags = i64(read_i16_be(header, 12)) & 0xFFFC
        at: i64 = HEADER_FIXED
        bit: i64 = 15
        while flags != 0:
            mask: i64 = i64(1) << bit
            if flags & mask:
                flags ^= mask
                if mask == FLAG_HEADERS:
                    stop = longstr_end(header, at, end)
                    if self._maps and not self._table(row, header, at + 4, stop):
                        return False
                    at = stop
                elif mask == FLAG_DELIVERY_MODE:
                    need(at, 1, end)
                    self.delivery_mode.put(row, header[at])
                    at += 1
                elif mask == FLAG_PRIORITY:
                    need(at, 1, end)
                    self.priority.put(row, header[at])
                    at += 1
                elif mask == FLAG_TIMESTAMP:
                    need(at, 8, end)
                    seconds = read_i64_be(header, at)
                    if not 0 <= seconds <= LATEST_TIMESTAMP:  # what is beyond is no time
                        return False
                    self.timestamp.put(row, seconds * MICROSECONDS)
                    at += 8
                else:
                    stop = shortstr_end(header, at, end)
                    column = self._by_bit[bit]
                    if column is not None:
                        column.put(row, header[at + 1 : stop])
                    at = stop
            bit -= 1
        return at == end

    def _table(self, row: i64, header: bytes, at: i64, end: i64) -> bool:
        """Each entry into the maps; of entries with one name the first counts."""
        seen: list[bytes] = []
        before = self.headers.entries
        before_types = self.header_types.entries
        while at < end:
            stop = shortstr_end(header, at, end)
            name = header[at + 1 : stop]
            at = value_end(header, stop, end)
            if name == OFFSET_NAME or name in seen:
                continue  # the offset has a column of its own
            seen.append(name)
            if len(seen) > 64:
                return False
            letter: i64 = header[stop]
            if letter == LETTER_LONGSTR:
                self.headers.put(name, header[stop + 5 : at])
                continue
            self.header_types.put(name, header[stop : stop + 1])
            if letter == LETTER_SIGNEDINT:
                self.headers.put(name, _digits(i64(read_i32_be(header, stop + 1))))
            elif letter == LETTER_LONG:
                self.headers.put(name, _digits(read_i64_be(header, stop + 1)))
            elif letter == LETTER_BOOL:
                self.headers.put(name, b"true" if header[stop + 1] != 0 else b"false")
            else:
                text = self._convert(header[stop:at])
                if text is None:
                    self.headers.put_nothing(name)
                else:
                    self.headers.put(name, text)
        self.headers.end_row(row, before)
        self.header_types.end_row(row, before_types)
        return True


def _digits(value: i64) -> bytes:
    return str(int(value)).encode("ascii")
