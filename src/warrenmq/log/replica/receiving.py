"""A snapshot on its way into the folder of a node whose log is empty.

Duty: the files as they come, beside the log and synced, and their installation in its place once all are there. Used by
one thread at a time. Not here: what was in the folder before, which is given up first (``Replica.renew``).
"""

from __future__ import annotations

from typing import Final, final

from warrenmq.log import manifest as manifests
from warrenmq.log.files import Files
from warrenmq.log.format import LogCorrupt
from warrenmq.log.installing import INCOMING, install
from warrenmq.log.segment import file_name, ledger_name, parse_file_name


@final
class Incoming:
    """The files of a snapshot, as far as they have come."""

    def __init__(self, folder: str, files: Files) -> None:
        self.folder: Final = folder
        self.files: Final = files
        self.names: Final[list[str]] = []
        self.octets: int = 0  # of all files
        self._descriptor: int = -1
        self._length: int = 0  # of the last file
        self.abandon()

    def piece(self, name: str, offset: int, data: bytes) -> None:
        """The next octets: of the file before, or the first of another. OSError; LogCorrupt: not what comes next."""
        if not self.names or name != self.names[-1]:
            if not is_of_a_log(name) or name in self.names:
                raise LogCorrupt(f"{name!r} is no file of a log, or came before")
            self._end_file()
            self._descriptor = self.files.create(f"{self.folder}/{name}{INCOMING}")
            self._length = 0
            self.names.append(name)
        if offset != self._length:
            raise LogCorrupt(f"{name}: octets from {offset} on came where those from {self._length} on should have")
        self.files.write(self._descriptor, [data], offset)
        self._length += len(data)
        self.octets += len(data)

    def finish(self, manifest: bytes) -> None:
        """The log is the snapshot's when this returns: close the replica and open it anew. OSError: now or at the next
        start, or not at all. LogCorrupt: not everything came."""
        self._end_file()
        found = manifests.decode(manifest, manifests.NAME)
        for segment in found.segments:
            name = file_name(segment.number, 0)
            if name not in self.names:
                raise LogCorrupt(f"{name}: is in the snapshot's manifest and did not come")
        self.files.sync_folder(self.folder)
        install(self.folder, self.files, self.names, manifest)

    def abandon(self) -> None:
        """No more of it comes: what is there goes."""
        if self._descriptor >= 0:
            self.files.close(self._descriptor)
            self._descriptor = -1
        self.names.clear()
        for name in self.files.names(self.folder):
            if name.endswith(INCOMING):
                self.files.unlink(f"{self.folder}/{name}")

    def _end_file(self) -> None:
        if self._descriptor >= 0:
            self.files.sync(self._descriptor)
            self.files.close(self._descriptor)
            self._descriptor = -1


def is_of_a_log(name: str) -> bool:
    """The name comes from elsewhere: it must not lead out of the folder."""
    parsed = parse_file_name(name)
    if parsed is not None:
        return name == file_name(parsed[0], parsed[1])
    parts = name.split(".")
    number = parts[0].removeprefix("segment-")
    numbers = len(parts) == 3 and number.isdecimal() and parts[1].isdecimal()
    return numbers and name == ledger_name(int(number), int(parts[1]))
