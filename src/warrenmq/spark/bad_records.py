"""Records with a cell that cannot be said in Spark: octets that are no UTF-8, a time beyond all times, a broken header.

AMQP lets them through and a broker may hold them for years, so that a query must be able to go on behind them. Duty:
what option ``badRecords`` says becomes of them: ``replace`` says the cell as well as it can be said (U+FFFD, or null),
``column`` does so and tells what was there in the column ``bad_record``, ``table`` takes the rows out and writes them,
with that column, to ``badRecordsPath``. Not here: finding such cells (``columns.py``).

A file is named for what was read (a lease, a range of offsets), so that a task that is repeated reports nothing twice.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from warrenmq.spark.options import Options
from warrenmq.spark.storage import Hidden, filesystem_of

if TYPE_CHECKING:
    import pyarrow as pa

COLUMN = "bad_record"

Faults = dict[int, dict[str, bytes]]  # row -> cell -> the octets that could not be said


def said(faults: Faults, count: int) -> list[str | None]:
    """The column: JSON with the octets of each bad cell as base64; None for rows that are well."""
    return [
        json.dumps({cell: base64.b64encode(octets).decode("ascii") for cell, octets in faults[row].items()})
        if row in faults
        else None
        for row in range(count)
    ]


class BadTable:
    """The bad rows of one partition, in a file that appears when all of it was read."""

    def __init__(self, path: str, name: str) -> None:
        self._filesystem, self._folder = filesystem_of(path)
        self._name = quote(name, safe="")[-200:]
        self._hidden: Hidden | None = None
        self._writer: Any = None

    def add(self, rows: pa.RecordBatch, records: list[str | None]) -> None:
        import pyarrow as pa
        import pyarrow.parquet as parquet

        rows = rows.append_column(COLUMN, pa.array(records, pa.string()))
        if self._writer is None:
            self._hidden = Hidden(self._filesystem, self._folder, f"{self._name}.parquet")
            self._writer = parquet.ParquetWriter(self._hidden.path, rows.schema, filesystem=self._filesystem)
        self._writer.write_batch(rows)

    def close(self) -> None:
        """All was read: the file takes its name."""
        if self._writer is not None and self._hidden is not None:
            self._writer.close()
            self._hidden.show()
            self._writer = None

    def drop(self) -> None:
        """The reading was broken off; nothing when it was closed."""
        if self._writer is not None and self._hidden is not None:
            self._writer.close()
            self._hidden.delete()


@contextmanager
def bad_table(options: Options, name: str) -> Iterator[BadTable | None]:
    """The table, where one is asked for: its file appears when all was read, and not when that was broken off."""
    if options.bad_records != "table" or options.bad_records_path is None:
        yield None
        return
    table = BadTable(options.bad_records_path, name)
    try:
        yield table
        table.close()
    finally:
        table.drop()
