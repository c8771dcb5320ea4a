"""One queue from its first message to its last.

Duty: of messages in the order in which they come, each with the time at which a consumer took it when it was recorded:
which wait, which expire, which are dropped over a limit and which are refused. A message that was taken is out of the
queue from then on, and stands for itself: if it is not there any more by then, nobody takes another for it. Times are
milliseconds. Not here: which messages come (``fates``, ``playing``), a queue's bounds (``queues``), where what it gives
up goes (``letters``).

As in the broker (``broker/queue/limits.py``, ``broker/queue/head_expiry.py``): limits count what waits, not what was
delivered; what expires goes when it is at the head; over a limit the head is dropped, or what comes is refused. The
head is the first of the highest priority. One that came before others that waited nobody looks at, until there is a
reason to.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterable

from warrenmq.supposing.outcomes import DROPPED, EXPIRED, REFUSED, THERE
from warrenmq.supposing.queues import Bounds

NEVER = (1 << 63) - 1
LONGEST = NEVER >> 1  # so that it can be added to a time
Comer = tuple[int, int, int | None, int | None, int]  # at, size, ttl, taken, priority


class Line:
    """The messages that wait with one priority, as they came; with what was taken from the middle."""

    def __init__(self, priority: int) -> None:
        self.priority = priority
        self.waiting: deque[tuple[int, int, int]] = deque()  # number, expires at, size
        self.length = 0  # without what was taken


class Waiting:
    """The queue while messages come; numbers are their places in the order of coming."""

    def __init__(self, bounds: Bounds, gives_up: Callable[[int, str], None] | None = None) -> None:
        self.bounds = bounds
        self._gives_up = gives_up  # called with the number and why
        self.fates: list[str] = []
        self._lines = [Line(priority) for priority in range(bounds.max_priority + 1)]
        self._line_of: list[Line] = []  # by number
        self._gone: set[int] = set()  # in a line, and taken
        self._taken: list[tuple[int, int, int]] = []  # at, number, size
        self._ready = 0
        self._bytes = 0
        self._overlooked = False  # did the head come before others that waited? Then nobody has looked at it yet
        self._due = NEVER  # when somebody looks at the head

    def comes(self, at: int, size: int, ttl: int | None, taken: int | None, priority: int = 0) -> None:
        """A message. ``ttl``: its own, in ms. ``taken``: when a consumer got it, if one did."""
        self.until(at)
        self.enters(at, size, ttl, taken, priority)

    def enters(self, at: int, size: int, ttl: int | None, taken: int | None, priority: int = 0) -> None:
        """A message, in a moment in which something else may be about to happen here: as in the broker, a head whose
        time is up goes when its timer says so, or when there is a limit to be kept."""
        number = len(self.fates)
        line = self._lines[min(priority, self.bounds.max_priority)]
        self._line_of.append(line)
        if self.refuses(size):
            self.fates.append(REFUSED)
            return
        self.fates.append(THERE)
        if taken is not None and taken <= at:
            return  # a consumer was waiting for it
        life = self._least(ttl)
        if life < LONGEST and self._ready and not line.length and line.priority > self._first().priority:
            self._overlooked = True
        line.waiting.append((number, at + life, size))
        line.length += 1
        self._ready += 1
        self._bytes += size
        if taken is not None:
            heapq.heappush(self._taken, (taken, number, size))
        if self.bounds.drop_head:
            while self._ready and self._over(self._ready, self._bytes):
                self._drop(DROPPED)
                self._overlooked = False
        if self.bounds.limited or life <= 0:
            self._expire(at)
        elif life < LONGEST:
            self._arm()

    def end(self, at: int) -> list[str]:
        """The fates, when so much time has gone by."""
        self.until(at)
        return self.fates

    def next(self) -> int:
        """When something happens here by itself, or before."""
        taken = self._taken[0][0] if self._taken else NEVER
        return min(taken, self._due)

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
            self._look(when - 1)  # in its last millisecond it may be had
            if self.fates[number] == THERE:
                self._gone.add(number)
                self._line_of[number].length -= 1
                self._ready -= 1
                self._bytes -= size
                self._overlooked = False
                self._expire(when)
        self._look(at)

    def _look(self, at: int) -> None:
        """What the timer does up to then."""
        if self._due <= at:
            self._overlooked = False
            self._expire(at)

    def _expire(self, at: int) -> None:
        if self._overlooked:
            return
        while (head := self._head()) is not None and head[1] <= at:
            self._drop(EXPIRED)
        self._arm()

    def _arm(self) -> None:
        """For the head as it is now."""
        if not self._overlooked:
            head = self._head()
            self._due = head[1] if head is not None and head[1] < LONGEST else NEVER

    def _first(self) -> Line:
        """The one whose head is next."""
        for line in reversed(self._lines):
            if line.length:
                return line
        return self._lines[0]

    def _head(self) -> tuple[int, int, int] | None:
        """The first that waits."""
        waiting = self._first().waiting
        while waiting:
            if waiting[0][0] not in self._gone:
                return waiting[0]
            self._gone.discard(waiting.popleft()[0])
        return None

    def _drop(self, fate: str) -> None:
        """The first that waits."""
        head = self._head()
        assert head is not None
        number, _, size = head
        line = self._line_of[number]
        line.waiting.popleft()
        line.length -= 1
        self.fates[number] = fate
        self._ready -= 1
        self._bytes -= size
        if self._gives_up is not None:
            self._gives_up(number, fate)


def fates(bounds: Bounds, messages: Iterable[Comer], until: int) -> list[str]:
    """What becomes of each of these messages (at, size, ttl, taken, priority), which come in this order, up to then."""
    queue = Waiting(bounds)
    for at, size, ttl, taken, priority in messages:
        queue.comes(at, size, ttl, taken, priority)
    return queue.end(until)
