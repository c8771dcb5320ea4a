"""The Spark pipeline's figures, beside RabbitMQ's and beside a Parquet scan as the floor.

Rows per second of the median of --reps runs, in local[2], session start and planning of the first run left out. Reading
counts rows into Spark's no-op sink with all columns; `body` alone as well, because a schema given by hand is what a
user in a hurry gives.
"""

from __future__ import annotations

import contextlib
import statistics
import tempfile
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench import brokers, routing
from warrenmq.bench import process
from warrenmq.client import Connection, Properties
from warrenmq.spark.demo.broker import DemoBroker
from warrenmq.spark.sessions import session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NAMES = ("floor", "stream", "leased", "write", "route")
BODY = b"x" * 100


def noop(df: DataFrame) -> None:
    df.write.format("noop").mode("overwrite").save()


# Who works while Spark talks to a broker, by a word of its command line.
PROCESSES = (("JVM", "bin/java "), ("broker", "warrenmq serve"), ("broker", "beam.smp"), ("Python", "pyspark"))


def spent() -> dict[str, float]:
    """CPU seconds of all processes of each kind that live; Spark keeps its Python workers from one job to the next."""
    pids: dict[str, list[int]] = {"JVM": [], "Python": [], "broker": []}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            command = (folder / "cmdline").read_text().replace("\0", " ")
            kind = next((kind for kind, word in PROCESSES if word in command), None)
            if kind is not None:
                pids[kind].append(int(folder.name))
    return {kind: process.cpu_seconds(found) for kind, found in pids.items()}


def timed(reps: int, work: Callable[[], None]) -> float:
    taken = []
    for _ in range(reps):
        began = time.perf_counter()
        work()
        taken.append(time.perf_counter() - began)
    return statistics.median(taken)


@dataclass
class Target:
    """A broker under test."""

    name: str
    url: str
    http_port: int


class Figures:
    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = []

    def measure(self, what: str, broker: str, rows: int, reps: int, work: Callable[[], None]) -> None:
        """The same with who spent the CPU."""
        before = spent()
        seconds = timed(reps, work)
        after = spent()
        self.add(what, broker, rows, seconds)
        shares = {kind: (after[kind] - before[kind]) / reps / rows * 1e6 for kind in after}
        self.lines[-1]["cpu"] = shares
        told = ", ".join(f"{kind} {share:.2f}" for kind, share in shares.items())
        print(f"{'':<34} CPU s/M: {told}", flush=True)

    def add(self, what: str, broker: str, rows: int, seconds: float) -> None:
        self.lines.append({"what": what, "broker": broker, "rows": rows, "seconds": seconds, "rate": rows / seconds})
        print(f"{what:<34} {broker:<9} {rows:>11,} rows {seconds:>8.2f} s {rows / seconds:>12,.0f} rows/s", flush=True)


def address(url: str, http_port: int) -> dict[str, str]:
    host, port = url.rpartition("@")[2].strip("/").split(":")
    return {"host": host, "port": port.split("/")[0], "httpPort": str(http_port)}


def fill(url: str, queue: str, rows: int, stream: bool) -> None:
    with Connection(url) as connection:
        channel = connection.channel()
        channel.queue_declare(queue, durable=True, arguments={"x-queue-type": "stream"} if stream else {})
        channel.confirm_select()
        for start in range(0, rows, 10_000):
            channel.publish_many("", queue, [BODY] * min(10_000, rows - start), Properties(delivery_mode=2))
            channel.wait_for_confirms(120)


def remove(url: str, queue: str) -> None:
    with Connection(url) as connection:
        connection.channel().queue_delete(queue)


def reading(spark: SparkSession, figures: Figures, broker: Target, rows: int, reps: int, kind: str) -> None:
    queue = f"bench-{kind}"
    fill(broker.url, queue, rows, kind == "stream")
    options = {**address(broker.url, broker.http_port), "stream" if kind == "stream" else "queue": queue}
    name = "read a stream" if kind == "stream" else "read a leased queue"
    for what, columns in ((name, ""), (f"{name}, body only", "body binary")):
        source = spark.read.format("amqp").options(**options, minPartitions="2")
        df = (source.schema(columns) if columns else source).load()
        found = df.count()  # warms up; and the leases are made once, for this DataFrame
        if found != rows:
            raise RuntimeError(f"{what}: {found:,} of {rows:,} rows")
        figures.measure(what, broker.name, rows, reps, partial(noop, df))
        if kind == "leased":  # that DataFrame's leases hold the messages
            remove(broker.url, queue)
            fill(broker.url, queue, rows, False)
    remove(broker.url, queue)


def writing(spark: SparkSession, figures: Figures, broker: Target, rows: int, reps: int) -> None:
    queue = "bench-write"
    with Connection(broker.url) as connection:
        connection.channel().queue_declare(queue, durable=True)
    options = address(broker.url, broker.http_port)
    del options["httpPort"]
    df = spark.range(0, rows, numPartitions=2).selectExpr("cast(repeat('x', 100) as binary) as body")

    def write() -> None:
        df.write.format("amqp").options(**options, exchange="", routingKey=queue).mode("append").save()

    spark.range(10).selectExpr("'x' as body").write.format("amqp").options(
        **options, exchange="", routingKey=queue
    ).mode("append").save()
    figures.measure("write, confirms and mandatory", broker.name, rows, reps, write)
    remove(broker.url, queue)


def floor(spark: SparkSession, figures: Figures, folder: Path, rows: int, reps: int) -> None:
    path = str(folder / "floor")
    spark.range(0, rows, numPartitions=2).selectExpr(
        "'bench' as queue", "'' as exchange", "'bench' as routing_key", "id as offset", "false as redelivered",
        "2 as delivery_mode", "cast(repeat('x', 100) as binary) as body",
    ).write.parquet(path)  # fmt: skip
    noop(spark.read.parquet(path))
    figures.add("Parquet scan of the same rows", "-", rows, timed(reps, lambda: noop(spark.read.parquet(path))))


def measure(
    rows: int, routed: Sequence[tuple[int, bool]], reps: int, with_rabbitmq: bool, only: Collection[str] = NAMES
) -> dict[str, Any]:
    """``routed``: tables for ``route``, by their number of rows and whether their keys are unique."""
    figures = Figures()
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="warren-bench-")))
        spark = session("local[2]", settings={"spark.driver.memory": "3g"})
        stack.callback(spark.stop)
        if "floor" in only:
            floor(spark, figures, folder, rows, reps)
        if "route" in only:
            for number, unique in routed:
                routing.measure(spark, figures, folder, number, reps, unique)
        up: list[Target] = []
        if {"stream", "leased", "write"} & set(only):
            own = DemoBroker(folder)
            own.start()
            stack.callback(own.stop)
            up.append(Target("Warren", own.url, own.http_port))
            if with_rabbitmq and brokers.rabbitmq_installed():
                other = stack.enter_context(brokers.rabbitmq())
                up.append(Target("RabbitMQ", other.url, 15672))
        for broker in up:
            here = rows if broker.name == "Warren" else rows // 5  # RabbitMQ is the limit there
            if "stream" in only:
                reading(spark, figures, broker, here, reps, "stream")
            if "leased" in only and broker.name == "Warren":
                reading(spark, figures, broker, here, reps, "leased")
            if "write" in only:
                writing(spark, figures, broker, here, reps)
        return {"lines": figures.lines, "spark": spark.version}
