"""A turn does only so much of what clients ask; the rest of their input waits for the next one.

The event loop reads a socket many times before it looks at the others, and a read may bring thousands of methods. What
they cost is counted in about microseconds (``Turn.work_left``): by the octets of what was read, by the method where
there is one to decode, by the copy where a message goes to several queues, by the binding that was looked at to find
them; so a message on its ordinary way costs nothing more. When a turn's worth is used up, whoever has more than a
little to say is held, and heard again in the order in which they were stopped. A client that asks little is answered in
between, until such clients have used up another turn's worth.

Duty: who waits, and when they are heard. Not here: a method that must wait for something (``postponed.py``).
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64, trait

from warrenmq.broker.services.clock import Clock
from warrenmq.broker.services.timers import Timer, Timers
from warrenmq.broker.services.turn import Turn

METHOD: Final = 10  # about microseconds
OCTETS: Final = 6  # as a shift: 64 octets of input are one
COPIES: Final = 1  # as a shift: two copies of a message are one
LOOKS: Final = 3  # as a shift: eight looks at bindings are one
LOOKS_AS_LETTERS: Final = 8  # as a shift: so many looks are one of the letters that a turn takes
LITTLE: Final = 1024  # octets that are taken in any case


@trait
class Paced:
    """A client whose input may have to wait."""

    def hold(self) -> None:
        raise NotImplementedError

    def hear_again(self) -> None:
        raise NotImplementedError

    def subject(self) -> str:
        raise NotImplementedError


@final
class Pacing(Timer):
    """The clients that were stopped, and the timer that hears them again."""

    def __init__(self, turn: Turn, io_timers: Timers, io_clock: Clock) -> None:
        super().__init__()
        self._turn: Final = turn
        self._io_timers: Final = io_timers
        self._io_clock: Final = io_clock
        self._held: dict[Paced, bool] = {}
        self.hearing: Paced | None = None  # whose input is being taken

    def hold(self, client: Paced) -> None:
        """It is heard again in a turn to come."""
        client.hold()
        self._held[client] = True
        self._io_timers.arm(self, self._io_clock.now_ms())

    def copied(self, queues: i64) -> None:
        """A message goes to so many queues."""
        self.works(queues >> COPIES)

    def looked(self, bindings: i64) -> None:
        """To find where a message goes, so many bindings were looked at."""
        self._turn.expiries_left -= bindings >> LOOKS_AS_LETTERS
        self.works(bindings >> LOOKS)

    def works(self, work: i64) -> None:
        """So many microseconds, about, for whoever is heard."""
        self._turn.work_left -= work
        if self._turn.work_left <= 0 and self.hearing is not None:
            self.hold(self.hearing)

    def waiting(self) -> bool:
        return len(self._held) > 0

    def fire(self) -> None:
        held = list(self._held)
        heard: i64 = 0
        while heard < len(held) and self._turn.work_left > 0:
            client = held[heard]
            del self._held[client]  # should it be stopped again, it is the last
            client.hear_again()
            heard += 1
        if self._held:
            self._io_timers.arm(self, self._io_clock.now_ms())

    def subject(self) -> str:
        for client in self._held:
            return client.subject()
        return ""
