"""Machines of a campaign on one machine: each node in a network namespace, on a disk and with a clock of its own.

Duty: what can happen to a machine and its undoing: its processes die or stand still, its packets to others go nowhere
(one way, both ways, all of them), its disk is full or stalls, its wall clock jumps; and the same for a three-member
etcd, whose data may besides be gone or those of yesterday. Not here: when any of it happens (``faults``).

A packet goes nowhere by a blackhole route in the namespace of who sends it: no firewall and no kernel module is needed.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

import warrenmq
from tests.support.etcd import need_etcd
from warrenmq.cluster import etcd
from warrenmq.cluster.glue.store import NotAsked, Store, Unanswered

AMQP, HTTP, NODES = 5672, 15672, 25672
SECRET = "a secret that all of them share\n"
FAKETIME = Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1")
DISK_MEGABYTES = 512
PREFIX = "/warren/trial/0/"


def lacking() -> str:
    """What this machine lacks for a campaign; empty if it can."""
    if os.geteuid() != 0:
        return "needs root, for network namespaces and disks of its own"
    for program in ("ip", "mkfs.ext4", "fsfreeze", "etcd"):
        if shutil.which(program) is None:
            return f"{program} is not installed"
    with tempfile.TemporaryDirectory(prefix="warren-lacking-") as folder:
        return _tried(Path(folder))


def _tried(folder: Path) -> str:
    """A container may be root's and have none of it."""
    network = disk = None
    namespaces = []
    try:
        network = Network()
        namespaces.append(network.join(1))
        disk = Disk(folder)
        disk.stall()
    except RuntimeError as error:
        return str(error)
    finally:
        if disk is not None:
            disk.end()
        if network is not None:
            network.end(namespaces)
    return ""


def run(*words: str) -> None:
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(words)}: {done.stderr.strip()}")


class Network:
    """A bridge with two addresses: clients come from one, etcd is at the other."""

    def __init__(self) -> None:
        self.number = 1 + os.getpid() % 250
        self.tag = f"{os.getpid() % 100000}"
        self.bridge = f"wb{self.tag}"
        self.etcd = self.address(253)
        run("ip", "link", "add", self.bridge, "type", "bridge")
        for last in (254, 253):
            run("ip", "addr", "add", f"{self.address(last)}/24", "dev", self.bridge)
        run("ip", "link", "set", self.bridge, "up")

    def address(self, last: int) -> str:
        return f"10.77.{self.number}.{last}"

    def join(self, last: int) -> str:
        """A namespace on the bridge, with this address."""
        name, outer = f"wn{self.tag}-{last}", f"wv{self.tag}-{last}"
        run("ip", "netns", "add", name)
        run("ip", "link", "add", outer, "type", "veth", "peer", "name", "e0", "netns", name)
        run("ip", "link", "set", outer, "master", self.bridge, "up")
        for words in (
            f"addr add {self.address(last)}/24 dev e0",
            "link set lo up",
            "link set e0 up",
        ):
            run("ip", "netns", "exec", name, "ip", *words.split())
        return name

    def end(self, namespaces: list[str]) -> None:
        for name in namespaces:
            subprocess.run(["ip", "netns", "del", name], capture_output=True)
        subprocess.run(["ip", "link", "del", self.bridge], capture_output=True)


class Disk:
    """A small file system of its own."""

    def __init__(self, folder: Path) -> None:
        self.image = folder / "disk.img"
        self.at = folder / "disk"
        self.ballast = self.at / "ballast"
        self.frozen = False
        self.at.mkdir()
        with self.image.open("wb") as image:
            image.truncate(DISK_MEGABYTES << 20)
        run("mkfs.ext4", "-q", "-F", "-m", "0", "-O", "^has_journal", str(self.image))
        run("mount", "-o", "loop", str(self.image), str(self.at))

    def fill(self) -> None:
        """Until nothing fits any more."""
        with contextlib.suppress(OSError), self.ballast.open("wb") as out:
            left = os.statvfs(self.at)
            with contextlib.suppress(OSError):
                os.posix_fallocate(out.fileno(), 0, max(1, left.f_bavail * left.f_bsize))
            while True:
                out.write(bytes(4096))
                out.flush()

    def give_room(self) -> None:
        self.ballast.unlink(missing_ok=True)

    def stall(self) -> None:
        run("fsfreeze", "-f", str(self.at))
        self.frozen = True

    def go_on(self) -> None:
        if self.frozen:
            self.frozen = False
            run("fsfreeze", "-u", str(self.at))

    def end(self) -> None:
        with contextlib.suppress(RuntimeError):
            self.go_on()
        subprocess.run(["umount", "-l", str(self.at)], capture_output=True)
        self.image.unlink(missing_ok=True)


class Machine:
    """A node of the cluster; its name and addresses stay, its process and its data may not."""

    def __init__(self, folder: Path, number: int, network: Network, endpoints: list[str], **settings: object) -> None:
        folder.mkdir()
        self.folder = folder
        self.number = number
        self.name = f"n{number}"
        self.network = network
        self.endpoints = endpoints
        self.settings = settings
        self.address = network.address(number)
        self.namespace = network.join(number)
        self.disk = Disk(folder)
        self.process: subprocess.Popen[bytes] | None = None
        self.paused = False
        self.kills = 0
        (folder / "secret").write_text(SECRET)
        self.set_clock(0)

    def start(self) -> None:
        settings: dict[str, object] = {
            "data_dir": str(self.disk.at / "data"),
            "host": [self.address],
            "port": AMQP,
            "http_host": [self.address],
            "http_port": HTTP,
            "loopback_users": [],
            "journal": "off",
            "log_level": "info",
            "cluster": "trial",
            "cluster_node": self.name,
            "cluster_etcd": self.endpoints,
            "cluster_host": self.address,
            "cluster_port": NODES,
            "cluster_secret": str(self.folder / "secret"),
            "cluster_stay_out": 0,  # a campaign wants all of them, soon
            **self.settings,
        }
        file = self.folder / "warren.toml"
        file.write_text("".join(f"{name} = {json.dumps(value)}\n" for name, value in settings.items()))
        environment = {**os.environ, "PYTHONPATH": str(Path(warrenmq.__file__).parents[1])}
        if FAKETIME.exists():
            environment |= {
                "LD_PRELOAD": str(FAKETIME),
                "FAKETIME_TIMESTAMP_FILE": str(self.folder / "clock"),
                "FAKETIME_DONT_FAKE_MONOTONIC": "1",
                "FAKETIME_CACHE_DURATION": "1",
            }
        with (self.folder / "output").open("ab") as out:
            self.process = subprocess.Popen(
                ["ip", "netns", "exec", self.namespace, sys.executable, "-m", "warrenmq", "serve", "--config", file],
                env=environment,
                cwd=self.folder,
                stdout=out,
                stderr=out,
            )

    @property
    def output(self) -> str:
        path = self.folder / "output"
        return path.read_text(errors="replace") if path.exists() else ""

    def alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    # --- the process

    def kill(self) -> None:
        if self.process is not None:
            self.kills += self.process.poll() is None
            self.process.kill()
            self.disk.go_on()  # who waits for the disk dies when it answers
            self.process.wait()
            self.process = None
        self.paused = False

    def pause(self) -> None:
        if self.alive():
            assert self.process is not None
            self.process.send_signal(signal.SIGSTOP)
            self.paused = True

    def go_on(self) -> None:
        if self.process is not None and self.paused:
            self.process.send_signal(signal.SIGCONT)
        self.paused = False

    def lose_folder(self) -> None:
        shutil.rmtree(self.disk.at / "data", ignore_errors=True)

    def set_clock(self, seconds: int) -> None:
        beside = self.folder / "clock.new"
        beside.write_text(f"{seconds:+d}\n")
        beside.rename(self.folder / "clock")

    # --- the network

    def mute(self, *to: str) -> None:
        """Nothing that this machine sends reaches those."""
        for one in to:
            run("ip", "netns", "exec", self.namespace, "ip", "route", "replace", "blackhole", f"{one}/32")

    def heal(self) -> None:
        listed = subprocess.run(
            ["ip", "netns", "exec", self.namespace, "ip", "route", "show", "type", "blackhole"],
            capture_output=True,
            text=True,
        )
        for line in listed.stdout.splitlines():
            run("ip", "netns", "exec", self.namespace, "ip", "route", "del", "blackhole", line.split()[1])

    def answers(self) -> bool:
        """Whether it takes an AMQP client: only a leader does."""
        try:
            with socket.create_connection((self.address, AMQP), 0.5) as client:
                client.settimeout(0.5)
                client.sendall(b"AMQP\x00\x00\x09\x01")
                return bool(client.recv(8))
        except OSError:
            return False


class ThreeEtcds:
    """etcd with three members, of which any may be killed, and all of which may lose or restore their data."""

    def __init__(self, folder: Path, address: str) -> None:
        self.program = need_etcd()
        folder.mkdir()
        self.folder = folder
        self.address = address
        self.ports = [(2379 + 100 * number, 2380 + 100 * number) for number in range(3)]
        self.processes: list[subprocess.Popen[bytes] | None] = [None] * 3
        self.aside: Path | None = None  # the data that are the real ones, while others stand in their place

    @property
    def endpoints(self) -> list[str]:
        return [f"http://{self.address}:{client}" for client, _ in self.ports]

    def start(self, token: str = "one") -> None:
        peers = [f"http://{self.address}:{peer}" for _, peer in self.ports]
        members = ",".join(f"m{number}={peer}" for number, peer in enumerate(peers))
        for number, (client, _) in enumerate(self.ports):
            if self.processes[number] is not None:
                continue
            url = f"http://{self.address}:{client}"
            with (self.folder / f"output{number}").open("ab") as out:
                self.processes[number] = subprocess.Popen(
                    [
                        self.program, "--name", f"m{number}", "--data-dir", str(self.folder / f"data{number}"),
                        "--log-level", "error", "--unsafe-no-fsync",
                        "--listen-client-urls", url, "--advertise-client-urls", url,
                        "--listen-peer-urls", peers[number], "--initial-advertise-peer-urls", peers[number],
                        "--initial-cluster", members, "--initial-cluster-token", token,
                    ],
                    stdout=out,
                    stderr=out,
                )  # fmt: skip

    def kill(self, *numbers: int) -> None:
        for number in numbers or range(3):
            process = self.processes[number]
            if process is not None:
                process.kill()
                process.wait()
                self.processes[number] = None

    def copy(self, to: str) -> None:
        """Its data as they are, with no member running; goes on afterwards."""
        self.kill()
        shutil.rmtree(self.folder / to, ignore_errors=True)
        (self.folder / to).mkdir()
        for number in range(3):
            shutil.copytree(self.folder / f"data{number}", self.folder / to / f"data{number}")
        self.start()

    def replace(self, by: str | None, token: str = "one") -> None:
        """Other data in the place of the real ones: a copy, or none at all. ``put_back`` ends it."""
        self.kill()
        self.aside = self.folder / "aside"
        self.aside.mkdir()
        for number in range(3):
            data = self.folder / f"data{number}"
            data.rename(self.aside / data.name)
            if by is not None:
                shutil.copytree(self.folder / by / data.name, data)
        self.start(token)

    def put_back(self) -> None:
        aside = self.aside
        if aside is None:
            return
        self.kill()
        for number in range(3):
            data = self.folder / f"data{number}"
            shutil.rmtree(data, ignore_errors=True)
            (aside / data.name).rename(data)
        aside.rmdir()
        self.aside = None
        self.start()

    def config(self) -> dict[str, object]:
        """What stands there about the cluster; empty while nobody answers."""
        store = Store([(self.address, client) for client, _ in self.ports], None, 2.0)
        try:
            values = etcd.found(*store.ask(etcd.read_below(PREFIX))).values
        except (NotAsked, Unanswered, etcd.EtcdError):
            return {}
        finally:
            store.close()
        read: dict[str, object] = json.loads(values.get(PREFIX + "config", b"{}"))
        return read


class Site:
    """All machines of a campaign, and their etcd."""

    def __init__(self, folder: Path, size: int = 3, **settings: object) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.network = Network()
        self.machines: list[Machine] = []
        self.etcd = ThreeEtcds(folder / "etcd", self.network.etcd)
        try:
            for number in range(1, size + 1):
                folder_of = folder / f"n{number}"
                self.machines.append(Machine(folder_of, number, self.network, self.etcd.endpoints, **settings))
        except BaseException:
            self.end()
            raise

    def __enter__(self) -> Site:
        try:
            self.etcd.start()
            self.machines[0].start()
            self.wait("a leader", lambda: self.leader() is not None, 120)
            for machine in self.machines[1:]:
                machine.start()
            self.wait_in_sync(120)
        except BaseException:
            self.end()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.end()

    def end(self) -> None:
        for machine in self.machines:
            machine.go_on()
            machine.kill()
            machine.disk.end()
        self.etcd.kill()
        self.network.end([machine.namespace for machine in self.machines])

    def wait(self, what: str, happened: object, seconds: float) -> None:
        assert callable(happened)
        until = time.monotonic() + seconds
        while not happened():
            if time.monotonic() > until:
                raise AssertionError(f"not within {seconds:.0f} s: {what}")
            time.sleep(0.05)

    def leader(self) -> Machine | None:
        for machine in self.machines:
            if machine.alive() and not machine.paused and machine.answers():
                return machine
        return None

    def in_sync(self) -> int:
        found = self.etcd.config().get("in_sync", [])
        return len(found) if isinstance(found, list) else 0

    def wait_in_sync(self, seconds: float) -> None:
        count = len(self.machines)
        self.wait(f"{count} nodes in sync", lambda: self.leader() is not None and self.in_sync() == count, seconds)

    def heal(self) -> None:
        """Everything as it should be: whatever was done is undone."""
        for machine in self.machines:
            machine.go_on()
            machine.disk.go_on()
            machine.disk.give_room()
            machine.heal()
            machine.set_clock(0)
        self.etcd.put_back()
        self.etcd.start()
        for machine in self.machines:
            if not machine.alive():
                machine.start()

    def others(self, machine: Machine) -> list[Machine]:
        return [one for one in self.machines if one is not machine]

    def told(self) -> Iterator[str]:
        for machine in self.machines:
            yield f"--- {machine.name}"
            yield machine.output[-5000:]
