"""Nodes of a cluster as real processes on this machine, their etcd, and a publisher that knows what was confirmed."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from types import TracebackType

import warrenmq
from tests.support.brokers import free_ports
from tests.support.etcd import Etcd
from warrenmq.client import ClientError, Connection, Properties

PATIENCE = 120.0
SECRET = "a secret that all of them share\n"


class Member:
    """A node: its folder and its ports stay the same over kills."""

    def __init__(self, folder: Path, number: int, cluster: Cluster) -> None:
        self.folder = folder
        self.name = f"n{number}"
        self.cluster = cluster
        folder.mkdir()
        self.port, self.http_port, self.node_port = free_ports(3)
        self.process: subprocess.Popen[bytes] | None = None
        self.extra: dict[str, str] = {}
        self.environment: dict[str, str] = {}

    @property
    def output(self) -> str:
        path = self.folder / "output"
        return path.read_text() if path.exists() else ""

    def start(self, alone: bool = False) -> Member:
        """``alone`` it is a broker without a cluster, on the same folder."""
        (self.folder / "secret").write_text(SECRET)
        settings = {
            "data_dir": str(self.folder / "data"),
            "ready_file": str(self.folder / "ready.json"),
            "host": ["127.0.0.1"],
            "port": self.port,
            "http_port": self.http_port,
            "journal": "off",
            "log_level": "info",
            "cluster": "trial",
            "cluster_node": self.name,
            "cluster_etcd": self.cluster.etcd.endpoint,
            "cluster_port": self.node_port,
            "cluster_secret": str(self.folder / "secret"),
            "cluster_stay_out": 0,  # a machine that is busy makes everybody late
            **self.cluster.settings,
            **self.extra,
        }
        if alone:
            settings = {name: value for name, value in settings.items() if not name.startswith("cluster")}
        file = self.folder / "warren.toml"
        file.write_text("".join(f"{name} = {json.dumps(value)}\n" for name, value in settings.items()))
        with (self.folder / "output").open("ab") as out:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "warrenmq", "serve", "--config", str(file)],
                env={**os.environ, "PYTHONPATH": str(Path(warrenmq.__file__).parents[1]), **self.environment},
                cwd=self.folder,
                stdout=out,
                stderr=out,
            )
        return self

    def signal(self, number: int) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None
        (self.folder / "ready.json").unlink(missing_ok=True)

    def stop(self) -> int:
        assert self.process is not None
        self.process.terminate()
        code = self.process.wait(PATIENCE)
        self.process = None
        return code

    def answers(self) -> bool:
        """Whether it takes an AMQP client: only a leader does."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), 1) as client:
                client.settimeout(1)
                client.sendall(b"AMQP\x00\x00\x09\x01")
                return bool(client.recv(8))
        except OSError:
            return False

    def times(self, event: str) -> int:
        return len(re.findall(rf" {re.escape(event)}\b", self.output))


class Cluster:
    """An etcd and some nodes."""

    def __init__(self, folder: Path, size: int, before: Callable[[Member], object] | None = None, **settings: object):
        self.folder = folder
        self.before = before  # what the first node does before there is a cluster
        self.settings = settings
        self.etcd = Etcd(folder / "etcd")
        self.members = [Member(folder / f"n{number}", number, self) for number in range(1, size + 1)]

    def __enter__(self) -> Cluster:
        try:
            self.etcd.start()
            if self.before is not None:
                self.before(self.members[0])
            self.members[0].start()
            self.wait("a leader", lambda: self.leader() is not None)
            for member in self.members[1:]:
                member.start()
            self.wait_in_sync(len(self.members))
        except BaseException:
            self.end()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if kind is not None:
            for member in self.members:
                print(f"--- {member.name}\n{member.output[-6000:]}")
        self.end()

    def end(self) -> None:
        for member in self.members:
            if member.process is not None:
                member.signal(signal.SIGCONT)
            member.kill()
        self.etcd.kill()

    def wait(self, what: str, happened: Callable[[], bool]) -> None:
        until = time.monotonic() + PATIENCE
        while not happened():
            if time.monotonic() > until:
                raise AssertionError(f"no {what}")
            time.sleep(0.02)

    def leader(self) -> Member | None:
        for member in self.members:
            if member.process is not None and member.answers():
                return member
        return None

    def need_leader(self, beside: Iterable[Member] = ()) -> Member:
        """The one that takes clients; who is named is not asked: a paused process takes connections too."""
        found: list[Member] = []

        def look() -> bool:
            for member in self.members:
                if member.process is not None and member not in beside and member.answers():
                    found.append(member)
                    return True
            return False

        self.wait("leader", look)
        return found[0]

    def config(self) -> dict[str, object]:
        """What stands in etcd."""
        from warrenmq.cluster import etcd

        store = self.etcd.store()
        values = etcd.found(*store.ask(etcd.read_below("/warren/trial/0/"))).values
        store.close()
        read: dict[str, object] = json.loads(values.get("/warren/trial/0/config", b"{}"))
        return read

    def wait_in_sync(self, count: int) -> None:
        self.wait(f"{count} nodes in sync", lambda: len(list(self.config().get("in_sync", []))) == count)  # type: ignore[call-overload]


class Publisher:
    """A client that goes from node to node, publishes numbers, and knows which of them were confirmed."""

    def __init__(self, cluster: Cluster, queue: str = "numbers", most: int = 10) -> None:
        self.cluster = cluster
        self.queue = queue
        self.most = most  # messages a round
        self.next = 0
        self.confirmed: set[int] = set()
        self.nacked = 0
        self.longest = 0.0  # seconds between two confirms
        self._last = 0.0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        at = 0
        while not self._stop.is_set():
            at += 1
            try:
                port = self.cluster.members[at % len(self.cluster.members)].port
                with Connection(host="127.0.0.1", port=port, timeout=5.0) as connection:
                    self._publish(connection)
            except (OSError, ClientError):
                time.sleep(0.01)

    def _publish(self, connection: Connection) -> None:
        channel = connection.channel()
        channel.queue_declare(self.queue, durable=True)
        channel.confirm_select()
        while not self._stop.is_set():
            numbers = range(self.next, self.next + self.most)
            self.next += self.most
            channel.publish_many("", self.queue, [b"%d" % one for one in numbers], Properties(delivery_mode=2))
            refused = channel.wait_for_confirms(5.0)
            if refused:
                self.nacked += len(refused)
                continue
            now = time.monotonic()
            if self._last:
                self.longest = max(self.longest, now - self._last)
            self._last = now
            self.confirmed.update(numbers)
            self._stop.wait(0.01)  # what piles up has to be read by every leader to come

    def wait_for_more(self, count: int = 50) -> None:
        """So many confirms from now on."""
        wanted = len(self.confirmed) + count
        self.cluster.wait("confirms", lambda: len(self.confirmed) >= wanted)

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(60)


def drained(member: Member, queue: str = "numbers") -> list[int]:
    """All numbers that are in the queue."""
    with Connection(host="127.0.0.1", port=member.port) as connection:
        channel = connection.channel()
        found = []
        while (message := channel.basic_get(queue, no_ack=True)) is not None:
            found.append(int(message.body))
        return found
