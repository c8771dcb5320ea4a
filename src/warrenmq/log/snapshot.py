"""A committed log as a whole, for a node that has none or can no longer be told what it lacks.

Duty: what a backup would copy of a leader's log, as far as it is committed, in pieces that any thread may read. While a
snapshot is held nothing is removed or rewritten; commits go on. Not here: the way to the other node, and what is done
there (``replica/receiving.py``).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, final

from mypy_extensions import i64

from warrenmq.log import backup
from warrenmq.log.epochs import Epochs
from warrenmq.log.files import Files
from warrenmq.log.format import LogError
from warrenmq.log.log import Log

PIECE: Final = 4 << 20


@final
class SnapshotPiece:
    """Octets of one of the files, which come in order; ``last``: the file ends with them."""

    def __init__(self, name: str, offset: int, data: bytes, last: bool) -> None:
        self.name: Final = name
        self.offset: Final = offset
        self.data: Final = data
        self.last: Final = last


@final
class Snapshot:
    """The files that make up a log up to a committed position."""

    def __init__(
        self, folder: str, files: Files, log_id: i64, position: i64, epochs: Epochs, held: backup.Backup
    ) -> None:
        self.folder: Final = folder
        self.log_id: Final = int(log_id)
        self.position: Final = int(position)
        self.epochs: Final = epochs
        self.files: Final[list[tuple[str, int]]] = [(one.name, int(one.length)) for one in held.files]
        self.manifest: Final = held.manifest
        self._disk: Final = files

    def pieces(self, most: int = PIECE) -> Iterator[SnapshotPiece]:
        """All of all files, the manifest apart. OSError, LogError: it cannot be read."""
        for name, length in self.files:
            path = f"{self.folder}/{name}"
            descriptor = self._disk.open(path, False)
            try:
                at = 0
                while at < length:
                    data = self._disk.read(descriptor, min(most, length - at), at)
                    if not data:
                        raise LogError(f"{path}: {at} bytes where {length} were expected")
                    yield SnapshotPiece(name, at, data, at + len(data) == length)
                    at += len(data)
            finally:
                self._disk.close(descriptor)


def plan(log: Log) -> Snapshot | None:
    """On the broker's thread; ``release`` when it has been sent. None: files are just being rewritten; ask again."""
    held = backup.plan(log)
    if held is None:
        return None
    position = log.committed_position()
    epochs = log.commits.others().epochs.until(int(position))
    return Snapshot(log.folder, log.files, log.maintenance.manifest.log_id, position, epochs, held)


def release(log: Log) -> None:
    """On the broker's thread: files may go again."""
    backup.release(log)
