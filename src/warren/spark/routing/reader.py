"""The data source behind ``route_files``: rows of Parquet files with their verdicts beside them.

Duty: reading in a task, in blocks that fit in memory, with the columns and types that Spark expects. Not here: verdicts
(``blocks.py``).
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from warren.spark.compat import arrow_schema
from warren.spark.routing.blocks import Verdicts
from warren.spark.routing.definitions import Plan
from warren.spark.routing.outcome import VERDICT_NAMES

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

FORMAT = "warren-routed"
BLOCK_ROWS = 1 << 20  # judged at once: the more, the more of them are alike
BLOCK_BYTES = 256 << 20
BATCH_ROWS = 1 << 16
BATCH_BYTES = 16 << 20
NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


class RoutedFiles(DataSource):
    """Not for users: ``route_files`` gives it its options."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def reader(self, schema: StructType) -> DataSourceReader:
        given = json.loads(self.options["plan"])
        plan = Plan(**{**given, "interceptors": tuple(given["interceptors"])})
        return Reader(plan, json.loads(self.options["files"]), int(self.options["tasks"]), schema)


class Piece(InputPartition):
    """Row groups of one file."""

    def __init__(self, path: str, groups: list[int] | None) -> None:
        super().__init__((path, groups))


class Reader(DataSourceReader):
    def __init__(self, plan: Plan, files: list[str], tasks: int, schema: StructType) -> None:
        self.plan = plan
        self.files = files
        self.tasks = tasks
        self.schema = schema

    def partitions(self) -> Sequence[InputPartition]:
        if len(self.files) >= self.tasks:
            return [Piece(path, None) for path in self.files]
        return [
            Piece(path, [group]) for path in self.files for group in range(pq.read_metadata(path).num_row_groups)
        ]  # fmt: skip

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if partition is None or partition.value is None:  # what Spark asks for where there are none
            return
        path, groups = partition.value
        digest = self.plan.digest() + repr((self.plan.vhost, self.plan.user))
        verdicts = _known.get(digest)
        if verdicts is None:
            _known.clear()
            verdicts = _known[digest] = Verdicts(self.plan)
        wanted = arrow_schema(self.schema)
        for block in _blocks(path, groups, wanted):
            for name, column in zip(VERDICT_NAMES, verdicts.of(block), strict=True):
                block = block.append_column(wanted.field(name), column)
            rows = max(1, min(BATCH_ROWS, block.num_rows * BATCH_BYTES // max(1, block.nbytes)))
            yield from block.to_batches(max_chunksize=rows)


# What a worker knows outlives a task, because the next task of the same query asks the same.
_known: dict[str, Verdicts] = {}


def _blocks(path: str, groups: list[int] | None, wanted: pa.Schema) -> Iterator[pa.Table]:
    """The columns of the table (``wanted`` without the verdict), in pieces that fit in memory."""
    with pq.ParquetFile(path) as file:
        chosen = list(range(file.metadata.num_row_groups)) if groups is None else groups
        size = sum(file.metadata.row_group(group).total_byte_size for group in chosen)
        rows = sum(file.metadata.row_group(group).num_rows for group in chosen)
        each = max(1, min(BATCH_ROWS, rows * BATCH_BYTES // max(1, size)))
        schema = pa.schema([field for field in wanted if field.name not in VERDICT_NAMES])
        there = {name.lower(): name for name in file.schema_arrow.names}
        columns = [there[field.name.lower()] for field in schema if field.name.lower() in there]
        held: list[pa.RecordBatch] = []
        for batch in file.iter_batches(each, row_groups=chosen, columns=columns, use_threads=False):
            held.append(batch)
            if sum(map(len, held)) >= BLOCK_ROWS or sum(one.nbytes for one in held) >= BLOCK_BYTES:
                yield _table(held, schema, path)
                held = []
        if held:
            yield _table(held, schema, path)


def _table(batches: list[pa.RecordBatch], schema: pa.Schema, path: str) -> pa.Table:
    """With the columns Spark expects: those of the file, those its folders name, null where neither has one."""
    table = pa.Table.from_batches(batches)
    there = {name.lower(): name for name in table.column_names}
    columns = []
    for field in schema:
        name = there.get(field.name.lower())
        if name is not None:
            # Spark's timestamps are microseconds; files may have more digits.
            safe = not pa.types.is_timestamp(field.type)
            columns.append(table.column(name).combine_chunks().cast(field.type, safe=safe))
        else:
            value = _of_folder(path, field.name)
            columns.append(pa.array([value] * table.num_rows, pa.string()).cast(field.type))
    return pa.Table.from_arrays(columns, schema=schema)


def _of_folder(path: str, name: str) -> str | None:
    """The value of a partition column, from the folder ``name=value``."""
    for folder in os.path.dirname(path).split(os.sep):
        key, equals, value = folder.partition("=")
        if equals and key.lower() == name.lower():
            return None if value == NO_VALUE else unquote(value)
    return None
