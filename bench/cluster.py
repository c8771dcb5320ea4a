"""A cluster beside one node in the same sitting, and beside a quorum queue on three nodes of RabbitMQ.

Duty: what copies cost the leader and those who follow, how long a confirm takes, how long nobody answers when the
leader dies or stands still, how long when a follower does, and how fast one catches up. Goals stand beside the figures;
nothing is judged here. All nodes share one disk and the cores of this machine.

Who is paused keeps its sockets and refuses no call, as a machine that is cut off or without power: it is replaced when
its lease has run out.
"""

from __future__ import annotations

import contextlib
import statistics
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.brokers import rabbitmq_installed
from bench.cluster_nodes import Node, RabbitNode, WarrenCluster, etcd, rabbitmq_cluster, wait
from warrenmq.bench import process
from warrenmq.bench.run import run
from warrenmq.bench.workload import Workload
from warrenmq.client import ClientError, Connection, Properties

TTL = 3.0
ACK_TIMEOUT = 1.0
PERSISTENT = Properties(delivery_mode=2)
MEGABYTE = 1 << 20


def flow(messages: int, confirms: int, kind: str = "") -> Workload:
    """Scenarios b and c, with fewer messages where that is wished."""
    return Workload(
        messages=messages,
        size=1024,
        persistent=True,
        durable=True,
        confirms=confirms,
        ack_every=50 if confirms > 1 else 1,
        prefetch=500 if confirms > 1 else 100,
        queue_arguments={"x-queue-type": kind} if kind else {},
    )


def measure(scale: float, reps: int, with_rabbitmq: bool) -> dict[str, Any]:
    figures: dict[str, Any] = {"reps": reps, "ttl": TTL, "ack_timeout": ACK_TIMEOUT}
    with tempfile.TemporaryDirectory(prefix="warren-bench-") as name, etcd(Path(name) / "etcd") as endpoint:
        clusters = {size: WarrenCluster(Path(name), size, endpoint) for size in (1, 2, 3)}
        try:
            for cluster in clusters.values():
                cluster.start()
            figures["flows"] = flows(clusters, scale, reps)
            for size in (1, 2):
                clusters[size].end()
            figures["gaps"] = gaps(clusters[3], scale)
            figures["catch_up"] = catch_up(clusters[3], scale)
            figures["backlog"] = backlog(clusters[3], scale)
        finally:
            for cluster in clusters.values():
                cluster.end()
    if with_rabbitmq and rabbitmq_installed():
        with tempfile.TemporaryDirectory(prefix="rabbitmq-bench-") as name:
            figures["rabbitmq"] = rabbitmq(Path(name) / "nodes", scale, reps)
    return figures


# --- what copies cost


def flows(clusters: dict[int, WarrenCluster], scale: float, reps: int) -> list[dict[str, Any]]:
    found = []
    for name, workload in (
        ("b", flow(max(100, int(100_000 * scale)), 1000)),
        ("c", flow(max(20, int(3_000 * scale)), 1)),
    ):
        for _ in range(reps):
            for size, cluster in clusters.items():
                leader = cluster.leader()
                followers = [node.pid for node in cluster.nodes if node is not leader]
                before = process.cpu_seconds(followers)
                record = run(leader.url, workload)
                spent = process.cpu_seconds(followers) - before
                one: dict[str, Any] = {
                    "scenario": name,
                    "nodes": size,
                    "leader": record["cpu_s_per_million"],
                    "follower": spent / max(1, len(followers)) / workload.messages * 1e6,
                    "rate": record["rate"],
                    "p50_ms": record["confirm_ms"]["p50"] if "confirm_ms" in record else None,
                }
                found.append(one)
                costs = f"leader {one['leader']:.2f}, each follower {one['follower']:.2f} CPU s/M"
                print(f"  {name}, {size} nodes: {costs}, {one['rate']:,.0f}/s", flush=True)
    return found


# --- how long nobody answers


def next_confirm(nodes: Sequence[Node], began: float, kind: str = "classic") -> float:
    """Seconds from a moment to the first confirm that a client with these addresses gets."""
    arguments: dict[str, object] = {"x-queue-type": kind}
    while True:
        for node in nodes:
            try:
                with Connection(host="127.0.0.1", port=node.port, timeout=2.0) as connection:
                    channel = connection.channel()
                    channel.queue_declare("gap", durable=True, arguments=arguments)
                    channel.confirm_select()
                    channel.basic_publish("", "gap", b"x", PERSISTENT)
                    if channel.wait_for_confirms(30.0) == [] and not channel.unconfirmed:
                        return time.monotonic() - began
            except (OSError, ClientError):
                time.sleep(0.005)
        if time.monotonic() - began > 120:
            raise RuntimeError("nobody answers")


class Publishing(threading.Thread):
    """One message after the other, and the longest time between two confirms."""

    def __init__(self, node: Node) -> None:
        super().__init__(daemon=True)
        self.node = node
        self.over = threading.Event()
        self.longest = 0.0
        self.confirmed = 0

    def run(self) -> None:
        with Connection(host="127.0.0.1", port=self.node.port, timeout=60) as connection:
            channel = connection.channel()
            channel.queue_declare("steady", durable=True)
            channel.confirm_select()
            last = time.monotonic()
            while not self.over.is_set():
                channel.basic_publish("", "steady", b"x", PERSISTENT)
                channel.wait_for_confirms(60)
                now = time.monotonic()
                self.longest = max(self.longest, now - last)
                last = now
                self.confirmed += 1


def gaps(cluster: WarrenCluster, scale: float) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {"leader killed": [], "leader silent": [], "follower killed": []}
    found["follower silent"] = []
    for _ in range(max(1, int(16 * scale))):
        found["leader killed"].append(replaced(cluster, by_pause=False))
    for _ in range(max(1, int(8 * scale))):
        found["leader silent"].append(replaced(cluster, by_pause=True))
    for _ in range(max(1, int(5 * scale))):
        found["follower killed"].append(stall(cluster, by_pause=False))
        found["follower silent"].append(stall(cluster, by_pause=True))
    for what, seconds in found.items():
        print(f"  {what}: {shown_seconds(seconds)}", flush=True)
    return found


def replaced(cluster: WarrenCluster, by_pause: bool) -> float:
    """A leader goes, and another one confirms."""
    cluster.wait_in_sync()
    leader, others = cluster.leader(), cluster.followers()
    began = time.monotonic()
    if by_pause:
        leader.pause()
    else:
        leader.kill()
    seconds = next_confirm(others, began)
    leader.kill()
    leader.start()
    cluster.wait_in_sync()
    return seconds


def stall(cluster: WarrenCluster, by_pause: bool) -> float:
    """A follower goes while somebody publishes."""
    cluster.wait_in_sync()
    publishing = Publishing(cluster.leader())
    follower = cluster.followers()[0]
    publishing.start()
    wait("the first confirms", lambda: publishing.confirmed > 20)
    publishing.longest = 0.0
    if by_pause:
        follower.pause()
    else:
        follower.kill()
    wait("the follower dropped", lambda: len(cluster.standing().get("in_sync", [])) < len(cluster.nodes))
    before = publishing.confirmed
    wait("more confirms", lambda: publishing.confirmed > before + 20)
    publishing.over.set()
    publishing.join()
    follower.kill()
    follower.start()
    cluster.wait_in_sync()
    return publishing.longest


def fill(node: Node, queue: str, octets: int) -> None:
    with Connection(host="127.0.0.1", port=node.port, timeout=300) as connection:
        channel = connection.channel()
        channel.queue_declare(queue, durable=True)
        channel.confirm_select()
        bodies = [bytes(1024)] * 1000
        for _ in range(max(1, octets // (1024 * 1000))):
            channel.publish_many("", queue, bodies, PERSISTENT)
            if channel.unconfirmed > 20_000:
                channel.wait_for_confirms(300)
        channel.wait_for_confirms(300)


def catch_up(cluster: WarrenCluster, scale: float) -> dict[str, float]:
    """A follower was away while so much was published: from its call to the last octet."""
    leader, follower = cluster.leader(), cluster.followers()[0]
    follower.kill()
    fill(leader, "missed", int(512 * MEGABYTE * scale))

    def lag() -> int:
        nodes = leader.standing().get("nodes", [])
        return max([one.get("lag_bytes") or 0 for one in nodes if one.get("name") == follower.folder.name], default=0)

    missed = lag()
    follower.start()
    wait("the first octets", lambda: lag() < missed)
    began, first = time.monotonic(), lag()
    wait("the last octets", lambda: lag() == 0)
    seconds = max(0.001, time.monotonic() - began)
    cluster.wait_in_sync()
    rate = first / MEGABYTE / seconds
    print(f"  catching up {missed / MEGABYTE:,.0f} MB: {rate:,.0f} MB/s", flush=True)
    return {"megabytes": missed / MEGABYTE, "per_second": rate}


def backlog(cluster: WarrenCluster, scale: float) -> dict[str, Any]:
    """The leader dies while very much is waiting."""
    octets = int(2 * 1024 * MEGABYTE * scale)
    fill(cluster.leader(), "waiting", octets)
    seconds = [replaced(cluster, by_pause=False) for _ in range(3)]
    print(f"  leader killed with {octets / MEGABYTE:,.0f} MB waiting: {shown_seconds(seconds)}", flush=True)
    return {"megabytes": octets / MEGABYTE, "seconds": seconds}


def shown_seconds(seconds: list[float]) -> str:
    ordered = sorted(seconds)
    return f"{len(ordered)} times, p50 {statistics.median(ordered):.2f} s, longest {ordered[-1]:.2f} s"


# --- beside RabbitMQ


def rabbitmq(folder: Path, scale: float, reps: int) -> dict[str, Any]:
    workload = flow(max(100, int(30_000 * scale)), 1000, "quorum")
    spent, seconds = [], []
    with rabbitmq_cluster(folder) as nodes:
        for _ in range(reps):
            pids = [node.pid for node in nodes]
            before = process.cpu_seconds(pids)
            run(nodes[0].url, workload)
            spent.append((process.cpu_seconds(pids) - before) / workload.messages * 1e6)
        for number in range(max(1, int(3 * scale))):
            seconds.append(quorum_gap(nodes, number))
    print(
        f"  RabbitMQ, three nodes: {statistics.median(spent):.1f} CPU s/M; killed: {shown_seconds(seconds)}", flush=True
    )
    return {"cpu": spent, "gaps": seconds}


def quorum_gap(nodes: list[RabbitNode], number: int) -> float:
    """The node at which the queue was declared, and which so leads it, dies."""
    victim = nodes[number % len(nodes)]
    others = [node for node in nodes if node is not victim]
    with contextlib.suppress(ClientError), Connection(host="127.0.0.1", port=others[0].port, timeout=60) as connection:
        connection.channel().queue_delete("gap")
    next_confirm([victim], time.monotonic(), "quorum")
    began = time.monotonic()
    victim.kill()
    seconds = next_confirm(others, began, "quorum")
    victim.start()
    return seconds
