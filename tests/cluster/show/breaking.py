"""What is done to the leader, one after the other, and what clients saw of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

from tests.cluster.show.clients import Clients
from tests.cluster.show.nodes import Node, Nodes
from tests.cluster.show.table import in_sync

PATIENCE = 180.0
STEADY = 50  # confirms before a fault, and after it


class Seen(NamedTuple):
    """One line of the result."""

    fault: str
    leader: str
    after: str
    gap: float
    lost: int
    twice: int


def faults(short: bool, hold: float) -> list[tuple[str, Callable[[Node], None], float]]:
    """What, how, and how many seconds it lasts after others have gone on, or nobody has."""
    found: list[tuple[str, Callable[[Node], None], float]] = [
        ("killed", lambda node: node.kill(), 0.0),
        ("paused", lambda node: node.pause(), hold),
        ("cut off", lambda node: node.cut_off(), hold),
        ("disk full", lambda node: node.fill(), hold),
    ]
    return found[:1] if short else found


def broken(nodes: Nodes, clients: Clients, short: bool, hold: float = 8.0) -> list[Seen]:
    seen = []
    for fault, strike, lasts in faults(short, hold):
        if fault == "cut off" and not all(node.can_be_cut_off for node in nodes.nodes):
            print("cut off: left out, as network namespaces need root", flush=True)
            continue
        seen.append(_broken_once(nodes, clients, fault, strike, lasts))
        print(_shown(seen[-1]), flush=True)
    return seen


def _broken_once(nodes: Nodes, clients: Clients, fault: str, strike: Callable[[Node], None], lasts: float) -> Seen:
    _wait("all in sync", lambda: in_sync(nodes) == len(nodes.nodes))
    _confirms(clients)
    leader = nodes.leader()
    assert leader is not None
    twice = clients.twice()
    clients.begin()
    strike(leader)
    until = time.monotonic() + lasts
    while time.monotonic() < until:
        time.sleep(0.05)
    if fault == "killed":  # who is up again at once, before anybody has missed it, leads on
        _wait("another leader", lambda: nodes.leader() not in (None, leader))
    waited = clients.since()  # what has not ended when it is mended
    leader.mend()
    _confirms(clients)
    gap = max(clients.gap, waited)
    _wait("a leader", lambda: nodes.leader() is not None)
    after = nodes.leader()
    clients.wait_until_all_came(PATIENCE)
    return Seen(fault, leader.name, after.name if after else "?", gap, clients.lost(), clients.twice() - twice)


def _confirms(clients: Clients) -> None:
    wanted = len(clients.confirmed) + STEADY
    _wait("confirms", lambda: len(clients.confirmed) >= wanted)


def _wait(what: str, happened: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE
    while not happened():
        if time.monotonic() > until:
            raise AssertionError(f"no {what} within {PATIENCE:.0f} s")
        time.sleep(0.05)


def _shown(one: Seen) -> str:
    return (
        f"{one.fault:<10} {one.leader} led, {one.after} goes on; nobody answered for {one.gap:.2f} s; "
        f"confirmed and lost: {one.lost}; twice: {one.twice}"
    )
