"""Whoever is killed, every message ends up in the lake exactly once: executor, driver, broker."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.spark.support import QUICK_JVM, channel, kill, publish, reading, restartable
from tests.support.brokers import RunningBroker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Each starts several Sparks, which take as long as the machine is busy: the limits bound hanging, nothing else.
pytestmark = [pytest.mark.spark, pytest.mark.soak, pytest.mark.timeout(1800)]

# A driver that dies, with its JVM, after the sink has the batch and before Spark commits it.
DRIVER = """
import json, os, signal, sys
from warrenmq.spark import session
options, lake, checkpoint, deadly = json.loads(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4])
spark = session("local[2]", settings={"spark.driver.extraJavaOptions": sys.argv[5]})

def write(df, batch):
    df.select("body").write.mode("overwrite").parquet(f"{lake}/batch={batch}")
    if batch == deadly:
        os.killpg(0, signal.SIGKILL)

df = spark.readStream.format("amqp").options(**options).load()
query = (df.writeStream.foreachBatch(write).option("checkpointLocation", checkpoint)
         .trigger(availableNow=True).start())
query.awaitTermination()
spark.stop()
"""


def drive(tmp_path: Path, options: dict[str, str], deadly: int) -> int:
    import json

    program = tmp_path / "driver.py"
    program.write_text(DRIVER)
    process = subprocess.Popen(
        [
            sys.executable,
            str(program),
            json.dumps(options),
            str(tmp_path / "lake"),
            str(tmp_path / "checkpoint"),
            str(deadly),
            QUICK_JVM,
        ],
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        return process.wait(800)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def numbers(spark: SparkSession, lake: Path) -> list[int]:
    return sorted(int(row.body) for row in spark.read.parquet(str(lake)).select("body").collect())


@pytest.fixture(params=["stream", pytest.param("leased queue", marks=pytest.mark.warren_only)])
def source(request: pytest.FixtureRequest, broker: RunningBroker, name: str) -> dict[str, str]:
    """A replayable source with 100 messages in it."""
    leased = request.param == "leased queue"
    with channel(broker) as declaring:
        declaring.queue_declare(name, durable=True, arguments={} if leased else {"x-queue-type": "stream"})
    publish(broker, name, [b"%d" % number for number in range(100)])
    kind = "queue" if leased else "stream"
    more = {"leases": "true"} if leased else {}
    return {**reading(broker), kind: name, "maxOffsetsPerTrigger": "40", **more}


def test_a_driver_killed_between_write_and_commit_repeats_the_batch_exactly(
    spark: SparkSession, source: dict[str, str], tmp_path: Path
) -> None:
    assert drive(tmp_path, source, deadly=1) == -signal.SIGKILL
    assert drive(tmp_path, source, deadly=-1) == 0
    assert numbers(spark, tmp_path / "lake") == list(range(100))


PROGRAM = """
import sys
from pyspark.sql import SparkSession
from pyspark.sql.functions import udf
options, lake = eval(sys.argv[1]), sys.argv[2]
spark = SparkSession.builder.appName("kill test").getOrCreate()

@udf("binary")
def slowly(body):
    import time
    time.sleep(0.01)
    return bytes(body)

df = spark.readStream.format("amqp").options(**options).load().select(slowly("body").alias("body"))
query = (df.writeStream.format("parquet").option("path", lake).option("checkpointLocation", lake + "/_checkpoint")
         .trigger(availableNow=True).start())
query.awaitTermination()
spark.stop()
"""


def test_a_killed_executor_loses_and_repeats_nothing(
    spark: SparkSession, rabbitmq: RunningBroker, name: str, tmp_path: Path
) -> None:
    from tests.spark.cluster import start_cluster

    with channel(rabbitmq) as declaring:
        declaring.queue_declare(name, durable=True, arguments={"x-queue-type": "stream"})
    publish(rabbitmq, name, [b"%d" % number for number in range(2000)])
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    options = {**reading(rabbitmq), "stream": name, "minPartitions": "8"}
    lake = tmp_path / "lake"
    killed: list[int] = []
    over = threading.Event()
    with start_cluster(tmp_path) as cluster:

        def kill_one() -> None:
            # once tasks write, so that one is lost in the middle
            while not killed and not over.wait(0.05):
                writing = list((lake).glob("part-*")) if lake.exists() else []
                running = cluster.executors()
                if writing and running:
                    os.kill(running[0], signal.SIGKILL)
                    killed.append(running[0])

        killer = threading.Thread(target=kill_one)
        killer.start()
        done = cluster.submit(program, repr(options), str(lake), timeout=1500)
        over.set()
        killer.join()
        assert done.returncode == 0, done.stderr[-3000:]
    assert killed, "no executor was there to be killed"
    assert numbers(spark, lake) == list(range(2000))


@pytest.mark.parametrize("kind", ["stream", "queue"])
def test_a_broker_killed_and_restarted_under_a_running_query_loses_and_repeats_nothing(
    spark: SparkSession, name: str, tmp_path: Path, kind: str
) -> None:
    with restartable(tmp_path) as (broker, start):
        run_through_a_restart(spark, broker, start, name, tmp_path / "lake", kind)
    assert numbers(spark, tmp_path / "lake") == list(range(600))


def run_through_a_restart(
    spark: SparkSession, broker: RunningBroker, start: Callable[[], RunningBroker], name: str, lake: Path, kind: str
) -> None:
    with channel(broker) as declaring:
        declaring.queue_declare(name, durable=True, arguments={"x-queue-type": "stream"} if kind == "stream" else {})
    publish(broker, name, [b"%d" % number for number in range(500)])
    options = {**reading(broker), kind: name, "maxOffsetsPerTrigger": "100", "patience": "10m"}
    df = spark.readStream.format("amqp").options(**options).load()
    query = (
        df.writeStream.format("parquet")
        .option("path", str(lake))
        .option("checkpointLocation", str(lake / "_checkpoint"))
        .trigger(processingTime="500 milliseconds")
        .start()
    )
    deadline = time.monotonic() + 1500
    try:
        while not query.recentProgress and time.monotonic() < deadline:
            time.sleep(0.1)
        kill(broker)
        broker = start()
        publish(broker, name, [b"%d" % number for number in range(500, 600)])
        rows = 0
        while rows < 600 and time.monotonic() < deadline:
            time.sleep(0.5)
            assert query.isActive, query.exception()
            rows = sum(int(step["numInputRows"]) for step in query.recentProgress)
    finally:
        query.stop()
