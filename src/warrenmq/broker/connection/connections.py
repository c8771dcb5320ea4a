"""Who is connected.

Duty: the open connections, and what is with them. How many each user has is in ``attendance.py``, the life of one
connection in ``connection.py``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, final

from warrenmq.broker.channel.session import Session
from warrenmq.broker.channel.settling import Unsettled
from warrenmq.broker.connection import reports
from warrenmq.broker.connection.attendance import Attendance
from warrenmq.broker.connection.connection import Connection
from warrenmq.broker.core import Core
from warrenmq.broker.queue.queue import Entry, Queue


@final
class Connections(Attendance):
    """The connections that are open, in the order they came."""

    def __init__(self, core: Core) -> None:
        super().__init__(core)
        self._jobs: Final = core.services.jobs
        self._all: Final[dict[Connection, bool]] = {}

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
            self.vhost_left(connection.username)
            reports.about("info", "connection_closed", connection, reason)

    def pieces_with(self, queue: Queue) -> list[list[Entry | None]]:
        """What is with consumers, or on its way back from them, among others' and gaps: copies, as they are at this
        moment, which takes next to no time."""
        found: list[list[Entry | None]] = []
        if queue.unacked > 0:
            for connection in self._all:
                for channel in connection.channels.values():
                    if channel.outstanding.unacked.count > 0:
                        found.append(channel.outstanding.unacked.copied())
                    if channel.tx is not None:
                        found.extend(channel.tx.pieces())
            for job in self._jobs.waiting:
                if isinstance(job, Unsettled):
                    found.append([*job.entries_left()])
        return found
