"""An exchange counts each publish that reached it once, whatever way the message took through the broker.

As RabbitMQ 3.10 counts (``publish_in`` and ``publish_out`` of /api/exchanges): at the exchange that was published to
and at no other, a transaction's messages when it commits, no dead letters. A delayed exchange counts a message out when
it is due, as the plug-in does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from warrenmq.http.figures.flow import Flow
from warrenmq.testing.core import Core
from warrenmq.testing.core_client import CoreClient
from warrenmq.wire.content import Properties
from warrenmq.wire.fields import Field

pytestmark = pytest.mark.pure

Way = Callable[[CoreClient, str, str], None]


def plain(client: CoreClient, exchange: str, key: str) -> None:
    client.publish(exchange, key, b"x")


def in_confirm_mode(client: CoreClient, exchange: str, key: str) -> None:
    client.call("confirm.select")
    client.publish(exchange, key, b"x")


def mandatory(client: CoreClient, exchange: str, key: str) -> None:
    client.publish(exchange, key, b"x", mandatory=True)


def persistent(client: CoreClient, exchange: str, key: str) -> None:
    client.publish(exchange, key, b"x", Properties(delivery_mode=2))


def with_a_property_that_a_stage_looks_at(client: CoreClient, exchange: str, key: str) -> None:
    client.publish(exchange, key, b"x", Properties(expiration="60000"))


def in_several_frames(client: CoreClient, exchange: str, key: str) -> None:
    client.publish(exchange, key, b"x" * 200_000)


def in_a_transaction(client: CoreClient, exchange: str, key: str) -> None:
    client.call("tx.select")
    client.publish(exchange, key, b"x")
    client.call("tx.commit")


WAYS = [
    plain,
    in_confirm_mode,
    mandatory,
    persistent,
    with_a_property_that_a_stage_looks_at,
    in_several_frames,
    in_a_transaction,
]


@pytest.fixture
def core(tmp_path: Path) -> Core:
    """Exchange ``x`` has two durable queues behind key ``k``."""
    core = Core(tmp_path)
    client = core.client()
    client.call("exchange.declare", exchange="x", type="direct")
    for queue in ("one", "two"):
        client.call("queue.declare", queue=queue, durable=True)
        client.call("queue.bind", queue=queue, exchange="x", routing_key="k")
    return core


def counted(core: Core, name: str) -> tuple[int, int, int]:
    """In, out and unroutable."""
    exchange = core.broker.vhosts["/"].exchanges[name]
    return int(exchange.messages_in), int(exchange.messages_out), int(exchange.messages_unroutable)


@pytest.mark.parametrize("way", WAYS)
def test_a_publish_counts_once_and_out_once_for_each_queue(core: Core, way: Way) -> None:
    way(core.client(), "x", "k")
    assert counted(core, "x") == (1, 2, 0)


@pytest.mark.parametrize("way", WAYS)
def test_a_publish_that_finds_no_queue_counts_as_unroutable(core: Core, way: Way) -> None:
    way(core.client(), "x", "elsewhere")
    assert counted(core, "x") == (1, 0, 1)


def test_of_what_finds_no_queue_it_is_counted_how_many_went_back_to_their_publisher(core: Core) -> None:
    client = core.client()
    for mandatory in (True, False, True):
        client.publish("x", "elsewhere", mandatory=mandatory)
    assert counted(core, "x") == (3, 0, 3)
    assert core.broker.vhosts["/"].exchanges["x"].messages_returned == 2


@pytest.mark.parametrize("way", WAYS)
def test_a_publish_like_the_one_before_counts_too(core: Core, way: Way) -> None:
    """The second one starts behind the stages whose result is remembered."""
    for _ in range(2):
        way(core.client(), "x", "k")
    client = core.client()
    plain(client, "x", "k")
    plain(client, "x", "k")
    assert counted(core, "x") == (4, 8, 0)


def steps(core: Core) -> dict[tuple[str, str], int]:
    """How many messages took each step, from where to where."""
    flow = asyncio.run(Flow().of(core.broker, core.broker.vhosts["/"]))
    return {(step.source, step.to): count for step, count in flow.counts.items()}


@pytest.mark.parametrize("way", WAYS)
def test_a_publish_counts_once_on_each_step_of_its_way(core: Core, way: Way) -> None:
    for _ in range(2):
        way(core.client(), "x", "k")
    way(core.client(), "x", "elsewhere")
    assert steps(core) == {("x", "one"): 2, ("x", "two"): 2}


def test_a_transaction_counts_when_it_commits_and_not_when_it_is_rolled_back(core: Core) -> None:
    client = core.client()
    client.call("tx.select")
    client.publish("x", "k")
    client.call("tx.rollback")
    client.publish("x", "k")
    assert counted(core, "x") == (0, 0, 0)
    client.call("tx.commit")
    assert counted(core, "x") == (1, 2, 0)


def test_a_message_that_a_full_queue_refuses_counts_as_routed(core: Core) -> None:
    client = core.client()
    client.call("queue.declare", queue="full", arguments={"x-max-length": 1, "x-overflow": "reject-publish"})
    client.call("exchange.declare", exchange="f", type="fanout")
    client.call("queue.bind", queue="full", exchange="f")
    for _ in range(3):
        client.publish("f", "")
    assert counted(core, "f") == (3, 3, 0)


def test_only_the_exchange_that_was_published_to_counts(core: Core) -> None:
    client = core.client()
    client.call("exchange.declare", exchange="outer", type="fanout")
    client.call("exchange.bind", source="outer", destination="x")
    client.call("exchange.declare", exchange="first", type="direct", arguments={"alternate-exchange": "x"})
    client.publish("outer", "k")
    client.publish("first", "k")
    assert counted(core, "outer") == counted(core, "first") == (1, 2, 0)
    assert counted(core, "x") == (0, 0, 0)


def test_a_dead_letter_is_not_a_publish(core: Core) -> None:
    client = core.client()
    client.call(
        "queue.declare",
        queue="dying",
        arguments={"x-dead-letter-exchange": "x", "x-dead-letter-routing-key": "k", "x-message-ttl": 10},
    )
    client.publish("", "dying")
    core.advance(10)
    assert client.call("basic.get", queue="one").name == "basic.get-ok"
    assert counted(core, "") == (1, 1, 0)
    assert counted(core, "x") == (0, 0, 0)


def delayed(core: Core, **arguments: object) -> CoreClient:
    client = core.client()
    client.call(
        "exchange.declare",
        exchange="later",
        type="x-delayed-message",
        durable=True,
        arguments={"x-delayed-type": "direct", **arguments},
    )
    client.call("queue.bind", queue="one", exchange="later", routing_key="k")
    return client


@pytest.mark.parametrize("way", [{}, {"mandatory": True}], ids=["plain", "mandatory"])
@pytest.mark.parametrize("more", [{}, {"x-delay-id": Field("S", "mine")}], ids=["delay alone", "with a name"])
def test_a_delayed_message_counts_in_when_it_is_scheduled_and_out_when_it_is_due(
    core: Core, way: dict[str, bool], more: dict[str, Field]
) -> None:
    client = delayed(core)
    client.publish("later", "k", b"x", Properties(headers={"x-delay": Field("I", 1000), **more}), **way)
    assert counted(core, "later") == (1, 0, 0)
    core.advance(1000)
    assert counted(core, "later") == (1, 1, 0)


def test_a_delayed_message_that_finds_no_queue_when_it_is_due_counts_as_unroutable_then(core: Core) -> None:
    client = delayed(core)
    client.publish("later", "elsewhere", b"x", Properties(headers={"x-delay": Field("I", 1000)}))
    assert counted(core, "later") == (1, 0, 0)
    core.advance(1000)
    assert counted(core, "later") == (1, 0, 1)


def test_a_message_that_reached_a_delayed_exchange_through_another_counts_in_there_and_out_here(core: Core) -> None:
    client = delayed(core)
    client.call("exchange.declare", exchange="outer", type="fanout")
    client.call("exchange.bind", source="outer", destination="later")
    client.publish("outer", "k", b"x", Properties(headers={"x-delay": Field("I", 1000)}))
    assert counted(core, "outer") == (1, 0, 0)
    core.advance(1000)
    assert counted(core, "outer") == (1, 0, 0)
    assert counted(core, "later") == (0, 1, 0)


def test_the_default_exchange_counts_out_what_was_meant_for_one_queue_whether_it_is_there_or_not(core: Core) -> None:
    """As RabbitMQ does, which takes the name of a queue for a way out; not with CC, nor for replies."""
    client = core.client()
    client.publish("", "nowhere")
    assert counted(core, "") == (1, 1, 1)
    client.publish("", "nowhere", b"", Properties(headers={"CC": Field("A", [Field("S", "nowhere either")])}))
    assert counted(core, "") == (2, 1, 2)
    client.publish("", "amq.rabbitmq.reply-to.nobody")
    assert counted(core, "") == (3, 1, 3)
    client.publish("x", "nowhere")
    assert counted(core, "x") == (1, 0, 1)
