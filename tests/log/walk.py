"""Real logs under the real rules: nodes on simulated disks, with everything between them in one seed's hands.

Duty: hosts that carry out what ``cluster/rules.py`` asks, on ``Log`` and ``Replica``, in one process; what happens
next, drawn from a seed; and the judgement: what was committed is in every later leader's log as it was written, and
what a leader finds is the state that the last batch of its log left. The network and etcd are tried by
``cluster/model``; here a message is late or lost with its stream, and an answer of etcd may be lost.
"""

from __future__ import annotations

import copy
import errno
import random
from collections.abc import Callable

from tests.log.crash_points import Violation, small
from tests.log.replicas import Leading, NumberedFiles, content, promoted
from tests.log.test_disk_model import BATCHES
from tests.log.world import State, found_state, same
from warrenmq.cluster import effects as asked
from warrenmq.cluster.config import NOBODY, Config
from warrenmq.cluster.messages import Batch, Batches, Bye, Hello, Message, Snapshot, Welcome
from warrenmq.cluster.rules import Node, Rules
from warrenmq.log import snapshot
from warrenmq.log.epochs import KEY, KIND
from warrenmq.log.format import LogCorrupt, LogError
from warrenmq.log.log import Log
from warrenmq.log.recovery import Recovered
from warrenmq.log.replica.replica import Replica, ReplicaListener
from warrenmq.log.runner import Runner, Task
from warrenmq.log.shipping import ShippedBatch, Shipping


class PowerCut(BaseException):
    """Nothing goes on behind it."""


class Later(Runner):
    """A disk whose work is done when the walk says so."""

    def __init__(self) -> None:
        self.task: Task | None = None
        self.done: Callable[[int], None] = lambda number: None

    def submit(self, task: Task) -> bool:
        self.task = task
        return False

    def wait(self) -> None:
        if self.task is not None:
            self.task.run()
            self.task = None

    def step(self) -> None:
        task = self.task
        if task is not None:
            self.task = None
            task.run()
            self.done(int(task.number))


class Unlike(Leading):
    """A broker no two messages of which are the same."""

    def publish(self, body: bytes, *queues: int) -> None:
        super().publish(body + b"%d %d" % (self.log.epoch, self.log.batch), *queues)

    def publish_in_chunks(self, pieces: list[bytes], queue: int, turns_between: bool = False) -> None:
        super().publish_in_chunks([*pieces, b"%d %d" % (self.log.epoch, self.log.batch)], queue, turns_between)


class Stream:
    """What is under way between a follower and a leader."""

    def __init__(self, number: int, follower: Host, leader: Host) -> None:
        self.number = number
        self.follower, self.leader = follower, leader
        self.log_id = int(leader.log().maintenance.manifest.log_id)
        self.to_follower: list[Message] = []
        self.to_leader: list[Message] = []


class Ears(ReplicaListener):
    """A follower's disk, heard by its host."""

    def __init__(self, host: Host, node: Node) -> None:
        self.host, self.node = host, node

    def synced(self, number: int) -> None:
        if self.host.node is self.node:
            self.node.synced(number)
            self.host.carry()

    def failed(self, reason: str) -> None:
        if self.host.node is self.node:
            self.node.disk_failed()
            self.host.carry()


class Sends(Shipping):
    """A leader's log, heard by its host."""

    def __init__(self, host: Host, node: Node) -> None:
        self.host, self.node = host, node
        self.synced_to = 0

    def submit(self, batch: ShippedBatch) -> None:
        walk, member = self.host.walk, self.node.member
        if batch.follows != member.end:
            raise Violation(f"a batch follows {batch.follows:#x}, the log ends at {member.end:#x}")
        walk.remember(batch, self.host.broker)
        self.node.append(walk.numbered(batch), int(batch.end() - member.end))
        self.host.carry()

    def synced(self, position: int) -> None:
        self.synced_to = int(position)
        if self.host.walk.fault == "early":
            self.host.log().committed_to(position)
        self.host.leader_synced()

    def failed(self) -> bool:
        if self.host.walk.fault == "emptied":
            if self.node.leader is not None and self.node.member.synced >= self.node.leader.opening > 0:
                self.node.member.cut(self.node.member.synced)
                self.host.walk.taken_back(self.node.member.epochs.last(), self.node.member.end)
                self.host.carry()
                return True
            return False
        self.node.disk_failed()
        gives_back = not self.node.over and not any(isinstance(one, asked.Restart) for one in self.node.effects)
        self.host.carry()
        if gives_back:
            self.host.walk.taken_back(self.node.member.epochs.last(), self.node.member.end)
        return gives_back


class Host:
    """A machine: its disk, and the node that runs there."""

    def __init__(self, walk: Walk, slot: int) -> None:
        self.walk = walk
        self.slot = slot
        self.disk = walk.disk(None)
        self.disk.numbers = iter(range((slot + 1) << 40, (slot + 2) << 40))
        self.node: Node | None = None
        self.replica: Replica | None = None
        self.broker: Leading | None = None
        self.sends: Sends | None = None
        self.later = Later()
        self.syncing = (0, 0)  # number and end of the sync that the rules wait for
        self.failing = 0  # so many operations of the disk fail
        self.carrying = False

    def log(self) -> Log:
        assert self.broker is not None
        return self.broker.log

    def fault(self, kind: str, name: str) -> int:
        self.failing -= self.failing > 0
        return errno.EIO if self.failing else 0

    # --- starts and ends

    def boot(self) -> None:
        self.disk.fault = self.fault
        self.later = Later()
        self.carrying = False
        while True:
            try:
                self.replica = replica = Replica.open("/data", self.disk, small())
                break
            except LogCorrupt as error:
                raise Violation(f"node {self.slot} does not start: {error}") from error
            except LogError:
                pass  # the disk fails; not for ever
        self.walk.starts += 1
        node = Node(
            self.walk.rules, replica.node, self.walk.starts, replica.epochs.copy(), int(replica.end), int(replica.kept)
        )
        self.node = node
        self.syncing = (0, 0)
        replica.attach(Ears(self, node), self.later, Runner())
        self.later.done = replica.done
        self.walk.say(f"{self.slot} starts as {replica.node:x}, {replica.end:#x} {replica.epochs.numbers}")
        node.begin()
        self.carry()

    def die(self) -> None:
        self.node = None
        self.replica = None
        self.broker = None
        self.sends = None
        for stream in list(self.walk.streams.values()):
            if self in (stream.follower, stream.leader):
                self.walk.close(stream, self)

    def lose_power(self) -> None:
        self.die()
        images = list(self.disk.images(4, self.walk.rng))
        numbers = self.disk.numbers
        self.disk = self.walk.disk(self.walk.rng.choice(images))
        self.disk.numbers = numbers

    # --- effects

    def carry(self) -> None:
        """Carry out what the node asks for, in its order."""
        if self.carrying:
            return
        self.carrying = True
        node = self.node
        try:
            while node is not None and self.node is node and node.effects:
                effect = node.effects.pop(0)
                self.walk.say(f"  {self.slot} {type(effect).__name__} {shown(effect)}")
                self.effect(node, effect)
        finally:
            self.carrying = False

    def effect(self, node: Node, effect: asked.Effect) -> None:
        walk = self.walk
        replica = self.replica
        if isinstance(effect, asked.Look):
            node.learned(walk.config, 1)
        elif isinstance(effect, asked.Propose):
            walk.propose(node, effect)
        elif isinstance(effect, asked.Committed):
            walk.committed(self, effect.end)
            self.log().committed_to(effect.end)
        elif isinstance(effect, asked.Promised):
            self.log().promised_to(effect.end)
        elif isinstance(effect, asked.Connect):
            walk.connect(self, effect)
        elif isinstance(effect, asked.Close):
            stream = walk.streams.get(effect.stream)
            if stream is not None:
                walk.close(stream, self)
        elif isinstance(effect, asked.Say):
            stream = walk.streams.get(effect.stream)
            if stream is not None:
                (stream.to_follower if stream.leader is self else stream.to_leader).append(effect.message)
        elif isinstance(effect, asked.Ship):
            self.ship(effect)
        elif isinstance(effect, asked.ShipAll):
            self.ship_all(node, effect)
        elif isinstance(effect, asked.Lead):
            self.lead(node, effect.epoch)
        elif isinstance(effect, asked.Renew):
            assert replica is not None
            self.failing = 0
            replica.renew(effect.keep)
            self.die()
            self.boot()
        elif isinstance(effect, asked.Restart):
            self.die()
            self.boot()
        elif isinstance(effect, asked.Install):
            self.install(effect.snapshot)
        elif isinstance(effect, asked.Sync):
            self.syncing = (effect.number, node.member.covers())
            if replica is not None:
                replica.sync(effect.number)
            else:
                self.leader_synced()
        elif replica is not None:
            try:
                if isinstance(effect, asked.Write):
                    replica.write(walk.shipped[effect.batch.payload])
                elif isinstance(effect, asked.Cut):
                    replica.cut(effect.end)
            except LogError as error:
                raise Violation(f"{self.slot}: {error}") from error

    def ship(self, effect: asked.Ship) -> None:
        stream = self.walk.streams.get(effect.stream)
        if stream is None:
            return
        batches = []
        try:
            reading = self.log().reading(effect.first, effect.end)
            while some := reading.next(1):
                for batch in some:
                    number = self.walk.numbered(batch)
                    batches.append(Batch(int(batch.epoch), int(batch.follows), int(batch.end()), number))
        except LogCorrupt as error:
            raise Violation(f"{self.slot}: {error}") from error
        except LogError:  # not held back
            self.walk.close(stream, self)
            self.walk.tell_closed(stream, self)
            return
        stream.to_follower.append(Batches(effect.epoch, batches, effect.commit))

    def ship_all(self, node: Node, effect: asked.ShipAll) -> None:
        stream = self.walk.streams.get(effect.stream)
        plan = snapshot.plan(self.log())
        if stream is None or plan is None or plan.position != effect.end:
            if stream is not None:
                node.ended(stream.number)
                self.walk.close(stream, self)
            return
        number = len(self.walk.snapshots)
        self.walk.snapshots.append(([(one.name, one.offset, one.data) for one in plan.pieces(500)], plan.manifest))
        snapshot.release(self.log())
        stream.to_follower.append(Snapshot(effect.epoch, plan.epochs, [Batch(0, 0, plan.position, number)]))
        self.walk.counts["snapshots"] += 1

    def install(self, message: Snapshot) -> None:
        """All of it has come. Should the disk fail the node starts anew, with it or with nothing."""
        replica, node = self.replica, self.node
        assert replica is not None and node is not None
        pieces, manifest = self.walk.snapshots[message.batches[-1].payload]
        self.failing = 0  # a cut may be owed, which comes first
        incoming = replica.receive()
        self.failing = self.walk.rng.choice((0, 0, 7))
        try:
            for name, offset, data in pieces:
                incoming.piece(name, offset, data)
            incoming.finish(manifest)
        except OSError:
            self.die()
            self.boot()
            return
        self.failing = 0
        replica.close()
        self.replica = replica = Replica.open("/data", self.disk, small())
        replica.attach(Ears(self, node), self.later, Runner())
        self.later.done = replica.done
        if replica.end != node.member.end:
            raise Violation(f"a snapshot up to {node.member.end:#x} ends at {replica.end:#x}")

    # --- leading

    def lead(self, node: Node, epoch: int) -> None:
        replica = self.replica
        assert replica is not None
        self.failing = 0
        opened = self.walk.judged(self, replica, epoch)
        self.replica = None
        self.later = Later()
        log, recovered = opened
        self.broker = broker = Unlike.__new__(Unlike)
        self.sends = Sends(self, node)
        broker.begin(opened, self.disk, self.sends, self.later, self.walk.positions)
        self.later.done = log.done
        broker.passing = self.walk.passing
        leader = node.leader
        assert leader is not None
        log.hold_back(0, self.walk.kept)
        self.sends.synced_to = int(log.synced_position())
        self.walk.counts["takeovers"] += 1
        broker.history[int(log.batch)] = copy.deepcopy(broker.state)
        number, covers = self.syncing
        if number and covers <= self.sends.synced_to:
            self.syncing = (0, 0)
            node.synced(number)
        log.begin_epoch()

    def leader_synced(self) -> None:
        """The log's own syncs answer those that the rules asked for."""
        node = self.node
        number, covers = self.syncing
        if self.sends is not None and node is not None and number and covers <= self.sends.synced_to:
            self.syncing = (0, 0)
            node.synced(number)
            self.carry()

    def turn(self, work: Callable[[Leading], None]) -> None:
        """A turn of the broker, if this node leads and serves."""
        node, broker = self.node, self.broker
        if node is not None and broker is not None and node.leader is not None and node.leader.serves():
            broker.passing = self.walk.passing = self.walk.passing + 1
            if broker.log.failing:
                broker.log.tick(1 << 40)
                self.carry()
                return
            work(broker)
            broker.end_turn()
            self.carry()


class Walk:
    """Three nodes, and what happens to them."""

    host: type[Host] = Host

    def __init__(self, number: int, fault: str = "", size: int = 3) -> None:
        self.rng = random.Random(number)
        self.fault = fault
        self.disk = NumberedFiles
        self.rules = Rules()
        self.starts = 0
        self.lines: list[str] = []
        self.counts = {"takeovers": 0, "snapshots": 0, "commits": 0, "cuts": 0, "judged": 0, "power": 0}
        self.counts |= {"scanned": 0, "checkpoints": 0, "compactions": 0, "removals": 0}
        self.kept = self.rng.choice((0, 3000, 1 << 30))
        self.streams: dict[int, Stream] = {}
        self.next_stream = 1
        self.shipped: list[ShippedBatch] = []
        self.snapshots: list[tuple[list[tuple[str, int, bytes]], bytes]] = []
        self.states: dict[tuple[int, int], State] = {(0, 0): State()}  # what a batch left, by its epoch and its end
        self.written: dict[tuple[int, int], tuple[object, ...]] = {}  # each batch that anybody may have seen, the same
        self.commit: list[tuple[int, int]] = []  # (end, epoch) of every committed batch
        self.lost: set[bytes] = set()
        self.positions: dict[int, int] = {}
        self.passing = 100
        self.hosts: list[Host] = []
        for slot in range(size):
            self.hosts.append(self.host(self, slot))
        self.config = Config(0, NOBODY, frozenset(), 0, 1, 0, 1)
        for host in self.hosts:
            host.boot()
        first = self.hosts[0]
        assert first.replica is not None and first.node is not None
        self.config = Config(0, NOBODY, frozenset((first.replica.node,)), 0, 2, 0, 1)
        for host in self.hosts:
            assert host.node is not None
            host.node.look()
            host.carry()
        first.node.campaign()
        first.carry()

    def say(self, line: str) -> None:
        self.lines.append(line)

    # --- etcd

    def propose(self, node: Node, effect: asked.Propose) -> None:
        accepted = self.config.same(effect.base)
        if accepted:
            self.config = effect.value
            self.say(f"etcd {effect.value}")
        if self.rng.random() < 0.9:
            node.answered(effect.value, accepted, self.config, 1)

    # --- streams

    def connect(self, host: Host, effect: asked.Connect) -> None:
        node = host.node
        assert node is not None
        other = next((one for one in self.hosts if one.node is not None and one.node.member.node == effect.node), None)
        if other is None or other.broker is None:
            node.follower.closed()
            return
        stream = Stream(self.next_stream, host, other)
        self.next_stream += 1
        self.streams[stream.number] = stream
        stream.to_leader.append(effect.hello)
        node.follower.connected(stream.number)

    def close(self, stream: Stream, by: Host) -> None:
        """One end closes it; what it sent before still arrives."""
        if stream.follower is by:
            stream.to_leader.append(Bye())
            stream.to_follower.clear()
        else:
            stream.to_follower.append(Bye())
            stream.to_leader.clear()

    def tell_closed(self, stream: Stream, by: Host) -> None:
        if by.node is not None:
            by.node.ended(stream.number)

    def arrive(self, stream: Stream, messages: list[Message], host: Host) -> None:
        if not messages:
            return
        message = messages.pop(0)
        node = host.node
        if isinstance(message, Bye):
            self.streams.pop(stream.number, None)
        if node is None:
            return
        if isinstance(message, Welcome) and host.replica is not None:
            host.failing = 0
            host.replica.adopt(stream.log_id)
        if isinstance(message, Hello) and node.leader is not None:
            node.leader.readable = int(host.log().readable_from())
        if isinstance(message, Welcome) and message.cut < node.member.end:
            self.counts["cuts"] += 1
        node.said(stream.number, message)
        host.carry()
        if isinstance(message, Batches) and host.replica is not None:
            host.replica.committed_to(node.member.commit)

    # --- what is known

    def numbered(self, batch: ShippedBatch) -> int:
        self.shipped.append(batch)
        return len(self.shipped) - 1

    def remember(self, batch: ShippedBatch, broker: Leading | None) -> None:
        assert broker is not None
        key = (int(batch.epoch), int(batch.end()))
        self.written[key] = content(batch)
        self.states[key] = broker.history[int(batch.number)]
        self.lost |= broker.lost

    def taken_back(self, epoch: int, end: int) -> None:
        """What nobody else has seen: something else may come to stand there. A message of it that is settled before the
        disk takes it is emptied out, so it is missing from its turn on, and was never promised."""
        kept = self.states.get((epoch, end), State())
        for key in [key for key in self.written if key[0] == epoch and key[1] > end]:
            del self.written[key]
            for queue, entries in self.states.pop(key).queues.items():
                known = kept.queues.get(queue, {})
                self.lost |= {body for position, body in entries.items() if position not in known}

    def committed(self, host: Host, end: int) -> None:
        """A leader says so: what it has there is what must never change."""
        node = host.node
        assert node is not None
        epochs = node.member.epochs
        known = self.commit[-1][0] if self.commit else 0
        for epoch, at in sorted(self.written, key=lambda key: key[1]):
            if known < at <= end and epochs.until(at).last() == epoch:
                self.commit.append((at, epoch))
                self.counts["commits"] += 1
        for at, epoch in self.commit:
            if at <= end and epochs.until(at).last() != epoch:
                raise Violation(f"two batches end at {at:#x}, of epoch {epoch} and {epochs.until(at).last()}")

    def judged(self, host: Host, replica: Replica, epoch: int) -> tuple[Log, Recovered]:
        """What a node finds that leads: all that was committed, as it was written; and the state that this left."""
        end, epochs = int(replica.end), replica.epochs.copy()
        opened = log, recovered = promoted(replica, epoch)
        self.counts["scanned"] += replica.scanned
        self.counts["checkpoints"] += int(replica.warm.maintenance.checkpoints)
        self.counts["compactions"] += int(replica.warm.maintenance.compactions)
        self.counts["removals"] += int(replica.warm.maintenance.removed)
        state = found_state(log, recovered)
        state.definitions.pop((KIND, KEY), None)
        expected = self.states.get((epochs.last(), end))
        if expected is None:
            raise Violation(f"{host.slot} leads from {end:#x} in epoch {epochs.last()}, where nothing was written")
        for broker in (one.broker for one in self.hosts):
            if broker is not None:
                self.lost |= broker.lost
        if not same(state, expected, self.lost):
            raise Violation(f"{host.slot} leads from {end:#x} with another state: {state.queues} {expected.queues}")
        for at, epoch in self.commit:
            if at > end or epochs.until(at).last() != epoch:
                raise Violation(f"{host.slot} leads from {end:#x} {epochs.numbers} without {at:#x} of epoch {epoch}")
        self.counts["judged"] += 1
        return opened

    # --- what happens

    def leading(self) -> Host | None:
        return next((host for host in self.hosts if host.broker is not None), None)

    def step(self) -> None:
        rng = self.rng
        host = rng.choice(self.hosts)
        node = host.node
        what = rng.random()
        leaders = [one for one in self.hosts if one.broker is not None]
        leader = rng.choice(leaders) if leaders else None
        if what < 0.12:
            if leader is not None:
                leader.turn(rng.choice(BATCHES))
        elif what < 0.34:
            host.later.step()
            host.carry()
            if host.replica is not None:
                self.passing += 1
                host.replica.maintain(self.passing * 1000, 100)
        elif what < 0.79:
            self.network(host)
        elif what < 0.83:
            if node is not None:
                node.connect()
                host.carry()
        elif what < 0.88:
            if leader is not None and leader.node is not None and leader.node.leader is not None:
                for other in self.hosts:
                    if other.node is not None:
                        leader.node.leader.admit(other.node.member.node)
                leader.carry()
        elif what < 0.93:
            if leader is not None and leader.broker is not None and not leader.broker.log.over:
                leader.broker.maintain()
                leader.carry()
        elif what < 0.95:
            if node is not None:
                node.unanswered()
                node.look()
                host.carry()
        else:
            self.mishap(host, node, leader)

    def cut_power_soon(self) -> None:
        """The power of a node goes in the middle of what its disk does next."""
        host = self.rng.choice(self.hosts)
        left = self.rng.randrange(1, 5)

        def cut(kind: str, name: str) -> None:
            nonlocal left
            left -= 1
            if not left:
                raise PowerCut

        host.disk.observe = cut
        try:
            for _ in range(3):
                host.later.step()
                host.carry()
                self.step()
        except PowerCut:
            self.counts["power"] += 1
            host.lose_power()
            host.boot()
        host.disk.observe = lambda kind, name: None

    def network(self, host: Host) -> None:
        own = [one for one in self.streams.values() if host in (one.follower, one.leader)]
        if not own:
            return
        stream = self.rng.choice(own)
        if stream.leader is host:
            if stream.to_leader:
                self.arrive(stream, stream.to_leader, host)
            else:
                self.pump(host, stream)
        else:
            self.arrive(stream, stream.to_follower, host)

    def pump(self, host: Host, stream: Stream) -> None:
        node = host.node
        if node is None or node.leader is None or stream.number not in node.leader.streams:
            return
        leader = node.leader
        to = leader.streams[stream.number]
        most = leader.sendable(to.node)
        ends = [end for epoch, end in self.written if to.sent < end <= most]
        ends = sorted(end for end in ends if (node.member.epochs.until(end).last(), end) in self.written)
        end = self.rng.choice(ends[:3]) if ends else to.sent
        leader.writable(stream.number, end - to.sent)
        host.carry()

    def mishap(self, host: Host, node: Node | None, leader: Host | None) -> None:
        rng = self.rng
        what = rng.random()
        if what < 0.35:
            if node is not None:
                node.campaign()
                host.carry()
        elif what < 0.5:
            own = [one for one in self.streams.values() if host in (one.follower, one.leader)]
            if own and node is not None:
                stream = rng.choice(own)
                self.close(stream, host)
                node.ended(stream.number)
                host.carry()
        elif what < 0.6:
            host.die()
            host.boot()
        elif what < 0.7:
            self.counts["power"] += 1
            host.lose_power()
            host.boot()
        elif what < 0.88:
            host.failing = rng.choice((2, 3, 5, 9))
        elif leader is not None and leader.node is not None and leader.node.leader is not None:
            if what < 0.97:
                if host.node is not None:
                    leader.node.leader.drop(host.node.member.node)
            else:
                leader.node.leader.note_floor()
            leader.carry()

    def run(self, steps: int) -> None:
        for _ in range(steps):
            if self.rng.random() < 0.02:
                self.cut_power_soon()
            else:
                self.step()
        self.the_end()

    def the_end(self) -> None:
        """Who is in sync could lead: from a copy of its disk, as a killed process leaves it."""
        for host in self.hosts:
            copied = NumberedFiles(host.disk.kept_image())
            replica = Replica.open("/data", copied, small())
            if replica.node in self.config.in_sync:
                self.judged(host, replica, 1 << 20)


def shown(effect: asked.Effect) -> str:
    return " ".join(
        f"{name}={value:#x}" if isinstance(value, int) and value > 1 << 20 else f"{name}={value}"
        for name in ("number", "end", "first", "stream", "epoch", "keep")
        if (value := getattr(effect, name, None)) is not None
    )
