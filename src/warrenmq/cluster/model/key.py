"""What tells two states of a small scope apart: all from which something can follow, and nothing else.

Duty: a state as bytes, equal for states of which one is the other with other names. Named by the order in which they
appear are the writers of values and the batches; nodes are put in an order of their own. Left out is what no rule reads
within a scope: what is read after a failure of the disk only (how far was shipped, what a start found), how far was
promised, what was sent on a stream of which the other end is closed, and the stream a node had when it has none.

The order of nodes (``ordered``) goes by what each looks like. Two states that look alike may still be told apart, which
costs time; states that are told to be the same are the same, whatever the order was.
"""

from __future__ import annotations

from hashlib import blake2b

from warrenmq.cluster.config import NOBODY, Config
from warrenmq.cluster.messages import Ack, Batch, Batches, Beat, Hello, Message, Welcome
from warrenmq.cluster.model.etcd import Answer, Request
from warrenmq.cluster.model.network import Stream
from warrenmq.cluster.model.world import World
from warrenmq.cluster.proposals import Proposals
from warrenmq.cluster.rules import Node

NONE = 255
CANDIDATE = 254
LEADER = 253
STRANGER = 100  # a number that no node has any more


class Key:
    """One state, being written down."""

    def __init__(self, world: World, order: list[int]) -> None:
        self.parts: list[int] = []
        self.names: dict[int, int] = {}
        self.ranks: dict[int, int] = {}  # of slots
        self.numbers: dict[int, int] = {NOBODY: 0}
        for rank in range(len(order)):
            self.ranks[order[rank]] = rank
            self.numbers[world.disks[order[rank]].number] = rank + 1

    def number(self, number: int) -> int:
        return self.numbers.get(number, STRANGER + number)

    def config(self, config: Config | None) -> None:
        """What a writer wrote is the same for ever: it is written down once."""
        parts = self.parts
        if config is None:
            parts.append(NONE)
            return
        writer = -1 - config.writer
        known = self.names.get(writer, -1)
        if known >= 0:
            parts.append(known)
            return
        self.names[writer] = len(self.names)
        parts.append(self.names[writer])
        parts.append(config.epoch)
        parts.append(self.number(config.leader))
        parts.append(config.version)
        parts.append(config.floor)
        parts.append(len(config.in_sync))
        parts.extend(sorted([self.number(number) for number in config.in_sync]))

    def log(self, batches: list[Batch]) -> None:
        parts = self.parts
        parts.append(len(batches))
        for batch in batches:
            which = id(batch)
            known = self.names.get(which, -1)
            if known >= 0:
                parts.append(known)
            else:
                self.names[which] = len(self.names)
                parts.append(self.names[which])
                parts.append(batch.epoch)

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
            parts.extend((3, self.number(message.node), message.end, len(message.epochs.numbers)))
            parts.extend(message.epochs.numbers)
            parts.extend(message.epochs.firsts)
        elif isinstance(message, Welcome):
            parts.extend((4, message.epoch, message.cut, message.commit))
        elif isinstance(message, Beat):
            parts.extend((5, message.epoch, message.commit))
        else:
            parts.append(6)

    def messages(self, messages: list[Message]) -> None:
        self.parts.append(len(messages))
        for message in messages:
            self.message(message)

    def node(self, node: Node, streams: dict[int, int], world: World) -> None:
        parts, member, follower = self.parts, node.member, node.follower
        covers = member.covers()
        parts.extend((member.end, member.synced, member.commit, member.promised, covers if covers >= 0 else NONE))
        self.config(member.known)
        if follower.stream:
            parts.append(streams.get(follower.stream, NONE))
            parts.extend((self.number(follower.leader), follower.epoch, int(follower.welcomed)))
        else:
            parts.append(NONE)
        candidate, leader = node.candidate, node.leader
        if candidate is not None:
            parts.append(CANDIDATE)
            self.proposals(candidate.proposals)
        if leader is not None:
            parts.extend((LEADER, leader.epoch, leader.opening, int(leader.promised >= member.commit)))
            self.proposals(leader.proposals)
            ways = [(streams.get(number, NONE), number) for number in leader.streams]
            parts.append(len(ways))
            for place, number in sorted(ways):
                stream, under = leader.streams[number], world.network.streams.get(number)
                parts.append(place)
                parts.append(self.number(stream.node))
                parts.append(stream.sent if under is not None and under.follower_open else NONE)
            acked = [(self.number(other), leader.acked[other]) for other in leader.acked]
            parts.append(len(acked))
            for other, end in sorted(acked):
                parts.append(other)
                parts.append(end)

    def stream(self, stream: Stream) -> None:
        self.parts.extend((self.ranks[stream.follower], self.ranks[stream.leader]))
        self.parts.append(int(stream.follower_open) + 2 * int(stream.leader_open))
        if stream.leader_open:
            self.messages(stream.to_leader)
        if stream.follower_open:
            self.messages(stream.to_follower)


def ordered(world: World) -> list[int]:
    """The slots by what their nodes look like, without a name in it."""
    looks: list[tuple[tuple[int, ...], int]] = []
    for slot in range(world.size):
        disk, node = world.disks[slot], world.nodes[slot]
        under_way = open_ends = 0
        for stream in world.network.streams.values():
            if stream.follower == slot:
                under_way += 1 + len(stream.to_leader) + 8 * len(stream.to_follower)
                open_ends += 1 + int(stream.leader_open) + 8 * int(stream.follower_open)
            elif stream.leader == slot:
                under_way += 64
        look = (len(disk.written), disk.same, disk.covers, under_way, open_ends)
        if node is None:
            looks.append(((0, *look), slot))
            continue
        member, leader = node.member, node.leader
        role = 3 if leader is not None else 2 if node.candidate is not None else 1
        known = member.known
        version = known.version if known is not None else 0
        counts = int(known is not None and member.node in known.in_sync)
        looks.append(((role, *look, version, counts, member.synced, member.commit, member.promised), slot))
    looks.sort()
    return [slot for _, slot in looks]


def request_place(request: Request, key: Key) -> tuple[int, int, int]:
    value, base = request.value, request.base
    return (
        key.ranks[request.slot],
        value.version if value is not None else 0,
        base.version if base is not None else 0,
    )


def key_of(world: World, spent: tuple[int, int, int, int], order: list[int]) -> bytes:
    """All that can matter of a state, with the nodes in this order. In bytes: ``hash`` takes -1 for -2."""
    key = Key(world, order)
    parts = key.parts
    parts.extend(spent)
    ledger = world.ledger
    key.log(ledger.commits)
    led = 0
    for epoch in ledger.leaders:
        led |= 1 << epoch
    parts.extend((ledger.epoch, ledger.latest, led & 127, led >> 7))
    key.config(world.etcd.config)
    places = [
        (key.ranks[stream.follower], key.ranks[stream.leader], stream.number)
        for stream in world.network.streams.values()
    ]
    places.sort()
    streams: dict[int, int] = {}
    for _, _, number in places:
        streams[number] = len(streams)
    for slot in order:
        disk, node = world.disks[slot], world.nodes[slot]
        key.log(disk.written)
        parts.append(disk.same)
        key.log(disk.platter[disk.same :])
        parts.append(disk.covers if disk.syncing > 0 else 254 if disk.syncing < 0 else NONE)
        if node is None:
            parts.append(NONE)
        else:
            key.node(node, streams, world)
    parts.append(len(places))
    for _, _, number in places:
        key.stream(world.network.streams[number])
    requests: list[tuple[tuple[int, int, int], int]] = []
    for i in range(len(world.etcd.requests)):
        requests.append((request_place(world.etcd.requests[i], key), i))
    parts.append(len(requests))
    for _, i in sorted(requests):
        request = world.etcd.requests[i]
        parts.extend((key.ranks[request.slot], int(request.start == world.started[request.slot])))
        key.config(request.base)
        key.config(request.value)
    answers: list[tuple[tuple[int, int, int], int]] = []
    for i in range(len(world.etcd.answers)):
        answers.append((request_place(world.etcd.answers[i].request, key), i))
    parts.append(len(answers))
    for _, i in sorted(answers):
        answer: Answer = world.etcd.answers[i]
        parts.extend((key.ranks[answer.request.slot], int(answer.accepted)))
        key.config(answer.request.value)
        key.config(answer.current)
    return blake2b(bytes(parts), digest_size=15).digest()
