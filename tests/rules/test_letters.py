"""Dead letters of quorum queues at least once: they stay until every target took them, and a restart forgets none."""

from __future__ import annotations

import pytest

from warrenmq.broker.queue.letters import AT_ONCE
from warrenmq.testing.core import Core
from warrenmq.testing.core_client import CoreClient
from warrenmq.wire.content import Properties
from warrenmq.wire.fields import Field

pytestmark = pytest.mark.pure

STRATEGY = {"x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish"}
TO_DEAD = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}


def declare(client: CoreClient, name: str = "q", **arguments: object) -> None:
    wanted: dict[str, object] = {"x-queue-type": "quorum", **STRATEGY, **TO_DEAD}
    wanted |= {"x-" + key.replace("_", "-"): value for key, value in arguments.items()}
    answer = client.call("queue.declare", queue=name, durable=True, arguments=wanted)
    assert answer.name == "queue.declare-ok", answer


def reject(client: CoreClient, *bodies: str) -> None:
    """Publish these to q, take them and refuse them."""
    client.fill("q", *bodies)
    for body in bodies:
        got = client.call("basic.get", queue="q")
        assert got.body.decode() == body
        client.send("basic.reject", delivery_tag=got["delivery_tag"])


def waiting(core: Core) -> tuple[int, int]:
    return core.queue("q").letters_waiting()


def live(core: Core) -> int:
    """Records that somebody holds, by the log's own account."""
    return sum(int(segment.live) for segment in core.log.segments.values())


def test_a_letter_with_a_target_goes_there_at_once_and_the_queue_keeps_nothing(core: Core, client: CoreClient) -> None:
    declare(client)
    client.call("queue.declare", queue="dead", durable=True)
    reject(client, "a", "b")
    assert waiting(core) == (0, 0)
    got = client.call("basic.get", queue="dead")
    assert got.body == b"a" and got.headers["x-first-death-reason"] == "rejected"
    assert client.drain("dead") == ["b"]


def test_a_letter_whose_target_is_missing_stays_and_goes_within_a_second_of_its_coming(
    core: Core, client: CoreClient
) -> None:
    declare(client, dead_letter_exchange="later")
    reject(client, "a", "bc")
    assert waiting(core) == (2, 3) and core.queue("q").ready == 0
    core.advance(600_000)
    client.call("exchange.declare", exchange="later", type="fanout")
    core.advance(2000)
    client.call("queue.declare", queue="dead")
    client.call("queue.bind", queue="dead", exchange="later")
    core.advance(1000)
    assert waiting(core) == (0, 0)
    assert client.drain("dead") == ["a", "bc"]
    core.advance(10_000)
    assert client.drain("dead") == []


def test_a_full_target_gets_it_when_there_is_room_and_those_that_took_it_only_once(
    core: Core, client: CoreClient
) -> None:
    client.call("exchange.declare", exchange="fan", type="fanout")
    for name, limit in (("full", 1), ("free", 9)):
        client.call("queue.declare", queue=name, arguments={"x-max-length": limit, "x-overflow": "reject-publish"})
        client.call("queue.bind", queue=name, exchange="fan")
    declare(client, dead_letter_exchange="fan", dead_letter_routing_key="k")
    client.fill("full", "before")
    reject(client, "a")
    core.advance(5000)
    assert waiting(core) == (1, 1)
    assert client.drain("full") == ["before"]
    core.advance(1000)
    assert waiting(core) == (0, 0)
    assert (client.drain("full"), client.drain("free")) == (["a"], ["a"])


@pytest.mark.parametrize("clean", [True, False], ids=["stopped", "crashed"])
@pytest.mark.parametrize("reason", ["rejected", "expired", "delivery_limit"])
def test_a_letter_that_waits_survives_a_restart_as_a_letter(
    core: Core, client: CoreClient, clean: bool, reason: str
) -> None:
    declare(client, delivery_limit=0, message_ttl=60_000)
    client.fill("q", "a", headers=None)
    client.publish("", "q", b"b" * 300_000, Properties(delivery_mode=1))  # in pieces in the log
    if reason == "expired":
        core.advance(60_000)
    else:
        for _ in range(2):
            got = client.call("basic.get", queue="q")
            client.send("basic.reject", delivery_tag=got["delivery_tag"], requeue=reason == "delivery_limit")
    assert waiting(core) == (2, 300_001)
    for _ in range(2):
        core.restart(clean)
        assert waiting(core) == (2, 300_001) and core.queue("q").ready == 0
        core.advance(3000)
    client = core.client()
    client.call("queue.declare", queue="dead", durable=True)
    core.advance(1000)
    core.settle()
    core.advance(0)
    found = [client.call("basic.get", queue="dead") for _ in range(2)]
    assert [got.body for got in found] == [b"a", b"b" * 300_000]
    for got in found:
        assert got.headers["x-first-death-reason"] == reason and "x-delivery-count" not in got.headers
    assert waiting(core) == (0, 0)
    core.restart(clean=False)
    assert waiting(core) == (0, 0) and core.queue("q").ready == 0


def test_a_letter_that_arrived_is_in_one_place_after_a_crash_at_any_time(core: Core, client: CoreClient) -> None:
    declare(client)
    client.call("queue.declare", queue="dead", durable=True)
    client.fill("q", "a", delivery_mode=2)
    got = client.call("basic.get", queue="q")
    core.restart(clean=False)
    assert (core.queue("q").ready, core.queue("dead").ready) == (1, 0)
    client = core.client()
    got = client.call("basic.get", queue="q")
    client.send("basic.reject", delivery_tag=got["delivery_tag"])
    core.restart(clean=False)
    assert (core.queue("q").ready, waiting(core), core.queue("dead").ready) == (0, (0, 0), 1)


def test_a_purge_leaves_letters_and_a_deletion_takes_them(core: Core, client: CoreClient) -> None:
    before = live(core)
    declare(client)
    reject(client, "a")
    client.fill("q", "b")
    assert client.call("queue.purge", queue="q")["message_count"] == 1
    assert waiting(core) == (1, 1) and live(core) == before + 1
    client.call("queue.delete", queue="q")
    assert live(core) == before
    core.advance(5000)
    core.restart(clean=False)
    assert live(core) == before


def test_letters_do_not_count_towards_the_length(core: Core, client: CoreClient) -> None:
    declare(client, max_length=2)
    client.call("confirm.select")
    reject(client, "a", "b")
    client.take()
    client.fill("q", "c", "d", "e")
    assert [word.rstrip("+") for word in client.story()] == ["ack 3", "ack 4", "nack 5"]
    assert client.call("queue.declare", queue="q", passive=True)["message_count"] == 2


@pytest.mark.parametrize("lacking", ["x-overflow", "x-dead-letter-strategy", "x-dead-letter-exchange"])
def test_without_all_it_needs_the_strategy_is_at_most_once(core: Core, client: CoreClient, lacking: str) -> None:
    arguments = {"x-queue-type": "quorum", **STRATEGY, **TO_DEAD}
    del arguments[lacking]
    if lacking == "x-dead-letter-exchange":
        del arguments["x-dead-letter-routing-key"]
    client.call("queue.declare", queue="q", durable=True, arguments=arguments)
    reject(client, "a")
    assert waiting(core) == (0, 0)
    client.call("queue.declare", queue="dead")
    core.advance(5000)
    assert client.drain("dead") == []
    noted = [fields for name, fields in core.notes.seen if name == "dead_letter_strategy_not_in_force"]
    assert len(noted) == (0 if lacking == "x-dead-letter-strategy" else 1)


def test_a_policy_brings_the_strategy_and_a_change_of_it_tries_again_at_once(core: Core, client: CoreClient) -> None:
    client.call("queue.declare", queue="q", durable=True, arguments={"x-queue-type": "quorum"})
    client.call("queue.declare", queue="dead")
    rest = {"dead_letter_strategy": "at-least-once", "overflow": "reject-publish", "dead_letter_exchange": ""}
    core.policy("^q$", dead_letter_routing_key="nowhere", **rest)
    reject(client, "a")
    assert waiting(core) == (1, 1)
    core.policy("^q$", dead_letter_routing_key="dead", **rest)
    core.advance(0)
    assert waiting(core) == (0, 0) and client.drain("dead") == ["a"]


@pytest.mark.parametrize("target", [True, False])
def test_when_the_strategy_ends_letters_are_tried_once_more_and_then_gone(
    core: Core, client: CoreClient, target: bool
) -> None:
    client.call("queue.declare", queue="q", durable=True, arguments={"x-queue-type": "quorum", **TO_DEAD})
    core.policy("^q$", dead_letter_strategy="at-least-once", overflow="reject-publish")
    before = live(core)
    reject(client, "a")
    if target:
        client.call("queue.declare", queue="dead")
    core.policy("^q$", overflow="drop-head")
    core.advance(0)
    assert waiting(core) == (0, 0) and live(core) == before
    client.call("queue.declare", queue="dead")
    assert client.drain("dead") == (["a"] if target else [])


def test_a_circle_without_a_reject_waits_as_in_rabbitmq(core: Core, client: CoreClient) -> None:
    declare(client, dead_letter_routing_key="q", message_ttl=10)
    client.fill("q", "a")
    core.advance(5000)
    assert waiting(core) == (1, 1)


def test_many_letters_are_tried_a_slice_at_a_time_and_all_within_seconds(core: Core, client: CoreClient) -> None:
    declare(client, message_ttl=10)
    count = AT_ONCE * 2 + 100
    for number in range(count):
        client.publish("", "q", b"%d" % number)
    core.advance(10)
    assert waiting(core)[0] == count
    client.call("queue.declare", queue="dead")
    core.advance(1000)
    assert client.drain("dead") == [str(number) for number in range(count)]


def test_a_delayed_exchange_takes_a_letter_once(core: Core, client: CoreClient) -> None:
    client.call("exchange.declare", exchange="x", type="x-delayed-message", arguments={"x-delayed-type": "fanout"})
    client.call("queue.declare", queue="dead")
    client.call("queue.bind", queue="dead", exchange="x")
    declare(client, dead_letter_exchange="x")
    client.fill("q", "a", headers={"x-delay": Field("I", 5000)})
    got = client.call("basic.get", queue="q")
    client.send("basic.reject", delivery_tag=got["delivery_tag"])
    assert waiting(core) == (0, 0)
    core.advance(10_000)
    assert client.drain("dead") == ["a"]
    assert client.get("dead") == ""
