"""Very long bodies that wait at a transient exchange: in memory until the transient store has them, some a turn.

Duty: where such a body is, and who of the schedule needs it still. Not here: when its message is due (``delays.py``),
reading it then (``queue/read_ahead.py``), and the writing (``queue/put_away.py``).
"""

from __future__ import annotations

from typing import Final, final

from librt.vecs import vec
from mypy_extensions import i64

from warrenmq.broker.delivering.large_body import BodyInLog
from warrenmq.broker.queue.put_away import PutAway
from warrenmq.broker.services.services import Services


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
class PutLongBodyAway(PutAway):
    """The writing of one body to the transient store, while anybody at the schedule needs it."""

    def __init__(self, services: Services, body: LongBody, subject: str) -> None:
        super().__init__(services.transient, body.chunks or [])
        self._body: Final = body
        self._subject: Final = subject

    def is_wanted(self) -> bool:
        return self._body.holders > 0

    def keep(self, pieces: vec[i64]) -> None:
        self._body.handle = self.transient.put_long(0, b"", pieces, "", b"", 0)
        self._body.chunks = None

    def subject(self) -> str:
        return self._subject
