"""Very many queues that go with their connection, bindings that go with their queue, and connections that are heard
again: some a turn.

Duty: how many a turn takes. Who waits for the end is the caller's affair; ``jobs.py`` runs them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64

from warrenmq.broker.jobs import Job

if TYPE_CHECKING:
    from warrenmq.broker.broker import Broker
    from warrenmq.broker.connection import Connection
    from warrenmq.broker.queue.queue import Queue
    from warrenmq.broker.records import Binding, Resource
    from warrenmq.broker.vhost import VHost

QUEUES: Final = 256  # exclusive queues deleted in a turn
BINDING: Final = 8  # how many settled messages it counts for to tell the log of a binding that is gone
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
class ForgetBindings(Job):
    """The log is told that these are gone, with the queue or exchange at one end of them. Nobody waits for it but who
    declares the same name anew."""

    def __init__(self, vhost: VHost, end: Resource, bindings: list[Binding]) -> None:
        super().__init__(None)
        self._vhost: Final = vhost
        self._end: Final = end
        self._bindings: Final = bindings
        vhost.broker.forgetting[end] = self

    def step(self) -> bool:
        broker = self._vhost.broker
        while self._bindings and broker.turn.settles_left > 0:
            broker.turn.settles_left -= BINDING
            broker.unstore_binding(self._vhost, self._bindings.pop())
        if self._bindings:
            return False
        if broker.forgetting.get(self._end) is self:
            del broker.forgetting[self._end]
        return True

    def finish(self) -> None:
        """All of it now."""
        while self._bindings:
            self._vhost.broker.unstore_binding(self._vhost, self._bindings.pop())
        self.step()

    def subject(self) -> str:
        return str(self._end)


@final
class Unblock(Job):
    """The alarm is over; should another come meanwhile, the rest stay blocked."""

    def __init__(self, broker: Broker, connections: list[Connection]) -> None:
        super().__init__(None)
        self._broker: Final = broker
        self._connections: Final = connections

    def step(self) -> bool:
        left: i64 = CONNECTIONS
        while self._connections and left > 0 and not self._broker.pressure.reason:
            self._connections.pop().unblock()
            left -= 1
        return not self._connections or self._broker.pressure.reason != ""
