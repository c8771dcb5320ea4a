"""A channel on each of the shared brokers, and queues that go away."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.brokers import RunningBroker
from warrenmq.client import Channel, Connection


@pytest.fixture
def connection(broker: RunningBroker) -> Iterator[Connection]:
    with Connection(broker.url, timeout=60) as connection:
        yield connection


@pytest.fixture
def channel(connection: Connection) -> Channel:
    return connection.channel()


@pytest.fixture
def queue(channel: Channel) -> str:
    """The name of an empty queue that goes with the connection."""
    return channel.queue_declare(exclusive=True).str("queue")
