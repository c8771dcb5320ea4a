"""Recorded traffic, as ``whatif`` looks at it.

Duty: the messages that clients published to a journal's broker, whatever became of them, with the times at which they
left their queues by a consumer's or an operator's doing; or any table of messages. Not here: where they would go now.

    message        its name: LOG/RECORD, or the number of a row
    number         the order of messages that have one time
    published_at   when
    taken          by queue, when it left it (µs), unless the queue itself gave it up
    …              what ``route`` looks at
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from warrenmq.journal.columns import WRITTEN
from warrenmq.spark.auditing.kinds import CODE_BITS, name_of
from warrenmq.spark.auditing.lives import places_of
from warrenmq.spark.auditing.reading import events
from warrenmq.spark.recorded import one_each, parts_of, told, unpacked
from warrenmq.spark.routing.outcome import check_columns, times
from warrenmq.spark.schema import PROPERTIES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

OWN = (
    *("message string", "number bigint", "published_at timestamp", "taken map<string,bigint>"),
    *("vhost string", "user string", "exchange string", "routing_key string", "body_size bigint"),
)
DDL = ", ".join((*OWN, *(f"`{name}` {kind}" for name, kind in PROPERTIES)))


def journal(spark: SparkSession, paths: Sequence[str]) -> DataFrame:
    from pyspark.sql import functions as F

    parts = parts_of(spark, paths)
    rows = told(spark, parts, bodies=False).where(F.col("kind") != WRITTEN)
    one = one_each(rows, "record time vhost user exchange routing_keys header size".split())
    places = places_of(events(spark, parts))
    cause = name_of(F.col("last_end").bitwiseAND((1 << CODE_BITS) - 1))
    given_up = cause.startswith("expired_") | cause.startswith("limit_")
    left = F.coalesce("first_delivered", F.when(~given_up, F.shiftright("last_end", CODE_BITS)))
    taken = (
        places.select("log", "record", "queue", left.alias("left"))
        .where("left is not null")
        .groupBy("log", "record")
        .agg(F.map_from_entries(F.collect_list(F.struct("queue", "left"))).alias("taken"))
    )
    joined = one.join(taken, ["log", "record"], "left").select(
        F.concat_ws("/", "log", F.col("record").cast("string")).alias("message"),
        F.col("record").alias("number"),
        F.col("time").alias("published_at"),
        "taken",
        *("vhost", "user", "exchange"),
        F.col("size").alias("body_size"),
        *("routing_keys", "header"),
    )
    return unpacked(joined, DDL)


def table(df: DataFrame) -> DataFrame:
    """Any table that ``route`` takes; ``message``, ``number`` and ``taken`` may be there."""
    from pyspark.sql import functions as F

    check_columns(df.columns)
    have = set(df.columns)
    number = F.monotonically_increasing_id()
    since = F.timestamp_micros(F.lit(0))
    for name in times(df.columns):
        since = F.coalesce(F.col(name), since)
    size = F.octet_length("body") if "body" in have else F.lit(0)
    more = {
        "number": number,
        "message": F.col("number").cast("string"),
        "published_at": since,
        "taken": F.lit(None).cast("map<string,bigint>"),
        "vhost": F.lit("/"),
        "body_size": size.cast("bigint"),
        "expiration": F.lit(None).cast("string"),
    }
    for name, column in more.items():
        if name not in have:
            df = df.withColumn(name, column)
    return df.drop("body")
