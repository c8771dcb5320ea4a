"""`CoreClient`: a client that is a byte buffer: what it sends is handled at once, what it got is in ``received``.

Duty: frames out of methods and contents, methods and contents out of frames. Not here: the broker (`core`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from warrenmq.broker.broker import Broker
from warrenmq.broker.channel.sink import Sink
from warrenmq.broker.connection.connection import Connection
from warrenmq.wire.constants import FRAME_BODY, FRAME_HEADER, FRAME_METHOD, PROTOCOL_HEADER
from warrenmq.wire.content import Properties, content_frames, decode_properties, encode_header
from warrenmq.wire.fields import Field, Table, from_python, to_python
from warrenmq.wire.frames import FrameReader
from warrenmq.wire.methods import Method, decode_method, method_frame

FRAME_MAX = 131072


@dataclass
class Got:
    """A method that a client got, with its content if it has any; its arguments by name: ``got["delivery_tag"]``."""

    channel: int
    method: Method
    properties: Properties | None = None
    body: bytes = b""

    @property
    def name(self) -> str:
        """Such as ``basic.deliver``."""
        return self.method.name

    @property
    def headers(self) -> dict[str, object]:
        """The content's headers as Python values."""
        assert self.properties is not None, f"{self.name} has no content"
        return to_python(self.properties.headers or {})

    def __getitem__(self, name: str) -> object:
        return self.method.values[name]


class Buffer(Sink):
    """The octets that the broker writes to one client."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.closed = False
        self.paused = False
        self.broken = False  # a defect on demand

    def write(self, data: bytes) -> None:
        """Called by the broker."""
        if self.broken:
            raise ValueError("a broken transport")
        self.data += data

    def close(self) -> None:
        """The broker hangs up."""
        self.closed = True

    def pause_reading(self) -> None:
        """The broker wants to hear nothing for a while."""
        self.paused = True

    def resume_reading(self) -> None:
        """The broker listens again."""
        self.paused = False


class Home(Protocol):
    """The `Core` as its clients know it."""

    broker: Broker

    def commit(self) -> None:
        """Let every held commit finish."""

    def end_turn(self) -> None:
        """End the turn that is under way."""


class CoreClient:
    """A connection to a `Core`, with as many channels as are opened."""

    def __init__(self, core: Home, persistent: bool = False) -> None:
        self.core = core
        self.persistent = persistent
        self.sink = Buffer()
        core.broker.begin_turn()
        self.connection: Connection = core.broker.connect(self.sink, "127.0.0.1", 50000, "127.0.0.1", 5672)
        self.reader = FrameReader()
        self.received: list[Got] = []
        self._partial: dict[int, tuple[Got, int]] = {}

    def handshake(self, user: str, password: str, vhost: str, capabilities: dict[str, bool]) -> None:
        """Log in and open channel 1."""
        wanted = {"consumer_cancel_notify": True, "connection.blocked": True, "authentication_failure_close": True}
        table: Table = {name: Field("t", value) for name, value in (wanted | capabilities).items()}
        self.feed(PROTOCOL_HEADER)
        self.send(
            "connection.start-ok",
            0,
            client_properties={"capabilities": Field("F", table)},
            mechanism="PLAIN",
            response=b"\0" + user.encode() + b"\0" + password.encode(),
            locale="en_US",
        )
        self.send("connection.tune-ok", 0, channel_max=2047, frame_max=FRAME_MAX, heartbeat=0)
        self.send("connection.open", 0, virtual_host=vhost)
        self.open(1)
        self.take()

    @property
    def reading(self) -> bool:
        """Whether the broker listens to this client."""
        return not self.sink.paused

    # --- sending

    def feed(self, data: bytes) -> None:
        """Send octets, as one turn; as several when they are more than one takes."""
        self.core.broker.begin_turn()
        self.connection.feed(data)
        self.core.end_turn()
        while self.core.broker.services.pacing.waiting():  # more than one turn takes
            self.core.broker.begin_turn()
            self.core.broker.services.pacing.fire()
            self.core.end_turn()
        self._collect()

    def send(self, name: str, channel: int = 1, **values: object) -> None:
        """Send a method; a table of arguments may hold Python values."""
        arguments = values.get("arguments")
        if isinstance(arguments, dict):
            values["arguments"] = from_python(arguments)
        self.feed(method_frame(channel, name, **values))

    def call(self, name: str, channel: int = 1, **values: object) -> Got:
        """Send a method; its answer, or the close it provoked."""
        self.take()
        self.send(name, channel, **values)
        wanted = {f"{name}-ok", "channel.close", "connection.close", "basic.get-empty"}
        answers = [got for got in self.received if got.name in wanted]
        assert answers, f"{name} was not answered: {self.received}"
        return answers[0]

    def open(self, channel: int = 1, mode: str = "") -> None:
        """Have a channel, with ``confirm.select`` or ``tx.select`` if that is the mode; the answers are not kept."""
        if channel not in self.connection.channels:
            self.send("channel.open", channel)
        if mode:
            self.send(mode, channel)
        own = ("channel.open-ok", f"{mode}-ok")
        self.received = [got for got in self.received if got.channel != channel or got.name not in own]

    def declare(self, queue: str, durable: bool = True, arguments: Mapping[str, object] | None = None) -> None:
        """Declare a queue and wait until it is there."""
        self.send("queue.declare", queue=queue, durable=durable, arguments=dict(arguments or {}))
        self.core.commit()
        assert self.names()[-1] == "queue.declare-ok"

    def published(
        self,
        exchange: str,
        routing_key: str,
        body: bytes = b"",
        properties: Properties | None = None,
        mandatory: bool = False,
        channel: int = 1,
        immediate: bool = False,
        **more: Any,
    ) -> bytes:
        """The frames of a publish; ``more`` are properties by name."""
        if properties is None:
            if self.persistent:
                more.setdefault("delivery_mode", 2)
            properties = Properties(**more)
        method = method_frame(
            channel,
            "basic.publish",
            exchange=exchange,
            routing_key=routing_key,
            mandatory=mandatory,
            immediate=immediate,
        )
        return method + content_frames(channel, encode_header(properties, len(body)), body, FRAME_MAX)

    def publish(
        self,
        exchange: str,
        routing_key: str,
        body: bytes = b"",
        properties: Properties | None = None,
        mandatory: bool = False,
        channel: int = 1,
        immediate: bool = False,
        **more: Any,
    ) -> None:
        """Publish a message; ``more`` are properties by name."""
        self.feed(self.published(exchange, routing_key, body, properties, mandatory, channel, immediate, **more))

    def fill(self, queue: str, *bodies: str, **properties: Any) -> None:
        """Publish a few messages to a queue."""
        for body in bodies:
            self.publish("", queue, body.encode(), **properties)

    def consume(self, queue: str, tag: str = "c", prefetch: int = 0, channel: int = 1, **more: object) -> None:
        """Consume from a queue; what was delivered already stays in ``received``, answers do not."""
        before = self.take()
        if prefetch:
            self.call("basic.qos", channel, prefetch_count=prefetch)
        answer = self.call("basic.consume", channel, queue=queue, consumer_tag=tag, **more)
        assert answer.name == "basic.consume-ok", answer
        self.received = [got for got in before + self.received if got.name == "basic.deliver"]

    # --- receiving

    def take(self) -> list[Got]:
        """What came since the last look, also from turns of others."""
        self._collect()
        received, self.received = self.received, []
        return received

    def names(self) -> list[str]:
        """The names of the methods that came."""
        return [got.name for got in self.take()]

    def deliveries(self) -> list[Got]:
        """What was delivered."""
        return [got for got in self.take() if got.name == "basic.deliver"]

    def delivered(self) -> list[str]:
        """The bodies of what was delivered; redelivered ones with a star."""
        return [got.body.decode() + ("*" if got["redelivered"] else "") for got in self.deliveries()]

    def bodies(self) -> list[bytes]:
        """The bodies of what was delivered or got."""
        return [got.body for got in self.take() if got.name in ("basic.deliver", "basic.get-ok")]

    def get(self, queue: str, no_ack: bool = False) -> str:
        """The body of the next message in a queue, "" when there is none."""
        return self.call("basic.get", queue=queue, no_ack=no_ack).body.decode()

    def drain(self, queue: str) -> list[str]:
        """All that is in a queue, taken out."""
        bodies = []
        while body := self.get(queue, no_ack=True):
            bodies.append(body)
        self.take()
        return bodies

    def closing(self) -> str:
        """Code and text of the close that came."""
        closes = [got for got in self.take() if got.name.endswith(".close")]
        assert len(closes) == 1, closes
        return f"{closes[0]['reply_code']} {closes[0]['reply_text']}"

    def story(self) -> list[str]:
        """What came, in short: ``ack 3+`` is a multiple one."""
        words = []
        for got in self.take():
            if got.name in ("basic.ack", "basic.nack"):
                words.append(f"{got.name[6:]} {got['delivery_tag']}{'+' if got['multiple'] else ''}")
            elif got.name == "basic.return":
                words.append(f"return {got['reply_code']} {got.body.decode()}")
            elif got.name.endswith(".close"):
                words.append(f"{got.name} {got['reply_code']}")
            else:
                words.append(got.name)
        return words

    def _collect(self) -> None:
        data = bytes(self.sink.data)
        self.sink.data.clear()
        self.reader.feed(data)
        while (frame := self.reader.next()) is not None:
            if frame.type == FRAME_METHOD:
                got = Got(int(frame.channel), decode_method(frame.payload))
                if got.method.spec.content:
                    self._partial[got.channel] = (got, -1)
                else:
                    self.received.append(got)
            elif frame.type in (FRAME_HEADER, FRAME_BODY):
                self._content(int(frame.channel), frame.type == FRAME_HEADER, frame.payload)

    def _content(self, channel: int, header: bool, payload: bytes) -> None:
        got, left = self._partial[channel]
        if header:
            got.properties = decode_properties(payload)
            left = int.from_bytes(payload[4:12], "big")
        else:
            got.body += payload
            left -= len(payload)
        self._partial[channel] = (got, left)
        if left == 0:
            del self._partial[channel]
            self.received.append(got)
