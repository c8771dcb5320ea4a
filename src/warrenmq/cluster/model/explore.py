"""A small scope, exhaustively: every order of events within a budget of batches, crashes, campaigns and changes.

Duty: from a cluster that serves, every state that can be reached; each is looked at once. States are copied
(copying.py) and told apart by what can still matter (key.py).

It is coarser than a walk where that costs nothing that is looked for here: a read of etcd is one step, a leader ships
all it has at once, nothing is lost on the way, and of mishaps there are crashes only: of power (nothing that is not
synced survives) and of the process (all of it does).

Five reductions leave out what is provably seen otherwise (``ALL``; each can be turned off, and tests do):

- ``BOOT_AT_ONCE``: a node that is up and left alone does nothing, so whatever can happen to one that is down can happen
  to it: a crash and the start after it are one step.
- ``CONNECT_AT_ONCE``: what a follower says first depends on its log, which does not change while it has no stream; and
  what it said may arrive at any time. So connecting late is connecting at once and arriving late.
- ``LAST_WORDS_AT_ONCE``: the end of a stream, when nothing else is on its way, and an acknowledgement that says nothing
  new. The first takes nothing from the one that hears it but a stream on which nothing comes any more; the second
  changes nothing.
- ``DEAF_ENDS``: nothing is shipped to an end that is closed, and what a start that is gone wrote to etcd is forgotten
  when the value it rests on stands there no more: it will be refused, and nobody hears it.
- ``ALIKE``: no rule prefers a node for its number, so states that differ in the names of nodes are one.
"""

from __future__ import annotations

from collections import deque
from typing import Final, final

from warrenmq.cluster.messages import Ack, Bye
from warrenmq.cluster.model.copying import copy_of
from warrenmq.cluster.model.etcd import Answer, Request
from warrenmq.cluster.model.key import key_of, ordered
from warrenmq.cluster.model.network import Stream
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
from warrenmq.cluster.rules import Rules

Move = tuple[int, int, int]
Spent = tuple[int, int, int, int]
WITH_ALL_IT_SENT: Final = 64 * 3 * 5 * 7 * 11 * 13
"""A death of which the others learn behind what was sent before, of which nothing is lost, up to a dozen messages."""

BOOT_AT_ONCE: Final = 1
CONNECT_AT_ONCE: Final = 2
LAST_WORDS_AT_ONCE: Final = 4
DEAF_ENDS: Final = 8
ALIKE: Final = 16
ALL: Final = 31


@final
class Scope:
    """The bounds of what may happen: nodes, batches, crashes, campaigns, changes of the set."""

    def __init__(self, size: int, batches: int, crashes: int, campaigns: int, changes: int) -> None:
        self.size: Final = size
        self.batches: Final = batches
        self.crashes: Final = crashes
        self.campaigns: Final = campaigns
        self.changes: Final = changes


@final
class Found:
    """The outcome of an exploration: how many states, whether all of them, and the way to a violation."""

    def __init__(self) -> None:
        self.states = 0
        self.whole = False
        self.violation = ""
        self.way: list[str] = []


@final
class State:
    """A state that was reached and not yet left, and how."""

    def __init__(self, world: World, spent: Spent, before: State | None, move: Move) -> None:
        self.world: World | None = world
        self.spent: Final = spent
        self.before: Final = before
        self.move: Final = move

    def way(self) -> list[str]:
        steps: list[str] = []
        state: State | None = self
        while state is not None and state.before is not None:
            steps.append(told(state.move))
            state = state.before
        steps.reverse()
        return steps


def told(move: Move) -> str:
    return f"node {move[1]}: {KINDS[move[0]]} ({move[2]})"


def apply(world: World, move: Move, reductions: int) -> None:
    """A move, and what is taken as one step with it."""
    kind, slot, choice = move
    etcd = world.etcd
    if kind == LOOK:
        node = world.nodes[slot]
        if node is not None and etcd.config is not None:
            node.learned(etcd.config, etcd.store)
            world.carry(slot, node)
    elif kind == KILL:
        world.die(slot, WITH_ALL_IT_SENT)
        world.disks[slot].killed()
    elif kind == POWER:
        world.die(slot, WITH_ALL_IT_SENT)
        world.disks[slot].lost_power(0)
    else:
        world.act(kind, slot, choice)
    tidy(world, reductions)
    while at_once(world, reductions):
        tidy(world, reductions)


def tidy(world: World, reductions: int) -> None:
    """What nobody waits for any more is forgotten."""
    etcd = world.etcd
    etcd.requests = [request for request in etcd.requests if may_matter(world, request, reductions)]
    etcd.answers = [answer for answer in etcd.answers if awaited(world, answer)]
    for stream in world.network.streams.values():
        if not stream.follower_open:
            stream.to_follower.clear()
        if not stream.leader_open:
            stream.to_leader.clear()


def may_matter(world: World, request: Request, reductions: int) -> bool:
    base = request.base
    if base is None or request.value is None:
        return False
    if not reductions & DEAF_ENDS:
        return True
    return base.same(world.etcd.config) or request.start == world.started[request.slot]


def awaited(world: World, answer: Answer) -> bool:
    slot = answer.request.slot
    return world.nodes[slot] is not None and answer.request.start == world.started[slot]


def at_once(world: World, reductions: int) -> bool:
    """One thing that may as well happen now; whether there was any."""
    if reductions & BOOT_AT_ONCE:
        for slot in range(world.size):
            if world.nodes[slot] is None:
                world.boot(slot)
                return True
    if reductions & LAST_WORDS_AT_ONCE:
        for stream in world.network.streams.values():
            if stream.follower_open and stream.to_follower and isinstance(stream.to_follower[0], Bye):
                world.hear(stream.follower, stream, stream.to_follower.pop(0))
                return True
            if stream.leader_open and stream.to_leader and says_nothing(world, stream):
                world.hear(stream.leader, stream, stream.to_leader.pop(0))
                return True
    if reductions & CONNECT_AT_ONCE:
        for slot in range(world.size):
            node = world.nodes[slot]
            if node is not None and may_connect(world, slot):
                node.connect()
                world.carry(slot, node)
                return True
    return False


def says_nothing(world: World, stream: Stream) -> bool:
    """Whether the leader's end hears the end of the stream next, or what it has heard already."""
    message = stream.to_leader[0]
    if isinstance(message, Bye):
        return True
    node = world.nodes[stream.leader]
    if not isinstance(message, Ack) or node is None:
        return False
    leader = node.leader
    if leader is None:
        return True
    to = leader.streams.get(stream.number)
    return to is None or message.epoch != leader.epoch or message.end <= leader.acked.get(to.node, -1)


def may_connect(world: World, slot: int) -> bool:
    """A stream to a node that does not lead would be closed at once."""
    node = world.nodes[slot]
    if node is None or node.leader is not None or node.candidate is not None or node.follower.stream:
        return False
    known = node.member.known
    if known is None or known.leader == node.member.node:
        return False
    other = world.slot_of(known.leader)
    if other < 0:
        return False
    leader = world.nodes[other]
    return leader is not None and leader.leader is not None


def moves(world: World, scope: Scope, spent: Spent, reductions: int) -> list[Move]:
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
            found.append((KILL, slot, 0))
            if world.disks[slot].same < len(world.disks[slot].written):
                found.append((POWER, slot, 0))
        if node.leader is not None:
            lead_moves(world, scope, spent, slot, reductions, found)
            continue
        if may_connect(world, slot):
            found.append((CONNECT, slot, 0))
        can = node.candidate is None and spent[2] < scope.campaigns
        if can and known is not None and node.follower.may_campaign(known):
            found.append((CAMPAIGN, slot, 0))
    return found


def lead_moves(world: World, scope: Scope, spent: Spent, slot: int, reductions: int, found: list[Move]) -> None:
    """What a leader may do. Its own slot is named: there may be several leaders."""
    node = world.nodes[slot]
    leader = node.leader if node is not None else None
    if leader is None:
        return
    if spent[0] < scope.batches and leader.serves():
        found.append((APPEND, slot, 0))
    numbers = list(leader.streams)
    for i in range(len(numbers)):
        way, stream = leader.streams[numbers[i]], world.network.streams.get(numbers[i])
        heard = stream is not None and stream.follower_open
        if leader.sendable(way.node) > way.sent and (heard or not reductions & DEAF_ENDS):
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


def spend(spent: Spent, kind: int) -> Spent:
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


def explore(rules: Rules, scope: Scope, limit: int, shortest: bool = False, reductions: int = ALL) -> Found:
    """All states of a scope, or as many as ``limit`` says.

    The last reached is left first, so that few are kept in memory; ``shortest`` takes the first reached first, and
    finds the shortest way to a violation.
    """
    found = Found()
    world = World(rules, scope.size)
    prepare(world)
    world.etcd.requests.clear()
    nothing: Spent = (0, 0, 0, 0)
    seen: set[bytes] = set()
    waiting: deque[State] = deque([State(world, nothing, None, (0, 0, 0))])
    while waiting and len(seen) < limit:
        state = waiting.popleft() if shortest else waiting.pop()
        here = state.world
        assert here is not None
        state.world = None
        spent = state.spent
        for move in moves(here, scope, spent, reductions):
            world = copy_of(here)
            then = spend(spent, move[0])
            try:
                apply(world, move, reductions)
            except Violation as violation:
                found.violation = str(violation)
                found.way = [*state.way(), told(move)]
                found.states = len(seen)
                return found
            order = ordered(world) if reductions & ALIKE else list(range(world.size))
            key = key_of(world, then, order)
            if key not in seen:
                seen.add(key)
                waiting.append(State(world, then, state, move))
    found.states = len(seen)
    found.whole = not waiting
    return found
