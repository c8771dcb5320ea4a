"""Checking a folder while a broker works on it: nothing is locked, nothing is changed.

Duty: read every file that counts, as far as it is known to be synced, and say what does not check. The broker goes on:
it appends, compacts and removes. So each segment is judged by itself, and what does not check is looked at again: if
the file has been replaced or removed meanwhile, it was no damage. Not here: what the records mean (``recovery``).
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from warrenmq.log import manifest as manifests
from warrenmq.log.files import Files
from warrenmq.log.format import FileHeader, LogCorrupt, read_file_header, seed
from warrenmq.log.layout import FILE_HEADER
from warrenmq.log.ledger import read_ledger
from warrenmq.log.manifest import Manifest, ManifestSegment, read_whole
from warrenmq.log.scan import DAMAGED, BatchCursor
from warrenmq.log.segment import Part, file_name, ledger_name, parse_file_name

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
        self.manifest: Manifest = Manifest(0)
        self._headers: dict[tuple[int, int], FileHeader] = {}
        self._damaged: list[int] = []
        self._length: i64 = 0

    def run(self) -> None:
        self._look()
        kept = {int(entry.number) for entry in self.manifest.segments}
        numbers = kept | {number for number, _ in self._headers if number >= self.manifest.segment}
        for number in sorted(numbers):
            problem = ""
            for _ in range(TRIES):
                problem = self._segment(number)
                if not problem:
                    break
                self._look()  # replaced or removed meanwhile?
                if self._is_gone(number):
                    problem = ""
                    break
            if problem:
                self.problems.append(problem)
            elif not self._is_gone(number):
                self.segments += 1
                self.bytes += self._length
                self.damaged.extend(self._damaged)

    def _look(self) -> None:
        """The manifest and the files' headers as they are now."""
        path = f"{self.folder}/{manifests.NAME}"
        self.manifest = manifests.decode(read_whole(self.files, path), path)
        self._headers = {}
        for name in self.files.names(self.folder):
            parsed = parse_file_name(name)
            if parsed is None:
                continue
            try:
                descriptor = self.files.open(f"{self.folder}/{name}", False)
            except FileNotFoundError:
                continue
            try:
                header = read_file_header(self.files.read(descriptor, FILE_HEADER, 0), name)
            finally:
                self.files.close(descriptor)
            if header is not None and header.log_id == self.manifest.log_id:
                self._headers[parsed] = header

    def _is_gone(self, number: int) -> bool:
        """The broker has removed it: nothing names it any more."""
        return self._entry(number) is None and (number, 0) not in self._headers

    def _entry(self, number: int) -> ManifestSegment | None:
        for entry in self.manifest.segments:
            if entry.number == number:
                return entry
        return None

    def _segment(self, number: int) -> str:
        """What is wrong with it; empty: nothing, but perhaps bodies."""
        self._damaged = []
        self._length = 0
        opening = self._headers.get((number, 0))
        entry = self._entry(number)
        if opening is None:
            return f"{self.folder}/{file_name(number, 0)}: missing or not readable"
        try:
            if entry is not None and entry.ledger > 0 and entry.generation == opening.generation:
                read_ledger(self.files, f"{self.folder}/{ledger_name(number, entry.generation)}", entry.ledger)
            return self._batches(number, opening, entry)
        except LogCorrupt as damaged:
            return str(damaged)
        except OSError as error:
            return f"{error.filename or file_name(number, 0)}: {error.strerror or error}"

    def _batches(self, number: int, opening: FileHeader, entry: ManifestSegment | None) -> str:
        parts = [Part(0, 0)]
        end: i64 = -1
        if opening.generation > 0:
            end = opening.length
        else:
            last: i64 = 1 << 30
            following = self._headers.get((self._following(number), 0))
            if following is not None and following.previous_segment == number:
                end = following.previous_end
                last = following.previous_part
            while (number, len(parts)) in self._headers and len(parts) <= last:
                parts.append(Part(len(parts), self._headers[(number, len(parts))].base))
        cursor = BatchCursor(self.folder, self.files, seed(self.manifest.log_id), number, parts, end)
        synced = end if end >= 0 else parts[-1].base
        if end < 0 and entry is not None and entry.generation == opening.generation:
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

    def _following(self, number: int) -> int:
        """The number of the next segment, -1 when there is none."""
        later = [other for other, _ in self._headers if other > number]
        return min(later) if later else -1
