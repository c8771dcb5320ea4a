"""What the connector's tests share: addresses as options, messages in and out of a broker, waiting for queries."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tests.support.brokers import RunningBroker
from warren.client import Channel, Connection, Message, Properties

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

PATIENCE = 90


@contextmanager
def channel(broker: RunningBroker) -> Iterator[Channel]:
    with Connection(broker.url) as connection:
        yield connection.channel()


def address(broker: RunningBroker) -> dict[str, str]:
    """Where the broker is, as options of format("amqp")."""
    return {"host": broker.host, "port": str(broker.port)}


def reading(broker: RunningBroker) -> dict[str, str]:
    return {**address(broker), "httpPort": str(broker.http_port)}


def publish(
    broker: RunningBroker, queue: str, bodies: list[bytes], properties: Properties | None = None, exchange: str = ""
) -> None:
    """Confirmed before it returns."""
    with channel(broker) as publishing:
        publishing.confirm_select()
        publishing.publish_many(exchange, queue, bodies, properties or Properties(delivery_mode=2))
        publishing.wait_for_confirms(30)


def drain(broker: RunningBroker, queue: str) -> list[Message]:
    """Everything in a queue, taken out of it."""
    messages: list[Message] = []
    with channel(broker) as reading:
        while (message := reading.basic_get(queue, no_ack=True)) is not None:
            messages.append(message)
    return messages


def depth(broker: RunningBroker, queue: str) -> int:
    with channel(broker) as asking:
        return asking.queue_declare(queue, passive=True).int("message_count")


def finished(query: StreamingQuery) -> StreamingQuery:
    """Wait for an AvailableNow query; raises what it failed with."""
    assert query.awaitTermination(PATIENCE), f"the query still runs after {PATIENCE} s: {query.lastProgress}"
    return query


def cause(error: BaseException) -> str:
    return str(error)


Row = dict[str, Any]
