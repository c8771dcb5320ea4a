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

from warrenmq.spark.auditing.holes import FILE_MISSING
from warrenmq.spark.auditing.listing import JournalError
from warrenmq.spark.auditing.tables import MISSING

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

READ = (
    *("places", "records", "unaccounted", "holes", "publishes", "unroutable", "redelivered", "dead_lettered"),
    *("latency", "ledger", "backlog", "rates"),
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

    rates: list[tuple[datetime, dict[str, int]]]
    bands: list[Band]
    publishes: dict[str, int]
    outcomes: dict[str, int]
    queues: list[tuple[str, dict[str, int]]]
    holes: list[Row]
    unaccounted: list[Row]  # what, because, messages
    worst: dict[str, list[Row]] = field(default_factory=dict)

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
            table = spark.read.parquet(f"{folder.rstrip('/')}/{name}")
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
    return Facts(
        rates=_rates(tables["rates"]),
        bands=_bands(tables["latency"]),
        publishes=dict(Counter({row["publisher"]: row["messages"] for row in publishes}).most_common()),
        outcomes=dict(outcomes.most_common()),
        queues=[(name, dict(counts.most_common())) for name, counts in largest],
        holes=_rows(tables["holes"].orderBy("log", "first")),
        unaccounted=_rows(unaccounted.orderBy("because", "what")),
        worst=_worst(tables),
    )


def _worst(tables: Mapping[str, DataFrame]) -> dict[str, list[Row]]:
    """The ten of each kind that a person should look at first."""
    from pyspark.sql import functions as F

    names = tables["records"].select("log", "record", "id", "message_id")

    def named(rows: DataFrame, by: Column) -> list[Row]:
        few = rows.orderBy(by, "record").limit(MOST)
        return _rows(few.join(names, ["log", "record"], "left").orderBy(by, "record"))

    took = (F.unix_micros("ended_at") - F.unix_micros("first_entered")) / 1e6
    slow = tables["places"].where("ended_at is not null and first_entered is not null").withColumn("seconds", took)
    missing = tables["unaccounted"].where(F.col("because").isin(*MISSING))
    return {
        "missing": _rows(missing.orderBy("last_event", "record").limit(MOST)),
        "slowest": named(slow.select("log", "record", "vhost", "queue", "outcome", "seconds"), F.desc("seconds")),
        "redelivered": named(tables["redelivered"], F.desc("delivered")),
        "unroutable": _rows(tables["unroutable"].orderBy(F.desc("messages"), "exchange", "routing_key").limit(MOST)),
        "dead_lettered": _rows(tables["dead_lettered"].orderBy(F.desc("messages"), "queue").limit(MOST)),
        "backlog": _rows(tables["backlog"].orderBy(F.desc("oldest_seconds"), "queue").limit(MOST)),
    }


def _rates(rates: DataFrame) -> list[tuple[datetime, dict[str, int]]]:
    """By window; very many windows are drawn together, a few at a time."""
    from pyspark.sql import functions as F

    found: dict[datetime, Counter[str]] = {}
    for row in rates.groupBy("window_start", "what").agg(F.sum("messages").alias("messages")).collect():
        what = "published" if row["what"] in TAKEN else row["what"]
        found.setdefault(row["window_start"], Counter())[what] += row["messages"]
    ordered = sorted(found.items())
    step = -(-len(ordered) // MOST_WINDOWS) if ordered else 1
    together = [ordered[n : n + step] for n in range(0, len(ordered), step)]
    return [(group[0][0], dict(sum((counts for _, counts in group), Counter()))) for group in together]


def _bands(latency: DataFrame) -> list[Band]:
    """Of the queues with the most messages, and of the confirms."""
    from pyspark.sql import functions as F

    by = ("vhost", "queue", "step")
    most = latency.groupBy(*by).agg(F.sum("messages").alias("all")).orderBy(F.desc("all"), *by).limit(MOST_BANDS)
    found: list[Band] = []
    for kind in most.collect():
        same = F.col("queue").eqNullSafe(kind["queue"]) & F.col("vhost").eqNullSafe(kind["vhost"])
        rows = latency.where(same & (F.col("step") == kind["step"])).orderBy("window_start")
        points = [
            (row["window_start"], row["p50"], row["p90"], row["p99"]) for row in rows.limit(MOST_WINDOWS).collect()
        ]
        where = _queue(kind) if kind["queue"] is not None else f"vhost {kind['vhost']}"
        found.append(Band(f"{kind['step']}, {where}", kind["all"], points))
    return found


def _queue(row: Any) -> str:
    return str(row["queue"]) if row["vhost"] in (None, "/") else f"{row['queue']} ({row['vhost']})"


def _rows(frame: DataFrame) -> list[Row]:
    return [row.asDict() for row in frame.collect()]
