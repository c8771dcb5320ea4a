"""Peeking shows what is held beside what waits: by whom, since when, at its position; and finds what a filter wants."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import web
from warrenmq.client import Channel, Connection, Properties
from warrenmq.testing import Broker
from warrenmq.wire.fields import from_python

Q = "/api/queues/%2F/q"


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with Broker(clock="virtual", data_dir=tmp_path) as broker:
        yield broker


def opened(broker: Broker, **arguments: object) -> Channel:
    channel = Connection(broker.url).channel()
    channel.queue_declare("q", durable=True, arguments=arguments)
    channel.confirm_select()
    return channel


def publish(channel: Channel, *bodies: str, headers: dict[str, object] | None = None, **properties: Any) -> None:
    table = None if headers is None else from_python(headers)
    for body in bodies:
        given = Properties(delivery_mode=2, headers=table, **properties)
        channel.basic_publish("", "q", body.encode(), given)
    channel.wait_for_confirms(10)


def look(broker: Broker, **query: Any) -> dict[str, Any]:
    answer = web.get(f"{broker.http_url}{Q}/peek", params=query, auth=("guest", "guest"))
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def found(broker: Broker, **query: Any) -> list[tuple[str, str]]:
    return [(item["payload"], item["state"]) for item in look(broker, **query)["items"]]


def post(broker: Broker, path: str, body: dict[str, Any]) -> Any:
    return web.post(f"{broker.http_url}{Q}{path}", json=body, auth=("guest", "guest")).json()


def test_what_a_consumer_and_a_get_hold_is_shown_with_holder_and_time(broker: Broker) -> None:
    channel = opened(broker)
    publish(channel, *"abcd")
    taking = Connection(broker.url, connection_name="reader").channel()
    taking.basic_qos(2)
    taking.basic_consume("q", consumer_tag="eater")
    assert len([next(taking.messages(5)) for _ in range(2)]) == 2
    broker.advance(60)
    got = channel.basic_get("q")
    assert got is not None
    broker.advance(30)
    page = look(broker)
    assert (page["messages"], page["messages_held"]) == (1, 3)
    assert found(broker) == [("a", "unacked"), ("b", "unacked"), ("c", "unacked"), ("d", "waiting")]
    assert found(broker, state="held") == [("a", "unacked"), ("b", "unacked"), ("c", "unacked")]
    assert found(broker, state="waiting") == [("d", "waiting")]
    by = [item.get("held", {}) for item in page["items"]]
    assert [one.get("consumer_tag") for one in by] == ["eater", "eater", None, None]
    assert [one.get("held_ms") for one in by] == [90_000, 90_000, 30_000, None]
    connections = web.get(f"{broker.http_url}/api/connections", auth=("guest", "guest")).json()
    names = {one["name"] for one in connections}
    assert {one["connection"] for one in by[:3]} == names and by[0]["connection"] != by[2]["connection"]
    assert by[0]["channel"] == 1 and by[0]["user"] == "guest"


def test_looking_at_what_is_held_changes_nothing(broker: Broker) -> None:
    channel = opened(broker)
    publish(channel, *"abc")
    first = channel.basic_get("q")
    assert first is not None and look(broker)["items"] == look(broker)["items"]
    channel.basic_nack(first.delivery_tag, requeue=True)
    broker.settle()
    seen = []
    for _ in range(3):
        message = channel.basic_get("q", no_ack=True)
        assert message is not None
        seen.append((message.body, message.redelivered))
    assert seen == [(b"a", True), (b"b", False), (b"c", False)]


def test_leased_and_delayed_messages_are_shown_with_their_lease(broker: Broker) -> None:
    channel = opened(broker)
    publish(channel, *"abc")
    lease = post(broker, "/leases", {"count": 2, "owner": "spark", "ttl_ms": 60_000})
    post(broker, f"/leases/{lease['id']}/settle", {"delay": [{"delay_ms": 5000, "slots": [[1, 1]]}]})
    page = look(broker)["items"]
    assert [item["state"] for item in page] == ["leased", "delayed", "waiting"]
    assert page[0]["held"]["lease"] == lease["id"] and page[0]["held"]["owner"] == "spark"
    assert [item["payload"] for item in page] == list("abc")


def test_dead_letters_that_wait_for_their_target_are_shown_with_their_reason(broker: Broker) -> None:
    arguments = {
        "x-queue-type": "quorum",
        "x-dead-letter-exchange": "nowhere",
        "x-dead-letter-strategy": "at-least-once",
        "x-overflow": "reject-publish",
    }
    channel = opened(broker, **arguments)
    publish(channel, "a", "b")
    got = channel.basic_get("q")
    assert got is not None
    channel.basic_reject(got.delivery_tag, requeue=False)
    broker.settle()
    page = look(broker)["items"]
    assert sorted((item["payload"], item["state"]) for item in page) == [("a", "dead-lettering"), ("b", "waiting")]
    (letter,) = [item for item in page if item["state"] == "dead-lettering"]
    assert letter["held"]["reason"] == "rejected"


def test_pages_follow_one_another_through_both_while_the_queue_moves(broker: Broker) -> None:
    channel = opened(broker)
    publish(channel, *[str(number) for number in range(30)])
    gets = [channel.basic_get("q") for _ in range(10)]
    assert gets[-1] is not None
    page = look(broker, count=7)
    seen = [item["payload"] for item in page["items"]]
    while page["next"] < page["end"]:
        channel.basic_get("q")
        publish(channel, "later")
        page = look(broker, count=7, first=page["next"], end=page["end"])
        seen += [item["payload"] for item in page["items"]]
    assert seen == [str(number) for number in range(30)]


def test_a_message_is_found_by_header_key_size_and_text(broker: Broker) -> None:
    channel = opened(broker)
    channel.exchange_declare("t", "topic")
    channel.queue_bind("q", "t", "#")
    for number in range(600):
        table = from_python({"n": number, "even": number % 2 == 0, "who": f"w{number % 7}"})
        body = b"x" * number + b"order-%d." % number
        channel.basic_publish("t", f"eu.{number % 3}.k", body, Properties(delivery_mode=2, headers=table))
    channel.wait_for_confirms(30)
    for _ in range(100):
        channel.basic_get("q")

    def numbers(**query: Any) -> list[int]:
        return [item["properties"]["headers"]["n"] for item in look(broker, count=1000, **query)["items"]]

    assert numbers(header="n:41") == [41] and numbers(header="n:401") == [401]
    assert numbers(header=["who:w3", "even:true"]) == [n for n in range(600) if n % 7 == 3 and n % 2 == 0]
    assert numbers(key="eu.?.k") == list(range(600)) and numbers(key="*.2.*") == list(range(2, 600, 3))
    assert numbers(key="eu") == []
    assert numbers(text="order-77.") == [77] and numbers(text="order-577.") == [577]
    assert numbers(larger=600, smaller=605) == [n for n in range(600) if 600 <= n + len(f"order-{n}.") <= 605]
    assert numbers(text="order-5", state="held") == [5, *range(50, 60)]
    assert numbers(header="who:nobody") == [] and numbers(header="absent:1") == []


def test_a_text_is_found_across_the_pieces_of_a_long_body(broker: Broker) -> None:
    channel = opened(broker)
    piece = 256 << 10
    for place in (10, piece - 3, 2 * piece - 1, 3 * piece + 5):
        body = bytearray(b"." * (4 * piece))
        body[place : place + 6] = b"needle"
        publish(channel, body.decode())
    publish(channel, "." * (4 * piece))
    for restart in (False, True):
        if restart:
            broker.restart()
        page = look(broker, text="needle", truncate=20)
        assert [item["position"] for item in page["items"]] == [1, 2, 3, 4]
        assert page["items"][0]["payload"] == "." * 10 + "needle" + "." * 4


def test_a_request_that_finds_little_ends_and_says_where_to_go_on(broker: Broker) -> None:
    channel = opened(broker)
    for number in range(21_000):
        headers = from_python({"n": number})
        channel.basic_publish("", "q", b"", Properties(delivery_mode=2, headers=headers))
    channel.wait_for_confirms(60)
    page = look(broker, header="n:20500")
    assert page["items"] == [] and page["next"] < page["end"] and 20_000 <= page["looked"] < 20_500
    rest = look(broker, header="n:20500", first=page["next"], end=page["end"])
    assert [item["properties"]["headers"]["n"] for item in rest["items"]] == [20500]
    assert rest["next"] == rest["end"]


def test_very_many_held_messages_are_paged_in_order_too(broker: Broker) -> None:
    channel = opened(broker)
    for _ in range(2):
        for number in range(3000):
            channel.basic_publish("", "q", b"%d" % number, Properties(delivery_mode=2))
        channel.wait_for_confirms(60)
    connections = [Connection(broker.url) for _ in range(2)]
    for connection in connections:
        taker = connection.channel()
        taker.basic_qos(2500)
        taker.basic_consume("q")
        for _ in range(2500):
            next(taker.messages(60))
    seen: list[int] = []
    page = look(broker, count=1000)
    while True:
        seen += [item["position"] for item in page["items"]]
        if page["next"] >= page["end"]:
            break
        page = look(broker, count=1000, first=page["next"], end=page["end"])
    assert seen == list(range(1, 6001))
    assert [item["state"] for item in look(broker, first=5000, count=2)["items"]] == ["unacked", "waiting"]
    assert look(broker, count=0)["messages_held"] == 5000
    page = look(broker, text="2999")  # one request knows no more than so many of those that are held
    found = page["items"]
    while page["next"] < page["end"]:
        page = look(broker, text="2999", first=page["next"], end=page["end"])
        found += page["items"]
    assert [(item["position"], item["state"]) for item in found] == [(3000, "unacked"), (6000, "waiting")]


def test_ages_are_known_to_a_second_and_choose_messages(broker: Broker) -> None:
    channel = opened(broker)
    for body in "abc":
        publish(channel, body)
        broker.advance(100)
    ages = [item["age_ms"] for item in look(broker)["items"]]
    assert all(wanted <= age <= wanted + 1000 for wanted, age in zip((300_000, 200_000, 100_000), ages, strict=True))
    assert found(broker, older=150_000) == [("a", "waiting"), ("b", "waiting")]
    assert found(broker, younger=250_000) == [("b", "waiting"), ("c", "waiting")]
    channel.basic_get("q")
    assert found(broker, older=250_000) == [("a", "unacked")]


def test_after_a_restart_an_age_is_what_is_known_since(broker: Broker) -> None:
    channel = opened(broker)
    publish(channel, "old")
    broker.advance(500)
    broker.restart()
    broker.advance(20)
    channel = opened(broker)
    publish(channel, "new")
    broker.advance(5)
    old, new = look(broker)["items"]
    assert old["age_at_least"] is True and 20_000 <= old["age_ms"] <= 30_000
    assert "age_at_least" not in new and 5000 <= new["age_ms"] <= 6000
    assert found(broker, older=10_000) == [("old", "waiting")] and found(broker, younger=60_000) == [("new", "waiting")]


def test_a_stream_is_looked_at_by_offset(broker: Broker) -> None:
    channel = opened(broker, **{"x-queue-type": "stream"})
    publish(channel, *"abc")
    broker.advance(10)
    publish(channel, "d", headers={"h": "v"})
    for restart in (False, True):
        if restart:
            broker.restart()
        page = look(broker)
        assert [item["position"] for item in page["items"]] == [0, 1, 2, 3] and page["end"] == 4
        assert [item["payload"] for item in page["items"]] == list("abcd")
        assert found(broker, first=1, count=2) == [("b", "retained"), ("c", "retained")]
        assert found(broker, header="h:v") == [("d", "retained")]
        assert found(broker, older=5000) == [(body, "retained") for body in "abc"]
    assert look(broker)["items"][0]["properties"] == {"delivery_mode": 2}


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ({"state": "gone"}, "state: 'gone' is none of all, waiting, held"),
        ({"header": "n=1"}, "header: 'n=1' is not name:value"),
        ({"older": "5m"}, "older: '5m' is not a whole number"),
        ({"larger": "-1"}, "larger: '-1' is not a whole number"),
        ({"text": ""}, "text: between 1 and 4096 octets"),
        ({"key": "k" * 2000}, "key: a pattern has at most 1024 characters"),
    ],
)
def test_a_wrong_filter_is_told_so(broker: Broker, query: dict[str, str], said: str) -> None:
    opened(broker)
    answer = web.get(f"{broker.http_url}{Q}/peek", params=query, auth=("guest", "guest"))
    assert answer.status_code == 400 and said in answer.json()["reason"]


def test_octets_take_no_filters(broker: Broker) -> None:
    opened(broker)
    octets = {"accept": "application/octet-stream"}
    answer = web.get(f"{broker.http_url}{Q}/peek", params={"text": "x"}, auth=("guest", "guest"), headers=octets)
    assert answer.status_code == 400 and "no filters" in answer.json()["reason"]


def test_only_who_may_read_the_queue_may_look(broker: Broker) -> None:
    opened(broker)
    auth = ("guest", "guest")
    rights = {"reader": "^q$", "other": "^other$"}
    for user, read in rights.items():
        web.put(f"{broker.http_url}/api/users/{user}", json={"password": "p", "tags": "management"}, auth=auth)
        permissions = {"configure": ".*", "write": ".*", "read": read}
        web.put(f"{broker.http_url}/api/permissions/%2F/{user}", json=permissions, auth=auth)
    assert web.get(f"{broker.http_url}{Q}/peek", auth=("reader", "p")).status_code == 200
    refused = web.get(f"{broker.http_url}{Q}/peek", auth=("other", "p"))
    assert refused.status_code == 401 and "refused for user 'other'" in refused.json()["reason"]
    web.put(f"{broker.http_url}/api/users/reader", json={"password": "p", "tags": ""}, auth=auth)
    assert web.get(f"{broker.http_url}{Q}/peek", auth=("reader", "p")).status_code == 401
