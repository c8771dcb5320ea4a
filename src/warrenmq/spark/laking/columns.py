"""Events as rows of a lake.

Duty: the journal's columns as Spark names them, and which log, file, row, day a row is of. Not here: where rows are
written (``job``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from warrenmq.journal.parquet import FIELDS
from warrenmq.spark.storage import literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TYPES = {
    "int64": "bigint",
    "int32": "int",
    "bool": "boolean",
    "binary": "binary",
    "string": "string",
    "timestamp[us, tz=UTC]": "timestamp",
    "list<item: string>": "array<string>",
    "list<element: string>": "array<string>",
    "dictionary<values=string, indices=int32, ordered=0>": "string",
}
FULL = ", ".join(f"{name} {TYPES[str(kind)]}" for name, kind, _ in FIELDS)
OWN = "log string, file string, row bigint"  # beside the journal's
NAMES = [name for name, _, _ in FIELDS]
OWN_NAMES = [column.split()[0] for column in OWN.split(", ")]
PARTITIONS = ("day", "vhost", "run")
DAY = 86_400_000_000  # µs
MOST_ROWS = 10_000_000  # of a file


def of_files(spark: SparkSession, uris: Sequence[str]) -> DataFrame:
    """The rows of a journal's files."""
    from pyspark.sql import functions as F

    name = F.col("_metadata.file_name")
    rows = spark.read.schema(FULL).parquet(*(literal(uri) for uri in uris))
    return rows.select(
        *NAMES,
        F.substring(name, len("journal-") + 1, 16).alias("log"),
        name.alias("file"),
        F.col("_metadata.row_index").alias("row"),
    )


def of_parts(spark: SparkSession, lake: str, paths: Sequence[str], schema: str = FULL) -> DataFrame:
    """The rows in these folders of a lake; ``vhost`` is in their names."""
    names = [column.split()[0] for column in schema.split(", ")]
    reading = spark.read.schema(f"{schema}, {OWN}").option("basePath", lake)
    return reading.parquet(*(literal(f"{lake}/{path}") for path in paths)).select(*names, *OWN_NAMES)


def in_order(rows: DataFrame, run: str) -> DataFrame:
    """To be written: of each day, vhost and log together, as they were told."""
    from pyspark.sql import functions as F

    number = F.floor(F.unix_micros("time") / F.lit(DAY)).cast("int")  # whatever the session's time zone is
    day = F.date_from_unix_date(number).cast("string")
    placed = rows.withColumns({"day": day, "run": F.lit(run)})
    gathered = placed.repartition("day", "vhost", "log")
    return gathered.sortWithinPartitions("day", "vhost", "log", "file", "row")
