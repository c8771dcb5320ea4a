"""A second world in the same state as the first, so that different things can happen to each.

Duty: a copy of everything that changes; what never does (configs, batches, messages, requests) is shared. The roles
are made by the rules of the world, so that a planted fault is copied as what it is: it may answer otherwise, but has
nothing to remember.
"""

from __future__ import annotations

from warrenmq.cluster.leader import Stream as Way
from warrenmq.cluster.model.disk import Disk
from warrenmq.cluster.model.etcd import Etcd
from warrenmq.cluster.model.invariants import Ledger
from warrenmq.cluster.model.network import Network, Stream
from warrenmq.cluster.model.world import World
from warrenmq.cluster.proposals import Proposals
from warrenmq.cluster.rules import Node, Rules


def copy_of(world: World) -> World:
    twin = World(world.rules, 0)
    twin.size, twin.numbers, twin.starts = world.size, world.numbers, world.starts
    twin.payloads, twin.steps = world.payloads, world.steps
    twin.etcd = etcd_of(world.etcd)
    twin.network = network_of(world.network)
    twin.ledger = ledger_of(world.ledger)
    twin.disks = [disk_of(disk) for disk in world.disks]
    nodes: list[Node | None] = []
    for node in world.nodes:
        nodes.append(None if node is None else node_of(world.rules, node))
    twin.nodes = nodes
    twin.started = world.started[:]
    twin.believed = world.believed[:]
    return twin


def etcd_of(etcd: Etcd) -> Etcd:
    twin = Etcd(etcd.real)
    twin.store, twin.stores, twin.config = etcd.store, etcd.stores, etcd.config
    twin.history = etcd.history[:]
    twin.requests = etcd.requests[:]
    twin.answers = etcd.answers[:]
    return twin


def network_of(network: Network) -> Network:
    twin = Network()
    twin.opened = network.opened
    twin.cut = set(network.cut)
    for number, stream in network.streams.items():
        other = Stream(number, stream.follower, stream.follower_start, stream.leader, stream.leader_start)
        other.to_leader = stream.to_leader[:]
        other.to_follower = stream.to_follower[:]
        other.leader_open, other.follower_open = stream.leader_open, stream.follower_open
        twin.streams[number] = other
    return twin


def ledger_of(ledger: Ledger) -> Ledger:
    twin = Ledger()
    twin.commits = ledger.commits[:]
    twin.leaders = dict(ledger.leaders)
    twin.epoch, twin.latest, twin.promised = ledger.epoch, ledger.latest, ledger.promised
    twin.lost = ledger.lost[:]
    return twin


def disk_of(disk: Disk) -> Disk:
    twin = Disk(disk.number)
    twin.written, twin.platter = disk.written[:], disk.platter[:]
    twin.same, twin.kept, twin.syncing, twin.covers = disk.same, disk.kept, disk.syncing, disk.covers
    twin.stalled, twin.suspect = disk.stalled, disk.suspect
    return twin


def node_of(rules: Rules, node: Node) -> Node:
    member, follower = node.member, node.follower
    twin = Node(rules, member.node, 0, member.epochs, member.end, member.kept)
    twin.over = node.over
    twin.member.take_over(member)
    other = twin.follower
    other.stream, other.leader, other.epoch = follower.stream, follower.leader, follower.epoch
    other.welcomed = follower.welcomed
    candidate, leader = node.candidate, node.leader
    if candidate is not None:
        campaign = rules.candidate(twin.member, candidate.proposals.base)
        take_over(campaign.proposals, candidate.proposals)
        twin.candidate = campaign
    if leader is not None:
        led = rules.leader(twin.member, leader.proposals.base)
        take_over(led.proposals, leader.proposals)
        led.epoch, led.opening = leader.epoch, leader.opening
        led.shipped, led.promised = leader.shipped, leader.promised
        led.acked = dict(leader.acked)
        for number, stream in leader.streams.items():
            led.streams[number] = Way(stream.node, stream.sent)
        twin.leader = led
    return twin


def take_over(twin: Proposals, proposals: Proposals) -> None:
    twin.base = proposals.base
    twin.doubts = proposals.doubts[:]
    twin.copies = proposals.copies[:]
    twin.ours = proposals.ours
