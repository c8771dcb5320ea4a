"""What a broker costs that has nothing to do, and how soon it is there: starts, memory, a page of a long list.

Duty: a start with very many messages, after a clean stop and after a kill, to when a client is in and to when it is
answered; what an idle broker takes, before and after somebody looks, and with many transient messages waiting; one page
of ten thousand queues over HTTP, beside RabbitMQ. `measure` says what happened and judges nothing.
"""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench import brokers, stalls
from bench.brokers import Running
from warrenmq.bench import process
from warrenmq.cli._api import Api
from warrenmq.client import Channel, Connection, Properties

CONTEXT = multiprocessing.get_context("spawn")
WAITING = 10_000_000  # messages at a start
TRANSIENT = 500_000
BODY = b"x" * 100
QUEUES = 10_000
PAGE = "/queues?page=1&page_size=100&sort=messages&sort_reverse=true"
PAGES = {
    "by name": "/queues?page=1&page_size=100&sort=name",
    "one from the middle, by a column": "/queues?page=50&page_size=100&sort=messages&sort_reverse=true",
    "by a rate": "/queues?page=1&page_size=100&sort=message_stats.publish_details.rate&sort_reverse=true",
    "by a column, of a part of the names": "/queues?page=1&page_size=100&sort=messages&name=q00",
}
AT_ONCE = 10_000
SETTLED = 2.0  # seconds until a broker that was given something to do has nothing more to do
PATIENCE = 600.0


def measure(scale: float = 1.0, reps: int = 3, with_rabbitmq: bool = True) -> dict[str, Any]:
    return {"starts": starts(scale, reps), "memory": memory(scale), "page": pages(scale, reps, with_rabbitmq)}


# --- starts


@contextlib.contextmanager
def serving(folder: Path) -> Iterator[tuple[subprocess.Popen[bytes], str, float]]:
    """A broker over this folder, its address, and the seconds until it listened."""
    ready = folder / "ready"
    ready.unlink(missing_ok=True)
    began = time.monotonic()
    command = [sys.executable, "-m", "warrenmq", "serve", "--port", "0", "--http-port", "0", "--log-level", "warning"]
    child = subprocess.Popen(
        [*command, "--data-dir", str(folder / "data"), "--ready-file", str(ready)], stdout=subprocess.DEVNULL
    )
    try:
        while not ready.exists():
            if child.poll() is not None:
                raise RuntimeError("warren serve did not start")
            time.sleep(0.005)
        seconds = time.monotonic() - began
        yield child, f"amqp://guest:guest@{json.loads(ready.read_text())['amqp']}/", seconds
    finally:
        if child.poll() is None:
            child.terminate()
        child.wait(PATIENCE)


def starts(scale: float, reps: int) -> list[dict[str, Any]]:
    """Each start: after what, seconds to listening, to a client's login, to its answer, and CPU seconds by then."""
    count = max(1000, int(WAITING * scale))
    found: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="warren-bench-") as name:
        folder = Path(name)
        with serving(folder) as (_, url, _):
            filled(url, count, persistent=True)
        for _ in range(reps):
            for after in ("a clean stop", "a kill"):
                began = time.monotonic()
                with serving(folder) as (child, url, listening), Connection(url, timeout=PATIENCE) as connection:
                    inside = time.monotonic() - began
                    channel = connection.channel()
                    there = channel.queue_declare("rest", passive=True).int("message_count")
                    answered = time.monotonic() - began
                    spent = process.cpu_seconds([child.pid])
                    if there != count:
                        raise RuntimeError(f"{there} of {count} messages are there after {after}")
                    if after == "a clean stop":
                        os.kill(child.pid, signal.SIGKILL)  # so that the next one comes after a kill
                        child.wait()
                found.append(
                    {"after": after, "listening": listening, "inside": inside, "answered": answered, "cpu": spent}
                )
                print(
                    f"start with {count:,} waiting, after {after}: listening {listening:.2f} s, a client in "
                    f"{inside:.2f}, answered {answered:.2f}, CPU {spent:.2f} s",
                    flush=True,
                )
    return [{"waiting": count}, *found]


def filled(url: str, count: int, persistent: bool) -> None:
    with Connection(url, timeout=PATIENCE) as connection:
        channel: Channel = connection.channel()
        channel.queue_declare("rest", durable=True)
        channel.confirm_select()
        properties = Properties(delivery_mode=2 if persistent else 1)
        for start in range(0, count, AT_ONCE):
            channel.publish_many("", "rest", [BODY] * min(AT_ONCE, count - start), properties)
            channel.wait_for_confirms(PATIENCE)
            channel.take_events()


# --- memory


def memory(scale: float) -> dict[str, float]:
    """Resident megabytes: idle, after the first look over HTTP, and what so many transient messages add."""
    count = max(1000, int(TRANSIENT * scale))
    found: dict[str, float] = {"transient": count}
    with brokers.warren() as running:
        (pid, *_) = process.listening(running.port)
        time.sleep(SETTLED)
        found["idle_mb"] = process.resident_bytes([pid]) / 1e6
        Api(running.http, 60).checked("GET", "/overview")
        time.sleep(SETTLED)
        found["looked_at_mb"] = process.resident_bytes([pid]) / 1e6
        spent = process.cpu_seconds([pid])
        filled(running.url, count, persistent=False)
        found["fill_cpu_s_per_million"] = (process.cpu_seconds([pid]) - spent) / count * 1e6
        time.sleep(SETTLED)
        found["transient_mb"] = process.resident_bytes([pid]) / 1e6 - found["looked_at_mb"]
    print("memory, MB: " + ", ".join(f"{name} {value:.1f}" for name, value in found.items()), flush=True)
    return found


# --- a page of a long list


def pages(scale: float, reps: int, with_rabbitmq: bool) -> dict[str, Any]:
    count = max(200, int(QUEUES * scale))
    found: dict[str, Any] = {"queues": count, "brokers": {}}
    with brokers.warren() as running:
        found["brokers"]["Warren"] = asked(running, count, 20 * reps)
    if with_rabbitmq and brokers.rabbitmq_installed():
        with brokers.rabbitmq(management=True) as running:
            found["brokers"]["RabbitMQ"] = asked(running, count, 2 * reps)
    return found


def asked(running: Running, count: int, times: int) -> dict[str, float]:
    """One page, sorted by a column: milliseconds of each request, and the longest that somebody else waited."""
    api = Api(running.http, PATIENCE)
    names = [f"q{n:05}" for n in range(count)]
    declared = [{"name": n, "vhost": "/", "durable": False, "auto_delete": False, "arguments": {}} for n in names]
    api.checked("POST", "/definitions", {"queues": declared})
    pids = process.listening(running.port)
    api.checked("GET", PAGE)
    time.sleep(SETTLED)
    stop, trips, longest = CONTEXT.Event(), CONTEXT.Value("q", 0), CONTEXT.Value("d", 0.0)
    client = CONTEXT.Process(target=stalls.honest, args=(running.url, stop, trips, longest), daemon=True)
    client.start()
    time.sleep(SETTLED)
    longest.value = 0.0
    spent, taken = process.cpu_seconds(pids), []
    for _ in range(times):
        began = time.monotonic()
        api.checked("GET", PAGE)
        taken.append((time.monotonic() - began) * 1000)
    found: dict[str, float] = {
        "median_ms": statistics.median(taken),
        "most_ms": max(taken),
        "broker_cpu_ms": (process.cpu_seconds(pids) - spent) / times * 1000,
    }
    for name, path in PAGES.items():
        taken = []
        for _ in range(max(1, times // 4)):
            began = time.monotonic()
            api.checked("GET", path.replace("page=50", f"page={count // 200}"))
            taken.append((time.monotonic() - began) * 1000)
        found[name] = statistics.median(taken)
    found["longest_wait_ms"] = longest.value * 1000
    stop.set()
    client.join(10)
    said = ", ".join(f"{name} {value:.1f}" for name, value in found.items())
    print(f"{running.name}, a page of {count:,} queues: {said}", flush=True)
    return found
