"""Reading messages by address: from memory while they are not synced, from disk afterwards, many at a time.

Duty: address -> message, checked whenever it comes from disk. What stands where is the segments' tables', the files are
``reader``'s, and what is not synced yet is ``commits``'.
"""

from __future__ import annotations

import errno
from typing import Final, final

from mypy_extensions import i64

from warrenmq.log.commits import Commits
from warrenmq.log.core import Core
from warrenmq.log.damage import MISMATCH, RecordDamaged
from warrenmq.log.format import LogError, StoredMessage
from warrenmq.log.holders import read_holders
from warrenmq.log.layout import RECORD_BITS
from warrenmq.log.record import (
    HEAD_DAMAGED,
    WHOLE,
    check,
    chunk_bytes,
    decode_message,
    holder_count,
    holders_start,
    is_chunk,
    is_chunked,
    number_of,
    record_size,
)
from warrenmq.log.segment import SIZE_CLAMP, SIZE_UNIT, Segment
from warrenmq.log.sums import Sums

READ_AHEAD: Final = 1 << 20  # the most read_many reads at once
UNREADABLE: Final = (errno.EIO, errno.ENOENT)  # what a bad sector and a missing file say; no passing shortage
DISPLACED: Final = "another record stands in its place"


@final
class MessageReader:
    """The readers' half of the log: an address in, a record out."""

    def __init__(self, log: Core, commits: Commits) -> None:
        self.log: Final = log
        self.commits: Final = commits
        self.reader: Final = log.reader
        self.sums: Final = Sums(log.seed)

    def read(self, address: i64) -> StoredMessage:
        """The message, from memory while it is not synced, else from disk."""
        data = self._record(address, address)
        message = decode_message(data, 0)
        if is_chunked(data[0]):
            parts = self.read_parts(address)
            return StoredMessage(
                message.message_id,
                message.header,
                b"".join(parts),
                message.exchange,
                message.routing_keys,
                message.flags,
            )
        return message

    def read_head(self, address: i64) -> StoredMessage:
        """The message without its body, when that is in chunks."""
        data = self._record(address, address)
        message = decode_message(data, 0)
        if not is_chunked(data[0]):
            return message
        return StoredMessage(
            message.message_id, message.header, b"", message.exchange, message.routing_keys, message.flags
        )

    def read_many(self, addresses: list[int]) -> list[StoredMessage | None]:
        """Whole messages, in this order: neighbours on disk are read at once. None for what is damaged."""
        found: list[StoredMessage | None] = []
        count: i64 = len(addresses)
        i: i64 = 0
        while i < count:
            i = self._read_run(addresses, i, found)
        return found

    def _read_run(self, addresses: list[int], first: i64, found: list[StoredMessage | None]) -> i64:
        """Read the run of neighbours that begins at ``first``; the index behind it."""
        address: i64 = addresses[first]
        segment = self.log.find(address >> 32)
        slot = segment.slot(address & RECORD_BITS)
        if slot < 0 or slot >= len(segment.offsets) or i64(segment.sizes[slot]) == SIZE_CLAMP:
            found.append(self._read_or_none(address))
            return first + 1
        begin = segment.offset(slot)
        end = begin + i64(segment.sizes[slot]) * SIZE_UNIT
        wanted = end - begin
        last = first
        while last + 1 < len(addresses):
            following: i64 = addresses[last + 1]
            if following >> 32 != segment.number or following <= addresses[last]:
                break
            slot = segment.slot(following & RECORD_BITS)
            if slot < 0 or slot >= len(segment.offsets) or i64(segment.sizes[slot]) == SIZE_CLAMP:
                break
            size = i64(segment.sizes[slot]) * SIZE_UNIT
            reach = segment.offset(slot) + size
            if reach - begin > READ_AHEAD or reach - begin > 2 * (wanted + size) + 4096:
                break
            wanted += size
            end = reach
            last += 1
        data = self._run(segment, begin, end - begin)
        while first <= last:
            address = addresses[first]
            at = segment.offset(segment.slot(address & RECORD_BITS)) - begin
            size = record_size(data, at)
            if (
                size == 0
                or at + size > len(data)
                or is_chunked(data[at])
                or is_chunk(data[at])
                or number_of(data, at) != address & RECORD_BITS
                or check(self.sums, data, at, size) != WHOLE
            ):
                found.append(self._read_or_none(address))  # chunked, in another part, or damaged: by itself it shows
            else:
                found.append(decode_message(data, at))
            first += 1
        return first

    def _run(self, segment: Segment, begin: i64, length: i64) -> bytes:
        try:
            return self.reader.read(segment, begin, length)
        except OSError as error:
            if error.errno not in UNREADABLE:
                raise
            return b""  # some of it: one by one it shows which

    def _read_or_none(self, address: i64) -> StoredMessage | None:
        try:
            return self.read(address)
        except RecordDamaged:
            return None

    def read_parts(self, address: i64) -> list[bytes]:
        """The pieces of a long body."""
        parts: list[bytes] = []
        for chunk in self.log.body_parts(address):
            parts.append(self.read_part(address, chunk))
        return parts

    def read_part(self, address: i64, chunk: i64) -> bytes:
        """One piece of the body of the message at ``address``."""
        return chunk_bytes(self._record(chunk, address), 0)

    def queues_of(self, address: i64) -> list[int]:
        """The queues a record was written for, damaged body or not; none when its head is damaged too."""
        found: list[int] = []
        segment = self.log.find(address >> 32)
        slot = segment.slot(address & RECORD_BITS)
        if slot < 0 or slot >= len(segment.offsets):
            return found
        try:
            data = self._bytes(segment, slot)
        except OSError:
            return found
        size = record_size(data, 0)
        if size == 0 or size > len(data) or is_chunk(data[0]) or check(self.sums, data, 0, size) == HEAD_DAMAGED:
            return found
        for holder in read_holders(data, holders_start(data, 0), holder_count(data, 0)):
            found.append(holder[0])
        return found

    def _record(self, address: i64, owner: i64) -> bytes:
        """The bytes of one record, no more. RecordDamaged when they do not check; it names ``owner``."""
        segment = self.log.find(address >> 32)
        record = address & RECORD_BITS
        slot = segment.slot(record)
        if slot < 0:
            raise LogError(f"message {address:#x} is gone")
        if slot >= len(segment.offsets):
            return self.commits.record(segment.number, record)
        try:
            data = self._bytes(segment, slot)
        except OSError as error:
            if error.errno not in UNREADABLE:
                raise
            raise self.log.damage.refuse(owner, f"the disk says: {error.strerror}") from None
        size = record_size(data, 0)
        if size == 0 or size > len(data) or number_of(data, 0) != record:
            raise self.log.damage.refuse(owner, DISPLACED)
        data = data[:size]
        if check(self.sums, data, 0, size) != WHOLE:
            raise self.log.damage.refuse(owner, MISMATCH)
        return data

    def _bytes(self, segment: Segment, slot: i64) -> bytes:
        """What stands where this record should: at least as many bytes as it has, if they are there."""
        units = i64(segment.sizes[slot])
        offset = segment.offset(slot)
        data = self.reader.read(segment, offset, units * SIZE_UNIT)
        if units == SIZE_CLAMP:
            size = record_size(data, 0)
            if size > len(data) and size <= segment.end:
                return self.reader.read(segment, offset, size)
        return data
