"""Deliveries of one channel that have a deadline, by when they are late.

Duty: which outstanding deliveries are late. Each is looked at once, when it is found behind the last tag seen, and
then waits by its due time. Not here: what becomes of a late one (``outstanding.py``), when to look
(``services/deadlines.py``).
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Final, final

from mypy_extensions import i64

from warrenmq.broker.channel.acks import Unacked


@final
class Watch:
    """The deliveries of one channel whose queues have a deadline, by when they are late."""

    def __init__(self, unacked: Unacked) -> None:
        self._unacked: Final = unacked
        self._seen: i64 = 0  # the last tag that was looked at
        self._due: list[tuple[int, int]] = []  # a heap of (when it is late, tag); some are settled since
        self._generation: i64 = -1

    def look(self, generation: i64, most: i64) -> i64:
        """Look at deliveries that were not seen yet, at most so many; says at how many."""
        unacked = self._unacked
        if generation != self._generation or unacked.rewound:
            self._generation = generation
            unacked.rewound = False
            self._seen = 0
            self._due = []
        found = unacked.behind(self._seen, most)
        for tag, entry in found:
            deadline = entry.queue.settings.ack_deadline
            if deadline > 0:
                heappush(self._due, (int(entry.delivered_at + deadline), tag))
            self._seen = tag
        return len(found)

    def take_late(self, now: i64, most: i64) -> list[int]:
        """The tags of those that are late now, in this order, at most so many."""
        late: list[int] = []
        while self._due and len(late) < most and self._due[0][0] <= now:
            tag = heappop(self._due)[1]
            if self._unacked.contains(tag):
                late.append(tag)
        return late

    def next_due(self) -> i64:
        """When the next one is late, -1 when there is none."""
        while self._due and not self._unacked.contains(self._due[0][1]):
            heappop(self._due)
        return self._due[0][0] if self._due else -1
