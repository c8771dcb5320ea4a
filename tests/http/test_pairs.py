"""Who publishes where and who takes from what, in figures: of one queue, exchange, channel."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from tests.http.conftest import Api
from tests.http.test_rates import Looking
from tests.support import web
from warrenmq.client import Channel, Connection, Properties
from warrenmq.testing import Broker
from warrenmq.wire.fields import from_python

pytestmark = pytest.mark.pure

PERSISTENT = Properties(delivery_mode=2)


@pytest.fixture
def api() -> Iterator[Api]:
    """A broker for each test: what it counts is its own."""
    with Broker(clock="virtual") as broker, web.Client() as client:
        yield Api(broker, client)


@pytest.fixture
def connection(api: Api) -> Iterator[Connection]:
    with Connection(api.broker.url) as connected:
        yield connected


def stats(rows: list[dict[str, Any]]) -> dict[Any, dict[str, int]]:
    """What each pair counted, without rates and what never happened, by the name or number of the other one."""
    found = {}
    for row in rows:
        other = next(iter(row.values()))
        counted = {name: n for name, n in row["stats"].items() if not name.endswith("_details") and n}
        found[other.get("number", other["name"])] = counted
    return found


def of_queue(api: Api, name: str) -> tuple[dict[Any, dict[str, int]], dict[Any, dict[str, int]]]:
    shown = api.get(f"/queues/%2F/{name}")
    return stats(shown["incoming"]), stats(shown["deliveries"])


def of_exchange(api: Api, name: str) -> tuple[dict[Any, dict[str, int]], dict[Any, dict[str, int]]]:
    shown = api.get(f"/exchanges/%2F/{name}")
    return stats(shown["incoming"]), stats(shown["outgoing"])


def of_channel(api: Api, channel: Channel) -> dict[str, Any]:
    [name] = [one["name"] for one in api.get("/channels") if one["number"] == channel.number]
    shown: dict[str, Any] = api.get(f"/channels/{name}")
    return shown


def settled(channel: Channel) -> None:
    channel.queue_declare("settled")


def test_one_who_publishes_to_one_exchange_after_the_other_is_counted_at_each(api: Api, connection: Connection) -> None:
    channel = connection.channel()
    for name in ("x", "y"):
        channel.exchange_declare(name, "fanout")
        channel.queue_declare("q")
        channel.queue_bind("q", name)
    channel.queue_declare("other")
    channel.queue_bind("other", "y")
    for exchange in ("x", "y", "", "x", "x", "y"):
        channel.basic_publish(exchange, "q", b"")
    channel.basic_publish("x", "", b"", mandatory=True)
    channel.basic_publish("", "nowhere", b"", mandatory=True)
    channel.basic_publish("y", "q", b"")
    channel.basic_publish("", "nowhere", b"")
    settled(channel)
    shown = of_channel(api, channel)
    assert stats(shown["publishes"]) == {
        "": {"publish": 3, "return_unroutable": 1, "drop_unroutable": 1},
        "x": {"publish": 4},
        "y": {"publish": 3},
    }
    assert of_queue(api, "q")[0] == {"": {"publish": 1}, "x": {"publish": 4}, "y": {"publish": 3}}
    assert of_exchange(api, "y") == (
        {channel.number: {"publish": 3}},
        {"other": {"publish": 3}, "q": {"publish": 3}},
    )
    whole = api.get("/queues/%2F/q")["message_stats"]["publish"]
    assert whole == sum(one["publish"] for one in of_queue(api, "q")[0].values())


def test_confirms_are_counted_at_the_exchange_whose_publish_they_are_of(api: Api, connection: Connection) -> None:
    """Some wait for the disk, some do not, and some come before confirms are asked for."""
    channel = connection.channel()
    channel.queue_declare("durable", durable=True)
    channel.queue_declare("transient")
    channel.exchange_declare("d", "fanout")
    channel.queue_bind("durable", "d")
    channel.exchange_declare("t", "fanout")
    channel.queue_bind("transient", "t")
    for name in ("d", "d", "t"):
        channel.basic_publish(name, "", b"", PERSISTENT)
    channel.confirm_select()
    for name, times in (("t", 1), ("d", 5), ("t", 3), ("", 2), ("d", 1), ("t", 1)):
        for _ in range(times):
            channel.basic_publish(name, "durable", b"", PERSISTENT)
    channel.wait_for_confirms()
    told = of_channel(api, channel)
    assert stats(told["publishes"]) == {
        "": {"publish": 2, "confirm": 2},
        "d": {"publish": 8, "confirm": 6},
        "t": {"publish": 6, "confirm": 5},
    }
    assert told["message_stats"]["confirm"] == 13


def test_very_many_turns_from_one_exchange_to_another_are_forgotten_when_confirmed(
    api: Api, connection: Connection
) -> None:
    channel = connection.channel()
    channel.exchange_declare("x", "fanout")
    channel.confirm_select()
    for exchange in itertools.islice(itertools.cycle(["x", ""]), 2000):
        channel.basic_publish(exchange, "", b"")
    channel.wait_for_confirms()
    for exchange in ("x", "", "x"):
        channel.basic_publish(exchange, "", b"")
    channel.wait_for_confirms()
    told = stats(of_channel(api, channel)["publishes"])
    assert told == {
        "": {"publish": 1001, "confirm": 1001, "drop_unroutable": 1001},
        "x": {"publish": 1002, "confirm": 1002, "drop_unroutable": 1002},
    }
    [inside] = [one for one in api.broker.server.broker.connections if channel.number in one.channels]
    assert len(inside.channels[channel.number].publishing.confirms.runs) < 300


def test_what_was_taken_is_counted_by_channel_and_queue_and_goes_with_either(api: Api, connection: Connection) -> None:
    taking, other = connection.channel(), connection.channel()
    for name in ("q", "r"):
        taking.queue_declare(name)
        for _ in range(6):
            taking.basic_publish("", name, b"")
    got = [taking.basic_get("q") for _ in range(3)]
    assert got[2] is not None and got[0] is not None
    taking.basic_nack(got[2].delivery_tag, requeue=True)
    taking.basic_ack(got[0].delivery_tag)
    taking.basic_get("r", no_ack=True)
    other.basic_get("q", no_ack=True)
    consumer = other.basic_consume("r")
    deliveries = [other.next_message(5) for _ in range(5)]
    assert deliveries[-1] is not None and deliveries[0] is not None
    other.basic_cancel(consumer)
    other.basic_ack(deliveries[0].delivery_tag)
    settled(other)
    assert of_queue(api, "q")[1] == {
        taking.number: {"get": 3, "deliver_get": 3, "ack": 1},
        other.number: {"get_no_ack": 1, "deliver_get": 1, "redeliver": 1},
    }
    before = of_channel(api, other)
    assert stats(before["deliveries"]) == {
        "q": {"get_no_ack": 1, "deliver_get": 1, "redeliver": 1},
        "r": {"deliver": 5, "deliver_get": 5, "ack": 1},
    }
    taking.queue_delete("r")
    other.basic_ack(deliveries[-1].delivery_tag, multiple=True)  # of a queue that is gone
    settled(other)
    after = of_channel(api, other)
    assert stats(after["deliveries"]) == {"q": {"get_no_ack": 1, "deliver_get": 1, "redeliver": 1}}
    counted = after["message_stats"]
    assert counted["deliver"] == 5 and counted["ack"] == 5 and counted["get_no_ack"] == 1  # the channel keeps it
    taking.close()
    assert of_queue(api, "q")[1] == {other.number: {"get_no_ack": 1, "deliver_get": 1, "redeliver": 1}}


def test_an_exchange_or_a_queue_of_the_name_of_one_that_is_gone_begins_anew(api: Api, connection: Connection) -> None:
    channel = connection.channel()
    channel.queue_declare("q")
    for times in (3, 2):
        channel.exchange_declare("x", "fanout")
        channel.queue_bind("q", "x")
        for _ in range(times):
            channel.basic_publish("x", "", b"")
        settled(channel)
        assert of_queue(api, "q")[0] == {"x": {"publish": times}}
        assert of_exchange(api, "x") == ({channel.number: {"publish": times}}, {"q": {"publish": times}})
        channel.exchange_delete("x")
        assert of_queue(api, "q")[0] == {}
        assert stats(of_channel(api, channel)["publishes"]) == {}
    assert api.get("/queues/%2F/q")["message_stats"]["publish"] == 5
    channel.queue_delete("q")
    channel.queue_declare("q")
    assert of_queue(api, "q") == ({}, {})


def test_what_comes_inside_the_broker_belongs_to_no_exchange(api: Api, connection: Connection) -> None:
    channel = connection.channel()
    channel.queue_declare("dead")
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead", "x-max-length": 1}
    channel.queue_declare("short", arguments=arguments)
    for key in ("short", "short", "dead", "short"):
        channel.basic_publish("", key, b"")
    settled(channel)
    assert api.get("/queues/%2F/dead")["messages"] == 3
    assert of_exchange(api, "amq.default")[1] == {"dead": {"publish": 1}, "short": {"publish": 3}}


def test_what_some_of_several_queues_refuse_is_counted_at_all_of_them(api: Api, connection: Connection) -> None:
    """As in their own figures, where RabbitMQ counts what was meant for them."""
    channel = connection.channel()
    channel.exchange_declare("x", "fanout")
    for name, arguments in (("a", {}), ("b", {"x-max-length": 1, "x-overflow": "reject-publish"}), ("c", {})):
        channel.queue_declare(name, arguments=arguments)
        channel.queue_bind(name, "x")
        channel.basic_publish("", name, b"")  # b is full
    for _ in range(2):
        channel.basic_publish("x", "", b"")
        channel.basic_publish("", "c", b"")
    settled(channel)
    assert [api.get(f"/queues/%2F/{name}")["messages"] for name in "abc"] == [3, 1, 5]
    assert of_exchange(api, "x")[1] == {name: {"publish": 2} for name in "abc"}
    assert of_exchange(api, "amq.default")[1] == {"a": {"publish": 1}, "b": {"publish": 1}, "c": {"publish": 3}}


def test_what_was_delayed_is_counted_when_it_is_due(api: Api, connection: Connection) -> None:
    channel = connection.channel()
    channel.exchange_declare("later", "x-delayed-message", arguments={"x-delayed-type": "fanout"})
    channel.queue_declare("q")
    channel.queue_bind("q", "later")
    channel.basic_publish("later", "", b"", Properties(headers=from_python({"x-delay": 1000})))
    channel.basic_publish("", "q", b"")
    settled(channel)
    assert of_queue(api, "q")[0] == {"": {"publish": 1}}
    assert of_exchange(api, "later") == ({channel.number: {"publish": 1}}, {})
    api.broker.advance(2)
    assert of_queue(api, "q")[0] == {"": {"publish": 1}, "later": {"publish": 1}}
    assert stats(of_channel(api, channel)["publishes"]) == of_queue(api, "q")[0]


def test_a_transaction_counts_when_it_commits(api: Api, connection: Connection) -> None:
    channel = connection.channel()
    channel.queue_declare("q")
    channel.exchange_declare("x", "fanout")
    channel.queue_bind("q", "x")
    channel.tx_select()
    for exchange in ("x", "", "x"):
        channel.basic_publish(exchange, "q", b"")
    settled(channel)
    assert of_queue(api, "q")[0] == {}
    channel.tx_commit()
    assert of_queue(api, "q")[0] == {"": {"publish": 1}, "x": {"publish": 2}}
    assert stats(of_channel(api, channel)["publishes"]) == of_queue(api, "q")[0]


def rate(rows: list[dict[str, Any]], name: str) -> dict[Any, float]:
    return {next(iter(row.values()))["name"]: row["stats"][f"{name}_details"]["rate"] for row in rows}


def test_a_pair_has_its_rate_and_its_past_whether_it_is_the_only_one_or_not(api: Api, connection: Connection) -> None:
    """Also at the very sample at which another one comes."""
    looking = Looking(api)
    channel = connection.channel()
    channel.queue_declare("q")
    channel.exchange_declare("x", "fanout")
    channel.queue_bind("q", "x")

    def lived(*exchanges: str) -> tuple[dict[Any, float], dict[Any, float], list[list[int]]]:
        for exchange in exchanges:
            channel.basic_publish(exchange, "q", b"")
        settled(channel)
        looking.look()
        queue = api.get("/queues/%2F/q?msg_rates_age=10&msg_rates_incr=5")
        past = [[one["sample"] for one in row["stats"]["publish_details"]["samples"]] for row in queue["incoming"]]
        shown = rate(api.get("/queues/%2F/q")["incoming"], "publish")
        return shown, rate(of_channel(api, channel)["publishes"], "publish"), past

    lived(*["x"] * 5)
    assert lived(*["x"] * 10) == ({"x": 2.0}, {"x": 2.0}, [[15, 5, 0]])
    shown = {"": 1.0, "x": 3.0}
    assert lived(*["x"] * 15, *[""] * 5) == (shown, shown, [[5, 0, 0], [30, 15, 0]])
    shown = {"": 0.0, "x": 1.0}
    assert lived(*["x"] * 5) == (shown, shown, [[5, 5, 0], [35, 30, 15]])


def test_rates_of_what_several_channels_take_and_one_channel_takes_from_several(
    api: Api, connection: Connection
) -> None:
    looking = Looking(api)
    one, two = connection.channel(), connection.channel()
    for name in ("q", "r"):
        one.queue_declare(name)
        for _ in range(60):
            one.basic_publish("", name, b"")
    settled(one)
    for channel, takes in ((one, (("q", 5),)), (one, (("q", 10), ("r", 5))), (two, (("q", 20),))):
        for name, count in takes:
            for _ in range(count):
                channel.basic_get(name, no_ack=True)
        looking.look()
        if channel is one and len(takes) == 2:
            assert rate(of_channel(api, one)["deliveries"], "deliver_get") == {"q": 2.0, "r": 1.0}
    taken = rate(
        [
            {"channel": {"name": row["channel_details"]["number"]}, "stats": row["stats"]}
            for row in api.get("/queues/%2F/q")["deliveries"]
        ],
        "get_no_ack",
    )
    assert taken == {one.number: 0.0, two.number: 4.0}


def test_only_the_wanted_columns_are_told(api: Api, connection: Connection) -> None:
    channel = connection.channel()
    channel.queue_declare("q")
    channel.basic_publish("", "q", b"")
    settled(channel)
    assert list(api.get("/queues/%2F/q?columns=incoming,name")) == ["name", "incoming"]
    assert list(api.get("/queues/%2F/q?columns=name")) == ["name"]
    assert list(api.get("/exchanges/%2F/amq.default?columns=outgoing")) == ["outgoing"]
