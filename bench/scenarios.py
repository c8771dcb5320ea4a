"""The scenarios: a name, what it is, the workload, and what Warren is to need at most (CPU seconds per million)."""

from __future__ import annotations

from dataclasses import dataclass

from warrenmq.bench.workload import Workload


@dataclass(frozen=True)
class Scenario:
    name: str
    what: str
    workload: Workload
    goal: float | None = None  # broker CPU seconds per million messages (deliveries for the fanout)
    limited: bool = False  # run by a user with topic permissions


LIKE_LIFE = {
    "headers": {"tenant": "acme", "trace": "a1b2c3d4", "attempt": 1, "region": "eu-west", "ok": True, "weight": 0.5},
    "message_id": "6f1f6a52-6a52-4b0e-9a6e",
    "timestamp": 1_700_000_000,
    "content_type": "application/json",
    "reply_to": "replies.acme",
}

SCENARIOS = [
    Scenario("a", "16 B transient, auto-ack", Workload(messages=600_000, size=16), 1.0),
    Scenario("a1k", "1 KiB transient, auto-ack", Workload(messages=300_000, size=1024), 2.0),
    Scenario("a16k", "16 KiB transient, auto-ack", Workload(messages=40_000, size=16384), 12.0),
    Scenario(
        "m",
        "4 publishers, 4 consumers, 4 queues, 16 B",
        Workload(messages=400_000, size=16, publishers=4, consumers=4, queues=4),
        1.2,
    ),
    Scenario(
        "b",
        "1 KiB persistent, confirms after the disk, ack every 50",
        Workload(messages=100_000, size=1024, persistent=True, durable=True, confirms=1000, ack_every=50, prefetch=500),
        6.0,
    ),
    Scenario(
        "b1",
        "the same, one ack a message",
        Workload(messages=100_000, size=1024, persistent=True, durable=True, confirms=1000, ack_every=1, prefetch=500),
        7.0,
    ),
    Scenario(
        "c",
        "1 KiB persistent, one confirm at a time",
        Workload(messages=3_000, size=1024, persistent=True, durable=True, confirms=1, ack_every=1, prefetch=100),
    ),
    Scenario(
        "d",
        "fanout to 10 queues, 16 B, per delivery",
        Workload(messages=60_000, size=16, exchange_type="fanout", queues=10),
        0.8,
    ),
    Scenario(
        "e",
        "topic, 1,000 bindings, 10 queues, 16 B",
        Workload(messages=200_000, size=16, exchange_type="topic", queues=10, bindings=1000),
        2.0,
    ),
    Scenario("f", "fill 500 k x 100 B, then drain", Workload(messages=500_000, size=100, fill=True), 1.0),
    Scenario(
        "fp",
        "the same, persistent",
        Workload(messages=500_000, size=100, fill=True, persistent=True, durable=True, ack_every=50, prefetch=500),
    ),
    Scenario("g", "latency at 5,000/s, 16 B transient", Workload(messages=30_000, size=16, rate=5000)),
    Scenario(
        "gp",
        "latency at 5,000/s, 1 KiB persistent with confirms",
        Workload(
            messages=30_000,
            size=1024,
            rate=5000,
            persistent=True,
            durable=True,
            confirms=5000,
            ack_every=10,
            prefetch=500,
        ),
    ),
    Scenario(
        "r",
        "as in life: 1 KiB, headers, ids, reply_to, 200 keys, topic permissions, TTL, dead letters, acks",
        Workload(
            messages=200_000,
            size=1024,
            exchange_type="topic",
            exchange="amq.topic",
            keys=200,
            ack_every=10,
            prefetch=500,
            properties=LIKE_LIFE,
            queue_arguments={"x-message-ttl": 600_000, "x-dead-letter-exchange": "amq.fanout"},
        ),
        6.0,
        limited=True,
    ),
]
