"""Overload: publishers offer ten times what the disk takes, and a slow publisher beside them wants to be served.

The disk is `SlowDisk`: so many bytes a second, and nothing on it before a sync is over. The broker is a process of its
own. `run` says what happened and judges nothing; `tests/faults/test_overload.py` does.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import tempfile
import time
from typing import Any

from warrenmq.bench import process
from warrenmq.bench.run import percentiles
from warrenmq.cli._api import Api
from warrenmq.client import Connection, Properties

CONTEXT = multiprocessing.get_context("spawn")
PERSISTENT = Properties(delivery_mode=2)
SIZE = 1024
BURST = 20
SLOW_EVERY = 0.02  # seconds between two publishes of the slow publisher


def serve(folder: str, bytes_per_second: float, watermark: int, ports: Any, up: Any) -> None:
    """In a process of its own, until it is killed."""
    from warrenmq.testing import Broker
    from warrenmq.testing.faults import SlowDisk

    settings: dict[str, Any] = {"memory_high_watermark": watermark, "log_level": "warning"}
    broker = Broker(data_dir=folder, disk=SlowDisk(bytes_per_second), **settings).start()
    ports[0], ports[1] = broker.port, broker.http_port
    up.set()
    signal.pause()


def flood(url: str, number: int, rate: float, stop: Any, sent: Any, confirmed: Any, nacked: Any) -> None:
    """Publishes numbered messages at this rate (or as fast as they are taken), whatever is still unconfirmed."""
    with contextlib.suppress(Exception), Connection(url, timeout=60) as connection:
        channel = connection.channel()
        channel.confirm_select()
        filling = b"x" * (SIZE - 16)
        began = time.monotonic()
        while not stop.is_set():
            first = sent[number]
            bodies = [b"%08d%08d" % (number, first + n) + filling for n in range(BURST)]
            sent[number] += BURST  # before they go: a confirm is never for more than this
            channel.publish_many("", "flood", bodies, PERSISTENT)
            connection.flush()
            confirmed[number] = channel.confirmed_up_to
            channel.take_events()
            ahead = (sent[number] / rate) - (time.monotonic() - began)
            if ahead > 0:
                time.sleep(ahead)
        while channel.unconfirmed:
            connection.read(60)
            confirmed[number] = channel.confirmed_up_to
        nacked[number] = len(channel.wait_for_confirms(60))


class Slow:
    """A publisher that sends one message, waits for its confirm, rests, and so on."""

    def __init__(self, url: str) -> None:
        self.connection = Connection(url, timeout=60)
        self.channel = self.connection.channel()
        self.channel.confirm_select()
        self.sent = 0

    def publish(self) -> float:
        """Seconds until the confirm."""
        began = time.perf_counter()
        self.channel.basic_publish("", "slow", b"%08d" % self.sent, PERSISTENT)
        if self.channel.wait_for_confirms(60):
            raise RuntimeError("the slow publisher was nacked")
        self.sent += 1
        return time.perf_counter() - began

    def publish_for(self, seconds: float, each: Any = None) -> list[int]:
        taken = []
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            taken.append(int(self.publish() * 1e9))
            if each is not None:
                each()
            time.sleep(SLOW_EVERY)
        return taken


def states(http_port: int) -> list[str]:
    return [one["state"] for one in Api(f"http://guest:guest@127.0.0.1:{http_port}", 60).get("/connections")]


def run(
    seconds: float, bytes_per_second: float = 4e6, times: float = 10, publishers: int = 2, watermark: int = 300_000_000
) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="warren-overload-") as folder:
        ports, up, stop = CONTEXT.Array("i", 2), CONTEXT.Event(), CONTEXT.Event()
        broker = CONTEXT.Process(target=serve, args=(folder, bytes_per_second, watermark, ports, up), daemon=True)
        broker.start()
        flooding: list[Any] = []
        try:
            if not up.wait(60):
                raise RuntimeError("the broker did not start")
            url = f"amqp://guest:guest@127.0.0.1:{ports[0]}/"
            with Connection(url) as connection:
                for name in ("flood", "slow"):
                    connection.channel().queue_declare(name, durable=True)
            counters: list[Any] = [CONTEXT.Array("q", publishers) for _ in range(3)]
            sent, confirmed, nacked = counters
            rate = times * bytes_per_second / SIZE / publishers

            def start() -> None:
                for number in range(publishers):
                    arguments = (url, number, rate, stop, sent, confirmed, nacked)
                    one = CONTEXT.Process(target=flood, args=arguments, daemon=True)
                    one.start()
                    flooding.append(one)

            slow = Slow(url)
            quiet = slow.publish_for(1.0)
            memory: list[int] = []
            seen: set[str] = set()

            def look() -> None:
                memory.append(process.resident_bytes([broker.pid or 0]))
                if len(memory) % 25 == 10:
                    seen.update(states(ports[1]))

            states(ports[1])  # the web application is loaded now, not in the middle
            start()
            began = time.monotonic()
            flooded = slow.publish_for(seconds, look)
            lasted = time.monotonic() - began
            taken = sum(confirmed)
            stop.set()
            while any(one.is_alive() for one in flooding):
                slow.publish_for(0.1)
            after = slow.publish_for(0.5)
            # once more, and the power goes while it lasts: what was confirmed must be there
            offered, answered = list(sent), list(confirmed)
            for array in (sent, confirmed):
                for number in range(publishers):
                    array[number] = 0
            stop.clear()
            start()
            slow.publish_for(2.0)
            os.kill(broker.pid or 0, signal.SIGKILL)
            broker.join(30)
            for one in flooding:
                one.join(70)
            final = list(confirmed)
            found = _found(folder)
            missing = 0
            for number in range(publishers):
                counts = found["flood"].get(number, {})
                wanted = [max(answered[number], final[number]), min(answered[number], final[number])]
                # numbers below the smaller one were published and confirmed in both rounds
                missing += sum(1 for n in range(wanted[0]) if counts.get(n, 0) < (2 if n < wanted[1] else 1))
            missing += sum(1 for n in range(slow.sent) if n not in found["slow"])
            return {
                "seconds": lasted,
                "disk_bytes_per_second": bytes_per_second,
                "watermark": watermark,
                "offered": sum(offered),
                "offered_times_disk": times,
                "confirmed_per_second": taken / lasted,
                "nacked": sum(nacked),
                "resident_most": max(memory),
                "states": sorted(seen),
                "slow_publishes": len(flooded),
                "slow_confirm_quiet_ms": percentiles(quiet),
                "slow_confirm_flooded_ms": percentiles(flooded),
                "slow_confirm_after_ms": percentiles(after),
                "confirmed": sum(answered) + sum(final) + slow.sent,
                "confirmed_but_missing": missing,
            }
        finally:
            for one in [*flooding, broker]:
                one.kill()


def _found(folder: str) -> dict[str, dict[int, Any]]:
    """What a broker on the real disk finds in that folder: flood by publisher and number, slow by number."""
    from warrenmq.testing import Broker

    floods: dict[int, dict[int, int]] = {}
    slow: dict[int, Any] = {}
    with Broker(data_dir=folder, log_level="warning") as broker, Connection(broker.url, timeout=60) as connection:
        channel = connection.channel()
        waiting = 0
        for name in ("flood", "slow"):
            waiting += channel.queue_declare(name, durable=True).int("message_count")
            channel.basic_consume(name, no_ack=True)
        while waiting > 0:
            messages = channel.receive(30)
            if not messages:
                break
            waiting -= len(messages)
            for message in messages:
                body = bytes(message.body)
                if message.routing_key == "slow":
                    slow[int(body)] = True
                else:
                    counts = floods.setdefault(int(body[:8]), {})
                    counts[int(body[8:16])] = counts.get(int(body[8:16]), 0) + 1
    return {"flood": floods, "slow": slow}


def measure() -> dict[str, Any]:
    found = run(60.0)
    for name in ("slow_confirm_quiet_ms", "slow_confirm_flooded_ms", "slow_confirm_after_ms"):
        shown = ", ".join(f"{key} {value:.1f}" for key, value in found[name].items())
        print(f"  {name[:-3].replace('_', ' ')}: {shown} ms", flush=True)
    for name in ("confirmed_per_second", "resident_most", "nacked", "confirmed", "confirmed_but_missing"):
        print(f"  {name.replace('_', ' ')}: {found[name]:,.0f}", flush=True)
    return found
