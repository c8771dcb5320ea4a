"""Clients that know several hosts, when the leader is killed: each goes on with the next node, and misses nothing.

The programs (programs/) publish numbers with confirms, take them from the queue and acknowledge them, and print both.
What is theirs to do is done as their libraries have it: some try all hosts by themselves, some are told to.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import warrenmq
from tests.clients.conftest import MODULES
from tests.moving.test_libraries import GO_LIBRARIES, JARS
from tests.support.cluster import Cluster, drained

PROGRAMS = Path(__file__).parent / "programs"
PYTHON = {"pika": "with_pika.py", "aio-pika": "with_aio_pika.py", "Celery": "with_celery.py"}
CLIENTS = (*PYTHON, "amqplib", "amqp091-go", "Java")
PATIENCE = 240.0
MORE = 10


class Client:
    """A program that runs, and what it has printed."""

    def __init__(self, name: str, command: list[str | Path], folder: Path, environment: dict[str, str]) -> None:
        self.name = name
        self.queue = f"takeover-{name}"
        self.output = folder / f"{name}.out"
        self.errors = folder / f"{name}.err"
        with self.output.open("wb") as out, self.errors.open("wb") as errors:
            self.process = subprocess.Popen(
                [str(word) for word in command],
                stdout=out,
                stderr=errors,
                env={**os.environ, **environment},
                start_new_session=True,
            )

    def numbers(self, word: str) -> list[int]:
        lines = self.output.read_text().splitlines()
        return [int(line.split()[1]) for line in lines if line.startswith(f"{word} ") and line.split()[1:]]

    def kill(self) -> None:
        """With what it has started."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def command(name: str, folder: Path) -> tuple[list[str | Path], dict[str, str]]:
    """How this client is run; an empty command where it is not installed."""
    if name in PYTHON:
        package = name.lower().replace("-", "_")
        found = subprocess.run([sys.executable, "-c", f"import {package}"], capture_output=True).returncode == 0
        return ([sys.executable, PROGRAMS / PYTHON[name]] if found else []), {}
    if name == "amqplib":
        node = shutil.which("node")
        there = node and (MODULES / "amqplib").is_dir()
        return ([str(node), PROGRAMS / "amqplib.mjs"] if there else []), {"NODE_PATH": str(MODULES)}
    if name == "Java":
        there = shutil.which("java") and all(jar.exists() for jar in JARS)
        jars = ":".join(str(jar) for jar in JARS)
        return (["java", "-Xmx128m", "-cp", jars, PROGRAMS / "Client.java"] if there else []), {}
    if not shutil.which("go") or not (GO_LIBRARIES / "src/github.com/rabbitmq/amqp091-go").exists():
        return [], {}
    environment = {"GOPATH": str(GO_LIBRARIES), "GO111MODULE": "off", "GOCACHE": str(folder / "go"), "GOFLAGS": ""}
    subprocess.run(
        ["go", "build", "-o", folder / "client", PROGRAMS / "client.go"],
        check=True,
        env={**os.environ, **environment},
    )
    return [folder / "client"], {}


class Takeover:
    """All clients at once, one leader killed in their middle, and what each had printed until when."""

    def __init__(self, folder: Path) -> None:
        self.clients: dict[str, Client] = {}
        self.before: dict[str, int] = {}
        self.left: dict[str, list[int]] = {}
        commands = {name: command(name, folder) for name in CLIENTS}
        with Cluster(folder / "nodes", 2, cluster_ack_timeout=30, cluster_ttl=20) as cluster:
            places = [f"127.0.0.1:{member.port}" for member in cluster.members]
            try:
                for name, (words, environment) in commands.items():
                    if words:
                        path = {"PYTHONPATH": str(Path(warrenmq.__file__).parents[1])}
                        whole = [*words, f"takeover-{name}", *places]
                        self.clients[name] = Client(name, whole, folder, {**path, **environment})
                self.wait({})
                self.before = {name: len(client.numbers("confirmed")) for name, client in self.clients.items()}
                gots = {name: len(client.numbers("got")) for name, client in self.clients.items()}
                leader = cluster.need_leader()
                leader.kill()
                self.wait(gots)
            finally:
                for client in self.clients.values():
                    client.kill()
            after = cluster.need_leader()
            assert after is not leader
            for name, client in self.clients.items():
                self.left[name] = [] if name == "Celery" else drained(after, client.queue)

    def wait(self, gots: dict[str, int]) -> None:
        """Until each that can has so many more; who cannot is found wanting by its own test."""
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until and not all(self.goes_on(name, gots.get(name, 0)) for name in self.clients):
            time.sleep(0.1)

    def goes_on(self, name: str, gots: int) -> bool:
        client = self.clients[name]
        return (
            len(client.numbers("confirmed")) >= self.before.get(name, 0) + MORE
            and len(client.numbers("got")) >= gots + MORE
        )


@pytest.fixture(scope="module")
def takeover(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Takeover]:
    folder = tmp_path_factory.mktemp("clients")
    (folder / "nodes").mkdir()
    yield Takeover(folder)


@pytest.mark.parametrize("name", CLIENTS)
def test_a_client_goes_on_with_the_next_node_and_nothing_confirmed_is_missing(takeover: Takeover, name: str) -> None:
    client = takeover.clients.get(name)
    if client is None:
        pytest.skip(f"{name} is not installed")
    confirmed, got = client.numbers("confirmed"), client.numbers("got")
    said = client.errors.read_text()[-2000:]
    assert len(confirmed) >= takeover.before[name] + MORE > MORE, said
    assert len(got) >= MORE, said
    if name == "Celery":  # the end cuts off what its worker had not taken yet
        confirmed = [number for number in confirmed if number <= max(got)]
    assert not set(confirmed) - set(got) - set(takeover.left[name]), said
