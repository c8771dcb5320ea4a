"""A large transaction is committed a slice a turn, and all or nothing still: for its client, others, and the log."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.limits.gate import advance
from tests.rules.test_slices import publish
from warrenmq.broker.channel.committing import PUBLISH
from warrenmq.broker.services.turn import SLICE
from warrenmq.testing.core import Core
from warrenmq.testing.core_client import CoreClient

pytestmark = pytest.mark.slices

A_TURN = SLICE // PUBLISH  # publishes
MANY = 2 * A_TURN + 100


def transaction(core: Core, durable: bool = True, **arguments: object) -> CoreClient:
    """Many publishes that wait for their commit."""
    client = core.client()
    client.call("queue.declare", queue="q", durable=durable, arguments=arguments)
    client.call("tx.select")
    publish(client, "q", range(MANY), delivery_mode=2 if durable else 1)
    client.take()
    assert core.queue("q").ready == 0
    return client


def finish(core: Core, *clients: CoreClient) -> None:
    for _ in range(100):
        advance(core, 1)
        for client in clients:
            client._collect()
        if not core.broker.services.jobs.busy():
            break
    advance(core, 1)
    for client in clients:
        client._collect()


def names(client: CoreClient) -> list[str]:
    return [got.name for got in client.take()]


def in_the_middle(core: Core, client: CoreClient) -> None:
    """Commit, and go on until some of it is applied."""
    client.send("tx.commit")
    for _ in range(100):
        if 0 < core.queue("q").ready < MANY:
            return
        advance(core, 1)
    raise AssertionError("it was never in the middle")


@pytest.mark.parametrize("durable", [False, True])
def test_a_commit_applies_a_bounded_number_a_turn_and_answers_behind_the_last(core: Core, durable: bool) -> None:
    client = transaction(core, durable)
    client.send("tx.commit")
    turns = [0, int(core.queue("q").ready)]
    while core.queue("q").ready < MANY:
        assert names(client) == []
        advance(core, 1)
        client._collect()
        turns.append(int(core.queue("q").ready))
        assert len(turns) < 100
    steps = [after - before for before, after in zip(turns, turns[1:], strict=False)]
    assert max(steps) <= A_TURN + 1
    finish(core, client)
    assert names(client) == ["tx.commit-ok"]
    client.call("basic.consume", queue="q", no_ack=True)
    assert client.delivered() == [str(number) for number in range(MANY)]


def test_a_crash_in_the_middle_finds_nothing_of_it_and_one_behind_the_answer_all(tmp_path: Path) -> None:
    core = Core(tmp_path)
    in_the_middle(core, transaction(core))
    core.restart(clean=False)
    assert core.queue("q").ready == 0
    client = transaction(core)
    client.send("tx.commit")
    finish(core, client)
    assert names(client) == ["tx.commit-ok"]
    core.restart(clean=False)
    assert core.queue("q").ready == MANY


def test_a_crash_in_the_middle_brings_back_what_it_acknowledged(tmp_path: Path) -> None:
    core = Core(tmp_path)
    client = core.client()
    client.call("queue.declare", queue="q", durable=True)
    client.call("queue.declare", queue="other", durable=True)
    publish(client, "other", range(SLICE + 100), delivery_mode=2)
    client.call("basic.consume", queue="other")
    client.call("tx.select")
    client.take()
    publish(client, "q", range(5), delivery_mode=2)
    client.send("basic.ack", delivery_tag=0, multiple=True)
    client.send("tx.commit")
    for _ in range(100):
        if 0 < core.queue("other").unacked < SLICE + 100:
            break
        advance(core, 1)
    assert 0 < core.queue("other").unacked < SLICE + 100
    core.restart(clean=False)
    assert (core.queue("q").ready, core.queue("other").ready) == (0, SLICE + 100)


def test_others_are_answered_meanwhile_and_confirmed_behind_it(core: Core) -> None:
    client = transaction(core)
    other = core.client()
    other.call("queue.declare", queue="other", durable=True)
    other.call("confirm.select")
    other.take()
    in_the_middle(core, client)
    publish(other, "other", range(1), delivery_mode=2)
    other.send("queue.declare", queue="honest", exclusive=True)
    assert names(other) == ["queue.declare-ok"]
    assert core.queue("q").ready < MANY
    finish(core, client, other)
    assert (names(client), names(other)) == (["tx.commit-ok"], ["basic.ack"])


def test_the_second_of_two_commits_begins_when_the_first_is_on_disk(core: Core) -> None:
    first = transaction(core)
    second = core.client()
    second.call("queue.declare", queue="r", durable=True)
    second.call("tx.select")
    publish(second, "r", range(MANY), delivery_mode=2)
    second.take()
    in_the_middle(core, first)
    second.send("tx.commit")
    while core.queue("q").ready < MANY:
        assert core.queue("r").ready == 0
        advance(core, 1)
    finish(core, first, second)
    assert (names(first), names(second)) == (["tx.commit-ok"], ["tx.commit-ok"])
    assert (core.queue("q").ready, core.queue("r").ready) == (MANY, MANY)


def test_a_queue_that_others_fill_meanwhile_takes_it_all_the_same(core: Core) -> None:
    client = transaction(core, **{"x-max-length": MANY, "x-overflow": "reject-publish"})  # type: ignore[arg-type]
    other = core.client()
    other.call("confirm.select")
    in_the_middle(core, client)
    here = int(core.queue("q").ready)
    publish(other, "q", range(MANY - here), delivery_mode=2)
    finish(core, client, other)
    assert names(client) == ["tx.commit-ok"]
    assert core.queue("q").ready == 2 * MANY - here


def test_one_that_a_queue_would_refuse_applies_nothing_however_late_that_is_found(core: Core) -> None:
    client = core.client()
    client.call("queue.declare", queue="held")
    publish(client, "held", range(3))
    client.call("basic.consume", queue="held", consumer_tag="c")
    client.call("queue.declare", queue="full", arguments={"x-max-length": 1, "x-overflow": "reject-publish"})
    client.call("queue.declare", queue="q")
    client.call("tx.select")
    publish(client, "q", range(SLICE))
    publish(client, "full", range(2))
    client.send("basic.ack", delivery_tag=0, multiple=True)
    client.send("basic.cancel", consumer_tag="c")
    client.take()
    client.send("tx.commit")
    assert names(client) == []
    finish(core, client)
    (close,) = client.take()
    assert (close.name, close["reply_code"], close["reply_text"]) == (
        "channel.close",
        406,
        "PRECONDITION_FAILED - partial tx completion",
    )
    assert [int(core.queue(name).ready) for name in ("q", "full", "held")] == [0, 0, 3]


@pytest.mark.parametrize("refused", [False, True])
def test_a_client_that_goes_meanwhile_changes_nothing(core: Core, refused: bool) -> None:
    client = core.client()
    client.call("queue.declare", queue="held")
    publish(client, "held", range(3))
    client.call("basic.consume", queue="held")
    client.call("queue.declare", queue="full", arguments={"x-max-length": 1, "x-overflow": "reject-publish"})
    client.call("queue.declare", queue="q")
    client.call("tx.select")
    publish(client, "q", range(SLICE))
    publish(client, "full", range(2 if refused else 1))
    client.send("basic.ack", delivery_tag=0, multiple=True)
    client.send("tx.commit")
    client.connection.lost("gone")
    finish(core)
    found = [int(core.queue(name).ready) for name in ("q", "full", "held")]
    assert found == ([0, 0, 3] if refused else [SLICE, 1, 0])
    assert core.queue("held").unacked == 0


def test_a_broker_that_stops_meanwhile_has_applied_all_of_it(tmp_path: Path) -> None:
    core = Core(tmp_path)
    first = transaction(core)
    second = core.client()
    second.call("queue.declare", queue="r", durable=True)
    second.call("tx.select")
    publish(second, "r", range(MANY), delivery_mode=2)
    in_the_middle(core, first)
    second.send("tx.commit")
    core.restart()
    assert (core.queue("q").ready, core.queue("r").ready) == (MANY, MANY)


def holding(core: Core, count: int, durable: bool = False) -> CoreClient:
    """A transaction on a channel that holds so many deliveries."""
    client = core.client()
    client.call("queue.declare", queue="q", durable=durable)
    publish(client, "q", range(count), delivery_mode=2 if durable else 1)
    client.call("basic.consume", queue="q")
    client.call("tx.select")
    assert core.queue("q").unacked == count
    client.take()
    return client


@pytest.mark.parametrize("method", ["basic.ack", "basic.nack"])
def test_very_many_acknowledgements_are_committed_a_slice_a_turn(core: Core, method: str) -> None:
    count = 2 * SLICE + 100
    client = holding(core, count)
    client.send(method, delivery_tag=0, multiple=True, **({"requeue": False} if method == "basic.nack" else {}))
    client.send("tx.commit")
    turns = [count, int(core.queue("q").unacked)]
    while core.queue("q").unacked:
        assert names(client) == []
        advance(core, 1)
        client._collect()
        turns.append(int(core.queue("q").unacked))
        assert len(turns) < 100
    assert max(before - after for before, after in zip(turns, turns[1:], strict=False)) <= SLICE
    finish(core, client)
    assert names(client) == ["tx.commit-ok"]


def test_what_goes_back_or_finds_room_is_delivered_behind_the_answer(core: Core) -> None:
    count = SLICE + 100
    client = core.client()
    client.call("queue.declare", queue="q")
    publish(client, "q", range(count))
    client.call("basic.qos", prefetch_count=count - 1)
    client.call("basic.consume", queue="q")
    client.call("tx.select")
    client.take()
    client.send("basic.ack", delivery_tag=count - 2, multiple=True)
    client.send("basic.nack", delivery_tag=count - 1, requeue=True)
    client.send("tx.commit")
    finish(core, client)
    answers = client.take()
    assert [got.name for got in answers] == ["tx.commit-ok", "basic.deliver", "basic.deliver"]
    assert [got.body for got in answers[1:]] == [b"%d" % (count - 2), b"%d" % (count - 1)]


def test_very_many_acknowledgements_that_are_rolled_back_are_outstanding_again(core: Core) -> None:
    client = holding(core, 5000)
    client.send("basic.ack", delivery_tag=1234)
    client.send("basic.ack", delivery_tag=0, multiple=True)
    client.call("tx.rollback")
    client.send("basic.ack", delivery_tag=4000, multiple=True)
    client.call("tx.commit")
    assert core.queue("q").unacked == 1000
    client.send("channel.close", reply_code=200, reply_text="", class_id=0, method_id=0)
    finish(core, client)
    assert core.queue("q").ready == 1000


def test_a_queue_deleted_before_the_commit_takes_what_was_acknowledged_along_in_the_log_too(core: Core) -> None:
    client = holding(core, 300, durable=True)
    client.send("basic.ack", delivery_tag=100, multiple=True)
    assert sum(int(segment.live) for segment in core.log.segments.values()) == 300
    core.client().call("queue.delete", queue="q")
    assert sum(int(segment.live) for segment in core.log.segments.values()) == 0
    assert "tx.commit-ok" in [got.name for got in [client.call("tx.commit")]]


def test_no_command_is_taken_meanwhile(core: Core) -> None:
    client = transaction(core)
    in_the_middle(core, client)
    client.send("basic.qos", prefetch_count=3)
    assert names(client) == [] and core.queue("q").ready < MANY
    finish(core, client)
    (close,) = client.take()
    assert (close.name, close["reply_code"]) == ("connection.close", 504)
    assert core.queue("q").ready == MANY


def test_a_channel_that_was_closed_while_its_commit_was_asked_about_is_not_closed_again(core: Core) -> None:
    client = core.client()
    client.call("queue.declare", queue="held", arguments={"x-consumer-timeout": 60_000})
    client.publish("", "held", b"never acknowledged")
    client.call("basic.consume", queue="held")
    client.call("queue.declare", queue="full", arguments={"x-max-length": 0, "x-overflow": "reject-publish"})
    client.call("queue.declare", queue="q")
    client.call("tx.select")
    publish(client, "q", range(SLICE))
    publish(client, "full", range(1))
    core.clock.set_ms(core.clock.now_ms() + 200_000)
    client.take()
    client.send("tx.commit")
    assert core.broker.services.jobs.busy() and names(client) == []
    core.broker.begin_turn()
    core.broker.services.timers.run_next(core.broker.services.turn.now)  # what has been unacknowledged for too long
    core.broker.end_turn()
    client._collect()
    assert [(got.name, got["reply_code"]) for got in client.take()] == [("channel.close", 406)]
    finish(core, client)
    assert names(client) == [] and core.queue("q").ready == 0
    client.send("channel.close-ok")
    client.open(1)
    assert client.call("queue.declare", queue="q", passive=True).name == "queue.declare-ok"
