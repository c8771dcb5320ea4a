"""Recorded traffic, as ``whatif`` looks at it.

Duty: the messages that clients published to a journal's broker, whatever became of them, with the times at which they
left their queues by a consumer's or an operator's doing, their dead letters' too; or any table of messages. Not here:
where they would go now.

    message        its name: LOG/RECORD, or the number of a row
    number         the order of messages that have one time
    published_at   when
    stays          each time that it was in a queue, itself or as a dead letter, in order: since when (µs); when it
                   left it, unless the queue itself gave it up; when it then was rejected for good, and why
    …              what ``route`` looks at
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from warrenmq.journal.columns import WRITTEN
from warrenmq.spark.auditing.kinds import CODE_BITS, name_of
from warrenmq.spark.auditing.lives import places_of
from warrenmq.spark.auditing.reading import counts, events
from warrenmq.spark.recorded import by_message, parts_of, told, unpacked
from warrenmq.spark.routing.outcome import check_columns, times
from warrenmq.spark.schema import PROPERTIES

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

STAYS = "array<struct<record:bigint,queue:string,entered:bigint,left:bigint,given_back:bigint,why:string>>"
OWN = (
    *("message string", "number bigint", "published_at timestamp", f"stays {STAYS}"),
    *("vhost string", "user string", "exchange string", "routing_key string", "body_size bigint"),
)
DDL = ", ".join((*OWN, *(f"`{name}` {kind}" for name, kind in PROPERTIES)))


def journal(spark: SparkSession, paths: Sequence[str]) -> tuple[DataFrame, int]:
    """The messages, and how many events are read for them."""
    from pyspark.sql import functions as F

    parts = parts_of(spark, paths)
    rows = told(spark, parts, bodies=False)
    written = F.col("kind") == WRITTEN
    columns = "record time vhost user exchange routing_keys header size".split()
    letters = F.collect_set(F.when(written, F.col("record"))).alias("letters")
    first = F.struct(written, "record", "at")
    one = by_message(rows).agg(
        *(F.min_by(name, first).alias(name) for name in columns), F.min(written).alias("only_written"), letters
    )
    one = one.where(~F.col("only_written"))
    stays = _stays(events(spark, parts))
    again = (
        one.where(F.size("letters") > 0)
        .select("log", "record", F.explode("letters").alias("letter"))
        .join(stays.select("log", F.col("record").alias("letter"), F.col("stays").alias("some")), ["log", "letter"])
        .groupBy("log", "record")
        .agg(F.flatten(F.collect_list("some")).alias("again"))
    )
    joined = one.join(stays, ["log", "record"], "left").join(again, ["log", "record"], "left")
    none = F.array().cast(STAYS)
    joined = joined.select(
        F.concat_ws("/", "log", F.col("record").cast("string")).alias("message"),
        F.col("record").alias("number"),
        F.col("time").alias("published_at"),
        F.array_sort(F.concat(F.coalesce("stays", none), F.coalesce("again", none)), _earlier).alias("stays"),
        *("vhost", "user", "exchange"),
        F.col("size").alias("body_size"),
        *("routing_keys", "header"),
    )
    return unpacked(joined, DDL), sum(counts(spark, [file for file, _, _ in parts]).values())


def _stays(happened: DataFrame) -> DataFrame:
    """Of each record every queue that it was in."""
    from pyspark.sql import functions as F

    places = places_of(happened)
    cause = name_of(F.col("last_end").bitwiseAND((1 << CODE_BITS) - 1))
    ended = F.shiftright("last_end", CODE_BITS)
    given_up = cause.startswith("expired_") | cause.startswith("limit_")
    rejected = cause.startswith("rejected_")
    given_back = rejected | cause.startswith("delivery_limit_")
    stay = F.struct(
        "record",
        "queue",
        F.col("first_entered").alias("entered"),
        F.coalesce("first_delivered", F.when(~given_up, ended)).alias("left"),
        F.when(given_back, ended).alias("given_back"),
        F.when(given_back, F.when(rejected, "rejected").otherwise("delivery_limit")).alias("why"),
    )
    was_there = F.coalesce("first_entered", "first_delivered", "last_end").isNotNull()  # else it was not taken
    return places.where(was_there).groupBy("log", "record").agg(F.collect_list(stay).alias("stays"))


def _earlier(one: Column, other: Column) -> Column:
    from pyspark.sql import functions as F

    since = [F.struct(F.coalesce(each["entered"], F.lit(0)), each["record"]) for each in (one, other)]
    return F.when(since[0] < since[1], -1).when(since[0] > since[1], 1).otherwise(0)


def table(df: DataFrame) -> DataFrame:
    """Any table that ``route`` takes; ``message``, ``number`` and ``stays`` may be there, or instead of that
    ``taken``, a map from queues to when it left them (µs)."""
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
        "stays": _taken() if "taken" in have else F.lit(None).cast(STAYS),
        "vhost": F.lit("/"),
        "body_size": size.cast("bigint"),
        "expiration": F.lit(None).cast("string"),
        "priority": F.lit(None).cast("int"),
    }
    for name, column in more.items():
        if name not in have:
            df = df.withColumn(name, column)
    return df.drop("body")


def _taken() -> Column:
    from pyspark.sql import functions as F

    def stay(entry: Column) -> Column:
        nothing = F.lit(None).cast("bigint")
        named = (nothing.alias("entered"), entry["value"].alias("left"), nothing.alias("given_back"))
        queue, why = entry["key"].alias("queue"), F.lit(None).cast("string").alias("why")
        return F.struct(nothing.alias("record"), queue, *named, why)

    return F.transform(F.map_entries("taken"), stay)
