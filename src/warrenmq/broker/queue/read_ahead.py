"""A very long body at the head of a queue is read some a turn before anybody gets it.

Duty: to spread the reading. The queue delivers nothing meanwhile: what stands behind must not overtake it. Not here:
what waits in which order (``fifo.py``), and bodies that are read at once (``paging.py``).
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from warrenmq.broker.queue.fifo import Fifo
from warrenmq.broker.queue.paging import parts_of, read_part
from warrenmq.broker.queue.queue import Queue
from warrenmq.broker.services.jobs import Job
from warrenmq.broker.services.services import Services
from warrenmq.log.damage import RecordDamaged

PIECE: Final = 256 << 10  # octets of the body in one piece, about
PARTS: Final = 32  # pieces read in a turn


@final
class BodyReader:
    """A very long body in the log, or in the transient store (its address is negative then), read some at a time."""

    def __init__(self, services: Services, address: i64) -> None:
        self._services: Final = services
        self._address: Final = address
        self._parts: Final = parts_of(services, address)
        self.pieces: Final[list[bytes]] = []
        services.freeing.add_body(self.pieces, PIECE * len(self._parts))

    def read_some(self) -> bool:
        """Some more of it; says whether that was all. RecordDamaged when it does not check."""
        pieces = self.pieces
        end: i64 = min(len(pieces) + PARTS, len(self._parts))
        while len(pieces) < end:
            pieces.append(read_part(self._services, self._address, self._parts[len(pieces)]))
        return end == len(self._parts)


@final
class ReadAhead(Job):
    """The reading of one body."""

    def __init__(self, queue: Queue, fifo: Fifo, address: i64) -> None:
        super().__init__(None)
        self._queue: Final = queue
        self._fifo: Final = fifo
        self._address: Final = address
        self._reader: Final = BodyReader(queue.broker, address)
        queue.hold_back()
        fifo.awaited = address

    def step(self) -> bool:
        queue = self._queue
        if not queue.gone and self._fifo.unread_head() == self._address and self._reads_on():
            return False
        self._fifo.awaited = 0
        queue.go_on()
        return True

    def _reads_on(self) -> bool:
        """Some more of it; says whether there is more still."""
        try:
            if not self._reader.read_some():
                return True
        except RecordDamaged:
            self._fifo.unreadable(self._address)
            return False
        self._fifo.read_ahead(self._address, self._reader.pieces)
        return False

    def subject(self) -> str:
        return str(self._queue.name)


def reads_ahead(queue: Queue, fifo: Fifo) -> bool:
    """Is the head so long that it is read in turns to come?"""
    if fifo.paged == 0 and fifo.bare == 0:
        return False
    address = fifo.unread_head()
    if address == 0 or len(parts_of(queue.broker, address)) == 0:
        return False
    if address == fifo.awaited:
        return True
    queue.broker.jobs.add(ReadAhead(queue, fifo, address))
    return queue.busy > 0
