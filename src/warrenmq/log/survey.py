"""Checking a folder while a broker works on it: nothing is locked, nothing is changed.

Duty: read every file that counts, as far as it is known to be synced, and say what does not check. The broker goes on:
it appends, compacts and removes. So each segment is judged by itself, and what does not check is looked at again: if
the file has been replaced or removed meanwhile, it was no damage. Not here: what the records mean (``recovery``).
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from warrenmq.log.files import Files
from warrenmq.log.format import LogCorrupt
from warrenmq.log.ledger import read_ledger
from warrenmq.log.listing import Listing
from warrenmq.log.manifest import ManifestSegment
from warrenmq.log.scan import DAMAGED, BatchCursor
from warrenmq.log.segment import file_name, ledger_name

TRIES: Final = 5


@final
class Survey:
    """One pass over a living folder that tells damage from what changed while it was read."""

    def __init__(self, folder: str, files: Files) -> None:
        self.folder: Final = folder
        self.files: Final = files
        self.segments: i64 = 0
        self.bytes: i64 = 0
        self.problems: list[str] = []  # more than bodies
        self.damaged: list[int] = []  # addresses of records whose bodies do not check
        self._listing: Listing = Listing(folder, files)
        self._damaged: list[int] = []
        self._length: i64 = 0

    def run(self) -> None:
        for number in self._listing.numbers():
            problem = ""
            for _ in range(TRIES):
                problem = self._segment(number)
                if not problem:
                    break
                self._listing = Listing(self.folder, self.files)  # replaced or removed meanwhile?
                if self._listing.is_gone(number):
                    problem = ""
                    break
            if problem:
                self.problems.append(problem)
            elif not self._listing.is_gone(number):
                self.segments += 1
                self.bytes += self._length
                self.damaged.extend(self._damaged)

    def _segment(self, number: int) -> str:
        """What is wrong with it; empty: nothing, but perhaps bodies."""
        self._damaged = []
        self._length = 0
        cursor = self._listing.cursor(number)
        if cursor is None:
            return f"{self.folder}/{file_name(number, 0)}: missing or not readable"
        opening = self._listing.headers[(number, 0)]
        entry = self._listing.entry(number)
        try:
            if entry is not None and entry.generation != opening.generation:
                entry = None
            if entry is not None and entry.ledger > 0:
                read_ledger(self.files, f"{self.folder}/{ledger_name(number, entry.generation)}", entry.ledger)
            return self._batches(number, cursor, entry)
        except LogCorrupt as damaged:
            return str(damaged)
        except OSError as error:
            return f"{error.filename or file_name(number, 0)}: {error.strerror or error}"

    def _batches(self, number: int, cursor: BatchCursor, entry: ManifestSegment | None) -> str:
        end = cursor.end
        synced = end if end >= 0 else cursor.parts[-1].base
        if end < 0 and entry is not None:
            synced = max(synced, entry.end)
        cursor.tolerated = synced
        try:
            while True:
                while cursor.next():
                    for record in cursor.damaged:
                        self._damaged.append(int(number) << 32 | record)
                    if cursor.header.synced_segment == number:
                        synced = max(synced, cursor.header.synced_offset)
                if end >= 0:
                    break
                for header in cursor.headers_behind():
                    if header.synced_segment == number:
                        synced = max(synced, header.synced_offset)
                if cursor.problem != DAMAGED or synced <= cursor.tolerated:
                    break
                cursor.tolerated = synced
        finally:
            cursor.close()
        self._length = cursor.at
        if cursor.at < synced or (end >= 0 and cursor.at != end):
            where = cursor.file_offset(cursor.at)
            problem = cursor.problem or "the batches end elsewhere"
            return f"{cursor.path}: offset {where}: {problem}, where synced data stood"
        return ""
