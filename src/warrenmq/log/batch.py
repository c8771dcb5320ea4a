"""The open batch, and the closed ones on their way to the disk.

Duty: turn what happens in a turn into bytes, without I/O and without an object per message. Not here: numbering across
batches and references (``log``), files (``tail``).
"""

from __future__ import annotations

from typing import Final, final

from librt.strings import BytesWriter, write_i16_le, write_i32_le, write_i64_le
from librt.vecs import append, vec
from mypy_extensions import i16, i32, i64

from warrenmq.log.causes import ACKED
from warrenmq.log.change import write_settles
from warrenmq.log.confirmed import Confirmed
from warrenmq.log.events import Events, write_cause
from warrenmq.log.format import payload_crc
from warrenmq.log.layout import (
    BATCH_HEADER,
    CHUNK,
    CHUNKED,
    DEFINE,
    DELIVERED,
    DROP,
    ENQUEUE,
    MESSAGE,
    REQUEUE,
    SETTLE,
    UNDEFINE,
)
from warrenmq.log.leasings import Leasings
from warrenmq.log.levels import Levels
from warrenmq.log.reads import Reads
from warrenmq.log.record import decode_message, message_id_of, number_of, record_size, write_chunk, written_head
from warrenmq.log.sums import Sums, chained, holder_head, signed, total
from warrenmq.log.told_bodies import ToldBodies
from warrenmq.log.unlogged import Unlogged

NUMBER: Final = 0  # what is kept of a record in a batch that waits for the disk: its number, and of a message its id
HEAD: Final = 1  # all but its body, which is empty, and its holders, which are none
WHOLE: Final = 2  # somebody holds it

KEEP_BUFFER: Final = 8 << 20  # a larger buffer is given back rather than kept for the next batch


@final
class Sealed:
    """A closed batch: bytes that no longer change, kept until they are synced."""

    def __init__(
        self,
        segment: i64,
        first_record: i64,
        offsets: vec[i32],
        messages: bytes,
        heads: i64,
        changes: bytes,
        number: i64,
        time: i64,
    ) -> None:
        self.segment: Final = segment
        self.first_record: Final = first_record
        self.offsets: Final = offsets  # of its records, within ``messages``
        self.messages: Final = messages
        self.heads: Final = heads  # the sums of their heads, chained
        self.changes: Final = changes
        self.number: Final = number  # the last turn in it
        self.time: Final = time  # when it was closed, µs
        # its place, which it gets when it is given to the disk, and what its header says besides
        self.at: i64 = -1  # segment offset of its header
        self.epoch: i64 = 0
        self.sum: i64 = -1  # of the payload, where it was needed before it is written

    def size(self) -> i64:
        """What it takes on disk."""
        return BATCH_HEADER + len(self.messages) + len(self.changes)

    def payload_sum(self) -> i64:
        if self.sum < 0:
            self.sum = payload_crc(self.heads, self.changes)
        return self.sum

    def holds(self, segment: i64, record: i64) -> bool:
        """Whether it is one of its records. In a batch without any, ``first_record`` means nothing."""
        index = record - self.first_record
        return self.segment == segment and index >= 0 and index < len(self.offsets)

    def size_of(self, index: i64) -> i64:
        if index + 1 < len(self.offsets):
            return i64(self.offsets[index + 1]) - i64(self.offsets[index])
        return len(self.messages) - i64(self.offsets[index])

    def record(self, number: i64) -> bytes:
        """The bytes of one of its records."""
        index = number - self.first_record
        at = i64(self.offsets[index])
        return self.messages[at : at + self.size_of(index)]


@final
class OpenBatch:
    """The records of the turns since the last commit began."""

    def __init__(self, start: i64) -> None:
        self.sums: Final = Sums(start)
        self.heads: i64 = start  # the sums of the heads of its records, chained
        self.head: i64 = 0  # of the message being written
        self.lacking: i64 = 0  # how many of its holders are still to come
        self.messages: BytesWriter = BytesWriter()
        self.changes: BytesWriter = BytesWriter()
        self.cause: i64 = ACKED  # of the last settle
        self.events: Final = Events()
        self.unlogged: Final = Unlogged(self.events)
        self.levels: Final = Levels(self.events)
        self.confirmed: Final = Confirmed(self.events, self.unlogged)
        self.reads: Final = Reads(self.events)
        self.leasings: Final = Leasings(self.events)
        self.told_bodies: Final = ToldBodies(self.events)
        self.offsets: vec[i32] = vec[i32]()
        self.first_record: i64 = 0
        self.exchange: str = ""
        self.keys: bytes = b""
        self.name_length: i64 = 0
        self.route: bytes = b""  # exchange and keys of the last message, as they are written
        self.copied: bytes = b""  # for reads of records not sealed yet

    def size(self) -> i64:
        """Of what somebody may wait for."""
        return len(self.messages) + len(self.changes)

    def is_empty(self) -> bool:
        """Has it not even events?"""
        return len(self.messages) + len(self.changes) == 0 and self.events.is_empty()

    def begin_message(
        self,
        kind: i64,
        record: i64,
        message_id: i64,
        header: bytes,
        body: bytes,
        exchange: str,
        routing_keys: bytes,
        flags: i64,
        holders: i64,
    ) -> None:
        """All of a message but its holders, which the caller adds with ``holder``, each of them."""
        if exchange is not self.exchange or routing_keys is not self.keys:
            name = exchange.encode("utf-8", "surrogateescape")
            self.exchange = exchange
            self.keys = routing_keys
            self.name_length = len(name)
            self.route = name + routing_keys
        out = self.messages
        if len(self.offsets) == 0:
            self.first_record = record
        self.offsets = append(self.offsets, i32(len(out)))
        sum = total(body)
        self.head = self.sums.head(
            kind == CHUNKED,
            record,
            message_id,
            flags,
            holders,
            header,
            len(body),
            sum,
            self.name_length,
            self.route,
        )
        out.append(CHUNKED if kind == CHUNKED else MESSAGE)
        write_i32_le(out, i32(record))
        write_i64_le(out, message_id)
        write_i32_le(out, i32(flags))
        write_i32_le(out, i32(holders))
        write_i32_le(out, i32(len(header)))
        write_i32_le(out, i32(len(body)))
        write_i16_le(out, i16(self.name_length))
        write_i32_le(out, i32(len(routing_keys)))
        write_i32_le(out, i32(signed(sum)))
        out.write(header)
        out.write(body)
        out.write(self.route)
        self.lacking = holders
        if holders == 0:
            self._end_message()

    def holder(self, queue_id: i64, position: i64, expiry: i64, flags: i64) -> bool:
        """One of the holders of the message that was begun. True with the last, which ends it."""
        out = self.messages
        write_i32_le(out, i32(queue_id))
        write_i64_le(out, position)
        write_i64_le(out, expiry)
        write_i32_le(out, i32(flags))
        self.head = holder_head(self.head, queue_id, position, expiry, flags)
        self.lacking -= 1
        if self.lacking > 0:
            return False
        self._end_message()
        return True

    def _end_message(self) -> None:
        write_i32_le(self.messages, i32(signed(self.head)))
        self.heads = chained(self.heads, self.head)

    def chunk(self, record: i64, data: bytes) -> None:
        out = self.messages
        if len(self.offsets) == 0:
            self.first_record = record
        self.offsets = append(self.offsets, i32(len(out)))
        self.heads = chained(self.heads, write_chunk(out, self.sums, record, data, total(data)))

    def say_cause(self, cause: i64) -> None:
        """Why the settles that follow are."""
        self.cause = cause
        write_cause(self.changes, cause)

    def settle(self, queue_id: i64, address: i64) -> None:
        out = self.changes
        out.append(SETTLE)
        write_i32_le(out, i32(queue_id))
        write_i64_le(out, address)

    def settle_run(self, queue_id: i64, address: i64, count: i64) -> None:
        write_settles(self.changes, queue_id, address, count)

    def enqueue(self, queue_id: i64, address: i64, position: i64, expiry: i64, flags: i64) -> None:
        out = self.changes
        out.append(ENQUEUE)
        write_i32_le(out, i32(queue_id))
        write_i64_le(out, address)
        write_i64_le(out, position)
        write_i64_le(out, expiry)
        write_i32_le(out, i32(flags))

    def requeue(self, queue_id: i64, address: i64, position: i64, flags: i64) -> None:
        out = self.changes
        out.append(REQUEUE)
        write_i32_le(out, i32(queue_id))
        write_i64_le(out, address)
        write_i64_le(out, position)
        write_i32_le(out, i32(flags))

    def delivered(self, queue_id: i64, position: i64) -> None:
        out = self.changes
        out.append(DELIVERED)
        write_i32_le(out, i32(queue_id))
        write_i64_le(out, position)

    def drop(self, queue_id: i64, segments: list[int]) -> None:
        out = self.changes
        out.append(DROP)
        write_i32_le(out, i32(queue_id))
        write_i32_le(out, i32(len(segments)))
        for segment in segments:
            write_i32_le(out, i32(segment))

    def define(self, kind: str, key: str, value: bytes) -> None:
        out = self.changes
        kind_bytes = kind.encode("utf-8", "surrogateescape")
        key_bytes = key.encode("utf-8", "surrogateescape")
        out.append(DEFINE)
        write_i16_le(out, i16(len(kind_bytes)))
        write_i32_le(out, i32(len(key_bytes)))
        write_i32_le(out, i32(len(value)))
        out.write(kind_bytes)
        out.write(key_bytes)
        out.write(value)

    def undefine(self, kind: str, key: str) -> None:
        out = self.changes
        kind_bytes = kind.encode("utf-8", "surrogateescape")
        key_bytes = key.encode("utf-8", "surrogateescape")
        out.append(UNDEFINE)
        write_i16_le(out, i16(len(kind_bytes)))
        write_i32_le(out, i32(len(key_bytes)))
        out.write(kind_bytes)
        out.write(key_bytes)

    def end_turn(self, time: i64) -> None:
        """Say when all this was that came since the turn before."""
        self.unlogged.end_turn()
        self.reads.end_turn()
        self.leasings.end_turn()
        self.levels.end_turn()
        self.told_bodies.end_turn()
        self.events.end_turn(time, len(self.offsets), len(self.changes))

    def seal(self, segment: i64, number: i64, time: i64) -> Sealed:
        """Close it; the open batch begins anew, empty."""
        messages = self.messages.getvalue()
        changes = self.changes.getvalue()
        if not self.events.is_empty():
            changes += self.events.take()
        self.cause = ACKED
        sealed = Sealed(segment, self.first_record, self.offsets, messages, self.heads, changes, number, time)
        self.heads = self.sums.start
        self.offsets = vec[i32]()
        self.copied = b""
        if len(sealed.messages) > KEEP_BUFFER:
            self.messages = BytesWriter()
        else:
            self.messages.truncate(0)
        if len(sealed.changes) > KEEP_BUFFER:
            self.changes = BytesWriter()
        else:
            self.changes.truncate(0)
        return sealed

    def record(self, number: i64) -> bytes:
        """The bytes of one of its records."""
        at = i64(self.offsets[number - self.first_record])
        if at >= len(self.copied):
            self.copied = self.messages.getvalue()  # once for many reads
        return self.copied[at : at + record_size(self.copied, at)]


def without_dead(sealed: Sealed, kept: vec[i64], start: i64) -> Sealed:
    """The same batch with its dead records emptied: they keep their numbers and lose their bodies, or, where nothing
    but the NUMBER is kept, all that they were.

    For a batch that waits for the disk to come back: what nobody holds any more need not be written. What it was, the
    journal tells.
    """
    out = OpenBatch(start)
    data = sealed.messages
    i: i64 = 0
    while i < len(sealed.offsets):
        at = i64(sealed.offsets[i])
        record = number_of(data, at)
        if kept[i] == WHOLE:
            if i == 0:
                out.first_record = record
            out.offsets = append(out.offsets, i32(len(out.messages)))
            out.messages.write(data[at : at + sealed.size_of(i)])
            out.heads = chained(out.heads, written_head(data, at, sealed.size_of(i)))
        elif data[at] == CHUNK:
            out.chunk(record, b"")
        elif kept[i] == HEAD:
            was = decode_message(data, at, with_body=False)
            out.begin_message(
                MESSAGE, record, was.message_id, was.header, b"", was.exchange, was.routing_keys, was.flags, 0
            )
        else:
            out.begin_message(MESSAGE, record, message_id_of(data, at), b"", b"", "", b"", 0, 0)
        i += 1
    messages = out.messages.getvalue()
    return Sealed(
        sealed.segment,
        sealed.first_record,
        out.offsets,
        messages,
        out.heads,
        sealed.changes,
        sealed.number,
        sealed.time,
    )
