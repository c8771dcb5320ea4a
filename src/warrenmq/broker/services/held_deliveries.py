"""Queues whose deliveries wait for the log.

Duty: who waits, and waking them. Why a delivery has to wait is in ``queue/promise.py``.
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import trait

from warrenmq.broker.services.turn import Turn


@trait
class Promised:
    """A queue that delivers when the log has what it was told."""

    def promise_kept(self) -> bool:
        raise NotImplementedError

    def mark_dirty(self) -> None:
        raise NotImplementedError


@final
class HeldDeliveries:
    """The queues that wait for the log now."""

    def __init__(self, turn: Turn) -> None:
        self._turn: Final = turn
        self._queues: list[Promised] = []

    def add(self, queue: Promised) -> None:
        """Deliveries of this queue wait until the log has its promise."""
        self._turn.owed = True
        if queue not in self._queues:
            self._queues.append(queue)

    def synced(self) -> None:
        if not self._queues:
            return
        still: list[Promised] = []
        for queue in self._queues:
            if queue.promise_kept():
                queue.mark_dirty()
            else:
                still.append(queue)
        self._queues = still

    def failed(self) -> None:
        """Consumers go on, whatever the disk does."""
        for queue in self._queues:
            queue.mark_dirty()
