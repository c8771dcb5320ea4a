"""Typed bodies: what fits becomes columns, what does not is kept, and nothing stops a query."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed")
pytest.importorskip("fastavro", reason="fastavro is not installed")

from warrenmq.spark import decode_bodies, encode_bodies
from warrenmq.spark.bodies import registry
from warrenmq.spark.bodies.decode import decode_one, reader_of
from warrenmq.spark.bodies.encode import writer_of
from warrenmq.spark.options import OptionError

# A schema's text is read by Spark, so there has to be one.
pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]

ORDER = (
    "id bigint, customer struct<name:string,vip:boolean>, lines array<struct<sku:string,price:decimal(8,2)>>, at date"
)
AVRO = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "namespace": "shop",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "name", "type": ["null", "string"], "default": None},
            {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["NEW", "PAID"]}},
            {"name": "previous", "type": ["null", "State"], "default": None},
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
            {"name": "total", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
            {"name": "tags", "type": {"type": "map", "values": "string"}},
            {"name": "either", "type": ["int", "string"]},
        ],
    }
)


def json_reader(schema: str) -> Any:
    return reader_of("json", schema, None, None, None, None, None)


def one(schema: str, body: bytes) -> tuple[Any, Any]:
    value, left = decode_one(*json_reader(schema), body)  # type: ignore[call-arg]
    return value, None if left is None else json.loads(left)


def test_a_json_body_becomes_columns() -> None:
    body = (
        b'{"id": 7, "customer": {"name": "Ada", "vip": true}, "lines": [{"sku": "a", "price": 1.5}], '
        b'"at": "2026-01-02"}'
    )
    value, left = one(ORDER, body)
    assert left is None
    assert value == {
        "id": 7,
        "customer": {"name": "Ada", "vip": True},
        "lines": [{"sku": "a", "price": Decimal("1.50")}],
        "at": date(2026, 1, 2),
    }


@pytest.mark.parametrize(
    ("schema", "body", "value", "left"),
    [
        ("id bigint", b'{"id": 1, "more": {"a": [1]}}', {"id": 1}, {"more": {"a": [1]}}),
        ("id bigint", b'{"id": "1"}', {"id": None}, {"id": "1"}),
        ("id bigint", b'{"id": true}', {"id": None}, {"id": True}),
        ("id int", b'{"id": 2147483648}', {"id": None}, {"id": 2147483648}),
        ("id bigint", b'{"id": 1.5}', {"id": None}, {"id": 1.5}),
        ("x double", b'{"x": 9007199254740993}', {"x": None}, {"x": 9007199254740993}),
        ("x double", b'{"x": 3}', {"x": 3.0}, None),
        ("s string", b'{"s": 5}', {"s": None}, {"s": 5}),
        ("b boolean", b'{"b": 1}', {"b": None}, {"b": 1}),
        ("d decimal(4,2)", b'{"d": 123.4}', {"d": None}, {"d": 123.4}),
        ("d decimal(4,2)", b'{"d": 1.234}', {"d": None}, {"d": 1.234}),
        ("a array<int>", b'{"a": [1, "x", 3]}', {"a": [1, None, 3]}, {"a[1]": "x"}),
        ("a array<struct<n:int>>", b'{"a": [{"n": 1, "m": 2}]}', {"a": [{"n": 1}]}, {"a[0].m": 2}),
        ("m map<string,int>", b'{"m": {"a": 1, "b": "x"}}', {"m": [("a", 1), ("b", None)]}, {"m.b": "x"}),
        ("s struct<n:int>", b'{"s": 4}', {"s": None}, {"s": 4}),
        ("t timestamp", b'{"t": "2026-01-02T03:04:05Z"}', {"t": datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)}, None),
        ("t timestamp", b'{"t": "yesterday"}', {"t": None}, {"t": "yesterday"}),
        ("t timestamp", b'{"t": 5}', {"t": None}, {"t": 5}),
        ("id bigint", b"{}", {"id": None}, None),
        ("id bigint", b'{"id": null}', {"id": None}, None),
    ],
)
def test_what_does_not_fit_is_kept_by_its_path(schema: str, body: bytes, value: Any, left: Any) -> None:
    assert one(schema, body) == (value, left)


@pytest.mark.parametrize(
    ("body", "kept"), [(b"{", "{"), (b"", ""), (b"[1]", "[1]"), (b"5", "5"), (b"\xff\xfe", "//4="), (b"null", "null")]
)
def test_a_body_that_cannot_be_read_is_kept_whole(body: bytes, kept: str) -> None:
    value, left = one("id bigint", body)
    assert value is None and left["_body"] == kept and left["_error"]


def test_the_columns_of_an_avro_schema_are_those_of_its_values() -> None:
    _, columns = reader_of("avro", None, AVRO, None, None, None, None)
    assert columns.simpleString() == (
        "struct<id:bigint,name:string,state:string,previous:string,at:timestamp,total:decimal(9,2),"
        "tags:map<string,string>,either:string>"
    )


ROW = {
    "id": 5,
    "name": None,
    "state": "PAID",
    "previous": "NEW",
    "at": datetime(2026, 1, 1, tzinfo=UTC),
    "total": Decimal("12.34"),
    "tags": {"a": "b"},
    "either": 3,
}


def test_avro_values_of_a_union_that_are_no_text_are_left_over() -> None:
    body = writer_of("avro", AVRO, None, None, None, None).encode(ROW)
    value, left = decode_one(*reader_of("avro", None, AVRO, None, None, None, None), body)
    assert value == {**ROW, "tags": [("a", "b")], "either": None} and json.loads(left or "") == {"either": 3}


@pytest.mark.parametrize("cut", [0, 1, 5])
def test_an_avro_body_cut_short_or_too_long_is_kept(cut: int) -> None:
    body = writer_of("avro", AVRO, None, None, None, None).encode(ROW)
    for wrong in (body[:cut], body + b"x"):
        value, left = decode_one(*reader_of("avro", None, AVRO, None, None, None, None), wrong)
        assert value is None and "_error" in json.loads(left or "")


def descriptors() -> bytes:
    """What protoc would write for a small file."""
    from google.protobuf import descriptor_pb2

    file = descriptor_pb2.FileDescriptorProto(name="shop.proto", package="shop", syntax="proto3")
    state = file.enum_type.add(name="State")
    state.value.add(name="NEW", number=0)
    state.value.add(name="PAID", number=1)
    line = file.message_type.add(name="Line")
    kinds = descriptor_pb2.FieldDescriptorProto
    line.field.add(name="sku", number=1, type=kinds.TYPE_STRING, label=kinds.LABEL_OPTIONAL)
    order = file.message_type.add(name="Order")
    order.field.add(name="id", number=1, type=kinds.TYPE_UINT64, label=kinds.LABEL_OPTIONAL)
    order.field.add(name="state", number=2, type=kinds.TYPE_ENUM, type_name=".shop.State", label=kinds.LABEL_OPTIONAL)
    order.field.add(name="lines", number=3, type=kinds.TYPE_MESSAGE, type_name=".shop.Line", label=kinds.LABEL_REPEATED)
    order.field.add(name="raw", number=4, type=kinds.TYPE_BYTES, label=kinds.LABEL_OPTIONAL)
    order.field.add(name="first", number=5, type=kinds.TYPE_MESSAGE, type_name=".shop.Line", label=kinds.LABEL_OPTIONAL)
    counts = order.nested_type.add(name="CountsEntry")
    counts.options.map_entry = True
    counts.field.add(name="key", number=1, type=kinds.TYPE_STRING, label=kinds.LABEL_OPTIONAL)
    counts.field.add(name="value", number=2, type=kinds.TYPE_INT32, label=kinds.LABEL_OPTIONAL)
    entry = ".shop.Order.CountsEntry"
    order.field.add(name="counts", number=6, type=kinds.TYPE_MESSAGE, type_name=entry, label=kinds.LABEL_REPEATED)
    return bytes(descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString())


def test_protobuf_bodies_become_columns_and_come_back() -> None:
    row = {"id": 2**64 - 1, "state": "PAID", "lines": [{"sku": "a"}, {"sku": ""}], "raw": b"\xff", "counts": {"x": 2}}
    body = writer_of("protobuf", None, None, None, descriptors(), "shop.Order").encode(row)
    reader, columns = reader_of("protobuf", None, None, None, None, descriptors(), "shop.Order")
    assert columns.simpleString() == (
        "struct<id:decimal(20,0),state:string,lines:array<struct<sku:string>>,raw:binary,first:struct<sku:string>,"
        "counts:map<string,int>>"
    )
    assert decode_one(reader, columns, body) == ({**row, "first": None, "counts": [("x", 2)]}, None)
    value, left = decode_one(reader, columns, b"\xff")
    assert value is None and "no such Protobuf message" in (left or "")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("xml", None, None, None, None, None, None), "format 'xml' is not known; there are: json, avro, protobuf"),
        (("json", None, None, None, None, None, None), "JSON bodies need a schema"),
        (("avro", None, None, None, None, None, None), "Avro bodies need a schema"),
        (("avro", None, '{"type": "no"}', None, None, None, None), "this is no Avro schema: unknown type 'no'"),
        (("avro", None, '"string"', None, None, None, None), "has to be a record"),
        (("protobuf", None, None, None, None, None, "shop.Order"), "Protobuf bodies need 'descriptors'"),
        (("protobuf", None, None, None, None, b"\xff", "shop.Order"), "'descriptors' is no descriptor set"),
        (("protobuf", None, None, None, None, b"", "shop.Order"), "the descriptor set has no message 'shop.Order'"),
    ],
)
def test_a_wrong_call_is_told_in_one_line(arguments: tuple[Any, ...], said: str) -> None:
    with pytest.raises(OptionError) as told:
        reader_of(*arguments)
    assert said in str(told.value) and "\n" not in str(told.value)


@pytest.fixture
def schema_registry() -> Iterator[str]:
    """A registry that knows one schema, number 42, newest of the subject orders/value."""

    class Answering(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            known: dict[str, dict[str, Any]] = {
                "/schemas/ids/42": {"schema": AVRO},
                "/subjects/orders%2Fvalue/versions/latest": {"id": 42, "schema": AVRO},
            }
            found = known.get(self.path)
            self.send_response(404 if found is None else 200)
            self.end_headers()
            self.wfile.write(json.dumps(found or {"message": "unknown"}).encode())

        def log_message(self, *ignored: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    registry.by_number.cache_clear()
    registry.latest.cache_clear()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


def test_bodies_name_their_schema_in_a_registry(schema_registry: str) -> None:
    body = writer_of("avro", None, schema_registry, "orders/value", None, None).encode(ROW)
    assert body[:5] == b"\x00\x00\x00\x00\x2a"
    reader, columns = reader_of("avro", None, None, schema_registry, "orders/value", None, None)
    value, _ = decode_one(reader, columns, body)
    assert value["id"] == 5 and value["total"] == Decimal("12.34")
    value, left = decode_one(reader, columns, b"plain")
    assert value is None and "does not begin with a schema's number" in (left or "")
    with pytest.raises(registry.RegistryError, match="the schema registry answered 404 to http://127.0.0.1:"):
        decode_one(reader, columns, registry.join(7, body[5:]))


def test_tables_are_written_as_bodies_and_read_again(spark: Any) -> None:
    df = spark.createDataFrame([(1, "a", {"x": 2}), (2, None, {})], "id bigint, name string, counts map<string,int>")
    keyed = df.selectExpr("*", "concat('k', id) as routing_key")
    written = encode_bodies(keyed, "json")
    assert written.columns == ["routing_key", "body"]
    assert [json.loads(row.body) for row in written.orderBy("routing_key").collect()] == [
        {"id": 1, "name": "a", "counts": {"x": 2}},
        {"id": 2, "name": None, "counts": {}},
    ]
    read = decode_bodies(written, "json", "id bigint, name string")
    rows = read.selectExpr("routing_key", "value.id", "value.name", "rescued").orderBy("id").collect()
    assert [tuple(row) for row in rows] == [("k1", 1, "a", '{"counts": {"x": 2}}'), ("k2", 2, None, '{"counts": {}}')]
    avro = json.dumps({"type": "record", "name": "R", "fields": [{"name": "id", "type": "long"}]})
    again = decode_bodies(encode_bodies(df.select("id"), "avro", avro=avro), "avro", avro=avro)
    assert sorted(row.value.id for row in again.collect()) == [1, 2]
    with pytest.raises(Exception, match=r"not a record of the Avro schema.*the row is \{\"id\": null\}"):
        encode_bodies(df.selectExpr("cast(null as bigint) as id"), "avro", avro=avro).collect()
