"""`warren serve` stopped with SIGTERM leaves nothing to chance: every ack counts, and only what must be is flagged."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.process import BrokerProcess
from warrenmq.client import Connection, Properties

PERSISTENT = Properties(delivery_mode=2)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    process = BrokerProcess(tmp_path)
    process.start()
    yield process
    process.end()


def used(broker: BrokerProcess) -> None:
    """100 messages, confirmed; five of them taken and not acknowledged, five acknowledged a moment before the end."""
    connection = Connection(broker.url)
    channel = connection.channel()
    channel.confirm_select()
    channel.queue_declare("q", durable=True)
    channel.publish_many("", "q", [b"%d" % number for number in range(100)], PERSISTENT)
    assert channel.wait_for_confirms(60) == []
    for _ in range(10):
        message = channel.basic_get("q")
        assert message is not None
        if int(message.body) < 5:
            channel.basic_ack(message.delivery_tag)
    connection.flush()
    channel.queue_declare("q", passive=True)  # the acks have been taken by now


def found(broker: BrokerProcess) -> list[tuple[int, bool]]:
    with Connection(broker.url) as connection:
        channel = connection.channel()
        channel.basic_consume("q")
        messages = []
        while more := channel.receive(0.5):
            messages += more
        return [(int(message.body), message.redelivered) for message in messages]


def test_after_sigterm_every_ack_counts_and_only_what_was_delivered_is_flagged(broker: BrokerProcess) -> None:
    used(broker)
    broker.stop()
    broker.start()
    assert found(broker) == [(number, number < 10) for number in range(5, 100)]


def test_after_sigkill_nothing_is_missing_and_everything_delivered_is_flagged(broker: BrokerProcess) -> None:
    used(broker)
    broker.kill()
    broker.start()
    messages = found(broker)
    numbers = [number for number, _ in messages]
    assert numbers[-95:] == list(range(5, 100))  # the five acks may or may not have reached the disk
    assert all(redelivered for number, redelivered in messages if number < 10)


def test_a_broker_stopped_while_it_starts_again_and_again_keeps_everything(broker: BrokerProcess) -> None:
    used(broker)
    for number in range(4):
        broker.kill() if number % 2 else broker.stop()
        broker.start()
    assert {number for number, _ in found(broker)} >= set(range(5, 100))
