"""What is deleted in a broker that goes on is freed by counting references alone, without a garbage collection.

``warren serve`` hides what is there for long from the collector (``server/process.py``), so a circle of references that
nobody breaks would stay for ever.
"""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.limits.gate import advance
from warrenmq.broker.services.taking_apart import LOOK, SLICE
from warrenmq.broker.vhost.forgetting import FEW
from warrenmq.broker.vhost_end import delete_vhost
from warrenmq.testing.core import Core
from warrenmq.testing.core_client import CoreClient
from warrenmq.wire.fields import Field

pytestmark = pytest.mark.pure

ROUNDS = 10
PARTS = tuple(
    f"warrenmq.broker.{room}" for room in ("queue", "exchange", "records", "delay", "channel", "connection", "vhost")
)
QUORUM = {"x-queue-type": "quorum"}


@pytest.fixture(autouse=True)
def no_collection_looks_at_anything() -> Iterator[None]:
    gc.collect()
    gc.freeze()
    gc.disable()
    yield
    gc.enable()
    gc.unfreeze()


@pytest.fixture
def core(tmp_path: Path) -> Iterator[Core]:
    with Core(tmp_path) as core:
        core.client().declare("stays")
        yield core


def living() -> Counter[str]:
    """What there is of the broker's objects, by their classes."""
    kinds = (type(one) for one in gc.get_objects())
    return Counter(kind.__name__ for kind in kinds if kind.__module__.startswith(PARTS))


def settle(core: Core) -> None:
    core.settle()
    core.commit()
    for _ in range(3):
        advance(core, LOOK)
        core.commit()


def growth(core: Core, happens: Callable[[Core], None]) -> Counter[str]:
    """What so many rounds leave behind, but for what one round leaves as well: caches."""
    for _ in range(2):
        happens(core)
    settle(core)
    before = living()
    for _ in range(ROUNDS):
        happens(core)
    settle(core)
    left = living()
    left.subtract(before)
    return +left


def lost(client: CoreClient) -> None:
    client.core.broker.begin_turn()
    client.connection.lost("gone")
    client.core.end_turn()


def with_messages(client: CoreClient, core: Core, arguments: dict[str, object]) -> None:  # noqa: ARG001
    client.fill("x", "a", "b", "c")


def with_a_consumer(client: CoreClient, core: Core, arguments: dict[str, object]) -> None:  # noqa: ARG001
    stream = arguments.get("x-queue-type") == "stream"
    client.fill("x", "a", "b", "c")
    client.consume("x", prefetch=2, arguments={"x-stream-offset": "first"} if stream else {})
    client.take()


def bound(client: CoreClient, core: Core, arguments: dict[str, object]) -> None:  # noqa: ARG001
    for exchange in ("amq.direct", "amq.topic", "amq.fanout", "amq.headers"):
        client.call("queue.bind", queue="x", exchange=exchange, routing_key="a.b")
        client.publish(exchange, "a.b", b"x")


def leased(client: CoreClient, core: Core, arguments: dict[str, object]) -> None:
    if arguments.get("x-queue-type") != "stream":
        client.fill("x", "a", "b", "c")
        core.broker.begin_turn()
        core.classic("x").leases.create(2, -1, 1000, "owner", "")
        core.end_turn()


@pytest.mark.parametrize("does", [with_messages, with_a_consumer, bound, leased], ids=lambda does: does.__name__)
@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"x-max-priority": 3},
        {"x-message-ttl": 500, "x-expires": 900, "x-max-length": 2},
        {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "stays", "x-max-length": 1},
        QUORUM,
        {**QUORUM, "x-delivery-limit": 2, "x-single-active-consumer": True},
        {"x-queue-type": "stream"},
    ],
    ids=["classic", "priorities", "limits", "dead letters", "quorum", "delivery limit", "stream"],
)
def test_a_deleted_queue_is_freed_without_a_collection(
    core: Core, arguments: dict[str, object], does: Callable[[CoreClient, Core, dict[str, object]], None]
) -> None:
    def happens(core: Core) -> None:
        client = core.client()
        client.declare("x", arguments=arguments, durable=True)
        does(client, core, arguments)
        client.call("queue.delete", queue="x")
        client.call("queue.purge", queue="stays")
        client.take()
        lost(client)

    assert not growth(core, happens)


def exclusive(core: Core) -> None:
    client = core.client()
    client.call("queue.declare", queue="x", exclusive=True)
    client.fill("x", "a")
    client.consume("x")
    lost(client)


def auto_delete(core: Core) -> None:
    client = core.client()
    client.call("queue.declare", queue="x", auto_delete=True)
    client.fill("x", "a")
    client.consume("x")
    client.call("basic.cancel", consumer_tag="c")
    lost(client)


def unused_for_too_long(core: Core) -> None:
    client = core.client()
    client.declare("x", arguments={"x-expires": 50})
    lost(client)
    advance(core, 60)
    assert "x" not in core.broker.vhosts["/"].queues


def with_letters_that_nobody_takes(core: Core) -> None:
    client = core.client()
    client.declare("full", arguments={"x-max-length": 0, "x-overflow": "reject-publish"})
    client.declare(
        "x",
        durable=True,
        arguments={
            **QUORUM,
            "x-dead-letter-exchange": "",
            "x-dead-letter-routing-key": "full",
            "x-dead-letter-strategy": "at-least-once",
            "x-overflow": "reject-publish",
        },
    )
    client.fill("x", "a", "b")
    client.consume("x")
    client.send("basic.reject", delivery_tag=1, requeue=False)
    client.call("queue.delete", queue="x")
    client.call("queue.delete", queue="full")
    lost(client)


def exchanges(core: Core) -> None:
    """With a queue and a publisher of their own, who remember some for their counts."""
    client = core.client()
    for kind in ("direct", "fanout", "topic", "headers", "x-consistent-hash", "x-random", "x-delayed-message"):
        arguments: dict[str, object] = {"x-delayed-type": "topic"} if kind == "x-delayed-message" else {}
        client.declare("x")
        client.call("exchange.declare", exchange="e", type=kind, arguments=arguments)
        client.call("exchange.declare", exchange="f", type="fanout", arguments={})
        client.call("queue.bind", queue="x", exchange="e", routing_key="1")
        client.call("exchange.bind", destination="e", source="e", routing_key="2")
        client.call("exchange.bind", destination="f", source="e", routing_key="1")
        client.call("exchange.bind", destination="e", source="f", routing_key="1")
        client.publish("e", "1", b"x")
        client.call("exchange.delete", exchange="e")
        client.call("exchange.delete", exchange="f")
        client.call("queue.delete", queue="x")
    lost(client)


def an_exchange_with_many_bindings(core: Core) -> None:
    client = core.client()
    for kind in ("topic", "x-consistent-hash"):
        client.call("exchange.declare", exchange="e", type=kind)
        for number in range(1, FEW + 10):
            client.send("queue.bind", queue="stays", exchange="e", routing_key=str(number))
        client.send("exchange.delete", exchange="e")
        core.settle()
    lost(client)


def a_delayed_exchange_with_what_waits_there(core: Core) -> None:
    client = core.client()
    client.call("exchange.declare", exchange="e", type="x-delayed-message", arguments={"x-delayed-type": "direct"})
    client.call("queue.bind", queue="stays", exchange="e", routing_key="1")
    client.publish("e", "1", b"x", headers={"x-delay": Field("I", 60_000)})
    client.call("exchange.delete", exchange="e")
    lost(client)


def a_vhost(core: Core) -> None:
    broker = core.broker
    broker.begin_turn()
    vhost = broker.add_vhost("other")
    vhost.declare_queue("x", False, None, False, {})
    vhost.declare_exchange("e", "topic", False, False, False, {}, "guest")
    core.end_turn()
    broker.begin_turn()
    for _ in delete_vhost(broker, vhost):
        pass
    core.end_turn()


@pytest.mark.parametrize(
    "happens",
    [
        exclusive,
        auto_delete,
        unused_for_too_long,
        with_letters_that_nobody_takes,
        exchanges,
        an_exchange_with_many_bindings,
        a_delayed_exchange_with_what_waits_there,
        a_vhost,
    ],
    ids=lambda happens: happens.__name__,
)
def test_what_goes_is_freed_without_a_collection(core: Core, happens: Callable[[Core], None]) -> None:
    assert not growth(core, happens)


@pytest.mark.parametrize("arguments", [{}, QUORUM], ids=["classic", "quorum"])
@pytest.mark.parametrize("end", ["basic.ack", "basic.nack"])
def test_a_deleted_queue_stays_whole_while_a_client_has_messages_of_it(
    core: Core, arguments: dict[str, object], end: str
) -> None:
    client = core.client()
    client.declare("x", arguments=arguments, durable=True)
    client.fill("x", "a", "b")
    client.consume("x")
    before = living()["Order"]
    client.call("queue.delete", queue="x")
    settle(core)
    assert living()["Order"] == before  # the client may still settle, and give back
    client.send(end, delivery_tag=2, multiple=True)
    client.call("basic.recover", requeue=True)  # the channel goes on
    lost(client)
    settle(core)
    assert living()["Order"] == before - 1
    client = core.client()
    client.declare("x", arguments=arguments, durable=True)
    assert core.ready("x") == 0


def test_very_many_deleted_queues_come_apart_some_a_turn(core: Core) -> None:
    client = core.client()
    for number in range(2 * SLICE):
        client.send("queue.declare", queue=str(number))
    for number in range(2 * SLICE):
        client.send("queue.delete", queue=str(number))
    counts = [living()["Order"]]
    for _ in range(10):
        advance(core, 1)
        counts.append(living()["Order"])
    assert counts[-1] == 1 and counts[0] > 2 * SLICE - 10
    assert max(earlier - later for earlier, later in zip(counts, counts[1:], strict=False)) <= SLICE
