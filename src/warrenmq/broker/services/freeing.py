"""What a purged or deleted queue, or a transaction that is over, held in memory, let go a slice at a time.

Duty: to spread the work. For everybody the messages are gone when the queue says so; but freeing a million of them
takes longer than a turn should, and nobody waits for it. A very long body is the same: to give half a gigabyte back to
the system takes a tenth of a second, and whoever was done with it last would pay for it. Not here: the log's part,
which is one batch (``log/log.py``).
"""

from __future__ import annotations

import sys
from typing import Any, Final, final

from mypy_extensions import i64

from warrenmq.broker.services.clock import Clock
from warrenmq.broker.services.timers import Timer, Timers

SLICE: Final = 16384  # entries let go in a turn
PAUSE: Final = 1  # ms until the next slice: turns of others come in between
LONG: Final = 32 << 20  # octets; a shorter body is let go at once
BODY_SLICE: Final = 8 << 20  # octets of a long one let go in a turn
LOOK: Final = 250  # ms until somebody looks again whether a long body is needed still


@final
class Freeing(Timer):
    """The freeing of lists of entries that nobody needs any more."""

    def __init__(self, io_timers: Timers, io_clock: Clock) -> None:
        super().__init__()
        self._io_timers: Final = io_timers
        self._io_clock: Final = io_clock
        self._held: Final[list[list[Any]]] = []
        self._pieces: Final[list[list[Any]]] = []
        self._bodies: Final[list[list[bytes]]] = []
        self._more_bodies: bool = False  # are there some that nobody needs?
        self._bodies.append([])
        self._alone: Final = self._holders(0)  # how many there seem to be of what nobody else has
        self._bodies.clear()

    def add(self, entries: list[Any]) -> None:
        """Take over a list to free in slices. A short one is freed as soon as the caller drops its reference."""
        if len(entries) > SLICE:
            self._held.append(entries)
            self._wait()

    def add_pieces(self, pieces: list[list[Any]]) -> None:
        """Take over several lists to free in slices, each much shorter than a slice."""
        if len(pieces) > 1:
            self._pieces.extend(pieces)
            self._wait()

    def add_body(self, pieces: list[bytes], size: i64) -> None:
        """The body that this list is, or will be when all of it has come. Others hold the list, and go on changing it
        as they like: when they do no longer, what is in it is let go."""
        if size > LONG:
            self._bodies.append(pieces)
            if self.due < 0:  # else somebody looks sooner; put off by every new one, nobody ever would
                self._io_timers.arm(self, self._io_clock.now_ms() + LOOK)

    def let_go(self) -> None:
        """The broker has stopped: all of it now."""
        self._held.clear()
        self._pieces.clear()
        self._bodies.clear()

    def fire(self) -> None:
        if self._held:
            self._let_go()
        elif self._pieces:
            freed: i64 = 0
            while self._pieces and freed < SLICE:
                freed += len(self._pieces.pop())
        else:
            self._more_bodies = self._let_bodies_go()
        if self._held or self._pieces or self._more_bodies:
            self._wait()
        elif self._bodies:
            self._io_timers.arm(self, self._io_clock.now_ms() + LOOK)

    def _let_bodies_go(self) -> bool:
        """A slice of those that nobody needs any more; says whether there is more."""
        freed: i64 = 0
        i: i64 = len(self._bodies) - 1
        while i >= 0 and freed < BODY_SLICE:
            if self._holders(i) == self._alone:
                body = self._bodies[i]
                while body and freed < BODY_SLICE:
                    freed += len(body.pop())
                if not body:
                    del self._bodies[i]
            i -= 1
        return freed >= BODY_SLICE

    def _holders(self, at: i64) -> int:
        return sys.getrefcount(self._bodies[at])

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
