"""Publishers and consumers, each in a process of its own, so that the load's Python does not hold itself up.

Bodies begin with the time they were published (8 octets, nanoseconds, when there is room), so a consumer on the same
machine can tell how long a message took.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable
from multiprocessing.sharedctypes import Synchronized
from typing import Any

from warrenmq.bench.workload import Workload
from warrenmq.client import Connection, Properties
from warrenmq.wire.content import encode_header
from warrenmq.wire.fields import from_python

BATCH = 500  # messages encoded at a time
STAMP = struct.Struct("!q")


def exchange_name(prefix: str, workload: Workload) -> str:
    return (workload.exchange or f"{prefix}.x") if workload.exchange_type else ""


def queue_name(prefix: str, number: int) -> str:
    return f"{prefix}.q{number}"


def key_of(prefix: str, workload: Workload, publisher: int, number: int) -> str:
    """The routing key of a publisher's n-th kind of message."""
    queue = (publisher + number) % workload.queues
    if not workload.exchange_type:
        return queue_name(prefix, queue)
    return f"bench.{queue}.k{number % workload.keys}"


def properties_of(workload: Workload) -> Properties:
    values = dict(workload.properties)
    headers = values.pop("headers", None)
    properties = Properties(delivery_mode=2 if workload.persistent else None)
    for name, value in values.items():
        setattr(properties, name, value)
    if isinstance(headers, dict):
        properties.headers = from_python(headers)
    return properties


def set_up(url: str, prefix: str, workload: Workload) -> None:
    with Connection(url) as connection:
        channel = connection.channel()
        if workload.exchange_type and not workload.exchange:
            arguments = {"x-delayed-type": "direct"} if workload.exchange_type == "x-delayed-message" else {}
            channel.exchange_declare(
                exchange_name(prefix, workload), workload.exchange_type, durable=workload.durable, arguments=arguments
            )
        for number in range(workload.queues):
            name = queue_name(prefix, number)
            channel.queue_declare(name, durable=workload.durable, arguments=workload.queue_arguments)
            if workload.exchange_type == "topic":
                channel.queue_bind(name, exchange_name(prefix, workload), f"bench.{number}.*")
            elif workload.exchange_type:
                for key in range(workload.keys):
                    channel.queue_bind(name, exchange_name(prefix, workload), f"bench.{number}.k{key}")
        for number in range(workload.bindings):
            name = queue_name(prefix, number % workload.queues)
            channel.queue_bind(name, exchange_name(prefix, workload), f"other.{number}.#")


def tear_down(url: str, prefix: str, workload: Workload) -> None:
    with Connection(url) as connection:
        channel = connection.channel()
        for number in range(workload.queues):
            channel.queue_delete(queue_name(prefix, number))
        if workload.exchange_type and not workload.exchange:
            channel.exchange_delete(exchange_name(prefix, workload))


def share(total: int, parts: int, number: int) -> int:
    return total * (number + 1) // parts - total * number // parts


def publish(url: str, prefix: str, workload: Workload, number: int, progress: Synchronized[int]) -> dict[str, Any]:
    """One publisher; returns what it saw."""
    total = share(workload.messages, workload.publishers, number)
    filling = b"x" * max(0, workload.size - STAMP.size)
    stamped = workload.size >= STAMP.size
    plain = b"x" * workload.size
    header = encode_header(properties_of(workload), workload.size)
    exchange = exchange_name(prefix, workload)
    keys = [key_of(prefix, workload, number, n) for n in range(max(workload.keys, workload.queues))]
    confirm_times: list[int] = []
    with Connection(url) as connection:
        channel = connection.channel()
        if workload.confirms:
            channel.confirm_select()
        nacked = 0
        sent = 0
        turn = 0
        start = time.monotonic()
        batch = min(BATCH, workload.confirms) if workload.confirms else BATCH
        if workload.rate:
            batch = min(batch, max(1, workload.rate // 1000))
        while sent < total:
            size = min(batch, total - sent)
            if workload.rate:
                ahead = sent / workload.rate - (time.monotonic() - start)
                if ahead > 0:
                    connection.flush()
                    time.sleep(ahead)
            while workload.confirms and channel.unconfirmed + size > workload.confirms:
                connection.read(30)
            bodies = [STAMP.pack(time.time_ns()) + filling] * size if stamped else [plain] * size
            began = time.perf_counter_ns()
            channel.publish_many(exchange, keys[turn % len(keys)], bodies, header, workload.mandatory)
            connection.flush()
            turn += 1
            sent += size
            progress.value += size
            if workload.confirms == 1:
                nacked += len(channel.wait_for_confirms(60))
                confirm_times.append(time.perf_counter_ns() - began)
        if workload.confirms > 1:
            nacked += len(channel.wait_for_confirms(300))
        connection.flush()
        seconds = time.monotonic() - start
        returned = sum(1 for event in channel.take_events() if type(event).__name__ == "Returned")
    return {"sent": sent, "seconds": seconds, "nacked": nacked, "returned": returned, "confirm_ns": confirm_times}


def consume(
    url: str, prefix: str, workload: Workload, number: int, progress: Synchronized[int], ready: Callable[[], object]
) -> dict[str, Any]:
    """One consumer: reads until all consumers together have everything."""
    stamped = workload.size >= STAMP.size and (workload.rate > 0)
    latencies: list[int] = []
    first = last = 0.0
    received = 0
    with Connection(url) as connection:
        channel = connection.channel()
        if workload.prefetch:
            channel.basic_qos(workload.prefetch)
        for queue in range(workload.queues):
            if queue % workload.consumers == number % workload.queues or workload.queues < workload.consumers:
                if workload.queues < workload.consumers and queue != number % workload.queues:
                    continue
                channel.basic_consume(queue_name(prefix, queue), no_ack=not workload.ack_every)
        ready()
        unacked = 0
        while progress.value < workload.deliveries:
            messages = channel.receive(1.0)
            if not messages:
                if last and time.monotonic() - last > 30:
                    break
                continue
            last = time.monotonic()
            first = first or last
            if stamped:
                now = time.time_ns()
                latencies.extend(now - STAMP.unpack_from(message.body)[0] for message in messages)
            received += len(messages)
            with progress.get_lock():
                progress.value += len(messages)
            if workload.ack_every:
                for message in messages:
                    unacked += 1
                    if unacked >= workload.ack_every:
                        channel.basic_ack(message.delivery_tag, unacked > 1)
                        unacked = 0
                connection.flush()
        if unacked:
            channel.basic_ack(0, True)
            connection.flush()
    return {"received": received, "seconds": last - first, "first": first, "last": last, "latency_ns": latencies}
