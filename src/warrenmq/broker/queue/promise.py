"""What a durable queue has told the log about its deliveries, so that after a crash they come back flagged.

Duty: how far deliveries may go, and what must wait. The log is told ahead of time, ``LEAD`` positions at once, that
messages up to there may have been delivered; a message beyond what is on disk waits for it.
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from warrenmq.broker.queue.queue import Entry, Queue

EVERYTHING: Final = 0x7FFFFFFFFFFFFFFF
LEAD: Final = 65536  # how far ahead the log is told


@final
class Promise:
    """The position up to which the log knows that a queue may have delivered."""

    def __init__(self, queue: Queue) -> None:
        self._queue: Final = queue
        self.limit: i64 = 0  # deliveries up to this position may go: the log has it on disk
        self._promised: i64 = 0  # what the log was told
        self._batch: i64 = 0  # in which batch, while that is not on disk

    def renew(self) -> None:
        """A consumer is here: tell the log how far deliveries may go."""
        queue = self._queue
        if queue.durable and self._promised < queue.next_position + LEAD // 2:
            self._promised = queue.next_position + LEAD
            queue.broker.log.delivered_up_to(queue.id, self._promised)
            self._batch = queue.broker.log.batch
            queue.broker.held_deliveries.add(queue)

    def covers(self, head: Entry) -> bool:
        """May this message be delivered now? Else its queue waits for the log."""
        queue = self._queue
        broker = queue.broker
        if not queue.holds(head.message) or head.redelivered:
            return True  # it does not survive a crash, or is flagged already
        self.kept()
        if head.position <= self.limit:
            return True
        if head.message.batch and head.message.batch >= self._batch and self._batch:
            return True  # promise and message reach the disk together or in this order
        if head.position > self._promised - LEAD // 4 or not self._batch:
            self._promised = 0
            self.renew()
        if broker.pressure.log_failing:
            return True
        broker.held_deliveries.add(queue)
        return False

    def moving(self, head: Entry) -> bool:
        """A message that moved here inside the broker is delivered when the move is on disk: were it delivered
        before, a crash could undo the move and it would be delivered once more, without a flag."""
        queue = self._queue
        broker = queue.broker
        message = head.message
        if not message.moved or message.batch <= broker.log.committed or not queue.holds(message):
            return False
        if broker.pressure.log_failing:
            return False
        broker.held_deliveries.add(queue)
        return True

    def holds_back(self, head: Entry) -> bool:
        """Does it wait for the log?"""
        return (head.position > self.limit and not self.covers(head)) or self.moving(head)

    def kept(self) -> bool:
        """Is what the log was told last on disk? Then deliveries may go as far as that."""
        if self._batch and self._queue.broker.log.committed >= self._batch:
            self.limit = self._promised
            self._batch = 0
        return self._batch == 0
