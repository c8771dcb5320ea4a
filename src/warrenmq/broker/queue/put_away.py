"""A very long transient body that has to leave memory goes to the transient store some a turn.

Duty: to spread the writing. Until it is over the body is in memory; if nobody needs it any more meanwhile, what was
written is given back, and if the disk takes no more, it stays where it is. Whose it is: an entry of a queue here, a
message at a delayed exchange in ``delay/long_body.py``. Not here: when content leaves memory (``paging.py``).
"""

from __future__ import annotations

from typing import Final, final

from librt.vecs import append, vec
from mypy_extensions import i64

from warrenmq.broker.message import Cutting
from warrenmq.broker.queue.fifo import Fifo
from warrenmq.broker.queue.queue import Entry, Queue
from warrenmq.broker.services.jobs import Job
from warrenmq.log.transient import TransientStore

PIECE: Final = 256 << 10
AT_ONCE: Final = 8 << 20  # octets written in a turn


class PutAway(Job):
    """The writing of one body."""

    def __init__(self, transient: TransientStore, chunks: list[bytes]) -> None:
        super().__init__(None)
        self.transient: Final = transient
        self._cutting: Final = Cutting(chunks, PIECE)
        self._pieces: vec[i64] = vec[i64]()

    def is_wanted(self) -> bool:
        """Does anybody need the body still?"""
        raise NotImplementedError

    def keep(self, pieces: vec[i64]) -> None:
        """All of it is in the store, as these pieces. OSError: the disk does not take the rest of its message."""
        raise NotImplementedError

    def step(self) -> bool:
        if self.is_wanted():
            try:
                if not self._writes():
                    return False
                self.keep(self._pieces)
                return True
            except OSError:
                pass  # it stays in memory
        for piece in self._pieces:
            self.transient.free(piece)
        return True

    def _writes(self) -> bool:
        """Some more of it; says whether that was all."""
        left: i64 = AT_ONCE
        while left > 0:
            piece = self._cutting.next()
            if not piece:
                return True
            self._pieces = append(self._pieces, self.transient.put_piece(piece))
            left -= len(piece)
        return False


@final
class PutEntryAway(PutAway):
    """The writing of the body of an entry, which has its place in the pages meanwhile and its content in memory."""

    def __init__(self, queue: Queue, fifo: Fifo, entry: Entry) -> None:
        super().__init__(queue.broker.transient, entry.message.pieces())
        self._queue: Final = queue
        self._fifo: Final = fifo
        self._entry: Final = entry

    def is_wanted(self) -> bool:
        return self._fifo.is_resident(self._entry.position)

    def keep(self, pieces: vec[i64]) -> None:
        message = self._entry.message
        origin = message.origin
        handle = self.transient.put_long(
            message.id, message.header(), pieces, origin.exchange, origin.packed_keys, origin.bcc
        )
        self._fifo.put_away(self._entry, -handle)

    def subject(self) -> str:
        return str(self._queue.name)
