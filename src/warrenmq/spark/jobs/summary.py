"""summary: what a table of ingested, published or routed messages says, in counts.

Duty: one pass over the table into a compact cube, then sections out of it: by exchange, routing key, queue and outcome
(refused with code, dead-lettered with reason), redeliveries, rates per window. As a DataFrame, as text, as a plot. Not
here: reading the table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from warrenmq.spark.moments import collected
from warrenmq.spark.requirements import RequirementMissing

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

TIMES = ("published_at", "ingested_at", "timestamp")
MOST_KEYS = 1000  # routing keys listed; the rest is summed up as one
SCHEMA = "section string, name string, window_start timestamp, messages bigint, bytes bigint, share double"


@dataclass(frozen=True)
class Line:
    """A row of the summary."""

    section: str
    name: str
    window_start: Any
    messages: int
    bytes: int | None
    share: float


def summary(df: DataFrame, *, window: str = "1 minute", time_column: str | None = None) -> DataFrame:
    """Counts by section: total, exchange, routing_key, queue, outcome, dead_letter, redelivered, rate."""
    from pyspark.sql import functions as F

    have = set(df.columns)
    moment = time_column or next((name for name in TIMES if name in have), None)
    if moment is not None and moment not in have:
        raise ValueError(f"the table has no column '{moment}'; it has: {', '.join(df.columns)}")
    columns: dict[str, Column] = {
        "exchange": F.col("exchange") if "exchange" in have else F.lit(None).cast("string"),
        "routing_key": F.col("routing_key") if "routing_key" in have else F.lit(None).cast("string"),
        "queues": _queues(have),
        "outcome": _outcome(have),
        "reason": _reason(have),
        "redelivered": F.col("redelivered") if "redelivered" in have else F.lit(None).cast("boolean"),
        "window_start": F.window(F.col(moment), window)["start"] if moment else F.lit(None).cast("timestamp"),
    }
    cube = (
        df.select(*[column.alias(name) for name, column in columns.items()], _size(have).alias("size"))
        .groupBy(*columns)
        .agg(F.count("*").alias("messages"), F.sum("size").alias("bytes"))
        .cache()
    )
    try:
        lines = _sections(cube)
    finally:
        cube.unpersist()
    rows = [(one.section, one.name, one.window_start, one.messages, one.bytes, one.share) for one in lines]
    return df.sparkSession.createDataFrame(rows, SCHEMA)


def _sections(cube: DataFrame) -> list[Line]:
    from pyspark.sql import functions as F

    totals = cube.agg(F.sum("messages"), F.sum("bytes")).collect()[0]
    total = int(totals[0] or 0)
    lines = [Line("total", "messages", None, total, totals[1], 1.0)]

    def add(section: str, name: Column, frame: DataFrame = cube, most: int | None = None) -> None:
        found = (
            frame.where(name.isNotNull())
            .groupBy(name.cast("string").alias("name"))
            .agg(F.sum("messages").alias("messages"), F.sum("bytes").alias("bytes"))
            .orderBy(F.desc("messages"), "name")
        )
        rows = found.limit(most).collect() if most else found.collect()
        for row in rows:
            share = row["messages"] / total if total else 0.0
            lines.append(Line(section, row["name"], None, int(row["messages"]), row["bytes"], share))

    add("exchange", F.when(F.col("exchange") == "", "(default)").otherwise(F.col("exchange")))
    add("routing_key", F.col("routing_key"), most=MOST_KEYS)
    add("queue", F.col("queue"), cube.withColumn("queue", F.explode("queues")))
    add("outcome", F.col("outcome"))
    add("dead_letter", F.col("reason"))
    add("redelivered", F.when(F.col("redelivered"), "redelivered").when(~F.col("redelivered"), "first delivery"))
    per_window = (
        cube.where(F.col("window_start").isNotNull())
        .groupBy("window_start", F.coalesce("outcome", F.lit("messages")).alias("name"))
        .agg(F.sum("messages").alias("messages"), F.sum("bytes").alias("bytes"))
        .orderBy("window_start", "name")
    )
    for row in collected(per_window):
        share = row["messages"] / total if total else 0.0
        lines.append(Line("rate", row["name"], row["window_start"], int(row["messages"]), row["bytes"], share))
    return lines


def _queues(have: set[str]) -> Column:
    from pyspark.sql import functions as F

    if "queues" in have:
        return F.col("queues")
    return F.array("queue") if "queue" in have else F.lit(None).cast("array<string>")


def _outcome(have: set[str]) -> Column:
    """The outcome with the code, as people say it: refused 404."""
    from pyspark.sql import functions as F

    if "outcome" not in have:
        return F.lit(None).cast("string")
    if "reply_code" not in have:
        return F.col("outcome")
    return F.concat_ws(" ", "outcome", F.when(F.col("outcome") != "scheduled", F.col("reply_code").cast("string")))


def _reason(have: set[str]) -> Column:
    """Why a message was dead-lettered last, from which queue."""
    from pyspark.sql import functions as F

    if "headers" not in have:
        return F.lit(None).cast("string")
    reason = F.coalesce(F.col("headers")["x-last-death-reason"], F.col("headers")["x-first-death-reason"])
    queue = F.coalesce(F.col("headers")["x-last-death-queue"], F.col("headers")["x-first-death-queue"])
    return F.when(reason.isNotNull(), F.concat_ws(" from ", reason, queue))


def _size(have: set[str]) -> Column:
    from pyspark.sql import functions as F

    if "body_size" in have:
        return F.col("body_size").cast("bigint")
    return F.octet_length("body").cast("bigint") if "body" in have else F.lit(None).cast("bigint")


def lines_of(result: DataFrame) -> list[Line]:
    rows = collected(result)
    return [Line(r["section"], r["name"], r["window_start"], r["messages"], r["bytes"], r["share"]) for r in rows]


def text(lines: Sequence[Line], most: int = 10) -> str:
    """The sections as one table for a terminal; long ones are cut and say so."""
    out: list[str] = []
    width = max([len(line.name) for line in lines] + [12])
    width = min(width, 60)
    for section in dict.fromkeys(line.section for line in lines):
        if section == "rate":
            out.append(_rates([line for line in lines if line.section == section]))
            continue
        inside = [line for line in lines if line.section == section]
        out.append(section.replace("_", " "))
        for line in inside[:most]:
            size = f"{line.bytes:>16,} bytes" if line.bytes is not None else ""
            out.append(f"  {line.name[:width]:<{width}} {line.messages:>14,} {line.share:>7.1%}{size}")
        if len(inside) > most:
            out.append(f"  … and {len(inside) - most:,} more")
    return "\n".join(part for part in out if part)


def _rates(lines: Sequence[Line]) -> str:
    per_window: dict[Any, int] = {}
    for line in lines:
        per_window[line.window_start] = per_window.get(line.window_start, 0) + line.messages
    if not per_window:
        return ""
    highest = max(per_window.values())
    shown = list(per_window.items())[-20:]
    out = ["messages per window (the last 20, UTC)"]
    for start, count in shown:
        out.append(f"  {start:%Y-%m-%d %H:%M:%S} {count:>14,} {'█' * max(1, round(30 * count / highest))}")
    return "\n".join(out)


def plot(lines: Sequence[Line], path: str) -> None:
    """Messages per window, stacked by outcome, as a PNG."""
    try:
        import matplotlib
    except ImportError:
        raise RequirementMissing("the plot needs matplotlib and it is not installed: pip install matplotlib") from None

    matplotlib.use("Agg")
    from matplotlib import pyplot

    rates = [line for line in lines if line.section == "rate"]
    if not rates:
        raise ValueError("the table has no time column, so there are no rates to plot")
    starts = sorted({line.window_start for line in rates})
    names = sorted({line.name for line in rates})
    counts = {(line.window_start, line.name): line.messages for line in rates}
    figure, axes = pyplot.subplots(figsize=(10, 4.5), layout="constrained")
    below = [0] * len(starts)
    places = list(range(len(starts)))
    for name in names:
        heights = [counts.get((start, name), 0) for start in starts]
        axes.bar(places, heights, bottom=below, label=name, width=0.9)
        below = [low + height for low, height in zip(below, heights, strict=True)]
    step = max(1, len(starts) // 8)
    axes.set_xticks(places[::step], [f"{start:%m-%d\n%H:%M:%S}" for start in starts[::step]])
    axes.set_ylabel("messages per window")
    axes.set_title("Messages by outcome")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, ncols=min(4, len(names)))
    figure.savefig(path, dpi=120)
    pyplot.close(figure)
