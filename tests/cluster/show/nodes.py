"""The nodes that are shown: on this machine's loopback address for anybody, on machines of their own for root.

Duty: start, end, and what can be done to a node, by the same names for both. On loopback nobody can be cut off, and a
full disk is a process that may write no file any more. The machines are the campaign's (``campaign/machines.py``).
"""

from __future__ import annotations

import resource
import shutil
import signal
from collections.abc import Sequence
from pathlib import Path

from tests.cluster.campaign.machines import AMQP, HTTP, Machine, Site, ThreeEtcds
from tests.support.brokers import free_ports
from tests.support.cluster import Cluster, Member
from tests.support.etcd import Etcd
from warrenmq.cluster.glue.store import Store

SIZE = 3
PORT, HTTP_PORT, NODE_PORT = 5672, 15672, 25672


class Node:
    """One of them."""

    name: str
    host: str
    port: int
    url: str
    can_be_cut_off = False

    def kill(self) -> None:
        raise NotImplementedError

    def pause(self) -> None:
        raise NotImplementedError

    def cut_off(self) -> None:
        raise NotImplementedError

    def fill(self) -> None:
        raise NotImplementedError

    def mend(self) -> None:
        """Whatever was done to it is undone."""
        raise NotImplementedError

    def answers(self) -> bool:
        raise NotImplementedError


class Nodes:
    """All of them, from ``__enter__`` to ``__exit__``."""

    def __init__(self, nodes: Sequence[Node], site: Cluster | Site) -> None:
        self.nodes = nodes
        self._site = site

    def __enter__(self) -> Nodes:
        self._site.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._site.end()

    def leader(self) -> Node | None:
        return next((node for node in self.nodes if node.answers()), None)


class LocalNode(Node):
    """A process on loopback."""

    def __init__(self, member: Member) -> None:
        self.member = member
        self.name, self.host, self.port = member.name, "127.0.0.1", member.port
        self.url = f"http://127.0.0.1:{member.http_port}"
        self._stopped = False

    def kill(self) -> None:
        self.member.kill()

    def pause(self) -> None:
        self.member.signal(signal.SIGSTOP)
        self._stopped = True

    def fill(self) -> None:
        self._limit(0)

    def mend(self) -> None:
        if self._stopped:
            self._stopped = False
            self.member.signal(signal.SIGCONT)
        if self.member.process is None or self.member.process.poll() is not None:
            self.member.start()
        else:
            self._limit(resource.RLIM_INFINITY)

    def answers(self) -> bool:
        return self.member.process is not None and not self._stopped and self.member.answers()

    def _limit(self, octets: int) -> None:
        """How long its files may be."""
        assert self.member.process is not None
        pid = self.member.process.pid
        hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)[1]
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (octets, hard))


class Etcds(Etcd):
    """Three members on loopback, where a test has one."""

    def __init__(self, folder: Path) -> None:
        self.three = ThreeEtcds(folder, "127.0.0.1")
        ports = free_ports(6)
        self.three.ports = list(zip(ports[::2], ports[1::2], strict=True))

    @property
    def endpoint(self) -> list[str]:  # type: ignore[override]
        return self.three.endpoints

    def start(self, token: str = "one") -> None:
        self.three.start(token)

    def kill(self) -> None:
        self.three.kill()

    def store(self, patience: float = 60.0) -> Store:
        return Store([("127.0.0.1", client) for client, _ in self.three.ports], None, patience)


def on_loopback(folder: Path, own_ports: bool = False) -> Nodes:
    """At RabbitMQ's ports and those after them, unless somebody has them, or ``own_ports`` are wanted."""
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    cluster = Cluster(folder, SIZE)
    cluster.etcd = Etcds(folder / "three")
    for number, member in enumerate(cluster.members):
        if not own_ports and not any(taken(first + number) for first in (PORT, HTTP_PORT, NODE_PORT)):
            member.port, member.http_port, member.node_port = (one + number for one in (PORT, HTTP_PORT, NODE_PORT))
    return Nodes([LocalNode(member) for member in cluster.members], cluster)


def taken(port: int) -> bool:
    import socket

    with socket.socket() as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind(("127.0.0.1", port))
        except OSError:
            return True
    return False


class MachineNode(Node):
    """A process in a network and on a disk of its own."""

    can_be_cut_off = True

    def __init__(self, machine: Machine, site: Site) -> None:
        self.machine = machine
        self.site = site
        self.name, self.host, self.port = machine.name, machine.address, AMQP
        self.url = f"http://{machine.address}:{HTTP}"

    def kill(self) -> None:
        self.machine.kill()

    def pause(self) -> None:
        self.machine.pause()

    def cut_off(self) -> None:
        network = self.site.network
        others = [one.address for one in self.site.others(self.machine)]
        self.machine.mute(*others, network.etcd, network.address(254))

    def fill(self) -> None:
        self.machine.disk.fill()

    def mend(self) -> None:
        self.machine.go_on()
        self.machine.disk.give_room()
        self.machine.heal()
        if not self.machine.alive():
            self.machine.start()

    def answers(self) -> bool:
        return self.machine.alive() and not self.machine.paused and self.machine.answers()


def on_machines(folder: Path) -> Nodes:
    site = Site(folder, SIZE)
    return Nodes([MachineNode(machine, site) for machine in site.machines], site)
