"""The disk work of a checkpoint and of a removal, as tasks with finished buffers.

Duty: ledger blocks to their ledgers, synced; then the manifest that counts them, replaced whole. Order matters: a
manifest never names what is not on disk. Not here: what goes in (``maintenance``).
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from warrenmq.log.files import Files
from warrenmq.log.manifest import NAME, Manifest, write_beside
from warrenmq.log.runner import Task

PIECE: Final = 64 * 1024  # of the room held back


@final
class LedgerBlock:
    """The changed bytes of one segment's ledger, and where they go."""

    def __init__(self, segment: i64, name: str, offset: i64, data: bytes) -> None:
        self.segment: Final = segment
        self.name: Final = name
        self.offset: Final = offset
        self.data: Final = data


@final
class Checkpoint(Task):
    """The task that writes ledgers and manifest, in the order that makes a crash harmless."""

    def __init__(
        self, number: i64, files: Files, folder: str, blocks: list[LedgerBlock], manifest: Manifest, removed: list[int]
    ) -> None:
        super().__init__(number)
        self.files: Final = files
        self.folder: Final = folder
        self.blocks: Final = blocks
        self.manifest: Final = manifest
        self.removed: Final = removed  # segments the manifest no longer names
        self.renamed: bool = False

    def in_doubt(self) -> bool:
        """The new manifest has its name but maybe not for ever: until the folder is synced either may be found.

        Nothing either of them counts on may change before that, so such a task is run again, to sync the folder.
        """
        return self.renamed and self.error != ""

    def work(self) -> None:
        files = self.files
        if self.renamed:
            files.sync_folder(self.folder)
            return
        for block in self.blocks:
            descriptor = files.open(self.folder + "/" + block.name, True)
            try:
                files.write(descriptor, [block.data], block.offset)
                files.sync(descriptor)
            finally:
                files.close(descriptor)
        # names of new ledgers, and of files compacted since, before the manifest that counts on them
        files.sync_folder(self.folder)
        write_beside(files, self.folder, NAME, [self.manifest.encode()])
        files.rename(f"{self.folder}/{NAME}.new", f"{self.folder}/{NAME}")
        self.renamed = True
        files.sync_folder(self.folder)


@final
class Removal(Task):
    """Files nothing names any more."""

    def __init__(self, number: i64, files: Files, folder: str, names: list[str]) -> None:
        super().__init__(number)
        self.files: Final = files
        self.folder: Final = folder
        self.names: Final = names

    def work(self) -> None:
        for name in self.names:
            self.files.unlink(self.folder + "/" + name)


def _zeros(length: i64) -> list[bytes]:
    """So many zeros, made of one piece many times: memory for all of them would stay with the process."""
    piece = bytes(PIECE)
    pieces = [piece] * (length // PIECE)
    pieces.append(piece[: length % PIECE])
    return pieces


@final
class Reserve(Task):
    """The task of holding room back: written, not synced: a full disk takes it from the page cache as well."""

    def __init__(self, number: i64, files: Files, path: str, length: i64) -> None:
        super().__init__(number)
        self.files: Final = files
        self.path: Final = path
        self.length: Final = length

    def work(self) -> None:
        descriptor = self.files.create(self.path)
        try:
            self.files.write(descriptor, _zeros(self.length), 0)
        except OSError:
            self.files.unlink(self.path)
            raise
        finally:
            self.files.close(descriptor)
