"""Field values as RabbitMQ's own terms: how they compare, and how they read in reply texts.

RabbitMQ compares decoded Erlang terms, which has consequences a client can see (asked of 3.10): all numbers and
timestamps compare as numbers whatever their width (1 equals 1.0), text and binary compare as bytes, a boolean is no
number, a decimal is a pair of scale and digits, but *inside* an array or a nested table the wire type counts as well;
nested tables compare in wire order, and an empty array equals an empty table.
"""

from __future__ import annotations

from decimal import Decimal
from typing import cast

from warrenmq.wire.erlang import float_term
from warrenmq.wire.fields import Field, Table, type_name


def comparable(field: Field) -> object:
    """A hashable value that is equal for two fields exactly when RabbitMQ calls them equal."""
    kind = field.kind
    value = field.value
    if kind == "S" or kind == "x":
        return value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value
    if kind == "t":
        # as text, because Python's True equals 1; no other field becomes a str
        return "true" if value else "false"
    if kind == "A":
        return tuple([(item.kind, comparable(item)) for item in cast(list[Field], value)])
    if kind == "F":
        return tuple([(name, item.kind, comparable(item)) for name, item in cast(Table, value).items()])
    if kind == "D":
        return decimal_parts(cast(Decimal, value))
    return value


def decimal_parts(value: Decimal) -> tuple[str, int, int]:
    """Scale and digits as they stand on the wire: 1 and 1.0 differ."""
    sign, digits, exponent = value.as_tuple()
    number = 0
    for digit in digits:
        number = number * 10 + digit
    return ("decimal", -exponent if isinstance(exponent, int) else 0, -number if sign else number)


def frozen(table: Table) -> object:
    """The identity of a table: names, wire types and values, without the order of the outermost level."""
    return tuple([(name, table[name].kind, comparable(table[name])) for name in sorted(table)])


def term(field: Field) -> str:
    """A value as RabbitMQ prints it in reply texts. (It breaks long arrays and tables over lines; we do not.)"""
    kind = field.kind
    value = field.value
    if kind == "S" or kind == "x":
        return binary_term(value)
    if kind == "t":
        return "true" if value else "false"
    if kind == "V":
        return "undefined"
    if kind == "A":
        items = [f"{{{type_name(item)},{term(item)}}}" for item in cast(list[Field], value)]
        return "[" + ",".join(items) + "]"
    if kind == "F":
        entries = [
            f"{{{binary_term(name)},{type_name(item)},{term(item)}}}" for name, item in cast(Table, value).items()
        ]
        return "[" + ",".join(entries) + "]"
    if kind == "D":
        _, scale, number = decimal_parts(cast(Decimal, value))
        return f"{{{scale},{number}}}"
    if isinstance(value, float):
        return float_term(value)
    return str(value)


def binary_term(value: object) -> str:
    """``<<"text">>`` when every octet is printable Latin-1, else ``<<1,2,3>>``.

    The octets themselves go into the text, so UTF-8 reads as it was sent if it is shown at all.
    """
    data = value.encode("utf-8", "surrogateescape") if isinstance(value, str) else cast(bytes, value)
    if not data:
        return "<<>>"
    out = b""
    for octet in data:
        escape = _ESCAPES.get(octet)
        if escape is not None:
            out += escape
        elif octet < 32 or 127 <= octet < 160:
            return "<<" + ",".join([str(each) for each in data]) + ">>"
        else:
            out += bytes([octet])
    return '<<"' + out.decode("utf-8", "surrogateescape") + '">>'


_ESCAPES: dict[int, bytes] = {
    8: b"\\b", 9: b"\\t", 10: b"\\n", 11: b"\\v", 12: b"\\f", 13: b"\\r", 27: b"\\e", 34: b'\\"', 92: b"\\\\",
}  # fmt: skip
