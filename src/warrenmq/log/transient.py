"""Where transient messages wait that queues keep no longer as objects: packed in memory, or, when that is short, in
files that mean nothing after a restart.

Duty: put a message away, get it back, forget it. Never synced, removed at every start, so a spilled message is exactly
as durable as one in memory. Space goes back a file at a time, when nothing in it is held any more. A handle is
``file << 32 | offset`` and never 0. A long body may come and go piece by piece, each of which is a record of its own;
or it stays in memory, where it is, and the store only knows it (``know_long``). What is packed is in ``packs.py``; its
handles have a bit of their own.
"""

from __future__ import annotations

import errno
from typing import Any, Final, final

from librt.strings import BytesWriter, read_i32_le, read_i64_le, write_i32_le, write_i64_le
from librt.vecs import append, vec
from mypy_extensions import i32, i64

from warrenmq.log.damage import RecordDamaged
from warrenmq.log.files import Files
from warrenmq.log.format import LogError, StoredMessage
from warrenmq.log.layout import (
    SPILL_BODY_LENGTH_AT,
    SPILL_BODY_SUM_AT,
    SPILL_EXCHANGE_LENGTH_AT,
    SPILL_FIXED,
    SPILL_FLAGS_AT,
    SPILL_HEAD_SUM_AT,
    SPILL_HEADER_LENGTH_AT,
    SPILL_KEYS_LENGTH_AT,
    SPILL_MESSAGE_ID_AT,
)
from warrenmq.log.packs import PACKED, PLACES, Packs
from warrenmq.log.record import unsigned
from warrenmq.log.sums import Sums, signed, total

PREFIX: Final = "spill-"
OFFSET_BITS: Final = 0xFFFFFFFF  # of a handle
WRITE_BEHIND: Final = 256 << 10
IN_MEMORY: Final = 1 << 62  # handles of pieces from here on: they are not on disk


@final
class SpillFile:
    """A file of the spill and how many messages in it are wanted still."""

    def __init__(self, number: i64, descriptor: int) -> None:
        self.number: Final = number
        self.descriptor: Final = descriptor
        self.held: i64 = 0
        self.size: i64 = 0  # with what is not written yet


@final
class TransientStore:
    """The transient messages on disk, found by address, their files removed when all are gone."""

    def __init__(self, folder: str, files: Files, file_bytes: i64 = 64 << 20) -> None:
        self.folder: Final = folder
        self.files: Final = files
        self.file_bytes: Final = file_bytes
        self.open_files: dict[int, SpillFile] = {}
        self._parts: dict[int, vec[i64]] = {}  # of messages whose bodies came piece by piece: the pieces' handles
        self._in_memory: dict[int, bytes] = {}  # pieces that are not on disk
        self._next_in_memory: i64 = IN_MEMORY
        self.current: SpillFile | None = None
        self.next_number: i64 = 1
        self.buffer: BytesWriter = BytesWriter()  # the end of the current file
        self.written: i64 = 0  # of the current file
        self.exchange: str = ""
        self.exchange_bytes: bytes = b""
        self.sums: Final = Sums(0)
        self.packs: Final = Packs()
        files.make_folder(folder)
        for name in files.names(folder):
            if name.startswith(PREFIX):
                files.unlink(f"{folder}/{name}")

    def _begin(self) -> SpillFile:
        number = self.next_number
        descriptor = self.files.create(f"{self.folder}/{PREFIX}{number:010d}")
        self.next_number += 1
        spill = SpillFile(number, descriptor)
        self.open_files[int(number)] = spill
        self.current = spill
        self.written = 0
        return spill

    def put(self, message_id: i64, header: bytes, body: bytes, exchange: str, routing_keys: bytes, flags: i64) -> i64:
        """Put it away. OSError when the disk refuses: the message then stays in memory."""
        spill = self.current
        if spill is None or spill.size >= self.file_bytes:
            self.flush()
            spill = self._begin()
        if exchange is not self.exchange:
            self.exchange = exchange
            self.exchange_bytes = exchange.encode("utf-8", "surrogateescape")
        out = self.buffer
        before: i64 = len(out)
        write_i32_le(out, i32(len(header)))
        write_i32_le(out, i32(len(body)))
        write_i32_le(out, i32(len(self.exchange_bytes)))
        write_i32_le(out, i32(len(routing_keys)))
        write_i64_le(out, message_id)
        write_i32_le(out, i32(flags))
        handle = spill.number << 32 | spill.size
        body_sum = total(body)
        head = self._head(handle, message_id, header, len(body), body_sum, self.exchange_bytes, routing_keys, flags)
        write_i32_le(out, i32(signed(body_sum)))
        write_i32_le(out, i32(signed(head)))
        out.write(header)
        out.write(body)
        out.write(self.exchange_bytes)
        out.write(routing_keys)
        if len(out) >= WRITE_BEHIND:
            try:
                self.flush()
            except OSError:
                out.truncate(before)
                raise
        spill.size += SPILL_FIXED + len(header) + len(body) + len(self.exchange_bytes) + len(routing_keys)
        spill.held += 1
        return handle

    def put_piece(self, data: bytes) -> i64:
        """A piece of a long body, for ``put_long``."""
        return self.put(0, b"", data, "", b"", 0)

    def put_long(
        self, message_id: i64, header: bytes, pieces: vec[i64], exchange: str, routing_keys: bytes, flags: i64
    ) -> i64:
        """The message whose body these pieces are; they go with it."""
        handle = self.put(message_id, header, b"", exchange, routing_keys, flags)
        self._parts[handle] = pieces
        return handle

    def know_long(
        self, message_id: i64, header: bytes, chunks: list[bytes], exchange: str, routing_keys: bytes, flags: i64
    ) -> i64:
        """A message with a long body in memory, which stays there: nothing of it is written or copied."""
        handle = self.put(message_id, header, b"", exchange, routing_keys, flags)
        pieces = vec[i64]()
        for chunk in chunks:
            self._in_memory[self._next_in_memory] = chunk
            pieces = append(pieces, self._next_in_memory)
            self._next_in_memory += 1
        self._parts[handle] = pieces
        return handle

    def pack(self, message_id: i64, header: bytes, body: bytes, exchange: str, routing_keys: bytes, flags: i64) -> i64:
        """Keep it in memory, as small as may be."""
        return self.packs.put(message_id, header, body, exchange, routing_keys, flags)

    def body_parts(self, handle: i64) -> vec[i64]:
        """The pieces of a long body, none for a message that was put away whole."""
        return self._parts.get(handle, vec[i64]())

    def has_on_disk(self, handle: i64) -> bool:
        """Are there pieces of a long body on disk?"""
        if not self._parts:
            return False
        parts = self.body_parts(handle)
        return len(parts) > 0 and parts[0] < IN_MEMORY

    def read_part(self, piece: i64) -> bytes:
        if piece < IN_MEMORY:
            return self.get_head(piece).body
        found = self._in_memory.get(piece)
        if found is None:
            raise LogError("a piece of a long body is gone: nothing holds it any more")
        return found

    def _head(
        self,
        handle: i64,
        message_id: i64,
        header: bytes,
        body_length: i64,
        body: i64,
        exchange: bytes,
        keys: bytes,
        flags: i64,
    ) -> i64:
        route = exchange + keys
        return self.sums.head(
            False, handle & OFFSET_BITS, message_id, flags, 0, header, body_length, body, len(exchange), route
        )

    def flush(self) -> None:
        spill = self.current
        if spill is not None and len(self.buffer) > 0:
            data = self.buffer.getvalue()
            self.files.write(spill.descriptor, [data], self.written)
            self.written += len(data)
            self.buffer.truncate(0)

    def _bytes(self, spill: SpillFile, offset: i64, length: i64) -> bytes:
        if spill is self.current and offset + length > self.written:
            try:
                self.flush()
            except OSError:  # the disk is full: what it did not take is here
                if offset >= self.written:
                    start = offset - self.written
                    return self.buffer.getvalue()[start : start + length]
        try:
            return self.files.read(spill.descriptor, length, offset)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            raise RecordDamaged(f"a spilled message cannot be read: {error.strerror}") from None

    def get(self, handle: i64) -> StoredMessage:
        if handle & PACKED:
            return self.packs.get(handle)
        message = self.get_head(handle)
        if self._parts and handle in self._parts:
            body = b"".join([self.read_part(piece) for piece in self._parts[handle]])
            return StoredMessage(
                message.message_id, message.header, body, message.exchange, message.routing_keys, message.flags
            )
        return message

    def get_head(self, handle: i64) -> StoredMessage:
        """Without a body that came in pieces."""
        if handle & PACKED:
            return self.packs.get(handle)
        spill = self.open_files.get(handle >> 32)
        if spill is None:
            raise LogError(f"spilled message {handle:#x} is gone")
        offset = handle & OFFSET_BITS
        head = self._bytes(spill, offset, 2048)
        if len(head) < SPILL_FIXED:
            raise RecordDamaged(f"spilled message {handle:#x} is damaged on disk: its file is too short")
        a = SPILL_FIXED + i64(read_i32_le(head, SPILL_HEADER_LENGTH_AT))
        b = a + i64(read_i32_le(head, SPILL_BODY_LENGTH_AT))
        c = b + i64(read_i32_le(head, SPILL_EXCHANGE_LENGTH_AT))
        d = c + i64(read_i32_le(head, SPILL_KEYS_LENGTH_AT))
        if not SPILL_FIXED <= a <= b <= c <= d or offset + d > spill.size:
            raise RecordDamaged(f"spilled message {handle:#x} is damaged on disk: lengths beyond its file")
        data = head if d <= len(head) else self._bytes(spill, offset, d)
        message_id = read_i64_le(data, SPILL_MESSAGE_ID_AT)
        flags = i64(read_i32_le(data, SPILL_FLAGS_AT))
        body_sum = unsigned(data, SPILL_BODY_SUM_AT)
        header = data[SPILL_FIXED:a]
        body = data[a:b]
        keys = data[c:d]
        sum = self._head(handle, message_id, header, b - a, body_sum, data[b:c], keys, flags)
        if sum != unsigned(data, SPILL_HEAD_SUM_AT) or total(body) != body_sum:
            raise RecordDamaged(f"spilled message {handle:#x} is damaged on disk: its checksum does not match")
        return StoredMessage(message_id, header, body, data[b:c].decode("utf-8", "surrogateescape"), keys, flags)

    def free(self, handle: i64) -> None:
        """Nobody needs it any more. The last one takes its file along."""
        if handle & PACKED:
            self.packs.free(handle)
            return
        if self._parts:
            for piece in self._parts.pop(handle, vec[i64]()):
                self._free(piece)
        self._free(handle)

    def free_those(self, addresses: vec[i64], start: i64, left: list[list[Any]]) -> None:
        """Nobody needs these any more, from ``start`` on; those below 0 are handles, negated. What takes long to let go
        is added to ``left``."""
        i = start
        while i < len(addresses):
            handle = -addresses[i]
            if handle > 0 and not handle & PACKED:
                self.free(handle)
            i += 1
        self.free_packed(addresses, start, len(addresses), left)

    def free_packed(self, addresses: vec[i64], start: i64, end: i64, left: list[list[Any]]) -> None:
        """Nobody needs what is packed among these any more, from ``start`` up to ``end``."""
        run: i64 = 0  # so many handles of one pack, one behind the other
        last: i64 = 0  # the last of these handles
        i = start
        while i < end:
            handle = -addresses[i]
            i += 1
            if handle <= 0 or not handle & PACKED:
                continue
            if run > 0 and handle >> PLACES == last >> PLACES:
                run += 1
            else:
                self._free_packed(last, run, left)
                last = handle
                run = 1
        self._free_packed(last, run, left)

    def _free_packed(self, handle: i64, count: i64, left: list[list[Any]]) -> None:
        if count > 0:
            kinds = self.packs.free(handle, count)
            if kinds is not None:
                left.append(kinds)

    def _free(self, handle: i64) -> None:
        if handle >= IN_MEMORY:
            del self._in_memory[handle]
            return
        spill = self.open_files.get(handle >> 32)
        if spill is None:
            return
        spill.held -= 1
        if spill.held > 0:
            return
        if spill is self.current:
            if spill.size < self.file_bytes:
                return  # still filling
            self.current = None
            self.buffer.truncate(0)
        del self.open_files[int(spill.number)]
        self.files.close(spill.descriptor)
        self.files.unlink(f"{self.folder}/{PREFIX}{spill.number:010d}")

    def disk_bytes(self) -> i64:
        total: i64 = 0
        for spill in self.open_files.values():
            total += spill.size
        return total

    def close(self) -> None:
        for spill in self.open_files.values():
            self.files.close(spill.descriptor)
            self.files.unlink(f"{self.folder}/{PREFIX}{spill.number:010d}")
        self.open_files.clear()
        self._parts.clear()
        self._in_memory.clear()
        self.packs.free_all()
        self.current = None
        self.buffer.truncate(0)
