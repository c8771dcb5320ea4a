"""How old what is in a queue is: fields of the queue, and metrics."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import web
from warrenmq.client import Channel, Connection, Properties
from warrenmq.testing import Broker

AUTH = ("guest", "guest")


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with Broker(clock="virtual", data_dir=tmp_path) as broker:
        yield broker


@pytest.fixture
def channel(broker: Broker) -> Channel:
    channel = Connection(broker.url).channel()
    channel.queue_declare("q", durable=True)
    channel.confirm_select()
    return channel


def publish(channel: Channel, count: int = 1) -> None:
    for _ in range(count):
        channel.basic_publish("", "q", b"x", Properties(delivery_mode=2))
    channel.wait_for_confirms(10)


def ages(broker: Broker) -> dict[str, Any]:
    one = web.get(f"{broker.http_url}/api/queues/%2F/q", auth=AUTH).json()["ages"]
    (listed,) = [each for each in web.get(f"{broker.http_url}/api/queues", auth=AUTH).json() if each["name"] == "q"]
    assert listed["ages"] == {name: value for name, value in one.items() if name != "time_in_queue"}
    return dict(one)


def metric(broker: Broker, name: str, where: str = "/metrics") -> float:
    text = web.get(f"{broker.http_url}{where}").text
    (line,) = [line for line in text.splitlines() if line.startswith(name + " ")]
    return float(line.rpartition(" ")[2])


def test_an_empty_queue_has_no_ages(broker: Broker, channel: Channel) -> None:
    shown = ages(broker)
    assert (shown["oldest_waiting_ms"], shown["oldest_held_ms"]) == (None, None)
    assert shown["time_in_queue"]["count"] == 0


def test_the_oldest_waiting_and_the_oldest_held_message_are_told(broker: Broker, channel: Channel) -> None:
    publish(channel)
    broker.advance(100)
    publish(channel, 2)
    broker.advance(20)
    assert 120_000 <= ages(broker)["oldest_waiting_ms"] <= 121_000
    channel.basic_get("q")
    broker.advance(10)
    shown = ages(broker)
    assert 30_000 <= shown["oldest_waiting_ms"] <= 31_000 and shown["oldest_held_ms"] == 10_000
    assert metric(broker, "warren_queue_oldest_held_seconds") == 10.0
    assert 30.0 <= metric(broker, "warren_queue_oldest_waiting_seconds") <= 31.0
    each = 'warren_queue_oldest_held_seconds{vhost="/",queue="q"}'
    assert metric(broker, each, "/metrics/per-object") == 10.0


def test_the_longest_held_is_found_on_any_channel_and_of_any_consumer(broker: Broker, channel: Channel) -> None:
    channel.queue_declare("other")
    publish(channel, 3)
    taking = [Connection(broker.url).channel() for _ in range(2)]
    taking[0].basic_consume("other")
    taking[0].basic_publish("", "other", b"", Properties())
    next(taking[0].messages(10))  # the first that this channel holds is another queue's
    broker.advance(5)
    for one in taking:
        one.basic_qos(1)
        one.basic_consume("q", consumer_tag="eater")
        next(one.messages(10))
        broker.advance(7)
    assert ages(broker)["oldest_held_ms"] == 14_000
    taking[0].basic_cancel("eater")
    broker.advance(1)
    assert ages(broker)["oldest_held_ms"] == 15_000


def test_a_lease_holds_from_when_it_was_given(broker: Broker, channel: Channel) -> None:
    publish(channel, 2)
    web.post(f"{broker.http_url}/api/queues/%2F/q/leases", json={"count": 1, "ttl_ms": 600_000}, auth=AUTH)
    broker.advance(40)
    assert ages(broker)["oldest_held_ms"] == 40_000


def test_how_long_messages_had_waited_when_they_were_handed_out_is_a_histogram(
    broker: Broker, channel: Channel
) -> None:
    publish(channel, 10)  # will have waited 130 s
    broker.advance(100)
    publish(channel, 5)  # 30 s
    broker.advance(30)
    taking = Connection(broker.url).channel()
    taking.basic_consume("q", no_ack=True)
    for _ in range(15):
        next(taking.messages(10))
    publish(channel, 3)  # not at all
    for _ in range(3):
        next(taking.messages(10))
    shown = ages(broker)["time_in_queue"]
    assert shown["count"] == 18
    assert [shown["le"][bound] for bound in ("1", "15", "60", "300", "86400")] == [3, 3, 8, 18, 18]
    assert 1_450_000 <= shown["sum_ms"] <= 1_470_000
    assert metric(broker, 'warren_queue_wait_seconds_bucket{le="60"}') == 8.0
    assert metric(broker, "warren_queue_wait_seconds_count") == 18.0
    each = 'warren_queue_wait_seconds_bucket{vhost="/",queue="q",le="300"}'
    assert metric(broker, each, "/metrics/per-object") == 18.0
    channel.queue_delete("q")
    assert metric(broker, "warren_queue_wait_seconds_count") == 18.0, "what a deleted queue counted stays counted"


def test_after_a_restart_the_oldest_is_as_old_as_is_known(broker: Broker, channel: Channel) -> None:
    publish(channel)
    broker.advance(1000)
    broker.restart()
    broker.advance(5)
    shown = ages(broker)
    assert shown["oldest_waiting_at_least"] is True and 5000 <= shown["oldest_waiting_ms"] < 900_000
