"""One queue, as ``whatif`` sees it, beside the broker's own, classic or quorum, on the virtual clock: the same fate."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from warrenmq.supposing.outcomes import DROPPED, EXPIRED, REFUSED, THERE
from warrenmq.supposing.queues import Bounds, Queues, Seen, queues_of, worth_it
from warrenmq.supposing.waiting import fates
from warrenmq.testing.core import Core

pytestmark = pytest.mark.pure

REASONS = {"expired": EXPIRED, "maxlen": DROPPED}


def arguments(chance: random.Random) -> dict[str, Any]:
    found: dict[str, Any] = {"x-queue-type": chance.choice(["classic", "quorum"])}
    if found["x-queue-type"] == "classic" and chance.random() < 0.4:
        found["x-max-priority"] = chance.randint(1, 3)
    if chance.random() < 0.6:
        found["x-max-length"] = chance.randint(0, 6)
    if chance.random() < 0.3:
        found["x-max-length-bytes"] = chance.randint(0, 40)
    if chance.random() < 0.4:
        found["x-overflow"] = chance.choice(["drop-head", "reject-publish", "reject-publish"])
    if chance.random() < 0.4:
        found["x-message-ttl"] = chance.choice([0, 5, 20, 100_000])
    return found


def live(folder: Path, given: dict[str, Any], chance: random.Random, count: int) -> tuple[list[Any], list[str], int]:
    """Messages to a queue with these arguments, some of which are got from it at random; and what became of each."""
    with Core(folder) as core:
        client = core.client()
        client.declare("graves")
        client.declare("q", arguments={**given, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "graves"})
        client.call("confirm.select")
        messages: list[Any] = []
        truth: list[str] = []
        for number in range(count):
            core.advance(chance.choice([0, 0, 1, 3, 10]))
            if chance.random() < 0.3:
                core.advance(1)  # not in the millisecond of a publish: so a consumer takes what it waited for
                got = client.call("basic.get", queue="q", no_ack=True)
                if got.name == "basic.get-ok":
                    assert got.properties is not None
                    messages[int(got.properties.message_id or "")][3] = core.clock.now_ms()
            size = chance.randint(0, 12)
            ttl = chance.choice([None, None, None, 0, 4, 30])
            priority = chance.choice([0, 0, 1, 2, 5])
            client.take()
            expiration = None if ttl is None else str(ttl)
            client.publish("", "q", b"x" * size, message_id=str(number), expiration=expiration, priority=priority)
            (answer,) = client.names()
            messages.append([core.clock.now_ms(), size, ttl, None, priority])
            truth.append(REFUSED if answer == "basic.nack" else THERE)
        core.advance(7)
        while (got := client.call("basic.get", queue="graves", no_ack=True)).name == "basic.get-ok":
            assert got.properties is not None
            truth[int(got.properties.message_id or "")] = REASONS[str(got.headers["x-first-death-reason"])]
        return messages, truth, core.clock.now_ms()


def compare(folder: Path, seed: int, count: int) -> set[str]:
    chance = random.Random(seed)
    given = arguments(chance)
    messages, truth, now = live(folder / str(seed), given, chance, count)
    bounds = queues_of({"queues": [{"name": "q", "vhost": "/", "arguments": given}]}).bounds["/", "q"]
    assert fates(bounds, [tuple(each) for each in messages], now) == truth, (seed, given)
    return set(truth)


def test_every_message_has_the_fate_that_the_broker_gives_it(tmp_path: Path) -> None:
    seen = set().union(*(compare(tmp_path, seed, 60) for seed in range(24)))
    assert seen == {THERE, EXPIRED, DROPPED, REFUSED}


@pytest.mark.soak
def test_every_message_has_the_fate_that_the_broker_gives_it_at_length(tmp_path: Path) -> None:
    for seed in range(1000, 1400):
        compare(tmp_path, seed, 500)


def test_policies_and_operator_policies_bound_queues_as_in_the_broker() -> None:
    found = queues_of(
        {
            "queues": [
                {"name": "a", "vhost": "/", "arguments": {"x-max-length": 10}},
                {"name": "b", "vhost": "v", "arguments": {"x-message-ttl": 5, "x-overflow": "reject-publish"}},
                {"name": "s", "vhost": "/", "arguments": {"x-queue-type": "stream"}},
                {"name": "p", "vhost": "/", "arguments": {"x-max-priority": 3}},
            ],
            "policies": [
                {"vhost": "/", "name": "p", "pattern": "^a", "definition": {"max-length": 5, "message-ttl": 7}}
            ],
            "parameters": [
                {
                    "component": "operator_policy",
                    "vhost": "/",
                    "name": "o",
                    "value": {"pattern": "a", "definition": {"message-ttl": 3}},
                }
            ],
        }
    )
    bounds = {("/", "a"): Bounds(3, 5), ("v", "b"): Bounds(5, drop_head=False), ("/", "p"): Bounds(max_priority=3)}
    assert found.bounds == bounds and found.untold == {("/", "s")}


def test_a_queue_that_refused_before_is_looked_at_where_another_may_refuse_now() -> None:
    """Else a message that both refuse would seem to be nacked only now."""
    places = [("/", name) for name in ("same", "shorter", "free")]
    before = Queues({("/", "same"): Bounds(max_length=1, drop_head=False)}, frozenset())
    after = Queues(before.bounds | {("/", "shorter"): Bounds(max_length=1, drop_head=False)}, frozenset())
    seen = [Seen(place, False, False, None) for place in places]
    assert worth_it(seen, before, before) == ([], [])
    assert [one.place[1] for one in worth_it(seen, before, after)[0]] == ["shorter", "same"]
    dropping = Queues(before.bounds | {("/", "shorter"): Bounds(max_length=1)}, frozenset())
    assert [one.place[1] for one in worth_it(seen, before, dropping)[0]] == ["shorter"]
