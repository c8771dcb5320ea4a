"""The files of a journal's folder, as somebody who looks something up needs them: newest first, few rows at a time.

Duty: the files of each log, their indexes (mapped once, while they are there), and reading some row groups of one. What
is opened and read is counted. Not here: what files there are (``files``), what is looked for (``lookup``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from warrenmq.journal.bodies import BODY
from warrenmq.journal.files import current, files_of, index_of, logs_of
from warrenmq.journal.index import BLOCK, Gap, Index, IndexDamaged, gaps_of

HIGHEST = (1 << 63) - 1

Row = dict[str, Any]


class Reads:
    """The amounts that were looked at."""

    def __init__(self) -> None:
        self.files = 0  # whose index, or else rows, were asked
        self.opened = 0  # of them
        self.row_groups = 0  # that were read, of one column or more
        self.without_index = 0

    def told(self) -> dict[str, int]:
        return {
            "files": self.files,
            "opened": self.opened,
            "row_groups": self.row_groups,
            "without_index": self.without_index,
        }


class Unreadable(Exception):
    """A file that is no Parquet file, or a damaged one."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"{path} cannot be read")
        self.path = path


class JournalFile:
    """One file: so much of one segment of one log."""

    def __init__(self, path: Path, segment: int) -> None:
        self.path = path
        self.segment = segment
        self.index: Index | None = None
        self._file: pq.ParquetFile | None = None

    def blocks(self, find: Callable[[Index], Iterable[int]], reads: Reads) -> set[int] | None:
        """What the index finds; None: it has to be read through."""
        if self.index is not None:
            try:
                return set(find(self.index))
            except IndexDamaged:
                self.index = None
                reads.without_index += 1
        return None

    def opened(self, reads: Reads) -> pq.ParquetFile:
        if self._file is None:
            try:
                self._file = pq.ParquetFile(self.path)
            except (pa.ArrowException, ValueError):
                raise Unreadable(self.path) from None
            reads.opened += 1
            if self.index is not None and self.index.rows != self._file.metadata.num_rows:
                self.index = None  # of another file
        return self._file

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def groups(self, blocks: Iterable[int] | None, reads: Reads) -> list[int]:
        """The row groups that hold these blocks of rows, or all."""
        metadata = self.opened(reads).metadata
        counts = [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)]
        if blocks is None or self.index is None:
            return list(range(len(counts)))
        wanted = set(blocks)
        found, at = [], 0
        for number, count in enumerate(counts):
            if count and any(block in wanted for block in range(at // BLOCK, (at + count - 1) // BLOCK + 1)):
                found.append(number)
            at += count
        return found

    def read(self, group: int, columns: Sequence[str] | None, reads: Reads) -> pa.Table:
        """These columns of a row group, those of them that the file has; None: all but bodies."""
        file = self.opened(reads)
        names = file.schema_arrow.names
        reads.row_groups += 1
        wanted = [name for name in names if name != BODY] if columns is None else [n for n in columns if n in names]
        try:
            return file.read_row_group(group, wanted)
        except (pa.ArrowException, OSError):
            raise Unreadable(self.path) from None

    def span(self, reads: Reads) -> tuple[int, int]:
        """The times (µs) of its first and last event."""
        if self.index is not None:
            return self.index.first, self.index.last
        metadata = self.opened(reads).metadata
        at = self.opened(reads).schema_arrow.get_field_index("time")
        bounds = [metadata.row_group(number).column(at).statistics for number in range(metadata.num_row_groups)]
        if any(one is None or not one.has_min_max for one in bounds):
            return 0, HIGHEST
        ends = [(_micros(one.min), _micros(one.max)) for one in bounds]
        return min((low for low, _ in ends), default=0), max((high for _, high in ends), default=0)

    def gaps(self, reads: Reads) -> list[Gap]:
        """From when to when (µs) how many events are not told."""
        if self.index is not None:
            return self.index.gaps
        found = []
        for group in self.groups(None, reads):
            found += gaps_of(self.read(group, ["event", "time", "until", "number"], reads))
        return found


def _micros(moment: Any) -> int:
    return int(pa.scalar(moment, pa.timestamp("us", "UTC")).cast(pa.int64()).as_py())


class JournalFolder:
    """A folder with all its files, as they are now, but for those that cannot be read."""

    _indexes: dict[Path, tuple[tuple[int, int], Index]] = {}  # with size and time; of all folders

    def __init__(self, folder: Path, without: set[Path]) -> None:
        self.reads = Reads()
        self.unreadable = without
        self._logs: dict[str, list[JournalFile]] = {}
        newest: dict[str, float] = {}
        for log in logs_of(folder):
            files = [one for one in current(files_of(folder, log)) if one.path not in without]
            name = f"{log:016x}"
            self._logs[name] = [JournalFile(one.path, one.segment) for one in reversed(files)]
            newest[name] = max((_changed(one.path) for one in files), default=0.0)
        self.logs = sorted(newest, key=lambda log: (newest[log], log), reverse=True)
        """Named as in the files' names, that with the newest file first."""
        for one in self.files:
            one.index = self._index(index_of(one.path))
        self.reads.files = len(self.files)
        self.reads.without_index = sum(one.index is None for one in self.files)

    @property
    def files(self) -> list[JournalFile]:
        return [one for several in self._logs.values() for one in several]

    def close(self) -> None:
        for one in self.files:
            one.close()

    def of_log(self, log: str) -> list[JournalFile]:
        """Its files, the newest first."""
        return self._logs[log]

    def _index(self, path: Path) -> Index | None:
        try:
            about = path.stat()
        except OSError:
            return None
        state = (about.st_size, about.st_mtime_ns)
        known = self._indexes.pop(path, None)
        if known is None or known[0] != state:
            try:
                known = (state, Index(path))
            except (IndexDamaged, OSError, ValueError, KeyError):
                return None
        self._indexes[path] = known
        while len(self._indexes) > MOST_INDEXES:
            del self._indexes[next(iter(self._indexes))]
        return known[1]


MOST_INDEXES = 10_000  # that stay mapped


def _changed(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
