"""A connection as its channels know it: whose it is, which vhost it has opened, and the ways to and from the client.

Duty: what channels share. Not here: input, the handshake, and how a connection ends (``connection.py``).
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from warrenmq.broker.channel.input_gate import InputGate
from warrenmq.broker.channel.output import Client, Output
from warrenmq.broker.channel.peer import Peer
from warrenmq.broker.channel.sink import Sink
from warrenmq.broker.channel.states import CONNECTION, HEADER
from warrenmq.broker.core import Core
from warrenmq.broker.publish.publishing import Publishing
from warrenmq.broker.publish.routes import Memo
from warrenmq.broker.queue.queue import Owner, Queue
from warrenmq.broker.records import Resource
from warrenmq.broker.services.jobs import Waiting
from warrenmq.broker.services.pacing import Paced
from warrenmq.broker.vhost.vhost import VHost
from warrenmq.wire.replies import AmqpError


class Session(Client, Waiting, Owner, Paced):
    """The parts that the channels of one connection have in common."""

    def __init__(self, broker: Core, sink: Sink, peer: str, peer_port: i64, host: str, port: i64) -> None:
        self.broker: Final = broker
        self.services: Final = broker.services
        self.peer: Final = Peer(peer, peer_port)
        self.name: Final = f"{peer}:{peer_port} -> {host}:{port}"
        self.state: i64 = HEADER
        self.username: str = ""
        self.vhost: VHost | None = None
        self.exclusive_queues: dict[Queue, bool] = {}
        self.memo: Final = Memo()
        self.output: Final = Output(sink, broker.services.turn, self, broker.services.limits.frame_max)
        self.reading: Final = InputGate(sink, broker.services.turn, broker.durability)

    def enter(self, state: i64) -> None:
        self.state = CONNECTION.entered(self.state, state)

    def write(self, data: bytes) -> None:
        self.output.write(data)

    def open_vhost(self) -> VHost:
        vhost = self.vhost
        assert vhost is not None
        return vhost

    def resource(self, kind: str, name: str) -> Resource:
        return Resource(self.open_vhost().name, kind, name)

    def owns(self, queue: Queue) -> None:
        self.exclusive_queues[queue] = True

    def owns_no_more(self, queue: Queue) -> None:
        self.exclusive_queues.pop(queue, None)

    def subject(self) -> str:
        return self.name

    def hold(self) -> None:
        """Take nothing more from the client for now; what has come is kept."""
        raise NotImplementedError

    def release_hold(self) -> None:
        """Go on with what has come."""
        raise NotImplementedError

    def unblock(self) -> None:
        """The alarm is over."""
        raise NotImplementedError

    def block(self) -> None:
        """An alarm is on: nothing more is taken from the client."""
        raise NotImplementedError

    def failed(self, number: i64, channel: object, error: AmqpError) -> None:
        """A method that took several turns raised this in one of them."""
        raise NotImplementedError

    def publish_failed(self, number: i64, publishing: Publishing, error: AmqpError) -> None:
        """A publish that took several turns raised this in the last of them."""
        raise NotImplementedError

    def channel_closed(self, number: i64) -> None:
        """The client closed a channel."""
        raise NotImplementedError
