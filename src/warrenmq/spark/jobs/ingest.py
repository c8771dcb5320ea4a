"""ingest: queues or streams into a lake of Parquet files or a Delta or Iceberg table, once and only once.

Duty: a streaming read into Spark's Parquet sink, or into a table, with a checkpoint. Exactly-once comes from three
sides: the source can be read again (streams, leases), the checkpoint says how far it got, and the sink's own log lists
each batch's files once (Spark's for Parquet, the table's commits for the others). From queues of plain RabbitMQ it is
at least once, and says so. Not here: the command line.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from warrenmq.spark.lakehouse import TABLES, BatchWriter, Delta, Iceberg, Lakehouse
from warrenmq.spark.options import OptionError, parse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

Progress = Callable[[str], None]


@dataclass
class Ingested:
    """The results of one run."""

    rows: int = 0
    batches: int = 0
    seconds: float = 0.0


def ingest(
    spark: SparkSession,
    options: Mapping[str, str],
    lake: str,
    *,
    checkpoint: str | None = None,
    continuous: bool = False,
    interval: str = "10 seconds",
    progress: Progress | None = None,
    timeout: float | None = None,
    table: str = "parquet",
    catalog: Mapping[str, str] | None = None,
) -> Ingested:
    """Read what ``options`` name (as of ``format("amqp")``) into ``lake``.

    ``table``: ``parquet`` or ``delta``, then ``lake`` is a folder; or ``iceberg``, then it is ``namespace.table`` of
    the catalog that ``catalog``'s properties describe (``pyiceberg``'s own configuration unless given), and
    ``checkpoint`` has to be given.

    Without ``continuous`` it takes what is there now and ends; with it, it runs until stopped (or ``timeout`` seconds)
    with a batch every ``interval``. The checkpoint is ``<lake>/_checkpoint`` unless given.
    """
    query = start(
        spark,
        options,
        lake,
        checkpoint=checkpoint,
        continuous=continuous,
        interval=interval,
        table=table,
        catalog=catalog,
    )
    return follow(query, progress, timeout)


def start(
    spark: SparkSession,
    options: Mapping[str, str],
    lake: str,
    *,
    checkpoint: str | None = None,
    continuous: bool = False,
    interval: str = "10 seconds",
    table: str = "parquet",
    catalog: Mapping[str, str] | None = None,
) -> StreamingQuery:
    """A query that has begun to write what comes to ``lake``."""
    from pyspark.sql import functions as F

    parse(options)  # faults in the options are told here, not from inside Spark
    df = spark.readStream.format("amqp").options(**dict(options)).load()
    df = df.withColumn("ingested_at", F.current_timestamp())
    place = checkpoint or f"{lake.rstrip('/')}/_checkpoint"
    if table == "parquet":
        writing = df.writeStream.format("parquet").option("path", lake)
    else:
        writing = df.writeStream.foreachBatch(BatchWriter(lakehouse(table, lake, catalog, checkpoint), place))
    writing = writing.option("checkpointLocation", place)
    writing = writing.trigger(processingTime=interval) if continuous else writing.trigger(availableNow=True)
    return writing.start()


def lakehouse(table: str, lake: str, catalog: Mapping[str, str] | None, checkpoint: str | None) -> Lakehouse:
    if table == "delta":
        return Delta(lake)
    if table != "iceberg":
        raise OptionError(f"table '{table}' is not known; there are: {', '.join(TABLES)}")
    if checkpoint is None:
        raise OptionError("an Iceberg table needs a folder for the checkpoint")
    return Iceberg(lake, properties=catalog)


def follow(query: StreamingQuery, progress: Progress | None = None, timeout: float | None = None) -> Ingested:
    """Wait for the query's end, telling how far it is. Interrupting lets the batch at hand finish, then stops."""
    done = Ingested()
    begun = time.monotonic()
    seen = -1
    try:
        while True:
            ended = query.awaitTermination(1)
            for step in query.recentProgress:
                seen = _count(step, seen, done, progress)
            if ended:
                break
            if timeout is not None and time.monotonic() - begun > timeout:
                stop_gently(query)
                break
    except KeyboardInterrupt:
        stop_gently(query)
    done.seconds = time.monotonic() - begun
    return done


def stop_gently(query: StreamingQuery, patience: float = 60) -> None:
    """Stop between two batches: stopping in the middle is safe too, but the batch's work would be done again."""
    deadline = time.monotonic() + patience
    while query.isActive and query.status["isTriggerActive"] and time.monotonic() < deadline:
        time.sleep(0.05)
    query.stop()


def _count(step: Any, seen: int, done: Ingested, progress: Progress | None) -> int:
    number = int(step["batchId"])
    if number <= seen:
        return seen
    rows = sum(int(source["numInputRows"]) for source in step["sources"])  # Spark Connect has no sum of them
    if rows:
        done.rows += rows
        done.batches += 1
        if progress is not None:
            rate = step["processedRowsPerSecond"] or 0
            progress(f"batch {number}: {rows:,} rows, {rate:,.0f} rows/s, {done.rows:,} in all")
    return number
