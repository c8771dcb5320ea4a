"""Rows become messages: confirmed, with properties as they stand in the columns, and nothing fails silently."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.spark.support import address, channel, depth, drain, finished
from tests.support.brokers import RunningBroker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def declare(broker: RunningBroker, name: str, **arguments: object) -> None:
    with channel(broker) as declaring:
        declaring.queue_declare(name, durable=True, arguments={k.replace("_", "-"): v for k, v in arguments.items()})


def test_a_batch_write_publishes_every_row_once_with_its_properties(
    spark: SparkSession, broker: RunningBroker, name: str
) -> None:
    declare(broker, name)
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    rows = [
        (b"one", name, {"colour": "red", "n": "7"}, {"n": "l"}, 5, "text/plain", "id-1", noon, 1),
        (b"", name, None, None, None, None, "id-2", None, None),
    ]
    df = spark.createDataFrame(
        rows,
        "body binary, routing_key string, headers map<string,string>, header_types map<string,string>, priority int, "
        "content_type string, message_id string, timestamp timestamp, delivery_mode int",
    )
    df.write.format("amqp").options(**address(broker), exchange="").mode("append").save()
    found = {message.properties.message_id: message for message in drain(broker, name)}
    assert set(found) == {"id-1", "id-2"}
    one = found["id-1"]
    assert (one.body, one.headers, one.properties.priority) == (b"one", {"colour": "red", "n": 7}, 5)
    assert (one.properties.content_type, one.properties.timestamp) == ("text/plain", int(noon.timestamp()))
    assert one.properties.delivery_mode == 1
    two = found["id-2"].properties
    assert (found["id-2"].body, two.delivery_mode, two.headers, two.priority) == (b"", 2, None, None)


def test_rows_without_a_message_id_get_one_of_their_own(spark: SparkSession, broker: RunningBroker, name: str) -> None:
    declare(broker, name)
    df = spark.range(300).selectExpr("cast(id as string) as body").repartition(2)
    df.write.format("amqp").options(**address(broker), exchange="", routingKey=name, batchKey="job1").mode(
        "append"
    ).save()
    messages = drain(broker, name)
    assert sorted(int(message.body) for message in messages) == list(range(300))
    ids = {message.properties.message_id for message in messages}
    assert len(ids) == 300 and all(each is not None and each.startswith("job1-") for each in ids)
    # The whole job again: the same rows under the same ids.
    df.write.format("amqp").options(**address(broker), exchange="", routingKey=name, batchKey="job1").mode(
        "append"
    ).save()
    assert {message.properties.message_id for message in drain(broker, name)} == ids


def test_an_unroutable_row_fails_the_write_and_is_named(spark: SparkSession, broker: RunningBroker, name: str) -> None:
    df = spark.createDataFrame(
        [("x", f"{name}-nobody", "lost-1")], "body string, routing_key string, message_id string"
    )
    with pytest.raises(Exception) as raised:
        df.write.format("amqp").options(**address(broker), exchange="").mode("append").save()
    text = str(raised.value)
    assert "message_id=lost-1" in text and f"routing_key='{name}-nobody'" in text and "returned 312 NO_ROUTE" in text


def test_without_mandatory_an_unroutable_row_is_dropped_by_the_broker(
    spark: SparkSession, broker: RunningBroker, name: str
) -> None:
    df = spark.createDataFrame([("x", f"{name}-nobody")], "body string, routing_key string")
    df.write.format("amqp").options(**address(broker), exchange="", mandatory="false").mode("append").save()


def test_report_writes_returned_nacked_and_refused_rows_away_with_the_reason(
    spark: SparkSession, broker: RunningBroker, name: str, tmp_path: Path
) -> None:
    declare(broker, name)
    declare(broker, f"{name}-full", x_max_length=1, x_overflow="reject-publish")
    rows = [(f"good {number}", "", name, f"good-{number}") for number in range(500)]
    rows.insert(100, ("stray", "", f"{name}-nobody", "stray"))
    rows.insert(200, ("refused", f"{name}-no-exchange", "k", "refused"))
    rows.insert(300, ("full", "", f"{name}-full", "fits"))
    rows.insert(301, ("full", "", f"{name}-full", "nacked"))
    rows.insert(400, ("long", "", name, "x" * 300))
    df = spark.createDataFrame(rows, "body string, exchange string, routing_key string, message_id string").coalesce(1)
    path = tmp_path / "unroutable"
    df.write.format("amqp").options(**address(broker), unroutable="report", unroutablePath=str(path)).mode(
        "append"
    ).save()
    reported = {row.message_id: row for row in spark.read.parquet(str(path)).collect()}
    found = {key[:10]: (row.outcome, row.reply_code) for key, row in reported.items()}
    # "fits" itself may be nacked: when the refused row closes the channel, rows in doubt are sent again.
    found.pop("fits", None)
    assert found == {
        "stray": ("returned", 312),
        "refused": ("refused", 404),
        "nacked": ("nacked", None),
        "xxxxxxxxxx": ("invalid", None),
    }
    assert "no exchange" in reported["refused"].reply_text
    counts = json.loads(next(path.glob("_counts-*.json")).read_text())
    assert counts["confirmed"] >= 500 and counts["refused"] == 1 and counts["returned"] == 1
    # At least once: everything that could go out did.
    assert {message.properties.message_id for message in drain(broker, name)} == {f"good-{n}" for n in range(500)}


def test_a_streaming_write_publishes_each_batch_and_reports_what_was_not_taken(
    spark: SparkSession, broker: RunningBroker, name: str, tmp_path: Path
) -> None:
    declare(broker, name)
    source, report = tmp_path / "in", tmp_path / "unroutable"
    key = f"if(id = 7, '{name}-nobody', '{name}') as routing_key"
    spark.range(100).selectExpr("cast(id as string) as body", key).write.json(str(source))
    df = spark.readStream.schema("body string, routing_key string").json(str(source))
    query = (
        df.writeStream.format("amqp")
        .options(**address(broker), exchange="", unroutable="report", unroutablePath=str(report))
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    finished(query)
    messages = drain(broker, name)
    assert sorted(int(message.body) for message in messages) == [n for n in range(100) if n != 7]
    # The ids name query, batch, partition and row: the same when the batch is run again.
    assert all((message.properties.message_id or "").startswith(f"{query.id}-0-") for message in messages)
    (row,) = spark.read.parquet(str(report)).collect()
    assert (row.outcome, row.reply_code, row.reply_text, bytes(row.body)) == ("returned", 312, "NO_ROUTE", b"7")
    (counts,) = report.glob("_counts-*.json")
    assert json.loads(counts.read_text()) == {"confirmed": 99, "returned": 1}


def test_a_fault_in_options_or_columns_is_one_clear_line(spark: SparkSession, name: str) -> None:
    df = spark.createDataFrame([("x",)], "body string")
    cases = [
        (df, {"exchange": "", "colour": "red"}, "unknown option 'colour' for format amqp; known for write: "),
        (df, {"host": "h"}, "say where to publish: option 'exchange'"),
        (df, {"exchange": "", "unroutable": "maybe"}, "expected fail or report"),
        (df, {"exchange": "", "unroutable": "report"}, "needs option 'unroutablePath'"),
        (df.selectExpr("body as payload"), {"exchange": ""}, "need a column 'body'; these have: payload"),
        (df.selectExpr("body", "1 as colour"), {"exchange": ""}, "cannot write column 'colour'"),
        (df.selectExpr("body", "'high' as priority"), {"exchange": ""}, "column 'priority' is string"),
    ]
    for frame, options, text in cases:
        with pytest.raises(Exception, match=text):
            frame.write.format("amqp").options(**options).mode("append").save()


def test_a_broker_that_is_not_there_is_named(spark: SparkSession) -> None:
    df = spark.createDataFrame([("x",)], "body string")
    with pytest.raises(Exception, match=r"no connection to the broker at 127.0.0.1:9 at the first attempt"):
        df.write.format("amqp").options(host="127.0.0.1", port="9", exchange="", retries="0").mode("append").save()


def test_a_wrong_password_is_told_without_telling_it(spark: SparkSession, broker: RunningBroker) -> None:
    df = spark.createDataFrame([("x",)], "body string")
    with pytest.raises(Exception) as raised:
        df.write.format("amqp").options(**address(broker), exchange="", username="nobody", password="s3cret-pass").mode(
            "append"
        ).save()
    assert "ACCESS_REFUSED" in str(raised.value) and "s3cret-pass" not in str(raised.value)


def test_depth_is_what_was_written(spark: SparkSession, broker: RunningBroker, name: str) -> None:
    declare(broker, name)
    spark.range(25_000).selectExpr("repeat('x', 100) as body").write.format("amqp").options(
        **address(broker), exchange="", routingKey=name
    ).mode("append").save()
    assert depth(broker, name) == 25_000
