"""What a second core buys today, and what spreading over more would cost.

Today: the broker is one event loop with a log thread beside it. The part of its CPU time that is spent outside the main
thread is what a second core can take over; total divided by main is the most that throughput can gain.

The spike for more (docs/cores.md): queues owned by several processes, connections by others in front of them. What that
adds is a hop between processes; here a relay does that hop with real traffic and nothing else, and its CPU is measured.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import socket
import statistics
import threading
from collections.abc import Iterator
from typing import Any

from bench.brokers import warren
from bench.scenarios import SCENARIOS
from warrenmq.bench import process
from warrenmq.bench.run import run

CONTEXT = multiprocessing.get_context("spawn")
WATCHED = ("a", "a1k", "b", "b1", "r")
RELAYED = ("a", "a1k")
CHUNK = 1 << 18


def measure(reps: int) -> dict[str, Any]:
    chosen = {scenario.name: scenario for scenario in SCENARIOS}
    threads: dict[str, Any] = {}
    with warren() as broker:
        broker.add_limited_user()
        (pid,) = process.listening(broker.port)
        for name in WATCHED:
            scenario = chosen[name]
            url = broker.limited_url if scenario.limited else broker.url
            taken = []
            for _ in range(reps):
                before = process.thread_seconds(pid)
                run(url, scenario.workload)
                after = process.thread_seconds(pid)
                spent = {thread: seconds - before.get(thread, 0.0) for thread, seconds in after.items()}
                taken.append((spent.get(pid, 0.0), sum(spent.values())))
            million = scenario.workload.messages / 1e6
            main = statistics.median(one[0] for one in taken) / million
            total = statistics.median(one[1] for one in taken) / million
            threads[name] = {"what": scenario.what, "main": main, "total": total, "gain": total / main}
            print(f"  {name:<5} main thread {main:6.2f}, all {total:6.2f} CPU s/M: {total / main:.2f}x", flush=True)
        hops: dict[str, Any] = {}
        for name in RELAYED:
            with relay(broker.port) as (port, relay_pid):
                url = f"amqp://guest:guest@127.0.0.1:{port}/"
                workload = chosen[name].workload
                taken_by_relay, taken_by_broker = [], []
                for _ in range(reps):
                    before_relay, before_broker = process.cpu_seconds([relay_pid]), process.cpu_seconds([pid])
                    run(url, workload)
                    taken_by_relay.append(process.cpu_seconds([relay_pid]) - before_relay)
                    taken_by_broker.append(process.cpu_seconds([pid]) - before_broker)
            million = workload.messages / 1e6
            hop, behind = statistics.median(taken_by_relay) / million, statistics.median(taken_by_broker) / million
            hops[name] = {"what": chosen[name].what, "hop": hop, "broker": behind}
            print(f"  {name:<5} hop {hop:6.2f}, broker behind it {behind:6.2f} CPU s/M", flush=True)
    return {"threads": threads, "hops": hops}


@contextlib.contextmanager
def relay(target: int) -> Iterator[tuple[int, int]]:
    """A process that passes bytes on, both ways, message by message unread; its port and pid."""
    port = CONTEXT.Value("i", 0)
    up = CONTEXT.Event()
    running = CONTEXT.Process(target=_relay, args=(target, port, up), daemon=True)
    running.start()
    up.wait(30)
    try:
        yield port.value, running.pid or 0
    finally:
        running.terminate()
        running.join(10)


def _relay(target: int, port: Any, up: Any) -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    port.value = listener.getsockname()[1]
    up.set()
    while True:
        client, _ = listener.accept()
        server = socket.create_connection(("127.0.0.1", target))
        for one in (client, server):
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for source, sink in ((client, server), (server, client)):
            threading.Thread(target=_pump, args=(source, sink), daemon=True).start()


def _pump(source: socket.socket, sink: socket.socket) -> None:
    buffer = memoryview(bytearray(CHUNK))
    with contextlib.suppress(OSError):
        while got := source.recv_into(buffer):
            sink.sendall(buffer[:got])
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_WR)
