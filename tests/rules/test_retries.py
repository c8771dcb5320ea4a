"""Retries with backoff: what a client gives back comes again later, each time later still, and not for ever."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from warrenmq.broker.queue.accounts import PLACE_NAMES
from warrenmq.testing.core import Core
from warrenmq.testing.core_client import CoreClient
from warrenmq.wire.content import Properties
from warrenmq.wire.methods import method_frame

pytestmark = pytest.mark.pure

KINDS: list[dict[str, object]] = [{}, {"x-queue-type": "quorum"}]


@pytest.fixture(params=KINDS, ids=["classic", "quorum"])
def arguments(request: pytest.FixtureRequest) -> dict[str, object]:
    found: dict[str, object] = request.param
    return dict(found)


def ready(core: Core, arguments: Mapping[str, object], *bodies: str, **policy: object) -> CoreClient:
    """A client beside a queue q of this kind and policy, with these messages, and a queue for dead letters."""
    client = core.client(persistent=True)
    client.declare("dead")
    letters = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    client.declare("q", arguments={**arguments, **letters})
    core.policy("^q$", **policy)
    client.fill("q", *bodies)
    client.take()
    return client


def give_back(client: CoreClient, **more: Any) -> None:
    """Whatever was got last."""
    (got,) = [got for got in client.take() if got.name in ("basic.get-ok", "basic.deliver")]
    client.send("basic.nack", delivery_tag=got["delivery_tag"], requeue=True, **more)


def place(core: Core, name: str) -> int:
    return int(core.queue("q").account().in_place(PLACE_NAMES.index(name)))


def test_each_retry_waits_twice_as_long_as_the_one_before_up_to_the_longest(
    core: Core, arguments: dict[str, object]
) -> None:
    client = ready(core, arguments, "a", retry_delay=1000, retry_max_delay=5000)
    client.consume("q", prefetch=1)
    for wait in (1000, 2000, 4000, 5000, 5000):
        give_back(client)
        assert place(core, "retry_waiting") == 1 and core.ready("q") == 0
        core.advance(wait - 1)
        assert client.take() == []
        core.advance(1)
        assert place(core, "retry_waiting") == 0
    assert client.delivered() == ["a*"]


def test_others_go_on_meanwhile_and_a_classic_queue_puts_it_back_at_its_place(core: Core) -> None:
    client = ready(core, {}, "a", "b", "c", retry_delay=1000)
    assert client.get("q") == "a"
    give_back_last(client, 1)
    assert client.get("q") == "b"
    core.advance(1000)
    assert client.get("q") == "a"
    assert client.get("q") == "c"


def give_back_last(client: CoreClient, tag: int) -> None:
    client.take()
    client.send("basic.reject", delivery_tag=tag, requeue=True)


def test_what_was_tried_too_often_is_dead_lettered(core: Core, arguments: dict[str, object]) -> None:
    client = ready(core, arguments, "a", retry_delay=1000, retry_limit=2)
    client.consume("q", prefetch=1)
    for _ in range(2):
        give_back(client)
        core.advance(60_000)
    give_back(client)
    assert core.ready("dead") == 1 and core.queue("q").unacked == 0
    letter = client.call("basic.get", queue="dead")
    deaths = letter.headers["x-death"]
    assert isinstance(deaths, list) and deaths[0]["reason"] == "delivery_limit"


def test_a_limit_of_0_dead_letters_at_once_and_without_an_exchange_it_is_gone(core: Core) -> None:
    client = core.client()
    client.declare("q")
    core.policy("^q$", retry_delay=1000, retry_limit=0)
    client.fill("q", "a")
    client.take()
    assert client.get("q") == "a"
    give_back_last(client, 1)
    core.advance(100_000)
    assert core.ready("q") == 0 and core.queue("q").unacked == 0


def test_a_delivery_limit_holds_as_well(core: Core) -> None:
    client = ready(core, {"x-queue-type": "quorum", "x-delivery-limit": 1}, "a", retry_delay=10, retry_limit=9)
    client.consume("q", prefetch=1)
    give_back(client)
    core.advance(10)
    give_back(client)
    assert core.ready("dead") == 1


def test_jitter_shortens_the_wait_by_up_to_so_much(core: Core) -> None:
    bodies = [str(number) for number in range(60)]
    client = ready(core, {}, *bodies, retry_delay=1000, retry_jitter=50)
    client.consume("q", prefetch=60)
    client.take()
    client.send("basic.nack", delivery_tag=0, multiple=True, requeue=True)
    client.send("basic.cancel", consumer_tag="c")
    core.advance(499)
    assert core.ready("q") == 0
    core.advance(251)
    assert 5 < core.ready("q") < 55
    core.advance(250)
    assert core.ready("q") == 60


def test_a_channel_that_ends_gives_back_at_once_and_it_counts_for_nothing(core: Core) -> None:
    client = ready(core, {}, "a", retry_delay=1000, retry_limit=0)
    client.open(2)
    client.call("basic.get", 2, queue="q")
    client.send("channel.close", 2, reply_code=200, reply_text="", class_id=0, method_id=0)
    assert core.ready("q") == 1


def test_without_a_policy_it_is_back_at_once(core: Core, arguments: dict[str, object]) -> None:
    client = ready(core, arguments, "a", max_length=5)
    assert client.get("q") == "a"
    give_back_last(client, 1)
    assert core.ready("q") == 1


@pytest.mark.parametrize("clean", [True, False], ids=["stopped", "crashed"])
def test_what_waits_for_its_retry_waits_on_after_a_restart_and_its_count_is_known(
    core: Core, arguments: dict[str, object], clean: bool
) -> None:
    client = ready(core, arguments, "a", "b", retry_delay=1000, retry_limit=3)
    for tag in (1, 2):  # two tries: it waits for 2 s
        assert client.get("q") == "a"
        give_back_last(client, tag)
        core.advance(1000)
    core.restart(clean)
    assert core.ready("q") == 1 and place(core, "retry_waiting") == 1
    core.advance(999)
    assert core.ready("q") == 1
    core.advance(1)
    assert core.ready("q") == 2
    core.restart(clean)  # nor is the count forgotten while it waits for a consumer
    client = core.client()
    got = client.call("basic.get", queue="q")
    assert got.body == b"a" and got["redelivered"] is True
    client.send("basic.nack", delivery_tag=got["delivery_tag"], requeue=True)
    core.advance(3999)
    assert core.ready("q") == 1
    core.advance(1)
    got = client.call("basic.get", queue="q")
    assert got.body == b"a"
    client.send("basic.nack", delivery_tag=got["delivery_tag"], requeue=True)
    assert core.ready("dead") == 1


def test_an_acknowledged_message_leaves_no_count_behind(core: Core, arguments: dict[str, object]) -> None:
    client = ready(core, arguments, "a", retry_delay=1000)
    client.consume("q", prefetch=1)
    give_back(client)
    core.advance(1000)
    client.send("basic.ack", delivery_tag=2)
    core.restart()
    assert core.ready("q") == 0 and core.queue("q").unacked == 0


def test_transient_messages_and_priorities_wait_as_well(core: Core) -> None:
    client = ready(core, {"x-max-priority": 5}, retry_delay=1000)
    for priority, body in ((1, b"low"), (4, b"high")):
        client.publish("", "q", body, Properties(priority=priority, delivery_mode=1))
    assert client.get("q") == "high"
    give_back_last(client, 1)
    core.advance(1000)
    assert [client.get("q"), client.get("q")] == ["high", "low"]


def test_a_transaction_gives_back_when_it_is_committed(core: Core) -> None:
    client = ready(core, {}, "a", retry_delay=1000)
    client.send("tx.select")
    assert client.get("q") == "a"
    give_back_last(client, 1)
    core.advance(5000)
    assert core.ready("q") == 0
    client.send("tx.commit")
    core.advance(999)
    assert core.ready("q") == 0
    core.advance(1)
    assert core.ready("q") == 1


def test_a_missed_deadline_is_a_retry(core: Core, arguments: dict[str, object]) -> None:
    client = ready(core, arguments, "a", retry_delay=60_000, ack_deadline=1000)
    assert client.get("q") == "a"
    core.advance(1100)
    assert core.ready("q") == 0 and place(core, "retry_waiting") == 1
    core.advance(60_000)
    assert core.ready("q") == 1


def test_a_queue_that_is_purged_keeps_what_waits_and_one_that_is_deleted_takes_it_along(
    core: Core, arguments: dict[str, object]
) -> None:
    client = ready(core, arguments, "a", "b", retry_delay=1000)
    assert client.get("q") == "a"
    give_back_last(client, 1)
    client.call("queue.purge", queue="q")
    core.advance(1000)
    assert core.ready("q") == 1
    assert client.get("q") == "a"
    give_back_last(client, 2)
    client.call("queue.delete", queue="q")
    core.advance(10_000)
    core.restart(clean=False)
    assert "q" not in core.broker.vhosts["/"].queues


def test_very_many_at_once_are_few_leases(core: Core) -> None:
    client = ready(core, {}, retry_delay=1000, retry_jitter=10)
    one = client.published("", "q", b"x")
    client.feed(one * 3000)
    client.consume("q", prefetch=3000)
    client.take()
    client.send("basic.cancel", consumer_tag="c")
    nacks = b"".join(_nack(tag) for tag in range(1, 3001))
    client.feed(nacks)
    assert place(core, "retry_waiting") == 3000
    assert len(core.classic("q").leases.all()) < 200
    core.advance(1000)
    core.advance(1000)
    core.settle()
    assert core.ready("q") == 3000


def _nack(tag: int) -> bytes:
    return method_frame(1, "basic.nack", delivery_tag=tag, requeue=True)
