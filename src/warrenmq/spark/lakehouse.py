"""Delta and Iceberg tables written from Spark without their jars: tasks write files, the driver commits them.

Duty: one micro-batch into a table, once, however often Spark runs it: the commit names the query and the batch, and a
batch that the table knows already is not written again. The tasks write Parquet into the table's folder, so that no row
passes through the driver; a file that no commit names, left by a task that was repeated, is nothing to any reader.
Not here: the streaming query (``jobs/ingest.py``). The folder must be one that driver and tasks both see.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from warrenmq.spark.compat import arrow_schema
from warrenmq.spark.options import OptionError
from warrenmq.spark.requirements import needed
from warrenmq.spark.storage import filesystem_of

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

TABLES = ("parquet", "delta", "iceberg")
FILES = "path string, rows bigint, size bigint"
QUERY_PROPERTY = "warren.query"
BATCH_PROPERTY = "warren.batch"
ROWS_PER_FILE = 1_000_000


@dataclass
class File:
    """A Parquet file that a task wrote: below the table's folder, with so many rows and octets."""

    path: str
    rows: int
    size: int


class Lakehouse(Protocol):
    """A table that takes a batch once."""

    def open(self, schema: pa.Schema) -> str:
        """Make the table if there is none; the folder its data files belong in."""
        ...

    def has(self, query: str, batch: int) -> bool:
        """Was this batch of this query committed before?"""
        ...

    def commit(self, files: list[File], schema: pa.Schema, query: str, batch: int) -> None: ...


class Delta:
    """A Delta table in a folder; the batch is the version of an application's transaction."""

    def __init__(self, folder: str) -> None:
        needed("deltalake", "Delta tables")
        self.folder = folder

    def open(self, schema: pa.Schema) -> str:
        from deltalake import DeltaTable

        DeltaTable.create(self.folder, schema, mode="ignore")
        return self.folder

    def has(self, query: str, batch: int) -> bool:
        from deltalake import DeltaTable

        version = DeltaTable(self.folder).transaction_version(query)
        return version is not None and version >= batch

    def commit(self, files: list[File], schema: pa.Schema, query: str, batch: int) -> None:
        from deltalake import DeltaTable
        from deltalake.transaction import AddAction, CommitProperties, Transaction

        now = int(time.time() * 1000)
        actions: list[Any] = [
            AddAction(file.path, file.size, {}, now, True, json.dumps({"numRecords": file.rows})) for file in files
        ]
        properties = CommitProperties(
            custom_metadata={QUERY_PROPERTY: query, BATCH_PROPERTY: str(batch)},
            app_transactions=[Transaction(query, batch, now)],
        )
        DeltaTable(self.folder).create_write_transaction(actions, "append", schema, commit_properties=properties)


class Iceberg:
    """An Iceberg table of a catalog (``pyiceberg``'s configuration, or ``properties``); snapshots name their batch."""

    def __init__(self, identifier: str, catalog: str = "default", properties: Mapping[str, str] | None = None) -> None:
        needed("pyiceberg", "Iceberg tables")
        if "." not in identifier:
            raise OptionError(f"an Iceberg table is named namespace.table, not '{identifier}'")
        self.identifier = identifier
        self.catalog = catalog
        self.properties = dict(properties or {})

    def open(self, schema: pa.Schema) -> str:
        catalog = self._catalog()
        catalog.create_namespace_if_not_exists(self.identifier.rpartition(".")[0])
        table = catalog.create_table_if_not_exists(self.identifier, schema=schema)
        return f"{table.location().rstrip('/')}/data"

    def has(self, query: str, batch: int) -> bool:
        # The newest snapshot of this query says how far it got: batches are committed in order.
        for snapshot in sorted(self._table().snapshots(), key=_age, reverse=True):
            summary = snapshot.summary
            if summary is not None and summary.additional_properties.get(QUERY_PROPERTY) == query:
                return int(summary.additional_properties[BATCH_PROPERTY]) >= batch
        return False

    def commit(self, files: list[File], schema: pa.Schema, query: str, batch: int) -> None:
        table = self._table()
        folder = f"{table.location().rstrip('/')}/data"
        properties = {QUERY_PROPERTY: query, BATCH_PROPERTY: str(batch)}
        paths = [f"{folder}/{file.path}" for file in files]
        # The names are new for every attempt; looking for them in the whole table would take ever longer.
        table.add_files(paths, snapshot_properties=properties, check_duplicate_files=False)

    def _catalog(self) -> Any:
        from pyiceberg.catalog import load_catalog

        return load_catalog(self.catalog, **self.properties)

    def _table(self) -> Any:
        return self._catalog().load_table(self.identifier)


def _age(snapshot: Any) -> int:
    return int(snapshot.timestamp_ms)


class BatchWriter:
    """The function that ``foreachBatch`` calls."""

    def __init__(self, table: Lakehouse, checkpoint: str) -> None:
        self.table = table
        self.checkpoint = checkpoint

    def __call__(self, df: DataFrame, batch: int) -> None:
        schema = arrow_schema(df.schema)
        folder = self.table.open(schema)
        query = query_id(self.checkpoint)
        if self.table.has(query, batch):
            return  # it was committed, and the driver died before Spark's checkpoint had it
        written = df.mapInArrow(FileWriter(folder, f"{query[:8]}-{batch}"), FILES).collect()
        files = [File(row["path"], int(row["rows"]), int(row["size"])) for row in written]
        if files:
            self.table.commit(files, schema, query, batch)


class FileWriter:
    """A function that writes the rows of a task to files of their own; pickled to the workers."""

    def __init__(self, folder: str, name: str) -> None:
        self.folder = folder
        self.name = name

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa
        import pyarrow.parquet as parquet

        filesystem, folder = filesystem_of(self.folder)
        filesystem.create_dir(folder, recursive=True)
        written: list[tuple[str, int, int]] = []
        writer: Any = None
        path = ""
        rows = 0
        for batch in batches:
            if not batch.num_rows:
                continue
            if writer is None:
                path = f"{self.name}-{uuid.uuid4().hex}.parquet"
                writer = parquet.ParquetWriter(
                    f"{folder}/{path}", batch.schema, filesystem=filesystem, compression="zstd"
                )
            writer.write_batch(batch)
            rows += batch.num_rows
            if rows >= ROWS_PER_FILE:
                writer.close()
                written.append((path, rows, int(filesystem.get_file_info(f"{folder}/{path}").size)))
                writer, rows = None, 0
        if writer is not None:
            writer.close()
            written.append((path, rows, int(filesystem.get_file_info(f"{folder}/{path}").size)))
        if written:
            columns = [pa.array(column) for column in zip(*written, strict=True)]
            yield pa.RecordBatch.from_arrays(columns, names=["path", "rows", "size"])


def query_id(checkpoint: str) -> str:
    """The query's id, which Spark keeps in its checkpoint and which stays the same across restarts."""
    filesystem, folder = filesystem_of(checkpoint)
    with filesystem.open_input_stream(f"{folder}/metadata") as file:
        return str(json.loads(file.read())["id"])
