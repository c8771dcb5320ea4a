"""A small scope, exhaustively: every order of events within a budget of batches, crashes and campaigns.

Duty: from a cluster that serves, breadth first, every state that can be reached; each is looked at once. States are
told apart by what can still matter (``Key``): streams, writers and batches by the order in which they appear, and what
was sent by a start that is gone only where it can still be carried out.

It is coarser than a walk where that costs nothing that is looked for here: a read of etcd is one step, a leader ships
all it has at once, nothing is lost on the way but by a crash, and of mishaps there are crashes only: of power (nothing
that is not synced survives) and of the process (all of it does).
"""

from __future__ import annotations

from typing import Final, final

from warrenmq.cluster.config import Config
from warrenmq.cluster.messages import Ack, Batch, Batches, Beat, Hello, Message, Welcome
from warrenmq.cluster.model.etcd import Answer
from warrenmq.cluster.model.settle import prepare
from warrenmq.cluster.model.violation import Violation
from warrenmq.cluster.model.world import (
    ADMIT,
    ANSWER,
    APPEND,
    BOOT,
    CAMPAIGN,
    CONNECT,
    DROP,
    ETCD,
    KILL,
    KINDS,
    LOOK,
    POWER,
    SHIP,
    SYNC,
    TO_FOLLOWER,
    TO_LEADER,
    World,
)
from warrenmq.cluster.proposals import Proposals
from warrenmq.cluster.rules import Node, Rules

Move = tuple[int, int, int]
TOLD_AT_ONCE: Final = 64  # a death that the others learn of behind what was sent before


@final
class Scope:
    """How much may happen: nodes, batches, crashes, campaigns, changes of the set."""

    def __init__(self, size: int, batches: int, crashes: int, campaigns: int, changes: int) -> None:
        self.size: Final = size
        self.batches: Final = batches
        self.crashes: Final = crashes
        self.campaigns: Final = campaigns
        self.changes: Final = changes


@final
class Found:
    """What an exploration came to: how many states, whether all of them, and the way to a violation."""

    def __init__(self) -> None:
        self.states = 0
        self.whole = False
        self.violation = ""
        self.way: list[str] = []


class Key:
    """A state as a number: equal for states from which the same can follow."""

    def __init__(self) -> None:
        self.parts: list[int] = []
        self.names: dict[int, int] = {}

    def name(self, number: int) -> int:
        """Numbers by the order in which they appear."""
        return self.names.setdefault(number, len(self.names))

    def config(self, config: Config | None) -> None:
        if config is None:
            self.parts.append(-1)
            return
        parts = self.parts
        parts.append(self.name(-config.writer - 1))
        parts.append(config.epoch)
        parts.append(config.leader)
        parts.append(config.version)
        parts.append(config.floor)
        in_sync = 0
        for number in config.in_sync:
            in_sync |= 1 << number
        parts.append(in_sync)

    def log(self, batches: list[Batch]) -> None:
        parts = self.parts
        parts.append(len(batches))
        for batch in batches:
            parts.append(batch.epoch)
            parts.append(self.name(batch.payload + 1) if batch.payload else -2)

    def proposals(self, proposals: Proposals) -> None:
        self.config(proposals.base)
        self.parts.append(len(proposals.doubts))
        for i in range(len(proposals.doubts)):
            self.config(proposals.doubts[i])
            self.parts.append(proposals.copies[i])

    def message(self, message: Message) -> None:
        parts = self.parts
        if isinstance(message, Batches):
            parts.extend((1, message.epoch, message.commit, message.batches[0].first))
            self.log(message.batches)
        elif isinstance(message, Ack):
            parts.extend((2, message.epoch, message.end))
        elif isinstance(message, Hello):
            parts.extend((3, message.node, message.end))
            parts.extend(message.epochs.numbers)
            parts.extend(message.epochs.firsts)
        elif isinstance(message, Welcome):
            parts.extend((4, message.epoch, message.cut, message.commit))
        elif isinstance(message, Beat):
            parts.extend((5, message.epoch, message.commit))
        else:
            parts.append(6)

    def node(self, node: Node, streams: dict[int, int]) -> None:
        parts, member, follower = self.parts, node.member, node.follower
        parts.extend((member.end, member.found, member.synced, member.commit, member.promised, member.covers()))
        self.config(member.known)
        parts.extend((streams.get(follower.stream, 0), follower.leader, follower.epoch, int(follower.welcomed)))
        candidate, leader = node.candidate, node.leader
        if candidate is not None:
            parts.append(-3)
            self.proposals(candidate.proposals)
        if leader is not None:
            parts.extend((-4, leader.epoch, leader.opening, leader.shipped, leader.promised))
            self.proposals(leader.proposals)
            for number, stream in leader.streams.items():
                parts.extend((streams.get(number, 0), stream.node, stream.sent))
            for other in sorted(leader.acked):
                parts.extend((other, leader.acked[other]))


def key_of(world: World, spent: tuple[int, ...]) -> int:
    """All that can matter of a state."""
    key = Key()
    parts = key.parts
    parts.extend(spent)
    key.log(world.ledger.commits)
    parts.append(world.ledger.epoch)
    key.config(world.etcd.config)
    order: dict[int, int] = {}
    for number in world.network.streams:
        order[number] = len(order) + 1
    for slot in range(world.size):
        disk, node = world.disks[slot], world.nodes[slot]
        key.log(disk.written)
        parts.append(disk.same)
        key.log(disk.platter[disk.same :])
        parts.append(disk.covers if disk.syncing > 0 else -1 if disk.syncing < 0 else -2)
        if node is None:
            parts.append(-5)
        else:
            key.node(node, order)
    for stream in world.network.streams.values():
        parts.extend((-6, stream.follower, stream.leader, int(stream.follower_open), int(stream.leader_open)))
        for message in stream.to_leader:
            key.message(message)
        parts.append(-7)
        for message in stream.to_follower:
            key.message(message)
    for request in world.etcd.requests:
        parts.extend((-8, request.slot, int(request.start == world.started[request.slot])))
        key.config(request.base)
        key.config(request.value)
    for answer in world.etcd.answers:
        parts.extend((-9, answer.request.slot, int(answer.accepted)))
        key.config(answer.request.value)
        key.config(answer.current)
    return hash(tuple(parts))


def apply(world: World, move: Move) -> None:
    """A move, and what is taken as one step with it; what nobody waits for any more is forgotten."""
    kind, slot, choice = move
    etcd = world.etcd
    if kind == LOOK:
        node = world.nodes[slot]
        if node is not None and etcd.config is not None:
            node.learned(etcd.config, etcd.store)
            world.carry(slot, node)
    else:
        world.act(kind, slot, choice)
    etcd.requests = [request for request in etcd.requests if request.value is not None]
    etcd.answers = [answer for answer in etcd.answers if awaited(world, answer)]


def awaited(world: World, answer: Answer) -> bool:
    slot = answer.request.slot
    return world.nodes[slot] is not None and answer.request.start == world.started[slot]


def moves(world: World, scope: Scope, spent: tuple[int, ...]) -> list[Move]:
    """Everything that can happen next within the scope."""
    found: list[Move] = []
    network, etcd = world.network, world.etcd
    ready = 0
    for stream in network.streams.values():
        if stream.to_follower and stream.follower_open:
            found.append((TO_FOLLOWER, 0, ready))
            ready += 1
    ready = 0
    for stream in network.streams.values():
        if stream.to_leader and stream.leader_open:
            found.append((TO_LEADER, 0, ready))
            ready += 1
    for i in range(len(etcd.requests)):
        found.append((ETCD, 0, i))
    for i in range(len(etcd.answers)):
        found.append((ANSWER, 0, i))
    for slot in range(world.size):
        node = world.nodes[slot]
        if node is None:
            found.append((BOOT, slot, 0))
            continue
        if world.disks[slot].syncing:
            found.append((SYNC, slot, 0))
        known, config = node.member.known, etcd.config
        if config is not None and (known is None or known.version < config.version):
            found.append((LOOK, slot, 0))
        if spent[1] < scope.crashes:
            found.append((KILL, slot, TOLD_AT_ONCE))
            found.append((POWER, slot, TOLD_AT_ONCE))
        leader = node.leader
        if leader is not None:
            lead_moves(world, scope, spent, slot, found)
        elif node.candidate is None and known is not None:
            if not node.follower.stream and known.leader != node.member.node and can_reach(world, known.leader):
                found.append((CONNECT, slot, 0))
            if spent[2] < scope.campaigns and node.follower.may_campaign(known):
                found.append((CAMPAIGN, slot, 0))
    return found


def can_reach(world: World, number: int) -> bool:
    """A stream to a node that does not lead would be closed at once."""
    slot = world.slot_of(number)
    if slot < 0:
        return False
    node = world.nodes[slot]
    return node is not None and node.leader is not None


def lead_moves(world: World, scope: Scope, spent: tuple[int, ...], slot: int, found: list[Move]) -> None:
    """What a leader may do. Its own slot is named: there may be several leaders."""
    node = world.nodes[slot]
    leader = node.leader if node is not None else None
    if leader is None:
        return
    if spent[0] < scope.batches and leader.serves():
        found.append((APPEND, slot, 0))
    streams = list(leader.streams.values())
    for i in range(len(streams)):
        if leader.sendable(streams[i].node) > streams[i].sent:
            found.append((SHIP, slot, i | 3 << 4))
    if spent[3] < scope.changes and not leader.proposals.doubts:
        for other in range(world.size):
            number = world.disks[other].number
            if number == leader.member.node:
                continue
            if number in leader.proposals.base.in_sync:
                found.append((DROP, slot, other))
            elif leader.may_join(number):
                found.append((ADMIT, slot, other))


def spend(spent: tuple[int, ...], kind: int) -> tuple[int, ...]:
    batches, crashes, campaigns, changes = spent
    if kind == APPEND:
        batches += 1
    elif kind in (KILL, POWER):
        crashes += 1
    elif kind == CAMPAIGN:
        campaigns += 1
    elif kind in (DROP, ADMIT):
        changes += 1
    return (batches, crashes, campaigns, changes)


def explore(rules: Rules, scope: Scope, limit: int) -> Found:
    """All states of a scope, or the first ``limit``. A state is reached again by the moves that led to it."""
    found = Found()
    seen: set[int] = set()
    parents: list[int] = [-1]
    made: list[Move] = [(0, 0, 0)]
    at = 0
    while at < len(parents):
        way: list[Move] = []
        back = at
        while back > 0:
            way.append(made[back])
            back = parents[back]
        way.reverse()
        spent: tuple[int, ...] = (0, 0, 0, 0)
        for move in way:
            spent = spend(spent, move[0])
        for move in moves(reached(rules, scope, way), scope, spent):
            world = reached(rules, scope, way)
            try:
                apply(world, move)
            except Violation as violation:
                found.violation = str(violation)
                found.way = [f"node {each[1]}: {KINDS[each[0]]} ({each[2]})" for each in [*way, move]]
                found.states = len(seen)
                return found
            key = key_of(world, spend(spent, move[0]))
            if key not in seen:
                seen.add(key)
                parents.append(at)
                made.append(move)
        at += 1
        if len(seen) >= limit:
            found.states = len(seen)
            return found
    found.states = len(seen)
    found.whole = True
    return found


def reached(rules: Rules, scope: Scope, way: list[Move]) -> World:
    world = World(rules, scope.size)
    prepare(world)
    world.etcd.requests.clear()
    for move in way:
        apply(world, move)
    return world
