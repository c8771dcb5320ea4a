"""What became of each message, as sums: one row for each message and queue, one for each record.

Duty: from events to rows that can be added to: a row of new events and the row of those before make one again, in any
order, whenever they come (``merged``). Every column is a sum, a least or a greatest value; those of places are numbers
alone, which Spark adds up in place. Not here: what the sums mean (``views``).

    places    log record vhost queue     a message in a queue
    records   log record            a message as it was published or written, and what its publisher was told
    notes                           what concerns no message: gaps, levels, what they left out, deleted queues
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from warrenmq.journal.columns import (
    DELIVERED,
    ENQUEUED,
    FETCHED,
    GAP,
    INTERRUPTED,
    LEASED,
    LEFT_OUT,
    LETTER_LOST,
    LEVEL,
    PUBLISHED,
    QUEUE_DELETED,
    REQUEUED,
    WRITTEN,
)
from warrenmq.spark.auditing.kinds import CODE_BITS, CODES, is_end
from warrenmq.spark.auditing.reading import WITHOUT_RECORD

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

PLACE = ("log", "record", "vhost", "queue")
RECORD = ("log", "record")
PART = "part"  # which rows are kept together in a folder
NOTES = (GAP, LEFT_OUT, INTERRUPTED, LEVEL, QUEUE_DELETED)
CONFIRMED = CODES["confirmed"]
TOLD = {name: CODES[name] for name in ("refused", "returned", "unroutable", "nacked", "not taken", "duplicate")}


def places_of(events: DataFrame) -> DataFrame:
    """Of every queue that a message was in."""
    from pyspark.sql import functions as F

    there = F.col("queue").isNotNull() & F.col("record").isNotNull() & ~F.col("kind").isin(*NOTES)
    return _summed(events.where(there), PLACE, _place_columns(), merging=False)


def records_of(events: DataFrame) -> DataFrame:
    """Of every message what it was, and what its publisher was told."""
    from pyspark.sql import functions as F

    wanted = [PUBLISHED, WRITTEN, *TOLD.values(), CONFIRMED]
    of_it = F.col("record").isNotNull() & (F.col("kind").isin(wanted) | F.col("exchange").isNotNull())
    return _summed(events.where(of_it), RECORD, _record_columns(), merging=False)


def notes_of(events: DataFrame) -> DataFrame:
    """What concerns no message, as it stands."""
    from pyspark.sql import functions as F

    rows = events.where(F.col("kind").isin(*NOTES))
    until = F.unix_micros("until").alias("until")
    return rows.select("log", "file", "kind", "vhost", "queue", "at", until, "number", "text")


def merged_places(rows: DataFrame) -> DataFrame:
    return _summed(rows, PLACE, _place_columns(), merging=True)


def merged_records(rows: DataFrame) -> DataFrame:
    return _summed(rows, RECORD, _record_columns(), merging=True)


def with_part(rows: DataFrame) -> DataFrame:
    """With the name of the part that a row is kept in: 16 segments of a log, or 16 million ids."""
    from pyspark.sql import functions as F

    m = F.col("record")
    transient = F.concat(F.lit("t"), F.shiftright(m - F.lit(WITHOUT_RECORD), 24).cast("string"))
    kept = F.concat(F.lit("s"), F.shiftright(m, 36).cast("string"))
    where = F.when(m >= F.lit(WITHOUT_RECORD), transient).when(m < 0, "n").otherwise(kept)
    return rows.withColumn(PART, F.concat_ws("-", "log", where))


Columns = list[tuple[str, str, "Column"]]  # name, how rows are added up, from which of an event


def _place_columns() -> Columns:
    from pyspark.sql import functions as F

    kind, at = F.col("kind"), F.col("at")
    goes = kind.isin(DELIVERED, FETCHED)
    ends = is_end(kind)
    alone = ends & F.col("id").isNotNull()  # nothing else is told of it in this queue

    def when(condition: Column) -> Column:
        return F.when(condition, at)

    return [
        ("entered", "sum", _one(kind == ENQUEUED)),
        ("delivered", "sum", _one(goes)),
        ("redelivered", "sum", _one(goes & F.col("redelivered"))),
        ("requeued", "sum", _one(kind == REQUEUED)),
        ("leased", "sum", _one(kind == LEASED)),
        ("ended", "sum", _one(ends & ~alone)),
        ("ended_alone", "sum", _one(alone)),
        ("not_taken", "sum", _one(kind == TOLD["not taken"])),
        ("letters_lost", "sum", _one(kind == LETTER_LOST)),
        ("first_position", "min", F.when(kind == ENQUEUED, F.col("position"))),
        ("last_position", "max", F.when(kind == ENQUEUED, F.col("position"))),
        ("first_entered", "min", when(kind == ENQUEUED)),
        ("last_entered", "max", when(kind == ENQUEUED)),
        ("first_delivered", "min", when(goes)),
        ("last_delivered", "max", when(goes)),
        ("last_end", "max", F.when(ends, F.shiftleft(at, CODE_BITS).bitwiseOR(kind))),
        ("first_event", "min", at),
        ("last_event", "max", at),
    ]


def _record_columns() -> Columns:
    from pyspark.sql import functions as F

    kind, at = F.col("kind"), F.col("at")
    begins = kind.isin(PUBLISHED, WRITTEN)
    publishes = ~kind.isin(WRITTEN)
    said = kind.isin(list(TOLD.values()))
    found: Columns = [
        ("id", "max", F.col("id")),
        ("published", "sum", _one(kind == PUBLISHED)),
        ("written", "sum", _one(kind == WRITTEN)),
        *((name.replace(" ", "_"), "sum", _one(kind == code)) for name, code in TOLD.items()),
        ("confirmed", "sum", _one(kind == CONFIRMED)),
        ("began_at", "min", F.when(begins | said, at)),
        ("confirmed_at", "min", F.when(kind == CONFIRMED, at)),
        ("told_at", "min", F.when(said, at)),
        ("first_event", "min", at),
        ("last_event", "max", at),
        ("number", "max", F.when(publishes, F.col("number"))),
        ("size", "max", F.col("size")),
        ("vhost", "max", F.when(publishes, F.col("vhost"))),
        ("exchange", "max", F.col("exchange")),
        ("routing_key", "max", F.when(F.size("routing_keys") > 0, F.col("routing_keys")[0])),
        ("user", "max", F.when(publishes, F.col("user"))),
        ("connection", "max", F.when(publishes, F.col("connection"))),
        ("channel", "max", F.when(publishes, F.col("channel"))),
        ("message_id", "max", F.col("message_id")),
        ("correlation_id", "max", F.col("correlation_id")),
        ("code", "max", F.col("code")),
        ("text", "max", F.when(said, F.col("text"))),
    ]
    return found


def record_names() -> list[str]:
    """The columns of records beside their keys: known without asking Spark, which declarative pipelines forbid."""
    return [name for name, _, _ in _record_columns()]


def _one(condition: Column) -> Column:
    from pyspark.sql import functions as F

    return F.when(condition, F.lit(1)).otherwise(F.lit(0)).cast("long")


def _summed(rows: DataFrame, keys: tuple[str, ...], columns: Columns, merging: bool) -> DataFrame:
    from pyspark.sql import functions as F

    functions: dict[str, Any] = {"sum": F.sum, "min": F.min, "max": F.max}
    sums = [functions[how](F.col(name) if merging else raw).alias(name) for name, how, raw in columns]
    return rows.groupBy(*keys).agg(*sums)
