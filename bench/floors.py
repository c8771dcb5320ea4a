"""What a line can cost at least: programs that do the one thing that cannot be left out, and nothing else.

A process that only passes the same octets on, for messages; one that receives, writes, syncs in a thread and answers,
for one confirm at a time; a loop that writes and syncs, for the disk alone; one that gives each client of a connection
the same answers, whoever it is. Beside each stands the broker, measured in the same run.
"""

from __future__ import annotations

import contextlib
import dataclasses
import multiprocessing
import os
import queue
import select
import socket
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from bench.brokers import warren
from bench.cores import relay
from bench.scenarios import SCENARIOS, Scenario
from warrenmq.bench import process
from warrenmq.bench.run import percentiles, run
from warrenmq.bench.workload import Workload
from warrenmq.client import Connection
from warrenmq.wire.constants import PROTOCOL_HEADER
from warrenmq.wire.methods import method_frame

CONTEXT = multiprocessing.get_context("spawn")
RELAYED = {"a": 28, "a1k": 28, "a16k": 28}  # octets of frames around a body, about
MIB = Scenario("a1m", "1 MiB transient, auto-ack", Workload(messages=1000, size=1 << 20))
COMMIT = 1410  # octets of a commit of one message of 1 KiB
FRAME = 1100  # octets of such a publish; the answer has 21
COMINGS = 3000  # connections, one after the other, each with a channel


def measure(scale: float, reps: int) -> dict[str, Any]:
    chosen = {scenario.name: scenario for scenario in (*SCENARIOS, MIB)}
    lines: list[dict[str, Any]] = []
    with warren() as broker:
        (pid, *_) = process.listening(broker.port)
        for name in ("a", "a1k", "a16k", "a1m"):
            scenario = chosen[name]
            messages = max(100, int(scenario.workload.messages * scale))
            workload = dataclasses.replace(scenario.workload, messages=messages)
            floors, brokers = [], []
            for _ in range(reps):
                floors.append(relayed(workload.size + RELAYED.get(name, 100), messages))
                brokers.append(run(broker.url, workload)["cpu_s_per_million"])
            lines.append(told(name, scenario.what, "a process that only relays", "CPU s/M", floors, brokers))
        scenario = chosen["c"]
        messages = max(50, int(scenario.workload.messages * scale))
        workload = dataclasses.replace(scenario.workload, messages=messages)
        answered, synced, committed = [], [], []
        for _ in range(reps):
            answered.append(receive_sync_answer(messages))
            synced.append(write_and_sync(messages))
            record = run(broker.url, workload)
            committed.append({"cpu_us": record["cpu_s_per_million"], "p50_ms": record["confirm_ms"]["p50"]})
        for floor, found in (("receive, write, sync in a thread, answer", answered), ("write and sync", synced)):
            for unit, key in (("CPU µs", "cpu_us"), ("p50, ms", "p50_ms")):
                there = [one[key] for one in committed]
                lines.append(told("c", scenario.what, floor, unit, [one[key] for one in found], there))
        times = max(20, int(COMINGS * scale))
        greeted, served = [], []
        with answering() as (port, server):
            for _ in range(reps):
                greeted.append(coming_and_going(f"amqp://guest:guest@127.0.0.1:{port}/", server, times))
                served.append(coming_and_going(broker.url, pid, times))
        for unit, key in (("CPU µs", "cpu_us"), ("µs for its client", "us")):
            lows, highs = [one[key] for one in greeted], [one[key] for one in served]
            what = "connect, open a channel, close"
            lines.append(told("connect", what, "the same answers to everybody", unit, lows, highs))
    return {"lines": lines, "reps": reps}


def told(name: str, what: str, floor: str, unit: str, floors: list[float], brokers: list[float]) -> dict[str, Any]:
    low, high = statistics.median(floors), statistics.median(brokers)
    print(f"  {name:<5}{floor}: {low:.2f}, Warren {high:.2f} {unit}", flush=True)
    return {"name": name, "what": what, "floor": floor, "unit": unit, "floors": floors, "brokers": brokers}


# --- octets passed on


def relayed(size: int, count: int) -> float:
    """CPU seconds per million of a process that passes so many messages on."""
    listener = socket.create_server(("127.0.0.1", 0))
    taker = threading.Thread(target=_take, args=(listener, size * count), daemon=True)
    taker.start()
    with relay(listener.getsockname()[1]) as (port, pid):
        before = process.cpu_seconds([pid])
        with socket.create_connection(("127.0.0.1", port)) as giver:
            some = bytes(min(size * count, max(size, 1 << 18) // size * size))
            left = size * count
            while left > 0:
                left -= len(some[:left])
                giver.sendall(some[: left + len(some)] if left < 0 else some)
            taker.join(300)
        spent = process.cpu_seconds([pid]) - before
    listener.close()
    return spent / count * 1e6


def _take(listener: socket.socket, octets: int) -> None:
    client, _ = listener.accept()
    buffer = bytearray(1 << 18)
    with client:
        while octets > 0:
            got = client.recv_into(buffer)
            if not got:
                return
            octets -= got


# --- one confirm at a time


def receive_sync_answer(count: int) -> dict[str, float]:
    """What a process needs that takes a message, has a thread write and sync it, and then answers; one at a time."""
    port, up = CONTEXT.Value("i", 0), CONTEXT.Event()
    server = CONTEXT.Process(target=_serve, args=(port, up), daemon=True)
    server.start()
    up.wait(60)
    taken = []
    try:
        with socket.create_connection(("127.0.0.1", port.value)) as client:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            before = process.cpu_seconds([server.pid or 0])
            for _ in range(count):
                began = time.perf_counter_ns()
                client.sendall(b"x" * FRAME)
                client.recv(64)
                taken.append(time.perf_counter_ns() - began)
            spent = process.cpu_seconds([server.pid or 0]) - before
    finally:
        server.terminate()
        server.join(10)
    return {"cpu_us": spent / count * 1e6, "p50_ms": percentiles(taken)["p50"]}


def _serve(port: Any, up: Any) -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    port.value = listener.getsockname()[1]
    with _zeroed() as write:
        up.set()
        client, _ = listener.accept()
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        woken, wakes = os.pipe()
        tasks: queue.SimpleQueue[bytes] = queue.SimpleQueue()

        def work() -> None:
            while True:
                write(tasks.get())
                os.write(wakes, b"1")

        threading.Thread(target=work, daemon=True).start()
        poll = select.epoll()
        poll.register(client, select.EPOLLIN)
        poll.register(woken, select.EPOLLIN)
        have = 0
        while True:
            for descriptor, _ in poll.poll():
                if descriptor == woken:
                    os.read(woken, 64)
                    client.sendall(b"x" * 21)
                    continue
                data = client.recv(65536)
                if not data:
                    return
                have += len(data)
                if have >= FRAME:
                    have -= FRAME
                    tasks.put(b"x" * COMMIT)


def write_and_sync(count: int) -> dict[str, float]:
    """The disk alone, from a plain loop."""
    taken = []
    with _zeroed() as write:
        began_cpu = time.thread_time()
        for _ in range(count):
            began = time.perf_counter_ns()
            write(b"x" * COMMIT)
            taken.append(time.perf_counter_ns() - began)
        spent = time.thread_time() - began_cpu
    return {"cpu_us": spent / count * 1e6, "p50_ms": percentiles(taken)["p50"]}


@contextlib.contextmanager
def _zeroed() -> Iterator[Callable[[bytes], None]]:
    """A file with zeros ahead of its end, as the log has, and what appends to it and syncs."""
    with tempfile.TemporaryFile(dir=".") as file:
        os.pwrite(file.fileno(), bytes(16 << 20), 0)
        os.fsync(file.fileno())
        at = 0

        def write(data: bytes) -> None:
            nonlocal at
            os.pwrite(file.fileno(), data, at)
            os.fdatasync(file.fileno())
            at += len(data)

        yield write


# --- connections that come and go


def coming_and_going(url: str, server: int, count: int) -> dict[str, float]:
    """What a connection with one channel costs its server, and how long it takes our own client, one at a time."""
    before, began = process.cpu_seconds([server]), time.perf_counter()
    for _ in range(count):
        with Connection(url) as connection:
            connection.channel()
    seconds = time.perf_counter() - began
    return {"cpu_us": (process.cpu_seconds([server]) - before) / count * 1e6, "us": seconds / count * 1e6}


@contextlib.contextmanager
def answering() -> Iterator[tuple[int, int]]:
    """A process that lets everybody in; its port and pid."""
    port, up = CONTEXT.Value("i", 0), CONTEXT.Event()
    server = CONTEXT.Process(target=_answer, args=(port, up), daemon=True)
    server.start()
    up.wait(60)
    try:
        yield port.value, server.pid or 0
    finally:
        server.terminate()
        server.join(10)


def _answer(port: Any, up: Any) -> None:
    start = method_frame(
        0,
        "connection.start",
        version_major=0,
        version_minor=9,
        server_properties={"product": "RabbitMQ"},
        mechanisms=b"PLAIN",
        locales=b"en_US",
    )
    close = b"\x00\x0a\x00\x32"
    answers = {  # by class and method of what came
        b"\x00\x0a\x00\x0b": method_frame(0, "connection.tune", channel_max=2047, frame_max=131072, heartbeat=60),
        b"\x00\x0a\x00\x28": method_frame(0, "connection.open-ok"),
        b"\x00\x14\x00\x0a": method_frame(1, "channel.open-ok"),
        close: method_frame(0, "connection.close-ok"),
    }
    listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
    port.value = listener.getsockname()[1]
    poll = select.epoll()
    poll.register(listener, select.EPOLLIN)
    clients: dict[int, socket.socket] = {}
    up.set()
    while True:
        for descriptor, _ in poll.poll():
            if descriptor == listener.fileno():
                client, _ = listener.accept()
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                clients[client.fileno()] = client
                poll.register(client, select.EPOLLIN)
                continue
            client = clients[descriptor]
            data = client.recv(65536)
            at = len(PROTOCOL_HEADER) if data.startswith(b"AMQP") else 0
            if at:
                client.sendall(start)
            method = b""
            while at < len(data):
                method = data[at + 7 : at + 11]
                if method in answers:  # all but tune-ok
                    client.sendall(answers[method])
                at += 8 + int.from_bytes(data[at + 3 : at + 7], "big")
            if method == close or not data:
                poll.unregister(descriptor)
                clients.pop(descriptor).close()
