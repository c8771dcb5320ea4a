"""publish: a table to an exchange, with confirms and mandatory, and a table of what became of every row.

Duty: publishing from Spark's tasks and one outcome per row, of a table or, with counts in the query's progress, of a
stream of rows. Not here: the publishing itself (``publisher.py``).
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from warrenmq.spark.chunk import CONFIRMED, INVALID, NACKED, REFUSED, RETURNED
from warrenmq.spark.deduplicated import Watch, check_options, now_ms
from warrenmq.spark.options import Options, parse
from warrenmq.spark.pacing import RecordedPace
from warrenmq.spark.publisher import Publisher
from warrenmq.spark.routing import InputError
from warrenmq.spark.schema import WRITE_COLUMNS
from warrenmq.spark.sink import began_of, check_target, check_write_schema, task_of

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

ALL_OUTCOMES = (CONFIRMED, RETURNED, NACKED, REFUSED, INVALID)
OUTCOMES = (
    "message_id string, exchange string, routing_key string, body_size bigint, outcome string, reply_code int, "
    "reply_text string, published_at timestamp"
)
COLUMNS = tuple(column.split()[0] for column in OUTCOMES.split(", "))


def publish(df: DataFrame, options: Mapping[str, str], outcomes: str) -> dict[str, int]:
    """Publish every row of ``df`` and write its outcome to the Parquet folder ``outcomes``; returns the counts.

    Nothing fails because of a row: one that is returned, nacked, refused or invalid is told in the table.
    """
    from pyspark.sql import functions as F

    checked = parse(options, writing=True)
    job = checked.batch_key or uuid.uuid4().hex[:16]
    path = f"{outcomes.rstrip('/')}/job={job}"
    published(df, checked, job).write.mode("overwrite").parquet(path)
    counted = df.sparkSession.read.parquet(path).groupBy("outcome").agg(F.count("*").alias("rows")).collect()
    return {row["outcome"]: int(row["rows"]) for row in counted}


def publish_stream(df: DataFrame, options: Mapping[str, str]) -> DataFrame:
    """Outcomes of a streaming ``df``, whose query publishes the rows and counts each outcome in its progress.

    Write what it gives to any sink; ``query.lastProgress["observedMetrics"]["amqp"]`` has the counts of the batch.
    Spark gives a Python sink no such place, so ``format("amqp")`` cannot do it.
    """
    from pyspark.sql import functions as F

    if not df.isStreaming:  # its every action would publish again
        raise InputError("publish_stream is for streaming tables; publish is for others")
    outcomes = published(df, parse(options, writing=True), "stream")
    counts = [F.count_if(F.col("outcome") == outcome).alias(outcome) for outcome in ALL_OUTCOMES]
    return outcomes.observe("amqp", *counts)


def published(
    df: DataFrame, options: Options, job: str, carried: Sequence[str] = (), pace: RecordedPace | None = None
) -> DataFrame:
    """One outcome for each row, behind those of its columns that are ``carried``; each action publishes."""
    chosen = df.select(*[name for name in df.columns if name in WRITABLE])
    check_write_schema(chosen.schema)
    check_target(chosen.schema, options)
    if options.deduplicate:
        check_options(options, df.isStreaming)
    kept = "".join(f"`{name}` {df.schema[name].dataType.simpleString()}, " for name in carried)
    rows = df.select(*carried, *chosen.columns)
    return rows.mapInArrow(Publishing(options, job, tuple(carried), pace), kept + OUTCOMES)


class Publishing:
    """Publishes a task's batches and yields their outcomes; pickled to the workers."""

    def __init__(
        self, options: Options, job: str, carried: tuple[str, ...] = (), pace: RecordedPace | None = None
    ) -> None:
        self.options = options
        self.job = job
        self.carried = carried
        self.pace = pace
        self.began = now_ms() if options.batch_began is None else options.batch_began

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """With ``deduplicate`` the last outcome comes only when all was remembered as long as that took."""
        if not self.options.deduplicate:
            yield from self._outcomes(batches)
            return
        watch = Watch(self.options, began_of(self.options, self.began))
        yield from self._outcomes(watch.over(batches))
        watch.ask_again()

    def _outcomes(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa
        import pyarrow.compute as pc

        for chunk in Publisher(self.options, task_of(self.job)[1], self.pace).run(batches):
            count = chunk.batch.num_rows
            kept = [chunk.batch.column(name) for name in self.carried]
            now = int(time.time() * 1_000_000)
            arrays = [
                _filled(chunk.batch, "message_id", pa.array(chunk.ids, pa.string())),
                _filled(chunk.batch, "exchange", pa.repeat(self.options.exchange or "", count)),
                _filled(chunk.batch, "routing_key", pa.repeat(self.options.routing_key or "", count)),
                pc.binary_length(chunk.batch.column("body")).cast(pa.int64()).fill_null(0),
                pa.array(chunk.outcomes, pa.string()),
                pa.array([chunk.codes.get(row) for row in range(count)], pa.int32()),
                pa.array([chunk.texts.get(row) for row in range(count)], pa.string()),
                pa.repeat(pa.scalar(now, pa.timestamp("us", "UTC")), count),
            ]
            yield pa.RecordBatch.from_arrays([*kept, *arrays], names=[*self.carried, *COLUMNS])


def _filled(batch: pa.RecordBatch, name: str, default: pa.Array) -> pa.Array:
    """What was published under: the column, and where it says nothing what stood in for it."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if name not in batch.schema.names:
        return default
    return pc.coalesce(batch.column(name).cast(pa.string()), default)


WRITABLE = frozenset(name for name, _ in WRITE_COLUMNS)
