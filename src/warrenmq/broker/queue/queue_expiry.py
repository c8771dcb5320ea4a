"""A queue that nobody uses for x-expires goes. Not here: messages that expire (``head_expiry.py``)."""

from __future__ import annotations

from typing import Final, final

from warrenmq.broker.queue.queue import Queue
from warrenmq.broker.services.timers import Timer


@final
class QueueExpiry(Timer):
    """The timer that deletes a queue nobody used for x-expires."""

    def __init__(self, queue: Queue) -> None:
        super().__init__()
        self._queue: Final = queue

    def fire(self) -> None:
        self._queue.vhost.remove_queue(self._queue)

    def subject(self) -> str:
        return str(self._queue.name)

    def begin_anew(self, in_use: bool) -> None:
        """It counts from now on; not while somebody consumes, nor where the queue has no such limit."""
        queue = self._queue
        expires = queue.settings.expires
        if expires >= 0 and not in_use:
            queue.broker.timers.arm(self, queue.broker.turn.now + expires)
        else:
            self.disarm()

    def disarm(self) -> None:
        self._queue.broker.timers.cancel(self)
