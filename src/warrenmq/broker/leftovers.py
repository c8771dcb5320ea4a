"""What a purged or deleted queue held in memory, let go a slice at a time.

Duty: to spread the work. For everybody the messages are gone when the queue says so; but freeing a million of them
takes longer than a turn should, and nobody waits for it. Not here: the log's part, which is one batch (``log/log.py``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64

from warrenmq.broker.message import Entry
from warrenmq.broker.timers import Timer

if TYPE_CHECKING:
    from warrenmq.broker.broker import Broker

SLICE: Final = 16384  # entries let go in a turn
PAUSE: Final = 1  # ms until the next slice: turns of others come in between


@final
class Leftovers(Timer):
    def __init__(self, broker: Broker) -> None:
        super().__init__()
        self._broker: Final = broker
        self._held: Final[list[list[Entry | None]]] = []

    def add(self, entries: list[Entry | None]) -> None:
        """Nobody else needs this list any more. A short one goes with the caller's name for it."""
        if len(entries) > SLICE:
            self._held.append(entries)
            self._wait()

    def fire(self) -> None:
        entries = self._held[-1]
        left: i64 = len(entries) - SLICE
        if left > 0:
            del entries[left:]
        else:
            self._held.pop()
        if self._held:
            self._wait()

    def _wait(self) -> None:
        """On the wire's clock, which goes on while virtual time stands still."""
        self._broker.io_timers.arm(self, self._broker.io_now() + PAUSE)
