"""Nodes of clusters for measuring, on loopback ports of their own: Warren's with an etcd, and three of RabbitMQ's.

Duty: they are up, they are killed and started again, and who their processes are. What is measured is ``cluster``'s.
All copies share the disk and the cores of one machine, which says less of several machines than of their costs.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bench.brokers import RABBITMQ_BIN, _free_port
from warrenmq.client import ClientError, Connection

PATIENCE = 180.0
SECRET = "a secret for measuring, shared by all nodes\n"


def wait(what: str, happened: Callable[[], Any], seconds: float = PATIENCE) -> None:
    until = time.monotonic() + seconds
    while not happened():
        if time.monotonic() > until:
            raise RuntimeError(f"not within {seconds:.0f} s: {what}")
        time.sleep(0.01)


def answers(port: int) -> bool:
    try:
        Connection(host="127.0.0.1", port=port, timeout=1).close()
    except (OSError, ClientError):
        return False
    return True


class Node:
    """A broker's process, whichever broker."""

    port = 0
    pid = 0

    @property
    def url(self) -> str:
        return f"amqp://guest:guest@127.0.0.1:{self.port}/"

    def start(self) -> None:
        raise NotImplementedError

    def kill(self) -> None:
        raise NotImplementedError

    def pause(self) -> None:
        os.kill(self.pid, signal.SIGSTOP)


class WarrenNode(Node):
    """A node of a cluster, or without ``cluster`` a broker of its own."""

    def __init__(self, folder: Path, cluster: str, etcd: str) -> None:
        folder.mkdir(parents=True)
        self.folder = folder
        self.port, self.http, self.nodes_port = _free_port(), _free_port(), _free_port()
        settings: dict[str, Any] = {
            "data_dir": str(folder / "data"),
            "port": self.port,
            "http_port": self.http,
            "journal": "off",
            "log_level": "warning",
        }
        if cluster:
            (folder / "secret").write_text(SECRET)
            settings |= {
                "cluster": cluster,
                "cluster_node": folder.name,
                "cluster_etcd": etcd,
                "cluster_port": self.nodes_port,
                "cluster_secret": str(folder / "secret"),
            }
        self.file = folder / "warren.toml"
        self.file.write_text("".join(f"{name} = {json.dumps(value)}\n" for name, value in settings.items()))
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with (self.folder / "output").open("ab") as out:
            command = [sys.executable, "-m", "warrenmq", "serve", "--config", str(self.file)]
            self.process = subprocess.Popen(command, stdout=out, stderr=out)
        self.pid = self.process.pid

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def standing(self) -> dict[str, Any]:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.http}/api/cluster", timeout=5) as answer:
                found: dict[str, Any] = json.load(answer)
                return found
        except (OSError, urllib.error.URLError, ValueError):
            return {}


class WarrenCluster:
    """Nodes that share a log; with one of them, a broker without any of it."""

    def __init__(self, folder: Path, size: int, etcd: str) -> None:
        name = f"of{size}" if size > 1 else ""
        self.nodes = [WarrenNode(folder / f"{size}-n{number}", name, etcd) for number in range(1, size + 1)]

    def start(self) -> None:
        first = self.nodes[0]
        first.start()
        wait("the first node", lambda: answers(first.port))
        for node in self.nodes[1:]:
            node.start()
        self.wait_in_sync()

    def wait_in_sync(self) -> None:
        count = len(self.nodes)
        wait(f"{count} nodes in sync", lambda: count == 1 or len(self.standing().get("in_sync", [])) == count)

    def standing(self) -> dict[str, Any]:
        """As the leader tells it."""
        for node in self.nodes:
            found = node.standing() if node.process is not None else {}
            if found.get("role") == "leader":
                return found
        return {}

    def leader(self) -> WarrenNode:
        found: list[WarrenNode] = []

        def look() -> bool:
            found.extend(node for node in self.nodes if node.process is not None and answers(node.port))
            return bool(found)

        wait("a leader", look)
        return found[0]

    def followers(self) -> list[WarrenNode]:
        leader = self.leader()
        return [node for node in self.nodes if node is not leader]

    def end(self) -> None:
        for node in self.nodes:
            node.kill()


@contextlib.contextmanager
def etcd(folder: Path) -> Iterator[str]:
    """One member, which is enough to measure by; its address."""
    client, peer = (f"http://127.0.0.1:{_free_port()}" for _ in range(2))
    process = subprocess.Popen(
        [
            "etcd", "--name", "one", "--data-dir", str(folder), "--log-level", "error",
            "--initial-cluster", f"one={peer}",
            "--listen-client-urls", client, "--advertise-client-urls", client,
            "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
        ],
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        yield client
    finally:
        process.kill()
        process.wait()


class RabbitNode(Node):
    """One of three nodes of Debian's package, private like ``brokers.rabbitmq``."""

    def __init__(self, folder: Path, epmd: int, cookie: str) -> None:
        self.folder = folder
        self.port = _free_port()
        self.name = f"bench{self.port}@localhost"
        folder.mkdir(parents=True)
        (folder / ".erlang.cookie").write_text(cookie)
        (folder / ".erlang.cookie").chmod(0o400)
        (folder / "rabbitmq.conf").write_text(f"listeners.tcp.1 = 127.0.0.1:{self.port}\n")
        (folder / "enabled_plugins").write_text("[].\n")
        self.environment = {
            **os.environ,
            "HOME": str(folder),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "ERL_EPMD_PORT": str(epmd),
            "RABBITMQ_NODENAME": self.name,
            "RABBITMQ_NODE_PORT": str(self.port),
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_DIST_PORT": str(_free_port()),
            "RABBITMQ_MNESIA_BASE": str(folder / "mnesia"),
            "RABBITMQ_LOG_BASE": str(folder / "log"),
            "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "enabled_plugins"),
            "RABBITMQ_PID_FILE": str(folder / "pid"),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
        }
        self.as_user: list[str] = []
        if os.geteuid() == 0:
            for path in (folder, *folder.iterdir()):
                shutil.chown(path, "rabbitmq")
            self.as_user = ["setpriv", "--reuid=rabbitmq", "--regid=rabbitmq", "--init-groups"]
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        (self.folder / "pid").unlink(missing_ok=True)
        self.process = subprocess.Popen(
            [*self.as_user, str(RABBITMQ_BIN / "rabbitmq-server")],
            env=self.environment,
            cwd=self.folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        wait(f"RabbitMQ on {self.port}", lambda: answers(self.port))
        self.pid = int((self.folder / "pid").read_text())

    def control(self, *words: str) -> str:
        done = subprocess.run(
            [*self.as_user, str(RABBITMQ_BIN / "rabbitmqctl"), "-q", *words],
            env=self.environment,
            cwd=self.folder,
            capture_output=True,
            text=True,
        )
        if done.returncode != 0:
            raise RuntimeError(f"rabbitmqctl {' '.join(words)}: {done.stderr.strip() or done.stdout.strip()}")
        return done.stdout

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        if self.process is not None:
            self.process.wait()
            self.process = None


@contextlib.contextmanager
def rabbitmq_cluster(folder: Path) -> Iterator[list[RabbitNode]]:
    epmd = _free_port()
    nodes = [RabbitNode(folder / f"r{number}", epmd, "A" * 20) for number in range(3)]
    if os.geteuid() == 0:
        folder.chmod(0o755)
        folder.parent.chmod(0o755)
    try:
        for node in nodes:
            node.start()
        for node in nodes[1:]:
            for words in (["stop_app"], ["reset"], ["join_cluster", nodes[0].name], ["start_app"]):
                node.control(*words)
        wait("three nodes of RabbitMQ", lambda: all(answers(node.port) for node in nodes))
        yield nodes
    finally:
        for node in nodes:
            node.kill()
        stop = [*nodes[0].as_user, "epmd", "-port", str(epmd), "-kill"]
        subprocess.run(stop, env=nodes[0].environment, capture_output=True)
