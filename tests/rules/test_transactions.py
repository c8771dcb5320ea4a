"""Transactions: nothing before the commit, all or nothing at the commit, nothing after a rollback."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.broker.harness import Client, Core
from tests.faults.rig import Rig
from tests.rules.desk import closing, drain, fill, get, queue

pytestmark = pytest.mark.pure


@pytest.fixture
def core(tmp_path: Path) -> Core:
    return Core(tmp_path)


@pytest.fixture
def client(core: Core) -> Client:
    """A channel in a transaction, with one message outstanding under tag 1."""
    client = core.client()
    for name in ("q", "work"):
        client.call("queue.declare", queue=name)
    client.call("queue.declare", queue="small", arguments={"x-max-length": 2, "x-overflow": "reject-publish"})
    fill(client, "work", "job")
    client.call("tx.select")
    assert get(client, "work") == "job"
    client.take()
    return client


def test_publishes_and_acks_wait_for_the_commit(core: Core, client: Client) -> None:
    fill(client, "q", "a", "b")
    client.send("basic.ack", delivery_tag=1)
    assert (queue(core, "q").ready, queue(core, "work").unacked) == (0, 1)
    assert client.call("tx.commit").name == "tx.commit-ok"
    assert (queue(core, "q").ready, queue(core, "work").unacked) == (2, 0)


def test_a_rollback_forgets_publishes_and_makes_acks_outstanding_again(core: Core, client: Client) -> None:
    fill(client, "q", "a")
    client.send("basic.ack", delivery_tag=1)
    assert client.call("tx.rollback").name == "tx.rollback-ok"
    client.call("tx.commit")
    assert (queue(core, "q").ready, queue(core, "work").unacked) == (0, 1)
    client.take()
    client.send("basic.ack", delivery_tag=1)
    client.call("tx.commit")
    assert queue(core, "work").unacked == 0


@pytest.mark.parametrize("end", ["channel", "connection"])
def test_a_channel_that_goes_rolls_back(core: Core, client: Client, end: str) -> None:
    fill(client, "q", "a")
    client.send("basic.ack", delivery_tag=1)
    if end == "channel":
        client.call("channel.close")
    else:
        core.broker.begin_turn()
        client.connection.lost("cut")
        core.broker.end_turn()
    other = core.client()
    assert drain(other, "q") == [] and drain(other, "work") == ["job"]


def test_a_mandatory_message_is_returned_at_the_commit_and_before_its_answer(client: Client) -> None:
    client.publish("", "nowhere", b"x", mandatory=True)
    assert client.story() == []
    client.send("tx.commit")
    assert client.story() == ["return 312 x", "tx.commit-ok"]


def test_routing_is_done_at_the_publish(core: Core, client: Client) -> None:
    client.call("queue.bind", queue="q", exchange="amq.direct", routing_key="k")
    client.publish("amq.direct", "k", b"early")
    client.call("queue.unbind", queue="q", exchange="amq.direct", routing_key="k")
    client.publish("amq.direct", "k", b"late")
    client.call("tx.commit")
    assert drain(core.client(), "q") == ["early"]


def test_a_bad_publish_is_told_at_once(client: Client) -> None:
    client.publish("missing", "", b"x")
    assert closing(client) == "404 NOT_FOUND - no exchange 'missing' in vhost '/'"


def test_when_a_queue_refuses_nothing_is_applied_and_the_acks_stay_outstanding(core: Core, client: Client) -> None:
    fill(client, "q", "a")
    fill(client, "small", "1", "2", "3")
    client.send("basic.ack", delivery_tag=1)
    client.send("tx.commit")
    assert closing(client) == "406 PRECONDITION_FAILED - partial tx completion"
    other = core.client()
    assert drain(other, "q") == [] and drain(other, "small") == []
    assert drain(other, "work") == ["job"]


def test_what_fits_is_committed(core: Core, client: Client) -> None:
    fill(client, "small", "1", "2")
    assert client.call("tx.commit").name == "tx.commit-ok"
    assert drain(core.client(), "small") == ["1", "2"]


def test_rejects_are_applied_in_order_at_the_commit(core: Core, client: Client) -> None:
    fill(client, "work", "second", "third")
    client.call("tx.commit")
    get(client, "work")
    get(client, "work")
    client.take()
    client.send("basic.reject", delivery_tag=1, requeue=True)
    client.send("basic.nack", delivery_tag=2)
    client.send("basic.ack", delivery_tag=3)
    assert queue(core, "work").unacked == 3
    client.call("tx.commit")
    assert drain(core.client(), "work") == ["job"]


def test_a_tag_settled_in_the_transaction_is_not_outstanding_any_more(client: Client) -> None:
    client.send("basic.ack", delivery_tag=1)
    client.send("basic.ack", delivery_tag=1)
    assert closing(client) == "406 PRECONDITION_FAILED - unknown delivery tag 1"


def test_the_modes_exclude_each_other(core: Core, client: Client) -> None:
    client.send("confirm.select")
    assert closing(client) == "406 PRECONDITION_FAILED - cannot switch from tx to confirm mode"
    other = core.client()
    other.call("confirm.select")
    other.send("tx.select")
    other.received = [got for got in other.received if got.name != "confirm.select-ok"]
    assert closing(other) == "406 PRECONDITION_FAILED - cannot switch from confirm to tx mode"


@pytest.mark.parametrize("method", ["tx.commit", "tx.rollback"])
def test_without_select_there_is_nothing_to_end(core: Core, method: str) -> None:
    client = core.client()
    client.send(method)
    assert closing(client) == "406 PRECONDITION_FAILED - channel is not transactional"


def test_the_answer_to_a_commit_waits_for_the_disk_and_it_is_one_batch(tmp_path: Path) -> None:
    rig = Rig(tmp_path, held=True)
    client = rig.client()
    client.open()
    client.declare("a")
    client.declare("b")
    client.call("tx.select")
    client.told()
    batch = rig.log.batch
    client.feed(client.published("", "a", b"1") + client.published("", "b", b"2"))
    client.call("tx.commit")
    assert client.names() == []
    assert rig.log.batch - batch <= 2, "the commit was cut in pieces"
    rig.commit()
    assert client.names() == ["tx.commit-ok"]
    assert (client.ready("a"), client.ready("b")) == (1, 1)


def test_a_second_transaction_is_as_good_as_the_first(core: Core, client: Client) -> None:
    for n in range(5):
        fill(client, "q", str(n))
        client.call("tx.commit" if n % 2 else "tx.rollback")
        client.take()
    assert drain(core.client(), "q") == ["1", "3"]
