"""What is deleted and is a circle of references, its parts leading back to it, taken apart once nobody else has it.

Duty: that counting references is enough to free it. Python's garbage collection would find it, but it holds everybody
up for as long as it looks at all there is, so what is there for long is hidden from it (``server/garbage.py``). Not
here: what a thing lets go of. Nothing is taken apart while somebody may still ask it something: a channel with
deliveries of a deleted queue, a job, a lease.
"""

from __future__ import annotations

import sys
from typing import Final, final

from mypy_extensions import i64, trait

from warrenmq.broker.services.clock import Clock
from warrenmq.broker.services.timers import Timer, Timers

SLICE: Final = 256  # things looked at in a turn
PAUSE: Final = 1  # ms until the next slice
LOOK: Final = 1000  # ms until somebody looks again whether others still have one; twice as long when all have
SELDOM: Final = 64_000  # ms, at most


@trait
class Assembled:
    """A thing of parts that know it."""

    def own_references(self) -> i64:
        """How many references to it its parts have."""
        raise NotImplementedError

    def come_apart(self) -> None:
        """Let go of them. Nobody asks it anything any more."""
        raise NotImplementedError


@final
class _Nothing(Assembled):
    """A thing without parts."""

    def own_references(self) -> i64:
        return 0

    def come_apart(self) -> None:
        pass


@final
class TakingApart(Timer):
    """The deleted things that have not come apart yet."""

    def __init__(self, io_timers: Timers, io_clock: Clock) -> None:
        super().__init__()
        self._io_timers: Final = io_timers
        self._io_clock: Final = io_clock
        self._held: list[Assembled] = []  # by others, when somebody looked
        self._look: i64 = LOOK
        self._unseen: list[Assembled] = [_Nothing()]
        self._alone: Final = self._holders()  # how many references there seem to be to what nobody else has
        self._unseen.clear()

    def __len__(self) -> int:
        return len(self._unseen) + len(self._held)

    def add(self, thing: Assembled) -> None:
        if thing.own_references() > 0:
            self._unseen.append(thing)
            self._wait(PAUSE)

    def let_go(self) -> None:
        """The broker has stopped."""
        self._unseen.clear()
        self._held.clear()

    def fire(self) -> None:
        looks: i64 = SLICE
        while self._unseen and looks > 0:
            looks -= 1
            alone = self._holders() == self._alone + self._unseen[-1].own_references()
            thing = self._unseen.pop()
            if alone:
                thing.come_apart()
                self._look = LOOK
            else:
                self._held.append(thing)
        if self._unseen:
            self._wait(PAUSE)
        elif self._held:
            self._unseen, self._held = self._held, self._unseen
            self._wait(self._look)
            self._look = min(2 * self._look, SELDOM)

    def _holders(self) -> i64:
        """References to the next one."""
        return sys.getrefcount(self._unseen[-1])

    def _wait(self, pause: i64) -> None:
        """On the wire's clock, which goes on while virtual time stands still."""
        due = self._io_clock.now_ms() + pause
        if self.due < 0 or due < self.due:
            self._io_timers.arm(self, due)
