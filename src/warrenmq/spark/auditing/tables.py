"""What is asked of an audit, each as a table of its own.

Duty: from places, records and holes to what is unaccounted for, unroutable, redelivered too often, dead-lettered,
doubled, how long each step took, and the ledger. Not here: outcomes in words (``views``).

**Unaccounted for** is, from a journal alone, what

- left a queue or was delivered there, and never entered (`no beginning`);
- entered a queue, and nobody published or wrote it (`no record`);
- was published, is in no queue, and nobody was told (`nowhere`);
- is in a queue, and may have left it while nothing was told (`end unknown`);

because of `file missing` where it is of a segment, or waited at a time, that a missing file tells of; `gap` where the
journal says itself that it does not tell; `level` where it was told not to; `before` where it is older than the first
file; else it is `lost`. `file missing` and `lost` are missing, the others are known not to be told.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from warrenmq.journal.columns import GAP, INTERRUPTED, LEFT_OUT, LEVEL
from warrenmq.spark.auditing.holes import BEFORE, COLUMNS, FILE_MISSING, GAP_TOLD
from warrenmq.spark.auditing.reading import WITHOUT_RECORD
from warrenmq.spark.auditing.views import HELD, OPEN, WAITING

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

LOST = "lost"
LEVEL_OFF = "level"
MISSING = (FILE_MISSING, LOST)
SEGMENT_BITS = 32  # of a record's number: its place in the segment
_RANK = {FILE_MISSING: 1, GAP_TOLD: 2, BEFORE: 3}  # of several reasons the first


def unaccounted(places: DataFrame, records: DataFrame, holes: DataFrame, notes: DataFrame) -> DataFrame:
    """Every message of which something is not told, with what and because of what."""
    from pyspark.sql import functions as F

    unseen = (F.col("entered") == 0) & ((F.col("ended") > 0) | (F.col("delivered") > 0) | (F.col("requeued") > 0))
    at_queue = places.where(unseen | F.col("outcome").isin(*OPEN)).select(
        "log", "record", "vhost", "queue", "first_event", "last_event", F.when(unseen, "no beginning").alias("what")
    )
    begun = F.coalesce(F.col("published") + F.col("written"), F.lit(0)) > 0
    told = F.col("refused") + F.col("returned") + F.col("unroutable") + F.col("nacked") + F.col("not_taken")
    what = F.when(~begun & (F.col("entries") > 0), "no record").when(
        begun & (told == 0) & (F.col("queues") == 0), "nowhere"
    )
    of_records = records.withColumn("what", what).where("what is not null")
    of_records = of_records.select(
        "log",
        "record",
        F.coalesce("any_vhost", "vhost").alias("vhost"),
        F.col("any_queue").alias("queue"),
        F.coalesce("first_in_queue", "first_event").alias("first_event"),
        F.coalesce("last_in_queue", "last_event").alias("last_event"),
        "what",
    )
    suspects = at_queue.where("what is not null").unionByName(of_records)
    segment = F.shiftright("record", SEGMENT_BITS)
    kept = F.col("record") < F.lit(WITHOUT_RECORD)
    hole = holes.select(*(F.col(name).alias(f"hole_{name}") for name in COLUMNS))
    same = F.col("log") == F.col("hole_log")
    begins = same & F.when(kept, segment.between(F.col("hole_first"), F.col("hole_last"))).otherwise(
        F.unix_micros("first_event") >= F.col("hole_since")
    )
    explained = _explained(suspects, hole, begins)
    waits = at_queue.where("what is null").withColumn("what", F.lit("end unknown"))
    ends = same & (F.unix_micros("last_event") < F.col("hole_until")) & (F.col("hole_because") != BEFORE)
    unknown = _explained(waits, hole, ends).where("because is not null")
    quiet = (
        notes.where(F.col("kind") == LEVEL)
        .groupBy("log")
        .agg(F.max(F.when(F.col("text") == "off", True)).alias("off"), F.lit(True).alias("levels"))
    )
    found = explained.join(F.broadcast(quiet), "log", "left")
    # a transient message may have been in its queue when the level became `all`
    by_level = F.col("off") | (F.col("levels") & ~kept & (F.col("what") == "no beginning"))
    because = F.coalesce("because", F.when(by_level, LEVEL_OFF), F.lit(LOST))
    columns = ("log", "record", "vhost", "queue", "what", "because", "first_event", "last_event", "says")
    both = found.withColumn("because", because).select(*columns).unionByName(unknown.select(*columns))
    names = records.select("log", "record", "id", "message_id", "exchange", "routing_key", "user")
    return both.join(names, ["log", "record"], "left")


def _explained(rows: DataFrame, holes: DataFrame, meets: Column) -> DataFrame:
    """The rows with the first of the reasons that meet them, and what that says."""
    from pyspark.sql import functions as F

    rank = F.lit(None).cast("int")
    for name, place in _RANK.items():
        rank = F.when(F.col("hole_because") == name, place).otherwise(rank)
    best = F.min(F.when(rank.isNotNull(), F.struct(rank.alias("rank"), "hole_because", "hole_says")))
    keys = ("log", "record", "vhost", "queue", "what", "first_event", "last_event")
    met = rows.join(F.broadcast(holes), meets, "left").groupBy(*keys).agg(best.alias("best"))
    return met.select(*keys, F.col("best.hole_because").alias("because"), F.col("best.hole_says").alias("says"))


def publishes(records: DataFrame) -> DataFrame:
    """How many of each publisher's messages had which outcome, by exchange."""
    from pyspark.sql import functions as F

    by = ("log", "vhost", "user", "exchange", "publisher")
    times = F.when(F.col("publisher") == "duplicate", F.col("duplicate")).otherwise(1)
    return (
        records.where("publisher != 'written'")
        .groupBy(*by)
        .agg(F.sum(times).alias("messages"), F.sum("size").alias("octets"), *_span("began_at"))
    )


def unroutable(records: DataFrame) -> DataFrame:
    """What no queue took: by publisher and key."""
    from pyspark.sql import functions as F

    by = ("log", "vhost", "user", "exchange", "routing_key", "publisher")
    gone = records.where(F.col("publisher").isin("unroutable", "returned", "refused", "nacked", "not taken"))
    return gone.groupBy(*by).agg(
        F.count("*").alias("messages"),
        *_span("told_at"),
        F.max("code").alias("code"),
        F.max("text").alias("text"),
        F.max("id").alias("example"),
    )


def redelivered(places: DataFrame, most: int) -> DataFrame:
    """Messages that were delivered more often than ``most`` times from one queue."""
    from pyspark.sql import functions as F

    columns = ("log", "record", "vhost", "queue", "delivered", "requeued", "outcome")
    return places.where(F.col("delivered") > most).select(*columns, "first_delivered", "last_delivered")


def dead_lettered(places: DataFrame) -> DataFrame:
    """What queues gave up, by queue and cause: sent on, gone for want of a dead-letter exchange, or sent and lost."""
    from pyspark.sql import functions as F

    cause = F.regexp_extract("outcome", "^(expired|limit|rejected|delivery_limit)_", 1)
    given_up = places.withColumn("cause", cause).where("cause != ''")
    sent = F.col("outcome").endswith("_dead_lettered")
    return given_up.groupBy("log", "vhost", "queue", "cause").agg(
        F.count("*").alias("messages"),
        F.sum((sent & (F.col("letters_lost") == 0)).cast("long")).alias("dead_lettered"),
        F.sum((sent & (F.col("letters_lost") > 0)).cast("long")).alias("letters_lost"),
        F.sum((~sent).cast("long")).alias("gone"),
        *_span("ended_at"),
        F.min_by("record", "ended_at").alias("record"),
    )


def doubled(places: DataFrame, records: DataFrame) -> DataFrame:
    """What is there more than once: told twice by the journal, or published twice with one message_id."""
    from pyspark.sql import functions as F

    again = F.when(F.col("entered_doubled"), "entered twice").when(
        (F.col("entered") > 0) & (F.col("ended") > F.col("entered")), "left twice"
    )
    extra = F.when(F.col("entered_doubled"), F.col("entered")).otherwise(F.col("ended"))
    in_queues = places.withColumn("what", again).where("what is not null")
    in_queues = in_queues.select("log", "record", "vhost", "queue", "what", extra.alias("times"))
    told = records.where((F.col("published") + F.col("written")) > 1).select(
        "log",
        "record",
        "vhost",
        F.lit(None).cast("string").alias("queue"),
        F.lit("published twice in the journal").alias("what"),
        (F.col("published") + F.col("written")).alias("times"),
    )
    found = records.where(F.col("duplicate") > 0).select(
        "log",
        "record",
        "vhost",
        F.lit(None).cast("string").alias("queue"),
        F.lit("found by its exchange").alias("what"),
        F.col("duplicate").alias("times"),
    )
    twice = (
        records.where("message_id is not null and publisher != 'written' and published > 0")
        .groupBy("log", "vhost", "user", "exchange", "message_id")
        .agg(F.count("*").alias("times"), F.min("record").alias("record"))
        .where("times > 1")
        .select(
            "log",
            "record",
            "vhost",
            F.lit(None).cast("string").alias("queue"),
            F.lit("one message_id").alias("what"),
            "times",
        )
    )
    return in_queues.unionByName(told).unionByName(found).unionByName(twice)


def latency(places: DataFrame, records: DataFrame, window: str) -> DataFrame:
    """Percentiles of each step in seconds, by queue and window: publish→deliver, deliver→ack, and by vhost
    publish→confirm. The rank of a percentile is right to 1 in 10,000."""
    from pyspark.sql import functions as F

    def steps(rows: DataFrame, step: str, queue: Column, since: str, until: str) -> DataFrame:
        took = (F.unix_micros(until) - F.unix_micros(since)) / 1e6
        chosen = rows.where(F.col(since).isNotNull() & F.col(until).isNotNull())
        return chosen.select(
            "log",
            "vhost",
            queue.alias("queue"),
            F.lit(step).alias("step"),
            F.window(F.col(since), window)["start"].alias("window_start"),
            took.alias("took"),
        )

    queue = F.col("queue")
    acked = places.where(F.col("outcome").isin("acked", "lease_settled") & (F.col("entered") == 1))
    together = (
        steps(records, "publish→confirm", F.lit(None).cast("string"), "began_at", "confirmed_at")
        .unionByName(steps(places, "publish→deliver", queue, "first_entered", "first_delivered"))
        .unionByName(steps(acked, "deliver→ack", queue, "last_delivered", "ended_at"))
    )
    marks = F.percentile_approx("took", [0.5, 0.9, 0.99], 10000)
    by = ("log", "vhost", "queue", "step", "window_start")
    sums = together.groupBy(*by).agg(F.count("*").alias("messages"), marks.alias("p"), F.max("took").alias("most"))
    named = [F.col("p")[place].alias(name) for place, name in enumerate(("p50", "p90", "p99"))]
    return sums.select(*by, "messages", *named, "most")


def ledger(places: DataFrame) -> DataFrame:
    """How many messages each queue had with which outcome: of each queue the sum is what it ever had."""
    from pyspark.sql import functions as F

    return places.groupBy("log", "vhost", "queue", "outcome").agg(
        F.count("*").alias("messages"), F.sum("delivered").alias("deliveries"), *_span("first_event")
    )


def backlog(places: DataFrame) -> DataFrame:
    """What each queue has at the journal's end, and since when the oldest of it waits."""
    from pyspark.sql import functions as F

    waits = places.where(F.col("outcome").isin(*OPEN))
    now = places.groupBy("log").agg(F.max("last_event").alias("told_until"))
    sums = waits.groupBy("log", "vhost", "queue").agg(
        F.sum((F.col("outcome") == WAITING).cast("long")).alias("waiting"),
        F.sum((F.col("outcome") == HELD).cast("long")).alias("held"),
        F.min("first_entered").alias("oldest"),
        F.min_by("record", "first_entered").alias("record"),
    )
    age = (F.unix_micros("told_until") - F.unix_micros("oldest")) / 1e6
    return sums.join(F.broadcast(now), "log").withColumn("oldest_seconds", age)


def rates(places: DataFrame, records: DataFrame, window: str) -> DataFrame:
    """How many were published, delivered (for the first time) and ended in each window."""
    from pyspark.sql import functions as F

    def per_window(rows: DataFrame, what: Column, moment: str) -> DataFrame:
        start = F.window(F.col(moment), window)["start"].alias("window_start")
        named = rows.where(F.col(moment).isNotNull()).select("log", "vhost", start, what.alias("what"))
        return named.groupBy("log", "vhost", "window_start", "what").agg(F.count("*").alias("messages"))

    consumed = F.when(F.col("outcome").isin("acked", "auto_acked", "lease_settled"), "consumed").otherwise("gone")
    return (
        per_window(records.where("publisher != 'written'"), F.col("publisher"), "began_at")
        .unionByName(per_window(places, F.lit("delivered"), "first_delivered"))
        .unionByName(per_window(places, consumed, "ended_at"))
    )


def gaps(notes: DataFrame) -> DataFrame:
    """What the journal itself says that it does not tell: gaps and what sampling left out, with how many events,
    crashes, and levels with whose."""
    from pyspark.sql import functions as F

    chosen = notes.where(F.col("kind").isin(GAP, LEFT_OUT, INTERRUPTED, LEVEL))
    what = F.when(F.col("kind") == GAP, "gap").when(F.col("kind") == LEFT_OUT, "left out")
    what = what.when(F.col("kind") == INTERRUPTED, "interrupted").otherwise("level")
    return chosen.select(
        "log",
        what.alias("what"),
        F.timestamp_micros("at").alias("since"),
        F.timestamp_micros("until").alias("until"),
        F.when(F.col("kind") != LEVEL, F.col("number")).alias("events"),
        "vhost",
        "queue",
        F.col("text").alias("level"),
        "file",
    )


def _span(moment: str) -> tuple[Column, Column]:
    from pyspark.sql import functions as F

    return F.min(moment).alias("first"), F.max(moment).alias("last")
