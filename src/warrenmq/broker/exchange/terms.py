"""Field values as RabbitMQ's own terms: how they compare. How they read is in ``wire/erlang.py``.

RabbitMQ compares decoded Erlang terms, which has consequences a client can see (asked of 3.10): all numbers and
timestamps compare as numbers whatever their width (1 equals 1.0), text and binary compare as bytes, a boolean is no
number, a decimal is a pair of scale and digits, but *inside* an array or a nested table the wire type counts as well;
nested tables compare in wire order, and an empty array equals an empty table.
"""

from __future__ import annotations

from decimal import Decimal
from typing import cast

from warrenmq.wire.erlang import decimal_parts
from warrenmq.wire.fields import Field, Table


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
        return ("decimal", *decimal_parts(cast(Decimal, value)))
    return value


def frozen(table: Table) -> object:
    """The identity of a table: names, wire types and values, without the order of the outermost level."""
    return tuple([(name, table[name].kind, comparable(table[name])) for name in sorted(table)])
