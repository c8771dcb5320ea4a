"""What waits in a queue, by priority: one fifo each, the highest first.

Duty: which entry is next, and the counts of what waits as a whole. Not here: the order within a priority
(``fifo.py``), whether an entry may go (``promise.py``) or must (``head_expiry.py``, ``limits.py``).
"""

from __future__ import annotations

from typing import Final, final

from librt.vecs import vec
from mypy_extensions import i64

from warrenmq.broker.queue.fifo import Fifo
from warrenmq.broker.queue.place import Place, by_position
from warrenmq.broker.queue.queue import Entry, Queue
from warrenmq.log.index import QueueIndex


@final
class Order:
    """The fifos of one queue."""

    def __init__(self, queue: Queue, max_priority: i64) -> None:
        self._queue: Final = queue
        self.max_priority: Final = max_priority
        self.lowest: Final = Fifo(queue, 0)  # the only one without x-max-priority
        self.fifos: Final[list[Fifo]] = [self.lowest]
        priority: i64 = 0
        while priority < max_priority:
            priority += 1
            self.fifos.append(Fifo(queue, priority))

    def of(self, priority: i64) -> Fifo:
        if priority > self.max_priority:
            priority = self.max_priority
        return self.fifos[priority]

    def first(self) -> Fifo:
        """The one whose head is next."""
        i = self.max_priority
        while i > 0:
            if self.fifos[i].length > 0:
                return self.fifos[i]
            i -= 1
        return self.lowest

    def length(self) -> i64:
        """How many wait here, by each fifo's own count."""
        total: i64 = 0
        for fifo in self.fifos:
            total += fifo.length
        return total

    def misplaced(self) -> i64:
        """How many more wait by the queue's count than stand here; and so for each fifo."""
        off = self._queue.ready - self.length()
        wrong: i64 = off if off >= 0 else -off
        for fifo in self.fifos:
            off = fifo.length - fifo.window() - fifo.paged
            wrong += off if off >= 0 else -off
        return wrong

    def gave_up(self, entry: Entry) -> None:
        """It was taken from the head for good: it waits no longer, and the turn has done so much of what it may."""
        queue = self._queue
        size = entry.message.size
        queue.broker.turn.expiries_left -= 1 if entry.message.absent else 1 + (size >> 12)
        queue.ready -= 1
        queue.ready_bytes -= size

    def put_back(self, entries: list[Entry]) -> None:
        """Requeue at the original positions; oldest first in the list."""
        for entry in entries:
            self._queue.ready += 1
            self._queue.ready_bytes += entry.message.size
        if self.max_priority == 0:
            self.lowest.put_back(entries)
        else:
            for entry in entries:
                self.of(entry.message.priority).put_back([entry])

    def take_out(self, position: i64) -> Entry | None:
        """Take what waits at this position for good; None: it does not wait here."""
        for fifo in self.fifos:
            if fifo.length > 0:
                entry = fifo.take_out(position)
                if entry is not None:
                    self._queue.ready -= 1
                    self._queue.ready_bytes -= entry.message.size
                    return entry
        return None

    def places(self, first: i64, end: i64, most: i64) -> list[Place]:
        """Where what waits here is, by position from ``first`` up to ``end``."""
        if self.max_priority == 0:
            return self.lowest.places(first, end, most)
        found: list[Place] = []
        for fifo in self.fifos:
            found.extend(fifo.places(first, end, most))
        found.sort(key=by_position)
        return found[:most]

    def logged(self) -> vec[i64]:
        """Where the log keeps what waits here."""
        addresses = vec[i64]()
        for fifo in self.fifos:
            addresses = fifo.logged(addresses)
        return addresses

    def count_logged(self) -> i64:
        """How much of what waits here the log keeps."""
        count: i64 = 0
        for fifo in self.fifos:
            count += fifo.count_logged()
        return count

    def unlogged(self, most: i64) -> list[Entry]:
        """Some of what the log does not keep and is in memory."""
        found: list[Entry] = []
        for fifo in self.fifos:
            fifo.unlogged(most, found)
        return found

    def fill_index(self, index: QueueIndex) -> None:
        """For the log to remember at a clean stop."""
        for fifo in self.fifos:
            fifo.fill_index(index, fifo.priority)

    def take_back(self, first: i64) -> list[i64]:
        """The log could not write the batches from ``first`` on: what nobody has seen of them is taken out. Returns
        where the log has it."""
        addresses: list[i64] = []
        queue = self._queue
        for fifo in self.fifos:
            before = fifo.length
            queue.ready_bytes -= fifo.take_back(first, addresses)
            queue.ready -= before - fifo.length
        return addresses

    def forget_transient(self) -> None:
        """Drop what the log does not keep."""
        queue = self._queue
        queue.ready = 0
        queue.ready_bytes = 0
        for fifo in self.fifos:
            queue.ready_bytes += fifo.forget_transient()
            queue.ready += fifo.length

    def clear(self) -> None:
        for fifo in self.fifos:
            fifo.free_transient()
            fifo.clear()
        self._queue.ready = 0
        self._queue.ready_bytes = 0
