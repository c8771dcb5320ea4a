"""How cost grows: one thing gets larger, everything else stays, and each message should cost what it cost before.

Connections 1-2,000, queues 1-10,000, bindings 1-100,000, a standing backlog 0-10 M, bodies 0-1 MiB; on a fresh broker
for every axis. A point is messages a second, the broker's CPU seconds per million, and its memory.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Iterator
from typing import Any

from bench.brokers import Running, warren
from warrenmq.bench import process
from warrenmq.client import Channel, Connection, Properties

CONTEXT = multiprocessing.get_context("spawn")
BURST = 50  # messages a connection or key sends before it is the next one's turn
BODY = b"x" * 100
AXES: dict[str, list[int]] = {
    "connections": [1, 10, 100, 500, 1000, 2000],
    "queues": [1, 10, 100, 1000, 10_000],
    "bindings": [1, 10, 100, 1000, 10_000, 100_000],
    "new keys": [1, 10, 100, 1000, 10_000, 100_000],
    "backlog": [0, 10_000, 100_000, 1_000_000, 10_000_000],
    "size": [0, 100, 1024, 16_384, 131_072, 1_048_576],
}
WHY = {
    "connections": (
        "The same messages, from more and more connections in turns of 50. A connection is a protocol object and two"
        " buffers that shrink when idle; a turn of the event loop touches only those that sent something. Flat, and"
        " memory is linear in connections."
    ),
    "queues": (
        "One publisher through the default exchange, one channel consuming from all queues. A queue is looked up in a"
        " dictionary and only queues that got something are visited at the end of a turn. Flat; memory grows by"
        " about 4 kB a queue."
    ),
    "bindings": (
        "A topic exchange with so many bindings and 200 routing keys. The route of a key is remembered until a binding"
        " changes, so the number of bindings does not matter to a key that was seen before."
    ),
    "new keys": (
        "The same exchange, but every burst of 50 messages has a key that was never seen. The walk goes down a trie,"
        " one step a word: it meets the bindings that begin like the key and never the others."
    ),
    "backlog": (
        "So many persistent messages stand in the queue while as many are published at its end as are taken from its"
        " head. A message that waits is 24 to 35 bytes of index; its body is on disk and comes back in pages read in"
        " order. Memory is linear, cost is not touched."
    ),
    "size": (
        "Small bodies cost a fixed amount of work, large ones the copying of their bytes: kernel to broker, and broker"
        " to kernel. Linear from about 16 KiB on."
    ),
}


def main_flow(axis: str, value: int, broker: Running, scale: float) -> dict[str, float]:
    """One point: set up, measure, tear down."""
    with Connection(broker.url, timeout=300) as connection:
        flow = FLOWS[axis](connection.channel(), broker, value, scale)
        pids = process.listening(broker.port)
        names, count, publish = next(flow)
        memory = process.resident_bytes(pids)
        ready, done = CONTEXT.Event(), CONTEXT.Event()
        reader = CONTEXT.Process(target=drain, args=(broker.url, names, count, axis == "backlog", ready, done))
        reader.start()
        if not ready.wait(120):
            raise RuntimeError(f"{axis} {value}: the consumer did not start")
        cpu, began = process.cpu_seconds(pids), time.monotonic()
        publish()
        if not done.wait(300):
            raise RuntimeError(f"{axis} {value}: the consumer did not get everything")
        seconds, cpu = time.monotonic() - began, process.cpu_seconds(pids) - cpu
        memory = max(memory, process.resident_bytes(pids))
        reader.join(60)
        next(flow, None)
    return {
        "at": value,
        "rate": count / seconds,
        "cpu_s_per_million": cpu / count * 1e6,
        "resident_mb": memory / 1e6,
    }


def drain(url: str, queues: list[str], count: int, acked: bool, ready: Any, done: Any) -> None:
    """The consumer, in a process of its own."""
    with Connection(url, timeout=300) as connection:
        channel = connection.channel()
        if acked:
            channel.basic_qos(500)
        for name in queues:
            channel.basic_consume(name, no_ack=not acked)
        ready.set()
        left = count
        while left > 0:
            messages = channel.receive(60)
            if not messages:
                return
            left -= len(messages)
            if acked:
                channel.basic_ack(messages[-1].delivery_tag, True)
                connection.flush()
        done.set()


Flow = Iterator[tuple[list[str], int, Callable[[], None]]]


def rounds(count: int) -> range:
    return range(count // BURST)


def connections(channel: Channel, broker: Running, value: int, scale: float) -> Flow:
    count = int(200_000 * scale) // BURST * BURST
    channel.queue_declare("grow")
    held = [Connection(broker.url, timeout=60) for _ in range(value)]
    channels = [one.channel() for one in held]

    def publish() -> None:
        for turn in rounds(count):
            one = channels[turn % value]
            one.publish_many("", "grow", [BODY] * BURST)
            one.connection.flush()

    yield ["grow"], count, publish
    for one in held:
        one.close()
    channel.queue_delete("grow")


def queues(channel: Channel, broker: Running, value: int, scale: float) -> Flow:
    count = int(200_000 * scale) // BURST * BURST
    names = [f"grow{number}" for number in range(value)]
    for name in names:
        channel.send("queue.declare", queue=name, nowait=True)
    channel.queue_declare(names[-1])

    def publish() -> None:
        for turn in rounds(count):
            channel.publish_many("", names[turn * 7919 % value], [BODY] * BURST)
            channel.connection.flush()

    yield names, count, publish
    for name in names:
        channel.send("queue.delete", queue=name, nowait=True)
    channel.queue_delete(names[-1])


def bindings(channel: Channel, broker: Running, value: int, scale: float, fresh: bool = False) -> Flow:
    count = int(200_000 * scale) // BURST * BURST
    channel.exchange_declare("grow", "topic")
    channel.queue_declare("grow")
    for number in range(value):
        key = f"site{number % 100}.sensor{number}.{'*' if number % 3 else '#'}"
        channel.send("queue.bind", queue="grow", exchange="grow", routing_key=key, nowait=True)
    channel.queue_bind("grow", "grow", "site0.sensor0.#")

    def publish() -> None:
        for turn in rounds(count):
            number = turn % min(value, 200)
            last = f"v{turn}" if fresh else "v"
            channel.publish_many("grow", f"site{number % 100}.sensor{number}.{last}", [BODY] * BURST)
            channel.connection.flush()

    yield ["grow"], count, publish
    channel.queue_delete("grow")
    channel.exchange_delete("grow")


def new_keys(channel: Channel, broker: Running, value: int, scale: float) -> Flow:
    yield from bindings(channel, broker, value, scale, fresh=True)


def backlog(channel: Channel, broker: Running, value: int, scale: float) -> Flow:
    count = int(200_000 * scale) // 1000 * 1000
    value = int(value * min(1.0, scale))
    properties = Properties(delivery_mode=2)
    channel.queue_declare("grow", durable=True)
    channel.confirm_select()

    def fill(messages: int) -> None:
        sent = 0
        while sent < messages:
            size = min(1000, messages - sent)
            channel.publish_many("", "grow", [BODY] * size, properties)
            channel.connection.flush()
            sent += size
            while channel.unconfirmed > 20_000:
                channel.connection.read(60)
            channel.take_events()
        channel.wait_for_confirms(300)
        channel.take_events()

    fill(value)
    yield ["grow"], count, lambda: fill(count)
    channel.queue_delete("grow")


def size(channel: Channel, broker: Running, value: int, scale: float) -> Flow:
    count = max(BURST, int(min(200_000, 2_000_000_000 // max(1, value)) * scale) // BURST * BURST)
    body = b"x" * value
    burst = max(1, min(BURST, 1_000_000 // max(1, value)))
    channel.queue_declare("grow")

    def publish() -> None:
        for _ in range(count // burst):
            channel.publish_many("", "grow", [body] * burst)
            channel.connection.flush()
        channel.publish_many("", "grow", [body] * (count % burst))
        channel.connection.flush()

    yield ["grow"], count, publish
    channel.queue_delete("grow")


FLOWS: dict[str, Callable[[Channel, Running, int, float], Flow]] = {
    "connections": connections,
    "queues": queues,
    "bindings": bindings,
    "new keys": new_keys,
    "backlog": backlog,
    "size": size,
}


def measure(only: list[str] | None = None, scale: float = 1.0, reps: int = 1) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for axis, values in AXES.items():
        if only and axis not in only:
            continue
        found[axis] = []
        with warren() as broker:
            for value in values:
                points = [main_flow(axis, value, broker, scale) for _ in range(reps)]
                point = sorted(points, key=lambda one: one["cpu_s_per_million"])[len(points) // 2]
                found[axis].append(point)
                print(
                    f"  {axis:<12}{value:>11,}{point['rate']:>12,.0f}/s"
                    f"{point['cpu_s_per_million']:>9.2f} CPU s/M{point['resident_mb']:>9.0f} MB",
                    flush=True,
                )
    return found
