"""What a conformance case is made of: steps on one or two raw connections, written as a line each.

Duty: the vocabulary of the case tables and the clean slate each case starts from.
Not here: what the right answer is. RabbitMQ 3.10 says that (recorded/*.json, made by record.py).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

from tests.support.brokers import RunningBroker
from tests.support.rawclient import CloseLost, RawClient, frame, method, publish

Step = Callable[[RawClient], object]

#: The only names cases use, so that one broker can serve them all one after another.
QUEUES = ("m.q", "m.q2", "m.q3")
EXCHANGES = ("m.x", "m.x2", "m.x3", "m.ae")
#: A user that may do nothing but consume and publish where the name says so.
LIMITED = ("m-limited", "limited")
LIMITED_PERMISSIONS = ("^m[.]", "^m[.]x", "^m[.]")


@dataclass(frozen=True)
class Case:
    """A conversation. `start` says how far the connection is when `steps` begin:
    'bare' (only TCP), 'connection' (open-ok received) or 'channel' (channel 1 open)."""

    name: str
    steps: tuple[Step, ...]
    start: str = "channel"
    #: the second connection's steps, run between `steps` and `last`
    other: tuple[Step, ...] = ()
    last: tuple[Step, ...] = ()
    user: tuple[str, str] = ("guest", "guest")
    capabilities: tuple[str, ...] | None = None
    frame_max: int = 131072
    channel_max: int = 2047
    #: False: touches no name and may run beside others (RabbitMQ takes 3 s to drop some connections)
    alone: bool = True
    #: Warren differs on purpose: where that is said, and Warren's own answer is recorded apart
    differs: str = ""

    @property
    def id(self) -> str:
        return re.sub(r"[^a-z0-9]+", "_", self.name.lower()).strip("_")


def case(name: str, *steps: Step, **options: object) -> Case:
    return Case(name, steps, **options)  # type: ignore[arg-type]


# -- the words


def call(name: str, channel: int = 1, **values: object) -> Step:
    """A synchronous method; waits for its answer or for the close that comes instead."""
    return lambda client: client.call(channel, name, **values)


def tell(name: str, channel: int = 1, **values: object) -> Step:
    """A method that nobody answers."""
    return lambda client: client.send_method(channel, name, **values)


def send(data: bytes) -> Step:
    return lambda client: client.send(data)


def frames(*parts: tuple[int, int, bytes]) -> Step:
    return send(b"".join(frame(*part) for part in parts))


def pub(exchange: str, key: str, body: bytes = b"x", channel: int = 1, **more: object) -> Step:
    return send(publish(channel, exchange, key, body, **more))  # type: ignore[arg-type]


def expect(*names: str) -> Step:
    """Reads until one of these comes (or the close that comes instead)."""
    return lambda client: client.wait(*names)


def message(*names: str) -> Step:
    return lambda client: client.wait_message(*names)


def silence(client: RawClient) -> None:
    """Nothing more comes: the one place where a test waits for time to pass."""
    client.quiet(0.25)


def open_channel(channel: int) -> Step:
    return lambda client: client.open(channel)


def drop(client: RawClient) -> None:
    """The client is gone without a word."""
    client.socket.close()
    client.ended = True


def queue(name: str = "m.q", **values: object) -> Step:
    return call("queue.declare", queue=name, **values)  # type: ignore[arg-type]


def exchange(name: str = "m.x", kind: str = "direct", **values: object) -> Step:
    return call("exchange.declare", exchange=name, type=kind, **values)  # type: ignore[arg-type]


def methods(*calls: bytes) -> Step:
    return send(b"".join(calls))


raw_method = method

# -- running


def clean_slate(broker: RunningBroker) -> None:
    """Removes everything a case may have left behind (deleting what is missing is no error in AMQP)."""
    with RawClient(broker.port).handshake().open(1) as client:
        for name in QUEUES:
            client.call(1, "queue.delete", queue=name)
        for name in EXCHANGES:
            client.call(1, "exchange.delete", exchange=name)
        client.finish()


def connect(broker: RunningBroker, scenario: Case) -> RawClient:
    client = RawClient(broker.port)
    if scenario.start == "bare":
        return client
    username, password = scenario.user
    options: dict[str, object] = {
        "username": username,
        "password": password,
        "frame_max": scenario.frame_max,
        "channel_max": scenario.channel_max,
    }
    if scenario.capabilities is not None:
        options["capabilities"] = scenario.capabilities
    client.handshake(**options)  # type: ignore[arg-type]
    if scenario.start == "channel":
        client.open(1)
    client.frames.clear()
    return client


def run(broker: RunningBroker, scenario: Case) -> list[str]:
    """The broker's answers to a case, rendered; a second connection's answers stand behind the first's.

    RabbitMQ is asked again when it lost a close of ours; Warren may not.
    """
    try:
        return _run(broker, scenario)
    except CloseLost:
        if broker.is_warren:
            raise
        return _run(broker, scenario)


def _run(broker: RunningBroker, scenario: Case) -> list[str]:
    if scenario.alone:
        clean_slate(broker)
    with connect(broker, scenario) as client:
        for step in scenario.steps:
            step(client)
        second: list[str] = []
        if scenario.other:
            with RawClient(broker.port).handshake().open(1) as other:
                other.frames.clear()
                for step in scenario.other:
                    step(other)
                other.finish()
                second = ["-- second connection", *other.transcript()]
        for step in scenario.last:
            step(client)
        if scenario.start == "bare" and not any(each.name == "connection.open-ok" for each in client.frames):
            while client.read() is not None:  # until the broker hangs up
                pass
        else:
            client.finish()
        return client.transcript() + second


def run_together(broker: RunningBroker, scenarios: list[Case]) -> dict[str, list[str]]:
    """Cases that need not be alone, side by side."""
    assert not any(each.alone for each in scenarios)
    with ThreadPoolExecutor(16) as pool:
        return dict(zip([each.id for each in scenarios], pool.map(partial(run, broker), scenarios), strict=True))
