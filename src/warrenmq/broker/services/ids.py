"""Numbers and names that nobody had before: of messages, of queues in the log, and of what clients leave unnamed."""

from __future__ import annotations

import base64
from typing import Final, final

from mypy_extensions import i64

from warrenmq.broker.services.randomness import Randomness
from warrenmq.log.log import Log

RESERVED: Final = 1000  # numbers for queues, reserved so many at a time


@final
class Ids:
    """The counters of what gets a number."""

    def __init__(self, log: Log, randomness: Randomness) -> None:
        self._log: Final = log
        self._randomness: Final = randomness
        self._next_message: i64 = 1
        self._next_queue: i64 = 1
        self._reserved: i64 = 1  # the log knows that queue numbers below this one may be taken

    def epoch_begins(self, epoch: i64) -> None:
        """Message ids begin anew with each start, behind all of the starts before."""
        self._next_message = (epoch << 40) + 1

    def message(self) -> i64:
        """A message id, unique across restarts."""
        id = self._next_message
        self._next_message = id + 1
        return id

    def queue(self) -> i64:
        """A number no queue ever had: the log would take the new one for the old."""
        id = self._next_queue
        self._next_queue = id + 1
        if id >= self._reserved:
            self._reserved = id + RESERVED
            self._log.define_aside("counter", "queue_id", b'{"next": %d}' % self._reserved)
        return id

    def saw_queue(self, id: i64) -> None:
        """A queue found at the start has this number."""
        if id >= self._next_queue:
            self._next_queue = id + 1

    def queues_are_taken_below(self, next: i64) -> None:
        """What the log was told before: numbers below this one may have been used."""
        self.saw_queue(next - 1)
        self._reserved = self._next_queue

    def name(self, prefix: str) -> str:
        """A name for what a client did not name."""
        return prefix + base64.urlsafe_b64encode(self._randomness.octets(16)).decode("ascii").rstrip("=")
