"""A body of 100 MB passes without several copies of it in memory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.process import BrokerProcess
from tests.memory.resident import can_measure, forget_peak, peak, resident
from warrenmq.client import Connection
from warrenmq.wire.content import Properties

pytestmark = pytest.mark.skipif(not can_measure(), reason="needs Linux's /proc")

SIZE = 100_000_000
BODY = os.urandom(1_000_000) * (SIZE // 1_000_000)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    process = BrokerProcess(tmp_path)
    process.start()
    yield process
    process.end()


def pid_of(broker: BrokerProcess) -> int:
    assert broker.process is not None
    return broker.process.pid


@pytest.mark.soak
def test_a_persistent_body_of_100_mb_is_stored_and_delivered_in_less_than_three_times_its_size(
    broker: BrokerProcess,
) -> None:
    with Connection(broker.url, timeout=120) as connection:
        channel = connection.channel()
        channel.confirm_select()
        channel.queue_declare("large", durable=True)
        before = resident(pid_of(broker))
        forget_peak(pid_of(broker))
        channel.basic_publish("", "large", BODY, Properties(delivery_mode=2))
        assert channel.wait_for_confirms(120) == []
        stored = peak(pid_of(broker)) - before
        forget_peak(pid_of(broker))
        message = channel.basic_get("large")
        assert message is not None and message.body == BODY
        fetched = peak(pid_of(broker)) - before
    print(f"\n100 MB body: {stored / SIZE:.2f} times its size while stored, {fetched / SIZE:.2f} while fetched")
    assert stored < 3 * SIZE and fetched < 3 * SIZE


@pytest.mark.slow
def test_a_body_of_100_mb_comes_back_whole_after_a_kill(broker: BrokerProcess) -> None:
    with Connection(broker.url, timeout=120) as connection:
        channel = connection.channel()
        channel.confirm_select()
        channel.queue_declare("large", durable=True)
        channel.basic_publish("", "large", BODY, Properties(delivery_mode=2))
        assert channel.wait_for_confirms(120) == []
    broker.kill()
    broker.start()
    with Connection(broker.url, timeout=120) as connection:
        channel = connection.channel()
        channel.basic_consume("large")
        (message,) = channel.receive(120)
        assert message.body == BODY


@pytest.mark.soak
def test_reading_it_back_from_disk_takes_less_than_three_times_its_size(broker: BrokerProcess) -> None:
    with Connection(broker.url, timeout=120) as connection:
        channel = connection.channel()
        channel.confirm_select()
        channel.queue_declare("large", durable=True)
        channel.basic_publish("", "large", BODY, Properties(delivery_mode=2))
        assert channel.wait_for_confirms(120) == []
    broker.kill()
    broker.start()
    with Connection(broker.url, timeout=120) as connection:
        channel = connection.channel()
        before = resident(pid_of(broker))
        channel.basic_consume("large")
        assert len(channel.receive(120)) == 1
        read = peak(pid_of(broker)) - before
    print(f"\n100 MB body: {read / SIZE:.2f} times its size while read back from disk")
    assert read < 3 * SIZE
