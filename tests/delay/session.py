"""A broker on the virtual clock with a channel at hand, for tests of delayed messages."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from warrenmq.client import Channel, Connection, Properties, Returned
from warrenmq.testing import Broker
from warrenmq.wire.fields import Field, from_python

DELAYED = "x-delayed-message"


class Session:
    """One broker, one connection, one channel; `restart` replaces all three on the same data."""

    def __init__(self, folder: Path) -> None:
        self.broker = Broker(clock="virtual", data_dir=folder).start()
        self._connect()

    def _connect(self) -> None:
        self.connection = Connection(self.broker.url, timeout=60)
        self.channel: Channel = self.connection.channel()

    def new_channel(self) -> Channel:
        """After a channel error."""
        self.channel = self.connection.channel()
        return self.channel

    def restart(self) -> None:
        """Cleanly, after everything sent was processed."""
        self.connection.flush()
        self.broker.settle()
        with contextlib.suppress(Exception):
            self.connection.abort()
        self.broker.restart()
        self._connect()

    def close(self) -> None:
        with contextlib.suppress(Exception):
            self.connection.abort()
        self.broker.stop()

    # --- topology

    def exchange(self, name: str = "d", inner: str = "direct", durable: bool = True, **arguments: object) -> None:
        wanted = {"x-delayed-type": inner, **{key.replace("_", "-"): value for key, value in arguments.items()}}
        self.channel.exchange_declare(name, DELAYED, durable=durable, arguments=wanted)

    def queue(self, name: str = "q", exchange: str = "d", key: str = "k", **arguments: object) -> None:
        wanted = {name.replace("_", "-"): value for name, value in arguments.items()}
        self.channel.queue_declare(name, durable=True, arguments=wanted)
        if exchange:
            self.channel.queue_bind(name, exchange, key)

    # --- messages

    def publish(
        self,
        body: str,
        delay: object = None,
        key: str = "k",
        exchange: str = "d",
        mandatory: bool = False,
        persistent: bool = True,
        expiration: str | None = None,
        **headers: object,
    ) -> None:
        """Headers with underscores for dashes; a delay may be a Field, to choose its wire type."""
        table = {}
        if delay is not None:
            headers["x_delay"] = delay
        for name, value in headers.items():
            field = value if isinstance(value, Field) else from_python({"": value})[""]
            table[name.replace("_", "-")] = field
        properties = Properties(headers=table, delivery_mode=2 if persistent else 1, expiration=expiration)
        self.channel.basic_publish(exchange, key, body.encode(), properties, mandatory=mandatory)
        self.connection.flush()

    def take(self, queue: str = "q") -> list[str]:
        """Everything that is in a queue now."""
        self.broker.settle()
        found = []
        while (message := self.channel.basic_get(queue, no_ack=True)) is not None:
            found.append(bytes(message.body).decode())
        return found

    def returned(self) -> list[str]:
        """Bodies of what came back since the last time, after everything sent was answered."""
        self.broker.settle()
        self.connection.read(0)
        return [bytes(event.body).decode() for event in self.channel.take_events() if isinstance(event, Returned)]

    def advance(self, milliseconds: int) -> None:
        self.connection.flush()
        self.broker.advance(milliseconds / 1000)

    def waiting(self, exchange: str = "d") -> int:
        self.connection.flush()
        self.broker.settle()
        delay = self.broker.server.broker.delay
        return self.broker.call(lambda: int(delay.waiting(self.broker.server.broker.vhosts["/"].exchanges[exchange])))


@contextlib.contextmanager
def session_on(folder: Path) -> Iterator[Session]:
    session = Session(folder)
    try:
        yield session
    finally:
        session.close()
