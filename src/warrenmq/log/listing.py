"""What files a folder has while a broker may be working on it.

Duty: the manifest and the headers of the segment files as they are at one moment, and which files make up a segment.
Nothing is locked, nothing is changed. Not here: whether all of it checks (``survey``), what it says (``history``).
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from warrenmq.log import manifest as manifests
from warrenmq.log.files import Files
from warrenmq.log.format import FileHeader, read_file_header, seed
from warrenmq.log.layout import FILE_HEADER
from warrenmq.log.manifest import Manifest, ManifestSegment, read_whole
from warrenmq.log.scan import BatchCursor
from warrenmq.log.segment import Part, parse_file_name


@final
class Listing:
    """The files of a folder at one moment. Raises LogError or OSError where there is no log."""

    def __init__(self, folder: str, files: Files) -> None:
        self.folder: Final = folder
        self.files: Final = files
        path = f"{folder}/{manifests.NAME}"
        self.manifest: Final[Manifest] = manifests.decode(read_whole(files, path), path)
        self.headers: Final[dict[tuple[int, int], FileHeader]] = {}
        for name in files.names(folder):
            parsed = parse_file_name(name)
            if parsed is None:
                continue
            try:
                descriptor = files.open(f"{folder}/{name}", False)
            except FileNotFoundError:
                continue
            try:
                header = read_file_header(files.read(descriptor, FILE_HEADER, 0), name)
            finally:
                files.close(descriptor)
            if header is not None and header.log_id == self.manifest.log_id:
                self.headers[parsed] = header

    def numbers(self) -> list[int]:
        """The segments that count, oldest first."""
        kept = {int(entry.number) for entry in self.manifest.segments}
        return sorted(kept | {number for number, _ in self.headers if number >= self.manifest.segment})

    def entry(self, number: int) -> ManifestSegment | None:
        """What the manifest says of a segment."""
        for entry in self.manifest.segments:
            if entry.number == number:
                return entry
        return None

    def is_gone(self, number: int) -> bool:
        """The broker has removed it: nothing names it any more."""
        return self.entry(number) is None and (number, 0) not in self.headers

    def cursor(self, number: int) -> BatchCursor | None:
        """Over all batches of a segment; its ``end`` is -1 where nothing says how far they go. None: no such file."""
        opening = self.headers.get((number, 0))
        if opening is None:
            return None
        parts = [Part(0, 0)]
        end: i64 = -1
        if opening.generation > 0:
            end = opening.length
        else:
            last: i64 = 1 << 30
            following = self.headers.get((self._following(number), 0))
            if following is not None and following.previous_segment == number:
                end = following.previous_end
                last = following.previous_part
            while (number, len(parts)) in self.headers and len(parts) <= last:
                parts.append(Part(len(parts), self.headers[(number, len(parts))].base))
        return BatchCursor(self.folder, self.files, seed(self.manifest.log_id), number, parts, end)

    def _following(self, number: int) -> int:
        """The number of the next segment, -1 when there is none."""
        later = [other for other, _ in self.headers if other > number]
        return min(later) if later else -1
