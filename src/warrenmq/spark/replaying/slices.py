"""Where messages that are replayed come from: a journal with bodies, a lake of rows, a queue under a lease.

Duty: rows of one shape, chosen. Not here: what is done with them (``job``).

    origin       where it is told: LOG/RECORD of a journal, FILE:ROW of a lake, QUEUE/LEASE/SLOT
    at           when it was published; chosen by ``outcome``, when that came about; of a lake as its columns say
    …            the columns that format("amqp") writes
    why          why it cannot be sent
    lease slot   of a queue: what is acknowledged there when it has arrived
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from warrenmq.journal.columns import WRITTEN
from warrenmq.spark.auditing.lives import notes_of, places_of, records_of
from warrenmq.spark.auditing.reading import events
from warrenmq.spark.auditing.views import places_view, records_view
from warrenmq.spark.jobs.summary import TIMES
from warrenmq.spark.options import CONNECTION
from warrenmq.spark.recorded import one_each, parts_of, told, unpacked
from warrenmq.spark.replaying.choosing import Choice, like
from warrenmq.spark.replaying.origins import FirstPublished
from warrenmq.spark.routing.definitions import InputError
from warrenmq.spark.schema import WRITE_COLUMNS

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

COLUMNS = tuple((name, kind) for name, kind in WRITE_COLUMNS if name != "mandatory")
SHAPE = (("origin", "string"), ("at", "timestamp"), *COLUMNS, ("why", "string"), ("lease", "string"), ("slot", "int"))
DDL = ", ".join(f"`{name}` {kind}" for name, kind in SHAPE)
NO_BODY = "the journal has no body of it: it has those of queues and vhosts whose level is all+bodies"


def journal(spark: SparkSession, paths: Sequence[str], choice: Choice) -> DataFrame:
    """Every message once, as it was published; of those that the broker wrote (dead letters, moves) only what is asked
    for by the queue that it was in or what became of it there, and of all records of one message the first."""
    from pyspark.sql import functions as F

    parts = parts_of(spark, paths)
    rows = told(spark, parts, bodies=True).where(like(F.col("exchange"), choice.exchange))
    rows = rows.where(like(_first_key(), choice.routing_key))
    if choice.queue or choice.outcome or choice.publisher:
        lives = _lives(events(spark, parts), choice)
        rows = rows.join(lives, ["log", "record"]).withColumn("moment", F.coalesce("ended", "time"))
    else:
        rows = rows.where(F.col("kind") != WRITTEN).withColumn("moment", F.col("time"))
    rows = rows.where(choice.at(F.col("moment")))
    one = one_each(rows, "record moment exchange routing_keys header body text".split())
    slim = one.select(
        F.concat_ws("/", "log", F.col("record").cast("string")).alias("origin"),
        F.col("moment").alias("at"),
        *("exchange", "routing_keys", "header", "body"),
        F.when(F.col("body").isNull(), F.concat_ws(": ", F.lit(NO_BODY), "text")).alias("why"),
        F.lit(None).cast("string").alias("lease"),
        F.lit(None).cast("int").alias("slot"),
    )
    return _where(unpacked(slim, DDL), choice)


def _first_key() -> Column:
    from pyspark.sql import functions as F

    return F.coalesce(F.get("routing_keys", F.lit(0)), F.lit(""))


def _lives(happened: DataFrame, choice: Choice) -> DataFrame:
    """Records by what became of them, and when."""
    from pyspark.sql import functions as F

    records, notes = records_of(happened), notes_of(happened)
    places = places_view(places_of(happened), records, notes)
    found: DataFrame | None = None
    if choice.queue or choice.outcome:
        wanted = like(F.col("queue"), choice.queue) & like(F.col("outcome"), choice.outcome)
        ended = F.coalesce("ended_at", "last_event") if choice.outcome else F.lit(None).cast("timestamp")
        found = places.where(wanted).groupBy("log", "record").agg(F.max(ended).alias("ended"))
    if choice.publisher:
        told = records_view(records, places).where(like(F.col("publisher"), choice.publisher))
        told = told.select("log", "record", F.lit(None).cast("timestamp").alias("ended"))
        found = told if found is None else found.join(told.drop("ended"), ["log", "record"])
    assert found is not None
    return found


def lake(spark: SparkSession, paths: Sequence[str], choice: Choice) -> DataFrame:
    """Rows as ``ingest`` writes them, or any with a column ``body``."""
    from pyspark.sql import functions as F

    df = spark.read.parquet(*paths)
    _no_lives(choice, "a lake")
    have = set(df.columns)
    if "body" not in have:
        raise InputError(f"the lake has no column 'body'; it has: {', '.join(df.columns)}")
    moments = [name for name in TIMES if name in have]
    if (choice.since or choice.until) and not moments:
        raise InputError(f"the lake has no column that says when: none of {', '.join(TIMES)}")
    origin = F.concat_ws(":", F.col("_metadata.file_name"), F.col("_metadata.row_index").cast("string"))
    at = F.coalesce(*moments) if moments else F.lit(None).cast("timestamp")
    return _shaped(df, origin, at, choice)


def queue(
    spark: SparkSession, options: Mapping[str, str], name: str, choice: Choice, lease: bool
) -> tuple[DataFrame, DataFrame]:
    """What waits in a queue: looked at, or under a lease; those that were chosen, and all that is under it."""
    from pyspark.sql import functions as F

    _no_lives(choice, "a queue")
    reading = connecting(options)
    if lease:
        reading |= {"leases": "true", "leaseColumns": "true", "leaseTtl": "1d"}
    df = spark.read.format("amqp").options(**reading, queue=name).load()
    parts = [F.lit(name), F.col("lease"), F.col("slot").cast("string")] if lease else [F.lit(name)]
    return _shaped(df, F.concat_ws("/", *parts), F.col("timestamp"), choice), df


def connecting(options: Mapping[str, str]) -> dict[str, str]:
    """Those that say where the broker is: for what is asked of it beside the write."""
    known = {option.lower() for option in CONNECTION}
    return {key: value for key, value in options.items() if key.lower() in known}


def _no_lives(choice: Choice, what: str) -> None:
    """Dead letters say themselves why they are."""
    if choice.publisher:
        raise InputError(f"what publishers were told is in a journal; {what} does not say it")


def _shaped(df: DataFrame, origin: Column, at: Column, choice: Choice) -> DataFrame:
    from pyspark.sql import functions as F

    have = set(df.columns)

    def column(name: str, kind: str) -> Column:
        return (F.col(name) if name in have else F.lit(None)).cast(kind)

    if choice.queue and "queue" not in have:
        raise InputError(f"there is no column 'queue'; there are: {', '.join(df.columns)}")
    if choice.outcome and "headers" not in have:
        raise InputError(f"there is no column 'headers', which says why a message died: {', '.join(df.columns)}")
    rows = df.where(like(column("queue", "string"), choice.queue)).where(choice.at(at))
    rows = rows.select(
        origin.alias("origin"),
        at.alias("at"),
        *(column(name, kind).alias(name) for name, kind in COLUMNS),
        F.when(column("body", "binary").isNull(), F.lit("its body is null")).alias("why"),
        column("lease", "string").alias("lease"),
        column("slot", "int").alias("slot"),
    )
    if choice.outcome:
        rows = rows.where(like(F.col("headers")["x-first-death-reason"], choice.outcome))
    rows = rows.where(like(F.col("exchange"), choice.exchange) & like(F.col("routing_key"), choice.routing_key))
    return _where(rows, choice)


def _where(rows: DataFrame, choice: Choice) -> DataFrame:
    return rows if choice.where is None else rows.where(choice.where)


def first_published(rows: DataFrame) -> DataFrame:
    """Dead letters with the exchange and the keys that they were published with."""
    return rows.mapInArrow(FirstPublished(), rows.schema)
