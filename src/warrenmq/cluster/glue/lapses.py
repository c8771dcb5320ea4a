"""Followers that were late again and again.

Duty: each time a late node is dropped, confirms have waited for ``cluster_ack_timeout``. One to which that happened
three times within ``cluster_stay_out`` does not count again before as long has gone by; it goes on following meanwhile.
Not here: what lateness is, and when a node is wanted all the same (``leading.py``). A leader remembers this for its
epoch alone: the next one makes its own experience.
"""

from __future__ import annotations

from collections import deque

LAPSES = 3


class Lapses:
    """The moments at which nodes were dropped for being late, by a clock in seconds."""

    def __init__(self, stay_out: float) -> None:
        self.stay_out = stay_out  # seconds; 0: nobody does
        self._times: dict[int, deque[float]] = {}
        self._until: dict[int, float] = {}

    def late(self, node: int, now: float) -> bool:
        """It has been dropped. Is it to stay out, from now on?"""
        times = self._times.setdefault(node, deque(maxlen=LAPSES))
        times.append(now)
        if len(times) < LAPSES or now - times[0] >= self.stay_out:
            return False
        times.clear()
        self._until[node] = now + self.stay_out
        return True

    def left(self, node: int, now: float) -> float:
        """For how many seconds it is to stay out; 0: it may count."""
        return max(0.0, self._until.get(node, 0.0) - now)

    def forgive(self, node: int) -> None:
        """It is wanted all the same: it begins anew."""
        self._until.pop(node, None)
