"""Very many messages acknowledged or rejected by one method: a slice a turn, while the client's further input waits.

Duty: order and holding the input, so that whatever the client sends behind the method finds it done. The messages are
the client's no longer: they are settled even if it goes meanwhile, and before a broker stops. Not here: transactions,
which are one batch of the log whatever they hold, and giving messages back, which must be over before one is delivered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64

from warrenmq.broker.message import Entry
from warrenmq.broker.timers import Timer

if TYPE_CHECKING:
    from warrenmq.broker.broker import Broker
    from warrenmq.broker.channel import Channel

SLICE: Final = 16384  # messages settled in a turn


@final
class Job:
    def __init__(self, channel: Channel, entries: list[Entry], rejected: bool) -> None:
        self.channel: Final = channel
        self.entries: Final = entries
        self.rejected: Final = rejected
        self.done: i64 = 0

    def step(self) -> bool:
        """Settle one slice; says whether it was the last."""
        end: i64 = self.done + SLICE
        if end > len(self.entries):
            end = len(self.entries)
        part = self.entries[self.done : end]
        self.done = end
        if self.rejected:
            self.channel.discard(part)
        else:
            self.channel.settle(part)
        return end == len(self.entries)


@final
class Settling(Timer):
    def __init__(self, broker: Broker) -> None:
        super().__init__()
        self._broker: Final = broker
        self._jobs: list[Job] = []

    def add(self, channel: Channel, entries: list[Entry], rejected: bool) -> None:
        """Oldest first in the list."""
        job = Job(channel, entries, rejected)
        if not job.step():
            channel.connection.settling = True
            channel.connection.hold()
            self._jobs.append(job)
            self._wait()

    def busy(self) -> bool:
        return len(self._jobs) > 0

    def fire(self) -> None:
        job = self._jobs.pop(0)
        if job.step():
            connection = job.channel.connection
            connection.settling = False
            if connection.writable:  # else it goes on when it reads again
                connection.release_hold()
        else:
            self._jobs.append(job)
        if self._jobs:
            self._wait()

    def finish(self) -> None:
        """The broker stops: all of it now."""
        for job in self._jobs:
            while not job.step():
                pass
        self._jobs = []

    def _wait(self) -> None:
        self._broker.io_timers.arm(self, self._broker.io_now() + 1)

    def subject(self) -> str:
        return self._jobs[0].channel.connection.name if self._jobs else ""
