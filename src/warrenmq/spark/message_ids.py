"""The ids of rows that have none of their own, the same when Spark repeats a task or a batch.

Duty: an id for each row of a task. ``messageIds=row`` counts the rows, which is cheap, and right as long as they come
in the same order each time: from files, streams and leases they do. A shuffle (``repartition``, a join, a group-by)
promises the same rows in the same partition and not their order, and an id that wanders to another row is worse than
none: who drops repeats by id would drop a row that never came. ``messageIds=content`` makes it of what is in the row;
rows that are the same in everything are told apart by how many came before, and it does not matter which is which.

Not here: what comes before the number (``sink.py``), and whether there is an id already (``encode.py``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from warrenmq.client.rows import numbered

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

MIX = 0x9E3779B97F4A7C15  # odd, so that multiplying loses nothing
MASK = 2**64 - 1


class RowIds:
    """A counter of rows under a prefix that names job, batch and partition."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.row = 0

    def of(self, batch: pa.RecordBatch) -> list[str]:
        ids = numbered(self.prefix, self.row, batch.num_rows)
        self.row += batch.num_rows
        return ids


class ContentIds:
    """The ids of what a task publishes. Remembers a number for each row of the task, about 100 octets."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self._seen: set[int] = set()
        self._repeats: dict[int, int] = {}

    def of(self, batch: pa.RecordBatch) -> list[str]:
        seen, ids = self._seen, []
        for number in content_numbers(batch):
            text = f"{self.prefix}{number:016x}"
            if number in seen:
                repeat = self._repeats[number] = self._repeats.get(number, 0) + 1
                text = f"{text}-{repeat}"
            else:
                seen.add(number)
            ids.append(text)
        return ids


def content_numbers(batch: pa.RecordBatch) -> list[int]:
    """64 bits for each row, of all its columns whatever their order."""
    import numpy as np

    numbers = np.zeros(batch.num_rows, np.uint64)
    for place, name in enumerate(sorted(batch.schema.names), 1):
        numbers += _hashes(batch.column(name)) * np.uint64(MIX * (2 * place + 1) & MASK)
    found: list[int] = numbers.tolist()
    return found


def _hashes(column: pa.Array) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """A hash of each that every process agrees on, as with Python's own they do not."""
    import numpy as np
    import pyarrow as pa
    from pandas.util import hash_array

    kinds = pa.types
    cells = column.to_pylist()
    if not any(is_a(column.type) for is_a in (kinds.is_string, kinds.is_large_string, kinds.is_binary)):
        cells = [None if cell is None else repr(cell) for cell in cells]
    array = np.empty(len(cells), object)
    array[:] = cells
    hashes: np.ndarray[Any, np.dtype[np.uint64]] = hash_array(array, categorize=False)
    return hashes
