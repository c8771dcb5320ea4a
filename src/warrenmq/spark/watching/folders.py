"""The files of journals as they are at this moment, and where in them the rows of a segment are.

Duty: a listing that is not torn by the writer, which joins files, removes those it has joined, and goes on meanwhile;
how many rows each segment has, by the files' footers; rows of a segment by their numbers, whichever files they are in.
A file that was made of others has their rows in their order, so a segment's rows have numbers that never change. Not
here: which rows were read (``source``), what is in them (``rows``).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from warrenmq.journal.files import REMOVED
from warrenmq.spark.auditing.listing import File, JournalError, counted, named
from warrenmq.spark.auditing.reading import check_footer
from warrenmq.spark.storage import filesystem_of

if TYPE_CHECKING:
    import pyarrow as pa

TRIES = 50  # listings until two are the same, and readings of what is just being joined
PAUSE = 0.1  # seconds between them
Listing = dict[str, dict[int, list[File]]]  # by log and segment
T = TypeVar("T")
EPOCH = datetime.fromtimestamp(0, UTC)


class NotThere(Exception):
    """Rows that no file has: retention took them, or somebody moved their files away."""


@dataclass(frozen=True)
class Footer:
    """The facts that a file tells of itself."""

    rows: int
    last: int  # the time of its last event, µs; 0 when it has none


class Journals:
    """The journals in some folders, and in folders within them."""

    def __init__(self, paths: Sequence[str], tries: int = TRIES) -> None:
        self.paths = tuple(paths)
        self.tries = tries
        self._footers: dict[str, Footer] = {}

    def listing(self) -> Listing:
        """By log and segment, the files to be read: what two listings in a row agree on, as a file may be missed that
        appears while one is made."""
        uris = self._uris()
        for _ in range(TRIES):
            before, uris = uris, self._uris()
            if uris == before:
                break
        logs: Listing = {}
        for file in counted(named(uris)):
            if file.segment != REMOVED:
                logs.setdefault(file.log, {}).setdefault(file.segment, []).append(file)
        return logs

    def asked(self, question: Callable[[Listing], T]) -> T:
        """What the files say that are listed. Those that vanish before they are looked at have been joined: then it is
        asked anew."""
        tries = 0
        while True:
            try:
                return question(self.listing())
            except FileNotFoundError:
                tries += 1
                if tries == self.tries:
                    raise
                time.sleep(PAUSE)

    def _uris(self) -> list[str]:
        return sorted(uri for path in self.paths for uri in _uris(path))

    def footer(self, file: File) -> Footer:
        """Asked once of each file."""
        if file.name not in self._footers:
            self._footers[file.name] = _footer(file)
        return self._footers[file.name]

    def rows(self, files: Sequence[File]) -> int:
        """How many rows a segment has so far. Files that do not begin where it begins have none that can be counted."""
        return sum(self.footer(file).rows for file in _from_its_beginning(files))

    def last(self, files: Sequence[File]) -> int:
        """The time of the latest event in some files."""
        return max((self.footer(file).last for file in files), default=0)

    def read(self, log: str, segment: int, first: int, last: int, columns: Sequence[str]) -> Iterator[pa.Table]:
        """The rows of a segment from one number up to another, by pieces; all of them, or ``NotThere``. Files that
        vanish while they are read have been joined: the rest is in the one that was made of them."""
        tries = 0
        while first < last:
            try:
                for piece in self._pieces(log, segment, first, last, columns):
                    yield piece
                    first += piece.num_rows
                    tries = 0
            except FileNotFoundError:
                pass
            if first < last:
                tries += 1
                if tries == self.tries:
                    raise NotThere(f"log {log}: segment {segment} from row {first} to {last}")
                time.sleep(PAUSE)

    def _pieces(self, log: str, segment: int, first: int, last: int, columns: Sequence[str]) -> Iterator[pa.Table]:
        at = 0
        for file in _from_its_beginning(self.listing().get(log, {}).get(segment, [])):
            rows = self.footer(file).rows
            if first < at + rows and at < last:
                yield from _read(file, max(first - at, 0), min(rows, last - at), columns)
            at += rows


def _from_its_beginning(files: Sequence[File]) -> list[File]:
    """Those that lie one behind the other from position 0 on."""
    found: list[File] = []
    at = 0
    for file in files:
        if file.begin != at:
            break
        found.append(file)
        at = file.end
    return found


def _uris(path: str) -> Iterator[str]:
    from pyarrow import fs

    filesystem, folder = filesystem_of(path)
    try:
        infos = filesystem.get_file_info(fs.FileSelector(folder, recursive=True))
    except FileNotFoundError:
        raise JournalError(f"there is no {path}") from None
    prefix = path[: len(path) - len(folder)] if path.endswith(folder) and "://" in path else ""
    for info in infos:
        if info.type == fs.FileType.File:
            yield prefix + str(info.path)


def _footer(file: File) -> Footer:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with _opened(file) as opened:
            found = pq.ParquetFile(opened).metadata
    except FileNotFoundError:
        raise  # joined meanwhile
    except (OSError, pa.ArrowException) as error:
        raise JournalError(f"{file.name} cannot be read: {str(error).splitlines()[0]}") from None
    check_footer(file.name, found)
    at = next((n for n in range(found.num_columns) if found.schema.column(n).name == "time"), None)
    last = 0
    for group in range(found.num_row_groups if at is not None else 0):
        told = found.row_group(group).column(at).statistics
        if told is not None and told.has_min_max:
            last = max(last, (told.max - EPOCH) // timedelta(microseconds=1))
    return Footer(found.num_rows, last)


def _read(file: File, first: int, last: int, columns: Sequence[str]) -> Iterator[pa.Table]:
    """Some rows of a file, a row group at a time."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with _opened(file) as opened:
        parquet = pq.ParquetFile(opened)
        have = [name for name in columns if name in parquet.schema_arrow.names]
        at = 0
        for group in range(parquet.num_row_groups):
            rows = parquet.metadata.row_group(group).num_rows
            if first < at + rows and at < last:
                start = max(first - at, 0)
                table = parquet.read_row_group(group, columns=have).slice(start, min(last - at, rows) - start)
                for name in columns:
                    if name not in have:
                        table = table.append_column(name, pa.nulls(table.num_rows, pa.string()))
                yield table
            at += rows


def _opened(file: File) -> Any:
    filesystem, path = filesystem_of(file.uri)
    return filesystem.open_input_file(path)
