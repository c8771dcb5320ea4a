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
from warrenmq.broker.connection.input import Input
from warrenmq.broker.core import Core


class Dialogue(Session):
    """A connection as frames, handshake and heartbeats know it."""

    def __init__(
        self, broker: Core, connections: Attendance, sink: Sink, peer: str, peer_port: i64, host: str, port: i64
    ) -> None:
        super().__init__(broker, sink, peer, peer_port, host, port)
        self.connections: Final = connections
        self.limits: Final = broker.services.limits
        self.channels: dict[int, Channel] = {}
        self.channel_max: i64 = broker.services.limits.channel_max
        self.heartbeat: i64 = 0
        self.input: Final = Input()

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

    def drop_after(self, milliseconds: i64) -> None:
        """The connection is dropped when this time is over."""
        raise NotImplementedError

    def drop_no_more(self) -> None:
        """It is in time."""
        raise NotImplementedError
