"""What each consumer still holds: the unacknowledged deliveries of one channel, by delivery tag.

A list indexed by ``tag - base`` while most of its slots are live; a dict (in tag order) when under a quarter are,
so that one slow job does not pin a million empty slots. What is taken costs what it is, however much stays: a client
may acknowledge a million deliveries one ``multiple`` after the other.

Duty: which tags are outstanding. Not here: what an acknowledgement does to the queue.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Final, cast, final

from librt.vecs import append, vec
from mypy_extensions import i64

from warrenmq.broker.channel.late_tags import LateTags
from warrenmq.broker.queue.queue import Entry
from warrenmq.wire.constants import CLASS_BASIC, ID_BASIC_ACK
from warrenmq.wire.replies import PRECONDITION_FAILED, AmqpError

METHOD_ACK: Final = ID_BASIC_ACK & 0xFFFF


@final
class Taken:
    """Deliveries with their tags, as they were taken: so that they can be put back."""

    def __init__(self, tags: vec[i64], entries: list[Entry]) -> None:
        self.tags: vec[i64] = tags
        self.entries: Final = entries

    def add(self, tag: i64, entry: Entry) -> None:
        self.tags = append(self.tags, tag)
        self.entries.append(entry)

    def is_whole(self) -> bool:
        """Does each follow the one before, without a gap?"""
        if len(self.tags) == 0:
            return False
        next: i64 = self.tags[0]
        for tag in self.tags:
            if tag != next:
                return False
            next += 1
        return True


@final
class Unacked:
    """The outstanding deliveries of one channel, found by tag, one or many at a time."""

    def __init__(self) -> None:
        self.count: i64 = 0
        self._base: i64 = 1  # tag of slot 0
        self._head: i64 = 0  # slots before it are empty
        self._slots: list[Entry | None] = []
        self._sparse: dict[int, Entry] | None = None
        self._tags: list[int] = []  # of the dict, in order, and some that are gone: a dict finds its first slowly
        self._first: i64 = 0  # those before it are gone
        self.late: LateTags | None = None  # tags of deliveries that missed their deadline, which may yet be settled
        self.rewound: bool = False  # are tags outstanding again that were not?

    def add(self, tag: i64, entry: Entry) -> None:
        """Tags only grow; those of auto-ack deliveries never come here and leave gaps."""
        self.count += 1
        sparse = self._sparse
        if sparse is not None:
            sparse[tag] = entry
            self._tags.append(tag)
            return
        slots = self._slots
        if self.count == 1:
            slots.clear()
            self._head = 0
            self._base = tag
        gap: i64 = tag - self._base - len(slots)
        if gap > 64 and self.count * 4 < len(slots) + gap:
            self._to_sparse()[tag] = entry
            self._tags.append(tag)
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
                self._thin_out(sparse)
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
                slots.clear()  # where they begin is said by the next one
            elif self._head > 512 and self._head * 2 > len(slots):
                del slots[: self._head]
                self._base += self._head
                self._head = 0
        elif index > 1024 and self.count * 4 < len(slots) - self._head:
            self._to_sparse()
        return entry

    def is_late(self, tag: i64) -> bool:
        """Was it given back because it missed its deadline? Then whatever its client says about it is ignored."""
        return self.late is not None and tag in self.late

    def behind(self, tag: i64, most: i64) -> list[tuple[int, Entry]]:
        """Outstanding deliveries with later tags than this, oldest first, at most so many."""
        found: list[tuple[int, Entry]] = []
        sparse = self._sparse
        if sparse is not None:
            at = bisect_right(self._tags, tag)
            while at < len(self._tags) and len(found) < most:
                entry = sparse.get(self._tags[at])
                if entry is not None:
                    found.append((self._tags[at], entry))
                at += 1
            return found
        i: i64 = max(self._head, tag + 1 - self._base)
        while i < len(self._slots) and len(found) < most:
            slot = self._slots[i]
            if slot is not None:
                found.append((self._base + i, slot))
            i += 1
        return found

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
            for key in self._tags_up_to(tag):
                taken.append(sparse.pop(key))
            self.count -= len(taken)
            self._thin_out(sparse)
            return taken
        slots = self._slots
        end: i64 = len(slots)
        if tag:
            end = min(end, tag - self._base + 1)
        if end == len(slots) and self.count == end - self._head:  # all, without a gap: no need to look at each
            whole = cast(list[Entry], slots if self._head == 0 else slots[self._head :])
            self._slots = []
            self.count = 0
            return whole
        i: i64 = self._head
        while i < end:
            entry = slots[i]
            if entry is not None:
                taken.append(entry)
                slots[i] = None
            i += 1
        self.count -= len(taken)
        if end > self._head:
            self._head = end
            if self.count == 0 or (end > 512 and end * 2 > len(slots)):
                del slots[:end]
                self._base += end
                self._head = 0
        return taken

    def take_tagged_up_to(self, tag: i64) -> Taken:
        """What ``take_up_to`` would return, with the tags."""
        tags = vec[i64]()
        if self._sparse is not None:
            first = self._first
            for known in self._tags_up_to(tag):
                tags = append(tags, known)
            self._first = first  # they are taken below
        else:
            i: i64 = self._head
            while i < len(self._slots) and (tag == 0 or self._base + i <= tag):
                if self._slots[i] is not None:
                    tags = append(tags, self._base + i)
                i += 1
        return Taken(tags, self.take_up_to(tag))

    def _tags_up_to(self, tag: i64) -> list[int]:
        """In the dict, up to this tag (0 means all); whoever asks takes them out of it."""
        sparse = self._sparse
        assert sparse is not None
        found: list[int] = []
        i = self._first
        while i < len(self._tags) and (tag == 0 or self._tags[i] <= tag):
            if self._tags[i] in sparse:
                found.append(self._tags[i])
            i += 1
        self._first = i
        return found

    def _thin_out(self, sparse: dict[int, Entry]) -> None:
        """Some were taken out of the dict."""
        if self.count == 0:
            self._sparse = None
            self._tags = []
        elif len(self._tags) > 2 * self.count + 1024:
            self._sparse = dict(sparse)
            self._tags = list(sparse)
            self._first = 0

    def copied(self) -> list[Entry | None]:
        """All outstanding deliveries with the gaps between them: quick, however many they are."""
        if self._sparse is not None:
            return [*self._sparse.values()]
        return self._slots[self._head :]

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

    def put_back(self, taken: list[Taken]) -> list[list[Entry]]:
        """Make deliveries outstanding again under their old tags (tx.rollback). Returns lists that nobody needs any
        more: freed at once, very many of them would take long."""
        self.rewound = True
        if self.count == 0 and len(taken) == 1 and taken[0].is_whole():
            self._base = taken[0].tags[0]
            self._head = 0
            self._slots = cast(list[Entry | None], taken[0].entries)
            self.count = len(self._slots)
            return []
        self._mix_in(taken)
        return [some.entries for some in taken]

    def _mix_in(self, taken: list[Taken]) -> None:
        """Deliveries outstanding again between others, or with gaps."""
        lowest: i64 = 0
        highest: i64 = 0
        count = self.count
        if self._sparse is None and count > 0:
            while self._slots[self._head] is None:
                self._head += 1
            lowest = self._base + self._head
            highest = self._base + len(self._slots) - 1
        for some in taken:
            for tag in some.tags:
                lowest = tag if lowest == 0 or tag < lowest else lowest
                highest = tag if tag > highest else highest
            count += len(some.entries)
        if self._sparse is not None or highest - lowest > 2 * count + 64:
            self._put_back_sparse(taken)
            return
        if count == self.count:
            return
        slots: list[Entry | None] = [None] * (highest - lowest + 1)
        i: i64 = self._head
        while self.count > 0 and i < len(self._slots):
            slots[self._base + i - lowest] = self._slots[i]
            i += 1
        for some in taken:
            i = 0
            while i < len(some.entries):
                slots[some.tags[i] - lowest] = some.entries[i]
                i += 1
        self._slots = slots
        self._base = lowest
        self._head = 0
        self.count = count

    def _put_back_sparse(self, taken: list[Taken]) -> None:
        sparse = self._to_sparse() if self._sparse is None else self._sparse
        for some in taken:
            i: i64 = 0
            while i < len(some.entries):
                sparse[some.tags[i]] = some.entries[i]
                i += 1
        self._sparse = dict(sorted(sparse.items()))
        self._tags = list(self._sparse)
        self._first = 0
        self.count = len(sparse)

    def _to_sparse(self) -> dict[int, Entry]:
        sparse = dict(self.tagged())
        self._sparse = sparse
        self._tags = list(sparse)
        self._first = 0
        self._slots = []
        self._head = 0
        return sparse


def unknown_tag(tag: i64, method_id: i64) -> AmqpError:
    """Nothing is outstanding under the tag that a method names."""
    shown: int = tag
    said = f"unknown delivery tag {shown if shown >= 0 else shown + (1 << 64)}"
    return AmqpError(PRECONDITION_FAILED, said, CLASS_BASIC, method_id)
