"""A broker whose log is on several nodes: what clients are told waits for the others, as far as it needs them."""

from __future__ import annotations

from pathlib import Path

import pytest

from warrenmq.log.shipping import Shipping
from warrenmq.testing.core import Core
from warrenmq.testing.core_client import CoreClient

pytestmark = pytest.mark.pure


class Others(Shipping):
    """Other nodes, that have what the test says."""

    def __init__(self) -> None:
        self.synced_to = 0

    def synced(self, position: int) -> None:
        self.synced_to = int(position)


class Leader:
    """A broker that leads, with a client; all so far is promised."""

    def __init__(self, folder: Path) -> None:
        self.others = Others()
        self.core = Core(folder, shipping=self.others)
        self.promise()
        self.client = self.core.client()

    def commit(self) -> None:
        """All nodes that count have everything."""
        self.core.broker.begin_turn()
        self.core.log.committed_to(self.others.synced_to)
        self.core.end_turn()

    def promise(self) -> None:
        """And they are enough."""
        self.commit()
        self.core.broker.begin_turn()
        self.core.log.promised_to(self.core.log.committed_position())
        self.core.end_turn()

    def call(self, name: str, answer: str, **values: object) -> CoreClient:
        self.client.send(name, 1, **values)
        self.promise()
        assert answer in self.client.names()
        self.client.take()
        return self.client


@pytest.fixture
def leader(tmp_path: Path) -> Leader:
    leader = Leader(tmp_path)
    leader.call("queue.declare", "queue.declare-ok", queue="q", durable=True)
    return leader


def test_an_answer_to_a_declaration_waits_until_it_is_promised(leader: Leader) -> None:
    client = leader.client
    client.send("queue.declare", queue="other", durable=True)
    assert client.names() == []
    leader.commit()
    assert client.names() == []
    leader.promise()
    assert client.names() == ["queue.declare-ok"]


def test_a_confirm_waits_until_it_is_promised(leader: Leader) -> None:
    client = leader.client
    client.call("confirm.select")
    client.take()
    client.publish("", "q", b"body", delivery_mode=2)
    assert client.names() == []
    leader.commit()
    assert client.names() == []
    leader.promise()
    assert client.names() == ["basic.ack"]


def test_a_commit_of_a_transaction_waits_until_it_is_promised(leader: Leader) -> None:
    client = leader.client
    client.call("tx.select")
    client.take()
    client.publish("", "q", b"body", delivery_mode=2)
    client.send("tx.commit")
    leader.commit()
    assert client.names() == []
    leader.promise()
    assert client.names() == ["tx.commit-ok"]


def test_what_was_moved_is_delivered_when_the_move_is_committed(leader: Leader) -> None:
    """Consumers go on while too few nodes are in sync for a promise."""
    client = leader.client
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "q"}
    leader.call("queue.declare", "queue.declare-ok", queue="first", durable=True, arguments=arguments)
    leader.call("basic.consume", "basic.consume-ok", queue="q", consumer_tag="c")
    client.publish("", "first", b"body", delivery_mode=2)
    leader.promise()
    client.send("basic.get", queue="first")
    assert client.take() == []
    leader.commit()  # a message that is fetched is a delivery like any other
    got = client.take()[-1]
    assert got.name == "basic.get-ok"
    client.send("basic.reject", delivery_tag=got["delivery_tag"], requeue=False)
    client.publish("", "q", b"behind it")
    assert client.bodies() == []
    leader.commit()
    assert client.bodies() == [b"body", b"behind it"]
