"""What goes out to one client: gathered, and handed to the transport once a turn.

Duty: the buffer, the frames of large bodies, which are not copied into it, and how much waits for a client that does
not read.
Not here: what is said (channels), when the client is heard again (``connection.py``).
"""

from __future__ import annotations

from typing import Final, final

from librt.strings import BytesWriter
from mypy_extensions import i64

from warrenmq.broker.channel.body_frames import BodyFrames
from warrenmq.broker.channel.sink import Sink
from warrenmq.broker.message import Message, write_content, write_header_frame
from warrenmq.broker.services.turn import Flushing, Turn

FLUSH_AT: Final = 262144
LARGE_BODY: Final = 8192  # from here on bodies go to the transport without being copied into the buffer
SMALL_PART: Final = 64  # what stands between frames is
LONG_BODY: Final = 4 << 20  # longer ones are cut into frames as the transport wants them
OUTPUT_LIMIT: Final = 8 << 20  # bytes of answers that may wait for a client that does not read before it is not heard


class Client:
    """The client whose output it is. This one is nobody."""

    def output_is_full(self) -> None:
        """It does not read, and too much waits for it."""

    def output_failed(self, error: Exception) -> None:
        """Its transport raised."""


NOBODY: Final = Client()


@final
class Output(Flushing):
    """The way to one client."""

    def __init__(self, sink: Sink, turn: Turn, client: Client, frame_max: i64) -> None:
        self._sink: Final = sink
        self._turn: Final = turn
        self._client: Client = client
        self.frame_max: i64 = frame_max
        self.buffer: BytesWriter = BytesWriter()
        self._parts: list[bytes] = []  # large bodies and what goes between them; ``buffer`` comes behind
        self._parts_size: i64 = 0
        self._flushing: bool = False  # does the end of the turn know of it?
        self._over: bool = False
        self.writable: bool = True
        self._unsent: i64 = 0  # bytes written since the client stopped reading
        self.sent: i64 = 0

    def write(self, data: bytes) -> None:
        self.buffer.write(data)
        self.wrote()

    def wrote(self) -> None:
        """Something is in the output buffer: flush at the end of the turn, or now if it is much."""
        if not self._flushing:
            self._flushing = True
            self._turn.flushing.append(self)
        if len(self.buffer) + self._parts_size >= FLUSH_AT:
            self.flush()

    def pending(self) -> i64:
        """Octets on their way to the client that the system has not taken yet."""
        return len(self.buffer) + self._parts_size + self._sink.pending()

    def flush_now(self) -> None:
        """The end of the turn. A transport that fails costs its own client the connection, nobody else the output."""
        try:
            self.flush()
        except Exception as error:
            self._client.output_failed(error)

    def pause(self) -> None:
        """The client does not read."""
        if self.writable:
            self.writable = False
            self._unsent = 0

    def end(self) -> None:
        """Nothing more goes out."""
        self._over = True
        self._client = NOBODY

    def close(self) -> None:
        """Close the transport after what was written has gone out."""
        self._sink.close()

    def flush(self) -> None:
        self._flushing = False
        size: i64 = len(self.buffer)
        if self._parts:
            self._flush_parts(size)
            return
        if size == 0:
            return
        data = self.buffer.getvalue()
        if size > 65536:
            self.buffer = BytesWriter()
        else:
            self.buffer.truncate(0)
        self.sent += size
        if not self._over:
            self._sink.write(data)
            self._count_unsent(size)

    def _flush_parts(self, size: i64) -> None:
        parts = self._parts
        if size > 0:
            parts.append(self.buffer.getvalue())
            self.buffer.truncate(0)
        size += self._parts_size
        self._parts = []
        self._parts_size = 0
        self.sent += size
        if not self._over:
            self._sink.write_all(parts)
            self._count_unsent(size)

    def _count_unsent(self, size: i64) -> None:
        if not self.writable:
            self._unsent += size
            if self._unsent >= OUTPUT_LIMIT:
                self._client.output_is_full()

    def _part(self, data: bytes) -> None:
        """Behind what was written so far comes this, as it is."""
        size: i64 = len(self.buffer)
        if size > 0:
            self._parts.append(self.buffer.getvalue())
            self.buffer.truncate(0)
        self._parts.append(data)
        self._parts_size += size + len(data)
        if self._parts_size >= FLUSH_AT:
            self.flush()

    def write_content(self, number: i64, message: Message) -> None:
        """Header and body frames of a message, on this channel."""
        if message.size >= LARGE_BODY:
            self._write_large(number, message)
        else:
            write_content(self.buffer, number, message, self.frame_max)
        self.wrote()

    def _write_large(self, number: i64, message: Message) -> None:
        """A large body goes to the transport without being copied into the buffer, in frames as large as may be."""
        frames = message.frames
        room: i64 = self.frame_max - 8
        if frames and number == message.channel and message.size <= room and message.header_size <= room:
            self._part(frames)
            return
        w = self.buffer
        write_header_frame(w, number, message.header())
        chunks = message.chunks
        if chunks is None:
            chunks = [message.body()]
        body = BodyFrames(number, chunks, message.size, room)
        if message.size > LONG_BODY:
            self._write_long(body)
            return
        for part in body.next(message.size):
            if len(part) < SMALL_PART:
                w.write(part)
            else:
                self._part(part)
                w = self.buffer

    def _write_long(self, body: BodyFrames) -> None:
        """To cut all of it at once, and to copy what is cut, would take long."""
        self.flush()
        self.sent += body.octets
        if not self._over:
            self._sink.write_body(body)
            self._count_unsent(body.octets)
