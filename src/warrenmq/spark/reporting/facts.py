"""What a page shows, from the tables of an audit: sums, series and the worst ten, a few hundred values.

Duty: ask the tables, most of which are small; what is long is summed up or cut by Spark. Not here: how it looks
(``page``), the tables (``auditing``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from warrenmq.spark import moments
from warrenmq.spark.auditing.holes import FILE_MISSING
from warrenmq.spark.auditing.listing import JournalError
from warrenmq.spark.auditing.tables import MISSING
from warrenmq.spark.storage import literal

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

READ = (
    *("places", "records", "unaccounted", "holes", "publishes", "unroutable", "redelivered", "dead_lettered"),
    *("doubled", "latency", "ledger", "backlog", "rates"),
)
MOST = 10
MOST_WINDOWS = 240  # of a series: more are drawn together
MOST_BANDS = 6  # queues whose latencies are drawn
TAKEN = ("confirmed", "unconfirmed", "published")

Row = dict[str, Any]


@dataclass
class Band:
    """One step of one queue: a window's start and its p50, p90, p99 in seconds."""

    title: str
    messages: int
    points: list[tuple[datetime, float, float, float]]


@dataclass
class Facts:
    """Everything that is on the page."""

    rates: list[tuple[datetime, dict[str, int]]]  # without a hole: where nothing was, nothing is counted
    bands: list[Band]
    publishes: dict[str, int]
    outcomes: dict[str, int]
    queues: list[tuple[str, dict[str, int]]]
    holes: list[Row]
    unaccounted: list[Row]  # what, because, messages
    worst: dict[str, list[Row]] = field(default_factory=dict)
    every: float = 60.0  # seconds from one moment of a series to the next

    @property
    def missing(self) -> int:
        return sum(row["messages"] for row in self.unaccounted if row["because"] in MISSING)

    @property
    def missing_files(self) -> list[str]:
        return [row["says"] for row in self.holes if row["because"] == FILE_MISSING]

    @property
    def complete(self) -> bool:
        return not self.missing and not self.missing_files


def tables_in(spark: SparkSession, folder: str) -> dict[str, DataFrame]:
    """The tables that an audit wrote there."""
    from pyspark.errors import AnalysisException

    found = {}
    for name in READ:
        try:
            table = spark.read.parquet(literal(f"{folder.rstrip('/')}/{name}"))
            found[name] = table.select(*table.columns)  # asked here, as Spark Connect does not look before
        except AnalysisException as error:
            if "PATH_NOT_FOUND" not in str(error):
                raise
            raise JournalError(
                f"{folder} has no table {name}: make it with warren pipeline audit JOURNAL --out {folder}"
            ) from None
    return found


def gather(tables: Mapping[str, DataFrame]) -> Facts:
    """Ask for all of it."""
    from pyspark.sql import functions as F

    unaccounted = tables["unaccounted"].groupBy("what", "because").agg(F.count("*").alias("messages"))
    ledger = tables["ledger"].groupBy("vhost", "queue", "outcome").agg(F.sum("messages").alias("messages")).collect()
    queues: dict[str, Counter[str]] = {}
    outcomes: Counter[str] = Counter()
    for row in ledger:
        queues.setdefault(_queue(row), Counter())[row["outcome"]] += row["messages"]
        outcomes[row["outcome"]] += row["messages"]
    publishes = tables["publishes"].groupBy("publisher").agg(F.sum("messages").alias("messages")).collect()
    largest = sorted(queues.items(), key=lambda item: (-item[1].total(), item[0]))[: 2 * MOST]
    windows = Windows(tables["rates"].select("window_start").unionByName(tables["latency"].select("window_start")))
    return Facts(
        rates=_rates(tables["rates"], windows),
        bands=_bands(tables["latency"], windows),
        publishes=dict(Counter({row["publisher"]: row["messages"] for row in publishes}).most_common()),
        outcomes=dict(outcomes.most_common()),
        queues=[(name, dict(counts.most_common())) for name, counts in largest],
        holes=moments.collected(tables["holes"].orderBy("log", "first")),
        unaccounted=moments.collected(unaccounted.orderBy("because", "what")),
        worst=_worst(tables),
        every=windows.size / 1e6,
    )


def _worst(tables: Mapping[str, DataFrame]) -> dict[str, list[Row]]:
    """The ten of each kind that a person should look at first."""
    from pyspark.sql import functions as F

    names = tables["records"].select("log", "record", "id", "message_id")

    def named(rows: DataFrame, by: Column) -> list[Row]:
        few = rows.orderBy(by, "record").limit(MOST)
        return moments.collected(few.join(names, ["log", "record"], "left").orderBy(by, "record"))

    took = (F.unix_micros("ended_at") - F.unix_micros("first_entered")) / 1e6
    slow = tables["places"].where("ended_at is not null and first_entered is not null").withColumn("seconds", took)
    missing = tables["unaccounted"].where(F.col("because").isin(*MISSING))
    return {
        "missing": moments.collected(missing.orderBy("last_event", "record").limit(MOST)),
        "slowest": named(slow.select("log", "record", "vhost", "queue", "outcome", "seconds"), F.desc("seconds")),
        "redelivered": named(tables["redelivered"], F.desc("delivered")),
        "doubled": named(tables["doubled"], F.desc("times")),
        "unroutable": moments.collected(
            tables["unroutable"]
            .withColumns({"id": F.col("example"), "message_id": F.lit(None).cast("string")})
            .orderBy(F.desc("messages"), "exchange", "routing_key")
            .limit(MOST)
        ),
        "dead_lettered": named(tables["dead_lettered"], F.desc("messages")),
        "backlog": named(tables["backlog"], F.desc("oldest_seconds")),
    }


class Windows:
    """The windows of a series: from the first on, so many together that no series has more than ``MOST_WINDOWS``."""

    def __init__(self, starts: DataFrame) -> None:
        from pyspark.sql import Window
        from pyspark.sql import functions as F

        at = starts.select(F.unix_micros("window_start").alias("at")).distinct()
        apart = at.withColumn("apart", F.col("at") - F.lag("at").over(Window.orderBy("at")))
        row = apart.agg(F.min("at"), F.max("at"), F.min("apart")).collect()[0]
        self.first, self.last, one = row[0] or 0, row[1] or 0, row[2] or 60_000_000
        count = (self.last - self.first) // one + 1
        self.size: int = one * -(-count // MOST_WINDOWS)  # µs

    def of(self, start: Column) -> Column:
        """Of a window, the first of those that are drawn with it (µs)."""
        from pyspark.sql import functions as F

        behind = F.unix_micros(start) - F.lit(self.first)
        found: Column = F.lit(self.first) + F.floor(behind / F.lit(self.size)) * F.lit(self.size)
        return found

    def all(self) -> list[datetime]:
        return [moments.at(at) for at in range(self.first, self.last + 1, self.size)]


def _rates(rates: DataFrame, windows: Windows) -> list[tuple[datetime, dict[str, int]]]:
    """By window, also those in which nothing was."""
    from pyspark.sql import functions as F

    by = rates.groupBy(windows.of(F.col("window_start")).alias("at"), "what").agg(F.sum("messages").alias("messages"))
    rows = by.collect()
    if not rows:
        return []
    found: dict[datetime, Counter[str]] = {at: Counter() for at in windows.all()}
    for row in rows:
        what = "published" if row["what"] in TAKEN else row["what"]
        found[moments.at(row["at"])][what] += row["messages"]
    return [(at, dict(counts)) for at, counts in found.items()]


def _bands(latency: DataFrame, windows: Windows) -> list[Band]:
    """Of the queues with the most messages, and of the confirms. Of windows that are drawn together, and of several
    brokers, the slowest is shown."""
    from pyspark.sql import functions as F

    by = ("vhost", "queue", "step")
    most = latency.groupBy(*by).agg(F.sum("messages").alias("all")).orderBy(F.desc("all"), *by).limit(MOST_BANDS)
    found: list[Band] = []
    for kind in most.collect():
        same = F.col("queue").eqNullSafe(kind["queue"]) & F.col("vhost").eqNullSafe(kind["vhost"])
        rows = latency.where(same & (F.col("step") == kind["step"]))
        drawn = rows.groupBy(windows.of(F.col("window_start")).alias("at"))
        slowest = drawn.agg(*(F.max(name).alias(name) for name in ("p50", "p90", "p99"))).orderBy("at").collect()
        points = [(moments.at(row["at"]), row["p50"], row["p90"], row["p99"]) for row in slowest]
        where = _queue(kind) if kind["queue"] is not None else f"vhost {kind['vhost']}"
        found.append(Band(f"{kind['step']}, {where}", kind["all"], points))
    return found


def _queue(row: Any) -> str:
    return str(row["queue"]) if row["vhost"] in (None, "/") else f"{row['queue']} ({row['vhost']})"
