"""Which queues a channel takes for those that its deliveries are of, for whoever gives very many back."""

from __future__ import annotations

import pytest

from warrenmq.broker.channel.sources import FEW, Sources
from warrenmq.testing.core import Core
from warrenmq.testing.core_client import CoreClient

pytestmark = pytest.mark.pure


def sources(client: CoreClient) -> Sources:
    return client.connection.channels[1].outstanding.sources


def names(client: CoreClient) -> list[str]:
    return [queue.name.name for queue in sources(client).in_order()]


@pytest.fixture
def client(core: Core) -> CoreClient:
    client = core.client()
    for name in ("b", "a", "c"):
        client.declare(name, False)
        client.publish("", name, b"x")
    client.call("queue.declare", queue="quorum", durable=True, arguments={"x-queue-type": "quorum"})
    client.call("queue.declare", queue="stream", durable=True, arguments={"x-queue-type": "stream"})
    return client


def test_they_are_those_that_were_consumed_or_got_with_acknowledgement_by_name(client: CoreClient) -> None:
    client.call("basic.consume", queue="b", consumer_tag="1")
    client.call("basic.get", queue="a")
    client.call("basic.get", queue="c", no_ack=True)
    client.call("basic.consume", queue="quorum", no_ack=True)
    assert names(client) == ["a", "b"]


def test_one_consumer_of_one_queue_is_told_from_several_and_from_gets(client: CoreClient) -> None:
    assert not sources(client).are_one()
    client.call("basic.consume", queue="b", consumer_tag="1")
    assert sources(client).are_one()
    client.call("basic.cancel", consumer_tag="1")
    client.call("basic.consume", queue="b", consumer_tag="1")
    assert sources(client).are_one()
    client.call("basic.consume", queue="b", consumer_tag="2")
    assert not sources(client).are_one()


@pytest.mark.parametrize(("queue", "mixed"), [("a", False), ("quorum", True)])
def test_only_a_quorum_queue_with_several_consumers_needs_them_sorted(
    client: CoreClient, queue: str, mixed: bool
) -> None:
    client.call("basic.consume", queue=queue, consumer_tag="1")
    assert not sources(client).mix_consumers()
    client.call("basic.consume", queue=queue, consumer_tag="2")
    assert sources(client).mix_consumers() == mixed


def test_a_stream_takes_nothing_back(client: CoreClient) -> None:
    client.call("basic.qos", prefetch_count=10)
    client.call("basic.consume", queue="b")
    assert not sources(client).refuse("basic.nack")
    client.call("basic.consume", queue="stream")
    assert sources(client).refuse("basic.nack")


def test_queues_that_are_gone_are_forgotten_and_the_others_are_not(client: CoreClient) -> None:
    client.call("basic.get", queue="a")
    for number in range(3 * FEW):
        client.declare(f"q{number}", False)
        client.publish("", f"q{number}", b"x")
        client.call("basic.get", queue=f"q{number}")
        client.call("queue.delete", queue=f"q{number}")
        assert len(names(client)) < 2 * FEW
    assert "a" in names(client)


def test_who_reads_leases_again_and_again_keeps_none_of_them(core: Core, client: CoreClient) -> None:
    core.broker.begin_turn()
    lease = core.classic("a").leases.create(1, -1, 60_000, "spark", "")
    core.broker.end_turn()
    for number in range(3):
        client.call("basic.consume", queue="a", consumer_tag=f"{number}", arguments={"x-lease": lease.id})
        assert [got.body for got in client.deliveries()] == [b"x"]
        client.call("basic.cancel", consumer_tag=f"{number}")
    assert names(client) == []
