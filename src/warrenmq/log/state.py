"""What the changes of the log amount to, up to a synced position: the next checkpoint in the making.

Duty: absorb synced changes in log order: definitions and delivered positions into dicts, settles, moves and drops into
one buffer per segment they concern (the next block of that segment's ledger). Not here: files. The same code runs while
the broker runs (so that a checkpoint is always a state that some synced batch left) and at recovery.
"""

from __future__ import annotations

from typing import final

from librt.strings import BytesWriter, read_i32_le, read_i64_le
from mypy_extensions import i64

from warrenmq.log.change import change_size, key_length, kind_length, value_length, write_settles
from warrenmq.log.format import LogCorrupt
from warrenmq.log.layout import (
    ADDRESS_AT,
    DEFINE,
    DEFINE_FIXED,
    DELIVERED,
    DELIVERED_POSITION_AT,
    DROP,
    DROP_COUNT_AT,
    DROP_FIXED,
    DROP_SEGMENT,
    ENQUEUE,
    EVENT_TURN,
    QUEUE_AT,
    REQUEUE,
    RUN_COUNT_AT,
    SETTLE,
    SETTLE_FIXED,
    SETTLE_RUN,
    SETTLE_RUN_FIXED,
    UNDEFINE_FIXED,
)
from warrenmq.log.manifest import Manifest


@final
class PendingLedger:
    """The changes of one segment's records since the last checkpoint, settles of one queue joined into runs."""

    def __init__(self) -> None:
        self.out: BytesWriter = BytesWriter()
        self.queue: i64 = -1
        self.first: i64 = 0
        self.count: i64 = 0

    def settle(self, queue_id: i64, address: i64, count: i64) -> None:
        if queue_id == self.queue and address == self.first + self.count:
            self.count += count
            return
        self.flush()
        self.queue = queue_id
        self.first = address
        self.count = count

    def flush(self) -> None:
        if self.count == 0:
            return
        write_settles(self.out, self.queue, self.first, self.count)
        self.count = 0
        self.queue = -1

    def other(self, change: bytes) -> None:
        self.flush()
        self.out.write(change)

    def value(self) -> bytes:
        self.flush()
        return self.out.getvalue()


@final
class LogState:
    """The log's durable state at (segment, offset), without the messages."""

    def __init__(self) -> None:
        self.segment: i64 = 0
        self.offset: i64 = 0
        self.batch: i64 = 0  # last turn absorbed
        self.next_message_id: i64 = 1
        self.definitions: dict[tuple[str, str], bytes] = {}
        self.definition_bytes: i64 = 0
        self.delivered: dict[int, int] = {}
        self.pending: dict[int, PendingLedger] = {}
        self.pending_bytes: i64 = 0
        self._segment: i64 = -1
        self._ledger: PendingLedger = PendingLedger()

    def begin(self, manifest: Manifest) -> None:
        """As the last checkpoint left it."""
        self.segment = manifest.segment
        self.offset = manifest.offset
        self.batch = manifest.batch
        self.next_message_id = manifest.next_message_id
        self.definitions = dict(manifest.definitions)
        for (kind, key), value in manifest.definitions.items():
            self.definition_bytes += len(value) + len(kind) + len(key)
        self.delivered = dict(manifest.delivered)

    def ledger(self, segment: i64) -> PendingLedger:
        if segment == self._segment:
            return self._ledger
        found = self.pending.get(segment)
        if found is None:
            found = PendingLedger()
            self.pending[segment] = found
        self._segment = segment
        self._ledger = found
        return found

    def take_pending(self) -> dict[int, PendingLedger]:
        """The ledgers' next blocks, for a checkpoint of the state as it is now."""
        taken = self.pending
        self.pending = {}
        self.pending_bytes = 0
        self._segment = -1
        return taken

    def forget_cache(self) -> None:
        """``pending`` was changed from outside."""
        self._segment = -1

    def give_back(self, blocks: dict[int, bytes]) -> None:
        """The checkpoint failed: its blocks go before what came since."""
        for segment, block in blocks.items():
            later = self.pending.get(segment)
            ledger = PendingLedger()
            ledger.out.write(block)
            if later is not None:
                ledger.out.write(later.value())
            self.pending[segment] = ledger
            self.pending_bytes += len(block)
        self._segment = -1

    def absorb(self, data: bytes) -> None:
        """Apply the changes of one synced batch."""
        at: i64 = 0
        end: i64 = len(data)
        self.pending_bytes += end
        while at < end:
            kind = data[at]
            if kind == SETTLE:
                address = read_i64_le(data, at + ADDRESS_AT)
                self.ledger(address >> 32).settle(i64(read_i32_le(data, at + QUEUE_AT)), address, 1)
                at += SETTLE_FIXED
                continue
            if kind == SETTLE_RUN:
                address = read_i64_le(data, at + ADDRESS_AT)
                self.ledger(address >> 32).settle(
                    i64(read_i32_le(data, at + QUEUE_AT)), address, i64(read_i32_le(data, at + RUN_COUNT_AT))
                )
                at += SETTLE_RUN_FIXED
                continue
            size = change_size(data, at)
            if size == 0:
                raise LogCorrupt(f"unknown change {kind} in a batch that checks: written by a newer Warren?")
            if kind == DELIVERED:
                queue = int(read_i32_le(data, at + QUEUE_AT))
                position = int(read_i64_le(data, at + DELIVERED_POSITION_AT))
                if position > self.delivered.get(queue, 0):
                    self.delivered[queue] = position
            elif kind == ENQUEUE or kind == REQUEUE:
                self.ledger(read_i64_le(data, at + ADDRESS_AT) >> 32).other(data[at : at + size])
            elif kind == DROP:
                self._drop(data, at, size)
            elif kind < EVENT_TURN:
                self._definition(data, at, kind == DEFINE)
            at += size

    def _drop(self, data: bytes, at: i64, size: i64) -> None:
        queue = int(read_i32_le(data, at + QUEUE_AT))
        self.delivered.pop(queue, None)
        short = data[at : at + DROP_COUNT_AT] + bytes(
            DROP_FIXED - DROP_COUNT_AT
        )  # within a ledger the segment is known
        index = at + DROP_FIXED
        while index < at + size:
            self.ledger(i64(read_i32_le(data, index))).other(short)
            index += DROP_SEGMENT

    def _definition(self, data: bytes, at: i64, define: bool) -> None:
        kind_at = at + (DEFINE_FIXED if define else UNDEFINE_FIXED)
        key_at = kind_at + kind_length(data, at)
        value_at = key_at + key_length(data, at)
        kind = data[kind_at:key_at].decode("utf-8", "surrogateescape")
        key = data[key_at:value_at].decode("utf-8", "surrogateescape")
        # defined again it keeps its place: what refers to it comes behind it
        old = self.definitions.get((kind, key))
        if old is not None:
            self.definition_bytes -= len(old) + len(kind) + len(key)
        if define:
            value = data[value_at : value_at + value_length(data, at)]
            self.definitions[(kind, key)] = value
            self.definition_bytes += len(value) + len(kind) + len(key)
        elif old is not None:
            del self.definitions[(kind, key)]
