"""SIGKILL around due times: every confirmed delayed message arrives, none arrives twice."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.support.brokers import RunningBroker, start_warren
from warrenmq.client import Channel, ClientError, Connection, Properties
from warrenmq.wire.fields import from_python

ROUNDS = 4


def declare(channel: Channel) -> None:
    arguments = {"x-delayed-type": "direct"}
    channel.exchange_declare("d", "x-delayed-message", durable=True, arguments=arguments)
    for queue in ("a", "b"):
        channel.queue_declare(queue, durable=True)
        channel.queue_bind(queue, "d", "k")


def publish_until_killed(
    broker: RunningBroker, first: int, dice: random.Random, sent: set[int], acked: set[int]
) -> None:
    """Small batches with short delays, so that at any moment some become due; notes what was confirmed."""
    with contextlib.suppress(ClientError, OSError):
        connection = Connection(broker.url, timeout=60)
        channel = connection.channel()
        declare(channel)
        channel.confirm_select()
        number = first
        while True:
            batch = range(number, number + 20)
            for one in batch:
                sent.add(one)
                headers = from_python({"x-delay": dice.choice([1, 5, 20, 50, 200])})
                properties = Properties(headers=headers, delivery_mode=dice.choice([2, 2, 2, 1]))
                if properties.delivery_mode == 1:
                    sent.discard(one)  # transient: it may be lost once it is in a queue
                channel.basic_publish("d", "k", str(one).encode(), properties)
            assert channel.wait_for_confirms(60) == []
            acked.update(one for one in batch if one in sent)
            number += 20


def kill(broker: RunningBroker) -> None:
    os.killpg(broker.process.pid, signal.SIGKILL)
    broker.process.wait(60)


def everything(channel: Channel, queue: str) -> list[int]:
    found = []
    while (message := channel.basic_get(queue, no_ack=True)) is not None:
        found.append(int(bytes(message.body)))
    return found


def wait_until_none_waits(broker: RunningBroker) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        status, answer = broker.http("GET", "/api/exchanges/%2F/d")
        assert status == 200 and isinstance(answer, dict)
        if answer["messages_delayed"] == 0:
            return
        time.sleep(0.02)
    pytest.fail("messages still wait long after their due time")


def crash_rounds(folder: Path, rounds: int, seed: int) -> None:
    dice = random.Random(seed)
    sent: set[int] = set()
    acked: set[int] = set()
    for number in range(rounds):
        with start_warren(data_dir=folder, stop_cleanly=False) as broker:
            arguments = (broker, number * 1_000_000, dice, sent, acked)
            publisher = threading.Thread(target=publish_until_killed, args=arguments)
            publisher.start()
            time.sleep(dice.uniform(0.3, 1.0))
            kill(broker)
            publisher.join(60)
    assert len(acked) > 100 * rounds / 4, "the publisher hardly got anything through: this proves nothing"
    with start_warren(data_dir=folder) as broker, Connection(broker.url, timeout=60) as connection:
        wait_until_none_waits(broker)
        channel = connection.channel()
        for queue in ("a", "b"):
            found = everything(channel, queue)
            twice = [number for number, times in Counter(found).items() if times > 1]
            assert not twice, f"twice in {queue}: {twice[:10]}"
            assert not acked - set(found), f"lost from {queue}: {sorted(acked - set(found))[:10]}"


def test_no_delayed_message_is_lost_or_doubled_by_sigkill(tmp_path: Path) -> None:
    crash_rounds(tmp_path / "data", ROUNDS, seed=6)


def test_a_consumer_sees_no_message_again_without_a_flag(tmp_path: Path) -> None:
    """A delivered message may come again after a crash, as ever in AMQP, but then it says so."""
    dice = random.Random(7)
    sent: set[int] = set()
    acked: set[int] = set()
    seen: list[int] = []
    unflagged: list[int] = []
    folder = tmp_path / "data"

    def consume(broker: RunningBroker) -> None:
        with contextlib.suppress(ClientError, OSError):
            connection = Connection(broker.url, timeout=60)
            channel = connection.channel()
            declare(channel)
            channel.basic_consume("a")
            while True:
                message = channel.next_message(timeout=60)
                assert message is not None
                number = int(bytes(message.body))
                if number in seen and not message.redelivered:
                    unflagged.append(number)
                seen.append(number)
                channel.basic_ack(message.delivery_tag)

    for number in range(3):
        with start_warren(data_dir=folder, stop_cleanly=False) as broker:
            arguments = (broker, number * 1_000_000, dice, sent, acked)
            threads = [
                threading.Thread(target=publish_until_killed, args=arguments),
                threading.Thread(target=consume, args=(broker,)),
            ]
            for thread in threads:
                thread.start()
            time.sleep(dice.uniform(0.4, 1.0))
            kill(broker)
            for thread in threads:
                thread.join(60)
    assert unflagged == [] and len(seen) > 50
    with start_warren(data_dir=folder) as broker, Connection(broker.url, timeout=60) as connection:
        wait_until_none_waits(broker)
        rest = everything(connection.channel(), "a")
        assert not acked - set(seen) - set(rest)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(20))
def test_many_rounds(tmp_path: Path, seed: int) -> None:
    crash_rounds(tmp_path / "data", 15, seed)
