"""Whatever starts a batch (AvailableNow, once, processing time), nothing is lost, repeated or left unsettled.

AvailableNow is what the sources' own tests use; here are the others, one going on where another left off.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.spark.support import PATIENCE, channel, depth, finished, one_batch_a_run, publish, reading
from tests.support.brokers import RunningBroker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


@pytest.fixture(params=["stream", "leased queue"])
def source(request: pytest.FixtureRequest, warren: RunningBroker, name: str) -> dict[str, str]:
    """An empty replayable source, as options."""
    kind = "stream" if request.param == "stream" else "queue"
    with channel(warren) as declaring:
        declaring.queue_declare(name, durable=True, arguments={"x-queue-type": "stream"} if kind == "stream" else {})
    return {**reading(warren), kind: name}


def start(spark: SparkSession, source: dict[str, str], folder: Path, **trigger: Any) -> StreamingQuery:
    df = spark.readStream.format("amqp").options(**source).load()
    return (
        df.writeStream.format("parquet")
        .option("path", str(folder / "lake"))
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(**trigger)
        .start()
    )


def taken(query: StreamingQuery) -> int:
    return sum(int(step["numInputRows"]) for step in query.recentProgress)


def put(broker: RunningBroker, name: str, first: int, end: int) -> None:
    publish(broker, name, [b"%d" % number for number in range(first, end)])


def unsettled(broker: RunningBroker, source: dict[str, str]) -> int:
    """Messages of the queue that are ready or held; a stream keeps what was read and owes nothing."""
    if "stream" in source:
        return 0
    _, leases = broker.http("GET", f"/api/queues/%2F/{source['queue']}/leases")
    assert isinstance(leases, list)
    return depth(broker, source["queue"]) + sum(int(lease["count"]) for lease in leases)


def until(query: StreamingQuery, said: str, done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not done():
        assert query.isActive, query.exception()
        assert time.monotonic() < deadline, f"{said}: {query.lastProgress}"
        time.sleep(0.05)


def test_once_takes_all_in_one_batch_and_processing_time_goes_on_from_there_and_settles(
    spark: SparkSession, warren: RunningBroker, source: dict[str, str], name: str, tmp_path: Path
) -> None:
    limited = {**source, "maxOffsetsPerTrigger": "20"}
    put(warren, name, 0, 50)
    query = finished(start(spark, limited, tmp_path, once=True))
    first = taken(query)
    # One batch is all there is, so Spark asks for everything whatever the limit.
    assert first == 50 or one_batch_a_run()
    assert unsettled(warren, source) == (50 if "queue" in source else 0)
    put(warren, name, 50, 80)
    query = start(spark, limited, tmp_path, processingTime="100 milliseconds")
    try:
        until(query, "80 rows", lambda: first + taken(query) >= 80)
        put(warren, name, 80, 90)
        until(query, "90 rows", lambda: first + taken(query) >= 90)
        until(query, "all is settled", lambda: unsettled(warren, source) == 0)
    finally:
        query.stop()
    assert max(step["numInputRows"] for step in query.recentProgress) <= 20 or one_batch_a_run()
    numbers = [int(row.body) for row in spark.read.parquet(str(tmp_path / "lake")).select("body").collect()]
    assert sorted(numbers) == list(range(90))


def test_a_trigger_that_spark_does_not_have_for_python_sources_is_refused_by_name(
    spark: SparkSession, warren: RunningBroker, name: str, tmp_path: Path
) -> None:
    with pytest.raises(Exception, match="(?i)trigger.*continuous"):
        finished(start(spark, {**reading(warren), "stream": name}, tmp_path, continuous="1 second"))
