"""The end of a replica's log on disk: written at, and cut off.

Duty: which files stand behind the last checkpoint, and cutting the log at the end of a batch so that a crash at any
moment leaves a log that ends there, where it ended before, or between. Used by one thread at a time. Writing is
``tail``'s.

A cut removes from the end backwards, each file for certain before the one in front of it; then a new part, whose header
closes the file in front of it at the cut, makes an end of what still stands behind the cut in that file.
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from warrenmq.log.files import Files
from warrenmq.log.recovery import Recovery
from warrenmq.log.segment import Part, file_name, parse_file_name
from warrenmq.log.shipping import offset_of, segment_of
from warrenmq.log.tail import Tail


@final
class Ending:
    """The last segments of a replica, and the place where its log ends on disk."""

    def __init__(self, folder: str, files: Files, found: Recovery, tail: Tail) -> None:
        self.folder: Final = folder
        self.files: Final = files
        self.tail: Tail = tail
        self.end: i64 = found.end  # on disk, for certain
        self._removed: bool = False  # a file, but its name is still on the disk
        self.parts: dict[int, list[Part]] = {}  # of the segments that may be cut
        for number, segment in found.segments.items():
            if number >= found.manifest.segment:
                self.parts[number] = segment.parts[:]
        if found.last_segment not in (segment_of(found.end), found.manifest.segment):
            self._cut_files(found.end, segment_of(found.end))  # segments that were begun, and stayed without a batch

    def opened(self, segment: i64, part: i64, base: i64) -> None:
        """A file was begun, and is on the disk."""
        self.parts.setdefault(int(segment), []).append(Part(part, base))

    def forget_before(self, segment: i64) -> None:
        """A checkpoint has what stands before: it cannot be cut any more."""
        for number in list(self.parts):
            if number < segment:
                del self.parts[number]

    def cut(self, end: i64, epoch: i64) -> None:
        """Nothing behind this position is there any more. OSError: not all of it is gone; to be done again."""
        if end >= self.end:
            return
        self.tail.give_up()
        self._cut_files(end, epoch)
        self.end = end

    def begin_anew(self, tail: Tail) -> None:
        """There is nothing, of another log than before."""
        self.tail = tail
        self.parts.clear()
        self.end = 0

    def _cut_files(self, end: i64, epoch: i64) -> None:
        segment = int(segment_of(end))
        kept = self.parts.get(segment, [])
        while len(kept) > 1 and kept[-1].base >= offset_of(end):
            kept.pop()
        last = (segment, int(kept[-1].part) if kept else 0)
        if self._removed:  # it failed before: what is no longer listed may come back
            self._sync_names()
        for name in self._files_behind(last):
            self._removed = True
            self.files.unlink(f"{self.folder}/{name}")
            self._sync_names()
        for number in list(self.parts):
            if number > segment:
                del self.parts[number]
        self.tail.ends_at(segment, last[1], offset_of(end))
        if segment > 0:
            self.opened(segment, self.tail.begin_part(epoch), offset_of(end))

    def _sync_names(self) -> None:
        self.files.sync_folder(self.folder)
        self._removed = False

    def _files_behind(self, last: tuple[int, int]) -> list[str]:
        """Also those that were begun and failed: the last one first."""
        found: list[tuple[int, int]] = []
        for name in self.files.names(self.folder):
            parsed = parse_file_name(name)
            if parsed is not None and parsed > last:
                found.append(parsed)
        return [file_name(segment, part) for segment, part in sorted(found, reverse=True)]
