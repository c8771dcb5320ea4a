"""The lean form of a message on the per-message path, and how it is written to a consumer.

Duty: hold (content header, body) as they arrived and put them on the wire again. Not here: routing, queues.

A message that came as one header frame and at most one body frame keeps those frames verbatim; delivering it
patches the channel number. Anything else is re-framed. Properties are decoded only when something asks.
"""

from __future__ import annotations

from typing import Final, final

from librt.strings import BytesWriter, write_i16_be, write_i32_be
from mypy_extensions import i16, i32, i64, mypyc_attr, u8

from warrenmq.broker.records import BasicMessage, Content, Resource
from warrenmq.log.format import StoredMessage
from warrenmq.log.layout import WITHOUT_RECORD
from warrenmq.wire.constants import FRAME_BODY, FRAME_END, FRAME_HEADER
from warrenmq.wire.content import Properties, encode_header

# a record's flags: how many keys came from BCC, and above that the length of a schedule's note
BCC_MASK: Final = 0xFFFFF
NOTE_SHIFT: Final = 20


def shortstr(text: str) -> bytes:
    raw = text.encode("utf-8", "surrogateescape")
    return bytes((len(raw),)) + raw


@final
class Origin:
    """The place where a message was published: exchange and routing keys, with their encoding for basic.deliver."""

    def __init__(self, exchange: str, routing_keys: list[str], bcc: i64 = 0) -> None:
        self.exchange: Final = exchange
        self.routing_keys: Final = routing_keys  # the publish key first, then CC, then BCC; never empty
        self.bcc: Final = bcc  # how many of them, at the end, nobody may see
        self.suffix: Final = shortstr(exchange) + shortstr(routing_keys[0]) + bytes((FRAME_END,))
        self.packed_keys: Final = b"".join([shortstr(key) for key in routing_keys])  # as the log keeps them


def bcc_of(stored: StoredMessage) -> i64:
    """How many of the keys, at the end, nobody may see."""
    return stored.flags & BCC_MASK


def packed_keys_of(stored: StoredMessage) -> bytes:
    """The routing keys in a record, without the note that a schedule may have put behind them (delay/note.py)."""
    note = stored.flags >> NOTE_SHIFT
    return stored.routing_keys[: len(stored.routing_keys) - note] if note else stored.routing_keys


def unpack_keys(packed: bytes) -> list[str]:
    """The routing keys of a message read from the log."""
    keys: list[str] = []
    at: i64 = 0
    while at < len(packed):
        size: i64 = packed[at]
        keys.append(packed[at + 1 : at + 1 + size].decode("utf-8", "surrogateescape"))
        at += 1 + size
    return keys


@final
class Cutting:
    """A body in memory, however it came, in pieces of about one size."""

    def __init__(self, chunks: list[bytes], size: i64) -> None:
        self._chunks: Final = chunks
        self._size: Final = size
        self._next: i64 = 0  # the chunk that is next
        self._offset: i64 = 0  # how much of the next chunk has been taken

    def next(self) -> bytes:
        """The next piece, b"" when there is none: about ``size`` octets, twice as many at most."""
        held: list[bytes] = []
        taken: i64 = 0
        while self._next < len(self._chunks) and taken < self._size:
            chunk = self._chunks[self._next]
            rest = len(chunk) - self._offset
            more = self._size if rest > 2 * self._size else rest
            held.append(chunk if more == len(chunk) else chunk[self._offset : self._offset + more])
            self._offset += more
            if more == rest:
                self._next += 1
                self._offset = 0
            taken += more
        return held[0] if len(held) == 1 else b"".join(held)


# Nothing a message holds leads back to it, so it needs no part in garbage collection: less memory, and millions of them
# are not looked at.
@final
@mypyc_attr(acyclic=True)
class Message:
    """A message as queues hold it. Shared by all queues it was routed to; never changed once routed."""

    def __init__(
        self, origin: Origin, id: i64, frames: bytes, channel: i64, header_size: i64, size: i64, persistent: bool
    ) -> None:
        self.origin: Origin = origin
        self.id: i64 = id  # unique across restarts; 0 until it is published
        # header frame + body frame as they came, or b"" (then header and chunks); asked by its length, which is no call
        self.frames: Final = frames
        self.channel: Final = channel  # the channel number inside frames
        self.header_size: Final = header_size
        self.size: Final = size  # of the body
        self.persistent: bool = persistent
        self.expiration: i64 = -1  # per-message TTL in ms, -1 = none
        self.priority: i64 = 0
        self.address: i64 = 0  # in the log, 0 = not logged
        self.batch: i64 = 0  # the log batch that holds it
        # True for dead letters, delayed messages that are due and what a transaction publishes: not delivered until the
        # batch in which the log has it is on disk, and not withdrawn when that batch cannot be written.
        self.moved: bool = False
        self.absent: bool = False  # is the body only in the log? The header is too, until the message is recalled
        self.header_payload: bytes = b""
        self.chunks: list[bytes] | None = None  # body pieces, when not in frames

    def number(self) -> i64:
        """By which the log's events know it, whether it has a record or not; 0: not at all."""
        if self.address or self.id == 0:
            return self.address
        return WITHOUT_RECORD | self.id

    def header(self) -> bytes:
        """The payload of the content header frame."""
        if len(self.frames) > 0:
            return self.frames[7 : 7 + self.header_size]
        return self.header_payload

    def body(self) -> bytes:
        if len(self.frames) > 0:
            start: i64 = 15 + self.header_size
            return self.frames[start : start + self.size]
        chunks = self.chunks
        if chunks is None:
            return b""
        if len(chunks) == 1:
            return chunks[0]
        return b"".join(chunks)

    def pieces(self) -> list[bytes]:
        """The body as it is held; none when it is empty."""
        chunks = self.chunks
        if chunks is not None:
            return chunks
        return [self.body()] if self.size else []

    def without_content(self) -> Message:
        """This message with nothing but its address in the log."""
        bare = Message(self.origin, self.id, b"", 0, 0, self.size, self.persistent)
        bare.expiration = self.expiration
        bare.priority = self.priority
        bare.address = self.address
        bare.batch = self.batch
        bare.absent = True
        return bare

    def basic_message(self, virtual_host: str) -> BasicMessage:
        """The record that interceptors, decorators and exchange types see."""
        return BasicMessage(
            Resource(virtual_host, "exchange", self.origin.exchange),
            self.origin.routing_keys,
            Content(self.header(), self.body()) if self.chunks is None else Content(self.header(), b"", self.chunks),
            self.id,
            self.persistent,
        )


def message_from(origin: Origin, id: i64, header: bytes, chunks: list[bytes], size: i64, persistent: bool) -> Message:
    """A message whose content did not arrive as two frames, or was changed or read from disk."""
    message = Message(origin, id, b"", 0, len(header), size, persistent)
    message.header_payload = header
    message.chunks = chunks
    return message


def with_properties(message: Message, properties: Properties) -> Message:
    """The message with other properties. Where the log has it is not taken over: there it has the old ones."""
    header = encode_header(properties, message.size)
    new = message_from(message.origin, message.id, header, message.pieces(), message.size, message.persistent)
    new.expiration = message.expiration
    new.priority = message.priority
    return new


def write_content(w: BytesWriter, channel: i64, message: Message, frame_max: i64) -> None:
    """Append header and body frames of the message for this channel."""
    frames = message.frames
    if len(frames) > 0 and message.size + 8 <= frame_max and message.header_size + 8 <= frame_max:
        start: i64 = len(w)
        w.write(frames)
        if channel != message.channel:
            high = u8((channel >> 8) & 255)
            low = u8(channel & 255)
            w[start + 1] = high
            w[start + 2] = low
            if message.size > 0:
                start += 8 + message.header_size
                w[start + 1] = high
                w[start + 2] = low
        return
    write_header_frame(w, channel, message.header())
    room: i64 = frame_max - 8
    if frames:
        write_body_frames(w, channel, message.body(), room)
        return
    chunks = message.chunks
    if chunks is not None:  # however the body came, it goes out in frames as large as may be
        write_body_frames(w, channel, chunks[0] if len(chunks) == 1 else b"".join(chunks), room)


def write_header_frame(w: BytesWriter, channel: i64, header: bytes) -> None:
    w.append(FRAME_HEADER)
    write_i16_be(w, i16(channel))
    write_i32_be(w, i32(len(header)))
    w.write(header)
    w.append(FRAME_END)


def write_body_frames(w: BytesWriter, channel: i64, body: bytes, room: i64) -> None:
    """Body frames of at most ``room`` payload bytes each; none for an empty body."""
    size: i64 = len(body)
    start: i64 = 0
    while start < size:
        n: i64 = size - start
        if n > room:
            n = room
        w.append(FRAME_BODY)
        write_i16_be(w, i16(channel))
        write_i32_be(w, i32(n))
        if n == size:
            w.write(body)
        else:
            w.write(body[start : start + n])
        w.append(FRAME_END)
        start += n
