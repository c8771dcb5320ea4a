"""The data source behind ``route_files``: rows of Parquet files with their verdicts beside them.

Duty: reading in a task, in blocks that fit in memory, with the columns and types that Spark expects. Not here: verdicts
(``blocks.py``).

Spark starts a Python process to make the source and one to plan it, one after the other, before the first task begins;
what only a task needs (``blocks.py`` and with it Arrow's functions: a tenth of a second) is imported there.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from warrenmq.spark.compat import arrow_schema
from warrenmq.spark.routing.definitions import Plan
from warrenmq.spark.routing.outcome import VERDICT_NAMES

FORMAT = "warren-routed"
BLOCK_ROWS = 1 << 17  # judged at once: enough that a call's cost does not count, few enough for a processor's cache
BLOCK_BYTES = 64 << 20
BATCH_ROWS = 1 << 16
BATCH_BYTES = 16 << 20
REPEATED = ("exchange", "routing_key")  # read as the file holds them where that is a list of few texts and numbers
NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


class RoutedFiles(DataSource):
    """A data source, not for users: ``route_files`` gives it its options."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def reader(self, schema: StructType) -> DataSourceReader:
        given = json.loads(self.options["plan"])
        plan = Plan(**{**given, "interceptors": tuple(given["interceptors"])})
        table = StructType.fromJson(json.loads(self.options["table"]))
        return Reader(plan, json.loads(self.options["files"]), int(self.options["tasks"]), table, schema)


class Piece(InputPartition):
    """Row groups of one file."""

    def __init__(self, path: str, groups: list[int] | None) -> None:
        super().__init__((path, groups))


class Reader(DataSourceReader):
    """The planner and reader: files into tasks, row groups into verdicts."""

    def __init__(self, plan: Plan, files: list[str], tasks: int, table: StructType, wanted: StructType) -> None:
        self.plan = plan
        self.files = files
        self.tasks = tasks
        self.table = table
        self.wanted = wanted

    def partitions(self) -> Sequence[InputPartition]:
        if len(self.files) >= self.tasks:
            return [Piece(path, None) for path in self.files]
        return [Piece(path, [group]) for path in self.files for group in range(pq.read_metadata(path).num_row_groups)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if partition is None or partition.value is None:  # what Spark asks for where there are none
            return
        from warrenmq.spark.routing.blocks import known

        path, groups = partition.value
        verdicts = known(self.plan)
        wanted = arrow_schema(self.wanted)
        of_verdict = [at for at, name in enumerate(VERDICT_NAMES) if name in wanted.names]
        for block in _blocks(path, groups, self._read(wanted.names)):
            own = [field for field in wanted if field.name not in VERDICT_NAMES]
            columns = [block.column(field.name).cast(field.type) for field in own]
            table = pa.Table.from_arrays([*columns, *verdicts.of(block, of_verdict)], schema=wanted)
            rows = max(1, min(BATCH_ROWS, table.num_rows * BATCH_BYTES // max(1, table.nbytes)))
            yield from table.to_batches(max_chunksize=rows)

    def _read(self, wanted: list[str]) -> pa.Schema:
        """What is read of the table: what is wanted, and what verdicts look at."""
        from warrenmq.spark.routing.facts import FACTS

        looked_at = FACTS - {"body"} if "body_size" in self.table.names else FACTS
        return pa.schema(
            [field for field in arrow_schema(self.table) if field.name in wanted or field.name in looked_at]
        )


def _blocks(path: str, groups: list[int] | None, schema: pa.Schema) -> Iterator[pa.Table]:
    """These columns of a file, in pieces that fit in memory."""
    with pq.ParquetFile(path, read_dictionary=_repeated(path)) as file:
        chosen = list(range(file.metadata.num_row_groups)) if groups is None else groups
        size = sum(file.metadata.row_group(group).total_byte_size for group in chosen)
        rows = sum(file.metadata.row_group(group).num_rows for group in chosen)
        each = max(1, min(BATCH_ROWS, rows * BATCH_BYTES // max(1, size)))
        there = {name.lower(): name for name in file.schema_arrow.names}
        columns = [there[field.name.lower()] for field in schema if field.name.lower() in there]
        held: list[pa.RecordBatch] = []
        for batch in file.iter_batches(each, row_groups=chosen, columns=columns or None, use_threads=False):
            held.append(batch)
            if sum(map(len, held)) >= BLOCK_ROWS or sum(one.nbytes for one in held) >= BLOCK_BYTES:
                yield _table(held, schema, path)
                held = []
        if held:
            yield _table(held, schema, path)


def _repeated(path: str) -> list[str]:
    """Those columns that the file holds in so little room that few texts must be behind them."""
    metadata = pq.read_metadata(path)
    sizes = dict.fromkeys(REPEATED, 0)
    for group in range(metadata.num_row_groups):
        for at in range(metadata.num_columns):
            chunk = metadata.row_group(group).column(at)
            if chunk.path_in_schema in sizes:
                sizes[chunk.path_in_schema] += chunk.total_uncompressed_size
    return [name for name, size in sizes.items() if 0 < size < 3 * metadata.num_rows]


def _table(batches: list[pa.RecordBatch], schema: pa.Schema, path: str) -> pa.Table:
    """With the columns Spark expects: those of the file, those its folders name, null where neither has one."""
    table = pa.Table.from_batches(batches)
    there = {name.lower(): name for name in table.column_names}
    columns = []
    for field in schema:
        name = there.get(field.name.lower())
        if name is not None:
            column = table.column(name).combine_chunks()
            if not pa.types.is_dictionary(column.type):
                # Spark's timestamps are microseconds; files may have more digits.
                column = column.cast(field.type, safe=not pa.types.is_timestamp(field.type))
            columns.append(column)
        else:
            value = _of_folder(path, field.name)
            columns.append(pa.array([value] * table.num_rows, pa.string()).cast(field.type))
    return pa.Table.from_arrays(columns, names=schema.names)


def _of_folder(path: str, name: str) -> str | None:
    """The value of a partition column, from the folder ``name=value``."""
    for folder in os.path.dirname(path).split(os.sep):
        key, equals, value = folder.partition("=")
        if equals and key.lower() == name.lower():
            return None if value == NO_VALUE else unquote(value)
    return None
