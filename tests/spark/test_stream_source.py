"""A stream is read by ranges of offsets: in batches, continuously, again and again with the same result."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.spark.support import available_now, channel, publish, reading, skip_if_one_batch_a_run
from tests.support.brokers import RunningBroker
from warrenmq.client import Field, Properties

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@pytest.fixture
def stream(broker: RunningBroker, name: str) -> str:
    with channel(broker) as declaring:
        declaring.queue_declare(name, durable=True, arguments={"x-queue-type": "stream"})
    return name


def bodies(count: int, first: int = 0) -> list[bytes]:
    return [b"%d" % number for number in range(first, first + count)]


def numbers(df: DataFrame) -> list[int]:
    return sorted(int(row.body) for row in df.select("body").collect())


def test_a_batch_read_gives_every_message_with_offset_and_properties(
    spark: SparkSession, broker: RunningBroker, stream: str
) -> None:
    properties = Properties(
        headers={"n": Field("I", 7), "s": Field("S", "text")},
        content_type="text/plain",
        delivery_mode=2,
        priority=3,
        correlation_id="c",
        reply_to="r",
        expiration="60000",
        message_id="m",
        timestamp=1_767_268_800,
        type="t",
        app_id="a",
    )
    publish(broker, stream, bodies(10), properties)
    publish(broker, stream, [b""])
    df = spark.read.format("amqp").options(**reading(broker), stream=stream).load()
    rows = sorted(df.selectExpr("*", "unix_seconds(timestamp) as seconds").collect(), key=lambda row: row.offset)
    assert [row.offset for row in rows] == list(range(11))
    first = rows[0].asDict()
    assert (first["queue"], first["exchange"], first["routing_key"], bytes(first["body"])) == (stream, "", stream, b"0")
    assert (first["headers"], first["header_types"]) == ({"n": "7", "s": "text"}, {"n": "I"})
    assert first["seconds"] == 1_767_268_800 and first["priority"] == 3 and first["message_id"] == "m"
    assert (first["content_type"], first["type"], first["app_id"], first["redelivered"]) == (
        "text/plain",
        "t",
        "a",
        False,
    )
    last = rows[-1].asDict()
    assert (last["headers"], last["header_types"], last["message_id"], bytes(last["body"])) == ({}, {}, None, b"")


def test_starting_and_ending_offsets_bound_a_batch_read(
    spark: SparkSession, broker: RunningBroker, stream: str
) -> None:
    publish(broker, stream, bodies(100))

    def read(**options: str) -> list[int]:
        return numbers(spark.read.format("amqp").options(**reading(broker), stream=stream, **options).load())

    assert read(startingOffsets="90") == list(range(90, 100))
    assert read(startingOffsets="10", endingOffsets="13") == [10, 11, 12]
    assert read(endingOffsets="5") == [0, 1, 2, 3, 4]
    assert read(startingOffsets="latest") == []
    assert read(startingOffsets="2020-01-01T00:00:00Z") == list(range(100))
    assert read(startingOffsets="95", endingOffsets="5000", minPartitions="3") == list(range(95, 100))


def test_a_range_is_read_in_several_partitions(spark: SparkSession, broker: RunningBroker, stream: str) -> None:
    publish(broker, stream, bodies(1000))
    df = spark.read.format("amqp").options(**reading(broker), stream=stream, minPartitions="4").load()
    assert df.rdd.getNumPartitions() == 4
    assert numbers(df) == list(range(1000))


def test_only_the_columns_asked_for_are_read(spark: SparkSession, broker: RunningBroker, stream: str) -> None:
    publish(broker, stream, bodies(3))
    df = spark.read.format("amqp").schema("offset bigint, body binary").options(**reading(broker), stream=stream).load()
    assert df.columns == ["offset", "body"] and numbers(df) == [0, 1, 2]


def test_available_now_drains_to_where_it_started_in_bounded_batches_and_goes_on_from_there(
    spark: SparkSession, broker: RunningBroker, stream: str, tmp_path: Path
) -> None:
    skip_if_one_batch_a_run()
    lake, checkpoint = tmp_path / "lake", tmp_path / "checkpoint"
    options = {**reading(broker), "stream": stream, "maxOffsetsPerTrigger": "40"}
    publish(broker, stream, bodies(100))
    assert available_now(spark, options, lake, checkpoint) == [40, 40, 20]
    assert numbers(spark.read.parquet(str(lake))) == list(range(100))
    publish(broker, stream, bodies(10, 100))
    assert available_now(spark, options, lake, checkpoint) == [10]
    assert available_now(spark, options, lake, checkpoint) == []
    assert numbers(spark.read.parquet(str(lake))) == list(range(110))


def test_a_batch_that_was_written_but_not_committed_is_read_again_the_same(
    spark: SparkSession, broker: RunningBroker, stream: str, tmp_path: Path
) -> None:
    """The driver dies between the sink's write and Spark's commit: the batch runs again, its rows are there once."""
    lake, checkpoint = tmp_path / "lake", tmp_path / "checkpoint"
    options = {**reading(broker), "stream": stream, "maxOffsetsPerTrigger": "30"}
    publish(broker, stream, bodies(60))
    available_now(spark, options, lake, checkpoint)
    commits = sorted((checkpoint / "commits").glob("[0-9]*"), key=lambda path: int(path.name))
    commits[-1].unlink()  # as if the driver had died before this was written
    (checkpoint / "commits" / f".{commits[-1].name}.crc").unlink(missing_ok=True)
    publish(broker, stream, bodies(15, 60))
    available_now(spark, options, lake, checkpoint)
    assert numbers(spark.read.parquet(str(lake))) == list(range(75))


def test_several_streams_by_list_and_by_pattern(spark: SparkSession, broker: RunningBroker, stream: str) -> None:
    other = f"{stream}-other"
    with channel(broker) as declaring:
        declaring.queue_declare(other, durable=True, arguments={"x-queue-type": "stream"})
    publish(broker, stream, bodies(5))
    publish(broker, other, bodies(5, 5))
    listed = spark.read.format("amqp").options(**reading(broker), stream=f"{stream}, {other}").load()
    assert numbers(listed) == list(range(10))
    patterned = spark.read.format("amqp").options(**reading(broker), stream=f"{stream}*").load()
    assert {row.queue for row in patterned.select("queue").distinct().collect()} == {stream, other}


def test_offsets_that_retention_took_fail_the_query_or_are_skipped_as_asked(
    spark: SparkSession, broker: RunningBroker, name: str, tmp_path: Path
) -> None:
    arguments = {"x-queue-type": "stream", "x-max-length-bytes": 20_000, "x-stream-max-segment-size-bytes": 10_000}
    with channel(broker) as declaring:
        declaring.queue_declare(name, durable=True, arguments=arguments)
    for _ in range(12):
        publish(broker, name, [b"x" * 1000] * 10)
    options = {**reading(broker), "stream": name, "startingOffsets": "0"}
    with pytest.raises(Exception, match=r"of stream '.*' are gone \(retention\)"):
        spark.read.format("amqp").options(**options).load().count()
    left = spark.read.format("amqp").options(**options, failOnDataLoss="false").load()
    assert 0 < left.count() < 120


def test_a_fault_in_the_options_is_one_clear_line(spark: SparkSession) -> None:
    cases = [
        ({"stream": "s", "colour": "red"}, "unknown option 'colour' for format amqp; known for read: badRecords, "),
        ({}, "give exactly one of the options 'queue' and 'stream'"),
        ({"stream": "s", "queue": "q"}, "give exactly one of the options 'queue' and 'stream'"),
        ({"stream": "s", "startingOffsets": "soon"}, "option 'startingOffsets' is 'soon'; expected earliest, latest"),
        ({"stream": "s", "maxOffsetsPerTrigger": "many"}, "option 'maxOffsetsPerTrigger' is 'many'; expected a whole"),
        ({"stream": "s", "leaseTtl": "later"}, "option 'leaseTtl' is 'later'; expected a duration"),
        ({"queue": "q", "startingOffsets": "1"}, "a queue has no offsets"),
    ]
    for options, text in cases:
        with pytest.raises(Exception, match=text):
            spark.read.format("amqp").options(**options).load()


def test_a_stream_or_a_column_that_is_not_there_is_named(spark: SparkSession, broker: RunningBroker, name: str) -> None:
    with pytest.raises(Exception, match=f"no queue '{name}' in vhost '/'"):
        spark.read.format("amqp").options(**reading(broker), stream=name).load().count()
    with pytest.raises(Exception, match="format amqp has no column 'colour'"):
        spark.read.format("amqp").schema("colour string").options(**reading(broker), stream=name).load().count()


def test_the_checkpoint_holds_nothing_but_offsets(
    spark: SparkSession, broker: RunningBroker, stream: str, tmp_path: Path
) -> None:
    publish(broker, stream, bodies(3))
    available_now(spark, {**reading(broker), "stream": stream}, tmp_path / "lake", tmp_path / "checkpoint")
    lines = (tmp_path / "checkpoint" / "offsets" / "0").read_text().splitlines()
    offset = json.loads(lines[-1])
    assert offset.pop("ids", {stream: ""}).keys() == {stream}  # RabbitMQ has none
    assert offset == {"streams": {stream: 3}}
