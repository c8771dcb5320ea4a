"""Who is connected.

Duty: the open connections, and what is with them. How many each user has is in ``attendance.py``, the life of one
connection in ``connection.py``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, final

from warrenmq.broker.channel.channel import Channel
from warrenmq.broker.channel.session import Session
from warrenmq.broker.connection import reports
from warrenmq.broker.connection.attendance import Attendance
from warrenmq.broker.connection.connection import Connection
from warrenmq.broker.core import Core
from warrenmq.broker.queue.held import Deliveries, Holder
from warrenmq.broker.queue.office import Unsettled
from warrenmq.broker.queue.queue import Entry, Queue


@final
class Connections(Attendance):
    """The connections that are open, in the order they came."""

    def __init__(self, core: Core) -> None:
        super().__init__(core)
        self._jobs: Final = core.services.jobs
        self._all: Final[dict[Connection, bool]] = {}
        self._early: list[Connection] = []  # who waits for the end of the start

    def __iter__(self) -> Iterator[Connection]:
        """Those that are there now; the loop may close them."""
        return iter(list(self._all))

    def __len__(self) -> int:
        return len(self._all)

    def __contains__(self, connection: object) -> bool:
        return connection in self._all

    def add(self, connection: Connection) -> None:
        self._all[connection] = True
        self._totals.connections_opened += 1

    def gone(self, connection: Session, reason: str) -> None:
        assert isinstance(connection, Connection)
        del self._all[connection]
        self._totals.connections_closed += 1
        vhost = connection.vhost
        if vhost is not None:
            vhost.connections -= 1
            vhost.past.received += connection.input.received
            vhost.past.sent += connection.output.sent
            self.vhost_left(connection.username)
            reports.about("info", "connection_closed", connection, reason)

    def wait_for_start(self, connection: Session) -> None:
        assert isinstance(connection, Connection)
        connection.wait_for_job()
        self._early.append(connection)

    def started(self) -> None:
        """The broker knows all its messages."""
        self.starting = False
        early = self._early
        self._early = []
        for connection in early:
            connection.job_is_over()

    def pieces_with(self, queue: Queue) -> list[list[Entry | None]]:
        return [some.entries for some in self.deliveries_of(queue)]

    def deliveries_of(self, queue: Queue) -> list[Deliveries]:
        """What is with consumers, on its way back from them or on its way out, among others' and gaps: copies, as they
        are at this moment, which takes next to no time."""
        found: list[Deliveries] = []
        if queue.unacked > 0:
            for connection in self._all:
                for channel in connection.channels.values():
                    holder = ChannelHolder(channel)
                    if channel.outstanding.unacked.count > 0:
                        found.append(Deliveries(queue, channel.outstanding.unacked.copied(), holder))
                    if channel.tx is not None:
                        for piece in channel.tx.pieces():
                            found.append(Deliveries(queue, piece, holder))
        for job in self._jobs.waiting:
            if isinstance(job, Unsettled):
                found.append(Deliveries(queue, [*job.entries_left()], NOBODY))
        return found


@final
class ChannelHolder(Holder):
    """A channel, as the holder of what was delivered on it."""

    def __init__(self, channel: Channel) -> None:
        self._channel: Final = channel

    def describe(self) -> dict[str, object]:
        connection = self._channel.connection
        return {"connection": connection.name, "channel": int(self._channel.number), "user": connection.username}


@final
class OnItsWay(Holder):
    """The holder of what a job settles or gives back: nobody any more."""

    def describe(self) -> dict[str, object]:
        return {}


NOBODY: Final = OnItsWay()
