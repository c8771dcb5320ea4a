"""How much may wait in a queue: what is refused, or dropped from the head.

Duty: x-max-length and x-max-length-bytes. What becomes of what is dropped is the queue's affair (``give_up``).
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from warrenmq.broker.queue.arguments import DROP_HEAD
from warrenmq.broker.queue.head_expiry import HeadExpiry
from warrenmq.broker.queue.office import GivesUp
from warrenmq.broker.queue.order import Order
from warrenmq.broker.queue.queue import Queue
from warrenmq.broker.queue.read_ahead import reads_ahead
from warrenmq.broker.services.jobs import Job
from warrenmq.log.causes import LIMIT


@final
class Limits:
    """The limits of one queue, put into force."""

    def __init__(self, queue: Queue, order: Order, expiry: HeadExpiry, keeper: GivesUp) -> None:
        self.queue: Final = queue
        self._order: Final = order
        self._expiry: Final = expiry
        self._keeper: Final = keeper
        self._trimming: bool = False  # a job drops heads

    def exist(self) -> bool:
        s = self.queue.settings
        return s.max_length >= 0 or s.max_bytes >= 0

    def drop_heads(self) -> bool:
        """Does what is over a limit leave at the head? Else what comes is refused."""
        return self.queue.settings.overflow == DROP_HEAD

    def would_refuse(self, more: i64, more_bytes: i64, size: i64) -> bool:
        """A message of this size, after ``more`` of ``more_bytes`` in all had come."""
        queue = self.queue
        s = queue.settings
        if s.overflow == DROP_HEAD:
            return False
        reserved = queue.reserved()
        if s.max_length >= 0 and queue.ready - reserved + more + 1 > s.max_length:
            return True
        ready_bytes = queue.ready_bytes if reserved < queue.ready else 0
        return s.max_bytes >= 0 and ready_bytes + more_bytes + size > s.max_bytes

    def reached(self) -> str:
        """The limit over which a message would be that is refused."""
        s = self.queue.settings
        if s.max_length >= 0 and self.queue.ready + 1 > s.max_length:
            return f"max-length {s.max_length}"
        return f"max-length-bytes {s.max_bytes}"

    def count_refused(self) -> None:
        """What came is over a limit, and refused."""
        s = self.queue.settings
        if s.max_length >= 0 and self.queue.ready + 1 > s.max_length:
            self.queue.counters.over_length += 1
        else:
            self.queue.counters.over_bytes += 1

    def trim(self, least: i64 = 0) -> None:
        """Down to the limit: as many as this turn may, and the rest in turns to come."""
        if not self.trimmed(least) and not self._trimming:
            self._trimming = True
            self.queue.broker.jobs.add(Trim(self))

    def trimmed(self, least: i64 = 0) -> bool:
        """Drop heads that are over a limit, ``least`` in any case; says whether none is left."""
        queue = self.queue
        turn = queue.broker.turn
        s = queue.settings
        buried = s.dead_letter_exchange is not None  # else nobody needs what is dropped: it is not read
        dropped = False
        while queue.ready > 0 and (
            (s.max_length >= 0 and queue.ready > s.max_length) or (s.max_bytes >= 0 and queue.ready_bytes > s.max_bytes)
        ):
            if queue.reserved() > 0:
                return True  # what is over the limit stands behind these: it goes when they have gone
            if turn.expiries_left <= 0:
                if least <= 0:
                    return False
                least -= 1
            fifo = self._order.first()  # its head: delivered next
            unread = fifo.unread_head()
            if buried and unread < 0:  # what is in the log is not read for its letter
                if reads_ahead(queue, fifo):
                    return False
                unread = 0
            entry = fifo.pop() if buried and unread == 0 else fifo.pop_unread()
            if entry is None:
                return True
            if s.max_length >= 0 and queue.ready > s.max_length:
                queue.counters.over_length += 1
            else:
                queue.counters.over_bytes += 1
            self._order.gave_up(entry)
            self._expiry.seen()
            self._keeper.give_up(entry, LIMIT)
            dropped = True
        if dropped and self._expiry.possible:
            self._expiry.expire(turn.now)  # the head is another one: it may have to go, and has a time of its own
        return True

    def trimming_is_over(self) -> None:
        self._trimming = False
        self.queue.go_on()


@final
class Trim(Job):
    """Heads over a limit are dropped; the queue counts as whole when it is within the limit."""

    def __init__(self, limits: Limits) -> None:
        super().__init__(None)
        self._limits: Final = limits
        limits.queue.hold_back()

    def step(self) -> bool:
        limits = self._limits
        if not limits.queue.gone and not limits.trimmed():
            return False
        limits.trimming_is_over()
        return True

    def subject(self) -> str:
        return str(self._limits.queue.name)
