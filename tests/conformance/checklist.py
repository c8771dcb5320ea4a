"""The table behind test_checklist.py: the forty edge cases of the behaviour document, numbered as there.

Duty: what a case is. The cases themselves: checklist_*.py.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from tests.support.brokers import RunningBroker
from tests.support.rawclient import Frame, RawClient


@dataclass(frozen=True)
class Checklist:
    number: int
    promise: str
    check: Callable[[RunningBroker], None]
    #: False: RabbitMQ 3.10 as Debian packs it cannot be asked
    oracle: bool
    #: where Warren differs from RabbitMQ on purpose, in one sentence
    differs: str


CHECKLIST: list[Checklist] = []


def checklist(
    number: int, promise: str, oracle: bool = True, differs: str = ""
) -> Callable[[Callable[[RunningBroker], None]], Callable[[RunningBroker], None]]:
    def register(check: Callable[[RunningBroker], None]) -> Callable[[RunningBroker], None]:
        CHECKLIST.append(Checklist(number, promise, check, oracle, differs))
        return check

    return register


def client(broker: RunningBroker, **options: object) -> RawClient:
    """A connection with channel 1 open."""
    return RawClient(broker.port).handshake(**options).open(1)  # type: ignore[arg-type]


def closed(received: Frame, code: int, text: str) -> None:
    """The channel (or connection) was closed with exactly this."""
    assert received.name in ("channel.close", "connection.close"), received.name
    assert (received.number("reply_code"), received.text("reply_text")) == (code, text)


def ready(connection: RawClient, queue: str, channel: int = 1) -> int:
    """How many messages wait in a queue now (RabbitMQ lets this question overtake a publish: confirm first)."""
    return connection.call(channel, "queue.declare", queue=queue, passive=True).number("message_count")


def becomes(connection: RawClient, queue: str, count: int, seconds: float = 120) -> None:
    """The queue holds `count` messages soon."""
    deadline = time.monotonic() + seconds
    while ready(connection, queue) != count and time.monotonic() < deadline:
        time.sleep(0.01)
    assert ready(connection, queue) == count


def declare(connection: RawClient, queue: str = "", channel: int = 1, **values: object) -> str:
    """A queue that goes with its connection; its name."""
    answer = connection.call(channel, "queue.declare", queue=queue, **{"exclusive": True, **values})
    assert answer.name == "queue.declare-ok", answer
    return answer.text("queue")


def exchange(connection: RawClient, name: str, kind: str = "direct", **values: object) -> str:
    """An exchange that goes with its last binding, declared anew."""
    connection.call(1, "exchange.delete", exchange=name)
    answer = connection.call(1, "exchange.declare", exchange=name, type=kind, **values)
    assert answer.name == "exchange.declare-ok", answer
    return name


def bodies(connection: RawClient, queue: str, count: int) -> list[bytes]:
    """Takes `count` messages off a queue, one get each."""
    found = []
    for _ in range(count):
        connection.send_method(1, "basic.get", queue=queue, no_ack=True)
        found.append(connection.wait_message("basic.get-ok", "basic.get-empty")[2])
    return found


def gets(connection: RawClient, queue: str) -> tuple[bytes, bytes]:
    """One message: content header payload and body."""
    connection.send_method(1, "basic.get", queue=queue, no_ack=True)
    _, head, body = connection.wait_message("basic.get-ok", "basic.get-empty")
    return head, body
