"""Messages that expire: dropped when they are at the head of their queue, as many as a turn may.

Duty: when the head has to go, and the timer for it. What becomes of what expired is the queue's affair (``give_up``).
Not here: when a message that arrives will expire (``ClassicQueue.expiry_for``), and queues that expire
(``queue_expiry.py``).
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from warrenmq.broker.queue.fifo import Fifo
from warrenmq.broker.queue.office import GivesUp
from warrenmq.broker.queue.order import Order
from warrenmq.broker.queue.queue import Queue
from warrenmq.broker.queue.read_ahead import reads_ahead
from warrenmq.broker.services.timers import Timer
from warrenmq.log.causes import EXPIRED


@final
class HeadExpiry(Timer):
    """The head of the queue expires."""

    def __init__(self, queue: Queue, order: Order, keeper: GivesUp) -> None:
        super().__init__()
        self._queue: Final = queue
        self._order: Final = order
        self._keeper: Final = keeper
        self.possible: bool = False  # may entries here expire?
        self.overlooked: bool = False  # did the head arrive before others that waited? Then nobody has looked at it yet
        self.behind: bool = False  # more has expired than a turn may drop: the rest is at the head still

    def fire(self) -> None:
        self.seen()
        self.expire(self._queue.broker.turn.now)

    def subject(self) -> str:
        return str(self._queue.name)

    def overlook(self, fifo: Fifo) -> None:
        """Something that may expire arrives in a priority queue in which others wait. Does it become the head? RabbitMQ
        looks whether its head has expired only when something is taken, comes back or is dropped for a limit, or when
        an earlier head was to expire; so until then this one stays, and is delivered."""
        if self._order.first().priority < fifo.priority:
            self.overlooked = True

    def seen(self) -> None:
        """Whatever the head is, it counts as looked at."""
        self.overlooked = False

    def expect(self) -> None:
        """Something comes, or may come, that expires."""
        self.possible = True

    def expire(self, now: i64, least: i64 = 0) -> None:
        """Drop what expired at ``now`` or before from the head, unless that is ``overlooked``; behind a higher priority
        nothing is looked at.

        Not more in a turn than the broker's bound allows, but ``least`` in any case. When more has expired the queue
        is ``behind``: it delivers nothing and whoever asks it something waits, until later turns have done the rest.
        """
        if self.overlooked:
            return
        queue = self._queue
        broker = queue.broker
        if self.behind:
            now = broker.turn.now  # what was to go in an earlier turn
        buried = queue.settings.dead_letter_exchange is not None
        while queue.ready > 0:
            fifo = self._order.first()
            expires_at = fifo.head_expiry()
            if expires_at == 0 or expires_at > now:
                break
            if queue.is_reserved(expires_at):
                return  # it is a consumer's: this goes on when that has it
            if broker.turn.expiries_left <= 0:
                if least <= 0:
                    self.behind = True
                    broker.timers.arm(self, broker.turn.now)
                    return
                least -= 1
            unread = fifo.unread_head()
            if buried and unread < 0:  # what is in the log is not read for its letter
                if reads_ahead(queue, fifo):
                    return  # when it is read, this goes on
                unread = 0
            if buried and unread == 0:
                head = fifo.peek()
                if head is None or head.expires_at != expires_at:
                    continue  # what stood here is damaged, and set aside
                fifo.pop()
            else:
                head = fifo.pop_unread()
                assert head is not None
            self._order.gave_up(head)
            self._keeper.give_up(head, EXPIRED)
        if self.behind:
            self.behind = False
            queue.mark_dirty()
        self.arm()

    def arm(self) -> None:
        """For the head as it is now."""
        if self.overlooked:
            return
        expires_at = self._order.first().head_expiry()
        if expires_at:
            self._queue.broker.timers.arm(self, expires_at)
        else:
            self.disarm()

    def disarm(self) -> None:
        if self.due >= 0:
            self._queue.broker.timers.cancel(self)
