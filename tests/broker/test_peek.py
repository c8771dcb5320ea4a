"""Peeking: what waits in a queue can be looked at by position, again and again, and nothing about it changes."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import web
from warrenmq.client import Channel, Connection, Properties
from warrenmq.testing import Broker


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with Broker(clock="virtual", data_dir=tmp_path) as broker:
        yield broker


def opened(broker: Broker, **arguments: object) -> Channel:
    channel = Connection(broker.url).channel()
    channel.queue_declare("q", durable=True, arguments=arguments)
    channel.confirm_select()
    return channel


def publish(channel: Channel, *bodies: str, mode: int = 2, **properties: Any) -> None:
    for body in bodies:
        channel.basic_publish("", "q", body.encode(), Properties(delivery_mode=mode, **properties))
    channel.wait_for_confirms(10)


def look(broker: Broker, **query: Any) -> dict[str, Any]:
    answer = web.get(f"{broker.http_url}/api/queues/%2F/q/peek", params=query, auth=("guest", "guest"))
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def payloads(broker: Broker, **query: Any) -> list[str]:
    return [item["payload"] for item in look(broker, **query)["items"]]


def raw(broker: Broker, **query: Any) -> list[tuple[int, bool, bytes, bytes, bytes]]:
    """Position, redelivered, exchange, key and body of all in the range, and the mark at the end."""
    answer = web.get(
        f"{broker.http_url}/api/queues/%2F/q/peek",
        params=query,
        auth=("guest", "guest"),
        headers={"accept": "application/octet-stream"},
    )
    data, at = answer.content, 0
    found: list[Any] = []
    while True:
        (position,) = struct.unpack_from(">q", data, at)
        at += 8
        if position < 0:
            assert at == len(data)
            return found
        flags = data[at]
        size = data[at + 1]
        exchange = data[at + 2 : at + 2 + size]
        at += 2 + size
        key = data[at + 1 : at + 1 + data[at]]
        at += 1 + data[at]
        (size,) = struct.unpack_from(">I", data, at)
        at += 4 + size
        (size,) = struct.unpack_from(">Q", data, at)
        found.append((position, bool(flags & 1), exchange, key, data[at + 8 : at + 8 + size]))
        at += 8 + size


def test_looking_takes_marks_and_holds_nothing(broker: Broker) -> None:
    channel = opened(broker)
    publish(channel, "a", "b", "c", message_id="m")
    first = look(broker)
    assert [item["payload"] for item in first["items"]] == ["a", "b", "c"]
    assert first["messages"] == 3 and first["items"][0]["properties"]["message_id"] == "m"
    assert look(broker) == first and raw(broker) == raw(broker)
    for body in (b"a", b"b", b"c"):
        message = channel.basic_get("q", no_ack=True)
        assert message is not None and message.body == body and not message.redelivered
    assert payloads(broker) == []


def test_a_range_fixed_once_does_not_see_what_comes_later_and_misses_what_was_taken(broker: Broker) -> None:
    channel = opened(broker)
    publish(channel, *"abcdef")
    planned = look(broker, count=0)
    assert planned["items"] == [] and planned["messages"] == 6
    publish(channel, "later")
    channel.basic_get("q", no_ack=True)
    chosen = {"first": planned["first"], "end": planned["end"]}
    assert payloads(broker, **chosen) == list("bcdef")
    assert [body for *_, body in raw(broker, **chosen)] == [b"b", b"c", b"d", b"e", b"f"]
    assert payloads(broker, first=planned["end"]) == ["later"]
    half = (planned["first"] + planned["end"]) // 2
    left, right = payloads(broker, first=planned["first"], end=half), payloads(broker, first=half, end=planned["end"])
    assert left + right == list("bcdef")


def test_what_comes_back_is_seen_at_its_own_place_and_what_is_held_is_no_part_of_a_range(broker: Broker) -> None:
    channel = opened(broker)
    publish(channel, *"abcd")
    held = [channel.basic_get("q") for _ in range(3)]
    assert payloads(broker, state="waiting") == ["d"]
    assert held[1] is not None
    channel.basic_nack(held[1].delivery_tag, requeue=True)
    broker.settle()
    assert [(key[4], key[1]) for key in raw(broker)] == [(b"b", True), (b"d", False)]


def test_pages_follow_one_another(broker: Broker) -> None:
    channel = opened(broker)
    publish(channel, *[str(number) for number in range(25)])
    seen: list[str] = []
    page = look(broker, count=10)
    while True:
        seen += [item["payload"] for item in page["items"]]
        if page["next"] >= page["end"]:
            break
        page = look(broker, count=10, first=page["next"], end=page["end"])
    assert seen == [str(number) for number in range(25)]


@pytest.mark.parametrize("mode", [1, 2], ids=["transient", "persistent"])
@pytest.mark.parametrize("priorities", [0, 3])
def test_a_long_queue_is_seen_whole_wherever_its_messages_are(broker: Broker, mode: int, priorities: int) -> None:
    """Beyond the window they are pages, in the log or in the transient store."""
    arguments = {"x-max-priority": priorities} if priorities else {}
    channel = opened(broker, **arguments)
    for number in range(9000):
        properties = Properties(delivery_mode=mode, priority=number % (priorities + 1))
        channel.basic_publish("", "q", b"%d" % number, properties)
    channel.wait_for_confirms(60)
    assert sorted(int(body) for *_, body in raw(broker)) == list(range(9000))
    positions = [position for position, *_ in raw(broker)]
    assert positions == sorted(positions)
    before = raw(broker)[-3000:]
    assert raw(broker, first=before[0][0]) == before
    assert channel.queue_declare("q", passive=True).int("message_count") == 9000


def test_positions_are_the_same_after_a_restart(broker: Broker) -> None:
    channel = opened(broker)
    publish(channel, *"abc")
    publish(channel, "x", mode=1)
    before = raw(broker)[:3]
    broker.restart()
    assert [(place, body) for place, _, _, _, body in raw(broker)] == [(place, body) for place, _, _, _, body in before]


def test_what_has_expired_is_not_shown(broker: Broker) -> None:
    channel = opened(broker)
    publish(channel, "stays")
    publish(channel, "goes", expiration="1000")
    publish(channel, "stays too")
    broker.advance(2)
    assert payloads(broker) == ["stays", "stays too"]


def test_large_bodies_are_cut_short_for_people_and_whole_for_programs(broker: Broker) -> None:
    channel = opened(broker)
    publish(channel, "x" * 6_000_000, "y" * 6_000_000, "z")
    assert [len(payload) for payload in payloads(broker)] == [50_000, 50_000, 1]
    assert [item["payload_bytes"] for item in look(broker, truncate=3)["items"]] == [6_000_000, 6_000_000, 1]
    assert [len(body) for *_, body in raw(broker)] == [6_000_000, 6_000_000, 1]


def test_octets_that_are_no_text_can_be_looked_at(broker: Broker) -> None:
    channel = opened(broker)
    channel.exchange_declare("x", "fanout")
    channel.queue_bind("q", "x", "")
    channel.basic_publish("x", "k\udcff", b"\xff", Properties(app_id="\udcfe"))
    channel.wait_for_confirms(10)
    (item,) = look(broker)["items"]
    assert (item["routing_key"], item["payload"], item["payload_encoding"]) == ("k\ufffd", "/w==", "base64")
    assert raw(broker)[0][2:] == (b"x", b"k\xff", b"\xff")


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ({"first": "-1"}, "first"),
        ({"count": "1001"}, "count"),
        ({"end": "soon"}, "end"),
        ({"encoding": "x"}, "encoding"),
    ],
)
def test_a_wrong_question_is_told_so(broker: Broker, query: dict[str, str], said: str) -> None:
    opened(broker)
    answer = web.get(f"{broker.http_url}/api/queues/%2F/q/peek", params=query, auth=("guest", "guest"))
    assert answer.status_code == 400 and said in answer.text
