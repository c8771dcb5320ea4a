"""Large bodies on their way in: logged piece by piece as they arrive, so that they are never copied as a whole.

Duty: the log's handle that the pieces of one body go to. A message that turns out not to need the log (unroutable,
refused) leaves its pieces behind as garbage. The pieces stay in memory once, for consumers that wait.
Not here: which bodies (``assembly.py``), who must not lose them (``delivering.py``).
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from warrenmq.log.log import Log

LARGE: Final = 256 << 10  # longer bodies are logged in pieces of about this size


@final
class LargeBody:
    """A body that the log gets while it arrives."""

    def __init__(self, log: Log, chunks: list[bytes]) -> None:
        self._log: Final = log
        self._chunks: Final = chunks  # as they are assembled; those that were logged are joined to larger ones
        self._handle: i64 = log.begin_body()
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

    def take(self, chunks: list[bytes]) -> i64:
        """The handle, when it is these chunks that the log got by it; it is used up then. Else 0."""
        if self._chunks is not chunks:
            return 0
        handle = self._handle
        self._handle = 0
        return handle

    def abandon(self) -> None:
        """The rest will not come, or nobody needs it in the log."""
        if self._handle:
            self._log.abandon_body(self._handle)
            self._handle = 0


def logged_body(log: Log, chunks: list[bytes], body: LargeBody | None) -> i64:
    """A handle of the log that has got these pieces: the one they arrived with, or one that gets them now."""
    if body is not None:
        handle = body.take(chunks)
        if handle:
            return handle
    handle = log.begin_body()
    held: list[bytes] = []
    size: i64 = 0
    for chunk in chunks:
        held.append(chunk)
        size += len(chunk)
        if size >= LARGE:
            _log(log, handle, held)
            held = []
            size = 0
    if held:
        _log(log, handle, held)
    return handle


def _log(log: Log, handle: i64, pieces: list[bytes]) -> None:
    data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
    start: i64 = 0
    while start < len(data):
        log.body_chunk(handle, data if len(data) <= 2 * LARGE else data[start : start + LARGE])
        start += LARGE if len(data) > 2 * LARGE else len(data)
