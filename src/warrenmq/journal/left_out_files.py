"""What the journal left out of each full segment of the log, kept beside its files.

Duty: one hidden file a segment of which anything was left out (``log/left_out.py``), whole under its name or not there,
written before the segment counts as told, removed when the log speaks of none of its records any more. One that is
damaged counts as not there: what happens to its records is then told, without their publishes.

    .left-out-LOGID-SEGMENT    crc (u32, little-endian) and what was left out, deflated
"""

from __future__ import annotations

import os
import re
import zlib
from pathlib import Path

from warrenmq.journal.files import being_made

NAME = re.compile(r"\.left-out-([0-9a-f]{16})-(\d{10})")
SUM = 4  # octets


class LeftOutFiles:
    """The files left out of one log."""

    def __init__(self, folder: Path, log_id: int) -> None:
        self._folder = folder
        self._log = f"{log_id & (1 << 64) - 1:016x}"

    def segments(self) -> set[int]:
        names = (NAME.fullmatch(path.name) for path in self._folder.iterdir())
        return {int(name[2]) for name in names if name is not None and name[1] == self._log}

    def read(self, segment: int) -> bytes:
        """Empty when it is damaged or gone."""
        try:
            data = self._path(segment).read_bytes()
            octets = zlib.decompress(data[SUM:])
        except (OSError, zlib.error):
            return b""
        return octets if data[:SUM] == zlib.crc32(octets).to_bytes(SUM, "little") else b""

    def write(self, segment: int, octets: bytes) -> None:
        path = self._path(segment)
        unfinished = being_made(path)
        with unfinished.open("wb") as file:
            file.write(zlib.crc32(octets).to_bytes(SUM, "little") + zlib.compress(octets, 1))
            file.flush()
            os.fsync(file.fileno())
        unfinished.rename(path)

    def remove(self, segment: int) -> None:
        self._path(segment).unlink(missing_ok=True)

    def _path(self, segment: int) -> Path:
        return self._folder / f".left-out-{self._log}-{segment:010d}"
