"""A delivery that is not acknowledged within its queue's deadline goes back by itself; its channel goes on."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from warrenmq.broker.channel.late_tags import RUNS, LateTags
from warrenmq.testing.core import Core
from warrenmq.testing.core_client import CoreClient
from warrenmq.wire.content import Properties

pytestmark = pytest.mark.pure

DEADLINE = 5000
SLACK = 100  # between two looks

CLASSIC: dict[str, object] = {"x-ack-deadline": DEADLINE}
QUORUM: dict[str, object] = {"x-ack-deadline": DEADLINE, "x-queue-type": "quorum"}


def declare(client: CoreClient, arguments: Mapping[str, object], *bodies: str, queue: str = "q") -> None:
    client.declare(queue, arguments=arguments)
    client.fill(queue, *bodies)
    client.take()


@pytest.mark.parametrize("arguments", [CLASSIC, QUORUM], ids=["classic", "quorum"])
def test_only_the_late_delivery_goes_back_and_its_ack_is_ignored(
    core: Core, client: CoreClient, arguments: dict[str, object]
) -> None:
    declare(client, arguments, "a", "b")
    client.consume("q", prefetch=1)
    assert client.delivered() == ["a"]
    core.advance(DEADLINE - 1)
    client.send("basic.ack", delivery_tag=1)
    assert client.delivered() == ["b"]
    core.advance(DEADLINE - 1)
    assert client.delivered() == []  # its time began when it was delivered
    core.advance(1 + SLACK)
    assert client.delivered() == ["b*"]
    client.send("basic.ack", delivery_tag=2)
    assert client.take() == []
    assert core.queue("q").unacked == 1 and core.broker.services.deadlines.missed == 1
    client.send("basic.ack", delivery_tag=3)
    assert core.queue("q").unacked == 0 and core.ready("q") == 0


def test_another_consumer_gets_what_one_did_not_answer(core: Core, client: CoreClient) -> None:
    declare(client, CLASSIC, "a", "b")
    client.consume("q", prefetch=2)
    other = core.client()
    other.consume("q", prefetch=5)
    assert client.delivered() == ["a", "b"]
    client.send("basic.cancel", consumer_tag="c")
    core.advance(DEADLINE + SLACK)
    assert other.delivered() == ["a*", "b*"]
    assert core.broker.services.deadlines.missed == 2


def test_without_a_deadline_nothing_goes_back_and_the_consumer_timeout_closes_the_channel_as_ever(
    core: Core, client: CoreClient
) -> None:
    declare(client, {}, "a")
    client.consume("q")
    client.take()
    core.advance(1_800_000 - 60_000)
    assert client.take() == []
    core.advance(240_000)
    assert "timed out. Timeout value used: 1800000 ms" in client.closing()


def test_an_ack_of_a_tag_that_was_never_given_out_is_406_as_ever(core: Core, client: CoreClient) -> None:
    declare(client, CLASSIC, "a")
    client.consume("q", prefetch=1)
    core.advance(DEADLINE + SLACK)
    client.take()
    client.send("basic.ack", delivery_tag=9)
    assert client.closing() == "406 PRECONDITION_FAILED - unknown delivery tag 9"


@pytest.mark.parametrize(
    ("method", "more"),
    [
        ("basic.nack", {"requeue": True}),
        ("basic.nack", {"requeue": False}),
        ("basic.nack", {"requeue": False, "multiple": True}),
        ("basic.reject", {"requeue": False}),
        ("basic.ack", {"multiple": True}),
    ],
)
def test_whatever_is_said_about_a_late_delivery_is_ignored(
    core: Core, client: CoreClient, method: str, more: dict[str, bool]
) -> None:
    declare(client, CLASSIC, "a")
    assert client.get("q") == "a"
    core.advance(DEADLINE + SLACK)
    assert core.ready("q") == 1
    client.send(method, delivery_tag=1, **more)
    assert [got.name for got in client.take() if got.name != "basic.get-ok"] == []
    assert core.ready("q") == 1


def test_a_multiple_ack_up_to_a_late_tag_settles_what_is_older(core: Core, client: CoreClient) -> None:
    declare(client, {}, "old", queue="slow")
    declare(client, CLASSIC, "a", "b")
    assert [client.get("slow"), client.get("q"), client.get("q")] == ["old", "a", "b"]
    core.advance(DEADLINE + SLACK)
    assert core.ready("q") == 2 and core.queue("slow").unacked == 1
    client.send("basic.ack", delivery_tag=2, multiple=True)
    assert core.queue("slow").unacked == 0


def test_it_counts_as_a_failed_delivery_of_a_quorum_queue(core: Core, client: CoreClient) -> None:
    client.declare("dead")
    letters = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    declare(client, {**QUORUM, **letters, "x-delivery-limit": 1}, "a")
    client.consume("q", prefetch=1)
    for _ in range(2):
        core.advance(DEADLINE + SLACK)
    assert core.ready("dead") == 1 and core.queue("q").unacked == 0


def test_a_policy_puts_it_into_force_on_what_is_outstanding_and_out_of_force_again(
    core: Core, client: CoreClient
) -> None:
    declare(client, {}, "a", "b")
    declare(client, {"x-ack-deadline": 50}, queue="other")
    assert client.get("q") == "a"
    core.advance(60_000)
    assert core.ready("q") == 1
    core.policy("^q$", ack_deadline=10_000)
    core.advance(SLACK)
    assert core.ready("q") == 2
    assert client.get("q") == "a"
    core.policy("^q$", max_length=100)
    core.advance(60_000)
    assert core.ready("q") == 1


def test_the_smaller_of_argument_and_policy_holds(core: Core, client: CoreClient) -> None:
    declare(client, {"x-ack-deadline": 60_000}, "a")
    core.policy("^q$", ack_deadline=1000)
    assert client.get("q") == "a"
    core.advance(1000 + SLACK)
    assert core.ready("q") == 1


def test_queues_with_other_deadlines_on_one_channel_keep_theirs(core: Core, client: CoreClient) -> None:
    declare(client, {"x-ack-deadline": 20_000}, "slow", queue="slow")
    declare(client, {"x-ack-deadline": 1000}, "quick", queue="quick")
    declare(client, {}, "never", queue="never")
    for queue in ("slow", "quick", "never"):
        client.get(queue)
    core.advance(1000 + SLACK)
    assert [core.ready(queue) for queue in ("slow", "quick", "never")] == [0, 1, 0]
    core.advance(19_000)
    assert [core.ready(queue) for queue in ("slow", "quick", "never")] == [1, 1, 0]


def test_what_a_transaction_acknowledges_in_time_is_in_time_and_what_it_rolls_back_is_not(
    core: Core, client: CoreClient
) -> None:
    declare(client, CLASSIC, "a", "b")
    client.send("tx.select")
    assert [client.get("q"), client.get("q")] == ["a", "b"]
    for tag in (1, 2):
        client.send("basic.ack", delivery_tag=tag)
    core.advance(2 * DEADLINE)
    assert core.ready("q") == 0
    client.send("tx.rollback")
    core.advance(DEADLINE + SLACK)
    assert core.ready("q") == 2
    client.take()
    for tag in (1, 2):
        client.send("basic.ack", delivery_tag=tag)
    client.send("tx.commit")
    assert client.names() == ["tx.commit-ok"]
    assert core.ready("q") == 2


def test_a_rollback_makes_deliveries_late_that_were_watched_before_the_transaction_took_them(
    core: Core, client: CoreClient
) -> None:
    declare(client, CLASSIC, "a", "b")
    client.send("tx.select")
    assert [client.get("q"), client.get("q")] == ["a", "b"]
    core.advance(DEADLINE // 2)
    client.send("basic.ack", delivery_tag=1)
    core.advance(2 * DEADLINE)
    assert core.ready("q") == 1
    client.send("tx.rollback")
    core.advance(DEADLINE + SLACK)
    assert core.ready("q") == 2 and core.queue("q").unacked == 0


def test_very_many_late_deliveries_go_back_in_several_turns(core: Core, client: CoreClient) -> None:
    declare(client, CLASSIC)
    one = client.published("", "q", b"x", Properties())
    client.feed(one * 5000)
    client.consume("q", prefetch=5000)
    client.take()
    client.send("basic.cancel", consumer_tag="c")
    core.advance(DEADLINE)
    assert 0 < core.ready("q") <= 1000
    core.advance(SLACK)
    assert core.ready("q") == 5000 and core.queue("q").unacked == 0
    client.take()
    client.send("basic.ack", delivery_tag=5000, multiple=True)
    assert client.take() == []


@pytest.mark.parametrize("value", [0, -1, "soon", 315_360_000_001])
def test_a_deadline_that_is_none_is_refused(client: CoreClient, value: object) -> None:
    client.send("queue.declare", queue="q", arguments={"x-ack-deadline": value})
    assert client.closing().startswith("406 PRECONDITION_FAILED - invalid arg 'x-ack-deadline' for queue 'q'")


def test_a_stream_has_none(client: CoreClient) -> None:
    arguments = {"x-ack-deadline": 5, "x-queue-type": "stream"}
    client.send("queue.declare", queue="s", durable=True, arguments=arguments)
    assert "invalid arg 'x-ack-deadline'" in client.closing()


def test_while_no_queue_has_a_deadline_nobody_looks(core: Core, client: CoreClient) -> None:
    declare(client, CLASSIC)
    assert core.broker.services.deadlines.due > 0
    client.send("queue.delete", queue="q")
    core.advance(2 * DEADLINE)
    assert core.broker.services.deadlines.due == -1


def test_late_tags_that_follow_one_another_are_one_run() -> None:
    tags = LateTags()
    for tag in (5, 7, 6, 1, 3, 2):
        tags.add(tag)
    assert [tag for tag in range(10) if tag in tags] == [1, 2, 3, 5, 6, 7]
    for tag in range(100, 100 + 4 * RUNS, 2):
        tags.add(tag)
    assert 1 not in tags and 100 + 4 * RUNS - 2 in tags
