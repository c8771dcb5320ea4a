"""The table of properties: encoding, decoding and peeking, which are written out one by one, follow it."""

from __future__ import annotations

import pytest

from warrenmq.wire.content import Properties, decode_properties, encode_header, property_flags
from warrenmq.wire.fields import Field, encode_table
from warrenmq.wire.peek import Peek, peek_properties
from warrenmq.wire.properties import NUMBERS, PROPERTIES, TEXTS, PropertySpec

pytestmark = pytest.mark.pure

FIXED = bytes((0, 60, 0, 0)) + (7).to_bytes(8, "big")  # class basic, weight, size of the body


def sample(row: PropertySpec) -> object:
    number = PROPERTIES.index(row) + 1
    if row.type == "table":
        return {"h": Field("I", number)}
    return f"value {number}" if row.type == "shortstr" else number


def octets(row: PropertySpec, value: object) -> bytes:
    """As AMQP says, by the type in the table."""
    if isinstance(value, str):
        return bytes((len(value),)) + value.encode()
    if isinstance(value, dict):
        return encode_table(value)
    assert isinstance(value, int)
    return value.to_bytes({"octet": 1, "timestamp": 8}[row.type], "big")


def properties_of(rows: list[PropertySpec]) -> Properties:
    properties = Properties()
    for row in rows:
        setattr(properties, row.name, sample(row))
    return properties


def header_of(rows: list[PropertySpec]) -> bytes:
    flags = sum(row.flag for row in rows)
    return FIXED + flags.to_bytes(2, "big") + b"".join(octets(row, sample(row)) for row in rows)


SELECTIONS = [
    *([row] for row in PROPERTIES),
    *([one for one in PROPERTIES if one is not row] for row in PROPERTIES),
    PROPERTIES,
]


def names(rows: list[PropertySpec]) -> str:
    return rows[0].name if len(rows) == 1 else f"{len(rows)} properties"


@pytest.mark.parametrize("rows", SELECTIONS, ids=names)
def test_properties_are_written_and_read_as_the_table_says(rows: list[PropertySpec]) -> None:
    header = header_of(rows)
    assert encode_header(properties_of(rows), 7) == header
    assert decode_properties(header) == properties_of(rows)
    assert property_flags(header) == sum(row.flag for row in rows)


@pytest.mark.parametrize("rows", SELECTIONS, ids=names)
def test_a_peek_finds_what_the_table_says(rows: list[PropertySpec]) -> None:
    seen = peek_properties(header_of(rows))
    assert seen.flags == sum(row.flag for row in rows)
    absent = Peek()
    for row in PROPERTIES:
        if hasattr(absent, row.name):
            expected = sample(row) if row in rows else getattr(absent, row.name)
            assert getattr(seen, row.name) == expected, row


def test_a_copy_and_the_list_of_those_present_have_all_properties_in_the_order_of_the_table() -> None:
    properties = properties_of(PROPERTIES)
    assert list(properties.present()) == [row.name for row in PROPERTIES]
    assert properties.copy().present() == properties.present()


def test_the_flags_go_down_from_the_highest_bit_and_each_type_has_its_list() -> None:
    assert [row.bit for row in PROPERTIES] == list(range(15, 1, -1))
    assert sorted([*TEXTS, *NUMBERS, "headers"]) == sorted(row.name for row in PROPERTIES)
