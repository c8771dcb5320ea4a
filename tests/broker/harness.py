"""The broker's rules without a socket: a core on the virtual clock, clients that are byte buffers.

    core = Core(tmp_path)
    a = core.client()
    a.call("queue.declare", queue="q")
    a.publish("", "q", b"body")
    assert a.call("basic.get", queue="q").name == "basic.get-ok"

Everything a client sends is handled when it is sent; what it got is in ``received``. No thread, no sleeping.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path

from warrenmq.broker.broker import Broker
from warrenmq.broker.clock import VirtualClock
from warrenmq.broker.connection import Connection
from warrenmq.broker.log_listener import LogListener
from warrenmq.broker.notes import Notes
from warrenmq.broker.randomness import Randomness
from warrenmq.broker.sink import Sink
from warrenmq.log.files import Files
from warrenmq.log.log import Log
from warrenmq.log.runner import Runner
from warrenmq.log.settings import LogSettings
from warrenmq.log.transient import TransientStore
from warrenmq.wire.constants import FRAME_BODY, FRAME_HEADER, FRAME_METHOD, PROTOCOL_HEADER
from warrenmq.wire.content import Properties, content_frames, decode_properties, encode_header
from warrenmq.wire.fields import Field, Table, from_python
from warrenmq.wire.frames import FrameReader
from warrenmq.wire.methods import Method, decode_method, method_frame

KEPT_OPEN = 32  # cores whose files stay open: more than any one test uses
_OPEN: list[Core] = []


class QuickFiles(Files):
    """Real files whose sync costs nothing: these tests are about rules."""

    def sync(self, descriptor: int) -> None:
        pass


class Events(Notes):
    def __init__(self) -> None:
        self.seen: list[tuple[str, dict[str, object]]] = []
        self.crashes: list[str] | None = None  # a list: defects are expected and written here, else they are raised
        self.defect_at: set[str] = set()  # defects on demand: telling of these events fails

    def event(self, level: str, name: str, fields: dict[str, object]) -> None:
        if name in self.defect_at:
            raise RuntimeError(f"a defect at {name}")
        self.seen.append((name, fields))

    def crash(self, name: str, fields: dict[str, object], error: Exception) -> None:
        if self.crashes is None:
            raise error
        self.crashes.append(f"{name}: {error}")


@dataclass
class Got:
    """A method with its content, if it has any."""

    channel: int
    method: Method
    properties: Properties | None = None
    body: bytes = b""

    @property
    def name(self) -> str:
        return self.method.name

    def __getitem__(self, name: str) -> object:
        return self.method.values[name]


class Buffer(Sink):
    def __init__(self) -> None:
        self.data = bytearray()
        self.closed = False
        self.paused = False
        self.broken = False  # a defect on demand

    def write(self, data: bytes) -> None:
        if self.broken:
            raise ValueError("a broken transport")
        self.data += data

    def close(self) -> None:
        self.closed = True

    def pause_reading(self) -> None:
        self.paused = True

    def resume_reading(self) -> None:
        self.paused = False


class Core:
    """A broker on a folder; ``restart`` makes another one on the same folder."""

    def __init__(self, folder: Path, files: Files | None = None) -> None:
        self.folder = folder
        self.files = files or QuickFiles()
        self.clock = VirtualClock()
        self.start()
        _OPEN.append(self)
        if len(_OPEN) > KEPT_OPEN:
            _OPEN.pop(0).close()

    def close(self) -> None:
        """Let go of the files; a run of thousands of tests would hold thousands otherwise."""
        with contextlib.suppress(Exception):
            self.log.close(None)

    def start(self) -> None:
        log, recovered = Log.open(str(self.folder), self.files, LogSettings(), None)
        self.log = log
        self.notes = Events()
        transient = TransientStore(str(self.folder), self.files)
        self.broker = Broker(log, transient, self.clock, self.clock, Randomness(1), self.notes)
        log.attach(LogListener(self.broker), Runner(), Runner())
        self.broker.recover(recovered)
        self.broker.create_defaults("guest", "guest")
        self.turn()

    def restart(self, clean: bool = True) -> None:
        if clean:
            self.broker.shut_down("restart")
            indexes = {
                int(queue.id): queue.index()
                for vhost in self.broker.vhosts.values()
                for queue in vhost.queues.values()
                if queue.durable
            }
            self.log.flush()
            self.log.close(indexes)
        else:
            self.log.flush()
            self.log.close(None)
        self.start()

    def turn(self) -> None:
        self.broker.begin_turn()
        self.broker.end_turn()

    def advance(self, milliseconds: int) -> None:
        """Fire what becomes due, in due order."""
        end = self.clock.now_ms() + milliseconds
        while 0 <= (due := self.broker.timers.next_due()) <= end:
            self.clock.set_ms(max(due, self.clock.now_ms()))
            self.broker.begin_turn()
            self.broker.timers.run_next(self.broker.turn.now)
            self.broker.end_turn()
        self.clock.set_ms(end)
        self.turn()

    def client(self, user: str = "guest", password: str = "guest", vhost: str = "/", **capabilities: bool) -> Client:
        client = Client(self)
        client.handshake(user, password, vhost, capabilities)
        return client


class Client:
    def __init__(self, core: Core) -> None:
        self.core = core
        self.sink = Buffer()
        core.broker.begin_turn()
        self.connection: Connection = core.broker.connect(self.sink, "127.0.0.1", 50000, "127.0.0.1", 5672)
        self.reader = FrameReader()
        self.received: list[Got] = []
        self._partial: dict[int, tuple[Got, int]] = {}

    def handshake(self, user: str, password: str, vhost: str, capabilities: dict[str, bool]) -> None:
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
        self.send("connection.tune-ok", 0, channel_max=2047, frame_max=131072, heartbeat=0)
        self.send("connection.open", 0, virtual_host=vhost)
        self.open(1)
        self.take()

    def open(self, channel: int) -> None:
        self.send("channel.open", channel)

    # -- sending -----------------------------------------------------------------------------------------------

    def feed(self, data: bytes) -> None:
        self.core.broker.begin_turn()
        self.connection.feed(data)
        self.core.broker.end_turn()
        while self.core.broker.pacing.waiting():  # more than one turn takes
            self.core.broker.begin_turn()
            self.core.broker.pacing.fire()
            self.core.broker.end_turn()
        self._collect()

    def send(self, name: str, channel: int = 1, **values: object) -> None:
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

    def publish(
        self,
        exchange: str,
        routing_key: str,
        body: bytes = b"",
        properties: Properties | None = None,
        mandatory: bool = False,
        channel: int = 1,
        immediate: bool = False,
    ) -> None:
        header = encode_header(properties or Properties(), len(body))
        self.feed(
            method_frame(
                channel,
                "basic.publish",
                exchange=exchange,
                routing_key=routing_key,
                mandatory=mandatory,
                immediate=immediate,
            )
            + content_frames(channel, header, body, 131072)
        )

    # -- receiving ---------------------------------------------------------------------------------------------

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

    def take(self) -> list[Got]:
        """What came since the last look."""
        received, self.received = self.received, []
        return received

    def deliveries(self) -> list[Got]:
        return [got for got in self.take() if got.name == "basic.deliver"]

    def bodies(self) -> list[bytes]:
        return [got.body for got in self.deliveries()]

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
