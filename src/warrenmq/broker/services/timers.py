"""Timers: what is due when. A binary heap with lazy cancelling; the server keeps one loop timer for the earliest.

Duty: order, and that a timer outlives its own failure: it is noted, and the timer fires again a little later. Not here:
an event loop; somebody calls ``run_next``.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import Final, final

from mypy_extensions import i64

from warrenmq.broker.services.notes import Notes

AGAIN: Final = 5000  # ms until a timer that failed fires again


class Timer:
    """An event that happens at a time. Subclasses say what in ``fire``."""

    def __init__(self) -> None:
        self.due: i64 = -1  # ms, -1 = not armed
        self.token: i64 = 0  # tells the live heap entry from cancelled ones

    def fire(self) -> None:
        raise NotImplementedError

    def subject(self) -> str:
        """What it is about, for the log: the name of a queue or a connection."""
        return ""

    def __str__(self) -> str:
        subject = self.subject()
        kind = type(self).__name__
        return f"{kind} of {subject}" if subject else kind


@final
class Timers:
    """The heap of armed timers of one clock."""

    def __init__(self, notes: Notes) -> None:
        self._notes: Final = notes
        self.fired: Timer | None = None  # by the last call of run_next
        self._heap: list[tuple[int, int, Timer]] = []
        self._tokens: i64 = 0
        self._armed: i64 = 0  # live entries of the heap; the others were moved or cancelled

    def arm(self, timer: Timer, due: i64) -> None:
        """Set or move a timer. Arming it for the same time again costs nothing."""
        if timer.due == due:
            return
        if timer.token == 0:
            self._armed += 1
        self._tokens += 1
        timer.due = due
        timer.token = self._tokens
        heappush(self._heap, (due, self._tokens, timer))
        if len(self._heap) > 64 + 2 * self._armed:  # a timer that is moved all the time must not fill the heap
            self._heap = [entry for entry in self._heap if entry[2].token == entry[1]]
            heapify(self._heap)

    def cancel(self, timer: Timer) -> None:
        if timer.token != 0:
            self._armed -= 1
        timer.due = -1
        timer.token = 0

    def next_due(self) -> i64:
        """When the earliest timer is due, or -1 when none is armed."""
        heap = self._heap
        while heap:
            due, token, timer = heap[0]
            if timer.token == token:
                return due
            heappop(heap)
        return -1

    def run_next(self, now: i64) -> bool:
        """Fire the earliest timer if it is due; says whether one fired."""
        self.fired = None
        due = self.next_due()
        if due < 0 or due > now:
            return False
        timer = heappop(self._heap)[2]
        self._armed -= 1
        timer.due = -1
        timer.token = 0
        self.fired = timer
        try:
            timer.fire()
        except Exception as error:
            if timer.token == 0:
                self.arm(timer, now + AGAIN)
            self._notes.crash("timer_failed", {"timer": str(timer), "again_in_ms": AGAIN}, error)
        return True
