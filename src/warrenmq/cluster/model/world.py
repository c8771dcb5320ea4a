"""Nodes, their disks, the network and etcd, and one thing after another that can happen to them.

Duty: carry out what the rules ask for, deliver what is under way, and make things go wrong. Which of it happens next is
handed in (``act``): there is no clock and no chance here, so that time-outs, leases and campaigns come at any moment,
which is the worst that clocks can do. Every step is followed by what must hold (invariants.py).
"""

from __future__ import annotations

from typing import Final

from warrenmq.cluster.config import Config, first, recovered
from warrenmq.cluster.effects import (
    Close,
    Committed,
    Connect,
    Cut,
    Effect,
    Install,
    Lead,
    Look,
    Promised,
    Propose,
    Renew,
    Restart,
    Say,
    Ship,
    ShipAll,
    Sync,
    Write,
)
from warrenmq.cluster.messages import Batches, Bye, Message, Snapshot
from warrenmq.cluster.model.disk import Disk
from warrenmq.cluster.model.etcd import Answer, Etcd, Request
from warrenmq.cluster.model.invariants import Ledger
from warrenmq.cluster.model.network import Network, Stream
from warrenmq.cluster.rules import Node, Rules

KINDS: Final = (
    "append",
    "sync",
    "ship",
    "to follower",
    "to leader",
    "look",
    "etcd",
    "answer",
    "lose",
    "campaign",
    "unanswered",
    "connect",
    "drop",
    "admit",
    "floor",
    "kill",
    "power",
    "boot",
    "break",
    "disk fails",
    "stall",
    "cut off",
    "damage",
    "wipe",
    "roll back",
    "restore",
    "put back",
    "recover",
    "absorb",
    "resign",
)
(
    APPEND,
    SYNC,
    SHIP,
    TO_FOLLOWER,
    TO_LEADER,
    LOOK,
    ETCD,
    ANSWER,
    LOSE,
    CAMPAIGN,
    UNANSWERED,
    CONNECT,
    DROP,
    ADMIT,
    FLOOR,
    KILL,
    POWER,
    BOOT,
    BREAK,
    DISK_FAILS,
    STALL,
    CUT_OFF,
    DAMAGE,
    WIPE,
    ROLL_BACK,
    RESTORE,
    PUT_BACK,
    RECOVER,
    ABSORB,
    RESIGN,
) = range(30)

OF_LEADERS: Final = (APPEND, SHIP, DROP, ADMIT, FLOOR)


class World:
    """A few nodes and everything around them."""

    def __init__(self, rules: Rules, size: int) -> None:
        self.rules = rules
        self.size = size
        self.numbers = size
        self.starts = 0
        self.payloads = 0
        self.steps = 0
        self.etcd = Etcd(first(1, 1))
        self.network = Network()
        self.ledger = Ledger()
        self.disks = [Disk(i + 1) for i in range(size)]
        self.nodes: list[Node | None] = [None] * size
        self.started = [0] * size
        self.believed = [0] * size
        for slot in range(size):
            self.boot(slot)

    # --- one step

    def act(self, kind: int, slot: int, choice: int) -> None:
        """One thing happens to a node, or nothing where it cannot. What leaders do a leader does, if there is one."""
        self.steps += 1
        if kind in OF_LEADERS:
            for other in range(self.size):
                at = (slot + other) % self.size
                node = self.nodes[at]
                if node is not None and node.leader is not None:
                    slot = at
                    break
        node = self.nodes[slot]
        if kind == ETCD:
            self.carry_out(choice)
        elif kind == ANSWER:
            self.answer(choice)
        elif kind == TO_FOLLOWER:
            self.to_follower(choice)
        elif kind == TO_LEADER:
            self.to_leader(choice)
        elif kind == LOSE:
            if self.etcd.requests or self.etcd.answers:
                self.etcd.lose(choice)
        elif kind >= STALL and kind != ABSORB and kind != RESIGN:
            self.mishap(kind, slot, choice)
        elif node is None:
            if kind == BOOT:
                self.boot(slot)
        elif kind == SYNC:
            self.sync(slot, node)
        elif kind == KILL:
            self.die(slot, choice)
            self.disks[slot].killed()
        elif kind == POWER:
            self.die(slot, choice)
            self.disks[slot].lost_power(choice >> 7)
        elif kind == BREAK:
            self.break_stream(slot, node, choice)
        else:
            self.tell(kind, node, choice)
            self.carry(slot, node)

    def tell(self, kind: int, node: Node, choice: int) -> None:
        """What a node's host decides by itself."""
        leader = node.leader
        if kind == APPEND:
            if leader is not None and leader.serves():
                self.payloads += 1
                node.append(self.payloads, 1)
        elif kind == SHIP:
            if leader is not None and leader.streams:
                streams = list(leader.streams)
                leader.writable(streams[choice % len(streams)], 1 + (choice >> 4) % 4)
        elif kind == LOOK:
            node.look()
        elif kind == CAMPAIGN:
            node.campaign()
        elif kind == UNANSWERED:
            node.unanswered()
        elif kind == CONNECT:
            node.connect()
        elif kind == DROP:
            if leader is not None:
                leader.drop(self.disks[choice % self.size].number)
        elif kind == ADMIT:
            if leader is not None:
                leader.admit(self.disks[choice % self.size].number)
        elif kind == FLOOR:
            if leader is not None:
                leader.note_floor()
        elif kind == DISK_FAILS:
            node.disk_failed()
        elif kind == ABSORB:
            node.absorb()
        elif kind == RESIGN:
            node.resign("told to")

    # --- nodes

    def boot(self, slot: int) -> None:
        disk = self.disks[slot]
        self.starts += 1
        self.started[slot] = self.starts
        self.believed[slot] = disk.kept
        node = Node(self.rules, disk.number, self.starts, disk.epochs(), len(disk.written), disk.kept)
        self.nodes[slot] = node
        node.begin()
        self.carry(slot, node)

    def die(self, slot: int, choice: int) -> None:
        self.nodes[slot] = None
        self.network.node_died(slot, choice)

    def number(self) -> int:
        self.numbers += 1
        return self.numbers

    def slot_of(self, number: int) -> int:
        for slot in range(self.size):
            if self.disks[slot].number == number:
                return slot
        return -1

    # --- effects

    def carry(self, slot: int, node: Node) -> None:
        """Carry out what the node asks for, and look at it."""
        while node.effects:
            effects = node.effects[:]
            node.effects.clear()
            for effect in effects:
                if not self.carry_effect(slot, node, effect):
                    return
        disk = self.disks[slot]
        member = node.member
        if member.commit > self.believed[slot]:
            self.ledger.believed(disk, self.believed[slot], member.commit)
            self.believed[slot] = member.commit
        disk.kept = max(disk.kept, min(member.kept, len(disk.platter)))

    def carry_effect(self, slot: int, node: Node, effect: Effect) -> bool:
        """Whether this start of the node goes on."""
        disk = self.disks[slot]
        if isinstance(effect, Say):
            self.say(slot, effect)
        elif isinstance(effect, Write):
            disk.write(effect.batch)
        elif isinstance(effect, Sync):
            disk.sync(effect.number)
        elif isinstance(effect, Ship):
            stream = self.network.streams.get(effect.stream)
            if stream is not None:
                batches = disk.written[effect.first : effect.end]
                stream.to_follower.append(Batches(effect.epoch, batches, effect.commit))
        elif isinstance(effect, Look):
            self.etcd.requests.append(Request(slot, self.started[slot], None, None))
        elif isinstance(effect, Propose):
            self.etcd.requests.append(Request(slot, self.started[slot], effect.base, effect.value))
        elif isinstance(effect, Committed):
            leader = node.leader
            assert leader is not None
            self.ledger.commit(leader.epoch, disk, effect.end, self.etcd.real, self.disks)
        elif isinstance(effect, Promised):
            leader = node.leader
            assert leader is not None
            self.ledger.promise(leader.epoch, effect.end, self.rules.min_in_sync, self.etcd.real, self.disks)
        elif isinstance(effect, Connect):
            self.connect(slot, node, effect)
        elif isinstance(effect, Close):
            self.close(slot, effect.stream)
        elif isinstance(effect, Cut):
            self.ledger.cut(disk, effect.end, self.etcd.real)
            disk.cut(effect.end)
        elif isinstance(effect, Lead):
            self.ledger.leads(effect.epoch, self.started[slot], disk)
            node.append(0, 1)
        elif isinstance(effect, ShipAll):
            stream = self.network.streams.get(effect.stream)
            if stream is not None:
                epochs = node.member.epochs.until(effect.end)
                stream.to_follower.append(Snapshot(effect.epoch, epochs, disk.written[: effect.end]))
        elif isinstance(effect, Install):
            disk.install(effect.snapshot.batches)
        elif isinstance(effect, Renew):
            self.die(slot, 64)
            self.lose(disk, self.number(), effect.keep)
            self.boot(slot)
            return False
        elif isinstance(effect, Restart):
            self.die(slot, 64)
            disk.killed()
            self.boot(slot)
            return False
        return True

    def connect(self, slot: int, node: Node, effect: Connect) -> None:
        other = self.slot_of(effect.node)
        if other < 0 or self.nodes[other] is None or not self.network.passes(slot, other):
            node.follower.closed()
            return
        stream = self.network.open(slot, self.started[slot], other, self.started[other])
        stream.to_leader.append(effect.hello)
        node.follower.connected(stream.number)

    def say(self, slot: int, effect: Say) -> None:
        stream = self.network.streams.get(effect.stream)
        if stream is None:
            return
        if stream.leader == slot:
            if stream.leader_open:
                stream.to_follower.append(effect.message)
        elif stream.follower_open:
            stream.to_leader.append(effect.message)

    def close(self, slot: int, number: int) -> None:
        stream = self.network.streams.get(number)
        if stream is None:
            return
        if stream.leader == slot:
            if stream.leader_open:
                stream.close_leader()
        elif stream.follower_open:
            stream.close_follower()
        self.network.forget(stream)

    # --- what is under way

    def to_follower(self, choice: int) -> None:
        streams = [s for s in self.network.streams.values() if s.to_follower and s.follower_open]
        if streams:
            stream = streams[choice % len(streams)]
            if self.network.passes(stream.leader, stream.follower):
                self.hear(stream.follower, stream, stream.to_follower.pop(0))

    def to_leader(self, choice: int) -> None:
        streams = [s for s in self.network.streams.values() if s.to_leader and s.leader_open]
        if streams:
            stream = streams[choice % len(streams)]
            if self.network.passes(stream.follower, stream.leader):
                self.hear(stream.leader, stream, stream.to_leader.pop(0))

    def hear(self, slot: int, stream: Stream, message: Message) -> None:
        """A message arrives; the last one on its way closes this end too."""
        node = self.nodes[slot]
        if node is None:
            return
        node.said(stream.number, message)
        if isinstance(message, Bye):
            self.close(slot, stream.number)
        self.carry(slot, node)

    def break_stream(self, slot: int, node: Node, choice: int) -> None:
        """A node takes a stream for dead: the other end may not know for long."""
        own = [s.number for s in self.network.streams.values() if slot in (s.leader, s.follower)]
        if own:
            number = own[choice % len(own)]
            node.ended(number)
            self.close(slot, number)
            self.carry(slot, node)

    def sync(self, slot: int, node: Node) -> None:
        disk = self.disks[slot]
        if disk.syncing and not disk.stalled:
            node.synced(disk.synced())
            self.carry(slot, node)

    def carry_out(self, choice: int) -> None:
        etcd = self.etcd
        if etcd.requests:
            slot = etcd.requests[choice % len(etcd.requests)].slot
            if self.network.passes(slot, self.size):
                value = etcd.carry_out(choice)
                if value is not None:
                    self.ledger.stands(value, self.disks)

    def answer(self, choice: int) -> None:
        answers = self.etcd.answers
        if not answers:
            return
        answer = answers[choice % len(answers)]
        slot = answer.request.slot
        if self.network.passes(self.size, slot):
            answers.pop(choice % len(answers))
            node = self.nodes[slot]
            if node is not None and self.started[slot] == answer.request.start:
                self.answered(node, answer)
                self.carry(slot, node)

    def answered(self, node: Node, answer: Answer) -> None:
        value = answer.request.value
        if value is not None:
            node.answered(value, answer.accepted, answer.current, answer.store)
        elif answer.current is not None:
            node.learned(answer.current, answer.store)

    # --- mishaps

    def mishap(self, kind: int, slot: int, choice: int) -> None:
        node, disk, etcd = self.nodes[slot], self.disks[slot], self.etcd
        if kind == STALL:
            disk.stalled = not disk.stalled
        elif kind == CUT_OFF:
            other = choice % (self.size + 1)
            if choice & 32:
                self.network.turn_way(slot, other)
            else:
                self.network.turn_way(other, slot)
        elif kind == DAMAGE:
            if node is not None and disk.platter and not etcd.restored():
                self.damage(slot, node, choice)
        elif kind == WIPE:
            if node is None and not etcd.restored():
                self.wipe(disk)
        elif kind == ROLL_BACK:
            if node is None and not etcd.restored():
                self.roll_back(disk, choice)
        elif kind == RESTORE:
            self.restore(choice)
        elif kind == PUT_BACK:
            if etcd.restored():
                etcd.put_back()
        elif kind == RECOVER:
            self.recover()

    def damage(self, slot: int, node: Node, choice: int) -> None:
        """A node finds that it cannot read its log from a position on."""
        disk = self.disks[slot]
        keep = choice % (len(disk.platter) + 1)
        node.discard(keep)
        if not self.rules.renews():
            self.lose(disk, disk.number, keep)
        self.carry(slot, node)

    def wipe(self, disk: Disk) -> None:
        """Another disk, or an emptied one: another node."""
        self.lose(disk, self.number() if self.rules.renews() else disk.number, 0)

    def lose(self, disk: Disk, number: int, keep: int) -> None:
        self.ledger.lost.append(disk.platter[:])
        disk.renewed(number, keep)

    def roll_back(self, disk: Disk, choice: int) -> None:
        """Somebody puts an earlier copy of the folder back, under its old number: one from before the floor."""
        floor = min(self.etcd.real.floor, len(disk.platter))
        if floor and disk.number in self.etcd.real.in_sync:
            self.lose(disk, disk.number, choice % floor)
            disk.suspect = True

    def restore(self, choice: int) -> None:
        """Under a new identity anything may be put there. Under the old one only what every node refuses that is in
        sync by it: whose log has a batch of a later epoch. What else an operator may do there is not protected."""
        etcd = self.etcd
        if etcd.restored() or self.anybody_lost():
            return
        copy = etcd.history[-1 - choice % min(4, len(etcd.history))]
        if choice & 16:
            etcd.restore(None if choice & 32 else copy, True)
            return
        for disk in self.disks:
            if disk.suspect:
                return
            if not disk.platter or disk.platter[-1].epoch <= copy.epoch or disk.same < len(disk.platter):
                return
        etcd.restore(copy, False)

    def anybody_lost(self) -> bool:
        """Whether somebody who is in sync by etcd is gone for good."""
        for number in self.etcd.real.in_sync:
            slot = self.slot_of(number)
            if slot < 0 or self.disks[slot].suspect:
                return True
        return False

    def recover(self) -> None:
        """The operator's cure for an etcd that lost its data, with all nodes running."""
        etcd = self.etcd
        if not etcd.restored() or etcd.store == etcd.real.store:
            return
        handed = []
        for node in self.nodes:
            if node is None:
                return
        for slot in range(self.size):
            node = self.nodes[slot]
            if node is not None:
                handed.append(node.hand_over())
                self.carry(slot, node)
        value: Config | None = recovered(handed, self.starts << 24, etcd.store)
        if value is not None:
            etcd.recovered(value)
            self.ledger.stands(value, self.disks)
