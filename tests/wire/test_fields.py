"""Field tables keep their types, and bad ones are refused."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from hypothesis import given

from tests.wire.strategies import TABLES
from warrenmq.wire.field_types import COUNTED, FIELD_TYPES, INTEGER_KINDS, TYPES, FieldType
from warrenmq.wire.fields import (
    MAX_DEPTH,
    Field,
    Table,
    check_entries,
    decode_entries,
    decode_table,
    encode_table,
    from_python,
    to_python,
    type_name,
    value_end,
)
from warrenmq.wire.replies import AmqpError

pytestmark = pytest.mark.pure


def table(body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + body


@given(TABLES)
def test_what_is_encoded_decodes_to_the_same_types_and_values(values: Table) -> None:
    encoded = encode_table(values)
    decoded, end = decode_table(encoded, 0)
    assert end == len(encoded)
    assert decoded == values
    assert encode_table(decoded) == encoded


@given(TABLES)
def test_garbage_around_a_table_is_not_read(values: Table) -> None:
    encoded = encode_table(values)
    decoded, end = decode_table(b"\xff\x00\xfe" + encoded + b"\xff" * 9, 3)
    assert (decoded, end) == (values, len(encoded) + 3)


@given(TABLES)
def test_a_table_cut_anywhere_is_refused(values: Table) -> None:
    encoded = encode_table(values)
    for size in range(len(encoded)):
        with pytest.raises(AmqpError):
            decode_table(encoded[:size], 0)


@pytest.mark.parametrize("value", [float("inf"), float("-inf"), float("nan")])
@pytest.mark.parametrize("kind", ["f", "d"])
def test_a_float_that_is_no_number_is_not_let_in_but_what_was_kept_stays_readable(kind: str, value: float) -> None:
    for table in (
        {"a": Field(kind, value)},
        {"a": Field("A", [Field(kind, value)])},
        {"a": Field("F", {"b": Field(kind, value)})},
    ):
        encoded = encode_table(table)
        assert repr(decode_table(encoded, 0)[0]) == repr(table)
        with pytest.raises(AmqpError):
            check_entries(encoded, 4, len(encoded))
    with pytest.raises(ValueError, match="no number"):
        from_python({"a": value})


@given(TABLES)
def test_checking_accepts_what_decoding_accepts(values: Table) -> None:
    encoded = encode_table(values)
    check_entries(encoded, 4, len(encoded))


@pytest.mark.parametrize(
    ("octets", "field"),
    [
        (b"t\x02", Field("t", True)),
        (b"b\xff", Field("b", -1)),
        (b"B\xff", Field("B", 255)),
        (b"s\xff\xfe", Field("s", -2)),
        (b"u\xff\xfe", Field("u", 65534)),
        (b"I\xff\xff\xff\xff", Field("I", -1)),
        (b"i\xff\xff\xff\xff", Field("i", 4294967295)),
        (b"l" + b"\xff" * 8, Field("l", -1)),
        (b"T" + b"\xff" * 8, Field("T", 2**64 - 1)),
        (b"f\x3f\x80\x00\x00", Field("f", 1.0)),
        (b"d\xbf\xf0" + b"\x00" * 6, Field("d", -1.0)),
        (b"D\x02\x00\x00\x01\x3a", Field("D", Decimal("3.14"))),
        (b"S\x00\x00\x00\x03abc", Field("S", "abc")),
        (b"S\x00\x00\x00\x01\xff", Field("S", b"\xff")),
        (b"x\x00\x00\x00\x03abc", Field("x", b"abc")),
        (b"V", Field("V", None)),
        (b"A\x00\x00\x00\x03t\x01V", Field("A", [Field("t", True), Field("V", None)])),
        (b"F\x00\x00\x00\x03\x01kV", Field("F", {"k": Field("V", None)})),
    ],
)
def test_the_letters_mean_what_they_mean_to_rabbitmq(octets: bytes, field: Field) -> None:
    decoded, _ = decode_table(table(b"\x01k" + octets), 0)
    assert decoded == {"k": field}
    assert type_name(decoded["k"]) == TYPES[field.kind].name


@pytest.mark.parametrize("row", FIELD_TYPES, ids=lambda row: row.name)
def test_every_row_of_the_table_of_types_is_measured_checked_read_and_written(row: FieldType) -> None:
    content = b"\x00\x00\x00\x00" if row.size == COUNTED else bytes(row.size)
    octets = b"\x01k" + row.letter.encode() + content
    assert value_end(octets + b"more", 2, len(octets) + 4) == len(octets)
    check_entries(octets, 0, len(octets))
    decoded = decode_entries(octets, 0, len(octets))
    assert (decoded["k"].kind, type_name(decoded["k"])) == (row.letter, row.name)
    assert encode_table(decoded) == table(octets)


def test_no_letter_stands_for_two_types() -> None:
    assert len(TYPES) == len(FIELD_TYPES)


@pytest.mark.parametrize("row", [row for row in FIELD_TYPES if row.high], ids=lambda row: row.name)
def test_the_integers_of_a_type_are_those_that_fit_into_its_octets(row: FieldType) -> None:
    assert row.high - row.low == 2 ** (8 * row.size) - 1 and row.low in (0, -row.high - 1)
    assert (row.letter in INTEGER_KINDS) == (row.name != "timestamp")
    for value in (row.low, row.high):
        octets = encode_table({"k": Field(row.letter, value)})
        assert decode_table(octets, 0)[0] == {"k": Field(row.letter, value)}
    for value in (row.low - 1, row.high + 1):
        with pytest.raises(ValueError, match=f"{value} does not fit into a field of type {row.letter}"):
            encode_table({"k": Field(row.letter, value)})
    with pytest.raises(TypeError, match=f"field of type {row.letter} holds 'one', not an integer"):
        encode_table({"k": Field(row.letter, "one")})


def test_of_two_entries_with_one_name_the_first_is_heard() -> None:
    decoded, _ = decode_table(table(b"\x01kB\x01" + b"\x01kB\x02"), 0)
    assert decoded == {"k": Field("B", 1)}


def test_a_malformed_entry_is_refused_even_where_it_would_not_be_heard() -> None:
    with pytest.raises(AmqpError):
        decode_table(table(b"\x01kB\x01" + b"\x01kF\x00\x00\x00\x02\x01k"), 0)


@pytest.mark.parametrize("letter", [chr(code) for code in range(256) if chr(code) not in TYPES])
def test_an_unknown_letter_is_refused(letter: str) -> None:
    with pytest.raises(AmqpError):
        decode_table(table(b"\x01k" + letter.encode("latin-1") + b"\x00" * 16), 0)


@pytest.mark.parametrize("letter", [b"A", b"F"])
def test_nesting_is_bounded_so_that_brackets_cannot_exhaust_the_stack(letter: bytes) -> None:
    def nested(depth: int) -> bytes:
        inside = b""
        for _ in range(depth):
            inside = (b"\x00" if letter == b"F" else b"") + letter + table(inside)
        return table(inside if letter == b"F" else b"\x00" + inside)

    decode_table(nested(MAX_DEPTH), 0)
    check_entries(nested(MAX_DEPTH), 4, len(nested(MAX_DEPTH)))
    for depth in (MAX_DEPTH + 1, 20_000):
        with pytest.raises(AmqpError):
            decode_table(nested(depth), 0)
        with pytest.raises(AmqpError):
            check_entries(nested(depth), 4, len(nested(depth)))


def test_a_table_without_its_length_can_be_read_as_amqplain_sends_it() -> None:
    octets = encode_table(from_python({"LOGIN": "guest", "PASSWORD": "guest"}))[4:]
    assert to_python(decode_entries(octets, 0, len(octets))) == {"LOGIN": "guest", "PASSWORD": "guest"}


@pytest.mark.parametrize(
    "field",
    [
        Field("b", 128),
        Field("B", -1),
        Field("s", 2**15),
        Field("u", 2**16),
        Field("I", 2**31),
        Field("i", -1),
        Field("l", 2**63),
        Field("T", -1),
        Field("D", Decimal("-1")),
        Field("D", Decimal("4294967296")),
        Field("D", Decimal("NaN")),
        Field("I", "1"),
        Field("S", 1),
        Field("F", []),
        Field("A", {}),
        Field("A", [1]),
        Field("Z", 1),
    ],
)
def test_what_does_not_fit_its_type_is_not_encoded(field: Field) -> None:
    with pytest.raises((ValueError, TypeError)):
        encode_table({"k": field})


def test_python_values_get_the_types_the_http_api_gives_to_json() -> None:
    values = {"b": True, "i": 5, "f": 1.5, "s": "x", "n": None, "l": [1, "a"], "d": {"k": 1}}
    fields = from_python(values)
    assert {name: field.kind for name, field in fields.items()} == {
        "b": "t",
        "i": "l",
        "f": "d",
        "s": "S",
        "n": "V",
        "l": "A",
        "d": "F",
    }
    assert to_python(fields) == values
    assert json.loads(json.dumps(to_python(fields))) == values


def test_python_types_beyond_json_are_taken_too() -> None:
    when = datetime(2026, 1, 1, tzinfo=UTC)
    fields = from_python({"x": b"\x00", "D": Decimal("1.50"), "T": when, "own": Field("u", 7)})
    assert fields == {
        "x": Field("x", b"\x00"),
        "D": Field("D", Decimal("1.50")),
        "T": Field("T", int(when.timestamp())),
        "own": Field("u", 7),
    }
    with pytest.raises(TypeError):
        from_python({"k": object()})
    with pytest.raises(ValueError):
        from_python({"k": 2**63})


@given(TABLES)
def test_every_table_can_be_said_in_json(values: Table) -> None:
    json.dumps(to_python(values)).encode("utf-8")
