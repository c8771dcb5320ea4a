"""The broker's core without sockets or threads: everything happens when told, on a clock that goes when told."""

from __future__ import annotations

from pathlib import Path

from warrenmq.broker.broker import Broker
from warrenmq.broker.channel import Channel
from warrenmq.broker.clock import VirtualClock
from warrenmq.broker.connection import Connection
from warrenmq.broker.delay.schedule import Schedule
from warrenmq.broker.log_listener import LogListener
from warrenmq.broker.notes import Notes
from warrenmq.broker.randomness import Randomness
from warrenmq.broker.sink import Sink
from warrenmq.broker.states import RUNNING
from warrenmq.log.files import Files
from warrenmq.log.log import Log
from warrenmq.log.runner import Runner
from warrenmq.log.settings import LogSettings
from warrenmq.log.transient import TransientStore
from warrenmq.wire.content import Properties, content_frames, encode_header
from warrenmq.wire.fields import from_python
from warrenmq.wire.methods import method_frame


class Silent(Sink):
    def write(self, data: bytes) -> None:
        pass

    def close(self) -> None:
        pass


class Core:
    """`turn` ends a turn with everything on disk; `crash` forgets what no turn has ended."""

    def __init__(self, folder: Path) -> None:
        self.folder = str(folder)
        self.clock = VirtualClock()
        self.open()

    def open(self) -> None:
        self.log, recovered = Log.open(self.folder, Files(), LogSettings())
        transient = TransientStore(self.folder, Files())
        self.broker = Broker(self.log, transient, self.clock, self.clock, Randomness(1), Notes())
        self.log.attach(LogListener(self.broker), Runner(), Runner())
        self.broker.recover(recovered)
        self.broker.create_defaults("guest", "guest")
        self.turn()
        connection = Connection(self.broker, self.broker.connections, Silent(), "127.0.0.1", 0, "core", 0)
        connection.state = RUNNING
        connection.username = "guest"
        connection.vhost = self.broker.vhosts["/"]
        connection.channels[1] = Channel(1, connection)
        connection.output.frame_max = connection.frame_limit = 1 << 20
        self.connection = connection

    def send(self, name: str, **values: object) -> None:
        self.connection.feed(method_frame(1, name, **values))

    def declare(self) -> None:
        """A delayed exchange `d` with a durable queue `q` behind it."""
        arguments = from_python({"x-delayed-type": "fanout"})
        self.send("exchange.declare", exchange="d", type="x-delayed-message", durable=True, arguments=arguments)
        self.send("queue.declare", queue="q", durable=True)
        self.send("queue.bind", queue="q", exchange="d")
        self.turn()

    def publish(self, body: str, persistent: bool = True, **headers: object) -> None:
        table = from_python({name.replace("_", "-"): value for name, value in headers.items()})
        header = encode_header(Properties(headers=table, delivery_mode=2 if persistent else 1), len(body))
        self.connection.feed(
            method_frame(1, "basic.publish", exchange="d") + content_frames(1, header, body.encode(), 1 << 20)
        )

    def turn(self) -> None:
        self.broker.turn.owed = True
        self.broker.end_turn()
        self.broker.begin_turn()

    def schedule(self) -> Schedule:
        return self.broker.delay.open_schedule(self.broker.vhosts["/"].exchanges["d"])

    def fire(self) -> None:
        """Everything due now, a turn at a time."""
        self.broker.begin_turn()
        while self.broker.run_timers():
            self.turn()

    def drain(self) -> list[str]:
        """Take everything out of the queue, for good."""
        found = []
        queue = self.broker.vhosts["/"].queues["q"]
        while (entry := queue.get()) is not None:
            found.append(entry.message.body().decode())
            queue.got(entry, True)
        self.turn()
        return found

    def queued(self) -> int:
        return int(self.broker.vhosts["/"].queues["q"].ready)

    def stop(self) -> None:
        """As the server does: the next start needs no scan."""
        queue = self.broker.vhosts["/"].queues["q"]
        self.log.close({int(queue.id): queue.index(), **self.broker.delay.log_indexes()})

    def crash(self) -> None:
        """The process ends here and now."""
        self.log.committer.stop()
        self.log.worker.stop()
        self.log.tail.close()
        self.log.reader.close()
        self.log.files.close(self.log._lock)
