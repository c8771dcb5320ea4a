"""Figures that are no message flow: what a disk sync, a connection, a declare and an idle broker cost."""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from pathlib import Path

from bench.brokers import Running
from warrenmq.bench import process
from warrenmq.client import Connection


def fdatasync_ms(folder: str | None = None, times: int = 300) -> float:
    """Median of appending 1 KiB and syncing it: the floor of one confirm at a time."""
    with tempfile.NamedTemporaryFile(dir=folder) as file:
        taken = []
        for _ in range(times):
            os.write(file.fileno(), b"x" * 1024)
            began = time.perf_counter()
            os.fdatasync(file.fileno())
            taken.append(time.perf_counter() - began)
    return statistics.median(taken) * 1000


def connections(broker: Running, count: int = 1000) -> dict[str, float]:
    """Open many idle connections, then close them; churn by one client after the other."""
    pids = process.listening(broker.port)
    before = process.resident_bytes(pids)
    cpu = process.cpu_seconds(pids)
    began = time.monotonic()
    held = [Connection(broker.url) for _ in range(count)]
    for connection in held:
        connection.channel()
    opened = time.monotonic() - began
    each = (process.resident_bytes(pids) - before) / count
    for connection in held:
        connection.close()
    seconds = time.monotonic() - began
    return {
        "open_per_s": count / opened,
        "open_close_per_s": count / seconds,
        "cpu_ms_each": (process.cpu_seconds(pids) - cpu) / count * 1000,
        "kB_each": each / 1000,
    }


def declares(broker: Running, count: int = 1000) -> dict[str, float]:
    """Durable queues declared in one go, so that syncs can be shared; then deleted."""
    with Connection(broker.url) as connection:
        channel = connection.channel()
        began = time.monotonic()
        for number in range(count):
            channel.send("queue.declare", queue=f"bench.d{number}", durable=True, nowait=True)
        channel.queue_declare("bench.last", durable=True)
        seconds = time.monotonic() - began
        for number in range(count):
            channel.send("queue.delete", queue=f"bench.d{number}", nowait=True)
        channel.queue_delete("bench.last")
    return {"declares_per_s": count / seconds}


def idle_bytes(broker: Running) -> int:
    return process.resident_bytes(process.listening(broker.port))


def machine() -> dict[str, str]:
    model = ""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    return {"cores": str(os.cpu_count()), "cpu": model}
