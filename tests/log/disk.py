"""A disk that forgets: the file layer of the disk model.

It keeps, for every file, what is durable and what was written since the last sync, and the same for names in the
folder. ``images`` gives some of the folders that a power cut at this moment may leave: any subset of the unsynced
writes, each whole, torn or with a bit turned, and any subset of the unsynced names (``cuts.py``: all of them). A killed
process leaves everything as it is, unsynced writes included: the next log is opened on the same disk.

A failed sync leaves its writes in doubt: the kernel takes the pages for clean, so they are read as if all were well,
and a later sync that succeeds does not bring them to the disk. Only writing them again and syncing that does. The
kernel may also have tried and failed by itself (``lose_writeback``). Names and lengths are not like that: they are in
the file system's journal, which is written later or ends the file system.

A write of bytes that are on the disk already harms none of them: a drive writes a sector whole or not at all. The log
relies on that with every commit, which begins in a sector that holds the end of the one before. Directories are flat;
``folder`` is ignored.
"""

from __future__ import annotations

import errno
import itertools
import random
from collections.abc import Callable, Iterator

from warrenmq.log.files import Files

Write = tuple[int, bytes]  # (offset, data); offset -1: truncate to int.from_bytes(data)


class Inode:
    def __init__(self, durable: bytes = b"") -> None:
        self.durable = durable
        self.current = bytearray(durable)
        self.pending: list[Write] = []
        self.doubtful: list[Write] = []

    def write(self, offset: int, data: bytes) -> None:
        apply(self.current, (offset, data))
        self.pending.append((offset, data))

    def unsynced(self) -> list[Write]:
        """What a power cut may keep or not, in the order in which it was written."""
        return self.doubtful + self.pending

    def sync(self) -> None:
        image = bytearray(self.durable)
        for write in self.pending:
            apply(image, write)
            self.doubtful = [piece for older in self.doubtful for piece in survivors(older, write)]
        self.durable = bytes(image)
        self.pending = []

    def fail_to_sync(self) -> None:
        """The kernel takes the pages for clean. A truncation is no page: it stays pending, in the journal."""
        self.doubtful += [write for write in self.pending if write[0] >= 0]
        self.pending = [write for write in self.pending if write[0] < 0]


def survivors(older: Write, newer: Write) -> list[Write]:
    """What a newer write that is on the disk leaves of an older one in doubt: its bytes before and behind."""
    offset, data = older
    begin, written = newer
    end = offset + len(data) if begin < 0 else begin + len(written)
    begin = int.from_bytes(written, "little") if begin < 0 else begin
    if end <= offset or begin >= offset + len(data):
        return [older]
    before, behind = data[: max(0, begin - offset)], data[end - offset :]
    return [(at, piece) for at, piece in ((offset, before), (end, behind)) if piece]


def harmless(image: bytes | bytearray, write: Write) -> bool:
    """These bytes are there already."""
    offset, data = write
    return offset >= 0 and image[offset : offset + len(data)] == data


def apply(image: bytearray, write: Write) -> None:
    offset, data = write
    if offset < 0:
        del image[int.from_bytes(data, "little") :]
        return
    if len(image) < offset:
        image.extend(bytes(offset - len(image)))
    image[offset : offset + len(data)] = data


class SimulatedFiles(Files):
    """``fault(kind, name)`` may return an errno: that operation fails. ``observe(kind)`` is called before each one."""

    def __init__(self, image: dict[str, bytes] | None = None) -> None:
        self.durable_names: dict[str, Inode] = {}
        for name, data in (image or {}).items():
            self.durable_names[name] = Inode(data)
        self.names_now: dict[str, Inode] = dict(self.durable_names)
        self.name_changes: list[tuple[str, Inode | None]] = []
        self.descriptors: dict[int, tuple[Inode, str]] = {}
        self.next_descriptor = 3
        self.fault: Callable[[str, str], int] = lambda kind, name: 0
        self.observe: Callable[[str, str], None] = lambda kind, name: None
        self.operations = 0

    def step(self, kind: str, name: str) -> int:
        """Before every operation that changes something."""
        self.observe(kind, name)
        self.operations += 1
        return self.fault(kind, name)

    @staticmethod
    def name_of(path: str) -> str:
        return path.rsplit("/", 1)[1]

    def _open(self, inode: Inode, name: str) -> int:
        descriptor = self.next_descriptor
        self.next_descriptor += 1
        self.descriptors[descriptor] = (inode, name)
        return descriptor

    def _set(self, name: str, inode: Inode | None) -> None:
        if inode is None:
            self.names_now.pop(name, None)
        else:
            self.names_now[name] = inode
        self.name_changes.append((name, inode))

    # --- the file layer

    def make_folder(self, folder: str) -> None:
        pass

    def lock(self, path: str) -> int:
        return self._open(Inode(), "lock")

    def create(self, path: str) -> int:
        name = self.name_of(path)
        code = self.step("create", name)
        if code:
            raise OSError(code, "cannot create")
        if name in self.names_now:
            self._set(name, None)
        inode = Inode()
        self._set(name, inode)
        return self._open(inode, name)

    def open(self, path: str, writing: bool) -> int:
        name = self.name_of(path)
        if name not in self.names_now:
            if not writing:
                raise FileNotFoundError(errno.ENOENT, "no such file", path)
            return self.create(path)
        return self._open(self.names_now[name], name)

    def write(self, descriptor: int, parts: list[bytes], offset: int) -> None:
        inode, name = self.descriptors[descriptor]
        data = b"".join(parts)
        code = self.step("write", name)
        if code:
            inode.write(offset, data[: len(data) // 2])
            raise OSError(code, "cannot write")
        inode.write(offset, data)

    def read(self, descriptor: int, length: int, offset: int) -> bytes:
        return bytes(self.descriptors[descriptor][0].current[offset : offset + length])

    def sync(self, descriptor: int) -> None:
        inode, name = self.descriptors[descriptor]
        code = self.step("sync", name)
        if code:
            inode.fail_to_sync()
            raise OSError(code, "cannot sync")
        inode.sync()

    def sync_folder(self, folder: str) -> None:
        code = self.step("sync_folder", "")
        if code:
            raise OSError(code, "cannot sync the folder")
        self.durable_names = dict(self.names_now)
        self.name_changes = []

    def truncate(self, descriptor: int, length: int) -> None:
        inode, name = self.descriptors[descriptor]
        code = self.step("truncate", name)
        if code:
            raise OSError(code, "cannot truncate")
        apply(inode.current, (-1, int(length).to_bytes(8, "little")))
        inode.pending.append((-1, int(length).to_bytes(8, "little")))

    def size(self, descriptor: int) -> int:
        return len(self.descriptors[descriptor][0].current)

    def close(self, descriptor: int) -> None:
        del self.descriptors[descriptor]

    def rename(self, old: str, new: str) -> None:
        code = self.step("rename", self.name_of(new))
        if code:
            raise OSError(code, "cannot rename")
        inode = self.names_now[self.name_of(old)]
        # one change of the folder, although two names are concerned: the new one decides
        self.names_now.pop(self.name_of(old))
        self._set(self.name_of(new), inode)

    def unlink(self, path: str) -> None:
        name = self.name_of(path)
        code = self.step("unlink", name)
        if code:
            raise OSError(code, "cannot remove")
        if name in self.names_now:
            self._set(name, None)

    def names(self, folder: str) -> list[str]:
        return sorted(self.names_now)

    def random_id(self) -> int:
        return 0x5EED5EED

    # --- the kernel, and the power cut

    def lose_writeback(self) -> None:
        """The kernel wrote back what was not synced yet, failed, and keeps it for itself."""
        for inode in self.inodes():
            inode.fail_to_sync()

    def synced_image(self) -> dict[str, bytes]:
        return {name: inode.durable for name, inode in self.durable_names.items()}

    def kept_image(self) -> dict[str, bytes]:
        """What a killed process leaves: the page cache survives."""
        return {name: bytes(inode.current) for name, inode in self.names_now.items()}

    def inodes(self) -> list[Inode]:
        """Every file that may have a name after a power cut."""
        named = [*self.durable_names.values(), *(inode for _, inode in self.name_changes if inode is not None)]
        return list({id(inode): inode for inode in named}.values())

    def images(self, limit: int, rng: random.Random) -> Iterator[dict[str, bytes]]:
        """Folders a power cut now may leave. All of them when there are at most ``limit``, else that many at random.

        All subsets of whole writes and names come first, then torn and flipped ones.
        """
        seen: set[int] = set()
        inodes = [inode for inode in self.inodes() if inode.unsynced()]
        writes = [(inode, write) for inode in inodes for write in inode.unsynced()]
        whole = [range(2)] * len(writes)
        choices: Iterator[tuple[int, ...]]
        total = 2 ** (len(writes) + len(self.name_changes))
        if total <= limit:
            choices = itertools.product(*whole, *([range(2)] * len(self.name_changes)))
        else:
            choices = (
                tuple(rng.randrange(2) for _ in range(len(writes) + len(self.name_changes))) for _ in range(limit)
            )
        torn = (
            (
                *(rng.choice((0, 1, 2, 3, 4, 5)) for _ in writes),
                *(rng.randrange(2) for _ in self.name_changes),
            )
            for _ in range(limit // 2 if writes else 0)
        )
        for choice in itertools.chain(choices, torn):
            image = self._image(inodes, writes, choice, rng)
            key = hash(tuple(sorted(image.items())))
            if key not in seen:
                seen.add(key)
                yield image

    def _image(
        self, inodes: list[Inode], writes: list[tuple[Inode, Write]], choice: tuple[int, ...], rng: random.Random
    ) -> dict[str, bytes]:
        contents = {id(inode): bytearray(inode.durable) for inode in inodes}
        for (inode, write), how in zip(writes, choice, strict=False):
            image = contents[id(inode)]
            offset, data = write
            if how == 0 or harmless(image, write):
                continue
            if how == 1 or offset < 0 or len(data) < 2:
                apply(image, write)
            elif how == 2:  # the first half
                apply(image, (offset, data[: len(data) // 2]))
            elif how == 3:  # the second half, with the hole before it
                half = len(data) // 2
                apply(image, (offset + half, data[half:]))
            elif how == 4:  # a bit turned
                flipped = bytearray(data)
                flipped[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
                apply(image, (offset, bytes(flipped)))
            else:  # any cut
                apply(image, (offset, data[: rng.randrange(len(data))]))
        names = dict(self.durable_names)
        for (name, changed), how in zip(self.name_changes, choice[len(writes) :], strict=False):
            if how and changed is None:
                names.pop(name, None)
            elif how and changed is not None:
                names[name] = changed
        return {name: bytes(contents.get(id(inode), inode.durable)) for name, inode in names.items()}
