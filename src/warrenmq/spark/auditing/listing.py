"""Which files a journal has, which of them count, and what lies between them: by their names alone.

Duty: names into files; of those that tell of the same the fewest that tell it once; what is missing between the
others. Nothing is opened here, and paths may be of any file system that Spark reads. Not here: why something is missing
(``holes``).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from warrenmq.journal.files import NAME, REMOVED, told_once


class JournalError(ValueError):
    """Files that are no journal, or not one that can be read; the text is one line."""


@dataclass(frozen=True, order=True)
class File:
    """A file of a journal: what its name says, and where it is."""

    log: str
    segment: int
    begin: int
    end: int
    uri: str

    @property
    def name(self) -> str:
        return self.uri.rpartition("/")[2]

    def within(self, other: File) -> bool:
        """Does the other tell all of it?"""
        return self.segment == other.segment and other.begin <= self.begin and self.end <= other.end


@dataclass(frozen=True)
class Missing:
    """The parts that no file tells: of one segment from one position to another, or whole segments."""

    log: str
    first: int  # segment
    last: int
    begin: int  # 0 and None: all of the segments
    end: int | None
    before: File | None  # the files on both sides
    behind: File

    def __str__(self) -> str:
        if self.end is not None:
            return f"log {self.log}: segment {self.first} from {self.begin} to {self.end}"
        which = f"segment {self.first}" if self.first == self.last else f"segments {self.first} to {self.last}"
        return f"log {self.log}: {which}"


def named(uris: Iterable[str]) -> list[File]:
    """Those that are named like files of a journal. One that is there twice, moved to a lake perhaps, counts once."""
    found: dict[str, File] = {}
    for uri in sorted(uris):
        match = NAME.fullmatch(uri.rpartition("/")[2])
        if match is not None:
            found[match[0]] = File(match[1], int(match[2]), int(match[3]), int(match[4]), uri)
    return sorted(found.values())


def counted(files: Iterable[File]) -> list[File]:
    """Those that tell everything once, as ``journal.files`` says. Where some were taken away, so that two tell the same
    in part and no others do instead, their rows cannot be told apart."""
    of_segment: dict[tuple[str, int], list[File]] = {}
    for one in sorted(files):
        of_segment.setdefault((one.log, one.segment), []).append(one)
    kept: list[File] = []
    for some in of_segment.values():
        spans = told_once((one.begin, one.end) for one in some)
        chosen = {(one.begin, one.end): one for one in some if (one.begin, one.end) in spans}
        for last, one in pairwise(chosen.values()):
            if one.begin < last.end:
                raise JournalError(f"{last.name} and {one.name} tell the same in part: take one of them away")
        kept += chosen.values()
    return kept


def missing(files: list[File]) -> list[Missing]:
    """What lies between the files that count, and before the first of a log; retention's files are not asked here."""
    found: list[Missing] = []
    told = [file for file in files if file.segment != REMOVED]
    for number, one in enumerate(told):
        before = told[number - 1] if number and told[number - 1].log == one.log else None
        if before is not None and before.segment == one.segment:
            if before.end < one.begin:
                found.append(Missing(one.log, one.segment, one.segment, before.end, one.begin, before, one))
            continue
        first = before.segment + 1 if before is not None else 1
        if first < one.segment:
            found.append(Missing(one.log, first, one.segment - 1, 0, None, before, one))
        if one.begin > 0:
            found.append(Missing(one.log, one.segment, one.segment, 0, one.begin, before, one))
    return found


def unread(one: File, read: Iterable[tuple[int, int, int]], rows: int) -> tuple[int, int]:
    """Which rows of a file are new, from and to, when these ranges (from, to, how many rows) of its segment were read.

    A file that was made of others has their rows in their order: what was read is its beginning, or its end. What
    retention removed is told anew by each file.
    """
    if one.segment == REMOVED:
        return 0, rows
    inside = sorted(span for span in read if one.begin <= span[0] and span[1] <= one.end)
    if any(before[1] > after[0] for before, after in pairwise(inside)):
        inside = [span for span in inside if not any(_larger(other, span) for other in inside)]
    first, at = 0, one.begin
    while inside and inside[0][0] == at:
        at = inside[0][1]
        first += inside.pop(0)[2]
    last, at = rows, one.end
    while inside and inside[-1][1] == at:
        at = inside[-1][0]
        last -= inside.pop()[2]
    if inside:
        raise JournalError(f"{one.name} has rows that were read before between others: begin anew, with another --out")
    return first, last


def _larger(one: tuple[int, int, int], other: tuple[int, int, int]) -> bool:
    return one[:2] != other[:2] and one[0] <= other[0] and other[1] <= one[1]
