"""The index beside a file of the journal: in which rows a message may be found, without reading the file.

Duty: writing it for a table, and finding in it. Sorted numbers, each with the block of rows where it stands, are found
by binary search in a file that is mapped into memory, not read:

    keys      hashes of message_id, correlation_id, of the values of listed headers, of queues that were deleted, and of
              a thousand offsets in a row of streams that were read
    ids       our ids of the messages that were published or written
    messages  the records that anything happened to

Ids and records are counted up, so that a run of them takes one entry; of keys each takes one a block, ten octets. What
is found is checked by whoever reads the rows: two texts may have one hash. Not here: reading rows (``lookup``).

    file    = magic version crc length head *section       numbers little-endian; crc: of the head
    head    = JSON: rows, first, last (µs), headers, and of each section its parts and their places
    section = values (u64) counts (u16, not of keys) blocks (u16) first value of each page (u64) crc of each page (u32)

A page that does not check, and a head that does not, raise ``IndexDamaged``: the file is then read instead.
"""

from __future__ import annotations

import json
import mmap
import os
import zlib
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy
import pyarrow as pa
import pyarrow.compute as pc

from warrenmq.journal.files import being_made, index_of
from warrenmq.journal.hashes import hash_of, hashes
from warrenmq.journal.headers import named_headers
from warrenmq.journal.life import INTERRUPTED

MAGIC = b"WARRENJI"
VERSION = 1
BLOCK = 1 << 16  # rows that one entry stands for
RUN = 1 << 10  # numbers in a row that one entry may stand for; a run does not cross a multiple of it
PAGE = 1 << 12  # entries that are checked together
ALIGNED = 8
MASK = (1 << 64) - 1  # ids and records are looked for as numbers without sign

KEYS = 1024
TEXTS = ("message_id", "correlation_id")
DELETED = "queue deleted"
READ = "read"
OFFSETS = 1 << 10  # of a stream that share a key
GAPS = ("gap", INTERRUPTED)


class IndexDamaged(Exception):
    """A file that is no index, or not as it was written."""


class Gap(NamedTuple):
    """A time (µs) of which so many events are not told (None: nobody knows how many), and what the journal calls it."""

    since: int
    until: int
    events: int | None
    event: str = "gap"


# -- what is looked for


@lru_cache(KEYS)  # asked of every file
def key_of(kind: str, value: str) -> int:
    """The hash under which a message_id or correlation_id stands."""
    return hash_of(value.encode("utf-8", "surrogateescape"), kind.encode())


@lru_cache(KEYS)  # asked of every file
def header_key(name: str, value: str) -> int:
    return hash_of(value.encode("utf-8", "surrogateescape"), _of_header(name.encode("utf-8", "surrogateescape")))


def deleted_key(vhost: str, queue: str) -> int:
    """Under which the deletion of a queue stands."""
    return key_of(DELETED, f"{vhost}\0{queue}")


def read_key(vhost: str, queue: str, offset: int) -> int:
    """Under which it stands that this offset of a stream, or one of its neighbours, was read."""
    return key_of(READ, f"{vhost}\0{queue}\0{offset // OFFSETS}")


def _of_header(name: bytes) -> bytes:
    return b"header\0" + name


# -- writing


def write_index(path: Path, table: pa.Table, headers: Sequence[str]) -> None:
    """The index of the rows that are, or will be, in the Parquet file of this path: whole beside it, or not at all."""
    sections = {
        "keys": _keys(table, headers),
        "ids": _runs(table.column("id")),
        "messages": _runs(table.column("message")),
    }
    times = pc.min_max(table.column("time").cast(pa.int64())).as_py()
    head: dict[str, Any] = {
        "rows": table.num_rows,
        "first": times["min"],
        "last": times["max"],
        "headers": list(headers),
        "gaps": gaps_of(table),
    }
    places: dict[str, dict[str, Any]] = {}
    octets = bytearray()
    for name, parts in sections.items():
        parts |= _pages(parts)
        places[name] = {"check": _check_of(parts)}
        for part, values in parts.items():
            octets += bytes(-len(octets) % ALIGNED)
            places[name][part] = [values.dtype.str, len(octets), len(values)]
            octets += values.tobytes()
    head["sections"] = places
    text = json.dumps(head).encode()
    text += b" " * (-(len(MAGIC) + 12 + len(text)) % ALIGNED)
    numbers = numpy.array([VERSION, zlib.crc32(text), len(text)], "<u4").tobytes()
    target = index_of(path)
    unfinished = being_made(target)
    with unfinished.open("wb") as file:
        file.write(MAGIC + numbers + text + octets)
        file.flush()
        os.fsync(file.fileno())
    unfinished.rename(target)


def _keys(table: pa.Table, headers: Sequence[str]) -> dict[str, Any]:
    found: list[Any] = []
    rows: list[Any] = []

    def add(values: pa.Array, at: Any, seed: bytes) -> None:
        if len(values):
            found.append(hashes(values, seed))
            rows.append(at)

    for text in TEXTS:
        column = table.column(text).combine_chunks()
        add(column.drop_null(), _there(column), text.encode())
    deleted = _rows_of(table, DELETED)
    gone = table.take(pa.array(deleted)).select(["vhost", "queue"]).to_pylist()
    add(
        pa.array([f"{row['vhost'] or ''}\0{row['queue']}".encode() for row in gone], pa.binary()),
        deleted,
        DELETED.encode(),
    )
    add(*_reads(table, _rows_of(table, READ)), READ.encode())
    for name, (texts, at) in _listed(table, [name.encode("utf-8", "surrogateescape") for name in headers]).items():
        add(pa.array(texts, pa.binary()), numpy.array(at, numpy.int64), _of_header(name))
    if not found:
        return {"values": numpy.empty(0, "<u8"), "blocks": numpy.empty(0, "<u2")}
    values = numpy.concatenate(found)
    blocks = (numpy.concatenate(rows) // BLOCK).astype("<u2")
    order = numpy.argsort(values, kind="stable")  # of each text the rows are in order, and so are the blocks
    values, blocks = values[order], blocks[order]
    fresh = numpy.ones(len(values), bool)
    fresh[1:] = (values[1:] != values[:-1]) | (blocks[1:] != blocks[:-1])
    return {"values": values[fresh].astype("<u8"), "blocks": blocks[fresh]}


def _reads(table: pa.Table, at: Any) -> tuple[pa.Array, Any]:
    """What was read of which stream: a text for some offsets in a row, and a row where one of them stands."""
    if not len(at):
        return pa.array([], pa.binary()), at
    rows = table.take(pa.array(at)).select(["vhost", "queue", "position"])
    places = rows.column("position").fill_null(0).to_numpy() // OFFSETS
    names = [rows.column(name).combine_chunks().dictionary_encode() for name in ("vhost", "queue")]
    codes = [one.indices.fill_null(-1).to_numpy(zero_copy_only=False) for one in names]
    same = numpy.stack([*codes, places, at // BLOCK], axis=1)
    first = numpy.sort(numpy.unique(same, axis=0, return_index=True)[1])
    texts = [f"{row['vhost'] or ''}\0{row['queue']}" for row in rows.take(pa.array(first)).to_pylist()]
    return pa.array([f"{text}\0{place}".encode() for text, place in zip(texts, places[first], strict=True)]), at[first]


def _listed(table: pa.Table, names: list[bytes]) -> dict[bytes, tuple[list[bytes], list[int]]]:
    """Values and rows of each of these headers."""
    found: dict[bytes, tuple[list[bytes], list[int]]] = {name: ([], []) for name in names}
    if names:
        column = table.column("header").combine_chunks()
        there = _there(column)
        for row, name, value in named_headers(column.drop_null().to_pylist(), names):
            found[name][0].append(value)
            found[name][1].append(int(there[row]))
    return found


def _there(column: pa.Array) -> Any:
    """The rows that have a value."""
    return numpy.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False))


def _runs(column: pa.ChunkedArray) -> dict[str, Any]:
    """The numbers of a column as runs, each with its block."""
    values = column.fill_null(0).to_numpy().view(numpy.uint64)
    there = column.is_valid().to_numpy()
    firsts, counts, blocks = [], [], []
    for block in range(-(-len(values) // BLOCK)):
        rows = slice(block * BLOCK, (block + 1) * BLOCK)
        part = numpy.sort(values[rows][there[rows]], kind="stable")
        if not len(part):
            continue
        begins = numpy.ones(len(part), bool)
        step = part[1:] - part[:-1]
        begins[1:] = (step > 1) | ((step == 1) & (part[1:] % numpy.uint64(RUN) == 0))
        at = numpy.flatnonzero(begins)
        last = part[numpy.append(at[1:], len(part)) - 1]
        firsts.append(part[at])
        counts.append(last - part[at] + numpy.uint64(1))
        blocks.append(numpy.full(len(at), block))
    if not firsts:
        return {"values": numpy.empty(0, "<u8"), "counts": numpy.empty(0, "<u2"), "blocks": numpy.empty(0, "<u2")}
    first, block_of = numpy.concatenate(firsts), numpy.concatenate(blocks)
    order = numpy.lexsort((block_of, first))
    return {
        "values": first[order].astype("<u8"),
        "counts": numpy.concatenate(counts)[order].astype("<u2"),
        "blocks": block_of[order].astype("<u2"),
    }


def _pages(parts: dict[str, Any]) -> dict[str, Any]:
    """The first value of each page, by which it is found, and its checksum."""
    values = parts["values"]
    starts = range(0, len(values), PAGE)
    sums = [_sum(parts, start) for start in starts]
    return {"pages": values[::PAGE].copy(), "sums": numpy.array(sums, "<u4")}


def _check_of(parts: dict[str, Any]) -> int:
    """Of what the pages are found and checked by."""
    return zlib.crc32(parts["sums"].tobytes(), zlib.crc32(parts["pages"].tobytes()))


def _sum(parts: dict[str, Any], start: int) -> int:
    total = 0
    for name in ("values", "counts", "blocks"):
        if name in parts:
            total = zlib.crc32(parts[name][start : start + PAGE].tobytes(), total)
    return total


def gaps_of(table: pa.Table) -> list[Gap]:
    """What was not told."""
    found: list[Gap] = []
    for event in GAPS:
        rows = table.take(pa.array(_rows_of(table, event))).select(["time", "until", "number"])
        columns = [rows.column(name).cast(pa.int64()).to_pylist() for name in ("time", "until", "number")]
        found += [Gap(since, until, events, event) for since, until, events in zip(*columns, strict=True)]
    return found


def _rows_of(table: pa.Table, event: str) -> Any:
    """Where this event stands: looked for by its number, as there are few names and many rows."""
    found = [numpy.empty(0, numpy.int64)]
    begin = 0
    for chunk in table.column("event").chunks:
        names = chunk.dictionary.to_pylist()
        if event in names:
            numbers = chunk.indices.fill_null(-1).to_numpy(zero_copy_only=False)
            found.append(numpy.flatnonzero(numbers == names.index(event)) + begin)
        begin += len(chunk)
    return numpy.concatenate(found)


# -- finding


class Index:
    """One index, mapped into memory."""

    def __init__(self, path: Path) -> None:
        self.path = path
        fixed = len(MAGIC) + 12
        with path.open("rb") as file:
            start = file.read(fixed)
            if len(start) < fixed or start[: len(MAGIC)] != MAGIC:
                raise IndexDamaged(f"{path} is no index of a journal")
            version, crc, length = (int(one) for one in numpy.frombuffer(start[len(MAGIC) :], "<u4"))
            if version != VERSION:
                raise IndexDamaged(f"{path} is of version {version}, this Warren reads version {VERSION}")
            text = file.read(length)
            if zlib.crc32(text) != crc:
                raise IndexDamaged(f"{path} does not check")
            self._octets = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        head = json.loads(text)
        self.rows = int(head["rows"])
        self.first: int = head["first"] or 0  # µs
        self.last: int = head["last"] or 0
        self.headers: list[str] = head["headers"]
        self.gaps: list[Gap] = [Gap(*one) for one in head["gaps"]]
        try:
            self._sections = {
                name: {part: self._part(fixed + length, *place) for part, place in parts.items() if part != "check"}
                for name, parts in head["sections"].items()
            }
        except ValueError:
            raise IndexDamaged(f"{path} was cut off") from None
        for name, parts in self._sections.items():
            if _check_of(parts) != head["sections"][name]["check"]:
                raise IndexDamaged(f"{path}: the pages of the {name} do not check")
        self._checked: set[tuple[str, int]] = set()

    def _part(self, start: int, kind: str, at: int, count: int) -> Any:
        return numpy.frombuffer(self._octets, kind, count, start + at) if count else numpy.empty(0, kind)

    def key(self, key: int) -> list[int]:
        """The blocks in which the key stands, if it does."""
        return self._find("keys", key, key)

    def id(self, id: int) -> list[int]:
        return self._run("ids", id)

    def message(self, address: int) -> list[int]:
        return self._run("messages", address)

    def _run(self, name: str, number: int) -> list[int]:
        number &= MASK
        return self._find(name, number - number % RUN, number)

    def _find(self, name: str, low: int, high: int) -> list[int]:
        """Blocks of the entries from ``low`` to ``high`` that reach up to ``high``."""
        parts = self._sections[name]
        if not len(parts["values"]):
            return []
        lowest, highest = numpy.uint64(low), numpy.uint64(high)
        first = max(0, int(numpy.searchsorted(parts["pages"], lowest)) - 1)
        last = int(numpy.searchsorted(parts["pages"], highest, "right"))
        found: set[int] = set()
        for page in range(first, last):
            self._check(name, page)
            start = page * PAGE
            values = parts["values"][start : start + PAGE]
            begin = int(numpy.searchsorted(values, lowest))
            end = int(numpy.searchsorted(values, highest, "right"))
            if begin == end:
                continue
            blocks = parts["blocks"][start + begin : start + end]
            if "counts" in parts:
                counts = parts["counts"][start + begin : start + end].astype(numpy.uint64)
                blocks = blocks[highest - values[begin:end] < counts]
            found.update(blocks.tolist())
        return sorted(found)

    def _check(self, name: str, page: int) -> None:
        """Each page once, when it is first looked at."""
        if (name, page) in self._checked:
            return
        if _sum(self._sections[name], page * PAGE) != int(self._sections[name]["sums"][page]):
            raise IndexDamaged(f"{self.path}: page {page} of the {name} does not check")
        self._checked.add((name, page))
