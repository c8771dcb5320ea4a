"""A whole broker without sockets, threads or time: bytes in, frames out, one turn at a time.

Duty: let a test decide when a commit finishes (``HeldRunner``), what the disk does (``files``) and what the clock says,
and see everything a client is told in the order in which it is told. Not here: what is promised (the tests).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from warrenmq.broker.broker import Broker
from warrenmq.broker.clock import VirtualClock
from warrenmq.broker.log_listener import LogListener
from warrenmq.broker.notes import Notes
from warrenmq.broker.queue.queue import Queue
from warrenmq.broker.randomness import Randomness
from warrenmq.broker.sink import Sink
from warrenmq.log.files import Files
from warrenmq.log.log import Log
from warrenmq.log.runner import Runner, Task
from warrenmq.log.settings import LogSettings
from warrenmq.log.transient import TransientStore
from warrenmq.wire.constants import FRAME_BODY, FRAME_HEADER, FRAME_METHOD, PROTOCOL_HEADER
from warrenmq.wire.content import Properties, content_frames, encode_header
from warrenmq.wire.fields import from_python
from warrenmq.wire.frames import FrameReader
from warrenmq.wire.methods import Method, decode_method, method_frame


class HeldRunner(Runner):
    """Tasks wait until the test lets them run."""

    def __init__(self) -> None:
        self.log: Log | None = None
        self.held: list[Task] = []

    def submit(self, task: Task) -> bool:
        self.held.append(task)
        return False

    def wait(self) -> None:
        for task in self.held:
            task.run()
        self.held = []


class Said(Notes):
    """The operator's log, as a list."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, str, dict[str, object]]] = []

    def event(self, level: str, name: str, fields: dict[str, object]) -> None:
        self.lines.append((level, name, fields))

    def crash(self, name: str, fields: dict[str, object], error: Exception) -> None:
        raise error

    def named(self, name: str) -> list[dict[str, object]]:
        return [fields for _, event, fields in self.lines if event == name]


class Wire(Sink):
    """Takes what the broker writes to one client."""

    def __init__(self) -> None:
        self.reader = FrameReader()
        self.reading = True

    def write(self, data: bytes) -> None:
        self.reader.feed(data)

    def close(self) -> None:
        pass

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True


class Told:
    """Something a client was told: a method, with its content if it has any."""

    def __init__(self, channel: int, method: Method) -> None:
        self.channel = channel
        self.method = method
        self.body = b""

    @property
    def name(self) -> str:
        return self.method.name

    def __repr__(self) -> str:
        return f"{self.name} {self.method.values} {self.body[:20]!r}"


class Rig:
    """One broker on one folder. ``stop`` (clean) or ``abandon`` (a crash), then another Rig on the same folder."""

    def __init__(
        self,
        folder: Path,
        files: Files | None = None,
        held: bool = False,
        settings: LogSettings | None = None,
        clock: VirtualClock | None = None,
    ) -> None:
        self.files = files or Files()
        self.clock = clock or VirtualClock()
        self.notes = Said()
        self.log, self.recovered = Log.open(str(folder), self.files, settings or LogSettings(), None)
        self.transient = TransientStore(str(folder), self.files)
        self.broker = Broker(self.log, self.transient, self.clock, self.clock, Randomness(1), self.notes)
        self.committer = HeldRunner() if held else Runner()
        self.log.attach(LogListener(self.broker), self.committer, Runner())
        self.broker.recover(self.recovered)
        self.broker.create_defaults("guest", "guest")
        self.broker.end_turn()
        self.log.flush()

    def queue(self, name: str) -> Queue:
        return self.broker.vhosts["/"].queues[name]

    def turn(self) -> None:
        """A turn that only ends."""
        self.broker.begin_turn()
        self.broker.end_turn()

    def commit(self) -> None:
        """Let every held commit finish, and whatever follows from it."""
        committer = self.committer
        while isinstance(committer, HeldRunner) and committer.held:
            task = committer.held.pop(0)
            task.run()
            self.broker.begin_turn()
            self.log.done(task.number)
            self.broker.end_turn()

    def retry(self) -> None:
        """The log tries a failed disk again."""
        self.broker.begin_turn()
        self.log.retry()
        self.broker.end_turn()
        self.commit()

    def advance(self, milliseconds: int) -> None:
        self.clock.set_ms(self.clock.now_ms() + milliseconds)
        self.broker.begin_turn()
        while self.broker.run_timers():
            self.broker.begin_turn()
        self.log.tick(self.clock.now_ms())
        self.broker.end_turn()
        self.commit()

    def settle(self) -> None:
        """What is settled a slice a turn (broker/settling.py) is seen to its end."""
        while self.broker.jobs.busy():
            self.advance(1)

    def client(self) -> Client:
        return Client(self)

    def abandon(self) -> None:
        """The process dies: nothing more is written, and the folder's lock goes with it."""
        self.files.close(self.log._lock)

    def stop(self) -> None:
        self.broker.begin_turn()
        self.broker.shut_down("over")
        self.commit()
        self.log.flush()
        indexes = self.broker.delay.log_indexes()
        for vhost in self.broker.vhosts.values():
            for queue in vhost.queues.values():
                if queue.durable:
                    indexes[int(queue.id)] = queue.index()
        self.log.close(indexes)


class Client:
    """A connection with as many channels as are used; every call is a turn of its own unless ``send`` is used."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self.wire = Wire()
        self.connection = rig.broker.connect(self.wire, "127.0.0.1", 1, "127.0.0.1", 5672)
        self._open: dict[int, Told] = {}
        self.feed(PROTOCOL_HEADER)
        capabilities = {"capabilities": {"connection.blocked": True, "consumer_cancel_notify": True}}
        self.feed(
            method_frame(
                0,
                "connection.start-ok",
                client_properties=from_python(capabilities),
                mechanism="PLAIN",
                response="\0guest\0guest",
                locale="en_US",
            )
            + method_frame(0, "connection.tune-ok", channel_max=100, frame_max=131072, heartbeat=0)
            + method_frame(0, "connection.open", virtual_host="/")
        )
        assert self.names()[-1] == "connection.open-ok"

    def feed(self, data: bytes) -> None:
        self.rig.broker.begin_turn()
        self.connection.feed(data)
        self.rig.broker.end_turn()

    def told(self) -> list[Told]:
        """What the client was told since the last time, in order."""
        said: list[Told] = []
        while (frame := self.wire.reader.next()) is not None:
            if frame.type == FRAME_METHOD:
                told = Told(int(frame.channel), decode_method(frame.payload))
                self._open[told.channel] = told
                said.append(told)
            elif frame.type == FRAME_BODY:
                self._open[int(frame.channel)].body += frame.payload
            else:
                assert frame.type == FRAME_HEADER
        return said

    def names(self) -> list[str]:
        return [told.name for told in self.told()]

    def call(self, name: str, channel: int = 1, **values: object) -> None:
        self.feed(method_frame(channel, name, **values))

    def open(self, channel: int = 1, mode: str = "") -> None:
        self.call("channel.open", channel)
        if mode:
            self.call(mode, channel)
        self.told()

    def declare(self, queue: str, durable: bool = True, arguments: Mapping[str, object] | None = None) -> None:
        self.call("queue.declare", queue=queue, durable=durable, arguments=from_python(dict(arguments or {})))
        self.rig.commit()
        assert self.names()[-1] == "queue.declare-ok"

    def published(
        self, exchange: str, key: str, body: bytes, channel: int = 1, mandatory: bool = False, **properties: Any
    ) -> bytes:
        """The frames of a publish, persistent unless said otherwise."""
        properties.setdefault("delivery_mode", 2)
        header = encode_header(Properties(**properties), len(body))
        return method_frame(
            channel, "basic.publish", exchange=exchange, routing_key=key, mandatory=mandatory
        ) + content_frames(channel, header, body, 131072)

    def publish(
        self, exchange: str, key: str, body: bytes, channel: int = 1, mandatory: bool = False, **properties: object
    ) -> None:
        self.feed(self.published(exchange, key, body, channel, mandatory, **properties))

    def bodies(self) -> list[bytes]:
        """Of the deliveries told since the last time."""
        return [told.body for told in self.told() if told.name in ("basic.deliver", "basic.get-ok")]

    def ready(self, queue: str) -> int:
        return int(self.rig.queue(queue).ready)
