"""Deadlines for acknowledgements: which are in force anywhere, and when to look for deliveries that have missed theirs.

Duty: one timer for the whole broker, which is not armed while no queue has a deadline. A delivery costs nothing for it:
the one who looks (``Sweeper``) finds new ones by their tags. Not here: who is late (``channel/lateness.py``).
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64, trait

from warrenmq.broker.services.timers import Timer, Timers
from warrenmq.broker.services.turn import Turn

PAUSE: Final = 100  # ms between two looks at least, so a delivery is late by up to that much more
AT_ONCE: Final = 1  # ms, when there was more to look at than one turn may


@trait
class Sweeper:
    """An object that looks at all deliveries that are outstanding."""

    def sweep(self) -> i64:
        """Give back those that are late. Says when the next of those it has seen will be, 0 when it has not seen all,
        -1 when there is none."""
        raise NotImplementedError


@final
class Deadlines(Timer):
    """The number of queues with each deadline, and the timer that looks after them."""

    def __init__(self, timers: Timers, turn: Turn) -> None:
        super().__init__()
        self._timers: Final = timers
        self._turn: Final = turn
        self._queues: Final[dict[int, int]] = {}  # deadline in ms -> queues that have it
        self.sweeper: Sweeper | None = None
        self.generation: i64 = 0  # of deadlines: another one came into force for deliveries that had been seen
        self.missed: i64 = 0

    def changed(self, before: i64, after: i64, held: bool) -> None:
        """A queue's deadline, in ms; -1 for none. ``held``: it has deliveries outstanding."""
        if before == after:
            return
        if before > 0:
            left = self._queues.get(before, 0) - 1
            if left > 0:
                self._queues[before] = left
            else:
                self._queues.pop(before, None)
        if after > 0:
            self._queues[after] = self._queues.get(after, 0) + 1
            self._expect(self._turn.now + PAUSE)
        if held:
            self.generation += 1

    def _expect(self, due: i64) -> None:
        if self.due < 0 or due < self.due:
            self._timers.arm(self, due)

    def fire(self) -> None:
        sweeper = self.sweeper
        if sweeper is None or not self._queues:
            return
        found = sweeper.sweep()
        now = self._turn.now
        if found == 0:
            self._expect(now + AT_ONCE)
            return
        due = now + min(self._queues)  # what is delivered from now on is late then at the earliest
        if 0 < found < due:
            due = found
        self._expect(max(due, now + PAUSE))
