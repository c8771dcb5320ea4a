"""Bodies on their way into a file of the journal: some rows at a time, so that no more are in memory than a row group.

Duty: cutting rows into row groups by what their bodies take, and fetching the bodies of each group when it is written:
from the log, where a long one is in pieces, or from the files that are being joined. Not here: whose bodies are told
(``columns``), the other columns (``parquet``).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy
import pyarrow as pa
import pyarrow.parquet as pq

from warrenmq.journal.columns import LONGEST_BODY, Body
from warrenmq.journal.files import FULL
from warrenmq.log.files import Files
from warrenmq.log.format import LogError, seed
from warrenmq.log.layout import ADDRESS, BATCH_HEADER, FILE_HEADER, RECORD_BITS
from warrenmq.log.listing import Listing
from warrenmq.log.record import WHOLE, check, chunk_bytes, is_chunk, number_of, record_size
from warrenmq.log.segment import Part, file_name
from warrenmq.log.sums import Sums
from warrenmq.log.told_bodies import DAMAGED, LACKING

BODY = "body"
MOST_ROWS = 1 << 16  # of a row group: whoever looks for one message reads few of them, whole
MOST_OCTETS = 16 << 20  # of bodies in a row group, and one body more
SEGMENTS = 4  # whose pieces are remembered


class Bodies:
    """The bodies of the rows of one file, in their order. ``lengths``: octets of each row's, or more; None: it has
    none."""

    lengths: Any = None

    def take(self, count: int) -> tuple[pa.Array, dict[int, str]]:
        """Of the next so many rows, and of which of them something is to be said instead."""
        return pa.nulls(count, pa.binary()), {}


NO_BODIES = Bodies()


def groups(rows: pa.Table, bodies: Bodies) -> Iterator[pa.Table]:
    """The rows with their bodies, a row group at a time."""
    for count in cuts(len(rows), bodies.lengths):
        some, rows = rows.slice(0, count), rows.slice(count)
        octets, lacking = bodies.take(count)
        if lacking:
            at = some.schema.get_field_index("text")
            texts = [lacking.get(row, text) for row, text in enumerate(some.column(at).to_pylist())]
            some = some.set_column(at, some.schema.field(at), pa.array(texts, pa.string()))
        yield some.append_column(pa.field(BODY, pa.binary()), octets)


def cuts(count: int, lengths: Any) -> Iterator[int]:
    """How many rows each group has."""
    ends = None if lengths is None else numpy.cumsum(lengths)
    at = 0
    while at < count:
        end = min(count, at + MOST_ROWS)
        if ends is not None:
            before = int(ends[at - 1]) if at else 0
            end = min(end, int(numpy.searchsorted(ends, before + MOST_OCTETS)) + 1)
        yield end - at
        at = end


class Walked:
    """A segment of the log in which the pieces of long bodies have been looked for."""

    def __init__(self, parts: list[Part], sums: Sums) -> None:
        self.parts = parts
        self.sums = sums
        self.end = 0  # up to here
        self.places: dict[int, tuple[int, int]] = {}  # by record: offset and length


class Pieces:
    """The pieces of long bodies in a log that is being written: a segment is walked once for all that stand there."""

    def __init__(self, folder: Path, files: Files) -> None:
        self._folder = str(folder)
        self._files = files
        self._walked: dict[int, Walked] = {}

    def read(self, address: int) -> bytes | None:
        """None: it is gone, or damaged."""
        number, record = address >> 32, address & RECORD_BITS
        try:
            for _ in range(2):
                walked = self._walked.get(number)
                if walked is not None and record in walked.places:
                    found = self._piece(walked, number, record)
                    if found is not None:
                        return found
                    del self._walked[number]  # it was compacted since: all stand elsewhere
                self._walk(number)
        except (OSError, LogError):
            pass
        return None

    def _walk(self, number: int) -> None:
        """On from where the last walk ended."""
        listing = Listing(self._folder, self._files)
        cursor = listing.cursor(number)
        if cursor is None:
            return
        walked = self._walked.pop(number, None) or Walked(cursor.parts, Sums(seed(listing.manifest.log_id)))
        self._walked[number] = walked
        while len(self._walked) > SEGMENTS:
            del self._walked[next(iter(self._walked))]
        walked.parts = cursor.parts
        cursor.tolerated = FULL
        cursor.at = walked.end
        try:
            while cursor.next():
                at, data = 0, cursor.messages
                while at < len(data):
                    size = int(record_size(data, at))
                    if is_chunk(data[at]):
                        walked.places[int(number_of(data, at))] = (int(cursor.begin) + BATCH_HEADER + at, size)
                    at += size
        finally:
            walked.end = int(cursor.at)
            cursor.close()

    def _piece(self, walked: Walked, number: int, record: int) -> bytes | None:
        offset, length = walked.places[record]
        part = max((one for one in walked.parts if one.base <= offset), key=lambda one: int(one.base))
        descriptor = self._files.open(f"{self._folder}/{file_name(number, part.part)}", False)
        try:
            data = self._files.read(descriptor, length, FILE_HEADER + offset - part.base)
        finally:
            self._files.close(descriptor)
        if len(data) < length or record_size(data, 0) != length or number_of(data, 0) != record:
            return None
        return chunk_bytes(data, 0) if is_chunk(data[0]) and check(walked.sums, data, 0, length) == WHOLE else None


class LoggedBodies(Bodies):
    """The bodies that were told by the log. ``where``: the place of each row in the file."""

    def __init__(self, bodies: list[Body], count: int, where: Any, pieces: Pieces) -> None:
        self._bodies = {int(one.row if where is None else where[one.row]): one for one in bodies}
        self._pieces = pieces
        self._at = 0
        self.lengths = numpy.zeros(count, numpy.int64)
        for row, one in self._bodies.items():
            self.lengths[row] = one.size

    def take(self, count: int) -> tuple[pa.Array, dict[int, str]]:
        found: list[bytes | None] = []
        lacking: dict[int, str] = {}
        for row in range(self._at, self._at + count):
            one = self._bodies.get(row)
            octets = None if one is None else self._octets(one)
            if one is not None and octets is None:
                lacking[row - self._at] = LACKING[DAMAGED]
            found.append(octets)
        self._at += count
        return pa.array(found, pa.binary()), lacking

    def _octets(self, body: Body) -> bytes | None:
        if not body.pieces:
            return body.octets
        places = numpy.frombuffer(body.pieces, f"<i{ADDRESS}").tolist()
        parts: list[bytes] = []
        for place in places:
            part = self._pieces.read(place)
            if part is None:
                return None
            parts.append(part)
        whole = b"".join(parts)
        return whole if len(whole) == body.size else None


class JoinedBodies(Bodies):
    """The bodies of files that become one. ``sizes``: of the messages of all their rows."""

    def __init__(self, paths: list[Path], sizes: Any) -> None:
        self.lengths = numpy.where(sizes <= LONGEST_BODY, sizes, 0)
        self._arrays = _columns(paths)
        self._rest: pa.ChunkedArray = pa.chunked_array([], pa.binary())

    def take(self, count: int) -> tuple[pa.Array, dict[int, str]]:
        while len(self._rest) < count:
            self._rest = pa.chunked_array([*self._rest.chunks, *next(self._arrays).chunks], pa.binary())
        some, self._rest = self._rest.slice(0, count), self._rest.slice(count)
        return some, {}


def _columns(paths: list[Path]) -> Iterator[pa.ChunkedArray]:
    """The bodies of each row group; files of earlier versions have none."""
    for path in paths:
        with pq.ParquetFile(path) as file:
            for group in range(file.num_row_groups):
                if BODY in file.schema_arrow.names:
                    yield file.read_row_group(group, [BODY]).column(BODY)
                else:
                    yield pa.chunked_array([pa.nulls(file.metadata.row_group(group).num_rows, pa.binary())])


def have_bodies(paths: list[Path]) -> bool:
    """Has any row of these files one?"""
    for path in paths:
        metadata = pq.read_metadata(path)
        for number in range(metadata.num_row_groups):
            group = metadata.row_group(number)
            for at in range(group.num_columns):
                column = group.column(at)
                if column.path_in_schema == BODY:
                    known = column.statistics
                    if known is None or known.null_count < group.num_rows:
                        return True
    return False
