"""The Spark pipeline's figures, beside RabbitMQ's and beside a Parquet scan as the floor, each with its goal.

Rows per second of the median of --reps runs, in local[2], session start and planning of the first run left out; and who
spent the CPU, which is what the goals are about. Reading counts rows into Spark's no-op sink with all columns; `body`
alone as well, because a schema given by hand is what a user in a hurry gives. Messages come in two kinds: all with the
same properties, and each with headers and ids of its own, which cost more. The floor is a scan of the very rows that
were read from the broker. Writing takes those rows with all their columns, which is what its goals are for, and bodies
alone; and once more with Spark measuring no batches, because from 4.1 on it measures them with every row, which takes
it longer than all the rest (docs/spark.md). About ten minutes; a part named ``many`` routes 100 M rows and takes about
ten more.
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
from warrenmq.wire.fields import from_python

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NAMES = ("stream", "leased", "write", "route", "rabbitmq")
GROUPS = {"read": ("stream", "leased")}
MANY = "many"  # measured only when it is named
BODY = b"x" * 100
STREAM = "bench-stream"
SAME, UNIQUE = "same headers", "unique headers and ids"
PYTHON = "Python, CPU s/M"
TOGETHER = "JVM, Python and broker, CPU as a multiple of the scan's"
OCTETS_OF_A_BATCH = "spark.sql.execution.arrow.maxBytesPerBatch"
UNMEASURED = str(2**31 - 1)  # then Spark does not measure how large a batch has become


def noop(df: DataFrame) -> None:
    df.write.format("noop").mode("overwrite").save()


# Who works while Spark talks to a broker, by a word of its command line.
PROCESSES = (("JVM", "bin/java "), ("broker", "warrenmq serve"), ("broker", "beam.smp"), ("Python", "pyspark"))


def spent() -> dict[str, float]:
    """CPU seconds of our processes of each kind, of workers that have ended too: they only grow.

    Whatever the JVM starts is Python, and so is whatever Spark's Python starts.
    """
    pids: dict[str, list[int]] = {"JVM": [], "Python": [], "broker": []}
    for folder in routing.own_processes():
        with contextlib.suppress(OSError):
            command = (folder / "cmdline").read_text().replace("\0", " ")
            kind = next((kind for kind, word in PROCESSES if word in command), None)
            if kind is not None:
                pids[kind].append(int(folder.name))
    seconds = {kind: process.cpu_seconds(found) for kind, found in pids.items()}
    seconds["Python"] += process.ended_seconds([*pids["Python"], *pids["JVM"]])
    return seconds


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
        self.part = ""  # under which the next lines are kept
        self.scans: dict[str, float] = {}  # CPU s/M of scanning rows of each kind

    def goal(self, of: str, limit: float, found: float, most: bool = True) -> None:
        """What the last line was meant to reach, beside what it did: at most ``limit``, or at least."""
        met = found <= limit if most else found >= limit
        self.lines[-1].setdefault("goals", []).append({"of": of, "limit": limit, "most": most, "found": found})
        print(
            f"{'':<34} goal {of} {'<=' if most else '>='} {limit:g}: {found:.2f} {'met' if met else 'NOT MET'}",
            flush=True,
        )

    @property
    def cpu(self) -> dict[str, float]:
        """Of the last line."""
        return dict(self.lines[-1]["cpu"])

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
        self.lines.append(
            {
                "part": self.part,
                "what": what,
                "broker": broker,
                "rows": rows,
                "seconds": seconds,
                "rate": rows / seconds,
            }
        )
        print(f"{what:<34} {broker:<9} {rows:>11,} rows {seconds:>8.2f} s {rows / seconds:>12,.0f} rows/s", flush=True)


def address(url: str, http_port: int) -> dict[str, str]:
    host, port = url.rpartition("@")[2].strip("/").split(":")
    return {"host": host, "port": port.split("/")[0], "httpPort": str(http_port)}


def properties(kind: str, number: int) -> Properties:
    own = number if kind == UNIQUE else 7
    return Properties(
        delivery_mode=2,
        content_type="application/json",
        message_id=f"message-{own:012d}",
        correlation_id=f"c{own}",
        timestamp=1_700_000_000 + own % 100_000,
        headers=from_python({"order": f"order-{own}", "trace": f"{own:032x}"}),
    )


def fill(url: str, queue: str, rows: int, stream: bool, kind: str) -> None:
    with Connection(url) as connection:
        channel = connection.channel()
        channel.queue_declare(queue, durable=True, arguments={"x-queue-type": "stream"} if stream else {})
        channel.confirm_select()
        for start in range(0, rows, 10_000):
            numbers = range(start, min(start + 10_000, rows))
            channel.publish_many("", queue, [BODY] * len(numbers), [properties(kind, number) for number in numbers])
            channel.wait_for_confirms(120)


def remove(url: str, queue: str) -> None:
    with Connection(url) as connection:
        connection.channel().queue_delete(queue)


def source(spark: SparkSession, broker: Target, columns: str, **options: str) -> DataFrame:
    reader = spark.read.format("amqp").options(**address(broker.url, broker.http_port), **options, minPartitions="2")
    return (reader.schema(columns) if columns else reader).load()


def checked(df: DataFrame, rows: int) -> DataFrame:
    """Warmed up; and leases are made once, for this DataFrame."""
    found = df.count()
    if found != rows:
        raise RuntimeError(f"{found:,} of {rows:,} rows")
    return df


def scanning(
    spark: SparkSession, figures: Figures, broker: Target, rows: int, reps: int, kind: str, lake: Path
) -> None:
    """Fill the stream that is read, and keep its rows for whoever scans or writes them."""
    fill(broker.url, STREAM, rows, True, kind)
    checked(source(spark, broker, "", stream=STREAM), rows).write.parquet(str(lake))
    if broker.name == "Warren":
        scanned = spark.read.parquet(str(lake))
        noop(scanned)
        figures.measure(f"Parquet scan of the rows, {kind}", "-", rows, reps, partial(noop, scanned))
        figures.scans[kind] = sum(figures.cpu.values())


def reading(spark: SparkSession, figures: Figures, broker: Target, rows: int, reps: int, kind: str) -> None:
    """All columns, then the body alone."""
    df = checked(source(spark, broker, "", stream=STREAM), rows)
    figures.measure(f"read a stream, {kind}", broker.name, rows, reps, partial(noop, df))
    if broker.name == "Warren":
        figures.goal(PYTHON, 3.0, figures.cpu["Python"])
        figures.goal(TOGETHER, 6.5, sum(figures.cpu.values()) / figures.scans[kind])
    if kind == UNIQUE:  # the body costs the same, whatever is not looked at
        df = checked(source(spark, broker, "body binary", stream=STREAM), rows)
        figures.measure("read a stream, body only", broker.name, rows, reps, partial(noop, df))
        if broker.name == "Warren":
            figures.goal(PYTHON, 1.0, figures.cpu["Python"])


def leasing(spark: SparkSession, figures: Figures, broker: Target, rows: int, reps: int) -> None:
    queue = "bench-leased"
    for what, columns in ((UNIQUE, ""), ("body only", "body binary")):
        fill(broker.url, queue, rows, False, UNIQUE)  # a lease holds the messages from other readers
        df = checked(source(spark, broker, columns, queue=queue, leases="true"), rows)
        figures.measure(f"read a leased queue, {what}", broker.name, rows, reps, partial(noop, df))
        figures.goal(PYTHON, 3.0, figures.cpu["Python"])
        remove(broker.url, queue)


def writing(spark: SparkSession, figures: Figures, broker: Target, rows: int, reps: int, kind: str, lake: Path) -> None:
    """The rows that were read, all their columns; of those that are all different also the bodies alone."""
    queue = "bench-write"
    with Connection(broker.url) as connection:
        connection.channel().queue_declare(queue, durable=True)
    options = address(broker.url, broker.http_port)
    del options["httpPort"]
    whole = spark.read.parquet(str(lake)).drop("queue", "exchange", "routing_key", "offset", "redelivered")

    def write(df: DataFrame) -> None:
        df.write.format("amqp").options(**options, exchange="", routingKey=queue).mode("append").save()

    def emptied() -> None:
        with Connection(broker.url) as connection:
            connection.channel().queue_purge(queue)

    write(spark.range(10).selectExpr("'x' as body"))
    usual = str(spark.conf.get(OCTETS_OF_A_BATCH))
    ways = [
        ("", usual, whole),
        (", no empty column", usual, whole.select(*filled(whole))),
        (", batches unmeasured", UNMEASURED, whole),
    ]
    for mark, octets, df in ways if broker.name == "Warren" else ways[1:2]:
        spark.conf.set(OCTETS_OF_A_BATCH, octets)
        figures.measure(f"write, {kind}{mark}", broker.name, rows, reps, partial(write, df))
        if broker.name == "Warren":
            figures.goal(PYTHON, 3.0, figures.cpu["Python"])
            figures.goal(TOGETHER, 7.7, sum(figures.cpu.values()) / figures.scans[kind])
        emptied()
    spark.conf.set(OCTETS_OF_A_BATCH, usual)
    if kind == UNIQUE:
        figures.measure("write, body only", broker.name, rows, reps, partial(write, whole.select("body")))
    remove(broker.url, queue)


def filled(df: DataFrame) -> list[str]:
    """The columns with a value in any row."""
    from pyspark.sql import functions

    counts = df.agg(*[functions.count(name).alias(name) for name in df.columns]).first()
    assert counts is not None
    return [name for name in df.columns if counts[name]]


def measure(
    rows: int, routed: Sequence[tuple[str, int, bool]], reps: int, with_rabbitmq: bool, only: Collection[str] = NAMES
) -> dict[str, Any]:
    """``routed``: tables for ``route``, by the part they belong to, their rows and whether their keys are unique."""
    figures = Figures()
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="warren-bench-")))
        spark = session("local[2]", settings={"spark.driver.memory": "3g"})
        stack.callback(spark.stop)
        if {"route", MANY} & set(only):
            for part, number, unique in routed:
                figures.part = part
                routing.measure(spark, figures, folder, number, reps, unique)
        if {"stream", "leased", "write"} & set(only):
            own = DemoBroker(folder)
            own.start()
            stack.callback(own.stop)
            for kind in (SAME, UNIQUE):
                _on(spark, figures, Target("Warren", own.url, own.http_port), rows, reps, kind, folder, only)
        if with_rabbitmq and "rabbitmq" in only and brokers.rabbitmq_installed():
            other = stack.enter_context(brokers.rabbitmq())
            # RabbitMQ is the limit there: fewer rows do.
            _on(spark, figures, Target("RabbitMQ", other.url, 15672), rows // 5, reps, UNIQUE, folder, ())
        missed = told(figures.lines)
        print(f"{missed} goals not met" if missed else "all goals met", flush=True)
        return {
            "lines": figures.lines,
            "parts": sorted({line["part"] for line in figures.lines}),
            "spark": spark.version,
        }


def _on(
    spark: SparkSession,
    figures: Figures,
    broker: Target,
    rows: int,
    reps: int,
    kind: str,
    folder: Path,
    only: Collection[str],
) -> None:
    """The parts of one broker; RabbitMQ's are one part."""
    warren = broker.name == "Warren"
    lake = folder / f"lake of {broker.name}, {kind}"
    figures.part = f"scan, {kind}" if warren else "rabbitmq"
    scanning(spark, figures, broker, rows, reps, kind, lake)
    if "stream" in only or not warren:
        figures.part = "stream" if warren else "rabbitmq"
        reading(spark, figures, broker, rows, reps, kind)
    remove(broker.url, STREAM)
    if "leased" in only and kind == UNIQUE:
        figures.part = "leased"
        leasing(spark, figures, broker, rows, reps)
    if "write" in only or not warren:
        figures.part = "write" if warren else "rabbitmq"
        writing(spark, figures, broker, rows, reps, kind, lake)


def told(lines: Sequence[dict[str, Any]]) -> int:
    """Print every goal beside its figure; how many were missed."""
    missed = 0
    for line in lines:
        for goal in line.get("goals", ()):
            met = goal["found"] <= goal["limit"] if goal["most"] else goal["found"] >= goal["limit"]
            missed += not met
            sign = "<=" if goal["most"] else ">="
            print(
                f"{line['what']} ({line['rows']:,} rows): {goal['of']} {sign} {goal['limit']:g}: {goal['found']:.2f} "
                f"{'met' if met else 'NOT MET'}",
                flush=True,
            )
    return missed
