"""Messages as they were published, from a journal.

Duty: the rows that tell what a message was, once for each message, and their content headers as the columns of the
connector, with the keys of ``BCC``, which no header holds. Not here: what became of them (``auditing``), which of them
are wanted (``replaying``, ``supposing``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from warrenmq.spark.auditing.kinds import CODES
from warrenmq.spark.auditing.listing import File, counted
from warrenmq.spark.auditing.reading import SCHEMA, check, events, find
from warrenmq.spark.columns import PROPERTY_NAMES, properties_of
from warrenmq.spark.compat import arrow_schema
from warrenmq.spark.headers import from_maps, to_maps
from warrenmq.wire.fields import Field, Table

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.group import GroupedData

Parts = list[tuple[File, int, int | None]]


def parts_of(spark: SparkSession, paths: Sequence[str]) -> Parts:
    """The files of these journals that count, all rows of each."""
    files = counted(find(spark, paths))
    check(spark, files)
    return [(file, 0, None) for file in files]


def told(spark: SparkSession, parts: Parts, bodies: bool) -> DataFrame:
    """Every row that tells what a message was; a message may have several."""
    from pyspark.sql import functions as F

    rows = events(spark, parts, f"{SCHEMA}, header binary{', body binary' if bodies else ''}")
    there = F.col("header").isNotNull() & F.col("record").isNotNull()
    return rows.where(there & (F.col("kind") != CODES["duplicate"]))


def one_each(rows: DataFrame, columns: Sequence[str]) -> DataFrame:
    """Of the rows of one message, by its id, the first; with a body, where any has one."""
    from pyspark.sql import functions as F

    first = F.struct(*([F.col("body").isNull()] if "body" in rows.columns else []), "record", "at")
    return by_message(rows).agg(*(F.min_by(name, first).alias(name) for name in columns))


def by_message(rows: DataFrame) -> GroupedData:
    """The rows of one message, and of its dead letters, together: by its id."""
    from pyspark.sql import functions as F

    several = F.col("id") > 0
    by = (F.when(several, F.col("id")).alias("of_id"), F.when(~several, F.col("record")).alias("of_record"))
    return rows.groupBy("log", *by)


def unpacked(rows: DataFrame, ddl: str) -> DataFrame:
    """``header`` and ``routing_keys`` as ``routing_key`` and all properties; ``ddl`` names these and what is kept."""
    schema = rows.sparkSession.createDataFrame([], ddl).schema
    return rows.mapInArrow(Unpacked(arrow_schema(schema)), schema)


class Unpacked:
    """The columns ``header`` and ``routing_keys`` of a batch give way to those of ``schema``; pickled to workers."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        for batch in batches:
            headers = batch.column("header").to_pylist()
            keys = batch.column("routing_keys").to_pylist()
            columns = properties_of(headers, list(PROPERTY_NAMES), self.schema, {})
            columns["routing_key"] = pa.array([some[0] if some else "" for some in keys], pa.string())
            if any(some and len(some) > 1 for some in keys):
                _hidden(columns, keys)
            arrays = [columns[name] if name in columns else batch.column(name) for name in self.schema.names]
            yield pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def _hidden(columns: dict[str, pa.Array], keys: list[list[str] | None]) -> None:
    """The broker takes BCC out of what it keeps; the keys behind the first and those of CC were there."""

    def change(row: int, table: Table) -> Table | None:
        visible = table.get("CC")
        count = 1 + (len(visible.value) if visible is not None and isinstance(visible.value, list) else 0)
        hidden = (keys[row] or [])[count:]
        return {**table, "BCC": Field("A", [Field("S", key) for key in hidden])} if hidden else None

    rewrite_headers(columns, [row for row, some in enumerate(keys) if some and len(some) > 1], change)


def rewrite_headers(
    columns: dict[str, pa.Array], rows: list[int], change: Callable[[int, Table], Table | None]
) -> None:
    """The headers of these rows, where ``change`` says others."""
    import pyarrow as pa

    headers, types = columns["headers"].to_pylist(), columns["header_types"].to_pylist()
    for row in rows:
        table = change(row, from_maps(dict(headers[row] or []), dict(types[row] or [])))
        if table is not None:
            texts, letters = to_maps(table)
            headers[row], types[row] = list(texts.items()), list(letters.items())
    columns["headers"] = pa.array(headers, columns["headers"].type)
    columns["header_types"] = pa.array(types, columns["header_types"].type)
