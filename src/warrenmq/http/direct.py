"""A channel of the broker without a socket: the HTTP API does what a client could do, by the same rules.

RabbitMQ's management plug-in opens a connection as the user who asks, and so does this: frames go into a broker
connection and come out of it in memory. Permissions, texts, limits, confirms and "only when the log has it" are
therefore those of AMQP, and nothing is checked twice. Such connections are not listed and last for one request.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from warrenmq.broker.channel.body_frames import BodyFrames
from warrenmq.broker.channel.channel import Channel
from warrenmq.broker.channel.sink import Sink
from warrenmq.broker.channel.states import GONE, RUNNING
from warrenmq.broker.connection.connection import Connection
from warrenmq.http.patience import written
from warrenmq.wire.constants import FRAME_BODY, FRAME_HEADER, FRAME_METHOD
from warrenmq.wire.content import Properties, body_size, content_frames, decode_properties, encode_header
from warrenmq.wire.frames import Frame, FrameReader
from warrenmq.wire.methods import Method, decode_method, method_frame
from warrenmq.wire.replies import INTERNAL_ERROR, AmqpError

if TYPE_CHECKING:
    from warrenmq.broker.vhost.vhost import VHost
    from warrenmq.server.app import Server

NUMBER = 1  # the only channel
FRAME_MAX = 1 << 20  # of what comes from the broker


def refusal(close: Method) -> AmqpError:
    """The error that a channel.close or connection.close from the broker stands for."""
    _, _, explanation = close.str("reply_text").partition(" - ")
    return AmqpError(close.int("reply_code"), explanation)


@dataclass
class Got:
    """A message taken with basic.get: its body as far as it was wanted, and how long all of it is."""

    method: Method
    properties: Properties
    body: bytes
    size: int


@dataclass
class Event:
    """A method from the broker, with content if it has any."""

    method: Method
    properties: Properties | None = None
    body: bytes = b""
    size: int = 0


class Direct(Sink):
    """One channel for one user in one vhost, for the length of an ``async with``."""

    def __init__(self, server: Server, username: str, vhost: VHost) -> None:
        self._server = server
        self._reader = FrameReader()
        self._events: deque[Event] = deque()
        self._partial: Event | None = None
        self._left = 0  # octets of a body that are still to come
        self._wanted = 0  # those of them that somebody wants
        self._most = 0  # the most of a body that anybody wants
        self._chunks: list[bytes] = []
        self._coming: deque[BodyFrames | bytes] = deque()  # a long body, and what comes behind it
        self._arrived = asyncio.Event()
        self._confirming = False
        connection = Connection(server.broker, server.broker.connections, self, "127.0.0.1", 0, "http", 0)
        connection.enter(RUNNING)
        connection.heeds_alarms = False
        connection.username = username
        connection.peer.mechanism = "PLAIN"
        connection.vhost = vhost
        connection.output.frame_max = FRAME_MAX
        connection.input.frame_limit = 1 << 30
        connection.channels[NUMBER] = Channel(NUMBER, connection)
        self._connection = connection

    async def __aenter__(self) -> Direct:
        self._server.broker.connections.direct_opened(self._connection.username)
        return self

    async def __aexit__(self, *error: object) -> None:
        connection = self._connection
        if connection.state < GONE:
            self._server.begin()
            connection.terminate()
            connection.enter(GONE)
        self._server.broker.connections.direct_closed()

    # -- what the broker calls

    def write(self, data: bytes) -> None:
        if self._coming:
            self._coming.append(data)
        else:
            self._read(data)
        self._arrived.set()

    def write_body(self, frames: BodyFrames) -> None:
        """A long body is taken later, some at a time (``_next``), and so is what comes behind it."""
        self._coming.append(frames)
        self._arrived.set()

    def close(self) -> None:
        self._arrived.set()

    def _read(self, data: bytes) -> None:
        self._reader.feed(data)
        while True:
            frame = self._reader.next()
            if frame is None:
                break
            self._frame(frame)

    def _read_some(self) -> None:
        """Of what is coming."""
        first = self._coming[0]
        if isinstance(first, BodyFrames):
            self._read(b"".join(first.next(FRAME_MAX)))
            if first.left > 0:
                return
        else:
            self._read(first)
        self._coming.popleft()

    def _frame(self, frame: Frame) -> None:
        if frame.type == FRAME_METHOD:
            event = Event(decode_method(frame.payload))
            if event.method.spec.content:
                self._partial, self._chunks, self._left = event, [], -1
            else:
                self._events.append(event)
        elif self._partial is not None:
            if frame.type == FRAME_HEADER:
                self._partial.properties = decode_properties(frame.payload)
                self._left = self._partial.size = body_size(frame.payload)
                self._wanted = min(self._left, self._most)
            elif frame.type == FRAME_BODY:
                if self._wanted > 0:
                    self._chunks.append(frame.payload[: self._wanted])
                    self._wanted -= len(self._chunks[-1])
                self._left -= len(frame.payload)
            if self._left == 0:
                self._partial.body = b"".join(self._chunks)
                self._events.append(self._partial)
                self._partial = None

    # -- what handlers call

    async def call(self, name: str, **values: object) -> Method:
        """Send a method and wait for its answer; raises AmqpError when the broker closes the channel instead."""
        self._feed(method_frame(NUMBER, name, **values))
        return (await self._next()).method

    def send(self, name: str, **values: object) -> None:
        """Send a method that has no answer."""
        self._feed(method_frame(NUMBER, name, **values))

    async def publish(self, exchange: str, routing_key: str, properties: Properties, body: bytes) -> tuple[bool, bool]:
        """Publish mandatory with a confirm. Says whether it was routed, and whether it was acked."""
        if not self._confirming:
            await self.call("confirm.select")
            self._confirming = True
        self._feed(
            method_frame(NUMBER, "basic.publish", exchange=exchange, routing_key=routing_key, mandatory=True)
            + content_frames(NUMBER, encode_header(properties, len(body)), body, 1 << 30)
        )
        routed = True
        while True:
            event = await self._next()
            if event.method.name == "basic.return":
                routed = False
            elif event.method.name in ("basic.ack", "basic.nack"):
                return routed, event.method.name == "basic.ack"

    async def get(self, queue: str, no_ack: bool, most: int) -> Got | None:
        """basic.get, and so much of the body."""
        self._most = most
        self._feed(method_frame(NUMBER, "basic.get", queue=queue, no_ack=no_ack))
        event = await self._next()
        if event.method.name != "basic.get-ok" or event.properties is None:
            return None
        return Got(event.method, event.properties, event.body, event.size)

    def _feed(self, frames: bytes) -> None:
        self._server.begin()
        self._connection.feed(frames)

    async def _next(self) -> Event:
        while not self._events:
            if self._coming:
                self._read_some()
                await asyncio.sleep(0)
                continue
            if self._connection.state >= GONE:
                raise AmqpError(INTERNAL_ERROR, "")
            self._arrived.clear()
            await written(self._server.broker, self._arrived.wait())
        event = self._events.popleft()
        if event.method.name in ("channel.close", "connection.close"):
            raise refusal(event.method)
        return event
