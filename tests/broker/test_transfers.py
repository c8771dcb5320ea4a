"""Messages are moved and copied between queues, and dead letters sent back to where they were published."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import web
from warrenmq.client import Channel, Connection, Properties
from warrenmq.testing import Broker
from warrenmq.wire.fields import from_python

AUTH = ("guest", "guest")


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    """Whatever a test did, its ledger comes out even."""
    with Broker(clock="virtual", data_dir=tmp_path) as broker:
        yield broker
        ledger = web.get(f"{broker.http_url}/api/ledger", auth=AUTH).json()
        assert ledger["even"] is True and ledger["queues"] == [], ledger


@pytest.fixture
def channel(broker: Broker) -> Channel:
    channel = Connection(broker.url).channel()
    channel.confirm_select()
    for name in ("a", "b"):
        channel.queue_declare(name, durable=True)
    return channel


def publish(channel: Channel, key: str, *bodies: str, mode: int = 2, exchange: str = "", **headers: object) -> None:
    for body in bodies:
        properties = Properties(delivery_mode=mode, headers=from_python(headers) if headers else None)
        channel.basic_publish(exchange, key, body.encode(), properties)
    channel.wait_for_confirms(60)


def post(broker: Broker, path: str, body: dict[str, Any], user: tuple[str, str] = AUTH) -> Any:
    answer = web.post(f"{broker.http_url}/api{path}", json=body, auth=user)
    assert answer.status_code == 202, answer.text
    return answer.json()


def shown(broker: Broker, id: str) -> Any:
    return web.get(f"{broker.http_url}/api/transfers/%2F/{id}", auth=AUTH).json()


def over(broker: Broker, one: Any) -> Any:
    """The transfer when it, and its undoing, are over."""
    while one["state"] == "running" or one.get("undo", {}).get("state") == "running":
        time.sleep(0.01)
        one = shown(broker, one["id"])
    return one


def send(broker: Broker, queue: str, verb: str, **body: Any) -> Any:
    return over(broker, post(broker, f"/queues/%2F/{queue}/{verb}", body))


def undo(broker: Broker, one: Any) -> Any:
    return over(broker, post(broker, f"/transfers/%2F/{one['id']}/undo", {}))


def bodies(broker: Broker, queue: str) -> list[str]:
    found: list[str] = []
    first = 0
    while True:
        query = {"first": first, "count": 1000, "state": "waiting"}
        page = web.get(f"{broker.http_url}/api/queues/%2F/{queue}/peek", params=query, auth=AUTH).json()
        found += [item["payload"] for item in page["items"]]
        first = page["next"]
        if first >= page["end"]:
            return found


# -- move and copy


def test_all_messages_are_moved_in_order_as_they_were(broker: Broker, channel: Channel) -> None:
    publish(channel, "a", "1", "2", tenant="t")
    publish(channel, "a", "3", mode=1)
    one = send(broker, "a", "move", target="b")
    assert (one["state"], one["matched"], one["sent"], one["bytes"]) == ("done", 3, 3, 3)
    assert one["targets"] == {"b": 3} and one["stayed"] == {}
    assert bodies(broker, "a") == [] and channel.queue_declare("a", passive=True).int("message_count") == 0
    for name, kind, way in (("a", "left", "moved"), ("b", "came", "move")):
        ledger = web.get(f"{broker.http_url}/api/queues/%2F/{name}/ledger", auth=AUTH).json()
        assert sum(one[kind].get(way, 0) for one in ledger["sums"]) == 3
    seen = []
    for _ in range(3):
        message = channel.basic_get("b", no_ack=True)
        assert message is not None and message.routing_key == "a" and not message.redelivered
        seen.append((message.body, message.properties.delivery_mode, message.headers))
    assert seen == [(b"1", 2, {"tenant": "t"}), (b"2", 2, {"tenant": "t"}), (b"3", 1, {})]


def test_a_copy_leaves_everything_where_it_is(broker: Broker, channel: Channel) -> None:
    publish(channel, "a", "1", "2", "3")
    assert send(broker, "a", "copy", target="b", limit=2)["sent"] == 2
    assert bodies(broker, "a") == ["1", "2", "3"] and bodies(broker, "b") == ["1", "2"]
    channel.queue_delete("a")
    broker.restart()
    assert bodies(broker, "b") == ["1", "2"]


def test_what_was_moved_is_where_it_was_moved_to_after_a_restart(broker: Broker, channel: Channel) -> None:
    publish(channel, "a", *[str(number) for number in range(20)])
    send(broker, "a", "move", target="b", limit=7)
    broker.restart()
    assert bodies(broker, "a") == [str(number) for number in range(7, 20)]
    assert bodies(broker, "b") == [str(number) for number in range(7)]


@pytest.mark.parametrize(
    ("mode", "arguments"), [(1, {}), (2, {}), (2, {"x-max-priority": 3}), (1, {"x-queue-type": "quorum"})], ids=str
)
def test_messages_are_taken_out_of_the_middle_of_a_long_queue(
    broker: Broker, channel: Channel, mode: int, arguments: dict[str, object]
) -> None:
    """From what came back, from the window and from pages."""
    channel.queue_declare("long", durable=True, arguments=arguments)
    for number in range(9500):
        headers = from_python({"n": number % 5})
        properties = Properties(delivery_mode=mode, headers=headers, priority=number % 4)
        channel.basic_publish("", "long", b"%d" % number, properties)
    channel.wait_for_confirms(120)
    got = [channel.basic_get("long") for _ in range(20)]
    assert got[-1] is not None
    back = sorted(int(message.body) for message in got if message is not None)
    channel.basic_nack(got[-1].delivery_tag, multiple=True, requeue=True)
    broker.settle()
    one = send(broker, "long", "move", target="b", header=["n:3"])
    assert one["sent"] == 1900 and one["matched"] == 1900
    assert sorted(map(int, bodies(broker, "b"))) == list(range(3, 9500, 5))
    assert sorted(map(int, bodies(broker, "long"))) == [n for n in range(9500) if n % 5 != 3]
    assert channel.queue_declare("long", passive=True).int("message_count") == 7600
    taking = Connection(broker.url).channel()
    taking.basic_consume("long", no_ack=True)
    left = [next(taking.messages(60)) for _ in range(7600)]
    assert sorted(int(message.body) for message in left) == [n for n in range(9500) if n % 5 != 3]
    assert all(message.redelivered == (int(message.body) in back) for message in left)


def test_a_long_body_is_moved_and_redriven_whole(broker: Broker, channel: Channel) -> None:
    long = "x" * 9_000_000 + "needle" + "y" * 1_000_000
    publish(channel, "a", long, "short")
    broker.restart()
    assert send(broker, "a", "move", target="b", text="needle")["sent"] == 1
    one = send(broker, "b", "redrive", exchange="", routing_key="a")
    assert one["sent"] == 1 and one["bytes"] == len(long)
    broker.restart()
    channel = Connection(broker.url).channel()
    for body in ("short", long):
        message = channel.basic_get("a", no_ack=True)
        assert message is not None and message.body == body.encode()


def test_what_comes_while_a_transfer_runs_is_not_part_of_it_and_what_is_held_stays(
    broker: Broker, channel: Channel
) -> None:
    publish(channel, "a", "held", "1", "2")
    held = channel.basic_get("a")
    assert held is not None
    started = post(broker, "/queues/%2F/a/move", {"target": "b", "rate": 1000})
    publish(channel, "a", "later")
    assert over(broker, started)["sent"] == 2
    assert bodies(broker, "a") == ["later"] and bodies(broker, "b") == ["1", "2"]


def test_a_full_target_refuses_and_the_rest_stays(broker: Broker, channel: Channel) -> None:
    channel.queue_declare("full", arguments={"x-max-length": 2, "x-overflow": "reject-publish"})
    publish(channel, "a", *"12345")
    one = send(broker, "a", "move", target="full")
    assert one["sent"] == 2 and one["stayed"] == {"refused by a full queue": 3}
    assert bodies(broker, "a") == ["3", "4", "5"] and bodies(broker, "full") == ["1", "2"]


def test_a_stream_is_copied_and_not_emptied(broker: Broker, channel: Channel) -> None:
    channel.queue_declare("s", durable=True, arguments={"x-queue-type": "stream"})
    publish(channel, "s", "1", "2")
    assert send(broker, "s", "copy", target="b")["sent"] == 2 and bodies(broker, "b") == ["1", "2"]
    assert send(broker, "b", "move", target="s")["sent"] == 2 and bodies(broker, "s") == ["1", "2", "1", "2"]
    answer = web.post(f"{broker.http_url}/api/queues/%2F/s/move", json={"target": "b"}, auth=AUTH)
    assert answer.status_code == 400 and "is a stream" in answer.json()["reason"]


def test_a_dry_run_says_what_would_be_done_and_does_nothing(broker: Broker, channel: Channel) -> None:
    publish(channel, "a", "1", "22", "3")
    one = send(broker, "a", "move", target="b", larger=2, dry_run=True)
    assert (one["matched"], one["sent"], one["bytes"], one["dry_run"]) == (1, 1, 2, True)
    assert bodies(broker, "a") == ["1", "22", "3"] and bodies(broker, "b") == []


# -- redrive


@pytest.fixture
def dead(broker: Broker, channel: Channel) -> list[str]:
    """Six dead letters in "dlq", that were published to "shop" and died in two queues for two reasons."""
    channel.exchange_declare("shop", "topic", durable=True)
    channel.queue_declare("dlq", durable=True)
    for name, ttl in (("work", {}), ("slow", {"x-message-ttl": 1000})):
        arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dlq", **ttl}
        channel.queue_declare(name, durable=True, arguments=arguments)
        channel.queue_bind(name, "shop", f"{name}.#")
    for number in range(4):
        publish(channel, f"work.{number}", f"w{number}", exchange="shop", tenant=f"t{number % 2}")
        message = channel.basic_get("work")
        assert message is not None
        channel.basic_reject(message.delivery_tag, requeue=False)
    publish(channel, "slow.x", "s0", "s1", exchange="shop", tenant="t0")
    broker.advance(2)
    broker.settle()
    return ["w0", "w1", "w2", "w3", "s0", "s1"]


def test_dead_letters_go_back_to_the_exchange_and_key_of_their_first_death(
    broker: Broker, channel: Channel, dead: list[str]
) -> None:
    assert bodies(broker, "dlq") == dead
    one = send(broker, "dlq", "redrive", header=["x-first-death-queue:work"])
    assert one["sent"] == 4 and one["targets"] == {"work": 4}
    assert bodies(broker, "dlq") == ["s0", "s1"]
    for number in range(4):
        message = channel.basic_get("work", no_ack=True)
        assert message is not None and message.body == f"w{number}".encode()
        assert (message.exchange, message.routing_key) == ("shop", f"work.{number}")
        assert message.headers["x-redriven"] == 1 and message.headers["x-first-death-queue"] == "work"


def test_what_is_sent_back_has_no_second_receipt_though_its_publisher_asked_for_one(
    broker: Broker, channel: Channel, dead: list[str]
) -> None:
    channel.queue_declare("receipts", durable=True)
    wish: dict[str, Any] = {"x-receipt": "receipts"}
    publish(channel, "work.4", "asked", exchange="shop", **wish)
    message = channel.basic_get("work")
    assert message is not None
    channel.basic_reject(message.delivery_tag, requeue=False)
    broker.settle()
    assert bodies(broker, "dlq") == [*dead, "asked"] and len(bodies(broker, "receipts")) == 1
    assert send(broker, "dlq", "redrive", header=["x-receipt:receipts"])["targets"] == {"work": 1}
    message = channel.basic_get("work")
    assert message is not None and message.body == b"asked" and message.headers["x-receipt"] == "receipts"
    broker.settle()
    assert len(bodies(broker, "receipts")) == 1


def test_dead_letters_are_grouped_by_reason_first_queue_and_any_header(broker: Broker, dead: list[str]) -> None:
    def groups(*by: str, **more: str) -> list[Any]:
        query = {"by": list(by), **more}
        answer = web.get(f"{broker.http_url}/api/queues/%2F/dlq/deaths", params=query, auth=AUTH).json()
        assert answer["looked"] == 6 and answer["next"] == answer["end"]
        return [(*one["by"].values(), one["messages"]) for one in answer["groups"]]

    assert groups() == [("rejected", "work", 4), ("expired", "slow", 2)]
    assert groups("header:tenant") == [("t0", 4), ("t1", 2)]
    assert groups("reason", "exchange", header="tenant:t1") == [("rejected", "shop", 2)]
    assert groups("key", header="x-first-death-reason:expired") == [("slow.x", 2)]
    answer = web.get(f"{broker.http_url}/api/queues/%2F/dlq/deaths", params={"by": "colour"}, auth=AUTH)
    assert answer.status_code == 400 and "none of reason, queue, exchange, key" in answer.json()["reason"]


def test_a_message_that_was_redriven_too_often_stays(broker: Broker, channel: Channel, dead: list[str]) -> None:
    for times in (1, 2):
        one = send(broker, "dlq", "redrive", text="w0", max_redrives=2)
        assert one["sent"] == 1, times
        message = channel.basic_get("work")
        assert message is not None and message.headers["x-redriven"] == times
        channel.basic_reject(message.delivery_tag, requeue=False)
        broker.settle()
    one = send(broker, "dlq", "redrive", text="w0", max_redrives=2)
    assert one["sent"] == 0 and one["stayed"] == {"redriven too often": 1}
    assert sorted(bodies(broker, "dlq")) == sorted(dead)


def test_what_has_no_way_stays_with_its_reason(broker: Broker, channel: Channel, dead: list[str]) -> None:
    publish(channel, "dlq", "alive")
    channel.queue_delete("slow")
    one = send(broker, "dlq", "redrive")
    assert one["sent"] == 4 and one["stayed"] == {"no queue takes it": 2, "no dead letter": 1}
    channel.exchange_delete("shop")
    assert send(broker, "dlq", "redrive")["stayed"] == {"no such exchange": 2, "no dead letter": 1}
    assert bodies(broker, "dlq") == ["s0", "s1", "alive"]
    one = send(broker, "dlq", "redrive", exchange="", routing_key="b")
    assert one["sent"] == 3 and bodies(broker, "b") == ["s0", "s1", "alive"]


def test_nothing_is_sent_back_to_the_queue_it_is_in(broker: Broker, channel: Channel, dead: list[str]) -> None:
    channel.queue_bind("dlq", "shop", "work.1")
    one = send(broker, "dlq", "redrive")
    assert one["sent"] == 5 and one["stayed"] == {"it would come back here": 1}
    assert bodies(broker, "dlq") == ["w1"]


# -- watched, cancelled, taken back


def test_a_transfer_keeps_to_its_rate_can_be_cancelled_and_its_counts_are_exact(
    broker: Broker, channel: Channel
) -> None:
    publish(channel, "a", *[str(number) for number in range(300)])
    one = post(broker, "/queues/%2F/a/move", {"target": "b", "rate": 50})
    while shown(broker, one["id"])["sent"] < 2:
        time.sleep(0.01)
    answer = web.request("DELETE", f"{broker.http_url}/api/transfers/%2F/{one['id']}", auth=AUTH).json()
    assert answer["state"] == "cancelled" and 2 <= answer["sent"] < 300
    assert len(bodies(broker, "b")) == answer["sent"] and len(bodies(broker, "a")) == 300 - answer["sent"]
    listed = web.get(f"{broker.http_url}/api/transfers/%2F", auth=AUTH).json()
    assert [each["id"] for each in listed] == [one["id"]]


def test_what_nobody_touched_is_taken_back_and_the_rest_is_listed(broker: Broker, channel: Channel) -> None:
    publish(channel, "a", *"12345")
    one = send(broker, "a", "move", target="b")
    taken = channel.basic_get("b", no_ack=True)
    seen = channel.basic_get("b")
    assert taken is not None and seen is not None
    channel.basic_nack(seen.delivery_tag, requeue=True)
    broker.settle()
    undone = undo(broker, one)["undo"]
    assert (undone["state"], undone["undone"], undone["left"]) == ("done", 3, 2)
    places = [
        (each["position"], each["sent_to"][0]["queue"], each["sent_to"][0]["position"]) for each in undone["listed"]
    ]
    assert places == [(1, "b", 1), (2, "b", 2)]
    assert bodies(broker, "a") == ["3", "4", "5"] and bodies(broker, "b") == ["2"]
    broker.restart()
    assert bodies(broker, "a") == ["3", "4", "5"] and bodies(broker, "b") == ["2"]


def test_a_redrive_that_is_taken_back_leaves_dead_letters_as_they_were(
    broker: Broker, channel: Channel, dead: list[str]
) -> None:
    channel.queue_declare("second", durable=True)
    channel.queue_bind("second", "shop", "work.#")
    peek = f"{broker.http_url}/api/queues/%2F/dlq/peek"

    def letters() -> list[Any]:
        items = web.get(peek, auth=AUTH).json()["items"]
        return [[item[name] for name in ("payload", "exchange", "routing_key", "properties")] for item in items]

    before = letters()
    one = send(broker, "dlq", "redrive")
    assert one["sent"] == 6 and one["targets"] == {"work": 4, "second": 4, "slow": 2}
    message = channel.basic_get("second", no_ack=True)
    assert message is not None and message.body == b"w0"
    undone = undo(broker, one)["undo"]
    assert (undone["undone"], undone["left"]) == (5, 1)
    assert letters() == before[1:]
    assert bodies(broker, "work") == ["w0"] and bodies(broker, "second") == []


def test_a_copy_is_taken_back_by_taking_the_copies_out(broker: Broker, channel: Channel) -> None:
    publish(channel, "a", "1", "2")
    one = send(broker, "a", "copy", target="b")
    assert undo(broker, one)["undo"]["undone"] == 2
    assert bodies(broker, "a") == ["1", "2"] and bodies(broker, "b") == []
    metrics = web.get(f"{broker.http_url}/metrics").text
    assert 'warren_transferred_messages_total{kind="copy"} 2.0' in metrics
    assert 'warren_transferred_messages_total{kind="undo"} 2.0' in metrics


def test_a_transfer_from_a_queue_that_is_deleted_says_so(broker: Broker, channel: Channel) -> None:
    publish(channel, "a", *[str(number) for number in range(300)])
    one = post(broker, "/queues/%2F/a/move", {"target": "b", "rate": 20})
    channel.queue_delete("a")
    ended = over(broker, one)
    assert ended["state"] == "failed" and "was deleted" in ended["problem"]
    assert len(bodies(broker, "b")) == ended["sent"]


def test_a_broker_that_stops_ends_its_transfers_between_two_messages(
    broker: Broker, channel: Channel, caplog: pytest.LogCaptureFixture
) -> None:
    publish(channel, "a", *[str(number) for number in range(300)])
    one = post(broker, "/queues/%2F/a/move", {"target": "b", "rate": 100})
    while shown(broker, one["id"])["sent"] < 2:
        time.sleep(0.01)
    broker.restart()
    assert "failed" not in " ".join(record.getMessage() for record in caplog.records if record.levelname == "ERROR")
    moved, left = bodies(broker, "b"), bodies(broker, "a")
    assert len(moved) >= 2 and moved + left == [str(number) for number in range(300)]
    assert web.get(f"{broker.http_url}/api/transfers/%2F", auth=AUTH).json() == []


# -- who may


def user(broker: Broker, name: str, read: str, write: str) -> tuple[str, str]:
    web.put(f"{broker.http_url}/api/users/{name}", json={"password": "p", "tags": "management"}, auth=AUTH)
    rights = {"configure": "", "write": write, "read": read}
    web.put(f"{broker.http_url}/api/permissions/%2F/{name}", json=rights, auth=AUTH)
    return name, "p"


@pytest.mark.parametrize(
    ("read", "write", "status"),
    [("^a$", "^b$", 202), ("^b$", "^b$", 401), ("^a$", "^a$", 401), ("", "", 401)],
)
@pytest.mark.parametrize("verb", ["move", "copy"])
def test_moving_takes_read_on_the_source_and_write_on_the_target(
    broker: Broker, channel: Channel, verb: str, read: str, write: str, status: int
) -> None:
    publish(channel, "a", "1")
    who = user(broker, "u", read, write)
    answer = web.post(f"{broker.http_url}/api/queues/%2F/a/{verb}", json={"target": "b"}, auth=who)
    assert answer.status_code == status, answer.text
    if status == 202:
        over(broker, answer.json())
    assert bodies(broker, "b") == (["1"] if status == 202 else [])


def test_a_redrive_sends_only_where_its_user_may_write(broker: Broker, channel: Channel, dead: list[str]) -> None:
    who = user(broker, "u", "^dlq$", "^nothing$")
    one = over(broker, post(broker, "/queues/%2F/dlq/redrive", {}, who))
    assert one["sent"] == 0 and one["stayed"] == {"not permitted": 6}
    answer = web.post(f"{broker.http_url}/api/queues/%2F/dlq/redrive", json={"exchange": "shop"}, auth=who)
    assert answer.status_code == 401
    topic = {"exchange": "shop", "write": "^work", "read": ".*"}
    user(broker, "u", "^dlq$", "^shop$")
    web.put(f"{broker.http_url}/api/topic-permissions/%2F/u", json=topic, auth=AUTH)
    one = over(broker, post(broker, "/queues/%2F/dlq/redrive", {}, who))
    assert one["sent"] == 4 and one["stayed"] == {"not permitted": 2}


def test_a_transfer_is_its_own_user_s_and_the_administrators(broker: Broker, channel: Channel) -> None:
    who, other = user(broker, "u", "^a$", "^b$"), user(broker, "other", ".*", ".*")
    one = over(broker, post(broker, "/queues/%2F/a/move", {"target": "b"}, who))
    path = f"{broker.http_url}/api/transfers/%2F/{one['id']}"
    assert [web.get(path, auth=each).status_code for each in (who, AUTH, other)] == [200, 200, 404]
    assert web.get(f"{broker.http_url}/api/transfers/%2F", auth=other).json() == []
    assert web.request("DELETE", path, auth=other).status_code == 404
    assert web.post(f"{path}/undo", auth=other).status_code == 404


@pytest.mark.parametrize(
    ("verb", "body", "said"),
    [
        ("move", {}, "target"),
        ("move", {"target": "a"}, "source and target are the same queue"),
        ("move", {"target": "nobody"}, "no queue 'nobody' in vhost '/'"),
        ("copy", {"target": "b", "state": "held"}, "only what waits"),
        ("move", {"target": "b", "limit": 0}, "limit: 0 is not 1 or more"),
        ("move", {"target": "b", "rate": -1}, "rate: -1"),
        ("redrive", {"exchange": "nowhere"}, "no exchange 'nowhere'"),
        ("redrive", {"max_redrives": 0}, "max_redrives: 0"),
        ("redrive", {"header": ["x"]}, "is not name:value"),
    ],
)
def test_a_wrong_request_is_told_so(
    broker: Broker, channel: Channel, verb: str, body: dict[str, Any], said: str
) -> None:
    answer = web.post(f"{broker.http_url}/api/queues/%2F/a/{verb}", json=body, auth=AUTH)
    assert answer.status_code in (400, 404) and said in answer.text


# -- editing


def peeked(broker: Broker, queue: str) -> Any:
    return web.get(f"{broker.http_url}/api/queues/%2F/{queue}/peek", auth=AUTH).json()["items"]


def refusal(broker: Broker, edit: dict[str, Any]) -> int:
    return web.post(f"{broker.http_url}/api/queues/%2F/dlq/redrive", json={"edit": edit}, auth=AUTH).status_code


def edit(broker: Broker, position: int, **changes: Any) -> Any:
    return send(broker, "dlq", "redrive", edit={"position": position, **changes})


def test_an_edited_dead_letter_goes_back_changed_and_comes_back_as_it_was(
    broker: Broker, channel: Channel, dead: list[str]
) -> None:
    items = peeked(broker, "dlq")
    headers = {"tenant": None, "kind": "mended", "deep": {"n": [1, True]}}
    started = edit(broker, items[1]["position"], payload="bWVuZGVk", payload_encoding="base64", headers=headers)
    assert started["sent"] == 1 and started["targets"] == {"work": 1}
    assert bodies(broker, "dlq") == [body for body in dead if body != "w1"]
    assert bodies(broker, "work") == ["mended"]
    found = peeked(broker, "work")[0]["properties"]["headers"]
    assert found["kind"] == "mended" and found["deep"] == {"n": [1, True]} and found["x-redriven"] == 1
    assert "tenant" not in found and found["x-first-death-queue"] == "work"
    assert undo(broker, started)["undo"]["undone"] == 1
    assert bodies(broker, "work") == [] and sorted(bodies(broker, "dlq")) == sorted(dead)
    back = peeked(broker, "dlq")[-1]
    assert back["payload"] == "w1" and back["properties"]["headers"]["tenant"] == "t1"
    assert "x-redriven" not in back["properties"]["headers"]
    broker.restart()
    assert sorted(bodies(broker, "dlq")) == sorted(dead)


def test_an_edit_is_of_the_message_that_was_looked_at_and_of_no_other(
    broker: Broker, channel: Channel, dead: list[str]
) -> None:
    position = peeked(broker, "dlq")[0]["position"]
    assert channel.basic_get("dlq", no_ack=True) is not None
    assert edit(broker, position, payload="late")["matched"] == 0
    assert bodies(broker, "dlq") == dead[1:]


def test_what_nobody_can_read_at_a_glance_is_not_edited(broker: Broker, channel: Channel, dead: list[str]) -> None:
    position = peeked(broker, "dlq")[0]["position"]
    for wrong in (
        {"payload": "x" * 300_000},
        {"payload": "?", "payload_encoding": "base64"},
        {"headers": {"a": [None]}},
        {"content_type": "x" * 256},
    ):
        assert refusal(broker, {"position": position, **wrong}) == 400
    assert refusal(broker, {"position": 0}) == 400
    long = "x" * 300_000
    publish(channel, "dlq", long)
    last = peeked(broker, "dlq")[-1]["position"]
    started = send(
        broker, "dlq", "redrive", exchange="", routing_key="work", edit={"position": last, "payload": "short"}
    )
    assert started["stayed"] == {"too long to be edited": 1}
    found = bodies(broker, "dlq")
    assert found[:-1] == dead and long.startswith(found[-1])


def test_who_may_not_write_to_the_exchange_edits_nothing(broker: Broker, dead: list[str]) -> None:
    web.put(f"{broker.http_url}/api/users/reader", json={"password": "x", "tags": "management"}, auth=AUTH)
    rights = {"configure": "", "write": "^other$", "read": ".*"}
    web.put(f"{broker.http_url}/api/permissions/%2F/reader", json=rights, auth=AUTH)
    change = {"edit": {"position": peeked(broker, "dlq")[0]["position"], "payload": "mine"}}
    started = post(broker, "/queues/%2F/dlq/redrive", change, ("reader", "x"))
    assert over(broker, started)["stayed"] == {"not permitted": 1}
    assert bodies(broker, "dlq") == dead
