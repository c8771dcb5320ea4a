"""Deliveries into columns and columns into headers: nothing lost on the way, with no Spark running."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warrenmq.client import Field, Message, Properties
from warrenmq.spark import options
from warrenmq.spark.headers import HeaderError, from_maps, to_maps
from warrenmq.wire.content import decode_properties, encode_header

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
pytest.importorskip("pyspark", reason="PySpark is not installed")

TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=20)
SCALARS = st.one_of(
    st.builds(Field, st.just("S"), TEXT),
    st.builds(Field, st.just("t"), st.booleans()),
    st.builds(Field, st.just("I"), st.integers(-(2**31), 2**31 - 1)),
    st.builds(Field, st.just("l"), st.integers(-(2**63), 2**63 - 1)),
    st.builds(Field, st.just("b"), st.integers(-128, 127)),
    st.builds(Field, st.just("u"), st.integers(0, 65535)),
    st.builds(Field, st.just("T"), st.integers(0, 2**40)),
    st.builds(Field, st.just("x"), st.binary(max_size=9)),
    st.builds(Field, st.just("d"), st.floats(allow_nan=False, allow_infinity=False)),
    st.just(Field("V", None)),
    st.just(Field("D", Decimal("1.25"))),
    st.just(Field("S", b"\xff\xfe")),
)
FIELDS = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.builds(Field, st.just("A"), st.lists(inner, max_size=3)),
        st.builds(
            Field, st.just("F"), st.dictionaries(st.one_of(TEXT, st.sampled_from(["!T", "!F", "!"])), inner, max_size=3)
        ),
    ),
    max_leaves=6,
)


@given(st.dictionaries(TEXT, FIELDS, max_size=5))
def test_headers_survive_as_text(table: dict[str, Field]) -> None:
    texts, types = to_maps(table)
    assert all(value is None or isinstance(value, str) for value in texts.values())
    assert from_maps(texts, types) == table


def test_a_header_that_does_not_fit_its_type_is_named() -> None:
    with pytest.raises(HeaderError, match="header 'n' is 'many', which is no value of type l"):
        from_maps({"n": "many"}, {"n": "l"})


def schema(*names: str) -> Any:
    from pyspark.sql import types as T

    from warrenmq.spark.schema import READ_COLUMNS

    kinds = {
        "string": T.StringType(),
        "bigint": T.LongType(),
        "boolean": T.BooleanType(),
        "int": T.IntegerType(),
        "timestamp": T.TimestampType(),
        "binary": T.BinaryType(),
        "map<string,string>": T.MapType(T.StringType(), T.StringType()),
    }
    return T.StructType([T.StructField(n, kinds[k]) for n, k in READ_COLUMNS if not names or n in names])


def delivery(number: int, properties: Properties, offset: int | None = None) -> Message:
    if offset is not None:
        properties = properties.copy()
        properties.headers = {**(properties.headers or {}), "x-stream-offset": Field("l", offset)}
    return Message(number, False, "x", "k", encode_header(properties, 3), b"abc")


def test_headers_that_are_alike_and_headers_that_are_not_give_the_same_columns() -> None:
    from warrenmq.client.deliveries import StreamRange
    from warrenmq.spark.columns import Columns

    one = Properties(headers={"a": Field("I", 1)}, message_id="m1", timestamp=5)
    two = Properties(headers={"a": Field("I", 1)}, message_id="m2", timestamp=6)
    for group in ([one] * 5, [one, two, one], [one, Properties(), two]):
        messages = [delivery(n, properties, 100 + n) for n, properties in enumerate(group)]
        columns = Columns(schema(), "q")
        reading = StreamRange(columns.collected, 100, 200)
        for message in messages:
            reading.put(message.delivery_tag, False, "x", "k", message.header, message.body)
        rows = columns.take().to_pylist()
        assert [row["offset"] for row in rows] == [100 + n for n in range(len(group))]
        assert [row["message_id"] for row in rows] == [properties.message_id for properties in group]
        expected = [[("a", "1")] if properties.headers else [] for properties in group]
        assert [row["headers"] for row in rows] == expected
        assert all(row["queue"] == "q" and row["body"] == b"abc" for row in rows)


def test_a_message_without_headers_has_empty_maps_because_nulls_make_spark_slow() -> None:
    """Both ways of taking headers apart; the second message has text that is no UTF-8, so that all go the long way."""
    from warrenmq.spark.columns import Columns

    without, textual = Properties(message_id="m"), Properties(headers={"a": Field("S", b"text")})
    for last in (without, Properties(app_id="\udcff")):
        columns = Columns(schema(), "q")
        columns.extend([delivery(n, properties) for n, properties in enumerate((without, textual, last))])
        batch = columns.take()
        assert batch.column("headers").to_pylist() == [[], [("a", "text")], []]
        assert batch.column("header_types").to_pylist() == [[], [], []]
        assert batch.column("headers").null_count == batch.column("header_types").null_count == 0


# Names and texts as they may stand on the wire: UTF-8 of any width, and now and then none.
WIRE_TEXT = st.one_of(
    TEXT, st.binary(min_size=1, max_size=4).map(lambda octets: octets.decode("utf-8", "surrogateescape"))
)
PROPERTIES = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(
            (
                "content_type",
                "content_encoding",
                "correlation_id",
                "reply_to",
                "expiration",
                "message_id",
                "type",
                "user_id",
                "app_id",
                "cluster_id",
            ),
            WIRE_TEXT,
        ),
        "priority": st.integers(0, 255),
        "delivery_mode": st.integers(0, 255),
        "timestamp": st.integers(0, 2**64 - 1),
        "headers": st.dictionaries(WIRE_TEXT, FIELDS, max_size=4),
    },
)


@given(st.lists(PROPERTIES, min_size=1, max_size=6))
def test_columns_filled_by_compiled_code_say_what_decoding_one_by_one_says(rows: list[dict[str, Any]]) -> None:
    from warrenmq.spark.columns import Columns, properties_one_by_one

    columns = Columns(schema(), "q")
    messages = [delivery(n, Properties(**row), n if n % 2 else None) for n, row in enumerate(rows)]
    columns.extend(messages)
    headers = [message.header for message in messages]
    expected = properties_one_by_one(headers, columns.wanted, columns.arrow)
    found = columns.take()
    for name, column in expected.items():
        found.column(name).validate(full=True)
        assert found.column(name).equals(column), name


@pytest.mark.parametrize("cut", range(1, 40, 3))
def test_a_header_cut_short_is_told_alike_both_ways(cut: int) -> None:
    from warrenmq.client.columns import PropertyColumns
    from warrenmq.spark.headers import text_of_octets

    whole = encode_header(Properties(headers={"a": Field("A", [Field("I", 1)])}, message_id="m", app_id="a"), 3)
    quick = PropertyColumns(["headers", "message_id"], text_of_octets)
    assert not quick.add([whole[: max(14, len(whole) - cut)]])


def test_two_texts_that_are_one_character_only_together_are_told_apart() -> None:
    from warrenmq.spark.columns import Columns

    first, second = (part.decode("utf-8", "surrogateescape") for part in (b"\xc3", b"\xa9"))
    columns = Columns(schema("message_id"), "q")
    columns.extend([delivery(1, Properties(message_id=first)), delivery(2, Properties(message_id=second))])
    assert columns.take().to_pylist() == [{"message_id": "\ufffd"}, {"message_id": "\ufffd"}]


def test_property_octets_that_are_no_utf8_do_not_stop_a_read() -> None:
    from warrenmq.spark.columns import Columns

    odd = Properties(message_id=b"\xff".decode("utf-8", "surrogateescape"), timestamp=2**64 - 1)
    columns = Columns(schema("message_id", "timestamp"), "q")
    columns.extend([delivery(1, odd)])
    assert columns.take().to_pylist() == [{"message_id": "\ufffd", "timestamp": None}]


@given(
    st.lists(
        st.fixed_dictionaries(
            {},
            optional={
                "content_type": TEXT,
                "priority": st.integers(0, 255),
                "correlation_id": TEXT,
                "message_id": TEXT,
                "timestamp": st.integers(0, 2**33),
                "app_id": TEXT,
                "delivery_mode": st.integers(1, 2),
            },
        ),
        min_size=1,
        max_size=6,
    )
)
def test_rows_encode_to_the_headers_the_wire_code_would_write(rows: list[dict[str, Any]]) -> None:
    from warrenmq.spark.encode import encode

    kinds = {
        "content_type": pa.string(),
        "priority": pa.int32(),
        "correlation_id": pa.string(),
        "message_id": pa.string(),
        "timestamp": pa.int64(),
        "app_id": pa.string(),
        "delivery_mode": pa.int32(),
    }
    arrays = {name: pa.array([row.get(name) for row in rows], kind) for name, kind in kinds.items()}
    batch = pa.RecordBatch.from_pydict({**arrays, "body": pa.array([b"abc"] * len(rows), pa.binary())})
    encoded = encode(batch, "x", "k", True, [f"job-0-{row}" for row in range(batch.num_rows)])
    for number, (row, header) in enumerate(zip(rows, encoded.headers, strict=True)):
        wanted = Properties(**{"delivery_mode": 2, "message_id": f"job-0-{number}", **row})
        if any(isinstance(value, str) and len(value.encode()) > 255 for value in row.values()):
            assert number in encoded.faults
        else:
            assert decode_properties(header) == wanted and header == encode_header(wanted, 3)


def test_every_option_is_in_the_documentation() -> None:
    text = (Path(__file__).parents[2] / "docs" / "spark.md").read_text()
    known = [*options.CONNECTION, *options.READ, *options.WRITE]
    assert [name for name in known if f"`{name}`" not in text] == []
