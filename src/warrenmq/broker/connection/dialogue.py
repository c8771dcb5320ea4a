"""A connection's conversation with its client, as far as the wire goes: what was agreed, and where in it we are.

Duty: state, for those who carry it on: the frame loop, the handshake, the login, the heartbeat. What a connection does
with it, and how it ends, is in ``connection.py``.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from warrenmq.broker.channel.channel import Channel
from warrenmq.broker.channel.session import Session
from warrenmq.broker.channel.sink import Sink
from warrenmq.broker.connection.attendance import Attendance
from warrenmq.broker.core import Core
from warrenmq.broker.services.timers import Timer
from warrenmq.wire.fields import Table

INITIAL_FRAME_MAX: Final = 4096  # until tune-ok


class Dialogue(Session):
    """What frames, handshake and heartbeats know of a connection."""

    deadline: Timer  # drops the connection when it is due

    def __init__(
        self, broker: Core, connections: Attendance, sink: Sink, peer: str, peer_port: i64, host: str, port: i64
    ) -> None:
        super().__init__(broker, sink, peer, peer_port, host, port)
        self.connections: Final = connections
        self.limits: Final = broker.limits
        self.peer_is_loopback: bool = True
        self.tls: bool = False
        self.tls_name: str = ""  # user name from the client certificate, for EXTERNAL
        self.mechanism: str = ""
        self.client_properties: Table = {}
        self.channels: dict[int, Channel] = {}
        self.channel_max: i64 = broker.limits.channel_max
        self.frame_limit: i64 = INITIAL_FRAME_MAX
        self.heartbeat: i64 = 0
        # capabilities of the client
        self.connection_blocked: bool = False
        self.authentication_failure_close: bool = False
        # input
        self.last_number: i64 = 0
        self.last_channel: Channel | None = None
        self.need: i64 = 0  # how much there must be before looking again makes sense
        self.at: i64 = 0
        self.number: i64 = 0
        self.received: i64 = 0
        self.reading_paused: bool = False
        self.input_over: bool = False  # nothing more is read: where frames begin is lost, or a login failed
        self.stopped: bool = False  # what has come is kept and not looked at: it is blocked, or held
        self.blocked: bool = False  # an alarm holds it

    def flush(self) -> None:
        self.output.flush()

    def drop_channel(self, channel: Channel) -> None:
        """It is over on both sides."""
        raise NotImplementedError

    def terminate(self) -> None:
        """Channels end, exclusive queues go."""
        raise NotImplementedError

    def lost(self, reason: str) -> None:
        """The transport is gone, or is to be dropped now."""
        raise NotImplementedError

    def arm_heartbeat(self) -> None:
        raise NotImplementedError
