"""What each consumer still holds: the unacknowledged deliveries of one channel, by delivery tag.

A list indexed by ``tag - base`` while most of its slots are live; a dict (in tag order) when under a quarter are,
so that one slow job does not pin a million empty slots.

Duty: which tags are outstanding. Not here: what an acknowledgement does to the queue.
"""

from __future__ import annotations

from typing import final

from mypy_extensions import i64

from warrenmq.broker.message import Entry


@final
class Unacked:
    def __init__(self) -> None:
        self.count: i64 = 0
        self._base: i64 = 1  # tag of slot 0
        self._head: i64 = 0  # slots before it are empty
        self._slots: list[Entry | None] = []
        self._sparse: dict[int, Entry] | None = None

    def add(self, tag: i64, entry: Entry) -> None:
        """Tags only grow; those of auto-ack deliveries never come here and leave gaps."""
        self.count += 1
        sparse = self._sparse
        if sparse is not None:
            sparse[tag] = entry
            return
        slots = self._slots
        if self.count == 1:
            slots.clear()
            self._head = 0
            self._base = tag
        gap: i64 = tag - self._base - len(slots)
        if gap > 64:
            self._to_sparse()[tag] = entry
            return
        while gap > 0:
            slots.append(None)
            gap -= 1
        slots.append(entry)

    def take(self, tag: i64) -> Entry | None:
        """Remove and return one delivery, None when the tag is not outstanding."""
        sparse = self._sparse
        if sparse is not None:
            entry = sparse.pop(tag, None)
            if entry is not None:
                self.count -= 1
                if self.count == 0:
                    self._sparse = None
                    self._slots = []
                    self._head = 0
            return entry
        index: i64 = tag - self._base
        slots = self._slots
        if index < self._head or index >= len(slots):
            return None
        entry = slots[index]
        if entry is None:
            return None
        slots[index] = None
        self.count -= 1
        if index == self._head:
            self._head += 1
            if self.count == 0:
                slots.clear()
                self._base = tag + 1
                self._head = 0
            elif self._head > 512 and self._head * 2 > len(slots):
                del slots[: self._head]
                self._base += self._head
                self._head = 0
        elif index > 1024 and self.count * 4 < len(slots) - self._head:
            self._to_sparse()
        return entry

    def contains(self, tag: i64) -> bool:
        sparse = self._sparse
        if sparse is not None:
            return tag in sparse
        index: i64 = tag - self._base
        return self._head <= index < len(self._slots) and self._slots[index] is not None

    def take_up_to(self, tag: i64) -> list[Entry]:
        """Remove and return every delivery up to and including the tag, oldest first; tag 0 means all."""
        taken: list[Entry] = []
        sparse = self._sparse
        if sparse is not None:
            for key in list(sparse):
                if tag and key > tag:
                    break
                taken.append(sparse.pop(key))
            self.count -= len(taken)
            if self.count == 0:
                self._sparse = None
                self._slots = []
                self._head = 0
            return taken
        slots = self._slots
        end: i64 = len(slots)
        if tag and tag - self._base + 1 < end:
            end = tag - self._base + 1
        i: i64 = self._head
        while i < end:
            entry = slots[i]
            if entry is not None:
                taken.append(entry)
            i += 1
        if end > self._head:
            del slots[:end]
            self._base += end
            self._head = 0
        self.count -= len(taken)
        return taken

    def entries(self) -> list[Entry]:
        """All outstanding deliveries, oldest first."""
        if self._sparse is not None:
            return list(self._sparse.values())
        return [entry for entry in self._slots if entry is not None]

    def tagged(self) -> list[tuple[int, Entry]]:
        if self._sparse is not None:
            return list(self._sparse.items())
        out: list[tuple[int, Entry]] = []
        i: i64 = 0
        for entry in self._slots:
            if entry is not None:
                out.append((self._base + i, entry))
            i += 1
        return out

    def oldest(self) -> Entry | None:
        if self.count == 0:
            return None
        if self._sparse is not None:
            for entry in self._sparse.values():
                return entry
        i: i64 = self._head
        while i < len(self._slots):
            slot = self._slots[i]
            if slot is not None:
                return slot
            i += 1
        return None

    def put_back(self, tagged: list[tuple[int, Entry]]) -> None:
        """Make deliveries outstanding again under their old tags (tx.rollback)."""
        sparse = self._to_sparse()
        for tag, entry in tagged:
            sparse[tag] = entry
        self._sparse = dict(sorted(sparse.items()))
        self.count = len(sparse)

    def _to_sparse(self) -> dict[int, Entry]:
        sparse = dict(self.tagged())
        self._sparse = sparse
        self._slots = []
        self._head = 0
        return sparse
