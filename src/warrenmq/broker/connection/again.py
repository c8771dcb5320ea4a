"""A method that cannot be answered in this turn is taken again in the next ones, until it can.

Duty: hold the client's input, with that method as its first frame, and look at it again soon. So an answer never shows
a queue in the middle of something that takes several turns, and what comes behind the method does not overtake it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from warrenmq.broker.services.clock import Clock
from warrenmq.broker.services.timers import Timer, Timers

if TYPE_CHECKING:
    from warrenmq.broker.channel.session import Session

PAUSE: Final = 1  # ms; turns of others come in between


@final
class Again(Timer):
    """The timer of clients whose next method is looked at again."""

    def __init__(self, io_timers: Timers, io_clock: Clock) -> None:
        super().__init__()
        self._io_timers: Final = io_timers
        self._io_clock: Final = io_clock
        self._held: list[Session] = []

    def add(self, connection: Session) -> None:
        connection.hold()
        self._held.append(connection)
        self._io_timers.arm(self, self._io_clock.now_ms() + PAUSE)

    def fire(self) -> None:
        held = self._held
        self._held = []
        for connection in held:
            if connection.output.writable:  # else it goes on when it reads again
                connection.release_hold()
