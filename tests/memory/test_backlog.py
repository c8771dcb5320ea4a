"""How much memory a waiting message costs when the backlog is large: less than 40 bytes (issue: Space and memory)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.process import BrokerProcess
from tests.memory.resident import can_measure, resident
from warrenmq.client import Connection
from warrenmq.wire.content import Properties

pytestmark = pytest.mark.skipif(not can_measure(), reason="needs Linux's /proc")

BODY = b"." * 100
PERSISTENT = Properties(delivery_mode=2)
BATCH = 5_000


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    process = BrokerProcess(tmp_path)
    process.start()
    yield process
    process.end()


def held(broker: BrokerProcess) -> int:
    assert broker.process is not None
    return resident(broker.process.pid)


def fill(broker: BrokerProcess, queues: list[str], count: int) -> None:
    with Connection(broker.url, timeout=600) as connection:
        channel = connection.channel()
        channel.confirm_select()
        for queue in queues:
            channel.queue_declare(queue, durable=True)
        for _ in range(0, count, BATCH):
            for queue in queues:
                channel.publish_many("", queue, [BODY] * min(BATCH, count), PERSISTENT)
                assert channel.wait_for_confirms(600) == []
                channel.take_events()


def drain(broker: BrokerProcess, queue: str, count: int) -> None:
    with Connection(broker.url, timeout=600) as connection:
        channel = connection.channel()
        channel.basic_qos(2000)
        channel.basic_consume(queue)
        got = 0
        while got < count:
            messages = channel.receive(60)
            assert messages, f"{got} of {count}"
            assert all(message.body == BODY for message in messages)
            got += len(messages)
            channel.basic_ack(messages[-1].delivery_tag, multiple=True)
        assert channel.queue_declare(queue, passive=True).int("message_count") == 0


@pytest.mark.soak
def test_a_waiting_message_costs_few_bytes_of_memory(broker: BrokerProcess) -> None:
    """The window and what the allocator keeps are the same however many wait, so only the growth is counted."""
    fill(broker, ["q"], 60_000)
    before = held(broker)
    fill(broker, ["q"], 300_000)
    growth = held(broker) - before
    print(f"\n{growth / 300_000:.1f} bytes a message")
    assert growth < 300_000 * 60  # a buffer more or less counts much at this size; make soak asks for 40


@pytest.mark.soak
def test_many_queues_share_the_memory_for_content(broker: BrokerProcess) -> None:
    """200 queues of 1,000: were all of it kept with its content, it would be more than 80 MB."""
    names = [f"q{number}" for number in range(200)]
    before = held(broker)
    fill(broker, names[:1], 1000)
    with Connection(broker.url, timeout=600) as connection:
        channel = connection.channel()
        channel.confirm_select()
        for queue in names[1:]:
            channel.queue_declare(queue, durable=True)
            channel.publish_many("", queue, [BODY] * 1000, PERSISTENT)
            channel.take_events()
        assert channel.wait_for_confirms(120) == []
    growth = held(broker) - before
    print(f"\n{growth / 200_000:.0f} bytes a message in 200 queues")
    assert growth < 120_000_000


def judged(broker: BrokerProcess, before: int, count: int) -> None:
    now = held(broker)
    print(f"\n{count} messages: {now / 1e6:.0f} MB resident, {(now - before) / count:.1f} bytes a message")
    assert now < 1_000_000_000
    assert now - before < 40 * count


@pytest.mark.soak
def test_ten_million_messages_in_one_queue(broker: BrokerProcess) -> None:
    count = int(os.environ.get("WARREN_TEST_BACKLOG", "10000000"))
    before = held(broker)
    fill(broker, ["q"], count)
    judged(broker, before, count)
    broker.kill()
    broker.start()
    judged(broker, before, count)
    drain(broker, "q", count)


@pytest.mark.soak
def test_a_thousand_queues_of_ten_thousand_messages(broker: BrokerProcess) -> None:
    names = [f"q{number}" for number in range(1000)]
    before = held(broker)
    fill(broker, names, 10_000)
    # the windows hold content: a fixed amount, not one per message
    judged(broker, before, 10_000_000)
    broker.stop()
    broker.start()
    for queue in names[::100]:
        drain(broker, queue, 10_000)
