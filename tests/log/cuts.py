"""Every folder that a power cut may leave of a simulated disk. A sample of them is ``SimulatedFiles.images``.

Duty: enumeration, none left out. ``whole``: any subset of the writes that are not synced or in doubt, and any subset of
the changes of names. ``damaged``: the same, and one of the writes is torn (only its beginning or only its end is there,
cut every ``step`` bytes) or has a bit turned (in every ``step``-th byte), whatever becomes of all others.

Two things keep the number small, and neither leaves a case out:
- A file that has no name in a folder needs no choice of its content: names are chosen first, then contents.
- Recovery knows ``*.new`` and ``*.compact`` by their names only, so in the images they are empty. ``Leftover`` proves
  it at every recovery: there they cannot be opened.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import TypeVar

from tests.log.disk import Inode, SimulatedFiles, Write, apply, harmless

Image = dict[str, bytes]
T = TypeVar("T")


class Leftover(SimulatedFiles):
    """A folder as a power cut left it, to be recovered."""

    def open(self, path: str, writing: bool) -> int:
        assert not unread(path), f"recovery opens {path}: its content has to be enumerated too"
        return super().open(path, writing)


def unread(name: str) -> bool:
    return name.endswith((".new", ".compact"))


def whole(disk: SimulatedFiles) -> Iterator[Image]:
    contents = {id(inode): whole_contents(inode) for inode in disk.inodes()}
    for names in folders(disk):
        yield from images(names, contents)


def damaged(disk: SimulatedFiles, step: int) -> Iterator[Image]:
    contents = {id(inode): whole_contents(inode) for inode in disk.inodes()}
    harmed = {id(inode): damaged_contents(inode, step) for inode in disk.inodes() if inode.unsynced()}
    for names in folders(disk):
        for inode in {id(inode): inode for name, inode in names.items() if not unread(name)}.values():
            if id(inode) in harmed:
                yield from images(names, {**contents, id(inode): harmed[id(inode)]})


def at_once(disk: SimulatedFiles) -> int:
    """How many writes a power cut could damage together."""
    named = {id(inode): inode for names in folders(disk) for name, inode in names.items() if not unread(name)}
    return sum(offset >= 0 for inode in named.values() for offset, _ in inode.unsynced())


def folders(disk: SimulatedFiles) -> Iterator[dict[str, Inode]]:
    """What the names may stand for: any subset of the changes, in their order."""
    seen: set[frozenset[tuple[str, int]]] = set()
    for kept in subsets(disk.name_changes):
        names = dict(disk.durable_names)
        for name, inode in kept:
            if inode is None:
                names.pop(name, None)
            else:
                names[name] = inode
        key = frozenset((name, id(inode)) for name, inode in names.items())
        if key not in seen:
            seen.add(key)
            yield names


def images(names: dict[str, Inode], contents: dict[int, list[bytes]]) -> Iterator[Image]:
    """Every combination of the files' contents; two names of one file have the same."""
    read = {id(inode): contents[id(inode)] for name, inode in names.items() if not unread(name)}
    for chosen in itertools.product(*read.values()):
        content = dict(zip(read, chosen, strict=True))
        yield {name: b"" if unread(name) else content[id(inode)] for name, inode in names.items()}


def whole_contents(inode: Inode) -> list[bytes]:
    return list(dict.fromkeys(content(inode, kept) for kept in subsets(inode.unsynced())))


def damaged_contents(inode: Inode, step: int) -> list[bytes]:
    writes = inode.unsynced()
    found: dict[bytes, None] = {}
    for index, write in enumerate(writes):
        if harmless(inode.durable, write):
            continue
        for before in subsets(writes[:index]):
            for behind in subsets(writes[index + 1 :]):
                for harmed in damages(write, step):
                    found[content(inode, [*before, harmed, *behind])] = None
    return list(found)


def damages(write: Write, step: int) -> Iterator[Write]:
    """A truncation happens or not; bytes may be torn, and turned."""
    offset, data = write
    if offset < 0:
        return
    for cut in range(step, len(data), step):
        yield offset, data[:cut]
        yield offset + cut, data[cut:]
    for at in range(0, len(data), step):
        turned = bytearray(data)
        turned[at] ^= 1 << at // step % 8
        yield offset, bytes(turned)


def content(inode: Inode, writes: list[Write]) -> bytes:
    image = bytearray(inode.durable)
    for write in writes:
        apply(image, write)
    return bytes(image)


def subsets(items: Sequence[T]) -> Iterator[list[T]]:
    for chosen in itertools.product((False, True), repeat=len(items)):
        yield list(itertools.compress(items, chosen))
