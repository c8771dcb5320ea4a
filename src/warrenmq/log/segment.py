"""One segment as memory knows it: who holds each record, where it stands, what is dead. Seven bytes a record.

Duty: the table of one segment and its file names. Not here: reading and writing files (``reader``, ``tail``), what the
numbers lead to (``maintenance``). Invariants: ``references`` counts what queues hold *now*, synced or not; ``offsets``
and ``sizes`` know synced records only; record numbers never change, a compacted segment merely has gaps
(``numbers`` then lists those present, in order).
"""

from __future__ import annotations

from typing import Final, final

from librt.vecs import append, vec
from mypy_extensions import i16, i32, i64, u8

MANY: Final = 255  # this and more references are counted in a dict
SIZE_UNIT: Final = 16  # sizes are kept rounded up, in these units
SIZE_CLAMP: Final = 32767  # units; a larger record is read in two steps


def file_name(segment: i64, part: i64) -> str:
    return f"segment-{segment:010d}.log" if part == 0 else f"segment-{segment:010d}.{part}.log"


def ledger_name(segment: i64, generation: i64) -> str:
    return f"segment-{segment:010d}.{generation}.ledger"


def parse_file_name(name: str) -> tuple[int, int] | None:
    """(segment, part) of a segment file's name, None for any other name."""
    if not name.startswith("segment-") or not name.endswith(".log"):
        return None
    words = name[8:-4].split(".")
    if not words[0].isdigit() or len(words) > 2 or (len(words) == 2 and not words[1].isdigit()):
        return None
    return int(words[0]), int(words[1]) if len(words) == 2 else 0


@final
class Part:
    """One file of a segment: the batches from segment offset ``base`` on."""

    def __init__(self, part: i64, base: i64) -> None:
        self.part: Final = part
        self.base: Final = base


@final
class Segment:
    """The records of one segment file: who holds each, how long it is, how much of the file is dead."""

    def __init__(self, number: i64) -> None:
        self.number: Final = number
        self.generation: i64 = 0
        self.old: bool = False  # written in an earlier format, so its records cannot be checked one by one
        self.unreadable: bool = False  # a batch of it does not check: it stays as it is
        self.parts: list[Part] = []
        self.end: i64 = 0  # segment offset behind the last synced batch
        self.manifest_generation: i64 = 0  # as the manifest names it
        self.ledger: i64 = 0  # length of its ledger as the manifest names it
        self.references: vec[u8] = vec[u8]()
        self.many: dict[int, int] = {}
        self.offsets: vec[i32] = vec[i32]()  # segment offsets, unsigned
        self.sizes: vec[i16] = vec[i16]()
        self.sparse: bool = False
        self.numbers: vec[i32] = vec[i32]()  # record numbers, sparse segments only
        self.live: i64 = 0  # records somebody holds
        self.record_bytes: i64 = 0  # of all synced records that are in the file
        self.live_bytes: i64 = 0  # of those somebody holds; both rounded up a little
        self.compacted_at: i64 = 0  # ``dead_at`` when it was last compacted
        self.dead_at: i64 = 0  # the open batch when a record last died

    def slot(self, record: i64) -> i64:
        """Where the tables keep this record; -1 when a compaction left it out."""
        if not self.sparse:
            if record < len(self.references):
                return record
            return -1
        low: i64 = 0
        high: i64 = len(self.numbers)
        while low < high:
            middle = (low + high) >> 1
            if i64(self.numbers[middle]) < record:
                low = middle + 1
            else:
                high = middle
        if low < len(self.numbers) and i64(self.numbers[low]) == record:
            return low
        return -1

    def add(self, holders: i64, record: i64) -> None:
        """A new record at the end, not synced yet."""
        if holders < MANY:
            self.references = append(self.references, u8(holders))
        else:
            self.many[record] = holders
            self.references = append(self.references, u8(MANY))
        if holders > 0:
            self.live += 1

    def place(self, offset: i64, size: i64) -> None:
        """The next record in order is synced, at this offset."""
        slot: i64 = len(self.offsets)
        units = (size + SIZE_UNIT - 1) // SIZE_UNIT
        if units > SIZE_CLAMP:
            units = SIZE_CLAMP
        self.offsets = append(self.offsets, i32(offset))
        self.sizes = append(self.sizes, i16(units))
        self.record_bytes += units * SIZE_UNIT
        if self.references[slot] != u8(0):
            self.live_bytes += units * SIZE_UNIT

    def hold(self, record: i64) -> bool:
        """One more queue holds it. False when the record is dead or unknown."""
        slot = self.slot(record)
        if slot < 0:
            return False
        count = i64(self.references[slot])
        if count == 0:
            return False
        if count >= MANY - 1:
            self.many[record] = self.many.get(record, MANY - 1) + 1
            self.references[slot] = u8(MANY)
        else:
            self.references[slot] = u8(count + 1)
        return True

    def refer(self, record: i64) -> bool:
        """At start: it turns out that somebody holds it, the first one or one more. False when there is no such
        record."""
        slot = self.slot(record)
        if slot < 0 or self.references[slot] != u8(0):
            return slot >= 0 and self.hold(record)
        self.references[slot] = u8(1)
        self.live += 1
        self.live_bytes += i64(self.sizes[slot]) * SIZE_UNIT
        return True

    def release(self, record: i64) -> bool:
        """One queue less holds it. True when that was the last one."""
        slot = self.slot(record)
        if slot < 0:
            return False
        count = i64(self.references[slot])
        if count == 0:
            return False
        if count == MANY:
            left = self.many[record] - 1
            if left < MANY:
                del self.many[record]
                self.references[slot] = u8(left)
            else:
                self.many[record] = left
            return False
        self.references[slot] = u8(count - 1)
        if count > 1:
            return False
        self.live -= 1
        if slot < len(self.sizes):
            self.live_bytes -= i64(self.sizes[slot]) * SIZE_UNIT
        return True

    def holders(self, record: i64) -> i64:
        slot = self.slot(record)
        if slot < 0:
            return 0
        count = i64(self.references[slot])
        return self.many[record] if count == MANY else count

    def add_number(self, record: i64) -> None:
        """Sparse segments: the number of the record that is added next."""
        self.numbers = append(self.numbers, i32(record))

    def count_bytes(self) -> None:
        """Add up the sizes anew, after the tables were replaced."""
        total: i64 = 0
        live: i64 = 0
        slot: i64 = 0
        while slot < len(self.sizes):
            size = i64(self.sizes[slot]) * SIZE_UNIT
            total += size
            if self.references[slot] != u8(0):
                live += size
            slot += 1
        self.record_bytes = total
        self.live_bytes = live

    def waste(self) -> i64:
        """How much of it a compaction would give back, in percent."""
        # of a file compacted before, only what came since: its headers and rounding are there to stay
        size = (self.record_bytes if self.sparse else self.end) + self.ledger
        return 0 if size == 0 else (size - self.live_bytes) * 100 // size

    def offset(self, slot: i64) -> i64:
        return i64(self.offsets[slot]) & 0xFFFFFFFF

    def next_record(self) -> i64:
        """The number the next appended record gets (dense segments only: those still written to)."""
        return len(self.references)
