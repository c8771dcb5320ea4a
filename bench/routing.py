"""`route` beside a Parquet scan of the same columns: keys that repeat, and keys of which no two are the same.

A line for each job has its rate as a share of the scan's in the same run, who spent the CPU, and the most memory that
any of Spark's Python processes has ever held. Every run has definitions that no worker has seen, so that nothing is
remembered from the run before.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from bench.spark import Figures

SCAN = "Parquet scan of the messages"
COUNTED_FILES = "route of files, outcomes counted"
COUNTED_TABLE = "route of a DataFrame, the same"
UNIQUE = ", unique keys"
REPEATED_ROWS = 10_000_000
UNIQUE_ROWS = 1_000_000
MANY_ROWS = 100_000_000
OF_SCAN = "of the scan's rate"
MANY = 20_000_000  # rows, from which on one repetition has to do


def definitions(bindings: int) -> dict[str, Any]:
    """A topic exchange with most of the bindings, and one of every other kind."""
    queues = [f"q{n}" for n in range(1000)]
    listed = [
        {
            "source": "events",
            "vhost": "/",
            "destination": queues[n % 1000],
            "destination_type": "queue",
            "routing_key": f"site{n % 100}.sensor{n // 100}.{'*' if n % 3 else '#'}",
            "arguments": {},
        }
        for n in range(bindings - 200)
    ]
    listed += [
        {
            "source": "direct",
            "vhost": "/",
            "destination": queues[n],
            "destination_type": "queue",
            "routing_key": f"key{n}",
            "arguments": {},
        }
        for n in range(100)
    ]
    listed += [
        {
            "source": "heads",
            "vhost": "/",
            "destination": queues[n],
            "destination_type": "queue",
            "routing_key": "",
            "arguments": {"x-match": "all", "tenant": str(n)},
        }
        for n in range(97)
    ]
    listed.append(
        {
            "source": "direct",
            "vhost": "/",
            "destination": "events",
            "destination_type": "exchange",
            "routing_key": "key1",
            "arguments": {},
        }
    )
    listed.append(
        {
            "source": "strays",
            "vhost": "/",
            "destination": "q0",
            "destination_type": "queue",
            "routing_key": "",
            "arguments": {},
        }
    )
    listed.append(
        {
            "source": "later",
            "vhost": "/",
            "destination": "q1",
            "destination_type": "queue",
            "routing_key": "remind",
            "arguments": {},
        }
    )
    kinds: tuple[tuple[str, str, dict[str, str]], ...] = (
        ("events", "topic", {"alternate-exchange": "strays"}),
        ("direct", "direct", {}),
        ("heads", "headers", {}),
        ("strays", "fanout", {}),
        ("later", "x-delayed-message", {"x-delayed-type": "direct"}),
    )
    return {
        "vhosts": [{"name": "/"}],
        "queues": [{"name": name, "vhost": "/"} for name in queues],
        "exchanges": [{"name": n, "vhost": "/", "type": kind, "arguments": a} for n, kind, a in kinds],
        "bindings": listed,
    }


def messages(spark: SparkSession, path: str, rows: int, unique: bool) -> None:
    """Made by Spark itself, so that any number of rows can be had."""
    last = "id" if unique else "pmod(hash(id + 2), 10)"
    spark.range(0, rows, numPartitions=max(4, rows // 5_000_000)).selectExpr(
        "case when id % 20 = 0 then 'direct' when id % 20 = 1 then 'heads' when id % 50 = 2 then 'later' "
        "else 'events' end as exchange",
        f"case when id % 20 = 0 then concat('key', {'id' if unique else 'id % 200'}) when id % 50 = 2 then 'remind' "
        f"else concat('site', pmod(hash(id), 100), '.sensor', pmod(hash(id + 1), 210), '.v', {last}) "
        "end as routing_key",
        "case when id % 20 = 1 then map('tenant', cast(id % 150 as string)) "
        "when id % 50 = 2 then map('x-delay', cast(1000 + id % 7 as string)) end as headers",
        "if(id % 50 = 2, map('x-delay', 'l'), null) as header_types",
    ).write.parquet(path)


def measure(spark: SparkSession, figures: Figures, folder: Path, rows: int, reps: int, unique: bool) -> None:
    from bench.spark import noop
    from warrenmq.spark.routing import route, route_files

    if rows >= MANY:
        reps = 1
    path = str(folder / f"messages-{rows}{'-unique' if unique else ''}")
    mark = UNIQUE if unique else ""
    messages(spark, path, rows, unique)
    df = spark.read.parquet(path)
    noop(df)
    figures.measure(SCAN + mark, "-", rows, reps, lambda: noop(spark.read.parquet(path)))
    scan = figures.lines[-1]["rate"]
    fresh = Fresh(10_000)
    jobs: list[tuple[str, Callable[[], None]]] = [
        (COUNTED_FILES, lambda: counted(route_files(spark, path, fresh(), columns=["outcome"]))),
        (COUNTED_TABLE, lambda: counted(route(df, fresh()))),
    ]
    if not unique:
        written = str(folder / "routed")
        jobs += [
            ("route of files, all columns fetched", lambda: noop(route_files(spark, path, fresh()))),
            (
                "route of files, written as Parquet",
                lambda: route_files(spark, path, fresh()).write.mode("overwrite").parquet(written),
            ),
        ]
    for what, work in jobs:
        if rows < MANY:
            work()
        figures.measure(what + mark, "-", rows, reps, work)
        line = figures.lines[-1]
        line["of_scan"], line["memory"] = line["rate"] / scan, peak_memory()
        print(
            f"{'':<34} {line['of_scan']:.2f} of the scan's rate; a Python process had up to {line['memory']} MB",
            flush=True,
        )
        if what == COUNTED_FILES:
            figures.goal(OF_SCAN, 0.30 if unique else 0.39, line["of_scan"], most=False)
    shutil.rmtree(path)


def counted(routed: DataFrame) -> None:
    routed.groupBy("outcome").count().collect()


def peak_memory() -> int:
    """Megabytes, of the largest Python worker that this benchmark's Spark has running."""
    peak = 0
    for folder in own_processes():
        with contextlib.suppress(OSError):
            if "pyspark.daemon" in (folder / "cmdline").read_text():
                told = dict(line.split(":", 1) for line in (folder / "status").read_text().splitlines())
                peak = max(peak, int(told["VmHWM"].split()[0]) // 1024)
    return peak


def own_processes() -> list[Path]:
    """Of all that runs, what this benchmark has started, at first or second hand; as folders of /proc."""
    parents: dict[int, int] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
    return [Path("/proc", str(pid)) for pid in parents if _descends(pid, parents)]


def _descends(pid: int, parents: dict[int, int]) -> bool:
    while pid in parents and pid != os.getpid():
        pid = parents[pid]
    return pid == os.getpid()


class Fresh:
    """Definitions that no worker has seen before, so that nothing is remembered from the run before."""

    def __init__(self, bindings: int) -> None:
        self.base = definitions(bindings)
        self.runs = 0

    def __call__(self) -> dict[str, Any]:
        self.runs += 1
        return {**self.base, "queues": [*self.base["queues"], {"name": f"run {self.runs}", "vhost": "/"}]}
