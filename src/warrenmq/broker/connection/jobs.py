"""Jobs of connections: very many queues that go with one of them, and very many of them heard again, some a turn.

Duty: how many a turn takes. Who waits for the end is the caller's affair; ``services/jobs.py`` runs them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64

from warrenmq.broker.services.jobs import Job
from warrenmq.broker.services.pressure import Pressure

if TYPE_CHECKING:
    from warrenmq.broker.channel.session import Session
    from warrenmq.broker.queue.queue import Queue

QUEUES: Final = 256  # exclusive queues deleted in a turn
CONNECTIONS: Final = 8  # heard again in a turn: much of what each has sent may wait


@final
class RemoveQueues(Job):
    """A job: the exclusive queues of a connection that ends."""

    def __init__(self, queues: dict[Queue, bool]) -> None:
        super().__init__(None)
        self._queues: Final = queues

    def step(self) -> bool:
        left: i64 = QUEUES
        while self._queues and left > 0:
            queue, _ = self._queues.popitem()
            queue.vhost.remove_queue(queue)
            left -= 1
        return not self._queues


@final
class Unblock(Job):
    """A job: connections heard again after an alarm; should another come meanwhile, the rest stay blocked."""

    def __init__(self, pressure: Pressure, connections: list[Session]) -> None:
        super().__init__(None)
        self._pressure: Final = pressure
        self._connections: Final = connections

    def step(self) -> bool:
        left: i64 = CONNECTIONS
        while self._connections and left > 0 and not self._pressure.reason:
            self._connections.pop().unblock()
            left -= 1
        return not self._connections or self._pressure.reason != ""
