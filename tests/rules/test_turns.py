"""Whose turn it is: fairness, prefetch, priorities, exclusive and single active consumers."""

from __future__ import annotations

from collections import Counter

import pytest

from warrenmq.testing.core import Core
from warrenmq.testing.core_client import CoreClient
from warrenmq.wire.content import Properties

pytestmark = pytest.mark.pure


@pytest.fixture
def client(core: Core) -> CoreClient:
    client = core.client()
    client.call("queue.declare", queue="q")
    return client


def by_tag(client: CoreClient) -> list[str]:
    return [str(got["consumer_tag"]) for got in client.deliveries()]


def test_three_consumers_take_turns(client: CoreClient) -> None:
    for tag in "abc":
        client.consume("q", tag, no_ack=True)
    for n in range(9):
        client.fill("q", str(n))
    assert by_tag(client) == list("abcabcabc")


def test_a_burst_is_shared_fairly_too(client: CoreClient) -> None:
    client.fill("q", *map(str, range(300)))
    client.call("basic.qos", prefetch_count=0)
    for tag in "abc":
        client.open(ord(tag))
    client.consume("q", "a", no_ack=True)
    client.take()
    for tag in "bc":
        client.consume("q", tag, no_ack=True)
    for n in range(300):
        client.fill("q", str(n))
    assert Counter(by_tag(client)) == {"a": 100, "b": 100, "c": 100}


def test_a_consumer_that_is_full_is_passed_over_and_joins_again(client: CoreClient) -> None:
    client.consume("q", "busy", prefetch=1)
    client.consume("q", "free", prefetch=100)
    client.fill("q", *"123456")
    assert Counter(by_tag(client)) == {"busy": 1, "free": 5}
    client.send("basic.ack", delivery_tag=1)
    client.fill("q", *"78")
    assert sorted(by_tag(client)) == ["busy", "free"]


def test_messages_are_delivered_in_the_order_they_were_published(client: CoreClient) -> None:
    client.consume("q", no_ack=True)
    client.fill("q", *map(str, range(50)))
    assert client.delivered() == [str(n) for n in range(50)]


# -- prefetch ------------------------------------------------------------------------------------------------------


def test_prefetch_bounds_what_a_consumer_holds_and_acks_let_more_through(core: Core, client: CoreClient) -> None:
    client.fill("q", *"abcde")
    client.consume("q", prefetch=2)
    assert client.delivered() == ["a", "b"]
    client.send("basic.ack", delivery_tag=1)
    assert client.delivered() == ["c"]
    client.send("basic.ack", delivery_tag=3, multiple=True)
    assert client.delivered() == ["d", "e"]


def test_prefetch_is_each_consumers_own_and_fixed_when_it_starts(client: CoreClient) -> None:
    client.fill("q", *"abcdefgh")
    client.consume("q", "one", prefetch=1)
    client.consume("q", "three", prefetch=3)
    assert Counter(by_tag(client)) == {"one": 1, "three": 3}
    client.call("basic.qos", prefetch_count=0)
    client.take()
    client.send("basic.ack", delivery_tag=1)
    assert by_tag(client) == ["one"]


def test_a_global_prefetch_is_shared_by_the_channel_and_both_limits_apply(client: CoreClient) -> None:
    client.fill("q", *"abcdefgh")
    client.call("basic.qos", prefetch_count=2)
    client.call("basic.qos", prefetch_count=3, **{"global": True})
    client.consume("q", "one")
    client.consume("q", "two")
    assert len(by_tag(client)) == 3
    client.send("basic.ack", delivery_tag=1)
    assert len(by_tag(client)) == 1


def test_a_prefetch_for_each_consumer_lifts_the_global_one(client: CoreClient) -> None:
    """As RabbitMQ 3.10 does, whichever number is given."""
    client.fill("q", *"abcd")
    client.call("basic.qos", prefetch_count=1, **{"global": True})
    client.call("basic.consume", queue="q", consumer_tag="t")
    assert by_tag(client) == ["t"]
    client.send("basic.qos", prefetch_count=2)
    assert by_tag(client) == ["t"] * 3


def test_raising_the_global_prefetch_lets_more_through_at_once(client: CoreClient) -> None:
    client.fill("q", *"abcd")
    client.call("basic.qos", prefetch_count=1, **{"global": True})
    client.consume("q")
    assert client.delivered() == ["a"]
    client.send("basic.qos", prefetch_count=3, **{"global": True})
    assert client.delivered() == ["b", "c"]


def test_prefetch_counts_neither_automatic_acks_nor_gets(client: CoreClient) -> None:
    client.fill("q", *"abcdef")
    client.call("basic.qos", prefetch_count=1)
    client.get("q")
    client.get("q")
    client.consume("q", no_ack=True)
    assert client.delivered() == ["c", "d", "e", "f"]


def test_a_prefetch_size_is_not_implemented(client: CoreClient) -> None:
    client.send("basic.qos", prefetch_size=7)
    assert client.closing() == "540 NOT_IMPLEMENTED - prefetch_size!=0 (7)"


# -- priorities ----------------------------------------------------------------------------------------------------


def test_the_higher_priority_is_served_while_it_can_take_more(client: CoreClient) -> None:
    client.consume("q", "low", prefetch=10)
    client.consume("q", "high", prefetch=2, arguments={"x-priority": 5})
    client.fill("q", *"abcd")
    assert by_tag(client) == ["high", "high", "low", "low"]
    client.send("basic.ack", delivery_tag=1)
    client.fill("q", "e", "f")
    assert by_tag(client) == ["high", "low"]


def test_equal_priorities_take_turns(client: CoreClient) -> None:
    for tag, priority in (("x", 1), ("y", 1), ("z", -1)):
        client.consume("q", tag, no_ack=True, arguments={"x-priority": priority})
    client.fill("q", *"abcd")
    assert by_tag(client) == ["x", "y", "x", "y"]


# -- exclusive and single active -----------------------------------------------------------------------------------


def test_an_exclusive_consumer_keeps_others_out_until_it_leaves(core: Core, client: CoreClient) -> None:
    client.consume("q", exclusive=True)
    other = core.client()
    other.send("basic.consume", queue="q")
    assert other.closing() == "403 ACCESS_REFUSED - queue 'q' in vhost '/' in exclusive use"
    client.call("basic.cancel", consumer_tag="c")
    other = core.client()
    assert other.call("basic.consume", queue="q").name == "basic.consume-ok"


def test_nobody_becomes_exclusive_where_somebody_is(core: Core, client: CoreClient) -> None:
    client.consume("q")
    other = core.client()
    other.send("basic.consume", queue="q", exclusive=True)
    assert other.closing() == "403 ACCESS_REFUSED - queue 'q' in vhost '/' in exclusive use"


@pytest.fixture
def single(client: CoreClient) -> CoreClient:
    client.call("queue.declare", queue="single", arguments={"x-single-active-consumer": True})
    return client


@pytest.mark.parametrize("end", ["cancel", "channel", "connection"])
def test_the_next_takes_over_when_the_single_active_consumer_leaves(core: Core, single: CoreClient, end: str) -> None:
    second, third = core.client(), core.client()
    single.consume("single", "first", no_ack=True)
    second.consume("single", "second", no_ack=True)
    third.consume("single", "third", no_ack=True)
    single.fill("single", *"abc")
    assert single.delivered() == ["a", "b", "c"]
    if end == "cancel":
        single.call("basic.cancel", consumer_tag="first")
    elif end == "channel":
        single.call("channel.close")
    else:
        single.send("connection.close", 0, reply_code=200)
    third.fill("single", *"def")
    second._collect()
    assert second.delivered() == ["d", "e", "f"] and third.delivered() == []


def test_the_first_is_active_whatever_its_priority_and_the_highest_inherits(core: Core, single: CoreClient) -> None:
    others = {}
    single.consume("single", "first", no_ack=True, arguments={"x-priority": -1})
    for tag, priority in (("low", 1), ("high", 9)):
        others[tag] = core.client()
        others[tag].consume("single", tag, no_ack=True, arguments={"x-priority": priority})
    single.fill("single", "a")
    assert single.delivered() == ["a"]
    single.call("basic.cancel", consumer_tag="first")
    single.fill("single", "b")
    others["high"]._collect()
    assert others["high"].delivered() == ["b"]


def test_what_the_old_active_one_holds_stays_with_it_until_its_channel_goes(core: Core, single: CoreClient) -> None:
    heir = core.client()
    single.consume("single", "first")
    heir.consume("single", "second")
    single.fill("single", "held")
    single.take()
    single.call("basic.cancel", consumer_tag="first")
    single.fill("single", "next")
    heir._collect()
    assert heir.delivered() == ["next"]
    single.call("channel.close")
    heir._collect()
    assert heir.delivered() == ["held*"]


def test_a_single_active_queue_has_no_exclusive_consumer(single: CoreClient) -> None:
    single.send("basic.consume", queue="single", exclusive=True)
    assert single.closing() == "403 ACCESS_REFUSED - queue 'single' in vhost '/' in exclusive use"


# -- cancelling ----------------------------------------------------------------------------------------------------


def test_nothing_is_delivered_behind_cancel_ok_and_what_was_stays_outstanding(core: Core, client: CoreClient) -> None:
    client.consume("q")
    client.fill("q", "a")
    client.take()
    assert client.call("basic.cancel", consumer_tag="c").name == "basic.cancel-ok"
    client.take()
    client.fill("q", "b")
    assert client.story() == [] and core.queue("q").unacked == 1
    client.send("basic.ack", delivery_tag=1)
    assert client.story() == [] and core.queue("q").unacked == 0


def test_cancelling_a_tag_nobody_has_is_answered_too(client: CoreClient) -> None:
    assert client.call("basic.cancel", consumer_tag="nobody")["consumer_tag"] == "nobody"


def test_consumers_are_told_when_their_queue_goes_if_they_understand(core: Core, client: CoreClient) -> None:
    understands, does_not = core.client(), core.client(consumer_cancel_notify=False)
    for other in (understands, does_not):
        other.consume("q", "t")
    client.call("queue.delete", queue="q")
    understands._collect()
    does_not._collect()
    [cancel] = understands.take()
    assert cancel.name == "basic.cancel" and cancel["consumer_tag"] == "t" and cancel["nowait"] is True
    assert does_not.take() == []


def test_a_reused_consumer_tag_ends_the_connection(client: CoreClient) -> None:
    client.consume("q", "t")
    client.send("basic.consume", queue="q", consumer_tag="t")
    assert client.closing() == "530 NOT_ALLOWED - attempt to reuse consumer tag 't'"


def test_consume_ok_precedes_the_first_delivery(client: CoreClient) -> None:
    client.fill("q", "a")
    client.take()
    client.send("basic.consume", queue="q")
    assert client.story() == ["basic.consume-ok", "basic.deliver"]


def test_an_auto_delete_queue_goes_with_its_last_consumer_and_not_before_the_first(
    core: Core, client: CoreClient
) -> None:
    client.call("queue.declare", queue="auto", auto_delete=True)
    core.advance(100_000)
    assert "auto" in core.broker.vhosts["/"].queues
    client.consume("auto", "one")
    client.consume("auto", "two")
    client.call("basic.cancel", consumer_tag="one")
    assert "auto" in core.broker.vhosts["/"].queues
    client.call("basic.cancel", consumer_tag="two")
    assert "auto" not in core.broker.vhosts["/"].queues


# -- acknowledgement timeout ---------------------------------------------------------------------------------------


def test_a_delivery_never_acknowledged_closes_its_channel_and_goes_back(core: Core, client: CoreClient) -> None:
    client.fill("q", "a")
    client.consume("q")
    client.take()
    core.advance(1_800_000)
    client._collect()
    assert client.take() == []
    core.advance(60_000)
    client._collect()
    assert client.closing() == (
        "406 PRECONDITION_FAILED - delivery acknowledgement on channel 1 timed out. Timeout value used: 1800000 ms. "
        "This timeout value can be configured, see consumers doc guide to learn more"
    )
    assert core.client().drain("q") == ["a"]


def test_the_timeout_counts_from_the_oldest_delivery_that_is_outstanding(core: Core, client: CoreClient) -> None:
    client.consume("q")
    for n in range(40):
        client.fill("q", str(n))
        core.advance(60_000)
        if n:
            client.send("basic.ack", delivery_tag=n)
    assert "channel.close 406" not in client.story()


# -- direct reply-to -----------------------------------------------------------------------------------------------


def test_a_reply_goes_straight_to_the_channel_that_asked(core: Core, client: CoreClient) -> None:
    asker, answerer = core.client(), core.client()
    asker.consume("amq.rabbitmq.reply-to", "replies", no_ack=True)
    answerer.consume("q", "requests", no_ack=True)
    asker.publish("", "q", b"6*7?", Properties(reply_to="amq.rabbitmq.reply-to", correlation_id="1"))
    answerer._collect()
    [request] = answerer.take()
    assert request.properties is not None and request.properties.reply_to is not None
    assert request.properties.reply_to.startswith("amq.rabbitmq.reply-to.")
    answerer.publish("", request.properties.reply_to, b"42", Properties(correlation_id="1"))
    asker._collect()
    [reply] = asker.take()
    assert (reply.body, reply["consumer_tag"], reply["exchange"]) == (b"42", "replies", "")
    assert core.broker.vhosts["/"].queues.keys() == {"q"}
    probe = answerer.call("queue.declare", queue=request.properties.reply_to, passive=True)
    assert (probe["message_count"], probe["consumer_count"]) == (0, 1)
    asker.call("basic.cancel", consumer_tag="replies")
    assert answerer.call("queue.declare", queue=request.properties.reply_to, passive=True)["reply_code"] == 404


def test_direct_reply_to_has_its_rules(core: Core) -> None:
    client = core.client()
    client.publish("", "q", b"?", Properties(reply_to="amq.rabbitmq.reply-to"))
    assert client.closing() == "406 PRECONDITION_FAILED - fast reply consumer does not exist"
    client = core.client()
    client.send("basic.consume", queue="amq.rabbitmq.reply-to")
    assert client.closing() == "406 PRECONDITION_FAILED - reply consumer cannot acknowledge"
    client = core.client()
    client.consume("amq.rabbitmq.reply-to", "a", no_ack=True)
    client.send("basic.consume", queue="amq.rabbitmq.reply-to", consumer_tag="b", no_ack=True)
    assert client.closing() == "406 PRECONDITION_FAILED - reply consumer already set"
