"""The names of the journal's files, which say how far it is written: nothing else does.

Duty: which files a folder has, what each tells, where the journal stands. Not here: what is in them (``parquet``).

    journal-LOGID-SEGMENT-FROM-TO.parquet    the events of a segment of the log from one position to another
    journal-LOGID-0000000000-0000000000-SEGMENT.parquet    one gap: what retention removed, up to this segment
    .X.index    beside X.parquet, written before it
    .X.tmp      being made

While a segment grows its events are in several files; when a file tells what others tell, those are on their way out
and are not to be read. The leaders of a cluster cut one segment at different places: of their files those are to be
read that follow one another. The journal is written in order: it stands where the file ends that goes furthest.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

FOLDER = "journal"  # in the data folder
LOCK = "lock"  # in the journal's, held by the process that writes it
NAME = re.compile(r"journal-([0-9a-f]{16})-(\d{10})-(\d{10})-(\d{10})\.parquet")
FULL = 1 << 62  # an offset behind all others
REMOVED = 0  # segments count from 1: this stands for those that are gone


@dataclass(frozen=True, order=True)
class JournalFile:
    """A file of the journal, as its name tells it."""

    segment: int
    begin: int
    end: int
    path: Path

    @property
    def index(self) -> Path:
        return index_of(self.path)


def index_of(path: Path) -> Path:
    """Where the index of a file stands: hidden, as what is being made is, so that Spark and others who read a folder of
    Parquet do not take it for a table."""
    return path.with_name(f".{path.stem}.index")


def being_made(path: Path) -> Path:
    """What a file is called until it is whole."""
    return path.with_name(f".{path.name.removeprefix('.')}.tmp")


def file_name(log_id: int, segment: int, begin: int, end: int) -> str:
    return f"journal-{log_id & (1 << 64) - 1:016x}-{segment:010d}-{begin:010d}-{end:010d}.parquet"


def logs_of(folder: Path) -> list[int]:
    """The ids of the logs of which it has files."""
    names = (NAME.fullmatch(path.name) for path in folder.iterdir())
    return sorted({int(name[1], 16) for name in names if name is not None})


def files_of(folder: Path, log_id: int) -> list[JournalFile]:
    """The files of one log, in the order of what they tell, those that are on their way out too."""
    found = []
    wanted = f"{log_id & (1 << 64) - 1:016x}"
    for path in folder.iterdir() if folder.is_dir() else ():
        match = NAME.fullmatch(path.name)
        if match is not None and match[1] == wanted:
            found.append(JournalFile(int(match[2]), int(match[3]), int(match[4]), path))
    return sorted(found)


def told_once(spans: Iterable[tuple[int, int]]) -> set[tuple[int, int]]:
    """Of files of one segment, from one position to another, those to be read: the fewest that follow one another and
    tell all of it. Where none do, because some were taken away, those of which no other tells all: what is told twice
    is better than what is not told."""
    there = set(spans)
    long = sorted(span for span in there if span[0] < span[1])
    chosen = {one for one in there.difference(long) if not any(span[0] <= one[0] <= span[1] for span in long)}
    together: list[tuple[int, int]] = []  # each overlaps one before it
    reach = 0
    for span in long:
        if together and span[0] >= reach:
            chosen |= _through(together, reach)
            together = []
        reach = max(reach, span[1]) if together else span[1]
        together.append(span)
    return chosen | _through(together, reach)


def _through(spans: list[tuple[int, int]], end: int) -> set[tuple[int, int]]:
    """The fewest of them from the first one's beginning to the end, one behind the other; else those within no other.
    They are in order."""
    if len(spans) < 2:
        return set(spans)
    begin = spans[0][0]
    ways: dict[int, tuple[int, int]] = {begin: (0, begin)}  # to a position: how many files, where the last one begins
    for first, last in spans:
        if first in ways and (last not in ways or ways[first][0] + 1 < ways[last][0]):
            ways[last] = (ways[first][0] + 1, first)
    found = set()
    if end in ways:
        while end > begin:
            found.add((ways[end][1], end))
            end = ways[end][1]
        return found
    for first, last in spans:
        if not any(one != (first, last) and one[0] <= first and last <= one[1] for one in spans):
            found.add((first, last))
    return found


def superseded(files: list[JournalFile]) -> list[JournalFile]:
    """Those that are not to be read: others tell all of them, or retention has removed them."""
    gone = max((one.end for one in files if one.segment == REMOVED), default=0)
    of_segment: dict[int, list[tuple[int, int]]] = {}
    for one in files:
        of_segment.setdefault(one.segment, []).append((one.begin, one.end))
    counted = {segment: told_once(spans) for segment, spans in of_segment.items()}
    return [one for one in files if REMOVED < one.segment <= gone or (one.begin, one.end) not in counted[one.segment]]


def current(files: list[JournalFile]) -> list[JournalFile]:
    """Those to be read."""
    out = {one.path for one in superseded(files)}
    return [one for one in files if one.path not in out]


def position(files: list[JournalFile]) -> tuple[int, int]:
    """Segment and offset up to which everything is told; (0, 0) when nothing is."""
    told = max(((one.segment, one.end) for one in files if one.segment != REMOVED), default=(0, 0))
    gone = max((one.end for one in files if one.segment == REMOVED), default=0)
    return max(told, (gone, FULL if gone else 0))
