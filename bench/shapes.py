"""What `flow` has not: TLS, streams, kinds of queues and exchanges, and things that are there in great numbers.

Each line is one shape of traffic on Warren and on RabbitMQ in the same run: the broker's CPU per message or per thing
that was done, and how many a second. The load is made by this process, and taken in others.
"""

from __future__ import annotations

import contextlib
import dataclasses
import multiprocessing
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from bench.brokers import Certificate, Running, rabbitmq, rabbitmq_installed, warren
from bench.scenarios import SCENARIOS, Scenario
from warrenmq.bench import process
from warrenmq.bench.run import BenchFailed, run
from warrenmq.client import Channel, Connection, Properties
from warrenmq.wire.fields import from_python

CONTEXT = multiprocessing.get_context("spawn")
BURST = 50
PERSISTENT = 2
WAIT = 300  # seconds that anything may take
Flow = Iterator[tuple[list["Reader"], int, Callable[[], None]]]


@dataclass(frozen=True)
class Reader:
    """One consuming process: from which queues, how many messages, and how."""

    queues: list[str]
    count: int
    prefetch: int = 0  # 0: no acknowledgements
    arguments: dict[str, object] | None = None
    channels: int = 1


@dataclass(frozen=True)
class Shape:
    name: str
    what: str
    make: Callable[[Channel, float], Flow]


def sized(count: int, scale: float) -> int:
    return max(BURST, int(count * scale) // BURST * BURST)


def published(
    channel: Channel,
    exchange: str,
    keys: list[str],
    count: int,
    properties: list[Properties] | None = None,
    body: bytes = b"x" * 100,
    confirmed: int = 0,
) -> None:
    """So many, in bursts, each with the next key and the next properties."""
    for turn in range(count // BURST):
        chosen = properties[turn % len(properties)] if properties else None
        while confirmed and channel.unconfirmed + BURST > confirmed:
            channel.connection.read(60)
        channel.publish_many(exchange, keys[turn % len(keys)], [body] * BURST, chosen)
        channel.connection.flush()
    if confirmed:
        channel.wait_for_confirms(WAIT)
        channel.take_events()


def read(url: str, reader: Reader, ready: Any, done: Any) -> None:
    """The consumer, in a process of its own."""
    with Connection(url, timeout=WAIT) as connection:
        channels = [connection.channel() for _ in range(reader.channels)]
        for channel in channels:
            if reader.prefetch:
                channel.basic_qos(reader.prefetch)
        for number, name in enumerate(reader.queues):
            channel = channels[number % len(channels)]
            channel.basic_consume(name, no_ack=not reader.prefetch, arguments=reader.arguments)
        ready.release()
        left = reader.count
        while left > 0:
            got = 0
            for channel in channels:
                messages = channel.receive(60 if len(channels) == 1 else 0)
                got += len(messages)
                if messages and reader.prefetch:
                    channel.basic_ack(messages[-1].delivery_tag, True)
            connection.flush()
            if not got and len(channels) > 1:
                connection.read(60)
            elif not got:
                return
            left -= got
        done.release()


# --- the shapes


def kept(arguments: dict[str, object], consumers: int = 1) -> Callable[[Channel, float], Flow]:
    """A durable queue of some kind: persistent with confirms, acknowledged."""

    def make(channel: Channel, scale: float) -> Flow:
        count = sized(50_000, scale)
        channel.queue_declare("shape", durable=True, arguments=arguments)
        channel.confirm_select()
        properties = [Properties(delivery_mode=PERSISTENT)]
        readers = [Reader(["shape"], count, 500)] + [Reader(["shape"], 0, 500)] * (consumers - 1)
        yield readers, count, lambda: published(channel, "", ["shape"], count, properties, b"x" * 1024, 1000)
        channel.queue_delete("shape")

    return make


def priority(channel: Channel, scale: float) -> Flow:
    count = sized(100_000, scale)
    channel.queue_declare("shape", arguments={"x-max-priority": 10})
    levels = [Properties(priority=level % 11) for level in range(0, 77, 7)]
    yield [Reader(["shape"], count)], count, lambda: published(channel, "", ["shape"], count, levels)
    channel.queue_delete("shape")


def headers(channel: Channel, scale: float) -> Flow:
    count = sized(20_000, scale)
    channel.exchange_declare("shape", "headers")
    channel.queue_declare("shape")
    for number in range(1000):
        arguments = {"x-match": "all", "tenant": f"t{number}", "kind": "order"}
        channel.queue_bind("shape", "shape", "", arguments)
    each = [Properties(headers=from_python({"tenant": f"t{n * 37 % 1000}", "kind": "order"})) for n in range(100)]
    yield [Reader(["shape"], count)], count, lambda: published(channel, "shape", [""], count, each)
    channel.queue_delete("shape")
    channel.exchange_delete("shape")


def consistent_hash(channel: Channel, scale: float) -> Flow:
    count = sized(100_000, scale)
    names = [f"shape{number}" for number in range(10)]
    channel.exchange_declare("shape", "x-consistent-hash")
    for name in names:
        channel.queue_declare(name)
        channel.queue_bind(name, "shape", "10")
    keys = [f"customer.{number}" for number in range(1000)]
    yield [Reader(names, count)], count, lambda: published(channel, "shape", keys, count)
    for name in names:
        channel.queue_delete(name)
    channel.exchange_delete("shape")


def many_consumers(channel: Channel, scale: float) -> Flow:
    count = sized(100_000, scale)
    channel.queue_declare("shape")
    yield [Reader(["shape"] * 1000, count, 10, None, 100)], count, lambda: published(channel, "", ["shape"], count)
    channel.queue_delete("shape")


def many_queues(channel: Channel, scale: float) -> Flow:
    count = sized(10_000, scale)
    names = [f"shape{number}" for number in range(count)]
    for name in names:
        channel.send("queue.declare", queue=name, nowait=True)
    channel.queue_declare(names[-1])

    def publish() -> None:
        for first in range(0, count, 1000):
            some = names[first : first + 1000]
            channel.publish_many("", some, [b"x" * 100] * len(some))
            channel.connection.flush()

    yield [Reader(names, count)], count, publish
    for name in names:
        channel.send("queue.delete", queue=name, nowait=True)
    channel.queue_delete(names[-1])


def many_bindings(channel: Channel, scale: float) -> Flow:
    count = sized(100_000, scale)
    channel.exchange_declare("shape", "topic")
    channel.queue_declare("shape")

    def declare() -> None:
        for number in range(count):
            key = f"site{number % 100}.sensor{number}.#"
            channel.send("queue.bind", queue="shape", exchange="shape", routing_key=key, nowait=True)
        channel.queue_bind("shape", "shape", "last")

    yield [], count, declare
    channel.exchange_delete("shape")
    channel.queue_delete("shape")


def stream_publish(channel: Channel, scale: float) -> Flow:
    count = sized(100_000, scale)
    channel.queue_declare("shape", durable=True, arguments={"x-queue-type": "stream"})
    channel.confirm_select()
    yield [], count, lambda: published(channel, "", ["shape"], count, None, b"x" * 100, 5000)
    channel.queue_delete("shape")


def stream_read(readers: int) -> Callable[[Channel, float], Flow]:
    def make(channel: Channel, scale: float) -> Flow:
        count = sized(100_000, scale)
        channel.queue_declare("shape", durable=True, arguments={"x-queue-type": "stream"})
        channel.confirm_select()
        published(channel, "", ["shape"], count, None, b"x" * 100, 5000)
        one = Reader(["shape"], count, 1000, {"x-stream-offset": "first"})
        yield [one] * readers, count * readers, lambda: None
        channel.queue_delete("shape")

    return make


SHAPES = [
    Shape("quorum", "quorum queue, 1 KiB, confirms, acks", kept({"x-queue-type": "quorum"})),
    Shape("single", "single active consumer of 4, the same", kept({"x-single-active-consumer": True}, 4)),
    Shape("priority", "10 priorities, 100 B transient, auto-ack", priority),
    Shape("headers", "headers exchange, 1,000 bindings, 100 sorts of messages", headers),
    Shape("hash", "consistent hash over 10 queues, 1,000 keys", consistent_hash),
    Shape("consumers", "one queue, 1,000 consumers, acks", many_consumers),
    Shape("queues", "10,000 queues, one message each", many_queues),
    Shape("bindings", "100,000 bindings declared", many_bindings),
    Shape("stream", "stream: publish with confirms, 100 B", stream_publish),
    Shape("stream1", "stream: read from the first offset, 1 reader", stream_read(1)),
    Shape("stream10", "stream: the same by 10 readers, per delivery", stream_read(10)),
]
OVER_TLS = ("a", "a1k", "b")


def one_run(shape: Shape, broker: Running, scale: float) -> dict[str, float]:
    """Set up, measure from the first publish to the last message taken, tear down."""
    pids = process.listening(broker.port)
    with Connection(broker.url, timeout=WAIT) as connection:
        flow = shape.make(connection.channel(), scale)
        readers, count, work = next(flow)
        ready, done = CONTEXT.Semaphore(0), CONTEXT.Semaphore(0)
        cpu, began = process.cpu_seconds(pids), time.monotonic()
        taking = [CONTEXT.Process(target=read, args=(broker.url, one, ready, done), daemon=True) for one in readers]
        try:
            for each in taking:
                each.start()
            for _ in taking:
                if not ready.acquire(timeout=WAIT):
                    raise BenchFailed(f"{shape.name}: a consumer did not start")
            if "stream1" not in shape.name:  # what is read is there before, and begins to flow as they come
                cpu, began = process.cpu_seconds(pids), time.monotonic()
            work()
            for _ in taking:
                if not done.acquire(timeout=WAIT):
                    raise BenchFailed(f"{shape.name}: a consumer did not get everything")
            seconds, cpu = time.monotonic() - began, process.cpu_seconds(pids) - cpu
        finally:
            for each in taking:
                each.join(10)
                each.terminate()
        next(flow, None)
    return {"count": count, "rate": count / seconds, "cpu_s_per_million": cpu / count * 1e6}


def over_tls(scenario: Scenario, broker: Running, scale: float) -> dict[str, float]:
    messages = sized(scenario.workload.messages // 2, scale)
    record = run(broker.tls_url, dataclasses.replace(scenario.workload, messages=messages))
    return {"count": messages, "rate": record["rate"], "cpu_s_per_million": record["cpu_s_per_million"]}


def handshakes(broker: Running, scale: float) -> dict[str, float]:
    count = max(5, int(300 * scale))
    pids = process.listening(broker.port)
    cpu, began = process.cpu_seconds(pids), time.monotonic()
    for _ in range(count):
        Connection(broker.tls_url).close()
    seconds, cpu = time.monotonic() - began, process.cpu_seconds(pids) - cpu
    return {"count": count, "rate": count / seconds, "cpu_s_per_million": cpu / count * 1e6}


Work = Callable[[Running, float], dict[str, float]]
WORKS: dict[str, tuple[str, Work]] = {
    **{shape.name: (shape.what, partial(one_run, shape)) for shape in SHAPES},
    **{f"tls-{one.name}": (f"TLS: {one.what}", partial(over_tls, one)) for one in SCENARIOS if one.name in OVER_TLS},
    "handshakes": ("TLS: connect, log in, close", handshakes),
}


def measure(only: list[str] | None, scale: float, reps: int, with_rabbitmq: bool) -> dict[str, Any]:
    chosen = {name: work for name, work in WORKS.items() if not only or name in only}
    runs: dict[str, dict[str, Any]] = {}
    with contextlib.ExitStack() as stack:
        certificate = stack.enter_context(self_signed())
        up = [stack.enter_context(warren(certificate))]
        if with_rabbitmq and rabbitmq_installed():
            up.append(stack.enter_context(rabbitmq(certificate)))
        for name, (what, work) in chosen.items():
            found: dict[str, list[dict[str, float]]] = {broker.name: [] for broker in up}
            for _ in range(reps):
                for broker in up:
                    try:
                        found[broker.name].append(work(broker, scale))
                    except Exception as error:
                        print(f"  {broker.name} {name} failed: {error}", flush=True)
            runs[name] = {"what": what, "runs": found}
            told = []
            for broker_name, records in found.items():
                if records:
                    cpu = statistics.median(one["cpu_s_per_million"] for one in records)
                    rate = statistics.median(one["rate"] for one in records)
                    told.append(f"{broker_name} {cpu:.2f} CPU s/M, {rate:,.0f}/s")
            print(f"  {name:<11}{what}: {'; '.join(told) or 'nothing'}", flush=True)
        return {"versions": {broker.name: broker.version for broker in up}, "reps": reps, "runs": runs}


@contextlib.contextmanager
def self_signed() -> Iterator[Certificate]:
    """For 127.0.0.1; whoever runs while it is there believes it."""
    with tempfile.TemporaryDirectory(prefix="warren-bench-tls-") as folder:
        os.chmod(folder, 0o755)  # noqa: S103 (RabbitMQ runs as its own user)
        certificate = Certificate(Path(folder) / "cert.pem", Path(folder) / "key.pem")
        command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        command += ["-keyout", str(certificate.key), "-out", str(certificate.chain), "-days", "2", "-subj", "/CN=bench"]
        command += ["-addext", "subjectAltName=IP:127.0.0.1"]
        subprocess.run(command, check=True, capture_output=True)
        certificate.key.chmod(0o644)
        before = os.environ.get("SSL_CERT_FILE")
        os.environ["SSL_CERT_FILE"] = str(certificate.chain)
        try:
            yield certificate
        finally:
            if before is None:
                del os.environ["SSL_CERT_FILE"]
            else:
                os.environ["SSL_CERT_FILE"] = before
