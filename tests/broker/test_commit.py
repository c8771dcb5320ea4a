"""tx.commit and queues that refuse: all or nothing, and what a waiting consumer takes at once does not count."""

from __future__ import annotations

from pathlib import Path

import pytest

from warrenmq.testing.core import Core
from warrenmq.testing.core_client import CoreClient

pytestmark = pytest.mark.pure

LIMIT = {"x-max-length": 2, "x-overflow": "reject-publish"}


@pytest.fixture
def client(tmp_path: Path) -> CoreClient:
    client = Core(tmp_path).client()
    client.call("queue.declare", queue="q", arguments=LIMIT)
    client.call("queue.declare", queue="other")
    client.call("tx.select")
    return client


def test_one_message_too_many_undoes_the_whole_commit(client: CoreClient) -> None:
    client.publish("", "other", b"0")
    for body in (b"1", b"2", b"3"):
        client.publish("", "q", body)
    refused = client.call("tx.commit")
    assert (refused.name, refused["reply_text"]) == ("channel.close", "PRECONDITION_FAILED - partial tx completion")
    client.send("channel.close-ok")
    client.open(1)
    for queue in ("q", "other"):
        assert client.call("queue.declare", queue=queue, passive=True)["message_count"] == 0


def test_what_a_waiting_consumer_takes_does_not_count(client: CoreClient) -> None:
    client.open(2)
    client.send("basic.consume", 2, queue="q", no_ack=True)
    for body in (b"1", b"2", b"3"):
        client.publish("", "q", body)
    client.take()
    client.send("tx.commit")
    assert sorted(got.body for got in client.received if got.name == "basic.deliver") == [b"1", b"2", b"3"]
    assert [got.name for got in client.received if got.channel == 1] == ["tx.commit-ok"]


def test_a_consumer_with_a_prefetch_takes_no_more_than_that(client: CoreClient) -> None:
    client.open(2)
    client.send("basic.qos", 2, prefetch_count=1)
    client.send("basic.consume", 2, queue="q")
    for body in (b"1", b"2", b"3", b"4"):
        client.publish("", "q", body)
    assert client.call("tx.commit").name == "channel.close"


def test_a_queue_that_takes_nothing_refuses_even_with_a_waiting_consumer(client: CoreClient) -> None:
    client.open(2)
    client.send("queue.declare", 2, queue="none", arguments={"x-max-length": 0, "x-overflow": "reject-publish"})
    client.send("basic.consume", 2, queue="none", no_ack=True)
    client.publish("", "none", b"lost?")
    assert client.call("tx.commit").name == "channel.close"
