"""What one channel handed out, by the queues it came from.

Duty: the numbers. Each delivery is counted once, here, with its queue; what the channel handed out in all is their sum,
and that of queues that are gone. A consumer keeps the counters of its queue, so that nothing is looked up for a
delivery. Nothing is decided by them.
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from warrenmq.broker.queue.queue import Queue
from warrenmq.broker.services.deliveries import Deliveries

FEW: Final = 64  # queues that are kept, gone or not


@final
class HandedOut:
    """The deliveries of one channel."""

    def __init__(self) -> None:
        self._by_queue: Final[dict[Queue, Deliveries]] = {}
        self._gone: Final = Deliveries()
        self._most: i64 = FEW
        self._last: Queue | None = None  # that was asked for
        self._of_last: Deliveries = self._gone

    def of(self, queue: Queue) -> Deliveries:
        """Where to count what comes from this queue; queues that are gone are counted together."""
        if queue is self._last and not queue.gone:
            return self._of_last
        if queue.gone:
            return self._gone
        found = self._by_queue.get(queue)
        if found is None:
            found = Deliveries()
            self._by_queue[queue] = found
            if len(self._by_queue) > self._most:
                self._let_go()
                self._most = 2 * len(self._by_queue) + FEW
        self._last = queue
        self._of_last = found
        return found

    def by_queue(self) -> dict[Queue, Deliveries]:
        """Of the queues that are there."""
        self._let_go()
        return self._by_queue

    def all(self) -> Deliveries:
        total = Deliveries()
        for counted in self.by_queue().values():
            total.add(counted)
        total.add(self._gone)
        return total

    def _let_go(self) -> None:
        """Of queues that are gone, which nobody is to keep."""
        gone = [queue for queue in self._by_queue if queue.gone]
        for queue in gone:
            self._gone.add(self._by_queue.pop(queue))
            if queue is self._last:
                self._last = None
                self._of_last = self._gone
