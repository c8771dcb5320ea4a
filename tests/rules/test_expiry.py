"""Time: TTL of queue, message and policy, at the head only; queues that nobody uses."""

from __future__ import annotations

import random
from typing import Any

import pytest

from warrenmq.testing.core import Core
from warrenmq.testing.core_client import CoreClient
from warrenmq.wire.content import Properties, content_frames, encode_header
from warrenmq.wire.methods import method_frame

pytestmark = pytest.mark.pure


@pytest.fixture
def client(core: Core) -> CoreClient:
    client = core.client()
    client.call("queue.declare", queue="dead")
    return client


def declare(client: CoreClient, name: str, **arguments: object) -> None:
    """Underscores stand for dashes; what dies goes to ``dead``."""
    wanted = {"x-" + key.replace("_", "-"): value for key, value in arguments.items()}
    wanted |= {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    assert client.call("queue.declare", queue=name, arguments=wanted).name == "queue.declare-ok"


def test_a_message_lives_as_long_as_its_queue_says_and_not_a_millisecond_longer(core: Core, client: CoreClient) -> None:
    declare(client, "q", message_ttl=1000)
    client.fill("q", "a")
    core.advance(999)
    assert core.queue("q").ready == 1
    core.advance(1)
    assert core.queue("q").ready == 0
    assert client.drain("dead") == ["a"]


def test_the_shorter_of_queue_and_message_counts(core: Core, client: CoreClient) -> None:
    declare(client, "q", message_ttl=1000)
    client.fill("q", "short", expiration="10")
    client.fill("q", "long", expiration="100000")
    core.advance(10)
    assert client.drain("dead") == ["short"]
    core.advance(990)
    assert client.drain("dead") == ["long"]


def test_only_the_head_expires_so_a_short_one_waits_behind_a_long_one(core: Core, client: CoreClient) -> None:
    declare(client, "q")
    client.fill("q", "long", expiration="1000")
    client.fill("q", "short", expiration="10")
    core.advance(500)
    assert core.queue("q").ready == 2
    core.advance(500)
    assert client.drain("dead") == ["long", "short"]


def test_a_message_expired_behind_the_head_is_not_delivered(core: Core, client: CoreClient) -> None:
    declare(client, "q")
    client.fill("q", "first")
    client.fill("q", "expired", expiration="10")
    client.fill("q", "last")
    core.advance(20)
    assert client.get("q", no_ack=True) == "first"
    assert client.get("q", no_ack=True) == "last"
    assert client.drain("dead") == ["expired"]


def test_a_ttl_of_0_is_delivered_now_or_never(core: Core, client: CoreClient) -> None:
    declare(client, "q", message_ttl=0)
    client.fill("q", "never")
    client.consume("q", no_ack=True)
    client.fill("q", "now")
    assert client.delivered() == ["now"]
    assert client.drain("dead") == ["never"]


def test_what_is_with_a_consumer_does_not_expire_but_does_when_it_comes_back(core: Core, client: CoreClient) -> None:
    declare(client, "q", message_ttl=100)
    client.fill("q", "a")
    client.get("q")
    core.advance(1000)
    assert core.queue("q").unacked == 1
    client.send("basic.nack", delivery_tag=1, requeue=True)
    core.advance(1)
    assert client.drain("dead") == ["a"]


def test_the_expiration_of_a_message_is_not_shown_on_its_dead_letter_but_remembered(
    core: Core, client: CoreClient
) -> None:
    declare(client, "q")
    client.fill("q", "a", expiration="10")
    core.advance(10)
    dead = client.call("basic.get", queue="dead")
    assert dead.properties is not None and dead.properties.expiration is None
    deaths: Any = dead.headers["x-death"]
    [death] = deaths
    assert death["original-expiration"] == "10" and death["reason"] == "expired"


def test_a_policys_ttl_counts_for_what_arrives_from_then_on(core: Core, client: CoreClient) -> None:
    declare(client, "q")
    client.fill("q", "before")
    core.policy("^q$", message_ttl=100)
    client.fill("q", "after")
    core.advance(100)
    assert client.get("q", no_ack=True) == "before"
    assert client.get("q", no_ack=True) == ""
    assert client.drain("dead") == ["after"]


def test_the_smaller_of_policy_and_argument_counts(core: Core, client: CoreClient) -> None:
    declare(client, "q", message_ttl=1000)
    core.policy("^q$", message_ttl=50)
    client.fill("q", "a")
    core.advance(50)
    assert client.drain("dead") == ["a"]


def expire_many(core: Core, client: CoreClient, count: int) -> None:
    """Messages with TTLs in any order, one queue per thousand milliseconds: each dies when due, in order."""
    chance = random.Random(7)
    ttls = [chance.randrange(1, 1_000_000) for _ in range(count)]
    spread = 20
    for n in range(spread):
        declare(client, f"q{n}")
    start = core.clock.now_ms()
    ttls.sort()
    for at in range(0, count, 1000):
        data = []
        for n in range(at, min(at + 1000, count)):
            header = encode_header(Properties(expiration=str(ttls[n])), 8)
            data.append(method_frame(1, "basic.publish", routing_key=f"q{n % spread}"))
            data.append(content_frames(1, header, b"%08d" % n, 131072))
        client.feed(b"".join(data))
    died = 0
    client.consume("dead", no_ack=True)
    for step in range(1, 101):
        core.advance(start + step * 10_000 - core.clock.now_ms())
        client._collect()
        for got in client.take():
            assert ttls[int(got.body)] <= step * 10_000
            died += 1
        assert died == sum(ttl <= step * 10_000 for ttl in ttls)
    assert died == count


def test_three_thousand_messages_expire_when_due_and_in_order(core: Core, client: CoreClient) -> None:
    expire_many(core, client, 3_000)


@pytest.mark.soak
def test_a_million_messages_expire_when_due_and_in_order(core: Core, client: CoreClient) -> None:
    expire_many(core, client, 1_000_000)


# -- queues nobody uses --------------------------------------------------------------------------------------------


def gone(core: Core, name: str) -> bool:
    return name not in core.broker.vhosts["/"].queues


def test_a_queue_nobody_uses_goes_exactly_when_due(core: Core, client: CoreClient) -> None:
    declare(client, "q", expires=1000)
    core.advance(999)
    assert not gone(core, "q")
    core.advance(1)
    assert gone(core, "q")


@pytest.mark.parametrize("use", ["declare", "passive", "get", "consume and leave"])
def test_using_a_queue_starts_its_time_again(core: Core, client: CoreClient, use: str) -> None:
    declare(client, "q", expires=1000)
    core.advance(900)
    if use == "declare":
        declare(client, "q", expires=1000)
    elif use == "passive":
        client.call("queue.declare", queue="q", passive=True)
    elif use == "get":
        client.call("basic.get", queue="q")
    else:
        client.consume("q")
        core.advance(50_000)
        client.call("basic.cancel", consumer_tag="c")
    core.advance(999)
    assert not gone(core, "q")
    core.advance(1)
    assert gone(core, "q")


def test_publishing_is_no_use_of_a_queue(core: Core, client: CoreClient) -> None:
    declare(client, "q", expires=1000)
    core.advance(900)
    client.fill("q", "a")
    core.advance(100)
    assert gone(core, "q")
    assert client.drain("dead") == [], "what a deleted queue held is not dead-lettered"


def test_a_queue_with_a_consumer_does_not_go(core: Core, client: CoreClient) -> None:
    declare(client, "q", expires=1000)
    client.consume("q")
    core.advance(1_000_000)
    assert not gone(core, "q")


def test_a_stream_stays_although_a_policy_lets_queues_expire(core: Core, client: CoreClient) -> None:
    for kind in ("classic", "stream"):
        client.call("queue.declare", queue=kind, durable=True, arguments={"x-queue-type": kind})
    core.policy("^(classic|stream)$", expires=1000)
    core.advance(5000)
    assert set(core.broker.vhosts["/"].queues) == {"dead", "stream"}


@pytest.mark.parametrize("back", ["basic.nack", "basic.reject", "basic.recover", "channel.close"])
def test_what_comes_back_with_no_time_left_expires_before_anybody_gets_it(core: Core, back: str) -> None:
    client = core.client()
    client.open(2)
    client.call("queue.declare", queue="q", arguments={"x-message-ttl": 0})
    client.consume("q", "holder", channel=2, prefetch=2)
    client.fill("q", "1", "2")
    assert client.delivered() == ["1", "2"]
    client.call("basic.consume", queue="q", consumer_tag="next")
    values: dict[str, dict[str, Any]] = {
        "basic.nack": {"delivery_tag": 2, "multiple": True, "requeue": True},
        "basic.reject": {"delivery_tag": 2, "requeue": True},
        "basic.recover": {"requeue": True},
    }
    client.send(back, 2, **values.get(back, {}))
    assert client.delivered() == []
    assert core.queue("q").ready == 0


def test_a_get_in_the_same_breath_as_the_requeue_finds_nothing(core: Core) -> None:
    client = core.client()
    client.call("queue.declare", queue="q", arguments={"x-message-ttl": 0})
    client.consume("q", prefetch=1)
    client.fill("q", "1")
    client.take()
    client.feed(
        method_frame(1, "basic.cancel", consumer_tag="c")
        + method_frame(1, "basic.nack", delivery_tag=1, requeue=True)
        + method_frame(1, "basic.get", queue="q")
    )
    assert client.story() == ["basic.cancel-ok", "basic.get-empty"]


def test_behind_a_higher_priority_nothing_expires_until_it_comes_to_the_head(core: Core) -> None:
    client = core.client()
    client.call("queue.declare", queue="q", arguments={"x-max-priority": 5})
    client.fill("q", "low", priority=1, expiration="50")
    client.fill("q", "mid", priority=3, expiration="50")
    client.fill("q", "high", priority=5)
    core.advance(10_000)
    assert core.queue("q").ready == 3
    assert client.get("q") == "high"
    assert core.queue("q").ready == 0
    client.send("basic.nack", delivery_tag=1, requeue=True)
    assert client.drain("q") == ["high"]
