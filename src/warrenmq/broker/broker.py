"""The broker: the core, and who is connected to it.

Duty: how clients come, what all of them are told, and the end. The server feeds connections and calls ``end_turn``;
what happens then is in ``turn.py``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, final

from mypy_extensions import i64

from warrenmq.broker.channel.session import Session
from warrenmq.broker.channel.sink import Sink
from warrenmq.broker.channel.states import GONE, RUNNING
from warrenmq.broker.connection.ack_deadline import AckDeadlines
from warrenmq.broker.connection.ack_timeout import AckTimeout
from warrenmq.broker.connection.connection import Connection
from warrenmq.broker.connection.connections import Connections
from warrenmq.broker.connection.jobs import Unblock
from warrenmq.broker.core import Core
from warrenmq.broker.queue.queue import Entry, Queue
from warrenmq.broker.queue.surroundings import Surroundings
from warrenmq.broker.services.clock import Clock
from warrenmq.broker.services.notes import Notes
from warrenmq.broker.services.randomness import Randomness
from warrenmq.broker.start.start import Start
from warrenmq.log.log import Log
from warrenmq.log.recovery import Recovered
from warrenmq.log.transient import TransientStore
from warrenmq.wire.replies import CONNECTION_FORCED


@final
class Broker(Core):
    """A whole broker: what exists, and who is connected to it."""

    def __init__(
        self,
        log: Log,
        transient: TransientStore,
        clock: Clock,
        io_clock: Clock,
        randomness: Randomness,
        notes: Notes,
        node_name: str = "warren@localhost",
    ) -> None:
        super().__init__(Surroundings(log, transient, clock, io_clock, randomness, notes), node_name)
        self.connections: Final = Connections(self)
        AckTimeout(self.services, self.connections).start()
        self.services.deadlines.sweeper = AckDeadlines(self.services, self.connections)

    # -- start -------------------------------------------------------------------------------------------------

    def recover(self, recovered: Recovered) -> None:
        """Take up what the log found, all of which it knows."""
        Start(self, recovered).finish()

    def create_defaults(self, username: str, password: str, vhost: str = "/") -> None:
        """The first start: a vhost, and a user who may do everything there."""
        self.create_default_vhost(vhost)
        self.registry.access.create_defaults(username, password, vhost)

    def create_default_vhost(self, name: str) -> None:
        """When there is none at all."""
        if not self.vhosts:
            made = self.add_vhost(name)
            made.description = "Default virtual host"
            made.save()

    # -- clients -----------------------------------------------------------------------------------------------

    def connect(self, sink: Sink, peer: str, peer_port: i64, host: str, port: i64) -> Connection:
        connection = Connection(self, self.connections, sink, peer, peer_port, host, port)
        self.connections.add(connection)
        connection.drop_after(self.services.limits.handshake_timeout)
        return connection

    def pieces_with(self, queue: Queue) -> list[list[Entry | None]]:
        return self.connections.pieces_with(queue)

    def update_alarms(self) -> None:
        if not self.services.pressure.look():
            return
        reason = self.services.pressure.reason
        self.services.notes.event("warning" if reason else "info", "alarm", {"reason": reason or "cleared"})
        if not reason:
            blocked: list[Session] = [connection for connection in self.connections if connection.reading.blocked]
            blocked.reverse()
            self.services.jobs.add(Unblock(self.services.pressure, blocked))

    # -- turns -------------------------------------------------------------------------------------------------

    def begin_turn(self) -> None:
        self.services.begin_turn()

    def end_turn(self) -> None:
        self.services.end_turn()

    def run_timers(self) -> bool:
        """Fire one due timer of either clock; says whether one fired."""
        return self.services.run_timers()

    # -- end ---------------------------------------------------------------------------------------------------

    def shut_down(self, reason: str) -> None:
        """Tell every client, when what they have settled is; all of it now, in one turn."""
        jobs = self.services.jobs
        jobs.finish()
        for _ in self.shut_down_in_steps(reason):
            jobs.finish()
        self.services.end_turn()

    def shut_down_in_steps(self, reason: str) -> Iterator[None]:
        """Tell every client so while the loop goes on: a step is a slice of a job, many of them may follow the telling.

        All clients are told in one of them: what the first ones held would else be delivered to the others.
        """
        jobs = self.services.jobs
        left = jobs.waiting.copy()  # what clients begin now is not waited for: they might go on for ever
        while left:
            for _ in range(len(jobs.waiting)):
                jobs.fire()
                yield
            waiting = set(jobs.waiting)
            left = [job for job in left if job in waiting]
        for connection in self.connections:
            if connection.state >= RUNNING and connection.state < GONE:
                connection.shut(CONNECTION_FORCED, reason)
        yield
        while jobs.waiting:  # what they held goes back
            jobs.fire()
            yield

    def let_go(self) -> None:
        """After the end, or in its place: hold no entries any more, so that all of this can be freed in a process that
        goes on (``queue.py`` says why it could not)."""
        self.services.jobs.waiting.clear()
        for connection in self.connections:
            for channel in connection.channels.values():
                channel.let_go()
        for vhost in self.vhosts.values():
            for queue in vhost.queues.values():
                queue.let_go()
        self.services.freeing.let_go()
        self.services.taking_apart.let_go()
