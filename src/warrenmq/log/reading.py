"""Reading messages by address: from memory while they are not synced, from disk afterwards, many at a time.

Duty: address -> message. What stands where is the segments' tables', the files are ``reader``'s, and what is not
synced yet is ``commits``'.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from librt.strings import read_i32_le
from mypy_extensions import i64

from warrenmq.log.format import (
    CHUNK_FIXED,
    CHUNKED,
    MESSAGE,
    MESSAGE_FIXED,
    LogCorrupt,
    LogError,
    StoredMessage,
    decode_message,
    message_size,
)
from warrenmq.log.reader import Reader
from warrenmq.log.segment import SIZE_CLAMP, SIZE_UNIT

if TYPE_CHECKING:
    from warrenmq.log.log import Log

RECORD: Final = 0xFFFFFFFF
READ_AHEAD: Final = 1 << 20  # the most read_many reads at once


@final
class Reading:
    def __init__(self, log: Log, reader: Reader) -> None:
        self.log: Final = log
        self.reader: Final = reader

    def read(self, address: i64) -> StoredMessage:
        """The message, from memory while it is not synced, else from disk."""
        data = self._record(address)
        message = decode_message(data, 0)
        if data[0] == CHUNKED:
            parts: list[bytes] = []
            for chunk in self.log.body_parts(address):
                parts.append(self.read_chunk(chunk))
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
        data = self._record(address)
        message = decode_message(data, 0)
        if data[0] != CHUNKED:
            return message
        return StoredMessage(
            message.message_id, message.header, b"", message.exchange, message.routing_keys, message.flags
        )

    def read_many(self, addresses: list[int]) -> list[StoredMessage]:
        """The same for many: neighbours on disk are read at once."""
        found: list[StoredMessage] = []
        count: i64 = len(addresses)
        i: i64 = 0
        while i < count:
            i = self._read_run(addresses, i, found)
        return found

    def _read_run(self, addresses: list[int], first: i64, found: list[StoredMessage]) -> i64:
        """Read the run of neighbours that begins at ``first``; the index behind it."""
        address: i64 = addresses[first]
        segment = self.log.find(address >> 32)
        slot = segment.slot(address & RECORD)
        if slot < 0 or slot >= len(segment.offsets) or i64(segment.sizes[slot]) == SIZE_CLAMP:
            found.append(self.read(address))
            return first + 1
        begin = segment.offset(slot)
        end = begin + i64(segment.sizes[slot]) * SIZE_UNIT
        wanted = end - begin
        last = first
        while last + 1 < len(addresses):
            following: i64 = addresses[last + 1]
            if following >> 32 != segment.number or following <= addresses[last]:
                break
            slot = segment.slot(following & RECORD)
            if slot < 0 or slot >= len(segment.offsets) or i64(segment.sizes[slot]) == SIZE_CLAMP:
                break
            size = i64(segment.sizes[slot]) * SIZE_UNIT
            reach = segment.offset(slot) + size
            if reach - begin > READ_AHEAD or reach - begin > 2 * (wanted + size) + 4096:
                break
            wanted += size
            end = reach
            last += 1
        data = self.reader.read(segment, begin, end - begin)
        while first <= last:
            address = addresses[first]
            at = segment.offset(segment.slot(address & RECORD)) - begin
            if at + MESSAGE_FIXED > len(data) or data[at] != MESSAGE or at + message_size(data, at) > len(data):
                found.append(self.read(address))  # chunked, in another part, or not what it should be: read says
            elif i64(read_i32_le(data, at + 1)) != address & RECORD:
                raise LogCorrupt(f"message {address:#x}: another record stands in its place; run `warren log verify`")
            else:
                found.append(decode_message(data, at))
            first += 1
        return first

    def read_chunk(self, address: i64) -> bytes:
        data = self._record(address)
        return data[CHUNK_FIXED:]

    def _record(self, address: i64) -> bytes:
        """The bytes of one record, no more."""
        segment = self.log.find(address >> 32)
        record = address & RECORD
        slot = segment.slot(record)
        if slot < 0:
            raise LogError(f"message {address:#x} is gone")
        if slot >= len(segment.offsets):
            return self.log.commits.record(segment.number, record)
        units = i64(segment.sizes[slot])
        offset = segment.offset(slot)
        data = self.reader.read(segment, offset, units * SIZE_UNIT)
        size = message_size(data, 0) if len(data) >= CHUNK_FIXED else 0
        if size > len(data) and units == SIZE_CLAMP:
            data = self.reader.read(segment, offset, size)
        if size == 0 or size > len(data) or i64(read_i32_le(data, 1)) != record:
            raise LogCorrupt(f"message {address:#x}: another record stands in its place; run `warren log verify`")
        return data[:size]
