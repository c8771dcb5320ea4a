"""A queue of Warren is read under leases: the same messages again after a failure, settled when Spark has committed."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest

from tests.spark.support import (
    available_now,
    channel,
    depth,
    finished,
    one_batch_a_run,
    publish,
    reading,
    runs,
    skip_if_one_batch_a_run,
)
from tests.support.brokers import RunningBroker

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@pytest.fixture
def queue(warren: RunningBroker, name: str) -> str:
    with channel(warren) as declaring:
        declaring.queue_declare(name, durable=True)
    return name


def bodies(count: int, first: int = 0) -> list[bytes]:
    return [b"%d" % number for number in range(first, first + count)]


def numbers(df: DataFrame) -> list[int]:
    return sorted(int(row.body) for row in df.select("body").collect())


def held(broker: RunningBroker, queue: str) -> list[dict[str, object]]:
    status, leases = broker.http("GET", f"/api/queues/%2F/{quote(queue)}/leases")
    assert status == 200 and isinstance(leases, list)
    return leases


def let_go(broker: RunningBroker, queue: str) -> list[str]:
    """Give all leases back, as running out would do; their ids."""
    ids = [str(lease["id"]) for lease in held(broker, queue)]
    for each in ids:
        broker.http("DELETE", f"/api/queues/%2F/{quote(queue)}/leases/{each}")
    return ids


def test_available_now_takes_what_was_there_in_bounded_batches_and_settles_all_of_it(
    spark: SparkSession, warren: RunningBroker, queue: str, tmp_path: Path
) -> None:
    skip_if_one_batch_a_run()
    lake, checkpoint = tmp_path / "lake", tmp_path / "checkpoint"
    options = {**reading(warren), "queue": queue, "maxOffsetsPerTrigger": "40"}
    publish(warren, queue, bodies(100))
    assert available_now(spark, options, lake, checkpoint) == [40, 40, 20]
    assert numbers(spark.read.parquet(str(lake))) == list(range(100))
    assert depth(warren, queue) == 0 and held(warren, queue) == []
    publish(warren, queue, bodies(5, 100))
    assert available_now(spark, options, lake, checkpoint) == [5]
    assert numbers(spark.read.parquet(str(lake))) == list(range(105))
    assert held(warren, queue) == []


def test_a_batch_that_was_written_but_not_committed_is_read_again_the_same(
    spark: SparkSession, warren: RunningBroker, queue: str, tmp_path: Path
) -> None:
    lake, checkpoint = tmp_path / "lake", tmp_path / "checkpoint"
    options = {**reading(warren), "queue": queue}
    publish(warren, queue, bodies(30))

    def broken(df: DataFrame, batch: int) -> None:
        df.select("body").write.mode("overwrite").parquet(f"{lake}/batch={batch}")
        if not df.isEmpty():  # the first batch only makes the owner of the leases known to the checkpoint
            raise RuntimeError("the driver dies here")

    def whole(df: DataFrame, batch: int) -> None:
        df.select("body").write.mode("overwrite").parquet(f"{lake}/batch={batch}")

    for sink in (broken, *[whole] * runs()):
        df = spark.readStream.format("amqp").options(**options).load()
        query = (
            df.writeStream.foreachBatch(sink)
            .option("checkpointLocation", str(checkpoint))
            .trigger(availableNow=True)
            .start()
        )
        if sink is broken:
            with pytest.raises(Exception, match="the driver dies here"):
                query.awaitTermination(90)
            assert len(held(warren, queue)) > 0
            publish(warren, queue, bodies(10, 30))  # the batch at hand must not see these
        else:
            finished(query)
    first = 0 if one_batch_a_run() else 1
    assert numbers(spark.read.parquet(f"{lake}/batch={first}")) == list(range(30))
    assert numbers(spark.read.parquet(str(lake))) == list(range(40))
    assert held(warren, queue) == [] and depth(warren, queue) == 0


def test_every_action_on_a_batch_read_sees_the_same_messages_and_settles_none(
    spark: SparkSession, warren: RunningBroker, queue: str
) -> None:
    publish(warren, queue, bodies(50))
    df = spark.read.format("amqp").options(**reading(warren), queue=queue, leases="true", minPartitions="3").load()
    assert df.count() == 50
    publish(warren, queue, bodies(10, 50))
    assert numbers(df) == list(range(50))
    assert df.rdd.getNumPartitions() >= 3
    let_go(warren, queue)
    assert depth(warren, queue) == 60


def test_a_lease_that_ran_out_fails_the_query_and_is_named(
    spark: SparkSession, warren: RunningBroker, queue: str, tmp_path: Path
) -> None:
    options = {**reading(warren), "queue": queue}
    publish(warren, queue, bodies(10))

    def broken(df: DataFrame, batch: int) -> None:
        if not df.isEmpty():
            raise RuntimeError("the driver dies here")

    df = spark.readStream.format("amqp").options(**options).load()
    query = (
        df.writeStream.foreachBatch(broken)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    with pytest.raises(Exception, match="the driver dies here"):
        query.awaitTermination(90)
    with pytest.raises(Exception, match=rf"lease ({'|'.join(let_go(warren, queue))}) "):
        available_now(spark, options, tmp_path / "lake", tmp_path / "checkpoint")


def test_a_lease_that_runs_out_between_reading_and_settling_fails_the_query_and_is_named(
    spark: SparkSession, warren: RunningBroker, queue: str, tmp_path: Path
) -> None:
    publish(warren, queue, bodies(10))
    lost: list[str] = []

    def slow(df: DataFrame, batch: int) -> None:
        assert df.count() in (0, 10)
        lost.extend(let_go(warren, queue))

    def take() -> None:
        df = spark.readStream.format("amqp").options(**reading(warren), queue=queue).load()
        finished(
            df.writeStream.foreachBatch(slow)
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )

    with pytest.raises(Exception) as raised:
        take()
        take()  # Spark before 4.2 settles the last batch in the next run
    assert any(f"lease {lease} on queue '{queue}' expired before it was settled" in str(raised.value) for lease in lost)
    let_go(warren, queue)
    assert depth(warren, queue) == 10


def test_leases_that_no_batch_knows_are_let_go_after_a_restart(
    spark: SparkSession, warren: RunningBroker, queue: str, tmp_path: Path
) -> None:
    options = {**reading(warren), "queue": queue}
    publish(warren, queue, bodies(10))
    available_now(spark, options, tmp_path / "lake", tmp_path / "checkpoint")
    offsets = sorted((tmp_path / "checkpoint" / "offsets").glob("[0-9]*"), key=lambda path: int(path.name))
    owner = json.loads(offsets[-1].read_text().splitlines()[-1])["owner"]
    publish(warren, queue, bodies(10, 10))
    stranded = {"count": 4, "ttl_ms": 600_000, "owner": owner, "key": "99/0"}
    status, _ = warren.http("POST", f"/api/queues/%2F/{quote(queue)}/leases", stranded)
    assert status == 201
    available_now(spark, options, tmp_path / "lake", tmp_path / "checkpoint")
    available_now(spark, options, tmp_path / "lake", tmp_path / "checkpoint")
    assert numbers(spark.read.parquet(str(tmp_path / "lake"))) == list(range(20))


def test_a_running_query_renews_its_leases(
    spark: SparkSession, warren: RunningBroker, queue: str, tmp_path: Path
) -> None:
    publish(warren, queue, bodies(10))
    expiries: list[object] = []

    def slow(df: DataFrame, batch: int) -> None:
        if df.count():
            first = {lease["id"]: lease["expires_at"] for lease in held(warren, queue)}
            deadline = time.monotonic() + 60
            while time.monotonic() < deadline:
                now = {lease["id"]: lease["expires_at"] for lease in held(warren, queue)}
                if now and all(int(str(now[each])) > int(str(first[each])) for each in first if each in now):
                    expiries.append(now)
                    return
                time.sleep(0.1)

    df = spark.readStream.format("amqp").options(**reading(warren), queue=queue, leaseTtl="6s").load()
    finished(
        df.writeStream.foreachBatch(slow)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    assert expiries and (one_batch_a_run() or held(warren, queue) == [])
