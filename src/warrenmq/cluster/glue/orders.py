"""What an operator asks of the leader: done, or refused with what would help.

Duty: transfer, remove, add and pause, from the question whether it may be done to the moment when it is. **Nothing here
is needed for safety**: a transfer is a leader that goes by itself when another one has everything, and a removal a
follower that is dropped and not let in again; whether that is safe, the rules say as always. What is done where nobody
leads is ``operating.py``'s.

In etcd: ``removed/NODE`` for every node that may not come back, ``settings`` for all of the cluster.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from typing import Any

from warrenmq.cluster import etcd, wire
from warrenmq.cluster.etcd import EtcdError, Request
from warrenmq.cluster.glue import settings, standing
from warrenmq.cluster.glue.asking import Asker
from warrenmq.cluster.glue.host import Host
from warrenmq.cluster.glue.leading import Leading
from warrenmq.cluster.value import shown
from warrenmq.server.cluster_orders import OrderRefused, Orders
from warrenmq.server.logging import events

LOOK = 0.002  # seconds between two looks at what a node has
PATIENCE = 5.0  # seconds for a node to have everything, and for a write to etcd to be known
ANSWER = 0.03  # seconds that the answer to who asked has, before this process ends
REMOVED = "removed/"
MEMBERS = "members/"


class LeaderOrders(Orders):
    """Orders, on the node that leads."""

    def __init__(self, host: Host, leading: Leading, asker: Asker) -> None:
        self.host = host
        self.leading = leading
        self.asker = asker
        self._busy = False

    # --- transfer

    async def transfer(self, name: str) -> None:
        host, leading = self.host, self.leading
        number = self._of(name)
        if number == host.node.member.node:
            raise OrderRefused(f"{host.name} leads already")
        if number not in leading.leader.proposals.base.in_sync:
            raise OrderRefused(f"{name} is not in sync; wait until `warren cluster status` says that it is")
        if not host.etcd_answers(time.monotonic()):
            raise OrderRefused("etcd does not answer, and without it nobody can take over; bring it back first")
        if self._busy:
            raise OrderRefused("a transfer is under way already; wait for its end")
        if host.carried_over(number) is None:
            raise OrderRefused(f"{name} has no connection to the leader; look at its machine and at the network")
        self._busy = True
        leading.hold(True)
        until = time.monotonic() + PATIENCE
        while not leading.has_all(number):
            if host.ends():
                raise OrderRefused("this node does not lead any more; ask again")
            if time.monotonic() > until or host.carried_over(number) is None:
                self._busy = False
                leading.hold(False)
                raise OrderRefused(f"{name} did not have everything within {PATIENCE:.0f} s, so nothing was changed")
            await asyncio.sleep(LOOK)
        events("cluster").warning("cluster.transfer", to=name)
        said = wire.said(wire.RESIGN, {"to": number})
        for link in list(host.links.values()):
            if link.node:
                link.send(said)
        host.background.later(ANSWER, "the end of a transfer", lambda: host.resign(f"transferred to {name}"))

    # --- who belongs to it

    async def remove(self, name: str, anyway: bool) -> None:
        host, leading = self.host, self.leading
        numbers = self._all_of(name)
        if host.node.member.node in numbers:
            raise OrderRefused(f"{name} leads; `warren cluster transfer` to another node first")
        base = leading.leader.proposals.base
        left = len(base.in_sync - numbers)
        wanted = leading.leader.min_in_sync
        if left < wanted and left < len(base.in_sync) and not anyway:
            raise OrderRefused(
                f"without {name} only {left} would be in sync and {wanted} are wanted, so publishers would wait; start "
                "another node first, or say --anyway"
            )
        said = json.dumps({"name": name}).encode()
        for number in numbers:
            await self._write(etcd.put(host.prefix + REMOVED + shown(number), said))
            host.removed.add(number)
            await self._write(etcd.delete(host.prefix + MEMBERS + shown(number)))
            host.members.forget(number)
            for link in [link for link in host.links.values() if link.node == number]:
                host.lose(link.number)
            leading.reached.pop(number, None)
        await self._until(lambda: self._dropped(numbers), f"{name} still counts, as etcd does not answer")
        events("cluster").warning("cluster.removed", name=name)

    def _dropped(self, numbers: set[int]) -> bool:
        proposals = self.leading.leader.proposals
        if not proposals.doubts:
            for number in proposals.base.in_sync & numbers:
                self.leading.leader.drop(number)
                self.host.carry()
                break
        return not proposals.base.in_sync & numbers and not proposals.doubts

    async def add(self, name: str) -> dict[str, Any]:
        host = self.host
        seen = host.seen
        if seen is None:
            raise OrderRefused("etcd does not answer; bring it back first")
        for number in host.members.numbers():
            if host.members.name_of(number) == name and host.alive_key(number) in seen.values:
                raise OrderRefused(f"{name} is in the cluster already; name the new node otherwise (cluster_node)")
        prefix = host.prefix + REMOVED
        for key, raw in seen.values.items():
            if key.startswith(prefix) and _name_in(raw) == name:
                await self._write(etcd.delete(key))
                host.removed.discard(int(key.removeprefix(prefix), 16))
                seen.values.pop(key, None)
                break
        own = host.settings
        return {
            "cluster": own.cluster,
            "cluster_node": name,
            "cluster_etcd": own.cluster_etcd,
            "cluster_min_in_sync": own.cluster_min_in_sync,
            "cluster_ttl": own.cluster_ttl,
            "cluster_ack_timeout": own.cluster_ack_timeout,
        }

    # --- takeovers

    async def pause(self, paused: bool) -> None:
        host = self.host
        if paused == standing.paused(host):
            raise OrderRefused("takeovers are paused already" if paused else "takeovers are not paused")
        await self._set(paused=paused)
        events("cluster").warning("cluster.paused" if paused else "cluster.unpaused")

    # --- versions

    async def upgrade(self) -> int:
        host = self.host
        if host.seen is not None and settings.version(host.seen.values, host.prefix) >= wire.HIGHEST:
            raise OrderRefused(f"version {wire.HIGHEST} is in force, the highest that the leader knows")
        for number in host.members.numbers():
            if host.members.highest_of(number) < wire.HIGHEST:
                name = host.members.name_of(number)
                raise OrderRefused(f"{name} does not know version {wire.HIGHEST}; upgrade it first, or remove it")
        await self._set(wire=wire.HIGHEST)
        events("cluster").warning("cluster.upgraded", version=wire.HIGHEST)
        return wire.HIGHEST

    # --- parts

    async def _set(self, **fields: object) -> None:
        """One of the cluster's settings."""
        host = self.host
        if host.seen is None:
            raise OrderRefused("etcd does not answer; ask again when it does")
        value = settings.changed(host.seen.values, host.prefix, **fields)
        await self._write(etcd.put(host.prefix + settings.KEY, value))
        host.seen.values[host.prefix + settings.KEY] = value

    def _of(self, name: str) -> int:
        """The one that is in sync, where a node has had several numbers."""
        found = self._all_of(name)
        in_sync = found & self.leading.leader.proposals.base.in_sync
        return next(iter(in_sync or found))

    def _all_of(self, name: str) -> set[int]:
        members = self.host.members
        own = self.host.node.member.node
        known = {*members.numbers(), *self.leading.leader.proposals.base.in_sync}
        names = {number: members.name_of(number) for number in known} | {own: self.host.name}
        found = {number for number, one in names.items() if name in (one, shown(number))}
        if not found:
            raise OrderRefused(f"no node is called {name!r}; there are {', '.join(sorted(set(names.values())))}")
        return found

    async def _write(self, request: Request) -> None:
        done: asyncio.Future[None] = self.host.loop.create_future()

        def answered(status: int, raw: bytes) -> None:
            try:
                etcd.written(status, raw)
            except EtcdError as error:
                unanswered(str(error))
            else:
                if not done.done():
                    done.set_result(None)

        def unanswered(reason: str) -> None:
            if not done.done():
                done.set_exception(OrderRefused(f"etcd does not answer ({reason}); ask again when it does"))

        self.asker.ask(request, answered, unanswered)
        await done

    async def _until(self, happened: Callable[[], bool], failed: str) -> None:
        until = time.monotonic() + PATIENCE
        while not happened():
            if time.monotonic() > until or self.host.ends():
                raise OrderRefused(f"{failed}; ask again")
            await asyncio.sleep(LOOK)


def _name_in(raw: bytes) -> str:
    try:
        value = json.loads(raw)
    except ValueError:
        return ""
    return str(value.get("name", "")) if isinstance(value, dict) else ""
