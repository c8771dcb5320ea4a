"""One queue from its first message to its last.

Duty: of messages in the order in which they come, each with the time at which a consumer took it when it was recorded:
which wait, which expire, which are dropped over a limit and which are refused. A message that was taken is out of the
queue from then on, and stands for itself: if it is not there any more by then, nobody takes another for it. Times are
milliseconds. Not here: which messages come (``fates``, ``playing``), a queue's bounds (``queues``), where what it gives
up goes (``letters``).

As in the broker (``broker/queue/limits.py``, ``broker/queue/head_expiry.py``): limits count what waits, not what was
delivered; what expires goes when it is at the head; over a limit the head is dropped, or what comes is refused.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterable

from warrenmq.supposing.outcomes import DROPPED, EXPIRED, REFUSED, THERE
from warrenmq.supposing.queues import Bounds

NEVER = (1 << 63) - 1
LONGEST = NEVER >> 1  # so that it can be added to a time


class Waiting:
    """The queue while messages come; numbers are their places in the order of coming."""

    def __init__(self, bounds: Bounds, gives_up: Callable[[int, str], None] | None = None) -> None:
        self.bounds = bounds
        self._gives_up = gives_up  # called with the number and why
        self.fates: list[str] = []
        self._line: deque[tuple[int, int, int]] = deque()  # number, expires at, size; those that were taken too
        self._gone: set[int] = set()  # in the line, and taken
        self._taken: list[tuple[int, int, int]] = []  # at, number, size
        self._ready = 0
        self._bytes = 0

    def comes(self, at: int, size: int, ttl: int | None, taken: int | None) -> None:
        """A message. ``ttl``: its own, in ms. ``taken``: when a consumer got it, if one did."""
        self.until(at)
        self.enters(at, size, ttl, taken)

    def enters(self, at: int, size: int, ttl: int | None, taken: int | None) -> None:
        """A message, in a moment in which something else may be about to happen here: as in the broker, a head whose
        time is up goes when its timer says so, or when there is a limit to be kept."""
        number = len(self.fates)
        if self.refuses(size):
            self.fates.append(REFUSED)
            return
        self.fates.append(THERE)
        if taken is not None and taken <= at:
            return  # a consumer was waiting for it
        life = self._least(ttl)
        self._line.append((number, at + life, size))
        self._ready += 1
        self._bytes += size
        if taken is not None:
            heapq.heappush(self._taken, (taken, number, size))
        if self.bounds.drop_head:
            while self._ready and self._over(self._ready, self._bytes):
                self._drop(DROPPED)
        if self.bounds.limited or life <= 0:
            self._expire(at)

    def end(self, at: int) -> list[str]:
        """The fates, when so much time has gone by."""
        self.until(at)
        return self.fates

    def next(self) -> int:
        """When something happens here by itself, or before."""
        taken = self._taken[0][0] if self._taken else NEVER
        return min(taken, self._line[0][1]) if self._line else taken

    def _least(self, ttl: int | None) -> int:
        given = [each for each in (self.bounds.ttl, -1 if ttl is None else ttl) if each >= 0]
        return min(given, default=LONGEST)

    def _over(self, ready: int, octets: int) -> bool:
        bounds = self.bounds
        return 0 <= bounds.max_length < ready or 0 <= bounds.max_bytes < octets

    def refuses(self, size: int) -> bool:
        return not self.bounds.drop_head and self._over(self._ready + 1, self._bytes + size)

    def until(self, at: int) -> None:
        """What happens up to then, in order."""
        while self._taken and self._taken[0][0] <= at:
            when, number, size = heapq.heappop(self._taken)
            self._expire(when - 1)  # in its last millisecond it may be had
            if self.fates[number] == THERE:
                self._gone.add(number)
                self._ready -= 1
                self._bytes -= size
                self._expire(when)
        self._expire(at)

    def _expire(self, at: int) -> None:
        while self._line:
            number, expires, _ = self._line[0]
            if number in self._gone:
                self._line.popleft()
                self._gone.discard(number)
            elif expires <= at:
                self._drop(EXPIRED)
            else:
                return

    def _drop(self, fate: str) -> None:
        """The first that waits."""
        while True:
            number, _, size = self._line.popleft()
            if number in self._gone:
                self._gone.discard(number)
                continue
            self.fates[number] = fate
            self._ready -= 1
            self._bytes -= size
            if self._gives_up is not None:
                self._gives_up(number, fate)
            return


def fates(bounds: Bounds, messages: Iterable[tuple[int, int, int | None, int | None]], until: int) -> list[str]:
    """What becomes of each of these messages (at, size, ttl, taken), which come in this order, up to then."""
    queue = Waiting(bounds)
    for at, size, ttl, taken in messages:
        queue.comes(at, size, ttl, taken)
    return queue.end(until)
