"""Very many queues that go with their connection, and very many connections that are heard again: some a turn.

Duty: how many a turn takes. Who waits for the end is the caller's affair; ``settling.py`` runs the jobs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64

from warrenmq.broker.settling import Job

if TYPE_CHECKING:
    from warrenmq.broker.broker import Broker
    from warrenmq.broker.connection import Connection
    from warrenmq.broker.queue.queue import Queue

QUEUES: Final = 256  # exclusive queues deleted in a turn
CONNECTIONS: Final = 8  # heard again in a turn: much of what each has sent may wait


@final
class RemoveQueues(Job):
    """The connection that owned them ends."""

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
    """The alarm is over; should another come meanwhile, the rest stay blocked."""

    def __init__(self, broker: Broker, connections: list[Connection]) -> None:
        super().__init__(None)
        self._broker: Final = broker
        self._connections: Final = connections

    def step(self) -> bool:
        left: i64 = CONNECTIONS
        while self._connections and left > 0 and not self._broker.blocking:
            self._connections.pop().unblock()
            left -= 1
        return not self._connections or self._broker.blocking != ""
