"""Length limits with the three overflow modes, and priorities."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.broker.harness import Client, Core
from tests.rules.desk import consume, delivered, drain, fill, get, headers, policy, queue
from tests.rules.test_expiry import declare

pytestmark = pytest.mark.pure


@pytest.fixture
def core(tmp_path: Path) -> Core:
    return Core(tmp_path)


@pytest.fixture
def client(core: Core) -> Client:
    client = core.client()
    client.call("queue.declare", queue="dead")
    return client


def test_drop_head_keeps_the_newest_and_dead_letters_the_oldest(client: Client) -> None:
    declare(client, "q", max_length=2)
    fill(client, "q", *"abcd")
    assert drain(client, "q") == ["c", "d"]
    assert drain(client, "dead") == ["a", "b"]


def test_reject_publish_keeps_the_oldest_nacks_and_dead_letters_nothing(client: Client) -> None:
    declare(client, "q", max_length=2, overflow="reject-publish")
    client.call("confirm.select")
    client.take()
    fill(client, "q", *"abc")
    assert client.story() == ["ack 1", "ack 2", "nack 3+"]
    assert drain(client, "q") == ["a", "b"]
    assert drain(client, "dead") == []


def test_reject_publish_dlx_nacks_and_dead_letters_what_it_rejects(client: Client) -> None:
    declare(client, "q", max_length=1, overflow="reject-publish-dlx")
    client.call("confirm.select")
    client.take()
    fill(client, "q", *"ab")
    assert client.story() == ["ack 1", "nack 2+"]
    dead = client.call("basic.get", queue="dead", no_ack=True)
    deaths: Any = headers(dead)["x-death"]
    [death] = deaths
    assert dead.body == b"b" and (death["reason"], death["queue"], death["count"]) == ("maxlen", "q", 1)


def test_bytes_are_those_of_bodies_and_several_are_dropped_for_a_large_one(client: Client) -> None:
    declare(client, "q", max_length_bytes=10)
    fill(client, "q", "aaaa", "bbb", "ccc")
    assert drain(client, "dead") == []
    fill(client, "q", "ddddddd")
    assert drain(client, "dead") == ["aaaa", "bbb"]
    assert drain(client, "q") == ["ccc", "ddddddd"]


def test_a_message_larger_than_the_bytes_allowed_drops_everything_and_itself(client: Client) -> None:
    declare(client, "q", max_length_bytes=5)
    fill(client, "q", "aa", "bbbbbb")
    assert drain(client, "q") == []
    assert drain(client, "dead") == ["aa", "bbbbbb"]


def test_reject_publish_counts_bytes_before_it_takes_a_message(client: Client) -> None:
    declare(client, "q", max_length_bytes=5, overflow="reject-publish")
    client.call("confirm.select")
    client.take()
    fill(client, "q", "aaa", "bbb", "cc")
    assert client.story() == ["ack 1", "nack 2+", "ack 3"]


def test_only_what_is_ready_counts(client: Client) -> None:
    declare(client, "q", max_length=1)
    fill(client, "q", "a")
    assert get(client, "q") == "a"
    fill(client, "q", "b")
    assert drain(client, "dead") == []


def test_a_requeue_over_the_limit_drops_from_the_head(client: Client) -> None:
    declare(client, "q", max_length=1)
    fill(client, "q", "a")
    get(client, "q")
    fill(client, "q", "b")
    client.send("basic.nack", delivery_tag=1, requeue=True)
    assert drain(client, "dead") == ["a"]
    assert drain(client, "q") == ["b"]


def test_with_length_0_a_waiting_consumer_still_gets_messages(client: Client) -> None:
    declare(client, "q", max_length=0)
    fill(client, "q", "lost")
    consume(client, "q", no_ack=True)
    fill(client, "q", "taken")
    assert delivered(client) == ["taken"]
    assert drain(client, "dead") == ["lost"]


def test_reject_publish_refuses_a_full_queue_even_with_a_consumer_waiting(client: Client) -> None:
    declare(client, "q", max_length=0, overflow="reject-publish")
    consume(client, "q", no_ack=True)
    client.call("confirm.select")
    client.take()
    fill(client, "q", "a")
    assert client.story() == ["nack 1+"]


def test_a_policy_that_shrinks_a_queue_drops_what_is_over_at_once(core: Core, client: Client) -> None:
    declare(client, "q")
    fill(client, "q", *"abcde")
    policy(core, "^q$", max_length=2)
    assert drain(client, "dead") == ["a", "b", "c"]
    assert queue(core, "q").ready == 2


# -- priorities ----------------------------------------------------------------------------------------------------


def test_higher_priorities_come_first_and_equal_ones_in_order(client: Client) -> None:
    declare(client, "q", max_priority=5)
    for body, priority in (("a1", 1), ("a3", 3), ("b1", 1), ("b3", 3), ("a5", 5)):
        fill(client, "q", body, priority=priority)
    assert drain(client, "q") == ["a5", "a3", "b3", "a1", "b1"]


def test_no_priority_is_0_and_above_the_maximum_is_the_maximum(client: Client) -> None:
    declare(client, "q", max_priority=5)
    fill(client, "q", "none")
    fill(client, "q", "zero", priority=0)
    fill(client, "q", "five", priority=5)
    fill(client, "q", "two hundred", priority=200)
    assert drain(client, "q") == ["five", "two hundred", "none", "zero"]


def test_a_requeued_message_keeps_its_priority_and_place(client: Client) -> None:
    declare(client, "q", max_priority=5)
    for body in ("a", "b"):
        fill(client, "q", body, priority=3)
    fill(client, "q", "low", priority=1)
    assert get(client, "q") == "a"
    fill(client, "q", "high", priority=4)
    client.send("basic.nack", delivery_tag=1, requeue=True)
    assert drain(client, "q") == ["high", "a", "b", "low"]


def test_a_queue_without_priorities_ignores_them(client: Client) -> None:
    declare(client, "q")
    for n, priority in enumerate((1, 9, 5)):
        fill(client, "q", str(n), priority=priority)
    assert drain(client, "q") == ["0", "1", "2"]
