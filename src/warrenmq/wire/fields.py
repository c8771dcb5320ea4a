"""Field tables: the typed name/value maps of AMQP, with RabbitMQ's type letters.

    table = long-length *( name value )        name = shortstr
    array = long-length *value
    value = 't' octet                          bool (0 is false)
          / 'b' int8    / 'B' uint8            byte, unsignedbyte
          / 's' int16   / 'u' uint16           short, unsignedshort
          / 'I' int32   / 'i' uint32           signedint, unsignedint
          / 'l' int64   / 'L' int64            long
          / 'f' float32 / 'd' float64          float, double
          / 'D' scale-octet uint32             decimal
          / 'S' longstr / 'x' longstr          longstr, binary
          / 'T' uint64                         timestamp
          / 'A' array   / 'F' table / 'V'      array, table, void

Duty: a round trip keeps every type, so arguments come back as they were sent. Not here: what an argument means.

As RabbitMQ 3.10 (asked): names and long strings need not be UTF-8; of two entries with one name the first is heard.
Names that are no UTF-8 are kept as surrogate escapes, long strings as bytes. ``L`` is another letter for ``l``, signed
as well, and goes out as ``l``. Floats that are no numbers (NaN, the infinities) are refused where they come in
(``check_entries``); what was kept before stays readable. Nesting is limited (RabbitMQ's is not) so that a frame of
brackets cannot exhaust the stack.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from math import isfinite
from typing import Final, final

from librt.strings import (
    BytesWriter,
    read_f32_be,
    read_f64_be,
    read_i16_be,
    read_i32_be,
    read_i64_be,
    write_f32_be,
    write_f64_be,
    write_i32_be,
)
from mypy_extensions import i64

from warrenmq.wire.field_types import (
    LETTER_ARRAY,
    LETTER_BINARY,
    LETTER_BOOL,
    LETTER_BYTE,
    LETTER_DECIMAL,
    LETTER_DOUBLE,
    LETTER_FLOAT,
    LETTER_LONG,
    LETTER_LONG_AS_WELL,
    LETTER_LONGSTR,
    LETTER_SHORT,
    LETTER_SIGNEDINT,
    LETTER_TABLE,
    LETTER_TIMESTAMP,
    LETTER_UNSIGNEDBYTE,
    LETTER_UNSIGNEDINT,
    LETTER_UNSIGNEDSHORT,
    LETTER_VOID,
    TYPES,
)
from warrenmq.wire.octets import (
    Malformed,
    longstr_end,
    need,
    read_long,
    read_longlong,
    read_short,
    shortstr_end,
    write_long,
    write_longstr,
    write_octet,
    write_shortstr,
)

MAX_DEPTH: Final = 64


@final
class Field:
    """One typed value: the wire letter and what it stands for in Python (S: str, or bytes when not UTF-8)."""

    def __init__(self, kind: str, value: object) -> None:
        self.kind: Final = kind
        self.value: Final = value

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Field):
            return False
        return self.kind == other.kind and self.value == other.value

    def __hash__(self) -> int:
        return hash((self.kind, str(self.value)))

    def __repr__(self) -> str:
        return f"Field({self.kind!r}, {self.value!r})"


Table = dict[str, Field]


def type_name(field: Field) -> str:
    """RabbitMQ's word for the type, as it stands in reply texts."""
    return TYPES[field.kind].name


# --- reading


def decode_table(data: bytes, offset: i64) -> tuple[Table, i64]:
    """The table whose length word is at ``offset``, and the offset behind it."""
    stop = longstr_end(data, offset, len(data))
    return decode_entries(data, offset + 4, stop, 0), stop


def decode_entries(data: bytes, offset: i64, end: i64, depth: i64 = 0) -> Table:
    """A table's entries without the length word (AMQPLAIN sends a table that way)."""
    if depth > MAX_DEPTH:
        raise Malformed("table nested too deeply")
    need(offset, 0, end)
    if end > len(data):
        raise Malformed("unexpected end of data")
    table: Table = {}
    while offset < end:
        stop = shortstr_end(data, offset, end)
        name = data[offset + 1 : stop].decode("utf-8", "surrogateescape")
        following = value_end(data, stop, end)
        if name not in table:
            table[name] = _value(data, stop, following, depth)
        else:
            _value(data, stop, following, depth)  # not heard, but malformed all the same if it is
        offset = following
    return table


def value_end(data: bytes, offset: i64, end: i64) -> i64:
    """The offset behind the value (letter and content) at ``offset``; looks into no nested table."""
    need(offset, 1, end)
    letter: i64 = data[offset]
    size: i64 = 0
    if letter == LETTER_LONGSTR or letter == LETTER_TABLE or letter == LETTER_ARRAY or letter == LETTER_BINARY:
        return longstr_end(data, offset + 1, end)
    if letter == LETTER_BOOL or letter == LETTER_BYTE or letter == LETTER_UNSIGNEDBYTE:
        size = 1
    elif letter == LETTER_SIGNEDINT or letter == LETTER_UNSIGNEDINT or letter == LETTER_FLOAT:
        size = 4
    elif (
        letter == LETTER_LONG or letter == LETTER_TIMESTAMP or letter == LETTER_DOUBLE or letter == LETTER_LONG_AS_WELL
    ):
        size = 8
    elif letter == LETTER_SHORT or letter == LETTER_UNSIGNEDSHORT:
        size = 2
    elif letter == LETTER_DECIMAL:
        size = 5
    elif letter != LETTER_VOID:
        raise Malformed("unknown field type")
    need(offset + 1, size, end)
    return offset + 1 + size


def check_entries(data: bytes, offset: i64, end: i64, depth: i64 = 0) -> None:
    """Walk a table's entries as ``decode_entries`` would, making no objects; raise where it would, and at no number."""
    if depth > MAX_DEPTH:
        raise Malformed("table nested too deeply")
    while offset < end:
        stop = shortstr_end(data, offset, end)
        offset = value_end(data, stop, end)
        check_value(data, stop, offset, depth)


def check_value(data: bytes, offset: i64, end: i64, depth: i64) -> None:
    """What ``value_end`` does not see of the value at ``offset``, which is known to end at ``end``."""
    letter: i64 = data[offset]
    if letter == LETTER_TABLE:
        check_entries(data, offset + 5, end, depth + 1)
    elif letter == LETTER_ARRAY:
        if depth >= MAX_DEPTH:
            raise Malformed("table nested too deeply")
        offset += 5
        while offset < end:
            stop = value_end(data, offset, end)
            check_value(data, offset, stop, depth + 1)
            offset = stop
    elif letter == LETTER_DOUBLE and (i64(read_i16_be(data, offset + 1)) & 0x7FF0) == 0x7FF0:
        raise Malformed("a float that is no number")
    elif letter == LETTER_FLOAT and (i64(read_i16_be(data, offset + 1)) & 0x7F80) == 0x7F80:
        raise Malformed("a float that is no number")


def _value(data: bytes, offset: i64, end: i64, depth: i64) -> Field:
    """The value at ``offset``, which ``value_end`` said ends at ``end``."""
    letter: i64 = data[offset]
    offset += 1
    if letter == LETTER_LONGSTR:
        raw = data[offset + 4 : end]
        try:
            return Field("S", raw.decode("utf-8"))
        except UnicodeDecodeError:
            return Field("S", raw)
    if letter == LETTER_SIGNEDINT:
        return Field("I", int(read_i32_be(data, offset)))
    if letter == LETTER_LONG or letter == LETTER_LONG_AS_WELL:
        return Field("l", int(read_i64_be(data, offset)))
    if letter == LETTER_BOOL:
        return Field("t", data[offset] != 0)
    if letter == LETTER_TABLE:
        return Field("F", decode_entries(data, offset + 4, end, depth + 1))
    if letter == LETTER_ARRAY:
        return Field("A", _array(data, offset + 4, end, depth + 1))
    if letter == LETTER_TIMESTAMP:
        return Field("T", read_longlong(data, offset, end))
    if letter == LETTER_DOUBLE:
        return Field("d", read_f64_be(data, offset))
    if letter == LETTER_BINARY:
        return Field("x", data[offset + 4 : end])
    if letter == LETTER_VOID:
        return Field("V", None)
    if letter == LETTER_BYTE:
        small: i64 = data[offset]
        return Field("b", int(small if small < 128 else small - 256))
    if letter == LETTER_UNSIGNEDBYTE:
        return Field("B", int(data[offset]))
    if letter == LETTER_SHORT:
        return Field("s", int(read_i16_be(data, offset)))
    if letter == LETTER_UNSIGNEDSHORT:
        return Field("u", int(read_short(data, offset, end)))
    if letter == LETTER_UNSIGNEDINT:
        return Field("i", int(read_long(data, offset, end)))
    if letter == LETTER_FLOAT:
        return Field("f", read_f32_be(data, offset))
    # decimal: value_end let no other letter through
    scale = int(data[offset])
    digits = str(int(read_long(data, offset + 1, end)))
    return Field("D", Decimal(f"{digits}E-{scale}"))


def _array(data: bytes, offset: i64, end: i64, depth: i64) -> list[Field]:
    if depth > MAX_DEPTH:
        raise Malformed("table nested too deeply")
    items: list[Field] = []
    while offset < end:
        stop = value_end(data, offset, end)
        items.append(_value(data, offset, stop, depth))
        offset = stop
    return items


# --- writing


def encode_table(table: Table) -> bytes:
    """The table with its 4-byte length."""
    out = BytesWriter()
    write_table(out, table)
    return out.getvalue()


def write_table(out: BytesWriter, table: Table) -> None:
    if len(table) == 0:
        write_i32_be(out, 0)
        return
    inner = BytesWriter()
    for name, field in table.items():
        write_shortstr(inner, name)
        _write_value(inner, field)
    write_longstr(out, inner.getvalue())


def _write_value(out: BytesWriter, field: Field) -> None:
    kind = field.kind
    value = field.value
    type = TYPES.get(kind)
    if type is None:
        raise ValueError(f"unknown field type {kind!r}")
    out.append(ord(kind))
    if kind == "S" or kind == "x":
        if isinstance(value, str):
            write_longstr(out, value.encode("utf-8", "surrogateescape"))
        elif isinstance(value, bytes):
            write_longstr(out, value)
        else:
            raise TypeError(f"field of type {kind} holds {value!r}, neither str nor bytes")
    elif kind == "t":
        out.append(1 if value else 0)
    elif type.high > 0:
        if not isinstance(value, int):
            raise TypeError(f"field of type {kind} holds {value!r}, not an integer")
        if not type.low <= value <= type.high:
            raise ValueError(f"{value} does not fit into a field of type {kind}")
        out.write(value.to_bytes(type.size, "big", signed=type.low < 0))
    elif kind == "F":
        if not isinstance(value, dict):
            raise TypeError(f"field of type F holds {value!r}, not a table")
        write_table(out, value)
    elif kind == "A":
        if not isinstance(value, list):
            raise TypeError(f"field of type A holds {value!r}, not a list")
        inner = BytesWriter()
        for item in value:
            if not isinstance(item, Field):
                raise TypeError(f"array holds {item!r}, not a Field")
            _write_value(inner, item)
        write_longstr(out, inner.getvalue())
    elif kind == "f" or kind == "d":
        if not isinstance(value, (float, int)):
            raise TypeError(f"field of type {kind} holds {value!r}, not a number")
        if kind == "d":
            write_f64_be(out, float(value))
        else:
            write_f32_be(out, float(value))
    elif kind == "D":
        _write_decimal(out, value)


def _write_decimal(out: BytesWriter, value: object) -> None:
    if not isinstance(value, Decimal) or not value.is_finite():
        raise TypeError(f"field of type D holds {value!r}, not a finite Decimal")
    sign, digits, exponent = value.as_tuple()
    number = 0
    for digit in digits:
        number = number * 10 + digit
    scale = 0
    if isinstance(exponent, int):
        if exponent > 0:
            number *= 10**exponent
        else:
            scale = -exponent
    if sign and number:
        raise ValueError(f"{value} is negative; AMQP's decimal is unsigned")
    write_octet(out, scale)
    write_long(out, number)


# --- Python's and JSON's view


def to_python(table: Table) -> dict[str, object]:
    """Plain values that JSON can say; the types beyond JSON's are lost, so this is for people, not for storage."""
    return {printable(name): _plain(field) for name, field in table.items()}


def printable(text: str) -> str:
    """Octets that are no UTF-8, which surrogate escapes stand for, show as U+FFFD."""
    return text if text.isascii() else text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _plain(field: Field) -> object:
    value = field.value
    if isinstance(value, bytes):
        try:
            return value.decode("utf-8")
        except UnicodeDecodeError:
            return "Not UTF-8, base64 is: " + base64.b64encode(value).decode("ascii")
    if isinstance(value, dict):
        return to_python(value)
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, Decimal):
        return float(value)
    return value


def as_text(field: Field) -> str:
    """A value as people write it in a filter."""
    value = field.value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    return str(value)


def from_python(values: Mapping[str, object]) -> Table:
    """Types as RabbitMQ's HTTP API gives them to JSON (integers become ``l``). A Field keeps its own type."""
    return {name: field_of(value) for name, value in values.items()}


def field_of(value: object) -> Field:
    if isinstance(value, Field):
        return value
    if isinstance(value, bool):
        return Field("t", value)
    if isinstance(value, int):
        if not -0x8000000000000000 <= value <= 0x7FFFFFFFFFFFFFFF:
            raise ValueError(f"{value} does not fit into a field table")
        return Field("l", value)
    if isinstance(value, str):
        return Field("S", value)
    if isinstance(value, float):
        if not isfinite(value):
            raise ValueError(f"{value} is no number, so that no broker takes it in a field table")
        return Field("d", value)
    if value is None:
        return Field("V", None)
    if isinstance(value, bytes):
        return Field("x", value)
    if isinstance(value, (list, tuple)):
        return Field("A", [field_of(item) for item in value])
    if isinstance(value, Mapping):
        return Field("F", {str(name): field_of(item) for name, item in value.items()})
    if isinstance(value, Decimal):
        return Field("D", value)
    if isinstance(value, datetime):
        return Field("T", int(value.timestamp()))
    raise TypeError(f"no field type for {value!r}")
