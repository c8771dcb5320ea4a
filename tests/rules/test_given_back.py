"""Messages given back one by one, in whatever order: each finds its place, and the millionth as fast as the first."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from tests.rules.test_slices import publish
from tests.support.lines import lines
from warrenmq.broker.queue.returned import CHUNK
from warrenmq.testing.core import Core
from warrenmq.testing.core_client import CoreClient
from warrenmq.wire.methods import method_frame

pytestmark = pytest.mark.pure

HELD = 8 * CHUNK


def holding(core: Core, count: int, **arguments: object) -> CoreClient:
    """A client that holds so many messages and takes no more."""
    client = core.client()
    client.call("queue.declare", queue="q", durable=True, arguments=arguments)
    publish(client, "q", range(count), delivery_mode=2)
    client.call("basic.qos", prefetch_count=count)
    client.call("basic.consume", queue="q", consumer_tag="c")
    assert len(client.deliveries()) == count
    client.call("basic.cancel", consumer_tag="c")
    client.take()
    return client


def give_back(client: CoreClient, tags: list[int]) -> None:
    client.feed(b"".join(method_frame(1, "basic.nack", delivery_tag=tag, requeue=True) for tag in tags))


ORDERS: dict[str, Callable[[list[int]], list[int]]] = {
    "ascending": lambda tags: tags,
    "descending": lambda tags: tags[::-1],
    "shuffled": lambda tags: random.Random(5).sample(tags, len(tags)),
    "odd then even": lambda tags: tags[::2] + tags[1::2],
}


@pytest.mark.parametrize("order", ORDERS)
def test_each_goes_to_its_place_in_whatever_order_they_come_back(core: Core, order: str) -> None:
    client = holding(core, HELD)
    give_back(client, ORDERS[order](list(range(1, HELD + 1))))
    assert core.queue("q").ready == HELD
    client.call("basic.consume", queue="q", no_ack=True)
    assert client.delivered() == [f"{number}*" for number in range(HELD)]


def test_a_quorum_queue_with_a_limit_keeps_the_order_in_which_they_came_back(core: Core) -> None:
    client = holding(core, HELD, **{"x-queue-type": "quorum", "x-delivery-limit": 5})
    tags = ORDERS["shuffled"](list(range(1, HELD + 1)))
    give_back(client, tags)
    client.call("basic.consume", queue="q", no_ack=True)
    assert client.delivered() == [f"{tag - 1}*" for tag in tags]


@pytest.mark.uncompiled
@pytest.mark.parametrize("order", ORDERS)
def test_the_last_costs_about_as_much_as_the_first(core: Core, order: str) -> None:
    client = holding(core, HELD)
    tags = ORDERS[order](list(range(1, HELD + 1)))
    first = lines(lambda: give_back(client, tags[:100]))
    give_back(client, tags[100:-100])
    assert lines(lambda: give_back(client, tags[-100:])) < 2 * first


@pytest.mark.uncompiled
@pytest.mark.parametrize("answer", ["tx.commit", "tx.rollback"])
def test_acknowledging_in_a_transaction_costs_what_is_acknowledged_not_what_is_held(core: Core, answer: str) -> None:
    def acknowledge(count: int) -> int:
        client = holding(core, count)
        client.call("tx.select")
        acks = b"".join(method_frame(1, "basic.ack", delivery_tag=tag, multiple=True) for tag in range(1, 101))
        found = lines(lambda: client.feed(acks))
        client.call(answer)
        client.connection.lost("gone")
        client = core.client()
        client.call("queue.delete", queue="q")
        return found

    assert acknowledge(HELD) < 2 * acknowledge(200)
