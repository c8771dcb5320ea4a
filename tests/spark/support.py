"""What the connector's tests share: addresses as options, messages in and out of a broker, waiting for queries."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.brokers import RunningBroker, free_ports
from warrenmq.client import Channel, ClientError, Connection, Message, Properties

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

ROOT = Path(__file__).parents[2]
PATIENCE = 800  # seconds; bounds hanging, nothing else
# For programs that live a minute: compiling well takes longer than running what was compiled badly, and loading Spark's
# classes longer than anything (scripts/spark_classes.py). A JVM that they do not fit says nothing and loads its own.
CLASSES = [f"-XX:SharedArchiveFile={path} -Xlog:disable" for path in (ROOT / ".make").glob("spark-*.jsa")]
QUICK_JVM = " ".join(["-XX:TieredStopAtLevel=1 -XX:+UseSerialGC", *CLASSES[: " " not in str(ROOT)]])
#: and nothing compiled for queries that run once over a few rows (what compiles them is Spark's; it is on in
#: ``make soak``, on a cluster and over Connect)
INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}


@contextmanager
def channel(broker: RunningBroker) -> Iterator[Channel]:
    with Connection(broker.url) as connection:
        yield connection.channel()


def address(broker: RunningBroker) -> dict[str, str]:
    """Where the broker is, as options of format("amqp")."""
    return {"host": broker.host, "port": str(broker.port)}


def reading(broker: RunningBroker) -> dict[str, str]:
    return {**address(broker), "httpPort": str(broker.http_port)}


def publish(
    broker: RunningBroker, queue: str, bodies: list[bytes], properties: Properties | None = None, exchange: str = ""
) -> None:
    """Confirmed before it returns."""
    with channel(broker) as publishing:
        publishing.confirm_select()
        publishing.publish_many(exchange, queue, bodies, properties or Properties(delivery_mode=2))
        publishing.wait_for_confirms(60)


def drain(broker: RunningBroker, queue: str) -> list[Message]:
    """Everything in a queue, taken out of it."""
    messages: list[Message] = []
    with channel(broker) as reading:
        while (message := reading.basic_get(queue, no_ack=True)) is not None:
            messages.append(message)
    return messages


def depth(broker: RunningBroker, queue: str) -> int:
    with channel(broker) as asking:
        return asking.queue_declare(queue, passive=True).int("message_count")


@contextmanager
def serving(folder: Path, port: int, http_port: int) -> Iterator[RunningBroker]:
    """A Warren on these ports with the data of this folder, whoever had it before."""
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "warrenmq",
            "serve",
            "--port",
            str(port),
            "--http-port",
            str(http_port),
            "--data-dir",
            str(folder / "data"),
            "--journal",
            "off",
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    broker = RunningBroker("warren", port, http_port, folder, process)
    try:
        deadline = time.monotonic() + 60
        while True:
            try:
                with channel(broker):
                    break
            except ClientError:
                if time.monotonic() > deadline:
                    raise RuntimeError("the broker did not start") from None
                time.sleep(0.05)
        yield broker
    finally:
        process.kill()
        process.wait()


@contextmanager
def restartable(folder: Path) -> Iterator[tuple[RunningBroker, Callable[[], RunningBroker]]]:
    """A Warren that may be killed, and what starts it again on the same ports with the same data."""
    port, http_port = free_ports(2)
    with ExitStack() as held:

        def start() -> RunningBroker:
            return held.enter_context(serving(folder, port, http_port))

        yield start(), start


def kill(broker: RunningBroker) -> None:
    """At once, as a crash would end it."""
    broker.process.kill()
    broker.process.wait()


def finished(query: StreamingQuery) -> StreamingQuery:
    """Wait for an AvailableNow query; raises what it failed with."""
    assert query.awaitTermination(PATIENCE), f"the query still runs after {PATIENCE} s: {query.lastProgress}"
    return query


def one_batch_a_run() -> bool:
    """Spark before 4.2 ends an AvailableNow query after one batch, which the next run settles (docs/spark.md)."""
    import pyspark

    return tuple(int(part) for part in pyspark.__version__.split(".")[:2]) < (4, 2)


def runs() -> int:
    """How often an AvailableNow query is started so that it has taken a few batches and settled the last."""
    return 4 if one_batch_a_run() else 1


def skip_if_one_batch_a_run() -> None:
    if one_batch_a_run():
        pytest.skip("Spark before 4.2 gives Python sources neither limits nor an AvailableNow of several batches")


Row = dict[str, Any]


def available_now(spark: SparkSession, options: dict[str, str], lake: Path, checkpoint: Path) -> list[int]:
    """AvailableNow into Parquet, to the end; how many rows each of its batches had."""
    counts: list[int] = []
    for _ in range(runs()):
        df = spark.readStream.format("amqp").options(**options).load()
        query = finished(
            df.writeStream.format("parquet")
            .option("path", str(lake))
            .option("checkpointLocation", str(checkpoint))
            .trigger(availableNow=True)
            .start()
        )
        counts += [step["numInputRows"] for step in query.recentProgress if step["numInputRows"]]
    return counts
