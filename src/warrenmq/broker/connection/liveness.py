"""Is the client still there: heartbeats both ways, and deadlines after which a connection is dropped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64

from warrenmq.broker.channel.states import GONE, RUNNING
from warrenmq.broker.connection import reports
from warrenmq.broker.services.timers import Timer

if TYPE_CHECKING:
    from warrenmq.broker.connection.dialogue import Dialogue

HEARTBEAT_FRAME: Final = b"\x08\x00\x00\x00\x00\x00\x00\xce"


@final
class Heartbeat(Timer):
    """The timer that sends when nothing was sent for half the interval, and gives up after two
    idle checks of a whole one."""

    def __init__(self, connection: Dialogue) -> None:
        super().__init__()
        self._connection: Dialogue | None = connection
        self._sent: i64 = -1
        self._received: i64 = -1
        self._idle: i64 = 0
        self._half: bool = False

    def fire(self) -> None:
        connection = self._connection
        if connection is None or connection.state >= GONE:
            return
        if connection.output.sent == self._sent:
            connection.write(HEARTBEAT_FRAME)
            connection.flush()
        self._sent = connection.output.sent
        self._half = not self._half
        if not self._half:
            if connection.input.received == self._received and not connection.reading.paused:
                self._idle += 1
                if self._idle >= 2:
                    reports.about("warning", "missed_heartbeats", connection)
                    connection.lost("missed heartbeats from client, timeout: " + str(connection.heartbeat) + "s")
                    return
            else:
                self._idle = 0
            self._received = connection.input.received
        connection.arm_heartbeat()

    def subject(self) -> str:
        return "" if self._connection is None else self._connection.name

    def release(self) -> None:
        """The connection is gone: let go of it, so that it is freed without the garbage collector."""
        self._connection = None


@final
class Deadline(Timer):
    """The timer that drops the connection: handshake timeout, grace after a close, the wait after a failed login."""

    def __init__(self, connection: Dialogue) -> None:
        super().__init__()
        self._connection: Dialogue | None = connection

    def fire(self) -> None:
        connection = self._connection
        if connection is None:
            return
        if connection.state < RUNNING:
            reports.about("warning", "handshake_timeout", connection)
        connection.lost("timeout")

    def subject(self) -> str:
        return "" if self._connection is None else self._connection.name

    def release(self) -> None:
        """The connection is gone: let go of it too."""
        self._connection = None
