"""What the sums of ``lives`` mean: what the publisher was told and what the consumers did, in words; one row a message.

Duty: the outcome of each place and of each record, and messages: all records of one id (a dead letter is a record of
its own with the id of the message that it was). Not here: sums (``lives``), what is asked of them (``tables``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from warrenmq.journal.columns import QUEUE_DELETED
from warrenmq.spark.auditing.kinds import CODE_BITS, CONSUMED, GOES_ON, name_of
from warrenmq.spark.auditing.lives import record_names
from warrenmq.spark.auditing.reading import WITHOUT_RECORD

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

EPOCH_BITS = 40  # an id is the number of the broker's start, and then its place
WAITING, HELD, DELETED, KILLED, UNSEEN = "waiting", "held", "queue deleted", "killed", "unseen"
OPEN = (WAITING, HELD)
NOT_TAKEN = "not taken"
COUNTS = ("queues", "entries", "waiting", "held", "consumed", "went_on", "unseen", "deliveries")
WHAT_IT_WAS = "vhost exchange routing_key user connection channel size message_id correlation_id".split()


def places_view(places: DataFrame, records: DataFrame, notes: DataFrame) -> DataFrame:
    """Each place with its outcome: `waiting`, `held`, or why it left; times as timestamps.

    `killed`: transient, and the broker was started again without a word of it. `unseen`: it was never seen to enter.
    """
    from pyspark.sql import functions as F

    deleted = notes.where(F.col("kind") == QUEUE_DELETED).groupBy("log", "vhost", "queue")
    gone = deleted.agg(F.max("at").alias("deleted_at"))
    started = records.groupBy("log").agg(F.shiftright(F.max("id"), EPOCH_BITS).alias("start"))
    rows = places.join(F.broadcast(gone), ["log", "vhost", "queue"], "left").join(F.broadcast(started), "log", "left")
    doubled = (F.col("entered") > 1) & (F.col("first_position") == F.col("last_position"))
    entered = F.when(doubled, 1).otherwise(F.col("entered"))
    here = entered > F.col("ended")
    transient = F.col("record") >= F.lit(WITHOUT_RECORD)
    earlier = F.shiftright(F.col("record") - F.lit(WITHOUT_RECORD), EPOCH_BITS) < F.col("start")
    cause = name_of(F.col("last_end").bitwiseAND((1 << CODE_BITS) - 1))
    outcome = (
        F.when(here & (F.col("deleted_at") >= F.col("last_event")), DELETED)
        .when(here & transient & earlier, KILLED)
        .when(here & (F.col("delivered") + F.col("leased") > F.col("requeued")), HELD)
        .when(here, WAITING)
        .when(F.col("last_end").isNotNull(), cause)
        .when(F.col("not_taken") > 0, NOT_TAKEN)
        .otherwise(UNSEEN)
    )
    ended_at = F.when(~here, F.shiftright("last_end", CODE_BITS))
    return rows.select(
        "log",
        "record",
        "vhost",
        "queue",
        outcome.alias("outcome"),
        *(
            "entered",
            "delivered",
            "redelivered",
            "requeued",
            "leased",
            "ended",
            "ended_alone",
            "not_taken",
            "letters_lost",
        ),
        F.col("last_position").alias("position"),
        doubled.alias("entered_doubled"),
        *(_moment(F.col(name)).alias(name) for name in ("first_entered", "last_entered")),
        *(_moment(F.col(name)).alias(name) for name in ("first_delivered", "last_delivered")),
        _moment(F.when(outcome == DELETED, F.col("deleted_at")).otherwise(ended_at)).alias("ended_at"),
        *(_moment(F.col(name)).alias(name) for name in ("first_event", "last_event")),
    )


def records_view(records: DataFrame, places: DataFrame) -> DataFrame:
    """Each record with its publisher's outcome, and what became of it in queues, summed up from the view of places.

    ``publisher`` of one that the broker wrote itself is `written`. `unconfirmed` is one whose channel counts its
    publishes, so has confirms; what was published without is `published`. `unknown`: nothing tells of its publish.
    """
    from pyspark.sql import functions as F

    counted = F.col("number").isNotNull()
    outcome = (
        F.when(F.col("refused") > 0, "refused")
        .when(F.col("nacked") > 0, "nacked")
        .when(F.col("returned") > 0, "returned")
        .when(F.col("unroutable") > 0, "unroutable")
        .when(F.col("confirmed") > 0, "confirmed")
        .when((F.col("published") > 0) & counted, "unconfirmed")
        .when(F.col("published") > 0, "published")
        .when(F.col("written") > 0, "written")
        .when(F.col("duplicate") > 0, "duplicate")
        .when(F.col("not_taken") > 0, NOT_TAKEN)
        .otherwise("unknown")
    )
    moments = ("began_at", "confirmed_at", "told_at", "first_event", "last_event")
    kept = [name for name in record_names() if name not in moments]
    whole = records.join(_in_queues(places), ["log", "record"], "full")
    return whole.select(
        "log",
        "record",
        outcome.alias("publisher"),
        *kept,
        *(_moment(F.col(name)).alias(name) for name in moments),
        *(F.coalesce(F.col(name), F.lit(0)).alias(name) for name in COUNTS),
        *("first_delivered", "ended_at", "first_in_queue", "last_in_queue", "any_queue", "any_vhost"),
    )


def _in_queues(places: DataFrame) -> DataFrame:
    """The places of each record, summed up."""
    from pyspark.sql import functions as F

    lost = F.col("outcome").endswith("_dead_lettered") & (F.col("letters_lost") > 0)
    sums: dict[str, Column] = {
        "queues": F.lit(1),
        "entries": F.col("entered"),
        "waiting": F.col("outcome") == WAITING,
        "held": F.col("outcome") == HELD,
        "consumed": F.col("outcome").isin(*CONSUMED),
        "went_on": F.col("outcome").isin(*GOES_ON) & ~lost,
        "unseen": F.col("outcome").isin(UNSEEN, NOT_TAKEN),
        "deliveries": F.col("delivered"),
    }
    return places.groupBy("log", "record").agg(
        *(F.sum(column.cast("long")).alias(name) for name, column in sums.items()),
        F.min("first_delivered").alias("first_delivered"),
        F.max("ended_at").alias("ended_at"),
        F.min("first_event").alias("first_in_queue"),
        F.max("last_event").alias("last_in_queue"),
        F.min("queue").alias("any_queue"),
        F.min("vhost").alias("any_vhost"),
    )


def messages_view(records: DataFrame) -> DataFrame:
    """One row a message: the publisher's outcome and the consumers' beside each other, all its records together.

    ``consumers``: `waiting` or `held` where any queue has it, `consumed`, `gone`, `partly consumed`, or `none` where it
    was in no queue. ``records``: how many there are of it; each beyond the first is a hop: a dead letter, a move or a
    message that was due.
    """
    from pyspark.sql import functions as F

    records = records.where("publisher != 'duplicate'")  # of a message that is another's row
    several = F.col("id").isNotNull() & ((F.coalesce("written", F.lit(0)) > 0) | (F.col("went_on") > 0))
    last = F.greatest("last_event", "last_in_queue").alias("last_event")
    kept = [*WHAT_IT_WAS, "publisher", "number", "code", "text", "began_at", "confirmed_at", "told_at"]
    columns = ("log", "id", "first_record", "records", *kept, *COUNTS, "first_delivered", "ended_at")
    one = records.where(~several).withColumns({"records": F.lit(1), "first_record": F.col("record")})
    first = F.struct(F.col("published") == 0, "record")  # what was published comes before what the broker wrote
    joined = (
        records.where(several)
        .groupBy("log", "id")
        .agg(
            F.count("*").alias("records"),
            F.min_by("record", first).alias("first_record"),
            *(F.min_by(name, first).alias(name) for name in kept),
            *(F.sum(name).alias(name) for name in COUNTS),
            F.min("first_delivered").alias("first_delivered"),
            F.max("ended_at").alias("ended_at"),
            F.max("last_event").alias("last_event"),
            F.max("last_in_queue").alias("last_in_queue"),
        )
    )
    both = one.select(*columns, last).unionByName(joined.select(*columns, last))
    ended = F.col("queues") - F.col("went_on") - F.col("unseen")
    consumers = (
        F.when(F.col("waiting") > 0, WAITING)
        .when(F.col("held") > 0, HELD)
        .when(ended <= 0, "none")
        .when(F.col("consumed") == ended, "consumed")
        .when(F.col("consumed") > 0, "partly consumed")
        .otherwise("gone")
    )
    return both.withColumn("consumers", consumers)


def _moment(micros: Column) -> Column:
    from pyspark.sql import functions as F

    return F.timestamp_micros(micros)
