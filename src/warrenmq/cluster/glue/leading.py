"""A leader's host: what the log hands over goes to the followers, and what they have goes to the log.

Duty: batches from memory or from the disk to every stream, in order, as many as it may have under way; beats; when a
follower is late enough to be dropped, or has kept up long enough to be admitted; when the leader has to go by itself.
**When, never whether**: the rules decide what is safe, and say what counts. Not here: etcd and the sockets
(``node.py``).
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable

from warrenmq.cluster import wire
from warrenmq.cluster.effects import Ship
from warrenmq.cluster.glue.host import Host
from warrenmq.cluster.glue.lapses import Lapses
from warrenmq.cluster.glue.link import Link
from warrenmq.cluster.leader import Leader
from warrenmq.cluster.wire import Life, PieceSaid
from warrenmq.log import snapshot
from warrenmq.log.format import LogError
from warrenmq.log.histogram import DISK_TIMES, Histogram
from warrenmq.log.log import Log
from warrenmq.log.shipping import ShippedBatch, Shipping
from warrenmq.server.app import Server
from warrenmq.server.logging import events
from warrenmq.server.standing import SKEW

WINDOW = 64 << 20  # octets on their way to one follower
WINDOW_BATCHES = 256
RECENT = 64 << 20  # octets of batches kept in memory for whoever is a little behind
READ = 4 << 20  # octets read back from disk at a time
KEEP = 4 << 30  # octets of the log held back for a follower that is away
STEADY = 1.0  # seconds a follower has to keep up before it counts
LATE = 0.5  # seconds between two looks after which the process itself was asleep, and nobody is to blame
FLOOR = 10.0
BEAT = 0.25
SNAPSHOT_AGAIN = 0.1


class Flight:
    """The batches on their way to one follower."""

    def __init__(self) -> None:
        self.sizes: deque[tuple[int, int, float]] = deque()  # the end of each batch under way, its size, when it went
        self.beats: deque[tuple[float, float]] = deque()  # when those went that are not answered: by the wall, and not
        self.octets = 0
        self.ahead: dict[int, ShippedBatch] = {}  # read back from disk, by where they begin
        self.drained = asyncio.Event()
        self.reading = False
        self.whole = False  # a snapshot is on its way

    def sent(self, batch: ShippedBatch) -> None:
        size = int(batch.size())
        self.sizes.append((int(batch.end()), size, time.monotonic()))
        self.octets += size
        if self.ahead.pop(int(batch.follows), None) is not None and not self.ahead:
            self.drained.set()

    def acknowledged(self, end: int, waits: Histogram) -> None:
        now = time.monotonic()
        while self.sizes and self.sizes[0][0] <= end:
            _, size, sent = self.sizes.popleft()
            self.octets -= size
            waits.add(int((now - sent) * 1e6), 1)

    def full(self) -> bool:
        return self.octets >= WINDOW or len(self.sizes) >= WINDOW_BATCHES


class Leading(Shipping):
    """The host of one epoch."""

    def __init__(self, host: Host, log: Log) -> None:
        self.host = host
        self.log = log
        self.server: Server | None = None  # from when its log is attached
        self.member = host.node.member
        leader = host.node.leader
        assert leader is not None
        self.leader: Leader = leader
        self.recent: dict[int, ShippedBatch] = {}  # by where they begin, the oldest first
        self.recent_octets = 0
        self.flights: dict[int, Flight] = {}
        self.going: dict[tuple[int, int], ShippedBatch] = {}
        self.progress: dict[int, float] = {}  # when a node acknowledged last, or owed nothing
        self.reached: dict[int, int] = {}  # how far a node has come, also while it is away
        self.near: dict[int, float] = {}  # since when a node that does not count has kept up
        self.unsynced_since = 0.0
        self.began = self.ticked = time.monotonic()
        self.floored = self.began - FLOOR
        self.beaten = self.began
        self.commit_before = 0
        self._inside = 0
        self.commit_waits = Histogram(DISK_TIMES)
        self.ack_waits = Histogram(DISK_TIMES)
        self.skews: dict[int, float] = {}  # by node, in seconds
        self.lapses = Lapses(host.settings.cluster_stay_out)
        self._apart: set[int] = set()  # whose clock is too far from ours
        self._submitted: deque[tuple[int, float]] = deque()  # the end of each batch that is not committed, and when

    # --- the log

    def submit(self, batch: ShippedBatch) -> None:
        first, end = int(batch.follows), int(batch.end())
        if first != self.member.end:
            raise LogError(f"a batch at {first} where the rules are at {self.member.end}")
        self.recent[first] = batch
        self.recent_octets += int(batch.size())
        while self.recent_octets > RECENT and len(self.recent) > 1:
            self.recent_octets -= int(self.recent.pop(next(iter(self.recent))).size())
        now = time.monotonic()
        self._submitted.append((end, now))
        if not self.unsynced_since:
            self.unsynced_since = now
        self._inside += 1
        try:
            self.host.node.append(0, end - self.member.end)
            self.host.carry()
            self.pump_all()
        finally:
            self._inside -= 1

    def synced(self, position: int) -> None:
        self._inside += 1
        try:
            while 0 <= self.member.covers() <= position:
                self.host.node.synced(self.member.syncing())
            self.unsynced_since = time.monotonic() if self.member.synced < self.member.end else 0.0
            self.host.carry()
            self.pump_all()
        finally:
            self._inside -= 1

    def failed(self) -> bool:
        before = self.member.end
        self.host.node.disk_failed()
        if not self.host.node.over and self.member.end < before:
            while self._submitted and self._submitted[-1][0] > self.member.end:
                self._submitted.pop()
            for first in [one for one in self.recent if one >= self.member.end]:
                self.recent_octets -= int(self.recent.pop(first).size())
            self.unsynced_since = 0.0
        self.host.carry()
        return not self.host.node.over

    def committed(self, end: int) -> None:
        now = time.monotonic()
        while self._submitted and self._submitted[0][0] <= end:
            self.commit_waits.add(int((now - self._submitted.popleft()[1]) * 1e6), 1)
        self._tell(lambda: self.log.committed_to(end))

    def promised(self, end: int) -> None:
        self._tell(lambda: self.log.promised_to(end))

    def _tell(self, work: Callable[[], object]) -> None:
        """The log hears of it between two turns, or where it asked for it. Before it is attached it hears nothing: the
        epoch's own batch comes later, and its commit covers all before."""
        if self._inside:
            work()
        elif self.server is not None:
            self.server.between_turns(work)

    # --- to the followers

    def pump_all(self) -> None:
        for number in list(self.leader.streams):
            self.pump(number)

    def pump(self, number: int) -> None:
        """What this follower lacks, as far as it may have it and takes it."""
        to, link = self.leader.streams.get(number), self.host.links.get(number)
        if to is None or link is None:
            return
        flight = self.flights.setdefault(number, Flight())
        while not (link.paused or flight.full() or flight.whole):
            most = self.leader.sendable(to.node)
            if to.sent >= most:
                break
            batch = self.recent.get(to.sent) or flight.ahead.get(to.sent)
            if batch is None:
                if not flight.reading:
                    flight.reading = True
                    self.host.background.task("reading the log for a follower", self._read_back(number, flight))
                break
            end = int(batch.end())
            if end > most:
                break
            self.going[number, to.sent] = batch
            flight.sent(batch)
            self.leader.writable(number, end - to.sent)
            self.host.carry()

    def ship(self, effect: Ship) -> None:
        batch = self.going.pop((effect.stream, effect.first))
        link = self.host.links.get(effect.stream)
        if link is not None:
            link.send_parts(wire.batch(effect.epoch, effect.commit, batch))

    async def _read_back(self, number: int, flight: Flight) -> None:
        """From where the stream is to what is synced now; what comes meanwhile is read in the next round."""
        to = self.leader.streams.get(number)
        try:
            if to is None:
                return
            reading = self.log.reading(to.sent, self.member.synced)
            try:
                while number in self.leader.streams:
                    batches = await self.host.loop.run_in_executor(self.host.reader, reading.next, READ)
                    if not batches:
                        break
                    flight.ahead = {int(one.follows): one for one in batches}
                    if to.sent not in flight.ahead:
                        raise LogError(f"no batch begins at {to.sent:#x}")
                    flight.drained.clear()
                    self.pump(number)
                    if flight.ahead:
                        await flight.drained.wait()
            finally:
                reading.close()
        except (OSError, LogError) as error:
            events("cluster").error("cluster.read_back_failed", reason=str(error))
            self.host.resign(f"the log cannot be read: {error}")
        finally:
            flight.ahead = {}
            flight.reading = False
        self.pump(number)

    def ship_all(self, number: int) -> None:
        """A snapshot, to a follower whose log is empty or too old."""
        flight = self.flights.setdefault(number, Flight())
        flight.whole = True
        self.host.background.task("a snapshot for a follower", self._ship_all(number, flight))

    async def _ship_all(self, number: int, flight: Flight) -> None:
        try:
            while (plan := snapshot.plan(self.log)) is None:
                await asyncio.sleep(SNAPSHOT_AGAIN)
            try:
                to, link = self.leader.streams.get(number), self.host.links.get(number)
                if to is None or link is None:
                    return
                to.sent = plan.position
                events("cluster").info(
                    "cluster.snapshot_begins", node=self.host.members.name_of(link.node), files=len(plan.files)
                )
                await self._send_plan(link, plan)
            finally:
                snapshot.release(self.log)
        except (OSError, LogError) as error:
            events("cluster").error("cluster.snapshot_failed", reason=str(error))
            self.host.lose(number)
            return
        finally:
            flight.whole = False
        self.pump(number)

    async def _send_plan(self, link: Link, plan: snapshot.Snapshot) -> None:
        epochs = [list(pair) for pair in zip(plan.epochs.numbers, plan.epochs.firsts, strict=True)]
        link.send(
            wire.said(
                wire.SNAPSHOT,
                {
                    "epoch": self.leader.epoch,
                    "log_id": plan.log_id,
                    "position": plan.position,
                    "epochs": epochs,
                },
            )
        )
        pieces = plan.pieces(READ)
        while (piece := await self.host.loop.run_in_executor(self.host.reader, next, pieces, None)) is not None:
            while link.paused and link.open:
                await asyncio.sleep(0.005)
            if not link.open:
                return
            link.send(wire.piece(PieceSaid(piece.name, piece.offset, piece.data, piece.last)))
        link.send(wire.frame(wire.INSTALL, plan.manifest))

    def acknowledged(self, number: int, node: int, end: int) -> None:
        """After the rules were told."""
        now = time.monotonic()
        if end > self.reached.get(node, -1):
            self.reached[node] = end
            self.progress[node] = now
        flight = self.flights.get(number)
        if flight is not None:
            flight.acknowledged(end, self.ack_waits)
        self._admit(node, now)
        self.pump(number)

    def gone(self, number: int, node: int) -> None:
        """The stream ended: whoever owes something on it is dropped at the next look."""
        flight = self.flights.pop(number, None)
        if flight is not None:
            flight.drained.set()
        for key in [key for key in self.going if key[0] == number]:
            del self.going[key]
        self.near.pop(node, None)
        self.progress[node] = 0.0

    # --- time

    def tick(self, now: float) -> None:
        if now - self.ticked > LATE:
            for node in self.progress:
                self.progress[node] = now
            self.unsynced_since = now if self.unsynced_since else 0.0
        self.ticked = now
        ttl = self.host.ttl
        if self.unsynced_since and now - self.unsynced_since > ttl:
            self.host.resign("the disk has not taken a batch for too long")
            return
        if self._alone(now, ttl):
            self.host.resign("neither etcd nor any node in sync has been heard for too long")
            return
        self._drop_late(now)
        self._look_at_joiners(now)
        self._look_at_replicas()
        if now - self.floored >= FLOOR:
            self.floored = now
            self._hold_back()
            if self.leader.serves() and not self.leader.proposals.doubts:
                self.leader.note_floor()
                self.host.carry()
        if now - self.beaten >= BEAT:
            self.beaten = now
            self._beat(now)

    def _beat(self, now: float) -> None:
        life = Life(self.leader.epoch, self.member.commit, time.time_ns() // 1000, self.host.etcd_answers(now))
        data = wire.beat(life)
        for number in list(self.leader.streams):
            link = self.host.links.get(number)
            if link is None:
                continue
            if now - link.heard > self.host.ttl:
                self.host.lose(number)
            else:
                self.flights.setdefault(number, Flight()).beats.append((time.time(), now))
                link.send(data)

    def answered_beat(self, number: int, node: int, micros: int) -> None:
        """What its clock said when the beat came there. It came between then and now, so that much is uncertain."""
        flight = self.flights.get(number)
        if flight is None or not flight.beats:
            return
        sent, began = flight.beats.popleft()
        took = time.monotonic() - began
        apart = micros / 1e6 - (sent + took / 2)
        certain = max(0.0, abs(apart) - took / 2)
        before = self.skews.get(node, 0.0)
        now = self.skews[node] = certain if apart > 0 else -certain
        over = [abs(one) > SKEW for one in (before, now)]  # twice, as our own clock may just have been set
        name = self.host.members.name_of(node)
        if all(over) and node not in self._apart:
            self._apart.add(node)
            events("cluster").warning("cluster.clocks_apart", node=name, seconds=round(now, 2))
        elif not any(over) and node in self._apart:
            self._apart.remove(node)
            events("cluster").info("cluster.clocks_agree", node=name)

    def _look_at_replicas(self) -> None:
        """Publishers are told that they wait, as for a disk that is full."""
        too_few = self.leader.serves() and len(self.leader.certain()) < self.leader.min_in_sync
        server = self.server
        if server is None or server.broker.services.pressure.too_few == too_few:
            return
        in_sync, wanted = len(self.leader.certain()), self.leader.min_in_sync
        if too_few:
            events("cluster").error("cluster.too_few", in_sync=in_sync, wanted=wanted)
        else:
            events("cluster").info("cluster.enough", in_sync=in_sync, wanted=wanted)
        server.broker.services.pressure.too_few = too_few
        server.between_turns(server.broker.update_alarms)

    def _alone(self, now: float, ttl: float) -> bool:
        """A leader whose lease has run out and that hears nobody who counts: somebody else may lead by now."""
        others = self.leader.required() - {self.member.node}
        if not others or self.host.keeper.holds() or now - self.began < ttl:
            return False
        heard = [link.heard for link in self.host.links.values() if link.node in others]
        return now - max(heard, default=0.0) > ttl

    def _drop_late(self, now: float) -> None:
        if self.leader.proposals.doubts:
            return
        for node in self.leader.proposals.base.in_sync - {self.member.node}:
            if self.leader.acked.get(node, 0) >= self.member.end:
                self.progress[node] = now
            elif now - self.progress.setdefault(node, now) > self.host.settings.cluster_ack_timeout:
                name = self.host.members.name_of(node)
                events("cluster").warning("cluster.follower_dropped", node=name)
                if self._connected(node) and self.lapses.late(node, now):
                    events("cluster").error(
                        "cluster.follower_stays_out", node=name, seconds=round(self.lapses.stay_out)
                    )
                self.near.pop(node, None)  # it has to keep up anew
                self.leader.drop(node)
                self.host.carry()
                return

    def _connected(self, node: int) -> bool:
        """One that is away costs a wait once, and not each time it comes back."""
        return any(to.node == node for to in self.leader.streams.values())

    def _look_at_joiners(self, now: float) -> None:
        """Who is not in sync keeps up if it has what was committed at the last look."""
        for to in list(self.leader.streams.values()):
            if self.leader.acked.get(to.node, -1) >= self.commit_before:
                self.near.setdefault(to.node, now)
            else:
                self.near.pop(to.node, None)
            self._admit(to.node, now)
        self.commit_before = self.member.commit

    def _admit(self, node: int, now: float) -> None:
        base = self.leader.proposals.base
        if node in base.in_sync or self.leader.proposals.doubts or now - self.near.get(node, now) < STEADY:
            return
        if self.lapses.left(node, now):
            if len(base.in_sync) >= max(self.leader.min_in_sync, 2):
                return
            self.lapses.forgive(node)  # a node that is late at times is better than none
        if self.leader.may_join(node):
            events("cluster").info("cluster.follower_in_sync", node=self.host.members.name_of(node))
            self.leader.admit(node)
            self.host.carry()

    def _hold_back(self) -> None:
        """Batches that a node will ask for when it is back; from the first, while one has not been heard of."""
        if self.server is not None:
            name_of = self.host.members.name_of
            heard = {name_of(node) for node in (*self.reached, self.member.node)}
            away = any(name_of(node) not in heard for node in self.host.members.numbers())
            self.log.hold_back(0 if away else min(self.reached.values(), default=-1), KEEP)

    def batches_behind(self, position: int) -> int | None:
        """How many batches somebody lacks who has everything before this position; None: more than are remembered."""
        oldest = next(iter(self.recent), self.member.end)
        if position < oldest:
            return None
        return sum(first >= position for first in reversed(self.recent))

    # --- its end

    def hold(self, held: bool) -> None:
        """No further batch is begun, as another node is to lead; or they are again."""
        if self.server is not None:
            self.server.between_turns(lambda: self.log.hold_batches(held))

    def has_all(self, node: int) -> bool:
        """Whether this node has everything that was begun, and all of it is committed."""
        member = self.member
        return self.leader.acked.get(node, 0) >= member.end and member.commit >= member.end

    def everybody_has_all(self) -> bool:
        others = self.leader.proposals.base.in_sync - {self.member.node}
        return all(self.leader.acked.get(node, 0) >= self.member.end for node in others)
