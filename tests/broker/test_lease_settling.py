"""Acting on the slots of a lease: several actions in one request, each message once, and settled told from lost."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.broker.test_leases import Queue
from warrenmq.client import ChannelClosed
from warrenmq.client import Properties as Basic
from warrenmq.testing import Broker

DEAD = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with Broker(clock="virtual", data_dir=tmp_path) as broker:
        yield broker


def leased(broker: Broker, *bodies: str, **arguments: Any) -> tuple[Queue, str]:
    """A queue with a dead-letter queue, and all its messages under a lease."""
    q = Queue(broker, **{**DEAD, **arguments})
    q.channel.queue_declare("dead", durable=True)
    q.publish(*bodies)
    return q, str(q.lease(count=len(bodies), owner="me", key="k")["id"])


def settle(q: Queue, lease: str, **actions: object) -> dict[str, Any]:
    answer = q.post(lease, "settle", **actions)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def shown(q: Queue, lease: str) -> dict[str, Any]:
    answer = q.http.get(f"/leases/{lease}").json()
    return {name: answer[name] for name in ("count", "left", "settled", "open")}


def dead(q: Queue) -> list[str]:
    found = []
    while (message := q.channel.basic_get("dead", no_ack=True)) is not None:
        found.append(message.body.decode())
    return found


def test_the_open_slots_of_a_large_lease_are_looked_for_some_at_a_time(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("warrenmq.http.messages.leases.SLOTS", 3)
    q, lease = leased(broker, *"abcdefghijkl")
    assert shown(q, lease)["open"] == [[0, 11]]
    settle(q, lease, ack=[[2, 2], [5, 5], [9, 11]])
    assert shown(q, lease)["open"] == [[0, 1], [3, 4], [6, 8]]
    settle(q, lease, ack=[[6, 8]])
    assert shown(q, lease)["open"] == [[0, 1], [3, 4]]


def test_each_slot_gets_its_own_action(broker: Broker) -> None:
    q, lease = leased(broker, "a", "b", "c", "d", "e", "f")
    answer = settle(
        q, lease, ack=[[0, 1]], reject=[[2, 2]], requeue=[[3, 3]], delay=[{"delay_ms": 60_000, "slots": [[4, 4]]}]
    )
    assert answer == {"settled": 5, "left": 1}
    assert shown(q, lease) == {"count": 6, "left": 1, "settled": 5, "open": [[5, 5]]}
    assert q.waiting() == [("d", True)] and dead(q) == ["c"]
    assert q.counts() == (0, 2)  # one leased, one delayed
    broker.advance(59)
    assert q.waiting() == []
    broker.advance(2)
    assert q.waiting() == [("e", True)]
    assert q.read(lease, 1) == [("f", False)]


def test_a_slot_that_was_settled_already_is_no_error_and_is_not_acted_upon_again(broker: Broker) -> None:
    q, lease = leased(broker, "a", "b", "c")
    assert settle(q, lease, reject=[[0, 1]]) == {"settled": 2, "left": 1}
    assert settle(q, lease, reject=[[0, 1]]) == {"settled": 0, "left": 1}
    assert settle(q, lease, requeue=[[0, 0]], ack=[[1, 2]]) == {"settled": 1, "left": 0}
    assert dead(q) == ["a", "b"] and q.waiting() == []


def test_a_lease_that_is_wholly_settled_says_so_until_it_is_acknowledged_or_runs_out(broker: Broker) -> None:
    q, lease = leased(broker, "a", "b")
    settle(q, lease, ack=[[0, 1]])
    broker.restart()
    q.connect()
    assert shown(q, lease) == {"count": 2, "left": 0, "settled": 2, "open": []}
    assert q.post(lease, "renew", ttl_ms=60_000).status_code == 200
    assert q.post(lease, "ack").json() == {"settled": 0, "left": 0}
    assert q.http.get(f"/leases/{lease}").status_code == 404
    q.publish("c")
    other = q.lease(count=1, ttl_ms=1000)["id"]
    settle(q, other, ack=[[0, 0]])
    broker.advance(2)
    assert q.http.get(f"/leases/{other}").status_code == 404  # nothing came back, so nobody is too late


def test_what_was_settled_is_told_from_what_a_restart_took(broker: Broker) -> None:
    q = Queue(broker)
    q.publish("a", "b", "c")
    q.publish("d", "e", properties=Basic(delivery_mode=1))
    lease = q.lease(count=5)["id"]
    settle(q, lease, ack=[[1, 1]], requeue=[[3, 3]])
    broker.restart()
    q.connect()
    assert shown(q, lease) == {"count": 5, "left": 2, "settled": 2, "open": [[0, 0], [2, 2]]}
    assert q.read(lease, 2) == [("a", False), ("c", False)]


@pytest.mark.parametrize("verb", ["settle", "nack"])
def test_what_went_back_to_the_queue_stays_there_over_a_restart(broker: Broker, verb: str) -> None:
    q, lease = leased(broker, "a", "b", "c")
    if verb == "settle":
        settle(q, lease, requeue=[[1, 1]])
    else:
        q.post(lease, "nack", first=1, last=1)
    broker.restart()
    q.connect()
    assert q.counts() == (1, 2)
    assert [body for body, _ in q.waiting()] == ["b"]
    assert shown(q, lease) == {"count": 3, "left": 2, "settled": 1, "open": [[0, 0], [2, 2]]}
    assert q.post(lease, "ack").json() == {"settled": 2, "left": 0}
    broker.restart()
    q.connect()
    assert q.counts() == (0, 0)


def test_a_delayed_message_waits_through_restarts_and_comes_to_its_place(broker: Broker) -> None:
    q, lease = leased(broker, "a", "b", "c")
    settle(q, lease, delay=[{"delay_ms": 3_600_000, "slots": [[0, 1]]}], requeue=[[2, 2]])
    broker.restart()
    q.connect()
    assert q.counts() == (1, 2)
    (later,) = [one for one in q.http.get("/leases").json() if one["delayed"]]
    assert (later["count"], later["left"], later["owner"]) == (2, 2, "")
    broker.advance(1800)
    broker.restart()
    q.connect()
    assert q.counts() == (1, 2)
    broker.advance(1801)
    assert [body for body, _ in q.waiting()] == ["a", "b", "c"]
    assert q.http.get("/leases?owner=me").json()[0]["settled"] == 3


def test_a_delay_can_be_ended_early(broker: Broker) -> None:
    q, lease = leased(broker, "a")
    settle(q, lease, delay=[{"delay_ms": 3_600_000, "slots": [[0, 0]]}])
    (later,) = [one["id"] for one in q.http.get("/leases").json() if one["delayed"]]
    assert q.http.delete(f"/leases/{later}").json() == {"settled": 1, "left": 0}
    assert q.waiting() == [("a", True)]


def test_very_many_different_delays_are_rounded_up_by_less_than_a_hundredth(broker: Broker) -> None:
    bodies = [str(number) for number in range(300)]
    q, lease = leased(broker, *bodies)
    wanted = [{"delay_ms": 100_000 + number, "slots": [[number, number]]} for number in range(300)]
    settle(q, lease, delay=wanted)
    delays = [one["ttl_ms"] for one in q.http.get("/leases").json() if one["delayed"]]
    assert len(delays) < 5 and all(100_000 <= delay < 101_300 for delay in delays)
    broker.advance(102)
    assert sorted(int(body) for body, _ in q.waiting()) == list(range(300))


def test_more_than_a_turn_may_read_goes_in_slices(broker: Broker) -> None:
    count = 3000
    q, lease = leased(broker, *[str(number) for number in range(count)])
    assert settle(q, lease, reject=[[0, 1499]], requeue=[[1500, 2899]]) == {"settled": 2900, "left": 100}
    assert dead(q) == [str(number) for number in range(1500)]
    assert [body for body, _ in q.waiting()] == [str(number) for number in range(1500, 2900)]
    broker.restart()
    q.connect()
    assert shown(q, lease)["open"] == [[2900, 2999]] and q.counts() == (0, 100)


@pytest.mark.parametrize("restart", [False, True])
def test_a_long_lease_that_runs_out_goes_back_in_slices(broker: Broker, restart: bool) -> None:
    q = Queue(broker)
    bodies = [str(number) for number in range(2500)]
    q.publish(*bodies)
    lease = q.lease(count=2500, ttl_ms=60_000)["id"]
    broker.advance(59.9999)
    broker.advance(0.0002)
    if restart:
        broker.restart()
        q.connect()
    assert q.post(lease, "ack").status_code == 410
    broker.advance(1)
    assert q.counts() == (2500, 0)
    back = [body for body, _ in q.waiting()]
    assert (sorted(back, key=int) if restart else back) == bodies


@pytest.mark.parametrize(
    ("actions", "said"),
    [
        ({"ack": [[0, 3]]}, "ack [0, 3]: this lease has slots 0 to 2"),
        ({"reject": [[-1, 0]]}, "reject [-1, 0]: this lease has slots 0 to 2"),
        ({"ack": [[2, 1]]}, "ack [2, 1]"),
        ({"ack": [[0, 1]], "reject": [[1, 1]]}, "reject [1, 1]: slot 1 is named twice"),
        ({"delay": [{"delay_ms": 0, "slots": [[0, 0]]}]}, "delay_ms: 0 is not between 1 and"),
        ({"delay": [{"slots": [[0, 0]]}]}, "delay_ms"),
        ({"ack": [["a", "b"]]}, "ack"),
        ({"ack": [[0, 0]] * 20_001}, "20001 runs of slots: at most 20000"),
    ],
)
def test_a_wrong_request_changes_nothing_and_is_told(broker: Broker, actions: dict[str, object], said: str) -> None:
    q, lease = leased(broker, "a", "b", "c")
    answer = q.post(lease, "settle", **actions)
    assert answer.status_code == 400
    assert said in json.loads(answer.text)["reason"]
    assert q.counts() == (0, 3)


def test_settling_a_lease_that_ran_out_is_too_late(broker: Broker) -> None:
    q = Queue(broker)
    q.publish("a")
    lease = q.lease(count=1, ttl_ms=1000)["id"]
    broker.advance(2)
    assert q.post(lease, "settle", ack=[[0, 0]]).status_code == 410
    assert q.post("nonsense", "settle", ack=[[0, 0]]).status_code == 404


def test_a_reader_sees_what_is_left_when_it_says_so(broker: Broker) -> None:
    q, lease = leased(broker, "a", "b", "c")
    settle(q, lease, ack=[[1, 1]])
    with pytest.raises(ChannelClosed, match="has 2 messages left, x-lease-left is 3"):
        q.connection.channel().basic_consume("q", arguments={"x-lease": lease, "x-lease-left": 3})
    assert q.read(lease, 2) == [("a", False), ("c", False)]


def test_a_queue_takes_its_delayed_messages_along_when_it_is_deleted(broker: Broker) -> None:
    q, lease = leased(broker, "a", "b")
    settle(q, lease, delay=[{"delay_ms": 1000, "slots": [[0, 0]]}])
    assert q.http.delete("").headers["warren-leased"] == "2"
    broker.restart()
    broker.advance(2)
    Queue(broker)
    assert Queue(broker).counts() == (0, 0)


def test_a_look_misses_nothing_when_what_comes_back_is_younger_than_what_waits(broker: Broker) -> None:
    q, lease = leased(broker, "a", "b", "c", "d")
    settle(q, lease, requeue=[[0, 0]])
    broker.restart()
    q.connect()
    q.http.delete(f"/leases/{lease}")
    page = q.http.get("/peek?count=2").json()
    rest = q.http.get(f"/peek?count=9&first={page['next']}").json()
    assert [item["payload"] for item in page["items"] + rest["items"]] == ["a", "b", "c", "d"]
    assert sorted(body for body, _ in q.waiting()) == ["a", "b", "c", "d"]
