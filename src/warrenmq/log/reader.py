"""Reading bytes of segments by offset, through a bounded set of open files.

Duty: (segment, offset) -> bytes, across the parts of a segment. Not here: what the bytes mean.
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from warrenmq.log.files import Files
from warrenmq.log.layout import FILE_HEADER
from warrenmq.log.segment import Segment, file_name

OPEN_FILES: Final = 64


@final
class Reader:
    """The open files of segments, the longest unused of which is closed when there are too many."""

    def __init__(self, folder: str, files: Files) -> None:
        self.folder: Final = folder
        self.files: Final = files
        self.descriptors: dict[tuple[int, int], int] = {}

    def descriptor(self, segment: i64, part: i64) -> int:
        key = (int(segment), int(part))
        found = self.descriptors.pop(key, -1)
        if found < 0:
            if len(self.descriptors) >= OPEN_FILES:
                oldest = next(iter(self.descriptors))
                self.files.close(self.descriptors.pop(oldest))
            found = self.files.open(self.folder + "/" + file_name(segment, part), False)
        self.descriptors[key] = found  # to the end: last used
        return found

    def read(self, segment: Segment, offset: i64, length: i64) -> bytes:
        """Up to ``length`` bytes from this offset, not beyond the part it stands in.

        Behind its end a part may hold what a failed write left, at the very offsets of the part that follows.
        """
        part = segment.parts[0]
        for following in segment.parts:
            if following.base > offset:
                length = min(length, following.base - offset)
                break
            part = following
        descriptor = self.descriptor(segment.number, part.part)
        return self.files.read(descriptor, length, FILE_HEADER + offset - part.base)

    def forget(self, segment: i64) -> None:
        """Close what is open of this segment: it was replaced or removed."""
        for key in list(self.descriptors):
            if key[0] == segment:
                self.files.close(self.descriptors.pop(key))

    def close(self) -> None:
        for descriptor in self.descriptors.values():
            self.files.close(descriptor)
        self.descriptors.clear()
