"""What of a damaged folder is known to be missing, by what is left of it.

Duty: from the manifest and the headers of the files that are there, the files that are not, and how long each segment
must be. What nothing names any more, the last segments say, cannot be known. Not here: reading batches (``salvage``).
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from warrenmq.log.format import FileHeader
from warrenmq.log.manifest import Manifest, ManifestSegment
from warrenmq.log.segment import Part, file_name


@final
class Gaps:
    """The holes between the files of a log. ``manifest``: None when it cannot be read. ``headers``: of this log's
    files, ``parts`` those of each segment."""

    def __init__(self, manifest: Manifest | None, headers: list[FileHeader], parts: dict[int, list[Part]]) -> None:
        self.lines: list[str] = []  # what is missing
        self.records: i64 = 0  # in files that are missing, as far as it is known
        self._parts: Final = parts
        self._generations: dict[int, int] = {}
        self._ends: dict[int, int] = {}  # segment -> the offset up to which something names it as synced
        self._kept: dict[int, ManifestSegment] = {}
        if manifest is not None:
            for entry in manifest.segments:
                self._kept[int(entry.number)] = entry
        for header in headers:
            number = int(header.segment)
            self._generations[number] = max(self._generations.get(number, 0), int(header.generation))
        self._measure(headers)
        self._find(manifest, headers)

    def _measure(self, headers: list[FileHeader]) -> None:
        for header in headers:
            if header.generation > 0:
                self._ends[int(header.segment)] = int(header.length)
            closed = int(header.previous_segment)
            if closed > 0 and self._generations.get(closed, 0) == 0:
                self._ends[closed] = max(self._ends.get(closed, 0), int(header.previous_end))
        for number, entry in self._kept.items():
            if self._generations.get(number, 0) == entry.generation:
                self._ends[number] = max(self._ends.get(number, 0), int(entry.end))

    def _find(self, manifest: Manifest | None, headers: list[FileHeader]) -> None:
        for number, entry in self._kept.items():
            if number not in self._parts:
                self.records += entry.records
                self.lines.append(f"{file_name(number, 0)}: the file is missing, with {entry.records} records")
        position: i64 = 0 if manifest is None else manifest.segment
        if position > 0 and int(position) not in self._kept and int(position) not in self._parts:
            self.lines.append(f"{file_name(position, 0)}: the file is missing")
        named: set[tuple[int, int]] = set()
        for header in headers:
            if header.generation > 0:
                continue
            previous = int(header.previous_segment)
            if previous > 0 and previous not in self._kept and (manifest is None or previous > position):
                named.add((previous, int(header.previous_part)))
            for part in range(int(header.part)):
                named.add((int(header.segment), part))
        for number, part in sorted(named):
            if self._generations.get(number, 0) == 0 and not self._has(number, part):
                self.lines.append(f"{file_name(number, part)}: the file is missing; a later one continues it")

    def _has(self, number: int, part: int) -> bool:
        for one in self._parts.get(number, []):
            if one.part == part:
                return True
        return False

    def short(self, number: int, part: i64, at: i64) -> i64:
        """How many bytes behind ``at`` something says were synced in this part; 0 or less: none."""
        end: i64 = self._ends.get(number, 0)
        for one in self._parts[number]:
            if one.part > part and one.base >= 0:
                end = min(end, one.base)
        return end - at

    def records_after(self, number: int, found: i64) -> i64:
        """How many records the manifest counts in this segment beyond those found.

        After a compaction the numbers have gaps: there only the file's length tells, so none.
        """
        entry = self._kept.get(number)
        if entry is None or entry.generation > 0 or self._generations.get(number, 0) > 0:
            return 0
        return max(entry.records - found, 0)
