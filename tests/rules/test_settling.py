"""Deliveries that are settled in several turns: their order, what counts for how much, and who is served when."""

from __future__ import annotations

import pytest

from tests.limits.gate import advance
from tests.rules.test_slices import publish
from warrenmq.broker.channel.committing import ASK, PUBLISH
from warrenmq.broker.channel.settling import FEW, LOOK, READ
from warrenmq.broker.queue.paging import WINDOW
from warrenmq.broker.services.turn import SLICE
from warrenmq.testing.core import Core
from warrenmq.testing.core_client import CoreClient
from warrenmq.wire.methods import method_frame

pytestmark = pytest.mark.pure

HELD = FEW + 40
NACK = {"delivery_tag": 0, "multiple": True}


class Spending:
    """A transaction that leaves only so much of the turn in which it is committed."""

    def __init__(self, client: CoreClient, left: int) -> None:
        self.client = client
        count, more = divmod(SLICE - left, ASK + PUBLISH)
        client.open(2, "tx.select")
        client.open(3)
        client.declare("spent")
        client.call("basic.qos", channel=3, prefetch_count=more)
        client.call("basic.consume", channel=3, queue="spent", consumer_tag="s")
        for _ in range(more):
            client.publish("", "spent", b"", channel=1)
        one = client.published("", "spent", b"", channel=2)
        client.feed(one * count)
        client.take()

    def with_method(self, name: str, **values: object) -> None:
        """The commit, and a method on channel 1 in the same turn."""
        spent = method_frame(2, "tx.commit") + method_frame(3, "basic.ack", delivery_tag=0, multiple=True)
        self.client.feed(spent + method_frame(1, name, **values))


def consuming(client: CoreClient, queue: str, *tags: str) -> None:
    for tag in tags:
        client.call("basic.consume", queue=queue, consumer_tag=tag)


def until_settled(core: Core, name: str) -> None:
    for _ in range(100):
        if not core.queue(name).unacked:
            return
        advance(core, 1)
    raise AssertionError(f"{name} is never rid of what is outstanding")


# -- in order ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("looked_at", [0, LOOK * 3, HELD - LOOK, HELD], ids=["none", "some", "most", "all"])
def test_what_is_rejected_goes_consumer_by_consumer_however_many_turns_it_takes_to_put_it_in_order(
    core: Core, looked_at: int
) -> None:
    client = core.client()
    client.declare("dead")
    client.declare("q", arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"})
    consuming(client, "q", "b", "a")
    publish(client, "q", range(HELD))
    spending = Spending(client, looked_at // LOOK)
    spending.with_method("basic.nack", requeue=False, **NACK)
    assert (core.queue("q").unacked, core.ready("dead")) == (HELD, 0), "it was not to end in this turn"
    until_settled(core, "q")
    assert core.client().drain("dead") == [str(n) for n in (*range(1, HELD, 2), *range(0, HELD, 2))]


@pytest.mark.parametrize("looked_at", [LOOK * 3, HELD], ids=["some", "all"])
def test_what_a_quorum_queue_gets_back_in_several_turns_is_held_until_it_is_in_order(
    core: Core, looked_at: int
) -> None:
    client = core.client()
    client.declare("q", arguments={"x-queue-type": "quorum", "x-delivery-limit": 5})
    consuming(client, "q", "b", "a")
    publish(client, "q", range(HELD), delivery_mode=2)
    reader = core.client()
    reader.call("basic.consume", queue="q", no_ack=True)
    spending = Spending(client, looked_at // LOOK)
    spending.with_method("channel.close", reply_code=200, reply_text="", class_id=0, method_id=0)
    assert (core.queue("q").unacked, core.queue("q").ready) == (HELD, 0), "it was not to end in this turn"
    publish(reader, "q", range(HELD, HELD + 1), delivery_mode=2)
    assert reader.delivered() == [], "a newer one went out before those that come back"
    until_settled(core, "q")
    reader.feed(b"")
    back = [body for body in reader.delivered() if body != str(HELD)]
    assert back == [f"{n}*" for n in (*range(1, HELD, 2), *range(0, HELD, 2))]


# -- how much of a turn --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("left", [0, 1, 2, FEW])
def test_a_turn_takes_back_as_many_messages_from_memory_as_it_has_left(core: Core, left: int) -> None:
    client = core.client()
    client.declare("q")
    consuming(client, "q", "c")
    publish(client, "q", range(HELD))
    client.call("basic.cancel", consumer_tag="c")
    Spending(client, left).with_method("basic.nack", requeue=True, **NACK)
    assert core.ready("q") == left
    until_settled(core, "q")
    assert core.client().drain("q") == [str(n) for n in range(HELD)]


@pytest.mark.slices
def test_content_that_must_be_read_counts_for_each_four_kibibytes_of_it(core: Core) -> None:
    client = core.client()
    client.declare("q")
    consuming(client, "q", "c")
    publish(client, "q", range(WINDOW + 1), delivery_mode=2)
    for _ in range(HELD):
        client.publish("", "q", b"x" * 32768, delivery_mode=2)
    client.call("basic.cancel", consumer_tag="c")
    client.take()
    client.send("basic.ack", delivery_tag=WINDOW + 1, multiple=True)
    assert core.queue("q").unacked == HELD
    counts_for = READ + 8
    Spending(client, 3 * counts_for + 1).with_method("basic.nack", requeue=True, **NACK)
    assert core.ready("q") == 4
    until_settled(core, "q")
    assert core.ready("q") == HELD


# -- who is served when --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("left", [20, HELD + 1], ids=["two turns", "one turn"])
@pytest.mark.parametrize("method", ["basic.nack", "channel.close"])
def test_a_queue_that_gets_messages_back_serves_its_consumers_before_the_next_one_unless_the_channel_ends(
    core: Core, method: str, left: int
) -> None:
    """The letters of queue a show it: they are published when it has served its consumers."""
    client = core.client()
    client.declare("letters", durable=False)
    client.declare("b")
    dead = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "letters"}
    client.declare("a", arguments={"x-queue-type": "quorum", "x-delivery-limit": 0, **dead})
    consuming(client, "b", "of b")
    consuming(client, "a", "of a")
    client.fill("b", "b")
    publish(client, "a", range(HELD), delivery_mode=2)
    for tag in ("of a", "of b"):
        client.call("basic.cancel", consumer_tag=tag)
    reader = core.client()
    for queue in ("b", "letters"):
        reader.call("basic.consume", queue=queue, no_ack=True)
    values = {"requeue": True, **NACK} if method == "basic.nack" else {"reply_code": 200, "reply_text": ""}
    Spending(client, left).with_method(method, **values)
    until_settled(core, "a")
    reader.feed(b"")
    found = [got.body.decode() for got in reader.deliveries()]
    before = HELD if method == "basic.nack" else 0 if left > HELD else left - 1  # letters, of the first turn or of all
    expected = [str(n) for n in range(HELD)]
    assert found == [*expected[:before], "b", *expected[before:]]
