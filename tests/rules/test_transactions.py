"""Transactions: nothing before the commit, all or nothing at the commit, nothing after a rollback."""

from __future__ import annotations

from pathlib import Path

import pytest

from warrenmq.testing.core import Core
from warrenmq.testing.core_client import CoreClient

pytestmark = pytest.mark.pure


@pytest.fixture
def client(core: Core) -> CoreClient:
    """A channel in a transaction, with one message outstanding under tag 1."""
    client = core.client()
    for name in ("q", "work"):
        client.call("queue.declare", queue=name)
    client.call("queue.declare", queue="small", arguments={"x-max-length": 2, "x-overflow": "reject-publish"})
    client.fill("work", "job")
    client.call("tx.select")
    assert client.get("work") == "job"
    client.take()
    return client


def test_publishes_and_acks_wait_for_the_commit(core: Core, client: CoreClient) -> None:
    client.fill("q", "a", "b")
    client.send("basic.ack", delivery_tag=1)
    assert (core.queue("q").ready, core.queue("work").unacked) == (0, 1)
    assert client.call("tx.commit").name == "tx.commit-ok"
    assert (core.queue("q").ready, core.queue("work").unacked) == (2, 0)


def test_a_rollback_forgets_publishes_and_makes_acks_outstanding_again(core: Core, client: CoreClient) -> None:
    client.fill("q", "a")
    client.send("basic.ack", delivery_tag=1)
    assert client.call("tx.rollback").name == "tx.rollback-ok"
    client.call("tx.commit")
    assert (core.queue("q").ready, core.queue("work").unacked) == (0, 1)
    client.take()
    client.send("basic.ack", delivery_tag=1)
    client.call("tx.commit")
    assert core.queue("work").unacked == 0


def test_a_rollback_leaves_outstanding_what_lies_between_what_it_puts_back_and_what_was_committed(
    core: Core, client: CoreClient
) -> None:
    client.fill("work", "b", "c")
    client.call("tx.commit")
    assert [client.get("work"), client.get("work")] == ["b", "c"]
    client.send("basic.ack", delivery_tag=1)
    client.call("tx.commit")
    client.send("basic.ack", delivery_tag=3)
    client.call("tx.rollback")
    client.take()
    for tag in (2, 3):
        client.send("basic.ack", delivery_tag=tag)
    client.call("tx.commit")
    assert (core.queue("work").ready, core.queue("work").unacked) == (0, 0)


def test_a_rollback_puts_back_everything_when_what_came_later_was_committed(core: Core, client: CoreClient) -> None:
    client.fill("work", "b", "c", "d")
    client.call("tx.commit")
    assert [client.get("work") for _ in range(3)] == ["b", "c", "d"]
    for tag in (2, 4):
        client.send("basic.ack", delivery_tag=tag)
    client.call("tx.commit")
    client.send("basic.ack", delivery_tag=3, multiple=True)
    client.call("tx.rollback")
    client.take()
    assert core.queue("work").unacked == 2
    for tag in (1, 3):
        client.send("basic.ack", delivery_tag=tag)
    client.call("tx.commit")
    assert (core.queue("work").ready, core.queue("work").unacked) == (0, 0)


@pytest.mark.parametrize("end", ["channel", "connection"])
def test_a_channel_that_goes_rolls_back(core: Core, client: CoreClient, end: str) -> None:
    client.fill("q", "a")
    client.send("basic.ack", delivery_tag=1)
    if end == "channel":
        client.call("channel.close")
    else:
        core.broker.begin_turn()
        client.connection.lost("cut")
        core.broker.end_turn()
    other = core.client()
    assert other.drain("q") == [] and other.drain("work") == ["job"]


def test_a_mandatory_message_is_returned_at_the_commit_and_before_its_answer(client: CoreClient) -> None:
    client.publish("", "nowhere", b"x", mandatory=True)
    assert client.story() == []
    client.send("tx.commit")
    assert client.story() == ["return 312 x", "tx.commit-ok"]


def test_routing_is_done_at_the_publish(core: Core, client: CoreClient) -> None:
    client.send("queue.bind", queue="q", exchange="amq.direct", routing_key="k")
    client.publish("amq.direct", "k", b"early")
    client.send("queue.unbind", queue="q", exchange="amq.direct", routing_key="k")
    client.publish("amq.direct", "k", b"late")
    client.send("tx.commit")
    assert core.client().drain("q") == ["early"]


def test_a_bad_publish_is_told_at_once(client: CoreClient) -> None:
    client.publish("missing", "", b"x")
    assert client.closing() == "404 NOT_FOUND - no exchange 'missing' in vhost '/'"


def test_when_a_queue_refuses_nothing_is_applied_and_the_acks_stay_outstanding(core: Core, client: CoreClient) -> None:
    client.fill("q", "a")
    client.fill("small", "1", "2", "3")
    client.send("basic.ack", delivery_tag=1)
    client.send("tx.commit")
    assert client.closing() == "406 PRECONDITION_FAILED - partial tx completion"
    other = core.client()
    assert other.drain("q") == [] and other.drain("small") == []
    assert other.drain("work") == ["job"]


def test_what_fits_is_committed(core: Core, client: CoreClient) -> None:
    client.fill("small", "1", "2")
    assert client.call("tx.commit").name == "tx.commit-ok"
    assert core.client().drain("small") == ["1", "2"]


def test_rejects_are_applied_in_order_at_the_commit(core: Core, client: CoreClient) -> None:
    client.fill("work", "second", "third")
    client.call("tx.commit")
    client.get("work")
    client.get("work")
    client.take()
    client.send("basic.reject", delivery_tag=1, requeue=True)
    client.send("basic.nack", delivery_tag=2)
    client.send("basic.ack", delivery_tag=3)
    assert core.queue("work").unacked == 3
    client.call("tx.commit")
    assert core.client().drain("work") == ["job"]


def test_a_tag_settled_in_the_transaction_is_not_outstanding_any_more(client: CoreClient) -> None:
    client.send("basic.ack", delivery_tag=1)
    client.send("basic.ack", delivery_tag=1)
    assert client.closing() == "406 PRECONDITION_FAILED - unknown delivery tag 1"


def test_the_modes_exclude_each_other(core: Core, client: CoreClient) -> None:
    client.send("confirm.select")
    assert client.closing() == "406 PRECONDITION_FAILED - cannot switch from tx to confirm mode"
    other = core.client()
    other.call("confirm.select")
    other.send("tx.select")
    other.received = [got for got in other.received if got.name != "confirm.select-ok"]
    assert other.closing() == "406 PRECONDITION_FAILED - cannot switch from confirm to tx mode"


@pytest.mark.parametrize("method", ["tx.commit", "tx.rollback"])
def test_without_select_there_is_nothing_to_end(core: Core, method: str) -> None:
    client = core.client()
    client.send(method)
    assert client.closing() == "406 PRECONDITION_FAILED - channel is not transactional"


def test_the_answer_to_a_commit_waits_for_the_disk_and_it_is_one_batch(tmp_path: Path) -> None:
    held = Core(tmp_path, held=True)
    client = held.client(persistent=True)
    client.open()
    client.declare("a")
    client.declare("b")
    client.send("tx.select")
    client.take()
    batch = held.log.batch
    client.feed(client.published("", "a", b"1") + client.published("", "b", b"2"))
    client.send("tx.commit")
    assert client.names() == []
    assert held.log.batch - batch <= 2, "the commit was cut in pieces"
    held.commit()
    assert client.names() == ["tx.commit-ok"]
    assert (held.ready("a"), held.ready("b")) == (1, 1)


def test_a_second_transaction_is_as_good_as_the_first(core: Core, client: CoreClient) -> None:
    for n in range(5):
        client.fill("q", str(n))
        client.call("tx.commit" if n % 2 else "tx.rollback")
        client.take()
    assert core.client().drain("q") == ["1", "3"]
