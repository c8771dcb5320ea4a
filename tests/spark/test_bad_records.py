"""A record with a cell that Spark cannot hold does not stop a query: replaced, told in a column, or put aside."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.spark.support import channel, reading
from tests.support.brokers import RunningBroker
from warrenmq.client import Message, Properties
from warrenmq.spark.options import OptionError, parse
from warrenmq.wire.content import decode_properties, encode_header
from warrenmq.wire.fields import Field

pytest.importorskip("pyarrow", reason="pyarrow is not installed")
pytest.importorskip("pyspark", reason="PySpark is not installed")

import pyarrow as pa  # noqa: E402
from pyarrow import parquet  # noqa: E402

from warrenmq.spark.columns import Columns  # noqa: E402  (needs pyarrow)
from warrenmq.spark.schema import BAD_RECORD, READ_COLUMNS  # noqa: E402

KEY = "bad.\udcff\udcfe"  # octets FF FE, as the client writes them
SAID = "bad.\ufffd\ufffd"
KINDS = ["stream", pytest.param("leased queue", marks=pytest.mark.warren_only), "plain queue"]


def whole() -> Any:
    from pyspark.sql import types as T

    kinds: dict[str, Any] = {
        "string": T.StringType(),
        "bigint": T.LongType(),
        "boolean": T.BooleanType(),
        "int": T.IntegerType(),
        "map<string,string>": T.MapType(T.StringType(), T.StringType()),
        "timestamp": T.TimestampType(),
        "binary": T.BinaryType(),
    }
    return T.StructType([T.StructField(name, kinds[kind]) for name, kind in (*READ_COLUMNS, *BAD_RECORD)])


def octets(text: bytes) -> str:
    return text.decode("utf-8", "surrogateescape")


NAMES = st.binary(max_size=9)


@given(st.lists(st.tuples(NAMES, NAMES, st.binary(max_size=40)), min_size=1, max_size=4))
def test_whatever_a_delivery_holds_becomes_a_row(parts: list[tuple[bytes, bytes, bytes]]) -> None:
    columns = Columns(whole(), "q")
    start = b"\x00\x3c\x00\x00" + bytes(8)
    columns.extend([Message(1, False, octets(e), octets(k), start + rest, b"x") for e, k, rest in parts])
    assert columns.take().num_rows == len(parts)


def test_every_cell_that_cannot_be_said_is_told_with_its_octets() -> None:
    bad = Properties(
        content_type="\udcff",
        message_id="fine",
        timestamp=2**63 - 1,
        headers={"\udcfe": Field("S", "x")},
    )
    deep = Properties(headers={"t": Field("F", {"\udcfd": Field("I", 1)})})
    columns = Columns(whole(), "q")
    good = encode_header(Properties(message_id="good"), 1)
    for header in (encode_header(bad, 1), good, encode_header(deep, 1), good[:-2]):
        columns.extend([Message(1, False, "", KEY if header is good else "k", header, b"x")])
    rows = columns.take().to_pylist()
    told = [{} if row["bad_record"] is None else json.loads(row["bad_record"]) for row in rows]
    bad_cells = [{"content_type", "headers", "timestamp"}, {"routing_key"}, {"headers"}, {"header"}]
    assert [set(cells) for cells in told] == bad_cells
    assert base64.b64decode(told[0]["content_type"]) == b"\xff"
    assert base64.b64decode(told[1]["routing_key"]) == b"bad.\xff\xfe"
    assert base64.b64decode(told[3]["header"]) == good[:-2]
    assert rows[0]["message_id"] == "fine" and rows[0]["timestamp"] is None and rows[0]["content_type"] == "\ufffd"
    assert rows[1]["routing_key"] == SAID


@pytest.fixture(params=KINDS)
def source(request: pytest.FixtureRequest, broker: RunningBroker, name: str) -> dict[str, str]:
    """A queue or stream with one good message and one whose routing key is no UTF-8."""
    kind = "stream" if request.param == "stream" else "queue"
    with channel(broker) as declaring:
        declaring.queue_declare(name, durable=True, arguments={"x-queue-type": "stream"} if kind == "stream" else {})
        declaring.exchange_declare(f"{name}-x", "fanout")
        declaring.queue_bind(name, f"{name}-x", "")
        declaring.confirm_select()
        for key in ("good", KEY):
            declaring.basic_publish(f"{name}-x", key, key[:4].encode(), Properties(delivery_mode=2))
        declaring.wait_for_confirms(30)
    leases = {} if kind == "stream" else {"leases": str(request.param == "leased queue").lower()}
    return {**reading(broker), kind: name, **leases}


def batches(options: dict[str, str], streaming: bool) -> Iterator[pa.RecordBatch]:
    from warrenmq.spark.source import AmqpDataSource

    source = AmqpDataSource(options)
    schema = whole()
    names = [part.split("`")[1] for part in source.schema().split(", ")]
    schema.fields = [field for field in schema.fields if field.name in names]
    schema.names = names
    reader: Any = source.streamReader(schema) if streaming else source.reader(schema)
    if not streaming:
        partitions = reader.partitions()
    else:
        at, partitions = reader.initialOffset(), []
        while not partitions:
            at, before = reader.latestOffset(at, reader.getDefaultReadLimit()), at
            partitions = reader.partitions(before, at)
    for each in partitions:
        yield from reader.read(each)


def read(options: dict[str, str], streaming: bool) -> list[dict[str, Any]]:
    return [row for batch in batches(options, streaming) for row in batch.to_pylist()]


@pytest.mark.parametrize("streaming", [False, True], ids=["batch", "streaming"])
def test_a_key_that_is_no_text_stops_no_query(source: dict[str, str], streaming: bool, tmp_path: Path) -> None:
    if streaming or source.get("leases") == "true":  # what is leased is out of reach of a second read
        assert sorted(row["routing_key"] for row in read(source, streaming)) == [SAID, "good"]
        return
    assert sorted(row["routing_key"] for row in read(source, False)) == [SAID, "good"]
    told = {row["routing_key"]: row["bad_record"] for row in read({**source, "badRecords": "column"}, False)}
    assert told["good"] is None
    assert base64.b64decode(json.loads(told[SAID])["routing_key"]) == b"bad.\xff\xfe"
    table = {**source, "badRecords": "table", "badRecordsPath": str(tmp_path / "bad")}
    for _ in range(2):  # a task that is repeated reports nothing twice
        assert [row["routing_key"] for row in read(table, False)] == ["good"]
    files = list((tmp_path / "bad").iterdir())
    assert len(files) == 1 and not files[0].name.startswith(".")
    (row,) = parquet.read_table(files[0]).to_pylist()
    assert row["body"] == b"bad." and json.loads(row["bad_record"]) == json.loads(told[SAID])


def test_a_reading_that_is_broken_off_leaves_no_file_of_bad_rows(source: dict[str, str], tmp_path: Path) -> None:
    begun: Any = batches({**source, "badRecords": "table", "badRecordsPath": str(tmp_path / "bad")}, False)
    assert next(begun).num_rows == 1
    begun.close()
    assert list(tmp_path.glob("bad/*")) == []


def test_wrong_options_for_bad_records_are_named() -> None:
    for options, said in (
        ({"badRecords": "drop"}, "option 'badRecords' is 'drop'; expected replace, column or table"),
        ({"badRecords": "table"}, "go together"),
        ({"badRecordsPath": "x"}, "go together"),
    ):
        with pytest.raises(OptionError, match=said):
            parse({"queue": "q", **options})


def test_what_was_read_with_a_nested_name_that_begins_with_a_mark_is_published_as_it_was() -> None:
    from warrenmq.spark.headers import from_maps, to_maps

    for name in ("!T", "!F", "!", "!S!"):
        inner = Field("F", {name: Field("F", {"!l": Field("I", 7)})})
        table = {"h": inner, "a": Field("A", [inner, Field("F", {name: Field("S", "x")})])}
        assert from_maps(*to_maps(table)) == table
        assert decode_properties(encode_header(Properties(headers=from_maps(*to_maps(table))), 0)).headers == table
