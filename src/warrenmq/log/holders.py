"""Who still holds the records of one segment, from what was written and what changed since.

Duty: the exact holders of each record of one segment, given the segment's records and all changes that concern it, in
order. Used by recovery (to rebuild queues) and compaction (to rewrite records). Memory is bounded by one segment: a
counter a record, and exact lists only for records that several queues share or that were moved or came back.
"""

from __future__ import annotations

from typing import Final, final

from librt.strings import read_i32_le, read_i64_le
from librt.vecs import append, vec
from mypy_extensions import i64, u8

from warrenmq.log.change import change_size
from warrenmq.log.format import LogCorrupt
from warrenmq.log.layout import (
    ADDRESS_AT,
    DROP,
    ENQUEUE,
    ENQUEUE_EXPIRY_AT,
    ENQUEUE_FLAGS_AT,
    ENQUEUE_POSITION_AT,
    HOLDER,
    HOLDER_EXPIRY_AT,
    HOLDER_FLAGS_AT,
    HOLDER_POSITION_AT,
    HOLDER_QUEUE_AT,
    QUEUE_AT,
    RECORD_BITS,
    REQUEUE,
    REQUEUE_FLAGS_AT,
    REQUEUE_POSITION_AT,
    RUN_COUNT_AT,
    SETTLE,
    SETTLE_RUN,
)
from warrenmq.log.record import Holder, holder_count, holders_start

DEAD: Final = 0
AS_WRITTEN: Final = 1
EXACT: Final = 2  # ask ``exact`` after ``resolve``

MOVED: Final = 255


@final
class Holders:
    """The holders of every record of a segment, resolved from its changes in order."""

    def __init__(self, changes: bytes) -> None:
        self.changes: Final = changes
        self.gone: vec[u8] = vec[u8]()
        self.dropped: set[int] = set()
        self.exact: dict[int, list[Holder]] = {}
        self._count()

    def _mark(self, record: i64, moved: bool) -> None:
        while len(self.gone) <= record:
            self.gone = append(self.gone, u8(0))
        if moved:
            self.gone[record] = u8(MOVED)
        elif i64(self.gone[record]) < MOVED - 1:
            self.gone[record] = u8(i64(self.gone[record]) + 1)

    def _count(self) -> None:
        data = self.changes
        at: i64 = 0
        end: i64 = len(data)
        while at < end:
            kind = data[at]
            if kind == SETTLE:
                self._mark(read_i64_le(data, at + ADDRESS_AT) & RECORD_BITS, False)
            elif kind == SETTLE_RUN:
                record = read_i64_le(data, at + ADDRESS_AT) & RECORD_BITS
                count = i64(read_i32_le(data, at + RUN_COUNT_AT))
                while count > 0:
                    self._mark(record, False)
                    record += 1
                    count -= 1
            elif kind == ENQUEUE or kind == REQUEUE:
                self._mark(read_i64_le(data, at + ADDRESS_AT) & RECORD_BITS, True)
            elif kind == DROP:
                self.dropped.add(read_i32_le(data, at + QUEUE_AT))
            size = change_size(data, at)
            if size == 0:
                raise LogCorrupt(f"unknown change {kind} in a ledger that checks: written by a newer Warren?")
            at += size

    def classify(self, record: i64, data: bytes, at: i64) -> i64:
        """DEAD, AS_WRITTEN or EXACT for the message at ``at``; an EXACT one is noted for ``resolve``."""
        count = holder_count(data, at)
        if count == 0:
            return DEAD
        gone: i64 = 0
        if record < len(self.gone):
            gone = i64(self.gone[record])
        start = holders_start(data, at)
        if gone == 0:
            if not self.dropped:
                return AS_WRITTEN
            touched = False
            index: i64 = 0
            while index < count:
                if int(read_i32_le(data, start + index * HOLDER + HOLDER_QUEUE_AT)) in self.dropped:
                    touched = True
                index += 1
            if not touched:
                return AS_WRITTEN
        if count == 1 and gone != MOVED:
            return DEAD  # settled once, or its queue dropped
        self.exact[record] = read_holders(data, start, count)
        return EXACT

    def resolve(self) -> None:
        """Apply every change, in order, to the records that need it."""
        if not self.exact:
            return
        data = self.changes
        at: i64 = 0
        end: i64 = len(data)
        while at < end:
            kind = data[at]
            queue = int(read_i32_le(data, at + QUEUE_AT))
            if kind == SETTLE:
                self._settle(queue, read_i64_le(data, at + ADDRESS_AT) & RECORD_BITS)
            elif kind == SETTLE_RUN:
                record = read_i64_le(data, at + ADDRESS_AT) & RECORD_BITS
                count = i64(read_i32_le(data, at + RUN_COUNT_AT))
                while count > 0:
                    self._settle(queue, record)
                    record += 1
                    count -= 1
            elif kind == ENQUEUE:
                held = self.exact.get(read_i64_le(data, at + ADDRESS_AT) & RECORD_BITS)
                if held is not None:
                    held.append(
                        (
                            queue,
                            read_i64_le(data, at + ENQUEUE_POSITION_AT),
                            read_i64_le(data, at + ENQUEUE_EXPIRY_AT),
                            read_i32_le(data, at + ENQUEUE_FLAGS_AT),
                        )
                    )
            elif kind == REQUEUE:
                held = self.exact.get(read_i64_le(data, at + ADDRESS_AT) & RECORD_BITS)
                if held is not None:
                    replace_holder(
                        held,
                        queue,
                        read_i64_le(data, at + REQUEUE_POSITION_AT),
                        read_i32_le(data, at + REQUEUE_FLAGS_AT),
                    )
            elif kind == DROP:
                for held in self.exact.values():
                    remove_holder(held, queue)
            at += change_size(data, at)

    def _settle(self, queue: int, record: i64) -> None:
        held = self.exact.get(record)
        if held is not None:
            remove_holder(held, queue)


def read_holders(data: bytes, start: i64, count: i64) -> list[Holder]:
    found: list[Holder] = []
    at = start
    while count > 0:
        found.append(
            (
                int(read_i32_le(data, at + HOLDER_QUEUE_AT)),
                int(read_i64_le(data, at + HOLDER_POSITION_AT)),
                int(read_i64_le(data, at + HOLDER_EXPIRY_AT)),
                int(read_i32_le(data, at + HOLDER_FLAGS_AT)),
            )
        )
        at += HOLDER
        count -= 1
    return found


def replace_holder(held: list[Holder], queue: int, position: int, flags: int) -> None:
    for index, holder in enumerate(held):
        if holder[0] == queue:
            held[index] = (queue, position, holder[2], flags)
            return


def remove_holder(held: list[Holder], queue: int) -> None:
    for index, holder in enumerate(held):
        if holder[0] == queue:
            del held[index]
            return
