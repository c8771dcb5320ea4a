"""The log lets go of what a deleted queue held: on disk at once and whole, in memory some a turn.

Duty: to spread the work. For everybody, and for whoever starts on this folder, the messages are gone with the queue;
what is spread is the counting of who holds which record, on which nothing depends but when room on disk is given back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from librt.vecs import vec
from mypy_extensions import i64

from warrenmq.broker.queue.queue import Entry, Queue
from warrenmq.broker.services.jobs import Job

if TYPE_CHECKING:
    from warrenmq.broker.services.services import Services

FEW: Final = 1024  # unacknowledged deliveries that are looked through at once


@final
class LetGo(Job):
    """A job: the log lets go of ``addresses``, which waited, and of what was with consumers: in ``pieces``, among
    others' deliveries and gaps."""

    def __init__(self, services: Services, queue: Queue, addresses: vec[i64], pieces: list[list[Entry | None]]) -> None:
        super().__init__(None)
        self._services: Final = services
        self._queue: Final = queue
        self._addresses: Final = addresses
        self._pieces: Final = pieces
        self._done: i64 = 0  # of the addresses
        self._batch: Final[i64] = services.log.begin_drop(queue.id, addresses, len(pieces) > 0)

    def step(self) -> bool:
        log = self._services.log
        end: i64 = self._done + max(0, self._services.turn.settles_left)
        if end > len(self._addresses):
            end = len(self._addresses)
        self._services.turn.settles_left -= end - self._done
        while self._done < end:
            log.release_dropped(self._addresses[self._done], self._batch)
            self._done += 1
        while self._pieces and self._services.turn.settles_left > 0:
            self._shorten(self._pieces[-1])
        if self._pieces or self._done < len(self._addresses):
            return False
        log.end_drop()
        return True

    def _shorten(self, piece: list[Entry | None]) -> None:
        log = self._services.log
        queue = self._queue
        left: i64 = max(0, len(piece) - self._services.turn.settles_left)
        i: i64 = left
        while i < len(piece):
            entry = piece[i]
            if entry is not None and entry.queue is queue and queue.holds(entry.message):
                log.release_dropped(entry.message.address, self._batch)
            i += 1
        self._services.turn.settles_left -= len(piece) - left
        if left > 0:
            del piece[left:]
        else:
            self._pieces.pop()

    def subject(self) -> str:
        return str(self._queue.name)
