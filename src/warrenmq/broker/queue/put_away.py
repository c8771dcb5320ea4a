"""A very long transient body that has to leave memory goes to the transient store some a turn.

Duty: to spread the writing. Until it is over the entry has its place in the pages and its content in memory; if it is
taken meanwhile, what was written is given back. Not here: when content leaves memory (``paging.py``).
"""

from __future__ import annotations

from typing import Final, final

from librt.vecs import append, vec
from mypy_extensions import i64

from warrenmq.broker.message import Cutting
from warrenmq.broker.queue.fifo import Fifo
from warrenmq.broker.queue.queue import Entry, Queue
from warrenmq.broker.services.jobs import Job

PIECE: Final = 256 << 10
AT_ONCE: Final = 8 << 20  # octets written in a turn


@final
class PutAway(Job):
    """The writing of one body."""

    def __init__(self, queue: Queue, fifo: Fifo, entry: Entry) -> None:
        super().__init__(None)
        self._queue: Final = queue
        self._fifo: Final = fifo
        self._entry: Final = entry
        self._cutting: Final = Cutting(entry.message.pieces(), PIECE)
        self._pieces: vec[i64] = vec[i64]()

    def step(self) -> bool:
        entry = self._entry
        if self._fifo.is_resident(entry.position):
            try:
                if not self._writes():
                    return False
                message = entry.message
                origin = message.origin
                handle = self._queue.broker.transient.put_long(
                    message.id, message.header(), self._pieces, origin.exchange, origin.packed_keys, origin.bcc
                )
                self._fifo.put_away(entry, -handle)
                return True
            except OSError:
                pass  # it stays in memory
        for piece in self._pieces:
            self._queue.broker.transient.free(piece)
        return True

    def _writes(self) -> bool:
        """Some more of it; says whether that was all."""
        left: i64 = AT_ONCE
        while left > 0:
            piece = self._cutting.next()
            if not piece:
                return True
            self._pieces = append(self._pieces, self._queue.broker.transient.put_piece(piece))
            left -= len(piece)
        return False

    def subject(self) -> str:
        return str(self._queue.name)
