"""A range of a stream is the same rows whichever columns are asked for, with whatever messages in it.

Bodies alone go from the wire into columns without a message each; more columns go the general way. The readers are
driven without Spark.
"""

from __future__ import annotations

import struct
from typing import Any

import pytest

from tests.spark.support import channel, reading
from tests.support.brokers import RunningBroker
from warrenmq.client import Field, Properties

pytest.importorskip("pyspark", reason="PySpark is not installed")
pytest.importorskip("pyarrow", reason="pyarrow is not installed")

ENTRY = "\x0fx-stream-offsetl" + struct.pack(">q", 1).decode()
MESSAGES: list[tuple[bytes, Properties]] = [
    (b"plain", Properties()),
    (b"", Properties(message_id="empty")),
    (b"persistent", Properties(delivery_mode=2, content_type="text/plain", content_encoding="", type="t")),
    (b"long" * 100_000, Properties(headers={"n": Field("I", 1)})),
    (b"read from another stream", Properties(headers={"a": Field("I", 1), "x-stream-offset": Field("l", 77)})),
    (b"and from another still", Properties(headers={"x-stream-offset": Field("l", 0), "z": Field("S", "z")})),
    (b"of another type", Properties(headers={"x-stream-offset": Field("S", "seven")})),
    (b"the same octets in a value", Properties(headers={"a": Field("S", ENTRY)})),
    (b"and in a property", Properties(content_type=ENTRY, headers={"a": Field("S", "b")})),
    (b"and deeper", Properties(headers={"a": Field("F", {"x-stream-offset": Field("l", 3)})})),
    (b"x" * 131_072, Properties(correlation_id="in two frames")),
]


def rows(broker: RunningBroker, name: str, columns: list[str] | None, **options: str) -> list[dict[str, Any]]:
    from pyspark.sql.types import StructType

    from tests.spark.test_codec import schema
    from warrenmq.spark.source import AmqpDataSource

    wanted = schema(*(columns or ()))
    assert isinstance(wanted, StructType)
    reader = AmqpDataSource({**reading(broker), "stream": name, **options}).reader(wanted)
    found: list[dict[str, Any]] = []
    for partition in reader.partitions():
        for batch in reader.read(partition):
            found += batch.to_pylist()  # type: ignore[union-attr]
    return found


@pytest.fixture
def stream(broker: RunningBroker, name: str) -> str:
    with channel(broker) as filling:
        filling.queue_declare(name, durable=True, arguments={"x-queue-type": "stream"})
        filling.confirm_select()
        for _ in range(3):
            for body, properties in MESSAGES:
                filling.basic_publish("", name, body, properties)
        filling.wait_for_confirms(60)
    return name


@pytest.mark.parametrize("prefetch", ["1", "7", "5000"])
@pytest.mark.parametrize("partitions", ["1", "4"])
def test_all_columns_and_bodies_alone_are_the_same_rows(
    broker: RunningBroker, stream: str, prefetch: str, partitions: str
) -> None:
    options = {"prefetchCount": prefetch, "minPartitions": partitions}
    whole = rows(broker, stream, None, **options)
    assert [row["body"] for row in whole] == [body for body, _ in MESSAGES] * 3
    assert [row["offset"] for row in whole] == list(range(3 * len(MESSAGES)))
    assert [row["message_id"] for row in whole] == [properties.message_id for _, properties in MESSAGES] * 3
    for columns in (["body"], ["offset", "body"], ["queue", "offset"], ["offset"], ["body", "message_id"]):
        assert rows(broker, stream, columns, **options) == [{name: row[name] for name in columns} for row in whole]


def test_a_range_within_a_chunk_is_cut_at_both_ends(broker: RunningBroker, stream: str) -> None:
    for columns in (["body"], ["body", "exchange"]):
        found = rows(broker, stream, columns, startingOffsets="5", endingOffsets="9")
        assert [row["body"] for row in found] == [body for body, _ in MESSAGES[5:9]]
