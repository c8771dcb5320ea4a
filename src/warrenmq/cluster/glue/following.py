"""A follower's host: whom to call, and when to try to lead.

Duty: the call to the leader, again and again; what came on its stream, into the rules; and the three reasons to
campaign: the leader's key in etcd is gone, all its ports refuse, or it said that it goes. As long as its stream lives
there is none. **When, never whether**: a campaign is safe at any moment. Not here: etcd and the sockets (``node.py``).
"""

from __future__ import annotations

import asyncio
import random
import time

from warrenmq.cluster import wire
from warrenmq.cluster.config import NOBODY, Config
from warrenmq.cluster.effects import Connect
from warrenmq.cluster.glue.host import Host
from warrenmq.cluster.glue.link import Link
from warrenmq.cluster.glue.standing import paused
from warrenmq.cluster.messages import Batch, Batches, Beat, Hello, Snapshot, TooOld, Welcome
from warrenmq.cluster.wire import Fields, Frame, Life, WireError
from warrenmq.log.epochs import Epochs
from warrenmq.log.format import LogError
from warrenmq.log.replica.receiving import Incoming
from warrenmq.log.shipping import ShippedBatch
from warrenmq.server.logging import events

CALL = 0.5  # seconds a call may take
UNPROVEN = 1.0  # and the proof after it
PROBE = 0.3
PAUSE = 0.1  # between two calls
SOON = 0.02  # and between two looks for the leader to whom the one before has handed over
YIELD = 1.0  # seconds that this one is waited for
REFUSALS = 2  # of all its ports, until the leader's process is taken for dead
SPREAD = 0.1  # a candidate waits a random part of it, so that two seldom meet
SILENCE = 1.0  # seconds without a word on a stream, at least, until it is taken for dead


class Following:
    """The host of a node that does not lead."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.arrived: dict[int, ShippedBatch] = {}  # under the numbers that the rules have for them
        self.numbers = 0
        self.calling: Hello | None = None
        self.called_at = 0.0
        self.link: Link | None = None
        self.lost_at = time.monotonic()  # since when there is no stream
        self.refusals = 0
        self.refused_by = NOBODY
        self.resigned = NOBODY
        self.resigned_to = NOBODY  # who is to go first then
        self.campaign_at = 0.0
        self.incoming: Incoming | None = None
        self.pieces: asyncio.Queue[Frame] = asyncio.Queue()

    # --- time

    def tick(self, now: float) -> None:
        node = self.host.node
        link = self.link
        if link is not None:
            if now - link.heard > max(SILENCE, self.host.ttl / 2):
                events("cluster").warning("cluster.leader_silent", seconds=round(now - link.heard, 2))
                self.host.lose(link.number)
            return
        self.host.keeper.pause = PAUSE if self.resigned_to == NOBODY else SOON
        if node.candidate is not None:
            return
        known = node.member.known
        if known is None:
            return
        if self.calling is not None and now - self.called_at > UNPROVEN:
            self._give_up()  # a process that is paused takes calls, and says nothing
        goes = known.leader == self.resigned and now - self.lost_at < YIELD  # it would only be in the way of the next
        if self.calling is None and now - self.called_at >= PAUSE and not goes:
            node.connect()
            self.host.carry()
        reason = self._why_campaign(known)
        if not reason:
            self.campaign_at = 0.0
        elif not self.campaign_at and self.resigned_to == node.member.node:
            self.campaign_at = now  # nobody else tries
            self.tick(now)
        elif not self.campaign_at:
            self.campaign_at = now + random.uniform(0, SPREAD)
        elif now >= self.campaign_at and self.host.keeper.holds():
            self.campaign_at = 0.0
            self.lost_at = now
            events("cluster").warning("cluster.campaign", epoch=known.epoch + 1, reason=reason)
            node.campaign()
            self.host.carry()

    def _why_campaign(self, known: Config) -> str:
        if not self.host.node.follower.may_campaign(known):
            return ""
        if known.leader == NOBODY:
            return "nobody leads"
        if known.leader == self.host.node.member.node:
            return "this node led before it started anew"
        if known.leader == self.resigned:
            if self.resigned_to == self.host.node.member.node:
                return "the leader was transferred to this node"
            if self.resigned_to == NOBODY or time.monotonic() - self.lost_at > YIELD:
                return "" if paused(self.host) else "the leader has resigned"
            return ""
        if paused(self.host):
            return ""
        if known.leader == self.refused_by and self.refusals >= REFUSALS:
            return "all ports of the leader refuse"
        seen = self.host.seen
        if seen is not None and seen.began > self.lost_at and self.host.alive_key(known.leader) not in seen.values:
            return "the leader's lease has run out"
        return ""

    # --- the call

    def call(self, effect: Connect) -> None:
        hello = effect.hello
        assert isinstance(hello, Hello)
        self.calling = hello
        self.called_at = time.monotonic()
        self.host.background.task("a call to the leader", self._call(effect.node, hello))

    async def _call(self, leader: int, hello: Hello) -> None:
        place = self.host.members.place_of(leader)
        try:
            if place is None:
                return
            await asyncio.wait_for(self.host.call(*place), CALL)
            self.refusals = 0
        except ConnectionRefusedError:
            await self._refused(leader)
        except (OSError, TimeoutError):
            pass
        else:
            return  # the link says when it is known, or gone
        if self.calling is hello:
            self.calling = None

    def _give_up(self) -> None:
        self.calling = None
        for link in list(self.host.links.values()):
            if link.handshake.calls and link is not self.link:
                link.abort()

    async def _refused(self, leader: int) -> None:
        """Its process is dead if none of its ports takes a call."""
        for host, port in self.host.members.ports_of(leader):
            try:
                _, writer = await asyncio.wait_for(asyncio.open_connection(host, port), PROBE)
                writer.close()
                self.refusals = 0
                return
            except ConnectionRefusedError:
                pass
            except (OSError, TimeoutError):
                self.refusals = 0
                return
        if leader != self.refused_by:
            self.refused_by, self.refusals = leader, 0
        self.refusals += 1

    def link_known(self, link: Link) -> None:
        """The other side is a node: this one says what it has."""
        hello, self.calling = self.calling, None
        node = self.host.node
        if hello is None or node.leader is not None or node.candidate is not None or hello.end != node.member.end:
            link.close()
            return
        self.link = link
        node.follower.connected(link.number)
        epochs = [list(pair) for pair in zip(hello.epochs.numbers, hello.epochs.firsts, strict=True)]
        settings, replica = self.host.settings, self.host.replica
        link.send(
            wire.said(
                wire.HELLO,
                {
                    "cluster": settings.cluster,
                    "name": self.host.name,
                    "node": hello.node,
                    "log_id": replica.log_id,
                    "end": hello.end,
                    "epochs": epochs,
                },
            )
        )

    def link_gone(self, link: Link) -> None:
        if link is self.link:
            self.link = None
            self.lost_at = time.monotonic()
            self.host.keeper.look()
        if self.incoming is not None:
            self.incoming.abandon()
            self.incoming = None
        self.calling = None

    # --- what the leader says

    def said(self, link: Link, frame: Frame) -> None:
        if self.incoming is not None and frame.kind not in (wire.BEAT, wire.RESIGN):
            self.pieces.put_nowait(frame)  # in its order, when what came before is on disk
            return
        kind = frame.kind
        if kind == wire.BATCH:
            said = wire.read_batch(frame.payload)
            self.numbers += 1
            self.arrived[self.numbers] = said.batch
            batch = Batch(int(said.batch.epoch), int(said.batch.follows), int(said.batch.end()), self.numbers)
            self.host.said(link, Batches(said.epoch, [batch], said.commit))
            self.arrived.pop(self.numbers, None)
        elif kind == wire.BEAT:
            self._beat(link, wire.read_beat(frame.payload))
        elif kind == wire.WELCOME:
            self._welcome(link, Fields(frame))
        elif kind == wire.TOO_OLD:
            events("cluster").warning("cluster.log_too_old", hint="this node takes a new number and a snapshot")
            self.host.said(link, TooOld(Fields(frame).number("epoch")))
        elif kind == wire.SNAPSHOT:
            self._snapshot(link, Fields(frame))
        elif kind == wire.RESIGN:
            known = self.host.node.member.known
            leader = known.leader if known is not None else NOBODY
            now_resigned = leader != self.resigned
            self.resigned = leader
            to = Fields(frame).number("to") if frame.payload else NOBODY
            if to != NOBODY or now_resigned:  # who is to go first was said before, perhaps, and then once more without
                self.resigned_to = to
            link.close()
            self.tick(time.monotonic())
        elif kind in (wire.BYE, wire.REFUSE):
            if kind == wire.REFUSE:
                events("cluster").error("cluster.refused", peer=link.peer, reason=Fields(frame).text("reason")[:400])
            link.close()
        else:
            raise WireError(f"{frame} from a leader")

    def _beat(self, link: Link, life: Life) -> None:
        now = time.time_ns() // 1000
        if self.incoming is None:
            self.host.said(link, Beat(life.epoch, life.commit))
        if link.open:
            member = self.host.node.member
            link.send(wire.beat(Life(life.epoch, member.commit, now, self.host.etcd_answers(time.monotonic()))))

    def _welcome(self, link: Link, fields: Fields) -> None:
        replica = self.host.replica
        log_id = fields.number("log_id")
        self.host.check_certificate(link, fields.text("name"))
        if replica.log_id != log_id:
            if self.host.node.member.end:
                link.refuse("its log is another one than this node's: empty the data folder to take that one")
                return
            replica.adopt(log_id)
        events("cluster").info("cluster.following", leader=fields.text("name"), epoch=fields.number("epoch"))
        self.resigned = self.resigned_to = NOBODY  # whoever that was, this one leads
        self.host.keeper.pause = self.host.ttl / 3
        self.host.said(link, Welcome(fields.number("epoch"), fields.number("cut"), fields.number("commit")))

    # --- a snapshot

    def _snapshot(self, link: Link, fields: Fields) -> None:
        replica = self.host.replica
        if self.host.node.member.end:
            link.refuse("a snapshot for a log that is not empty")
            return
        if replica.log_id != fields.number("log_id"):
            replica.adopt(fields.number("log_id"))
        epochs = Epochs()
        for number, first in fields.pairs("epochs"):
            epochs.wrote(number, first)
        self.incoming = replica.receive()
        self.pieces = asyncio.Queue()
        events("cluster").info("cluster.snapshot_begins", octets_before=fields.number("position"))
        install = self._install(link, self.incoming, fields.number("epoch"), epochs, fields.number("position"))
        self.host.background.task("a snapshot from the leader", install)

    async def _install(self, link: Link, incoming: Incoming, epoch: int, epochs: Epochs, position: int) -> None:
        """Pieces in the order in which they come, on a thread; then all of it at once."""
        loop, pieces = self.host.loop, self.pieces
        try:
            while incoming is self.incoming:
                frame = await pieces.get()
                if frame.kind == wire.PIECE:
                    one = wire.read_piece(frame.payload)
                    await loop.run_in_executor(self.host.reader, incoming.piece, one.name, one.offset, one.data)
                elif frame.kind == wire.INSTALL:
                    await loop.run_in_executor(self.host.reader, incoming.finish, frame.payload)
                    break
                else:
                    raise WireError(f"{frame} in the middle of a snapshot")
            if incoming is not self.incoming:
                return
            self.host.reopen()
            self.incoming = None
            batch = Batch(epochs.last(), 0, position, 0)
            events("cluster").info("cluster.snapshot_installed", position=position)
            self.host.said(link, Snapshot(epoch, epochs, [batch]))
            while not pieces.empty() and link.open:
                self.said(link, pieces.get_nowait())
        except (OSError, LogError, WireError) as error:
            events("cluster").error("cluster.snapshot_failed", reason=str(error))
            if self.incoming is incoming:
                self.incoming = None
                incoming.abandon()
            link.close()
