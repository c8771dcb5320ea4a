"""Large bodies in the log: written piece by piece as they arrive, so that they are never copied as a whole, and never
written again for a message that takes the place of another (a dead letter, a repetition).

Duty: the log's handle for the pieces of one body. A message that turns out not to need the log (unroutable, refused)
leaves its pieces behind as garbage. The pieces stay in memory once, for consumers that wait.
Not here: which bodies (``assembly.py``), who must not lose them (``delivering.py``).
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from warrenmq.broker.message import Cutting, Message
from warrenmq.log.log import Log

LARGE: Final = 256 << 10  # longer bodies are logged in pieces of about this size
EVERYTHING: Final = 0x7FFFFFFFFFFFFFFF


class BodyInLog:
    """A body that the log has before it has the message."""

    def take(self, chunks: list[bytes]) -> i64:
        """A handle for a message with this body, when it is these chunks that the log has; else 0."""
        raise NotImplementedError


@final
class SharedBody(BodyInLog):
    """The body of a message that the log holds, for another one that takes its place: it is not written again."""

    def __init__(self, log: Log, address: i64, chunks: list[bytes] | None) -> None:
        self._log: Final = log
        self._address: Final = address
        self._chunks: Final = chunks

    def take(self, chunks: list[bytes]) -> i64:
        return self._log.share_body(self._address) if chunks is self._chunks else 0


class WrittenBody(BodyInLog):
    """A body that goes to the log piece by piece, under a handle of its own until a message takes it."""

    def __init__(self, log: Log, chunks: list[bytes]) -> None:
        self._log: Final = log
        self._chunks: Final = chunks
        self._handle: i64 = log.begin_body()

    def take(self, chunks: list[bytes]) -> i64:
        """It is used up then."""
        if self._chunks is not chunks:
            return 0
        handle = self._handle
        self._handle = 0
        return handle

    def abandon(self) -> None:
        """The rest will not come, or nobody needs it in the log; nothing to do when it was taken."""
        if self._handle:
            self._log.abandon_body(self._handle)
            self._handle = 0


@final
class LargeBody(WrittenBody):
    """A body that the log gets while it arrives."""

    def __init__(self, log: Log, chunks: list[bytes]) -> None:
        super().__init__(log, chunks)  # as they are assembled; those that were logged are joined to larger ones
        self._logged: i64 = 0  # how many of the chunks the log has
        self._bytes: i64 = 0

    def collected(self, size: i64, last: bool) -> i64:
        """``size`` bytes have come: log what there is, if it is enough or the last of it. Returns how much that was."""
        chunks = self._chunks
        new = size - self._bytes
        if new == 0 or (new < LARGE and not last):
            return 0
        first = self._logged
        piece = chunks[first] if len(chunks) == first + 1 else b"".join(chunks[first:])
        del chunks[first:]
        chunks.append(piece)
        self._logged = len(chunks)
        self._bytes += new
        self._log.body_chunk(self._handle, piece)
        return new


@final
class LoggedAhead(WrittenBody):
    """A body in memory that goes to the log some at a time, before the message does."""

    def __init__(self, log: Log, chunks: list[bytes]) -> None:
        super().__init__(log, chunks)
        self._cutting: Final = Cutting(chunks, LARGE)

    def log_some(self, octets: i64) -> bool:
        """About so much more; says whether the log has all of it."""
        while octets > 0:
            piece = self._cutting.next()
            if not piece:
                return True
            self._log.body_chunk(self._handle, piece)
            octets -= len(piece)
        return False


def append_message(log: Log, message: Message, keys: bytes, flags: i64, holders: i64, body: BodyInLog | None) -> i64:
    """Write a message to the log for so many holders, its body only if the log does not have it: where the log has it
    then. ``keys`` and ``flags`` say more than the message does where something is to be noted beside it."""
    chunks = message.chunks
    handle: i64 = 0
    if chunks is not None and message.size > LARGE:
        handle = logged_body(log, chunks, body)
    return log.append(
        message.id,
        message.header(),
        b"" if handle else message.body(),
        message.origin.exchange,
        keys,
        flags=flags,
        holders=holders,
        handle=handle,
    )


def logged_body(log: Log, chunks: list[bytes], body: BodyInLog | None) -> i64:
    """A handle of the log that has got these pieces: the one they arrived with or share, or one that gets them now."""
    handle: i64 = 0
    if body is not None:
        handle = body.take(chunks)
    if handle == 0:
        ahead = LoggedAhead(log, chunks)
        ahead.log_some(EVERYTHING)
        handle = ahead.take(chunks)
    return handle
