"""Consoles: how long everybody else waits while ten of them are open on a loaded broker, beside RabbitMQ's page.

The same load on both: so many queues, messages published and consumed at a fixed rate, and an honest client that asks
one small question after the other. Each is measured twice, without consoles and with ten. A console of ours is its
log-in and its stream, with what its pages watch; one of RabbitMQ's is what its page asks every five seconds. No browser
runs: what a browser draws costs the broker nothing. `measure` says what happened and judges nothing.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import re
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx
from tests.support import web

from bench import brokers
from bench.brokers import Running
from warrenmq.bench.run import percentiles
from warrenmq.cli._api import Api
from warrenmq.client import Connection

CONTEXT = multiprocessing.get_context("spawn")
CONSOLES = 10
QUEUES = 10_000
RATE = 4_000  # messages a second
SECONDS = 30.0
EVERY = 5.0  # seconds between two looks of RabbitMQ's page, as it comes
LOADED = "loaded"
STALL = re.compile(r'^warren_loop_stall_(seconds_count|longest_seconds)\{spent="cpu"\} (\S+)$', re.MULTILINE)

_QUEUES = "columns=name,vhost,type,messages_ready,messages,message_stats.publish_details&page=1&page_size=50"
WATCHED = (
    ("/overview", "/nodes", "/ledger"),
    (f"/queues?{_QUEUES}",),
    (f"/queues?{_QUEUES}&sort=messages&sort_reverse=true",),
    (f"/queues/%2F/{LOADED}", f"/queues/%2F/{LOADED}/ledger"),
    ("/connections?page=1&page_size=50", "/channels?page=1&page_size=50"),
)
POLLED = (
    ("/overview", "/nodes", "/vhosts"),
    ("/queues?page=1&page_size=100&name=&use_regex=false&pagination=true", "/vhosts"),
    ("/queues?page=1&page_size=100&name=&use_regex=false&pagination=true&sort=messages&sort_reverse=true", "/vhosts"),
    (f"/queues/%2F/{LOADED}?lengths_age=60&lengths_incr=5&msg_rates_age=60&msg_rates_incr=5", "/vhosts"),
    (
        "/connections?page=1&page_size=100&name=&use_regex=false&pagination=true",
        "/channels?page=1&page_size=100&name=&use_regex=false&pagination=true",
    ),
)


def measure(scale: float = 1.0, with_rabbitmq: bool = True, seconds: float = SECONDS) -> dict[str, Any]:
    count = max(10, int(QUEUES * scale))
    found: dict[str, Any] = {"queues": count, "rate": RATE, "consoles": CONSOLES, "brokers": {}}
    with brokers.warren() as running:
        found["brokers"]["Warren"] = one(running, count, seconds, ours)
    if with_rabbitmq and brokers.rabbitmq_installed():
        with brokers.rabbitmq(management=True) as running:
            found["brokers"]["RabbitMQ"] = one(running, count, seconds, rabbitmqs)
    return found


def one(running: Running, queues: int, seconds: float, console: Callable[..., None]) -> dict[str, Any]:
    names = [*(f"q{n:05}" for n in range(queues)), LOADED]
    declared = [{"name": n, "vhost": "/", "durable": False, "auto_delete": False, "arguments": {}} for n in names]
    Api(running.http, 600).checked("POST", "/definitions", {"queues": declared})
    found: dict[str, Any] = {"version": running.version}
    with load(running.url):
        for label, consoles in (("without", 0), ("with", CONSOLES)):
            before = stalls(running)
            found[label] = watched(running, consoles, seconds, console)
            found[label] |= {name: value - before[name] for name, value in stalls(running).items() if name in before}
            said = ", ".join(f"{name} {value:.1f}" for name, value in found[label].items())
            print(f"{running.name}, {label} consoles: {said}", flush=True)
    return found


def watched(running: Running, consoles: int, seconds: float, console: Callable[..., None]) -> dict[str, Any]:
    """What the honest client waits meanwhile, and how often consoles were told something."""
    stop = threading.Event()
    told = [0] * consoles
    open_ = [
        threading.Thread(target=console, args=(running.http, number, stop, told), daemon=True)
        for number in range(consoles)
    ]
    for thread in open_:
        thread.start()
    while not all(told):
        time.sleep(0.05)  # each has been answered once
    receiving, sending = CONTEXT.Pipe(duplex=False)
    over = CONTEXT.Event()
    client = CONTEXT.Process(target=asking, args=(running.url, over, sending), daemon=True)
    client.start()
    receiving.recv()  # it asks
    before = sum(told)
    time.sleep(seconds)
    over.set()
    trips = receiving.recv()
    answers = sum(told) - before
    client.join(60)
    stop.set()
    for thread in open_:
        thread.join(60)
    ordered = percentiles(trips)
    return {
        "round_trips": len(trips),
        "p50_ms": ordered["p50"],
        "p99_ms": ordered["p99"],
        "longest_ms": ordered["max"],
        "answers_per_s": answers / seconds,
    }


def asking(url: str, over: Any, told: Any) -> None:
    """One small question after the other; how long each answer took."""
    trips: list[int] = []
    with Connection(url, timeout=600) as connection:
        channel = connection.channel()
        channel.queue_declare("honest", exclusive=True)
        told.send(None)
        while not over.is_set():
            began = time.perf_counter_ns()
            channel.queue_declare("honest", passive=True)
            trips.append(time.perf_counter_ns() - began)
            time.sleep(0.001)
    told.send(trips)


@contextlib.contextmanager
def load(url: str) -> Iterator[None]:
    stop = CONTEXT.Event()
    clients = [CONTEXT.Process(target=one_of, args=(url, stop), daemon=True) for one_of in (publishing, consuming)]
    for client in clients:
        client.start()
    try:
        yield
    finally:
        stop.set()
        for client in clients:
            client.join(60)


def publishing(url: str, stop: Any) -> None:
    with Connection(url, timeout=600) as connection:
        channel = connection.channel()
        began, sent = time.monotonic(), 0
        while not stop.is_set():
            channel.publish_many("", LOADED, [b"x" * 256] * 20)
            connection.flush()
            sent += 20
            time.sleep(max(0.0, sent / RATE - (time.monotonic() - began)))


def consuming(url: str, stop: Any) -> None:
    with Connection(url, timeout=5) as connection:
        channel = connection.channel()
        channel.basic_consume(LOADED, no_ack=True)
        while not stop.is_set():
            with contextlib.suppress(TimeoutError):
                channel.receive(1)


# --- consoles


def ours(http: str, number: int, stop: threading.Event, told: list[int]) -> None:
    """A log-in and a stream, as a page of the console has it."""
    watched = WATCHED[number % len(WATCHED)]
    url = httpx.URL(http)
    with web.Client(base_url=url.copy_with(username=None, password=None), headers={"x-warren-console": "1"}) as client:
        client.post("/console/session", json={"username": url.username, "password": url.password}).raise_for_status()
        asked = httpx.QueryParams([("watch", path) for path in watched])
        with client.stream("GET", "/console/stream", params=asked, timeout=60) as answer:
            for line in answer.iter_lines():
                if stop.is_set():
                    return
                told[number] += line.startswith("data: ")


def rabbitmqs(http: str, number: int, stop: threading.Event, told: list[int]) -> None:
    """What its page asks, every five seconds."""
    with web.Client(base_url=http) as client:
        while not stop.is_set():
            for path in POLLED[number % len(POLLED)]:
                client.get(f"/api{path}").raise_for_status()
                told[number] += 1
            stop.wait(EVERY)


def stalls(running: Running) -> dict[str, float]:
    """Of Warren's loop: passes over 100 ms in which it worked."""
    if running.name != "Warren":
        return {}
    page = web.get(f"{running.http}/metrics").text
    found = {name: float(value) for name, value in STALL.findall(page)}
    return {"stalls": found.get("seconds_count", 0.0)}
