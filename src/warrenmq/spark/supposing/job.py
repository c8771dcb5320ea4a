"""whatif: recorded traffic under two definitions, and which messages would fare otherwise.

Duty: every message on both ways, by ``route`` and so by the broker's own publish path; the queues whose limits, times
to live or messages differ, from their first message to their last; how both differ. Not here: each of these steps.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from warrenmq.spark.following import following
from warrenmq.spark.routing import load_definitions, route
from warrenmq.spark.routing.definitions import Plan
from warrenmq.spark.supposing import traffic as recorded
from warrenmq.spark.supposing.fates import FATES, LETTERS, OWN, queue_fates
from warrenmq.supposing.letters import linked_queues, with_ways
from warrenmq.supposing.outcomes import (
    ABSENT,
    BAD,
    LETTER_LOST,
    NACKED,
    REFUSED,
    ROUTED,
    SCHEDULED,
    THERE,
    UNROUTABLE,
)
from warrenmq.supposing.path import DEFAULT_MAX_SIZE
from warrenmq.supposing.queues import Place, Queues, Seen, queues_of, worth_it

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

Definitions = str | os.PathLike[str] | Mapping[str, Any]
BY = ("vhost", "exchange", "routing_key", "queue", "before", "after")


@dataclass
class Supposed:
    """The supposed fates of the traffic. ``queue`` of a change is null where it is what the publisher is told."""

    messages: int
    changes: DataFrame  # message, published_at, and BY
    summary: DataFrame  # BY, how many messages, and one of them
    changed: int  # messages
    worse: int  # messages that would be unroutable, refused, nacked, dropped or expired, and were not
    untold: list[Place] = field(default_factory=list)  # queues whose limits were not looked at
    cached: list[DataFrame] = field(default_factory=list)

    def close(self) -> None:
        """Free what Spark keeps for it."""
        for frame in self.cached:
            frame.unpersist()


def whatif(
    spark: SparkSession,
    traffic: str | Sequence[str] | DataFrame,
    before: Definitions,
    after: Definitions,
    out: str | None = None,
    *,
    max_message_size: int = DEFAULT_MAX_SIZE,
    interceptors: Sequence[str] = (),
    progress: Callable[[str], None] | None = None,
) -> Supposed:
    """What becomes of ``traffic`` (folders of journals, or a table as ``route`` takes it) under either definitions.

    ``out``: a folder for the tables ``changes`` and ``summary``; without, they are Spark's alone. Who publishes is
    judged only where both definitions have users.
    """
    tell = progress or (lambda _line: None)
    definitions = [load_definitions(each) for each in (before, after)]
    plans = [Plan.of(each, "/", None, max_message_size, interceptors) for each in definitions]
    documents = [(plan, queues_of(each)) for plan, each in zip(plans, definitions, strict=True)]
    if isinstance(traffic, (str, list, tuple)):
        rows, events = recorded.journal(spark, [traffic] if isinstance(traffic, str) else list(traffic))
    else:
        rows, events = recorded.table(traffic), 0  # type: ignore[arg-type]
    if "user" in rows.columns and not all(each.get("users") for each in definitions):
        rows = rows.drop("user")
    given: dict[str, Any] = {
        "mandatory": False,
        "max_message_size": max_message_size,
        "interceptors": interceptors,
    }
    both = _routed(rows, definitions[0], "was_", given)
    both = _routed(both, definitions[1], "", given).persist()
    with following(spark, "routing", events, tell):
        count, until = _extent(both)
    tell(f"{count:,} messages routed by both definitions")
    with following(spark, "comparing", count, tell):
        fates, nacks, untold = _fates(spark, both, documents, until)
        changes = _publishers(both, nacks).unionByName(_queues(both, fates)).persist()
        summary = _summary(changes)
        if out is not None:
            folder = out.rstrip("/")
            changes.write.mode("overwrite").parquet(f"{folder}/changes")
            summary.coalesce(1).write.mode("overwrite").parquet(f"{folder}/summary")
            tell(f"the tables changes and summary are in {folder}")
        is_worse = _badness(changes["after"]) > _badness(changes["before"])
        changed = changes.select("message").distinct().count()
        worse = changes.where(is_worse).select("message").distinct().count()
    return Supposed(count, changes, summary, changed, worse, untold, [both, changes])


def _routed(rows: DataFrame, definitions: Mapping[str, Any], prefix: str, given: Mapping[str, Any]) -> DataFrame:
    """With ``told``, ``queues`` and ``at`` (ms: when it gets there), under names that begin so."""
    from pyspark.sql import functions as F

    routed = route(rows, definitions, **given)
    told = (
        F.when(F.col("outcome") == REFUSED, F.concat_ws(" ", "outcome", F.col("reply_code").cast("string")))
        .when(F.col("outcome") == SCHEDULED, SCHEDULED)
        .when(F.size("queues") > 0, ROUTED)
        .otherwise(UNROUTABLE)
    )
    at = F.floor(F.unix_micros(F.coalesce("scheduled_until", "published_at")) / 1000)
    return routed.select(
        *rows.columns,
        told.alias(f"{prefix}told"),
        F.coalesce("queues", F.array().cast("array<string>")).alias(f"{prefix}queues"),
        at.alias(f"{prefix}at"),
    )


def _extent(both: DataFrame) -> tuple[int, int]:
    """How many messages, and until when (ms) it is known what became of them."""
    from pyspark.sql import functions as F

    last = F.array_max(F.transform("stays", lambda stay: F.greatest(stay["left"], stay["given_back"]))) / 1000
    row = both.agg(F.count("*"), F.max(F.greatest("at", "was_at", F.floor(last)))).collect()[0]
    return int(row[0]), int(row[1] or 0)


def _fates(
    spark: SparkSession, both: DataFrame, documents: Sequence[tuple[Plan, Queues]], until: int
) -> tuple[DataFrame, DataFrame, list[Place]]:
    """What differs in queues; who was or would be nacked because a queue is full; queues that were not looked into."""
    from pyspark.sql import functions as F

    ways = [with_ways(queues, plan.path().router.vhosts) for plan, queues in documents]
    linked = linked_queues(*(targets for _, targets in ways))
    before, after = (each for each, _ in ways)
    places = _places(both, letters=bool(linked))
    looked, untold = worth_it(_seen(places), before, after, linked)
    chosen = spark.createDataFrame(
        [(*one.place, linked[one.place][1] if one.place in linked else None) for one in looked],
        "vhost string, queue string, linked string",
    )
    own = [F.when(F.col("linked").isNotNull(), F.col(name)).alias(name) for name in ("stays", *LETTERS)]
    joined = places.join(F.broadcast(chosen), ["vhost", "queue"]).select(
        *("vhost", "linked", F.when(F.col("linked").isNull(), F.col("queue")).alias("alone")),
        *("queue", "message", "number", "at", "was_place", "is_place", "body_size", *OWN, "taken"),
        *own,
    )
    waits = {one.place: one.wait for one in looked}
    fates_of = queue_fates((documents[0][0], before.bounds), (documents[1][0], after.bounds), waits, until)
    told = joined.groupBy("vhost", "linked", "alone").applyInArrow(fates_of, FATES).persist()
    others = places.join(F.broadcast(chosen), ["vhost", "queue"], "left_anti")
    others = others.where((F.col("was_place") > 0) != (F.col("is_place") > 0))
    plain = [F.when(F.col(name) > 0, THERE).otherwise(ABSENT) for name in ("was_place", "is_place")]
    moved = others.select("vhost", "queue", "message", plain[0].alias("was_fate"), plain[1].alias("fate"))
    nacks = (
        told.where("was_nacked or nacked")
        .groupBy("message")
        .agg(F.max("was_nacked").alias("was_nacked"), F.max("nacked").alias("nacked"))
    )
    return told.drop("was_nacked", "nacked").where("was_fate <> fate").unionByName(moved), nacks, untold


def _places(both: DataFrame, letters: bool) -> DataFrame:
    """One row for each message and queue that it comes to, before or after, or, where there are ``letters``, was in.
    Its place among the queues of the message is 0 where it does not come there."""
    from pyspark.sql import functions as F

    names = F.array_union("was_queues", "queues")
    if letters:
        names = F.array_union(names, F.coalesce(F.transform("stays", lambda stay: stay["queue"]), F.array()))
    own = [F.col(name) if name in both.columns else F.lit(None).alias(name) for name in LETTERS]
    kept = "message number vhost body_size at was_queues queues stays".split()
    places = both.select(*kept, *OWN, *own, F.explode(names).alias("queue"))
    first = F.get(F.filter("stays", lambda stay: stay["queue"] == F.col("queue")), 0)
    found: DataFrame = places.select(
        *("message", "number", "vhost", "queue", "body_size", "at", "stays", *OWN, *LETTERS),
        F.array_position("was_queues", F.col("queue")).alias("was_place"),
        F.array_position("queues", F.col("queue")).alias("is_place"),
        F.floor(first["left"] / 1000).alias("taken"),
        F.floor(first["entered"] / 1000).alias("entered"),
        first["given_back"].isNotNull().alias("given_back"),
    )
    return found


def _seen(places: DataFrame) -> list[Seen]:
    from pyspark.sql import functions as F

    was_there = (F.col("was_place") > 0) | F.col("entered").isNotNull()
    waited = F.col("taken") - F.coalesce("entered", "at")
    known = (
        places.groupBy("vhost", "queue")
        .agg(
            F.max((F.col("was_place") > 0) != (F.col("is_place") > 0)).alias("moved"),
            F.count("expiration").alias("expiring"),
            F.percentile_approx(F.when(was_there, waited), 0.5).alias("wait"),
            F.max("given_back").alias("gives_back"),
        )
        .collect()
    )
    return [
        Seen((row["vhost"], row["queue"]), row["moved"], row["expiring"] > 0, row["wait"], bool(row["gives_back"]))
        for row in known
    ]


def _publishers(both: DataFrame, nacks: DataFrame) -> DataFrame:
    """Of which messages the publisher would be told otherwise."""
    from pyspark.sql import functions as F

    rows = both.join(nacks, "message", "left")
    was = F.when(F.col("was_nacked"), NACKED).otherwise(F.col("was_told"))
    now = F.when(F.col("nacked"), NACKED).otherwise(F.col("told"))
    return rows.where(was != now).select(*_named(F.lit(None).cast("string"), was, now))


def _queues(both: DataFrame, fates: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F

    rows = fates.drop("vhost").join(both, "message")
    return rows.select(*_named(F.col("queue"), F.col("was_fate"), F.col("fate")))


def _named(queue: Column, was: Column, now: Column) -> list[Column | str]:
    return [
        *("message", "published_at", "vhost", "exchange", "routing_key"),
        queue.alias("queue"),
        was.alias("before"),
        now.alias("after"),
    ]


def _summary(changes: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F

    counted = changes.groupBy(*BY).agg(
        F.count("*").alias("messages"),
        F.min_by("message", "published_at").alias("example"),
        F.min("published_at").alias("first"),
        F.max("published_at").alias("last"),
    )
    return counted.orderBy(F.desc("messages"), *BY)


def _badness(fate: Column) -> Column:
    """As ``outcomes.badness``."""
    from pyspark.sql import functions as F

    bad = fate.isin(*BAD) | fate.startswith(f"{REFUSED} ")
    return F.when(fate.endswith(LETTER_LOST), 2).when(bad, 1).otherwise(0)
