"""The real broker on the virtual clock, on real logs under the real rules: what clients of it see in one seed's hands.

Duty: the walk of tests/log with a ``Broker`` where a node leads: a publisher that waits for confirms, and a consumer
that settles in transactions, both as buffers of octets; and the judgement of what they saw by the checker of campaigns.
What happens to disks, streams and nodes is the walk's.
"""

from __future__ import annotations

from collections.abc import Callable

from tests.cluster.campaign.history import History, Key, problems
from tests.log.crash_points import Violation, small
from tests.log.disk import SimulatedFiles
from tests.log.replicas import NumberedFiles, content, promoted
from tests.log.walk import Host, Later, Sends, Walk
from warrenmq.broker.broker import Broker
from warrenmq.broker.log_listener import LogListener
from warrenmq.broker.services.clock import VirtualClock
from warrenmq.broker.services.randomness import Randomness
from warrenmq.cluster import effects as asked
from warrenmq.cluster.rules import Node
from warrenmq.log.log import Log
from warrenmq.log.recovery import Recovered
from warrenmq.log.replica.replica import Replica
from warrenmq.log.runner import Runner
from warrenmq.log.shipping import ShippedBatch
from warrenmq.log.transient import TransientStore
from warrenmq.testing.core import Events
from warrenmq.testing.core_client import CoreClient

QUEUE = "q"


class Served:
    """A broker that leads, and its clients. ``CoreClient`` takes it for a ``Core``."""

    def __init__(self, host: BrokerHost, opened: tuple[Log, Recovered], shipping: Sends, later: Later) -> None:
        self.walk = host.walked
        self.log, recovered = opened
        clock = self.walk.clock
        transient = TransientStore("/transient", SimulatedFiles())
        self.broker = Broker(self.log, transient, clock, clock, Randomness(1), Events())
        self.inside = False
        self.lost: set[bytes] = set()
        self.passing = 0
        self.log.attach(LogListener(self.broker), later, Runner())
        self.log.attach_shipping(shipping)
        self.publisher: Publisher | None = None
        self.consumer: Consumer | None = None
        self.recovered = recovered

    def begin(self) -> None:
        self.broker.recover(self.recovered)
        self.turn(lambda: self.broker.create_defaults("guest", "guest"))

    # --- as a Core

    def commit(self) -> None:
        """When the disk is done says the walk."""

    def end_turn(self) -> None:
        self.broker.end_turn()

    # --- turns

    def turn(self, work: Callable[[], object]) -> None:
        """What comes from outside of the broker's turns: within the one under way, if the log asked for it."""
        if self.inside:
            work()
            return
        self.inside = True
        try:
            self.broker.begin_turn()
            work()
            self.broker.end_turn()
        finally:
            self.inside = False

    def done(self, number: int) -> None:
        self.turn(lambda: self.log.done(number))

    def maintain(self) -> None:
        self.log.maintain(100)

    def step(self) -> None:
        """Something that clients do."""
        self.inside = True
        try:
            self._step()
        finally:
            self.inside = False

    def _step(self) -> None:
        walk = self.walk
        if self.publisher is None:
            self.publisher, self.consumer = Publisher(self), Consumer(self)
        assert self.consumer is not None
        what = walk.rng.random()
        if what < 0.6:
            self.publisher.publish(walk.rng.choice((1, 1, 3)))
        else:
            self.consumer.settle()
        self.look()

    def look(self) -> None:
        if self.publisher is not None and self.consumer is not None:
            self.publisher.look()
            self.consumer.look()


class Publisher:
    """Numbers in a row; it publishes when its queue is there for certain."""

    def __init__(self, served: Served) -> None:
        self.walk = served.walk
        self.client = CoreClient(served, persistent=True)
        self.client.handshake("guest", "guest", "/", {})
        self.client.open(1, "confirm.select")
        self.client.send("queue.declare", queue=QUEUE, durable=True, arguments={})
        self.declared = False
        self.tags: dict[int, Key] = {}
        self.tag = 0

    def publish(self, count: int) -> None:
        for _ in range(count if self.declared else 0):
            self.walk.number += 1
            key = ("p", self.walk.number)
            self.walk.history.published(key)
            self.tag += 1
            self.tags[self.tag] = key
            self.client.publish("", QUEUE, b"%d" % key[1])

    def look(self) -> None:
        for got in self.client.take():
            if got.name == "queue.declare-ok":
                self.declared = True
            elif got.name in ("basic.ack", "basic.nack"):
                last = int(str(got["delivery_tag"]))
                for tag in [one for one in self.tags if one == last or (got["multiple"] and one < last)]:
                    key = self.tags.pop(tag)
                    if got.name == "basic.ack":
                        self.walk.history.confirmed(key)
                        self.walk.counts["confirms"] += 1


class Consumer:
    """What comes, settled in transactions, one at a time."""

    def __init__(self, served: Served) -> None:
        self.walk = served.walk
        self.walk.sessions += 1
        self.session = f"s{self.walk.sessions}"
        self.client = CoreClient(served)
        self.client.handshake("guest", "guest", "/", {})
        self.client.open(1, "tx.select")
        self.client.send("basic.qos", prefetch_count=5)
        self.client.send("queue.declare", queue=QUEUE, durable=True, arguments={})
        self.asked = False
        self.open: list[tuple[int, Key]] = []
        self.settling: list[Key] = []

    def settle(self) -> None:
        if self.open and not self.settling:
            self.settling = [key for _, key in self.open]
            self.walk.history.settling(self.session, self.settling)
            tag, self.open = self.open[-1][0], []
            self.client.send("basic.ack", delivery_tag=tag, multiple=True)
            self.client.send("tx.commit")

    def look(self) -> None:
        for got in self.client.take():
            if got.name == "queue.declare-ok" and not self.asked:
                self.asked = True
                self.client.send("basic.consume", queue=QUEUE, consumer_tag="c")
            elif got.name == "basic.deliver":
                key = ("p", int(got.body))
                self.walk.history.delivered(self.session, key, bool(got["redelivered"]))
                self.open.append((int(str(got["delivery_tag"])), key))
            elif got.name == "tx.commit-ok":
                self.walk.history.settled(self.session, self.settling)
                self.walk.counts["settled"] += len(self.settling)
                self.settling = []


class BrokerHost(Host):
    """A machine whose node leads with a real broker."""

    @property
    def walked(self) -> BrokerWalk:
        assert isinstance(self.walk, BrokerWalk)
        return self.walk

    @property
    def served(self) -> Served | None:
        found: object = self.broker
        return found if isinstance(found, Served) else None

    def lead(self, node: Node, epoch: int) -> None:
        replica = self.replica
        assert replica is not None
        self.failing = 0
        opened = self.walked.found(self, replica, epoch)
        self.replica = None
        self.later = Later()
        self.sends = Sends(self, node)
        served = Served(self, opened, self.sends, self.later)
        self.broker = served  # type: ignore[assignment]
        self.later.done = served.done
        log = opened[0]
        log.hold_back(0, self.walk.kept)
        self.sends.synced_to = int(log.synced_position())
        self.walk.counts["takeovers"] += 1
        number, covers = self.syncing
        if number and covers <= self.sends.synced_to:
            self.syncing = (0, 0)
            node.synced(number)
        log.begin_epoch()
        served.begin()

    def effect(self, node: Node, effect: asked.Effect) -> None:
        served = self.served
        if served is not None and isinstance(effect, asked.Committed):
            self.walk.committed(self, effect.end)
            served.turn(lambda: served.log.committed_to(effect.end))
            self._look(served)
        elif served is not None and isinstance(effect, asked.Promised):
            served.turn(lambda: served.log.promised_to(effect.end))
            self._look(served)
        else:
            super().effect(node, effect)

    def _look(self, served: Served) -> None:
        if not served.inside:
            served.look()

    def turn(self, work: object) -> None:
        node, served = self.node, self.served
        if node is not None and served is not None and node.leader is not None and node.leader.serves():
            if served.log.failing:
                served.turn(lambda: served.log.tick(1 << 40))
            else:
                served.step()
            self.carry()


class BrokerWalk(Walk):
    """Three nodes with real brokers."""

    host = BrokerHost

    def __init__(self, number: int, fault: str = "") -> None:
        self.clock = VirtualClock()
        self.history = History()
        self.number = 0
        self.sessions = 0
        super().__init__(number, fault)
        self.counts |= {"confirms": 0, "settled": 0, "left": 0}

    def remember(self, batch: ShippedBatch, broker: object) -> None:  # noqa: ARG002 (a leader of the log's own tests)
        self.written[int(batch.epoch), int(batch.end())] = content(batch)

    def taken_back(self, epoch: int, end: int) -> None:
        for key in [key for key in self.written if key[0] == epoch and key[1] > end]:
            del self.written[key]

    def found(self, host: Host, replica: Replica, epoch: int) -> tuple[Log, Recovered]:
        end, epochs = int(replica.end), replica.epochs.copy()
        opened = promoted(replica, epoch)
        for at, committed in self.commit:
            if at > end or epochs.until(at).last() != committed:
                raise Violation(f"{host.slot} leads from {end:#x} {epochs.numbers} without {at:#x} of {committed}")
        self.counts["judged"] += 1
        return opened

    def the_end(self) -> None:
        """Who is in sync could lead, and would show clients nothing that they may complain about."""
        for host in self.hosts:
            replica = Replica.open("/data", NumberedFiles(host.disk.kept_image()), small())
            if replica.node not in self.config.in_sync:
                continue
            log, recovered = self.found(host, replica, 1 << 20)
            left: list[Key] = []
            for index in recovered.queues.values():
                left += [("p", int(bytes(log.read(address).body))) for address in index.addresses]
            problem = problems(self.history, left)
            if problem:
                raise Violation(f"with {host.slot}: " + "; ".join(problem[:5]))
            self.counts["left"] += len(left)
