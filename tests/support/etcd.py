"""A real etcd for a test: one private member on free ports of this machine, killed at the end."""

from __future__ import annotations

import shutil
import signal
import subprocess
import time
from pathlib import Path
from types import TracebackType

import pytest

from tests.support.brokers import free_ports
from warrenmq.cluster import etcd
from warrenmq.cluster.glue.store import NotAsked, Store, Unanswered

START_SECONDS = 90


def need_etcd() -> str:
    found = shutil.which("etcd")
    if found is None:
        pytest.skip("etcd is not installed (Debian: etcd-server)")
    return found


def state_of(task: Path) -> str:
    return (task / "stat").read_text().rpartition(")")[2].split()[0]


class Etcd:
    """A member that keeps its ports and its folder over kills."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.program = need_etcd()
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.port, self.peer_port = free_ports(2)
        self.options = options
        self.process: subprocess.Popen[bytes] | None = None
        self.scheme = "https" if any(one.startswith("--cert-file") for one in options) else "http"

    @property
    def endpoint(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}"

    def begin(self, token: str = "one") -> None:
        client, peer = self.endpoint, f"http://127.0.0.1:{self.peer_port}"
        with (self.folder / "output").open("ab") as out:
            self.process = subprocess.Popen(
                [
                    self.program, "--name", "one", "--data-dir", str(self.folder / "data"), "--log-level", "error",
                    "--listen-client-urls", client, "--advertise-client-urls", client,
                    "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
                    "--initial-cluster", f"one={peer}", "--initial-cluster-token", token, *self.options,
                ],
                stdout=out,
                stderr=out,
            )  # fmt: skip

    def start(self, token: str = "one") -> None:
        self.begin(token)
        store = self.store()
        until = time.monotonic() + START_SECONDS
        while True:
            try:
                etcd.found(*store.ask(etcd.read_below("/")))
                break
            except (NotAsked, Unanswered, etcd.EtcdError):
                assert self.process is not None and self.process.poll() is None, (self.folder / "output").read_text()
                assert time.monotonic() < until, "etcd does not answer"
                time.sleep(0.02)
        store.close()

    def store(self, patience: float = 60.0) -> Store:
        return Store([("127.0.0.1", self.port)], None, patience)

    def signal(self, number: int) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def pause(self) -> None:
        """Returns when all its threads stand still."""
        self.signal(signal.SIGSTOP)
        assert self.process is not None
        tasks = Path(f"/proc/{self.process.pid}/task")
        while any(state_of(one) not in "Tt" for one in tasks.iterdir()):
            time.sleep(0.001)

    def go_on(self) -> None:
        self.signal(signal.SIGCONT)

    def empty(self) -> None:
        """Its data are gone, as when somebody sets it up anew."""
        shutil.rmtree(self.folder / "data")

    def __enter__(self) -> Etcd:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.kill()
