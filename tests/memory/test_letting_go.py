"""What a broker that is over leaves in a process that goes on: nothing, though no collection looks at entries.

Uncompiled, entries are objects like others: that none is left when the broker has stopped and before anything was
collected says that they were let go by hand. Compiled, a queue that an entry leads to is never freed.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.limits.gate import advance
from warrenmq import build_info
from warrenmq import client as amqp
from warrenmq.broker.channel.acks import Taken
from warrenmq.broker.channel.channel import Channel
from warrenmq.broker.connection.connection import Connection
from warrenmq.broker.publish.publishing import Publishing, Uncommitted
from warrenmq.broker.queue.letters import Letter
from warrenmq.broker.queue.queue import Consumer, Entry, Queue
from warrenmq.broker.records import Binding, Exchange
from warrenmq.broker.services.freeing import SLICE
from warrenmq.testing import Broker
from warrenmq.testing.core import Core
from warrenmq.testing.core_client import CoreClient

pytestmark = pytest.mark.pure

TRACKED = 1 << 14  # a type's flag: garbage collection looks at its objects


def alive(kind: type) -> int:
    return sum(isinstance(one, kind) for one in gc.get_objects())


@pytest.fixture(autouse=True, scope="module")
def looks_at_new_objects_only() -> Iterator[None]:
    """What other tests have left is neither counted nor collected: it takes long."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(autouse=True)
def no_collection_meanwhile() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.skipif(not build_info().compiled, reason="only the compiled build can do without")
@pytest.mark.parametrize("kind", [Entry, Letter, Uncommitted])
def test_garbage_collection_does_not_look_at_what_exists_per_message(kind: type) -> None:
    assert not kind.__flags__ & TRACKED


def test_very_many_acknowledgements_in_a_transaction_are_one_thing_to_collect(tmp_path: Path) -> None:
    core = Core(tmp_path)
    client = core.client()
    client.declare("q")
    client.feed(client.published("", "q", b"x") * 300)
    client.consume("q")
    client.open(mode="tx.select")
    before = alive(Taken)
    for tag in range(1, 301):
        client.send("basic.ack", delivery_tag=tag)
    assert alive(Taken) == before + 1
    client.send("tx.rollback")
    client.send("basic.ack", delivery_tag=300, multiple=True)
    client.call("tx.commit")
    core.settle()
    assert (core.queue("q").ready, core.queue("q").unacked) == (0, 0)


def waiting(client: CoreClient) -> None:
    client.fill("q", *"abcdefghij")


def delivered(client: CoreClient) -> None:
    waiting(client)
    client.consume("q", prefetch=5)


def given_back(client: CoreClient) -> None:
    delivered(client)
    client.send("basic.cancel", consumer_tag="c")
    client.send("basic.recover", requeue=True)


def acknowledged_in_a_transaction(client: CoreClient) -> None:
    delivered(client)
    client.open(mode="tx.select")
    client.send("basic.ack", delivery_tag=1)
    client.send("basic.nack", delivery_tag=4, multiple=True)
    client.fill("q", "k")


def purged(client: CoreClient) -> None:
    """More than is freed in a turn."""
    client.feed(client.published("", "q", b"x") * (SLICE + 1))
    client.send("queue.purge", queue="q")


def refused_by_its_target(client: CoreClient) -> None:
    """Dead letters that stay with a quorum queue."""
    client.declare("full", arguments={"x-max-length": 0, "x-overflow": "reject-publish"})
    arguments = {
        "x-queue-type": "quorum",
        "x-dead-letter-exchange": "",
        "x-dead-letter-routing-key": "full",
        "x-dead-letter-strategy": "at-least-once",
        "x-overflow": "reject-publish",
    }
    client.declare("quorum", arguments=arguments)
    client.fill("quorum", "a", "b", "c", "d")
    client.consume("quorum", prefetch=3)
    client.send("basic.reject", delivery_tag=1, requeue=False)
    client.send("basic.reject", delivery_tag=2, requeue=True)


def read_from_a_stream(client: CoreClient) -> None:
    client.declare("s", arguments={"x-queue-type": "stream"})
    client.fill("s", "a", "b", "c")
    client.consume("s", prefetch=2, arguments={"x-stream-offset": "first"})


def lost(client: CoreClient) -> None:
    client.core.broker.begin_turn()
    client.connection.lost("gone")
    client.core.end_turn()


def a_connection(core: Core, client: CoreClient) -> None:  # noqa: ARG001
    other = core.client()
    other.open(mode="confirm.select")
    other.consume("q")
    other.publish("", "q", b"x")
    other.send("basic.ack", delivery_tag=1)
    lost(other)


def a_connection_in_a_transaction(core: Core, client: CoreClient) -> None:  # noqa: ARG001
    other = core.client()
    other.open(mode="tx.select")
    other.publish("", "q", b"x")
    other.call("tx.commit")
    other.call("basic.get", queue="q")
    other.send("basic.ack", delivery_tag=1)
    lost(other)
    core.settle()


def a_connection_that_awaits_replies(core: Core, client: CoreClient) -> None:  # noqa: ARG001
    other = core.client()
    other.consume("amq.rabbitmq.reply-to", no_ack=True)
    other.publish("", "q", b"x", reply_to="amq.rabbitmq.reply-to")
    lost(other)


def a_channel(core: Core, client: CoreClient) -> None:  # noqa: ARG001
    client.open(2, mode="confirm.select")
    client.consume("q", channel=2)
    client.publish("", "q", b"x")
    client.call("channel.close", 2, reply_code=200, reply_text="", class_id=0, method_id=0)


def a_channel_that_was_in_error(core: Core, client: CoreClient) -> None:  # noqa: ARG001
    client.open(2)
    client.send("queue.declare", 2, queue="none", passive=True)
    client.send("channel.close-ok", 2)


def a_consumer(core: Core, client: CoreClient) -> None:  # noqa: ARG001
    client.consume("q")
    client.call("basic.cancel", consumer_tag="c")


def an_exchange(core: Core, client: CoreClient) -> None:  # noqa: ARG001
    """With a queue and a publisher of its own, who would remember some for their counts."""
    other = core.client()
    for kind in ("direct", "fanout", "topic", "headers", "x-consistent-hash", "x-delayed-message"):
        arguments = {"x-delayed-type": "topic"} if kind == "x-delayed-message" else {}
        other.declare("own")
        other.call("exchange.declare", exchange="e", type=kind, arguments=arguments)
        other.call("queue.bind", queue="own", exchange="e", routing_key="1")
        other.publish("e", "1", b"x")
        other.call("queue.unbind", queue="own", exchange="e", routing_key="1")
        other.call("exchange.delete", exchange="e")
        other.call("queue.delete", queue="own")
    lost(other)
    advance(core, 10)


@pytest.mark.parametrize(
    "ends",
    [
        a_connection,
        a_connection_in_a_transaction,
        a_connection_that_awaits_replies,
        a_channel,
        a_channel_that_was_in_error,
        a_consumer,
        an_exchange,
    ],
    ids=lambda ends: ends.__name__,
)
def test_what_ends_in_a_broker_that_goes_on_is_freed_without_a_collection(
    ends: Callable[[Core, CoreClient], None], tmp_path: Path
) -> None:
    """Queues come apart a little later (``test_deleted.py``)."""
    kinds = [Connection, Channel, Consumer, Exchange, Binding, Publishing]
    with Core(tmp_path) as core:
        client = core.client()
        client.declare("q")
        ends(core, client)
        client.call("queue.purge", queue="q")
        before = [alive(kind) for kind in kinds]
        for _ in range(20):
            ends(core, client)
        client.call("queue.purge", queue="q")
        assert [alive(kind) for kind in kinds] == before


def test_a_queue_that_is_gone_is_not_kept_by_what_was_published_to_it(tmp_path: Path) -> None:
    with Core(tmp_path) as core:
        client = core.client()
        before = alive(Queue)
        for number in range(20):
            client.declare(f"q{number}")
            client.publish("", f"q{number}", b"x")
            client.call("queue.delete", queue=f"q{number}")
        core.settle()
        advance(core, 10)
        assert alive(Queue) == before


SITUATIONS: list[Callable[[CoreClient], None]] = [
    waiting,
    delivered,
    given_back,
    acknowledged_in_a_transaction,
    purged,
    refused_by_its_target,
    read_from_a_stream,
]


@pytest.mark.parametrize("crashed", [False, True], ids=["stopped", "crashed"])
@pytest.mark.parametrize("happens", SITUATIONS, ids=lambda happens: happens.__name__)
def test_a_broker_that_is_over_holds_no_entries(
    happens: Callable[[CoreClient], None], crashed: bool, tmp_path: Path
) -> None:
    queues, entries = alive(Queue), alive(Entry)
    core = Core(tmp_path)
    client = core.client()
    client.declare("q")
    happens(client)
    assert alive(Queue) > queues
    if crashed:
        core.crash()
    else:
        core.stop()
    assert alive(Entry) == entries
    del core, client
    gc.collect()
    assert alive(Queue) == queues


def test_brokers_that_ran_in_one_process_leave_nothing_behind_however_many_they_were() -> None:
    def use() -> None:
        with Broker() as broker, amqp.Connection(broker.url) as connection:
            channel = connection.channel()
            for name in ("one", "two"):
                channel.queue_declare(name, durable=True)
                channel.publish_many("", name, [b"x"] * 100)
            channel.basic_qos(10)
            channel.basic_consume("one")
            assert channel.receive(60)

    use()
    gc.collect()
    before = alive(Queue), len(gc.get_objects())
    for _ in range(5):
        use()
    gc.collect()
    queues, objects = alive(Queue), len(gc.get_objects())
    assert queues == before[0] and objects < before[1] + 500
