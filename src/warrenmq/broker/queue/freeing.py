"""What a purged or deleted queue, or a transaction that is over, held in memory, let go a slice at a time.

Duty: to spread the work. For everybody the messages are gone when the queue says so; but freeing a million of them
takes longer than a turn should, and nobody waits for it. Not here: the log's part, which is one batch (``log/log.py``).
"""

from __future__ import annotations

from typing import Any, Final, final

from mypy_extensions import i64

from warrenmq.broker.services.clock import Clock
from warrenmq.broker.services.timers import Timer, Timers

SLICE: Final = 16384  # entries let go in a turn
PAUSE: Final = 1  # ms until the next slice: turns of others come in between


@final
class Freeing(Timer):
    """The freeing of lists of entries that nobody needs any more."""

    def __init__(self, io_timers: Timers, io_clock: Clock) -> None:
        super().__init__()
        self._io_timers: Final = io_timers
        self._io_clock: Final = io_clock
        self._held: Final[list[list[Any]]] = []
        self._pieces: Final[list[list[Any]]] = []

    def add(self, entries: list[Any]) -> None:
        """Nobody else needs this list any more. A short one goes with the caller's name for it."""
        if len(entries) > SLICE:
            self._held.append(entries)
            self._wait()

    def add_pieces(self, pieces: list[list[Any]]) -> None:
        """Nobody else needs these lists, each much shorter than a slice."""
        if len(pieces) > 1:
            self._pieces.extend(pieces)
            self._wait()

    def let_go(self) -> None:
        """The broker has stopped: all of it now."""
        self._held.clear()
        self._pieces.clear()

    def fire(self) -> None:
        if self._held:
            self._let_go()
        else:
            freed: i64 = 0
            while self._pieces and freed < SLICE:
                freed += len(self._pieces.pop())
        if self._held or self._pieces:
            self._wait()

    def _let_go(self) -> None:
        entries = self._held[-1]
        left: i64 = len(entries) - SLICE
        if left > 0:
            del entries[left:]
        else:
            self._held.pop()

    def _wait(self) -> None:
        """On the wire's clock, which goes on while virtual time stands still."""
        self._io_timers.arm(self, self._io_clock.now_ms() + PAUSE)
