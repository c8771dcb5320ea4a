"""After the faults: everything works again, and the cluster must lead, commit and be whole before long.

Invariants alone are kept by nodes that do nothing. Here everything is delivered in turn, hosts do what their timers
would have them do, and within a bounded number of rounds a leader must serve with every node in sync, unless nobody who
was in sync is left, which only a person may overrule.
"""

from __future__ import annotations

from warrenmq.cluster.model.violation import Violation
from warrenmq.cluster.model.world import World

ROUNDS = 60
PASSES = 40


def settle(world: World) -> None:
    heal(world)
    for _ in range(ROUNDS):
        one_round(world)
        if whole(world):
            check(world)
            return
        if not eligible(world):
            return
    raise Violation(f"not whole again after {ROUNDS} rounds: {world.etcd.config}")


def prepare(world: World) -> None:
    """A cluster that serves, to begin with."""
    for _ in range(ROUNDS):
        one_round(world)
        if whole(world):
            return


def heal(world: World) -> None:
    world.network.cut.clear()
    if world.etcd.restored():
        world.etcd.put_back()
    for slot in range(world.size):
        world.disks[slot].stalled = False
        if world.nodes[slot] is None:
            world.boot(slot)


def eligible(world: World) -> bool:
    """Whether somebody is left who may lead."""
    config = world.etcd.real
    for disk in world.disks:
        if disk.number in config.in_sync and not disk.suspect:
            return True
    return False


def one_round(world: World) -> None:
    """Everything under way arrives, and every timer fires once."""
    for slot in range(world.size):
        node = world.nodes[slot]
        assert node is not None
        node.look()
        world.carry(slot, node)
    deliver(world)
    for slot in range(world.size):
        node = world.nodes[slot]
        assert node is not None
        node.unanswered()
        node.connect()
        world.carry(slot, node)
    deliver(world)
    if not led(world):
        for slot in range(world.size):
            node = world.nodes[slot]
            assert node is not None
            if node.leader is None and node.candidate is None:
                node.campaign()
                world.carry(slot, node)
        deliver(world)
    for slot in range(world.size):
        node = world.nodes[slot]
        assert node is not None
        leader = node.leader
        if leader is not None:
            for disk in world.disks:
                leader.admit(disk.number)
            for number in leader.proposals.base.in_sync:
                if world.slot_of(number) < 0:
                    leader.drop(number)
            for stream in list(leader.streams):
                leader.writable(stream, 1000)
            world.carry(slot, node)
    deliver(world)


def deliver(world: World) -> None:
    """What is under way, and what comes of it; not without end, as wrong rules may answer each other for ever."""
    etcd = world.etcd
    for _ in range(PASSES):
        busy = False
        while etcd.requests:
            world.carry_out(0)
        while etcd.answers:
            world.answer(0)
            busy = True
        for slot in range(world.size):
            node = world.nodes[slot]
            if node is not None and world.disks[slot].syncing:
                world.sync(slot, node)
                busy = True
        for number in list(world.network.streams):
            stream = world.network.streams.get(number)
            if stream is not None and stream.to_leader and stream.leader_open:
                world.hear(stream.leader, stream, stream.to_leader.pop(0))
                busy = True
            stream = world.network.streams.get(number)
            if stream is not None and stream.to_follower and stream.follower_open:
                world.hear(stream.follower, stream, stream.to_follower.pop(0))
                busy = True
        if not busy and not etcd.requests:
            return


def led(world: World) -> bool:
    config = world.etcd.real
    slot = world.slot_of(config.leader)
    if slot < 0:
        return False
    node = world.nodes[slot]
    return node is not None and node.leader is not None and node.leader.epoch == config.epoch


def whole(world: World) -> bool:
    config = world.etcd.real
    if not led(world):
        return False
    for disk in world.disks:
        if disk.number not in config.in_sync:
            return False
    if len(config.in_sync) != world.size:
        return False
    node = world.nodes[world.slot_of(config.leader)]
    return node is not None and node.leader is not None and node.leader.serves() and not node.leader.proposals.doubts


def check(world: World) -> None:
    """The leader has everything, and what is published now is promised."""
    slot = world.slot_of(world.etcd.real.leader)
    node = world.nodes[slot]
    assert node is not None
    world.ledger.has_all(world.disks[slot].written, "the leader at the end")
    world.payloads += 1
    node.append(world.payloads, 1)
    world.carry(slot, node)
    end = node.member.end
    for _ in range(ROUNDS):
        one_round(world)
        if world.ledger.promised >= end:
            return
    raise Violation("what is published at the end is not promised")
