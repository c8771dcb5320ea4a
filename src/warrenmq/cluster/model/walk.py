"""Walks: a world and one thing after another, all from one seed. A walk that fails is shrunk to the steps that matter.

A step is one number: which kind of thing, to which node, with which choice. So a walk is a list of numbers from which
any may be left out, and what is left still means the same.
"""

from __future__ import annotations

from warrenmq.cluster.model.settle import prepare, settle
from warrenmq.cluster.model.violation import Violation
from warrenmq.cluster.model.world import KINDS, World
from warrenmq.cluster.rules import Rules

WEIGHTS = {
    "append": 24,
    "sync": 40,
    "ship": 40,
    "to follower": 40,
    "to leader": 40,
    "look": 8,
    "etcd": 24,
    "answer": 24,
    "lose": 2,
    "campaign": 6,
    "unanswered": 4,
    "connect": 20,
    "drop": 4,
    "admit": 16,
    "floor": 2,
    "kill": 2,
    "power": 2,
    "boot": 8,
    "break": 4,
    "disk fails": 1,
    "stall": 1,
    "cut off": 2,
    "damage": 1,
    "wipe": 1,
    "roll back": 2,
    "restore": 1,
    "put back": 1,
    "recover": 2,
    "absorb": 2,
    "resign": 1,
}
"""How often each kind of thing happens, of ``sum`` steps."""

TABLE: list[int] = [kind for kind in range(len(KINDS)) for _ in range(WEIGHTS[KINDS[kind]])]
STEPS = 300


class Schedule:
    """Numbers from a seed: xorshift of 32 bits."""

    def __init__(self, seed: int) -> None:
        self.state = (seed * 2654435761 + 88172645) & 0xFFFFFFFF or 1
        for _ in range(4):
            self.next()

    def next(self) -> int:
        x = self.state
        x ^= (x << 13) & 0xFFFFFFFF
        x ^= x >> 17
        x ^= (x << 5) & 0xFFFFFFFF
        self.state = x
        return x


def step(world: World, number: int) -> None:
    slot = number % world.size
    number //= world.size
    kind = TABLE[number % len(TABLE)]
    world.act(kind, slot, number // len(TABLE))


def world_of(rules: Rules, seed: int) -> World:
    """Two nodes for every fourth seed, else three. They serve already, but for every eighth seed."""
    world = World(rules, 2 if seed % 4 == 0 else 3)
    if seed % 8 != 7:
        prepare(world)
    return world


def steps_of(seed: int, count: int) -> list[int]:
    schedule = Schedule(seed)
    return [schedule.next() for _ in range(count)]


def walk(rules: Rules, seed: int, count: int = STEPS) -> World:
    """A walk as long as it goes, and then: all faults end, and the cluster must serve again."""
    world = world_of(rules, seed)
    schedule = Schedule(seed)
    for _ in range(count):
        step(world, schedule.next())
    settle(world)
    return world


def fails(rules: Rules, seed: int, steps: list[int]) -> str:
    """What these steps violate; empty if nothing."""
    try:
        world = world_of(rules, seed)
        for number in steps:
            step(world, number)
        settle(world)
    except Violation as violation:
        return str(violation)
    return ""


def first_failure(rules: Rules, first: int, end: int, count: int = STEPS) -> int:
    """The first of the seeds from ``first`` to before ``end`` that fails; -1 if none does."""
    for seed in range(first, end):
        try:
            walk(rules, seed, count)
        except Violation:
            return seed
    return -1


def shrunk(rules: Rules, seed: int, count: int = STEPS) -> list[int]:
    """Of the steps of a failing seed those without which it does not fail, as far as leaving out finds them."""
    steps = steps_of(seed, count)
    size = len(steps) // 2
    while size:
        at = 0
        while at < len(steps):
            fewer = steps[:at] + steps[at + size :]
            if fails(rules, seed, fewer):
                steps = fewer
            else:
                at += size
        size //= 2
    return steps


def told(rules: Rules, seed: int, steps: list[int]) -> list[str]:
    """The steps in words, and what they violate."""
    world = world_of(rules, seed)
    lines = []
    for number in steps:
        slot = number % world.size
        rest = number // world.size
        lines.append(f"node {slot}: {KINDS[TABLE[rest % len(TABLE)]]} ({rest // len(TABLE)})")
    return [*lines, fails(rules, seed, steps)]
