"""SIGKILL while receipts are given: whatever one says is on disk is there afterwards."""

from __future__ import annotations

import contextlib
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pika
import pytest

from tests.crash.process import BrokerProcess

DIRECT = "amq.rabbitmq.reply-to"
ROUNDS = 4


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    broker = BrokerProcess(tmp_path)
    broker.start()
    yield broker
    broker.end()


def publish_until_killed(broker: BrokerProcess, first: int, enough: int, said: dict[str, dict[str, Any]]) -> int:
    """Messages whose receipts come straight back or go to a queue, in turn; killed with publishes under way."""
    connection = pika.BlockingConnection(pika.URLParameters(broker.url))
    channel = connection.channel()
    for queue in ("q", "receipts"):
        channel.queue_declare(queue, durable=True)

    def receipt(_: object, __: object, ___: object, body: bytes) -> None:
        told = json.loads(body)
        said[told["message_id"]] = told

    channel.basic_consume(DIRECT, receipt, auto_ack=True)
    number, before = first, len(said)
    with contextlib.suppress(pika.exceptions.AMQPError):
        while True:
            for _ in range(10):
                to = DIRECT if number % 2 else "receipts"
                properties = pika.BasicProperties(message_id=str(number), delivery_mode=2, headers={"x-receipt": to})
                channel.basic_publish("", "q", b"order", properties)
                number += 1
            connection.process_data_events(0)
            if broker.process is not None and broker.process.poll() is None and len(said) - before >= enough:
                broker.kill()
    return number


def taken(channel: Any, queue: str) -> list[tuple[Any, bytes]]:
    found: list[tuple[Any, bytes]] = []
    while True:
        method, properties, body = channel.basic_get(queue)
        if method is None:
            return found
        found.append((properties, body))


def test_what_a_receipt_says_is_on_disk_is_there_after_a_kill(broker: BrokerProcess) -> None:
    dice = random.Random(20261)
    said: dict[str, dict[str, Any]] = {}
    number = 1
    for _ in range(ROUNDS):
        number = publish_until_killed(broker, number, dice.randint(1, 60), said)
        broker.start()
    with pika.BlockingConnection(pika.URLParameters(broker.url)) as connection:
        channel = connection.channel()
        order = [properties.message_id for properties, _ in taken(channel, "q")]
        queued = [json.loads(body) for _, body in taken(channel, "receipts")]
    assert len(said) >= ROUNDS and queued
    assert len(order) == len(set(order))
    receipts = [*said.values(), *queued]
    for receipt in receipts:
        assert receipt["outcome"] == "taken" and receipt["queues"][0]["durable"] is True
    missing = [receipt["message_id"] for receipt in receipts if receipt["message_id"] not in order]
    assert missing == []
    positions = {receipt["message_id"]: receipt["queues"][0]["position"] for receipt in receipts}
    told = [positions[one] for one in order if one in positions]
    assert told == sorted(set(told))  # the positions are those of the queue's own order
