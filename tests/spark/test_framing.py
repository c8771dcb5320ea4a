"""Rows go out in two ways, straight from Arrow's buffers and the long way, in the same octets; no Spark runs."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from librt.strings import BytesWriter

from tests.spark.support import address, channel
from tests.support.brokers import RunningBroker
from warrenmq.client.encoder import write_publish
from warrenmq.wire.methods import method_frame

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
pytest.importorskip("pyspark", reason="PySpark is not installed")

TEXT = st.text(st.characters(codec="utf-8"), max_size=20)
NAMES = st.sampled_from(["a", "b", "name", "ä"])
TYPED = st.sampled_from(
    [
        ("I", "7"),
        ("l", "-9"),
        ("t", "true"),
        ("S", "text"),
        ("T", "1700000000"),
        ("d", "1.5"),
        ("x", "AAE="),
        ("A", "[1,2]"),
        ("F", '{"n":1}'),
        ("D", "1.25"),
        ("V", ""),
    ]
)
KINDS: dict[str, Any] = {
    "exchange": pa.string(),
    "routing_key": pa.string(),
    "content_type": pa.string(),
    "content_encoding": pa.string(),
    "headers": pa.map_(pa.string(), pa.string()),
    "header_types": pa.map_(pa.string(), pa.string()),
    "delivery_mode": pa.int32(),
    "priority": pa.int32(),
    "correlation_id": pa.string(),
    "reply_to": pa.string(),
    "expiration": pa.string(),
    "message_id": pa.string(),
    "timestamp": pa.timestamp("us", "UTC"),
    "type": pa.string(),
    "user_id": pa.string(),
    "app_id": pa.string(),
    "cluster_id": pa.string(),
    "body": pa.binary(),
    "mandatory": pa.bool_(),
}
MOMENTS = st.integers(0, 253_402_300_799_999_999).map(
    lambda us: datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC) + datetime.timedelta(microseconds=us)
)


@st.composite
def headers(draw: st.DrawFn) -> dict[str, Any]:
    """Both maps of a row; types of headers that are not there do no harm."""
    texts: dict[str, str | None] = draw(st.dictionaries(NAMES, st.none() | TEXT, max_size=3))
    types = {}
    for name in draw(st.sets(NAMES, max_size=2)):
        letter, text = draw(TYPED)
        types[name] = letter
        if name in texts and texts[name] is not None:
            texts[name] = text
    return {
        "headers": draw(st.sampled_from([list(texts.items()), None])),
        "header_types": draw(st.sampled_from([list(types.items()), [], None])) if types else None,
    }


@st.composite
def rows(draw: st.DrawFn) -> dict[str, Any]:
    row: dict[str, Any] = {"body": draw(st.binary(max_size=30) | st.just(b"long" * 40)), **draw(headers())}
    for name, kind in KINDS.items():
        if name not in row:
            values = TEXT if kind == pa.string() else st.integers(0, 255) if kind == pa.int32() else st.booleans()
            row[name] = draw(st.none() | (MOMENTS if name == "timestamp" else values))
    if row["header_types"] and row["headers"] is None:
        row["header_types"] = None
    return row


def batch_of(given: list[dict[str, Any]], names: set[str], kinds: dict[str, Any] | None = None) -> Any:
    fields = [(name, (kinds or {}).get(name, kind)) for name, kind in KINDS.items() if name in names]
    return pa.RecordBatch.from_pylist(given, schema=pa.schema(fields))


FRAME_MAX = 64  # so that some bodies need several frames


def straight(batch: Any, ids: list[str], mandatory: bool = True) -> bytes | None:
    from warrenmq.spark.framing import Framing

    return Framing("x", "k", True, mandatory).frames(batch, ids, 3, FRAME_MAX)


def long_way(batch: Any, ids: list[str], mandatory: bool = True) -> bytes:
    from warrenmq.spark.encode import encode

    found = encode(batch, "x", "k", True, ids)
    assert not found.faults
    out = BytesWriter()
    for row, body in enumerate(found.bodies):
        own = found.mandatory[row] if found.mandatory else None
        publish = method_frame(
            3,
            "basic.publish",
            exchange=found.exchanges[row],
            routing_key=found.routing_keys[row],
            mandatory=mandatory if own is None else own,
        )
        write_publish(out, 3, publish, found.headers[row], body, FRAME_MAX)
    return out.getvalue()


def ids_of(batch: Any) -> list[str]:
    return [f"id-{row}" for row in range(batch.num_rows)]


@given(
    st.lists(rows(), min_size=1, max_size=6), st.sets(st.sampled_from(list(KINDS))), st.booleans(), st.integers(0, 2)
)
def test_both_ways_say_every_row_in_the_same_octets(
    given: list[dict[str, Any]], names: set[str], mandatory: bool, skipped: int
) -> None:
    batch = batch_of(given, names | {"body"})
    batch = batch.slice(min(skipped, len(given) - 1))
    ids = ids_of(batch)
    assert straight(batch, ids, mandatory) == long_way(batch, ids, mandatory)


def test_an_empty_map_of_headers_is_written_as_no_headers() -> None:
    empty: dict[str, Any] = {"body": b"b", "headers": [], "header_types": []}
    absent: dict[str, Any] = {"body": b"b", "headers": None, "header_types": None}
    batches = [batch_of([row], set(row)) for row in (empty, absent)]
    written = [way(batch, ids_of(batch)) for batch in batches for way in (straight, long_way)]
    assert written == [written[0]] * 4 and written[0]


WHOLE: dict[str, Any] = {
    "body": b"b",
    "message_id": "m",
    "headers": [("n", "1"), ("m", None)],
    "header_types": [("n", "l")],
    "priority": 5,
    "delivery_mode": 1,
    "timestamp": datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC),
    "content_type": "t",
}


@pytest.mark.parametrize(
    ("name", "kind", "value"),
    [
        ("body", pa.string(), "text"),
        ("body", pa.large_string(), "text"),
        ("body", pa.large_binary(), b"b"),
        ("priority", pa.int8(), 7),
        ("priority", pa.int64(), 7),
        ("delivery_mode", pa.int16(), 1),
        ("timestamp", pa.int64(), 1_700_000_000),
        ("content_type", pa.null(), None),
        ("correlation_id", pa.large_string(), "c"),
        ("headers", pa.map_(pa.string(), pa.string()), []),
        ("header_types", pa.map_(pa.string(), pa.string()), []),
        ("headers", pa.map_(pa.string(), pa.string()), [("n", "1"), *((f"h{n}", "v") for n in range(40))]),
        ("timestamp", pa.timestamp("us", "UTC"), datetime.datetime(9999, 12, 31, 23, 59, 59, 999999, datetime.UTC)),
    ],
    ids=str,
)
def test_columns_of_every_type_that_may_be_written_go_straight(name: str, kind: Any, value: Any) -> None:
    before = {**WHOLE, "headers": [("other", "x")], "message_id": "other", name: value}  # not in the slice
    batch = batch_of([before, *[{**WHOLE, name: value}] * 2], {*WHOLE, name}, {name: kind}).slice(1)
    assert straight(batch, ids_of(batch)) == long_way(batch, ids_of(batch))


@pytest.mark.parametrize(
    ("name", "value", "fault"),
    [
        ("body", None, "body is null"),
        ("content_type", "x" * 256, "256 octets"),
        ("exchange", "x" * 256, "255 octets"),
        ("routing_key", "ä" * 128, "255 octets"),
        ("message_id", "x" * 256, "256 octets"),
        ("priority", 256, "priority is 256"),
        ("delivery_mode", -1, "delivery_mode is -1"),
        ("timestamp", datetime.datetime(1960, 1, 1, tzinfo=datetime.UTC), "before 1970"),
        ("headers", [("n", "many")], "no value of type l"),
        ("headers", [("x" * 256, "1")], "at most 255"),
        ("headers", [("n", str(2**64))], "does not fit"),
        ("header_types", [("n", "?")], "type ?"),
    ],
    ids=str,
)
def test_a_row_that_cannot_be_said_goes_the_long_way_which_names_it(name: str, value: Any, fault: str) -> None:
    from warrenmq.spark.encode import encode

    batch = batch_of([WHOLE, {**WHOLE, name: value}], {*WHOLE, name})
    assert straight(batch, ids_of(batch)) is None
    found = encode(batch, "x", "k", True, ids_of(batch))
    assert list(found.faults) == [1]
    assert fault in found.faults[1]


def no_utf8() -> Any:
    return pa.RecordBatch.from_arrays([pa.array([b"b"]), pa.array([b"\xff"]).view(pa.string())], ["body", "type"])


def numbers_as_headers() -> Any:
    return batch_of(
        [{"body": b"b", "headers": [("n", 1)]}], {"body", "headers"}, {"headers": pa.map_(pa.string(), pa.int64())}
    )


def one_name_twice() -> Any:
    return batch_of([{"body": b"b", "headers": [("n", "1"), ("n", "2")]}], {"body", "headers"})


def large() -> Any:
    return batch_of([{"body": b"b" * 9_000_000}], {"body"})


@pytest.mark.parametrize("made", [no_utf8, numbers_as_headers, one_name_twice, large, lambda: large().slice(1)])
def test_what_is_unusual_goes_the_long_way(made: Callable[[], Any]) -> None:
    batch = made()
    assert straight(batch, ids_of(batch)) is None


def test_batches_of_both_ways_arrive_in_order_with_all_they_hold(broker: RunningBroker, name: str) -> None:
    from warrenmq.spark.options import parse
    from warrenmq.spark.publisher import Publisher

    usual = batch_of([{**WHOLE, "message_id": f"{n}"} for n in range(6000)], set(WHOLE))
    unusual = batch_of([{**WHOLE, "body": None}, {**WHOLE, "message_id": "6001"}], set(WHOLE))
    nowhere = batch_of([{**WHOLE, "routing_key": f"{name}-none", "message_id": "6002"}, WHOLE], {*WHOLE, "routing_key"})
    with channel(broker) as own:
        own.queue_declare(name)
        options = parse({**address(broker), "exchange": "", "routingKey": name}, writing=True)
        chunks = list(Publisher(options, "id-").run([usual, unusual, nowhere]))
        outcomes = [outcome for chunk in chunks for outcome in chunk.outcomes]
        assert outcomes == ["confirmed"] * 6000 + ["invalid", "confirmed", "returned", "confirmed"]
        own.basic_consume(name, no_ack=True)
        taken = [next(own.messages(60)) for _ in range(6002)]
        assert [message.properties.message_id for message in taken] == [*map(str, range(6000)), "6001", "m"]
        assert {(message.body, repr(message.headers), message.properties.priority) for message in taken} == {
            (b"b", "{'n': 1, 'm': None}", 5)
        }
        own.queue_delete(name)


def test_outcomes_name_every_row_by_what_it_was_published_under(broker: RunningBroker, name: str) -> None:
    from warrenmq.spark.jobs.publish import Publishing
    from warrenmq.spark.options import parse

    rows: list[dict[str, Any]] = [
        {"body": b"four", "message_id": "own", "exchange": None, "routing_key": None},
        {"body": b"", "message_id": None, "exchange": "", "routing_key": f"{name}-none"},
        {"body": None, "message_id": "empty", "exchange": "amq.fanout", "routing_key": "k"},
    ]
    with channel(broker) as own:
        own.queue_declare(name)
        options = parse({**address(broker), "exchange": "", "routingKey": name}, writing=True)
        (told,) = Publishing(options, "job")(iter([batch_of(rows, {*rows[0]})]))
        own.queue_delete(name)
    told = told.drop_columns(["reply_text", "published_at"])
    assert [tuple(row.values()) for row in told.to_pylist()] == [
        ("own", "", name, 4, "confirmed", None),
        ("job-0-1", "", f"{name}-none", 0, "returned", 312),
        ("empty", "amq.fanout", "k", 0, "invalid", None),
    ]
    options = parse({**address(broker), "exchange": "amq.fanout", "mandatory": "false"}, writing=True)
    (told,) = Publishing(options, "job")(iter([pa.record_batch({"body": ["text"]})]))
    assert [tuple(row.values())[:4] for row in told.to_pylist()] == [("job-0-0", "amq.fanout", "", 4)]
