"""A consumer of a quorum queue that asked for no prefetch holds at most 2,000 messages, as in RabbitMQ."""

from __future__ import annotations

import uuid

import pytest

from tests.support.brokers import RunningBroker
from warrenmq.client import Channel, Connection

MOST = 2000
MORE = 100


def take(channel: Channel, count: int) -> int:
    """So many messages; the last one's delivery tag."""
    tag = 0
    while count > 0:
        some = channel.receive(120)
        assert some, f"{count} messages did not come"
        count -= len(some)
        tag = some[-1].delivery_tag
    assert count == 0
    return tag


@pytest.mark.parametrize("no_ack", [False, True], ids=["acknowledging", "not acknowledging"])
def test_a_consumer_without_a_prefetch_gets_2000_and_then_one_for_each_it_settles(
    broker: RunningBroker, no_ack: bool
) -> None:
    with Connection(broker.url, timeout=120) as connection:
        channel = connection.channel()
        name = f"quorum-{uuid.uuid4().hex}"
        channel.queue_declare(name, durable=True, arguments={"x-queue-type": "quorum"})
        channel.confirm_select()
        channel.publish_many("", name, [b"x"] * (MOST + MORE))
        channel.wait_for_confirms(120)
        consuming = connection.channel()
        consuming.basic_consume(name, no_ack=no_ack)
        if no_ack:
            take(consuming, MOST + MORE)
        else:
            assert take(consuming, MOST) == MOST
            consuming.basic_ack(10, multiple=True)
            assert take(consuming, 10) == MOST + 10
        consuming.close()
        channel.queue_delete(name)
