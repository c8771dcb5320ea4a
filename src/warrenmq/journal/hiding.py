"""Which of a log's events make no row: those of queues of which nothing is told, and those that sampling leaves out.

Duty: the one decision, for whoever makes rows of events (``columns.py``, ``cli/log/events.py``), and how many events
were left out of them, from when to when. Which records those are is remembered in ``log/left_out.py``.
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from warrenmq.log.left_out import LeftOut
from warrenmq.log.record import holder_count


@final
class Hiding:
    """The events hidden from one who is told everything, by what is wanted of each queue."""

    def __init__(self, left_out: LeftOut) -> None:
        self.left_out: Final = left_out
        self._events: i64 = 0  # events left out so far
        self._since: i64 = 0
        self._until: i64 = 0

    def hides(self, time: i64, queue: i64, address: i64) -> bool:
        """Something happened to a record (0: to none), in a queue (0 or less: in none)."""
        left_out = self.left_out
        if not left_out.any:
            return False
        if queue in left_out.quiet or (address and left_out.has(address, queue)):
            self.count(time, 1)
            return True
        return False

    def hides_record(self, time: i64, address: i64, data: bytes, at: i64) -> bool:
        """A record was written."""
        left_out = self.left_out
        if not left_out.any:
            return False
        if left_out.is_quiet(data, at) or left_out.take(address, data, at):
            self.count(time, 1 + holder_count(data, at))
            return True
        return False

    def hides_read(self, time: i64, queue: i64, offset: i64) -> bool:
        """What stands there in a stream was read."""
        left_out = self.left_out
        if not left_out.any:
            return False
        if queue in left_out.quiet or left_out.has_offset(queue, offset):
            self.count(time, 1)
            return True
        return False

    def count(self, time: i64, events: i64) -> None:
        """So many were left out then."""
        if self._events == 0 or time < self._since:
            self._since = time
        if self._events == 0 or time > self._until:
            self._until = time
        self._events += events

    def take(self) -> tuple[i64, i64, i64]:
        """How many were left out, from when to when; they are told now."""
        told = (self._events, self._since, self._until)
        self._events = 0
        return told
