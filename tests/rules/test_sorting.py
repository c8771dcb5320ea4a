"""In which order deliveries are settled together: a quorum queue gets back what the consumers of an ended channel held
one after the other, by their tags, and what a client refuses goes one queue and consumer after the other, as RabbitMQ
does it. A delivery limit shows the order: with it, what comes back waits in the order in which it came.
"""

from __future__ import annotations

import pytest

from tests.rules.test_slices import publish
from warrenmq.broker.channel import sorting
from warrenmq.testing.core import Core
from warrenmq.testing.core_client import CoreClient

pytestmark = pytest.mark.pure

QUORUM: dict[str, object] = {"x-queue-type": "quorum", "x-delivery-limit": 5}


def consuming(core: Core, tags: list[str], count: int) -> CoreClient:
    """A client whose consumers got so many messages in turn."""
    client = core.client()
    client.declare("q", arguments=QUORUM)
    client.call("basic.qos", prefetch_count=1000)
    for tag in tags:
        client.call("basic.consume", queue="q", consumer_tag=tag)
    publish(client, "q", range(count), delivery_mode=2)
    assert core.queue("q").unacked == count
    return client


def back_in_order(core: Core, client: CoreClient) -> list[int]:
    """The channel ends; what is there then, as a new consumer gets it."""
    client.call("channel.close")
    assert core.queue("q").unacked == 0  # at once: they are not that many
    other = core.client()
    other.call("basic.consume", queue="q", no_ack=True)
    return [int(body.rstrip("*")) for body in other.delivered()]


@pytest.mark.parametrize("count", [6, 600], ids=["few", "many"])
def test_each_consumer_gives_back_all_it_held_in_the_order_of_their_tags(core: Core, count: int) -> None:
    client = consuming(core, ["b", "a"], count)
    assert back_in_order(core, client) == [*range(1, count, 2), *range(0, count, 2)]


def test_what_was_got_goes_back_under_its_delivery_tag_as_a_text(core: Core) -> None:
    client = consuming(core, ["b", "1a"], 8)
    for tag in ("b", "1a"):
        client.call("basic.cancel", consumer_tag=tag)
    publish(client, "q", range(8, 11), delivery_mode=2)
    assert [client.get("q") for _ in range(3)] == ["8", "9", "10"]  # under 9, 10 and 11
    assert back_in_order(core, client) == [9, 10, 1, 3, 5, 7, 8, 0, 2, 4, 6]


@pytest.mark.parametrize("more", [0, 1])
def test_of_more_consumers_than_rabbitmq_keeps_sorted_the_oldest_is_first(core: Core, more: int) -> None:
    count = sorting.FEW + more
    client = consuming(core, [f"{number:02}" for number in reversed(range(count))], count)
    assert back_in_order(core, client) == (list(range(count)) if more else list(reversed(range(count))))


def test_other_queues_of_the_channel_get_back_theirs_the_oldest_first(core: Core) -> None:
    client = consuming(core, ["b", "a"], 4)
    client.declare("classic")
    for tag in ("d", "c"):
        client.call("basic.consume", queue="classic", consumer_tag=tag)
    publish(client, "classic", range(4))
    publish(client, "q", range(4, 6), delivery_mode=2)
    assert back_in_order(core, client) == [1, 3, 5, 0, 2, 4]
    other = core.client()
    other.call("basic.consume", queue="classic", no_ack=True)
    assert other.delivered() == ["0*", "1*", "2*", "3*"]


@pytest.mark.parametrize("kind", ["given back", "refused"])
def test_put_in_order_some_at_a_time_they_are_as_they_are_in_one_go(core: Core, kind: str) -> None:
    client = consuming(core, ["b", "a"], 9)
    taken = client.connection.channels[1].outstanding.unacked.take_tagged_up_to(0)
    for most in (9, 10, 4, 1):
        some: sorting.Sorting = sorting.Abandoned(taken) if kind == "given back" else sorting.Refused(taken.entries)
        looks = 1
        while not some.look_at(most):
            looks += 1
        assert looks == -(-9 // most)
        assert [int(entry.message.body()) for entry in some.in_order()] == [1, 3, 5, 7, 0, 2, 4, 6, 8]


LETTERS: dict[str, object] = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}


def rejected(core: Core, client: CoreClient) -> list[str]:
    """All that is outstanding, as it becomes dead letters."""
    client.send("basic.nack", delivery_tag=0, multiple=True, requeue=False)
    core.settle()
    return core.client().drain("dead")


def test_of_several_queues_that_of_the_first_name_has_its_messages_rejected_first(core: Core) -> None:
    client = core.client()
    client.declare("dead")
    for queue, bodies in (("b", ("b1", "b2")), ("a", ("a1", "a2"))):
        client.declare(queue, arguments=LETTERS)
        client.fill(queue, *bodies)
    assert [client.get(queue) for queue in "baba"] == ["b1", "a1", "b2", "a2"]
    assert rejected(core, client) == ["a1", "a2", "b1", "b2"]


def test_what_was_got_is_rejected_before_what_consumers_of_its_queue_hold(core: Core) -> None:
    client = core.client()
    client.declare("dead")
    client.declare("q", arguments=LETTERS)
    client.fill("q", "consumed", "got", "got too")
    client.consume("q", prefetch=1)
    client.take()
    assert [client.get("q"), client.get("q")] == ["got", "got too"]
    assert rejected(core, client) == ["got", "got too", "consumed"]
