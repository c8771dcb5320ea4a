"""A witness is told of messages that carry a trace context, in every vhost, and of no others."""

from __future__ import annotations

from pathlib import Path

import pytest

from warrenmq.broker.delivering.witness import Witness
from warrenmq.broker.message import Message
from warrenmq.broker.sender import Sender
from warrenmq.testing.core import Core
from warrenmq.testing.core_client import CoreClient
from warrenmq.wire.content import Properties
from warrenmq.wire.fields import Field

pytestmark = pytest.mark.pure

TRACED = Properties(headers={"traceparent": Field("S", "00-1-1-01")})


class Told(Witness):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, str, bytes, object]] = []

    def published(self, sender: Sender, vhost: str, message: Message, queues: list[str]) -> None:
        self.found.append(("published", vhost, message.body(), queues))

    def delivered(self, receiver: Sender, vhost: str, queue: str, message: Message, redelivered: bool) -> None:
        self.found.append(("delivered", queue, message.body(), redelivered))


class Faulty(Witness):
    def published(self, sender: Sender, vhost: str, message: Message, queues: list[str]) -> None:
        raise ValueError("of the witness")

    def delivered(self, receiver: Sender, vhost: str, queue: str, message: Message, redelivered: bool) -> None:
        raise ValueError("of the witness")


def started(tmp_path: Path) -> tuple[Core, CoreClient]:
    core = Core(tmp_path)
    client = core.client()
    client.call("queue.declare", queue="q")
    client.publish("", "q", b"before", TRACED)  # its route is remembered from here on
    client.call("queue.purge", queue="q")
    return core, client


def test_it_is_told_of_traced_messages_from_then_on_also_where_routes_are_remembered(tmp_path: Path) -> None:
    core, client = started(tmp_path)
    told = Told()
    core.broker.witness(told)
    for body, properties in ((b"traced", TRACED), (b"plain", Properties()), (b"again", TRACED)):
        client.publish("", "q", body, properties)
    client.publish("", "nowhere", b"lost", TRACED)
    assert client.call("basic.get", queue="q", no_ack=False).body == b"traced"
    client.send("basic.nack", delivery_tag=1, requeue=True)
    assert [client.call("basic.get", queue="q", no_ack=True).body for _ in range(3)] == [b"traced", b"plain", b"again"]
    assert told.found == [
        ("published", "/", b"traced", ["q"]),
        ("published", "/", b"again", ["q"]),
        ("published", "/", b"lost", []),
        ("delivered", "q", b"traced", False),
        ("delivered", "q", b"traced", True),
        ("delivered", "q", b"again", False),
    ]


def test_without_one_nobody_is_watched_and_with_one_every_vhost_is_whatever_the_firehose_does(tmp_path: Path) -> None:
    core, _ = started(tmp_path)
    vhost = core.broker.vhosts["/"]
    assert not vhost.watched
    vhost.set_tracing(True)
    assert vhost.watched
    vhost.set_tracing(False)
    assert not vhost.watched
    core.broker.witness(Told())
    assert vhost.watched and core.broker.add_vhost("later").watched
    vhost.set_tracing(True)
    vhost.set_tracing(False)
    assert vhost.watched and not vhost.tracing


def test_the_faults_of_a_witness_harm_no_message(tmp_path: Path) -> None:
    core, client = started(tmp_path)
    core.broker.witness(Faulty())
    core.notes.crashes = []
    client.publish("", "q", b"traced", TRACED)
    assert client.call("basic.get", queue="q", no_ack=True).body == b"traced"
    assert core.notes.crashes == ["witness_failed: of the witness"] * 2


def test_copies_of_the_firehose_are_not_told(tmp_path: Path) -> None:
    core, client = started(tmp_path)
    told = Told()
    client.call("queue.declare", queue="copies")
    client.call("queue.bind", queue="copies", exchange="amq.rabbitmq.trace", routing_key="publish.#")
    core.broker.vhosts["/"].set_tracing(True)
    core.broker.witness(told)
    client.publish("", "q", b"traced", TRACED)
    assert client.call("basic.get", queue="copies", no_ack=True).body == b"traced"
    assert [what for what, *_ in told.found if what == "published"] == ["published"]
