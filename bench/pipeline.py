"""The audit and what-if over generated journals, each as a share of a scan of the same columns in the same run.

Duty: journals of 1, 10 and 100 million events (``planted``), on one core and on two; the audit's verdict on raw files
and on a table that is bucketed by message, with what bucketing cost; all its tables; what-if with other bindings. A
share is the scan's seconds by the job's, medians of warm runs. The parts are ``usual`` (1 and 10 million), ``many``
(100 million) and ``bounds``, what a day comes up against beside its cores. Not here: Spark beside brokers (``spark``),
measuring the bounds (``bounds``), the arithmetic (``day``).
"""

from __future__ import annotations

import contextlib
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyspark

from bench import bounds, conversion
from bench.planted import LOG, plant
from warrenmq.spark.auditing import audit
from warrenmq.spark.auditing.graph import HOLES, SUMS, in_words
from warrenmq.spark.auditing.holes import table_of
from warrenmq.spark.auditing.reading import SCHEMA, events
from warrenmq.spark.recorded import parts_of
from warrenmq.spark.sessions import session
from warrenmq.spark.supposing import whatif

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SIZES = {"usual": (1_000_000, 10_000_000), "many": (100_000_000,)}  # events
BOUNDS = "bounds"
PARTS = (*SIZES, BOUNDS)
MEMORY = "4g"
ONE_CORE = 10_000_000  # the largest that one core is measured with, and that is bucketed
AT_ONCE = 10_000_000  # events of one broker's journal: more are several brokers'
EVENTS_OF_A_MESSAGE = 5
PER_SEGMENT = 50_000  # messages
KEYS = 1000
GOALS = {"audit, raw files": 0.35, "audit, bucketed": 0.60, "what if": 0.30}
RECORDED = "time event message id vhost queue user exchange routing_keys size header".split()  # what-if looks at


@dataclass
class Line:
    """One job at one size: the seconds of every run, and of the scan beside it."""

    what: str
    cores: int
    events: int
    seconds: list[float]
    scans: list[float] = field(default_factory=list)
    cost: float | None = None  # seconds of what was done before
    octets: float | None = None  # of files, an event
    shuffled: float | None = None  # octets sent between tasks, an event

    @property
    def share(self) -> float | None:
        return statistics.median(self.scans) / statistics.median(self.seconds) if self.scans else None

    def told(self, part: str) -> dict[str, Any]:
        return vars(self) | {"share": self.share, "goal": GOALS.get(self.what), "part": part}


def measure(scale: float, reps: int, parts: Sequence[str] = PARTS) -> dict[str, Any]:
    found: dict[str, Any] = {"lines": [], "parts": list(parts)}
    for part in parts:
        if part == BOUNDS:
            found[BOUNDS] = _bounds(scale)
        else:
            found["lines"] += [
                line.told(part) for line in _sizes([int(size * scale) for size in SIZES[part]], scale, reps)
            ]
    found["spark"] = pyspark.__version__
    return found


def _sizes(sizes: Sequence[int], scale: float, reps: int) -> list[Line]:
    lines: list[Line] = []
    with tempfile.TemporaryDirectory(prefix="warren-bench-") as made:
        folder = Path(made)
        for size in sizes:
            journals(folder / str(size), size)
        for cores in (2, 1):
            wanted = [size for size in sizes if cores > 1 or size <= ONE_CORE * scale]
            if not wanted:
                continue
            settings = {"spark.driver.memory": MEMORY, "spark.sql.warehouse.dir": str(folder / f"tables-{cores}")}
            spark = session(f"local[{cores}]", settings=settings)
            try:
                for size in wanted:
                    lines += _of_size(spark, folder / str(size), cores, size, reps, size <= ONE_CORE * scale)
            finally:
                spark.stop()
    return lines


def _bounds(scale: float) -> dict[str, float]:
    spark = session("local[2]", settings={"spark.driver.memory": MEMORY})
    try:
        a_file = bounds.seconds_a_file(spark, max(10, int(bounds.FILES * scale)))
    finally:
        spark.stop()
    octets = bounds.octets_a_message(max(100_000, int(bounds.MESSAGES * scale)))
    rate = conversion.measure(max(1000, int(200_000 * scale)))["rate"]
    print(f"{1000 * a_file:.2f} ms of the driver a file, {octets:,.0f} octets of a task a message", flush=True)
    return {"seconds_a_file": a_file, "octets_a_message": octets, "written_a_second": rate}


def journals(folder: Path, size: int) -> None:
    """So many events, of one broker or of several."""
    began = time.perf_counter()
    for number in range(0, size, AT_ONCE):
        some = min(AT_ONCE, size - number) // EVENTS_OF_A_MESSAGE
        plant(folder, some, PER_SEGMENT, 0, keys=KEYS, log=LOG + number // AT_ONCE)
    print(f"{size:,} events made in {time.perf_counter() - began:.1f} s", flush=True)


def _of_size(spark: SparkSession, journal: Path, cores: int, size: int, reps: int, bucketed: bool) -> Iterable[Line]:
    path = str(journal)
    raw = spark.read.schema(SCHEMA).parquet(path)

    def told(line: Line) -> Line:
        share = f"{line.share:.2f} of the scan" if line.share is not None else ""
        rate = line.events / statistics.median(line.seconds)
        before = f", {line.cost:.1f} s to bucket it" if line.cost is not None else ""
        runs = " ".join(f"{one:.2f}" for one in line.seconds)
        print(
            f"{line.what:<18} {cores} cores {size:>11,} events {rate:>10,.0f}/s {share} ({runs} s{before})", flush=True
        )
        return line

    def both(what: str, scan: Callable[[], None], work: Callable[[], None], cost: float | None = None) -> Line:
        seconds, scans = beside(scan, work, reps)
        return told(Line(what, cores, size, seconds, scans, cost))

    audited = both("audit, raw files", lambda: noop(raw), lambda: verdict(spark, path))
    sent = shuffled(spark)
    verdict(spark, path)
    audited.shuffled = (shuffled(spark) - sent) / size
    audited.octets = sum(file.stat().st_size for file in journal.glob("*.parquet")) / size
    yield audited
    if bucketed:
        yield from _bucketed(spark, path, both)
        yield both("audit, all tables", lambda: noop(raw), lambda: everything(spark, path))
    before, after = definitions(0), definitions(KEYS // 100)
    recorded = spark.read.parquet(path).select(*RECORDED)
    yield both("what if", lambda: noop(recorded), lambda: whatif(spark, path, before, after).close())


def _bucketed(spark: SparkSession, path: str, both: Callable[..., Line]) -> Iterable[Line]:
    """The events as a table of buckets by message: nothing is sent between tasks then, but to join."""
    rows = events(spark, parts_of(spark, [path]))
    began = time.perf_counter()
    rows.write.bucketBy(spark.sparkContext.defaultParallelism, "record").sortBy("record").saveAsTable("bucketed")
    cost = time.perf_counter() - began
    table = spark.read.table("bucketed")
    with setting(spark, "spark.sql.requireAllClusterKeysForCoPartition", "false"):
        yield both("audit, bucketed", lambda: noop(table), lambda: _verdict(spark, table), cost)
    spark.sql("drop table bucketed")


def beside(scan: Callable[[], None], work: Callable[[], None], reps: int) -> tuple[list[float], list[float]]:
    """Seconds of the work and of the scan, in turn, warm."""
    seconds: list[float] = []
    scans: list[float] = []
    for number in range(reps + 1):
        for found, one in ((scans, scan), (seconds, work)):
            began = time.perf_counter()
            one()
            if number:
                found.append(time.perf_counter() - began)
    return seconds, scans


def shuffled(spark: SparkSession) -> int:
    """Octets that tasks have sent to others so far."""
    store: Any = spark.sparkContext._jsc.sc().statusStore()
    some = store.executorList(True)
    return sum(int(some.apply(number).totalShuffleWrite()) for number in range(some.size()))


def noop(df: DataFrame) -> None:
    df.write.format("noop").mode("overwrite").save()


def verdict(spark: SparkSession, path: str) -> None:
    """Whether anything is missing, and the sums."""
    found = audit(spark, path, only=())
    if not found.complete:
        raise RuntimeError(f"{found.unaccounted}, {found.missing_files}")
    for name in ("publishes", "ledger"):
        found.tables[name].collect()
    found.close()


def _verdict(spark: SparkSession, table: DataFrame) -> None:
    """The same of a table of events."""
    words = in_words()
    frames = {name: sums.make(table) for name, sums in SUMS.items()} | {HOLES: table_of(spark, [])}
    kept = []
    for name in ("places", "records", "unaccounted", "publishes", "ledger"):
        frames[name] = words[name].make(*(frames[of] for of in words[name].of))
        if name in ("places", "records"):
            frames[name] = frames[name].persist()
            kept.append(frames[name])
    if not frames["unaccounted"].isEmpty():
        raise RuntimeError("something is missing")
    for name in ("publishes", "ledger"):
        frames[name].collect()
    for one in kept:
        one.unpersist()


def everything(spark: SparkSession, path: str) -> None:
    out = tempfile.mkdtemp(prefix="warren-bench-")
    audit(spark, path, out).close()
    shutil.rmtree(out)


@contextlib.contextmanager
def setting(spark: SparkSession, name: str, value: str) -> Iterator[None]:
    was = spark.conf.get(name)
    spark.conf.set(name, value)
    yield
    spark.conf.set(name, str(was))


def definitions(moved: int) -> dict[str, Any]:
    """Ten queues, a hundred keys each; ``moved``: so many of them go to another queue."""
    kept = {"vhost": "/", "durable": True, "auto_delete": False, "arguments": {}}
    queues = [*(f"q{n}" for n in range(10)), "work", "dead"]
    bindings = [
        {
            "source": "orders",
            "vhost": "/",
            "destination": queues[(key + (key < moved)) % 10],
            "destination_type": "queue",
            "routing_key": f"order.{key}",
            "arguments": {},
        }
        for key in range(KEYS)
    ]
    return {
        "vhosts": [{"name": "/"}],
        "exchanges": [{"name": "orders", "type": "topic", "internal": False, **kept}],
        "queues": [{"name": name, **kept} for name in queues],
        "bindings": bindings,
    }
