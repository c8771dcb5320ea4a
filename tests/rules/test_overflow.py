"""Length limits with the three overflow modes, and priorities."""

from __future__ import annotations

from typing import Any

import pytest

from tests.rules.test_expiry import declare
from warrenmq.testing.core import Core
from warrenmq.testing.core_client import CoreClient

pytestmark = pytest.mark.pure


@pytest.fixture
def client(core: Core) -> CoreClient:
    client = core.client()
    client.call("queue.declare", queue="dead")
    return client


def test_drop_head_keeps_the_newest_and_dead_letters_the_oldest(client: CoreClient) -> None:
    declare(client, "q", max_length=2)
    client.fill("q", *"abcd")
    assert client.drain("q") == ["c", "d"]
    assert client.drain("dead") == ["a", "b"]


def test_reject_publish_keeps_the_oldest_nacks_and_dead_letters_nothing(client: CoreClient) -> None:
    declare(client, "q", max_length=2, overflow="reject-publish")
    client.call("confirm.select")
    client.take()
    client.fill("q", *"abc")
    assert client.story() == ["ack 1", "ack 2", "nack 3+"]
    assert client.drain("q") == ["a", "b"]
    assert client.drain("dead") == []


def test_reject_publish_dlx_nacks_and_dead_letters_what_it_rejects(client: CoreClient) -> None:
    declare(client, "q", max_length=1, overflow="reject-publish-dlx")
    client.call("confirm.select")
    client.take()
    client.fill("q", *"ab")
    assert client.story() == ["ack 1", "nack 2+"]
    dead = client.call("basic.get", queue="dead", no_ack=True)
    deaths: Any = dead.headers["x-death"]
    [death] = deaths
    assert dead.body == b"b" and (death["reason"], death["queue"], death["count"]) == ("maxlen", "q", 1)


def test_bytes_are_those_of_bodies_and_several_are_dropped_for_a_large_one(client: CoreClient) -> None:
    declare(client, "q", max_length_bytes=10)
    client.fill("q", "aaaa", "bbb", "ccc")
    assert client.drain("dead") == []
    client.fill("q", "ddddddd")
    assert client.drain("dead") == ["aaaa", "bbb"]
    assert client.drain("q") == ["ccc", "ddddddd"]


def test_a_message_larger_than_the_bytes_allowed_drops_everything_and_itself(client: CoreClient) -> None:
    declare(client, "q", max_length_bytes=5)
    client.fill("q", "aa", "bbbbbb")
    assert client.drain("q") == []
    assert client.drain("dead") == ["aa", "bbbbbb"]


def test_reject_publish_counts_bytes_before_it_takes_a_message(client: CoreClient) -> None:
    declare(client, "q", max_length_bytes=5, overflow="reject-publish")
    client.call("confirm.select")
    client.take()
    client.fill("q", "aaa", "bbb", "cc")
    assert client.story() == ["ack 1", "nack 2+", "ack 3"]


def test_only_what_is_ready_counts(client: CoreClient) -> None:
    declare(client, "q", max_length=1)
    client.fill("q", "a")
    assert client.get("q") == "a"
    client.fill("q", "b")
    assert client.drain("dead") == []


def test_a_requeue_over_the_limit_drops_from_the_head(client: CoreClient) -> None:
    declare(client, "q", max_length=1)
    client.fill("q", "a")
    client.get("q")
    client.fill("q", "b")
    client.send("basic.nack", delivery_tag=1, requeue=True)
    assert client.drain("dead") == ["a"]
    assert client.drain("q") == ["b"]


def test_with_length_0_a_waiting_consumer_still_gets_messages(client: CoreClient) -> None:
    declare(client, "q", max_length=0)
    client.fill("q", "lost")
    client.consume("q", no_ack=True)
    client.fill("q", "taken")
    assert client.delivered() == ["taken"]
    assert client.drain("dead") == ["lost"]


def test_reject_publish_refuses_a_full_queue_even_with_a_consumer_waiting(client: CoreClient) -> None:
    declare(client, "q", max_length=0, overflow="reject-publish")
    client.consume("q", no_ack=True)
    client.call("confirm.select")
    client.take()
    client.fill("q", "a")
    assert client.story() == ["nack 1+"]


def test_a_policy_that_shrinks_a_queue_drops_what_is_over_at_once(core: Core, client: CoreClient) -> None:
    declare(client, "q")
    client.fill("q", *"abcde")
    core.policy("^q$", max_length=2)
    assert client.drain("dead") == ["a", "b", "c"]
    assert core.queue("q").ready == 2


# -- priorities ----------------------------------------------------------------------------------------------------


def test_higher_priorities_come_first_and_equal_ones_in_order(client: CoreClient) -> None:
    declare(client, "q", max_priority=5)
    for body, priority in (("a1", 1), ("a3", 3), ("b1", 1), ("b3", 3), ("a5", 5)):
        client.fill("q", body, priority=priority)
    assert client.drain("q") == ["a5", "a3", "b3", "a1", "b1"]


def test_no_priority_is_0_and_above_the_maximum_is_the_maximum(client: CoreClient) -> None:
    declare(client, "q", max_priority=5)
    client.fill("q", "none")
    client.fill("q", "zero", priority=0)
    client.fill("q", "five", priority=5)
    client.fill("q", "two hundred", priority=200)
    assert client.drain("q") == ["five", "two hundred", "none", "zero"]


def test_a_requeued_message_keeps_its_priority_and_place(client: CoreClient) -> None:
    declare(client, "q", max_priority=5)
    for body in ("a", "b"):
        client.fill("q", body, priority=3)
    client.fill("q", "low", priority=1)
    assert client.get("q") == "a"
    client.fill("q", "high", priority=4)
    client.send("basic.nack", delivery_tag=1, requeue=True)
    assert client.drain("q") == ["high", "a", "b", "low"]


def test_a_queue_without_priorities_ignores_them(client: CoreClient) -> None:
    declare(client, "q")
    for n, priority in enumerate((1, 9, 5)):
        client.fill("q", str(n), priority=priority)
    assert client.drain("q") == ["0", "1", "2"]
