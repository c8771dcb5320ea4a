"""A method that cannot be answered in this turn is taken again in the next ones, until it can.

Duty: hold the client's input, with that method as its first frame, and look at it again soon. So an answer never shows
a queue in the middle of something that takes several turns, and what comes behind the method does not overtake it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from warrenmq.broker.timers import Timer

if TYPE_CHECKING:
    from warrenmq.broker.broker import Broker
    from warrenmq.broker.connection import Connection

PAUSE: Final = 1  # ms; turns of others come in between


class Postponed(Exception):
    """Raised by a method that may be taken again from its beginning."""


@final
class Again(Timer):
    """The timer that lets held connections try their method once more."""

    def __init__(self, broker: Broker) -> None:
        super().__init__()
        self._broker: Final = broker
        self._held: list[Connection] = []

    def add(self, connection: Connection) -> None:
        connection.hold()
        self._held.append(connection)
        self._broker.io_timers.arm(self, self._broker.io_now() + PAUSE)

    def fire(self) -> None:
        held = self._held
        self._held = []
        for connection in held:
            if connection.output.writable:  # else it goes on when it reads again
                connection.release_hold()
