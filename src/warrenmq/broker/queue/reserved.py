"""Messages that consumers already wait for, and get as soon as the log has what must be there before: the message
itself, or what an answer to their channel says that no delivery overtakes.

To a client they have left the queue when they came: that they stand here for the time of a sync is ours alone. Duty:
which ones these are, so that no limit counts or drops them and none expires. Not here: why the log has to have
something first (``promise.py``).
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from warrenmq.broker.message import Message
from warrenmq.broker.queue.dispatch import Dispatch
from warrenmq.broker.queue.order import Order
from warrenmq.broker.queue.promise import Promise
from warrenmq.broker.queue.queue import Queue


@final
class Reserved:
    """The messages at the head of one queue that are a consumer's already."""

    def __init__(self, queue: Queue, order: Order, dispatch: Dispatch, promise: Promise) -> None:
        self._queue: Final = queue
        self._order: Final = order
        self._dispatch: Final = dispatch
        self._promise: Final = promise
        self._up_to: i64 = 0  # the position of the last
        self.since: i64 = 0  # when the first of them could have gone; what had expired by then is nobody's

    def will_be(self, message: Message) -> bool:
        """Does a consumer wait for this message, which is about to stand here as the newest, and for all before it?"""
        queue = self._queue
        if not self._possible():
            return False
        synced = not message.moved or message.batch <= queue.broker.log.committed or not queue.holds(message)
        if synced and not self._dispatch.behind_answers:
            return False
        before = queue.ready - 1  # it counts already
        return self.messages() == before and queue.wanted_now() > before

    def came(self, position: i64) -> None:
        """A message came and nobody got it: because the log must have something first?"""
        first = self._held()
        if first == 0:
            return
        if self.messages() == 0:
            self.since = self._queue.broker.turn.now
        wanted = self._queue.wanted_now()
        if wanted >= self._queue.ready:
            self._up_to = position
        elif self._up_to < first:
            self._up_to = first + wanted - 1

    def messages(self) -> i64:
        """How many there are."""
        if self._up_to == 0 or self._queue.ready == 0:
            return 0
        first = self._order.first().head_position()
        if first > self._up_to:
            return 0
        return min(self._queue.ready, self._up_to - first + 1)

    def given_out(self) -> bool:
        """Consumers got what they could: were there any, and is what stands here now nobody's?"""
        if self._up_to == 0 or self._queue.busy or self._held() != 0:
            return False
        self._up_to = 0
        return True

    def _held(self) -> i64:
        """The position of the head, if a consumer would take it now but for the log, else 0. Nothing is read."""
        if self._queue.ready == 0 or not self._possible():
            return 0
        fifo = self._order.first()
        if self._dispatch.is_eager():
            head = fifo.head_in_memory()
            if head is None or not self._promise.holds_back(head):
                return 0
        return fifo.head_position()

    def _possible(self) -> bool:
        """May there be any? A consumer waits, for a message that has to be on disk or behind an answer that does."""
        queue = self._queue
        if queue.busy or queue.paused or queue.broker.pressure.log_failing:
            return False
        dispatch = self._dispatch
        if dispatch.next() is not None:
            return True
        if dispatch.behind_answers and queue.wanted_now() == 0:
            dispatch.behind_answers = False
        return dispatch.behind_answers
