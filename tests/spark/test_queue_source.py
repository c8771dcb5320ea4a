"""A queue of plain RabbitMQ is read at least once; nothing is settled before Spark has committed it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.spark.support import channel, depth, finished, publish, reading, skip_if_one_batch_a_run
from tests.support.brokers import RunningBroker

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@pytest.fixture
def queue(broker: RunningBroker, name: str) -> str:
    with channel(broker) as declaring:
        declaring.queue_declare(name, durable=True)
    return name


def options(broker: RunningBroker, queue: str, **more: str) -> dict[str, str]:
    # `leases=false`: what plain RabbitMQ can do, which Warren can do as well.
    return {**reading(broker), "queue": queue, "leases": "false", **more}


def bodies(count: int, first: int = 0) -> list[bytes]:
    return [b"%d" % number for number in range(first, first + count)]


def numbers(df: DataFrame) -> list[int]:
    return sorted(int(row.body) for row in df.select("body").collect())


def run(spark: SparkSession, options: dict[str, str], lake: Path, checkpoint: Path) -> None:
    df = spark.readStream.format("amqp").options(**options).load()
    finished(
        df.writeStream.format("parquet")
        .option("path", str(lake))
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )


def test_available_now_takes_what_was_there_and_settles_its_last_batch(
    spark: SparkSession, broker: RunningBroker, queue: str, tmp_path: Path
) -> None:
    skip_if_one_batch_a_run()
    lake, checkpoint = tmp_path / "lake", tmp_path / "checkpoint"
    publish(broker, queue, bodies(100))
    run(spark, options(broker, queue, maxOffsetsPerTrigger="40"), lake, checkpoint)
    assert numbers(spark.read.parquet(str(lake))) == list(range(100))
    assert depth(broker, queue) == 0
    publish(broker, queue, bodies(5, 100))
    run(spark, options(broker, queue), lake, checkpoint)
    assert numbers(spark.read.parquet(str(lake))) == list(range(105))
    assert depth(broker, queue) == 0


def test_a_batch_that_never_committed_comes_again(
    spark: SparkSession, broker: RunningBroker, queue: str, tmp_path: Path
) -> None:
    skip_if_one_batch_a_run()
    publish(broker, queue, bodies(20))
    checkpoint = tmp_path / "checkpoint"

    def broken(df: DataFrame, batch: int) -> None:
        assert df.count() == 20
        raise RuntimeError("the sink is broken")

    df = spark.readStream.format("amqp").options(**options(broker, queue)).load()
    query = (
        df.writeStream.foreachBatch(broken)
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    with pytest.raises(Exception, match="the sink is broken"):
        query.awaitTermination(60)
    run(spark, options(broker, queue), tmp_path / "lake", checkpoint)
    assert set(numbers(spark.read.parquet(str(tmp_path / "lake")))) == set(range(20))
    assert depth(broker, queue) == 0


def test_a_batch_read_leaves_everything_in_the_queue(spark: SparkSession, broker: RunningBroker, queue: str) -> None:
    publish(broker, queue, bodies(50))
    df = spark.read.format("amqp").options(**options(broker, queue)).load()
    assert df.count() == 50
    assert numbers(df) == list(range(50))
    assert depth(broker, queue) == 50


def test_a_queue_that_is_not_there_is_named(spark: SparkSession, broker: RunningBroker, name: str) -> None:
    with pytest.raises(Exception, match=f"no queue '{name}-none' in vhost '/'"):
        spark.read.format("amqp").options(**options(broker, f"{name}-none")).load().count()
