"""What would be sent, and what became of it, in words.

Duty: a few lines for a terminal. Not here: the rows (``slices``), the sending (``job``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from warrenmq.spark.moments import collected
from warrenmq.spark.replaying.job import Replayed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MOST = 20  # exchanges and keys that are listed


def text_of_plan(rows: DataFrame) -> str:
    """By exchange and key, the most frequent first."""
    from pyspark.sql import functions as F

    by = rows.groupBy("exchange", "routing_key").agg(
        F.count("*").alias("messages"),
        F.count("why").alias("unsent"),
        F.sum(F.octet_length("body")).alias("bytes"),
        F.min("at").alias("first"),
        F.max("at").alias("last"),
    )
    by = by.persist()
    try:
        sums = by.agg(
            *(F.sum(name).alias(name) for name in ("messages", "unsent", "bytes")), F.count("*").alias("kinds")
        )
        (whole,) = collected(sums.join(by.agg(F.min("first").alias("first"), F.max("last").alias("last"))))
        listed = by.orderBy(F.desc("messages"), "exchange", "routing_key").limit(MOST).collect()
        why = rows.where("why is not null").select("why").limit(1).collect()
    finally:
        by.unpersist()
    if not whole["messages"]:
        return "no message is chosen"
    times = (
        f", from {whole['first']:%Y-%m-%d %H:%M:%S} to {whole['last']:%Y-%m-%d %H:%M:%S} UTC" if whole["first"] else ""
    )
    lines = [f"{whole['messages'] - whole['unsent']:,} messages, {whole['bytes'] or 0:,} bytes{times}"]
    for row in listed:
        exchange = f"exchange '{row['exchange']}'" if row["exchange"] else "the default exchange"
        lines.append(f"  {row['messages']:>12,} to {exchange} with key '{row['routing_key']}'")
    if whole["kinds"] > MOST:
        lines.append(f"  … and {whole['kinds'] - MOST:,} more")
    if why:
        lines.append(f"{whole['unsent']:,} cannot be sent, such as: {why[0]['why']}")
    return "\n".join(lines)


def text(done: Replayed) -> str:
    lines = [f"replay {done.key}: {done.rows:,} messages"]
    lines += [f"  {count:>12,} {outcome}" for outcome, count in done.outcomes.most_common()]
    if not done.complete and done.table is not None:
        for row in done.table.where("outcome <> 'confirmed'").orderBy("origin").limit(MOST).collect():
            code = f" {row['reply_code']}" if row["reply_code"] else ""
            lines.append(f"  {row['origin']}: {row['outcome']}{code} {row['reply_text'] or ''}".rstrip())
    return "\n".join(lines)
