"""A query's progress says how many messages of each stream and queue are still to be read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.spark.support import channel, finished, publish, reading, skip_if_one_batch_a_run
from tests.spark.test_limits import KINDS, declare, options
from tests.support.brokers import RunningBroker
from warrenmq.spark import lag

pytest.importorskip("pyspark", reason="PySpark is not installed")
pytest.importorskip("pyarrow", reason="pyarrow is not installed")

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def reader_of(options: dict[str, str]) -> Any:
    from pyspark.sql.types import BinaryType, StructField, StructType

    from warrenmq.spark.source import AmqpDataSource

    return AmqpDataSource(options).streamReader(StructType([StructField("body", BinaryType())]))


def planned(reader: Any, at: dict[str, Any]) -> tuple[dict[str, Any], Any]:
    """The next batch, planned, read and committed; where it ends, and the latest offset as Spark asks for it."""
    end = json.loads(json.dumps(reader.latestOffset(at, reader.getDefaultReadLimit())))
    latest = reader.reportLatestOffset()
    for partition in reader.partitions(at, end):
        list(reader.read(partition))
    reader.commit(end)
    return end, latest


def progress(offset: object) -> dict[str, Any]:
    """As Spark shows it."""
    text = None if offset is None else json.dumps(offset)
    return {"sources": [{"description": "amqp", "latestOffset": text}]}


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_batch_leaves_for_later_is_reported_by_stream_and_queue(
    broker: RunningBroker, name: str, kind: str
) -> None:
    declare(broker, kind, name, f"{name}-other")
    publish(broker, name, [b"x"] * 100)
    publish(broker, f"{name}-other", [b"x"] * 50)
    more = {"prefetchCount": "30"} if kind == "plain queue" else {}  # what was sent ahead is not counted
    reader = reader_of(options(broker, kind, f"{name},{name}-other", maxOffsetsPerTrigger="60", **more))
    at = reader.initialOffset()
    if kind == "leased queue":
        at, latest = planned(reader, at)
        assert latest is None  # the empty first batch, which looks at nothing
    seen = []
    for _ in range(3):
        at, latest = planned(reader, at)
        seen.append(lag(progress(latest)))
    shares = {"stream": [[60, 30], [20, 10], [0, 0]]}.get(kind, [[70, 20], [40, 0], [10, 0]])
    assert seen == [{name: a, f"{name}-other": b} for a, b in shares]


def test_a_stream_reports_where_it_ends_in_the_form_of_the_checkpoint(broker: RunningBroker, name: str) -> None:
    declare(broker, "stream", name)
    publish(broker, name, [b"x"] * 10)
    reader = reader_of(options(broker, "stream", name, maxOffsetsPerTrigger="4"))
    end, latest = planned(reader, reader.initialOffset())
    assert end["streams"] == {name: 4}
    assert latest == {"streams": {name: 10}, "behind": {name: 6}}


def test_lag_takes_queries_progresses_and_sources_of_others() -> None:
    class Query:
        lastProgress: dict[str, Any] | None = None

    query = Query()
    assert lag(query) == {}
    query.lastProgress = progress({"behind": {"orders": 3}})
    assert lag(query) == {"orders": 3}
    query.lastProgress["sources"] += [{"latestOffset": None}, {"latestOffset": "7"}, {"latestOffset": "no JSON"}, {}]
    query.lastProgress["sources"] += [{"latestOffset": {"behind": {"orders": 5, "bills": 1}}}]
    assert lag(query) == {"orders": 5, "bills": 1}


@pytest.mark.parametrize("kind", ["stream", "queue"])
def test_spark_shows_the_lag_in_the_progress_of_a_query(
    spark: SparkSession, warren: RunningBroker, name: str, kind: str, tmp_path: Path
) -> None:
    skip_if_one_batch_a_run()
    with channel(warren) as declaring:
        declaring.queue_declare(name, durable=True, arguments={"x-queue-type": "stream"} if kind == "stream" else {})
    publish(warren, name, [b"x"] * 100)
    df = spark.readStream.format("amqp").options(**reading(warren), **{kind: name, "maxOffsetsPerTrigger": "40"}).load()
    query = finished(
        df.writeStream.format("noop").option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start()
    )
    seen = [lag(step) for step in query.recentProgress if step["numInputRows"]]
    assert seen == [{name: 60}, {name: 20}, {name: 0}]
