"""Delayed messages: memory per waiting message, speed of scheduling against plain publishing, lateness.

Scheduling and plain publishing are the same persistent messages with confirms, by the same client; their ratio is the
figure. Lateness is measured in the consumer: arrival minus the due time it was sent with, on one machine and clock.
"""

from __future__ import annotations

import statistics
import threading
import time
from typing import Any

from bench.brokers import Running, warren
from warrenmq.bench import process
from warrenmq.client import Channel, Connection, Properties
from warrenmq.wire.fields import Field, Table

BODY = b"x" * 256
BATCH = 500
WINDOW = 20_000  # publishes under way before the publisher waits for confirms
HOUR = 3_600_000
ROUNDS = 3


def declare(channel: Channel) -> None:
    arguments = {"x-delayed-type": "direct"}
    channel.exchange_declare("bench.delayed", "x-delayed-message", durable=True, arguments=arguments)
    channel.queue_declare("bench.q", durable=True)
    channel.queue_bind("bench.q", "bench.delayed", "k")
    channel.queue_bind("bench.q", "amq.direct", "bench")


def publish_all(channel: Channel, exchange: str, key: str, headers: Table, count: int) -> float:
    """Persistent, confirmed; the seconds it took."""
    properties = Properties(headers=headers, delivery_mode=2)
    began = time.monotonic()
    sent = 0
    while sent < count:
        batch = min(BATCH, count - sent)
        for _ in range(batch):
            channel.basic_publish(exchange, key, BODY, properties)
        sent += batch
        channel.connection.flush()
        if sent % WINDOW == 0:
            channel.wait_for_confirms(120)
            channel.take_events()
    channel.wait_for_confirms(120)
    channel.take_events()
    return time.monotonic() - began


def memory_and_speed(broker: Running, count: int) -> dict[str, float]:
    pids = process.listening(broker.port)
    with Connection(broker.url, timeout=300) as connection:
        channel = connection.channel()
        declare(channel)
        channel.confirm_select()
        later: Table = {"x-delay": Field("l", HOUR)}
        some = min(count, 300_000)  # of each in turn: a longer run measures the disk
        publish_all(channel, "bench.delayed", "k", later, 1000)
        before = process.resident_bytes(pids)
        rounds = []
        for _ in range(ROUNDS):
            seconds = publish_all(channel, "amq.direct", "bench", {"n": Field("I", 1)}, some)
            channel.queue_purge("bench.q")
            rounds.append((seconds / some, publish_all(channel, "bench.delayed", "k", later, some) / some))
        plain = statistics.median(one[0] for one in rounds)
        delayed = statistics.median(one[1] for one in rounds)
        publish_all(channel, "bench.delayed", "k", later, max(0, count - ROUNDS * some))
        after = process.resident_bytes(pids)
        channel.exchange_delete("bench.delayed")
        channel.queue_delete("bench.q")
    return {
        "plain per s": 1 / plain,
        "scheduled per s": 1 / delayed,
        "ratio": statistics.median(one[0] / one[1] for one in rounds),
        "bytes per waiting message": (after - before) / count,
        "resident MB": after / 1e6,
    }


def lateness(broker: Running, rate: int, seconds: float) -> dict[str, float]:
    """A steady flow of messages that are due between one and two seconds later; p50, p99 and most, in ms."""
    late: list[float] = []
    count = int(rate * seconds)
    ready = threading.Event()

    def consume() -> None:
        with Connection(broker.url, timeout=300) as connection:
            channel = connection.channel()
            declare(channel)
            channel.basic_consume("bench.q", no_ack=True)
            ready.set()
            while len(late) < count:
                messages = channel.receive(timeout=30)
                now = time.time() * 1000
                if not messages:
                    return
                late.extend(now - float(bytes(message.body)) for message in messages)

    consumer = threading.Thread(target=consume)
    consumer.start()
    ready.wait(30)
    with Connection(broker.url, timeout=300) as connection:
        channel = connection.channel()
        began = time.monotonic()
        sent = 0
        while sent < count:
            due = int((time.monotonic() - began) * rate) - sent
            for _ in range(min(due, count - sent)):
                sent += 1
                at = int(time.time() * 1000) + 1000 + sent * 7919 % 1000
                properties = Properties(headers={"x-deliver-at": Field("l", at)}, delivery_mode=2)
                channel.basic_publish("bench.delayed", "k", str(at).encode(), properties)
            connection.flush()
            time.sleep(0.001)
        consumer.join(60)
        channel.exchange_delete("bench.delayed")
        channel.queue_delete("bench.q")
    late.sort()
    if len(late) < count:
        raise RuntimeError(f"{count - len(late)} of {count} messages did not arrive")
    return {"p50 ms": late[count // 2], "p99 ms": late[count * 99 // 100], "most ms": late[-1], "least ms": late[0]}


def measure(messages: int, rate: int, seconds: float) -> dict[str, Any]:
    found: dict[str, Any] = {"messages": messages, "rate": rate}
    runs = []
    for _ in range(ROUNDS):  # first: behind the other the disk would still be writing
        with warren() as broker:
            runs.append(lateness(broker, rate, seconds))
    found["lateness"] = sorted(runs, key=lambda one: one["p99 ms"])[ROUNDS // 2]
    for name, value in found["lateness"].items():
        print(f"  lateness at {rate} a second, {name:<10}{value:12,.2f}", flush=True)
    with warren() as broker:
        found["memory"] = memory_and_speed(broker, messages)
        for name, value in found["memory"].items():
            print(f"  {name:<28}{value:12,.2f}", flush=True)
    return found
