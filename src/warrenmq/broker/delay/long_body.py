"""Very long bodies that wait at a transient exchange: in memory until the transient store has them, some a turn.

Duty: where such a body is, and who of the schedule needs it still. Not here: when its message is due (``delays.py``),
and reading it then (``queue/read_ahead.py``).
"""

from __future__ import annotations

from typing import Final, final

from librt.vecs import append, vec
from mypy_extensions import i64

from warrenmq.broker.delivering.large_body import BodyInLog
from warrenmq.broker.message import Cutting
from warrenmq.broker.services.jobs import Job
from warrenmq.broker.services.services import Services

PIECE: Final = 256 << 10
AT_ONCE: Final = 8 << 20  # octets written in a turn


@final
class LongBody(BodyInLog):
    """The body of one message, and of those that take its place at the schedule: repeated, or at another time."""

    def __init__(self, services: Services, chunks: list[bytes]) -> None:
        self._services: Final = services
        self.chunks: list[bytes] | None = chunks  # until the store has all of it
        self.handle: i64 = 0  # in the store, then
        self.holders: i64 = 0

    def take(self, chunks: list[bytes]) -> i64:  # noqa: ARG002
        """The log has nothing of it."""
        return 0

    def release(self) -> None:
        """One message less needs it."""
        self.holders -= 1
        if self.holders == 0 and self.handle:
            self._services.transient.free(self.handle)


@final
class PutAway(Job):
    """The writing of one body to the transient store. If nobody needs it any more, what was written is given back."""

    def __init__(self, services: Services, body: LongBody, subject: str) -> None:
        super().__init__(None)
        self._services: Final = services
        self._body: Final = body
        self._subject: Final = subject
        self._cutting: Final = Cutting(body.chunks or [], PIECE)
        self._pieces: vec[i64] = vec[i64]()

    def step(self) -> bool:
        transient = self._services.transient
        if self._body.holders > 0:
            try:
                if not self._writes():
                    return False
                self._body.handle = transient.put_long(0, b"", self._pieces, "", b"", 0)
                self._body.chunks = None
                return True
            except OSError:
                pass  # it stays in memory
        for piece in self._pieces:
            transient.free(piece)
        return True

    def _writes(self) -> bool:
        """Some more of it; says whether that was all."""
        left: i64 = AT_ONCE
        while left > 0:
            piece = self._cutting.next()
            if not piece:
                return True
            self._pieces = append(self._pieces, self._services.transient.put_piece(piece))
            left -= len(piece)
        return False

    def subject(self) -> str:
        return self._subject
