"""The demo's publisher: bursts with confirms, and again what was in doubt when the connection went.

Every message goes to one queue at most, so that the sum at the end can be one of messages.
"""

from __future__ import annotations

import json
import random
import threading
import time
from dataclasses import dataclass, field
from typing import Any

from warrenmq.client import ClientError, Connection, Field, Properties, Returned
from warrenmq.spark.demo.broker import DemoBroker

DELAY_MS = 3000
EVERY = 0.25  # seconds between two bursts
BURST = 200
QUEUES = {"orders": ("shop", "order.#"), "payments": ("shop", "payment.#"), "reminders": ("later", "remind")}
DEAD = "dead"


@dataclass
class Published:
    """The messages that the publisher sent and the answers that it got."""

    total: int
    rows: list[dict[str, Any]] = field(default_factory=list)  # of confirmed bursts
    returned: int = 0
    again: int = 0  # messages sent a second time, because nobody said what became of the first
    go_on: threading.Event = field(default_factory=threading.Event)  # after the first burst
    stop: threading.Event = field(default_factory=threading.Event)


@dataclass
class Order:
    """An order of the demo's shop: its message and the row that must come of it."""

    exchange: str
    routing_key: str
    message_id: str
    body: bytes
    delayed: bool

    def properties(self) -> Properties:
        headers = {"x-delay": Field("I", DELAY_MS)} if self.delayed else None
        return Properties(headers=headers, delivery_mode=2, message_id=self.message_id, timestamp=int(time.time()))

    def row(self) -> dict[str, Any]:
        """As a table of published messages has it."""
        return {
            "exchange": self.exchange,
            "routing_key": self.routing_key,
            "message_id": self.message_id,
            "headers": {"x-delay": str(DELAY_MS)} if self.delayed else None,
            "header_types": {"x-delay": "I"} if self.delayed else None,
            "body_size": len(self.body),
        }


def declare(broker: DemoBroker) -> None:
    with Connection(broker.url) as connection:
        channel = connection.channel()
        channel.exchange_declare("shop", "topic", durable=True)
        channel.exchange_declare(
            "later",
            "x-delayed-message",
            durable=True,
            arguments={"x-delayed-type": "direct", "x-delayed-mandatory": "honest"},
        )
        channel.queue_declare(DEAD, durable=True)
        for queue, (exchange, key) in QUEUES.items():
            channel.queue_declare(
                queue, durable=True, arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": DEAD}
            )
            channel.queue_bind(queue, exchange, key)


def publish(broker: DemoBroker, published: Published, seed: int = 7) -> None:
    """All of it, whatever becomes of the broker meanwhile; every answer is counted."""
    chance = random.Random(seed)
    connection: Connection | None = None
    burst: list[Order] = []
    while not published.stop.is_set() and len(published.rows) < published.total:
        doubtful = bool(burst)
        if not burst:
            burst = [_order(chance, len(published.rows) + number) for number in range(BURST)]
        try:
            if connection is None:
                connection = Connection(broker.url)
                channel = connection.channel()
                channel.confirm_select()
            if doubtful:
                published.again += len(burst)
            for order in burst:
                channel.basic_publish(order.exchange, order.routing_key, order.body, order.properties(), mandatory=True)
            channel.wait_for_confirms(30)
        except (ClientError, OSError):
            if connection is not None:
                connection.abort()
            connection = None
            published.stop.wait(0.2)
            continue
        published.returned += sum(isinstance(event, Returned) for event in channel.take_events())
        published.rows += [order.row() for order in burst]
        burst = []
        published.go_on.wait()
        published.stop.wait(EVERY)
    if connection is not None:
        connection.abort()


def _order(chance: random.Random, number: int) -> Order:
    body = json.dumps({"order": number, "total": chance.randint(1, 500)}).encode()
    kind = chance.random()
    if kind < 0.05:
        return Order("shop", "order.new", f"demo-{number}", b"{oops", False)  # no JSON
    if kind < 0.70:
        key = chance.choice(["order.new", "order.paid", "order.sent.abroad"])
        return Order("shop", key, f"demo-{number}", body, False)
    if kind < 0.80:
        return Order("shop", "complaint", f"demo-{number}", body, False)  # nobody listens
    if kind < 0.90:
        return Order("later", "remind", f"demo-{number}", body, True)
    return Order("shop", "payment.done", f"demo-{number}", body, False)
