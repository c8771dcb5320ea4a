"""A start that takes long: clients log in while the messages are still being read.

Duty: to take the log and the broker from when all definitions are known to when all messages are, a slice at a time,
and to say how far that is. Short starts are over before anybody listens. Until it is over clients that have logged in
wait with what they ask, over HTTP everybody waits but probes (``http/app.py``), and nothing is logged. Not here: when
anybody listens (``app.py``), the order in which things are taken up (``broker/start/``).
"""

from __future__ import annotations

from collections.abc import Iterator
from time import monotonic

from warrenmq.broker.broker import Broker
from warrenmq.broker.start.start import Start
from warrenmq.log.log import Log
from warrenmq.log.opening import Opening
from warrenmq.server.logging import events

TELL = 5.0  # seconds between words of how far it is


class Starting:
    """One start of a single node's broker, from its definitions to its last message."""

    def __init__(self, broker: Broker, log: Log, opening: Opening) -> None:
        self._log = log
        self._opening = opening
        self._connections = broker.connections
        self._connections.starting = True
        self._start = Start(broker, opening.found.recovered)
        self._steps = self._all_steps()
        self._told = monotonic()
        self.over = False

    def _all_steps(self) -> Iterator[None]:
        while self._opening.step():
            yield
        self._log.opened(self._opening)
        yield from self._start.steps()

    def go_on(self, seconds: float) -> bool:
        """So much more of it, about; says whether it is over. Who waits is heard by ``hear``."""
        end = monotonic() + seconds
        for _ in self._steps:
            now = monotonic()
            if now - self._told >= TELL:
                self._told = now
                done, total = self.progress
                events("log").info("log.recovering", done=done, total=total)
            if now >= end:
                return False
        self.over = True
        return True

    @property
    def progress(self) -> tuple[int, int]:
        """Octets of the log that were read, of how many."""
        found = self._opening.found
        return int(found.read_bytes()), int(found.total_bytes)

    def hear(self) -> None:
        """It is over, and all that is configured is there: who waited is heard."""
        self._connections.started()

    def give_up(self) -> None:
        """The broker stops before it is over: the folder stays as it was found."""
        self._steps = iter(())
        self._log.give_up(self._opening)
