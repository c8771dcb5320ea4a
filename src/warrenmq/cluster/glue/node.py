"""One node of a cluster: what the rules ask for is done, and what happens is told to them.

Duty: the effects of ``rules.py`` in their order, and its events: what etcd answers, what other nodes say, what the disk
has. One object for the whole start of a process; a leader that is one no longer starts the process anew. What a leader
does besides is ``leading.py``'s, what a follower does ``following.py``'s. Everything here runs on the event loop; the
calls that block have threads (``asking.py``, and those of the log).
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import socket
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import warrenmq
from warrenmq.cluster import etcd, wire
from warrenmq.cluster.config import Config
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
from warrenmq.cluster.etcd import EtcdError
from warrenmq.cluster.glue import operating, settings
from warrenmq.cluster.glue.asking import Asker, LeaseKeeper, Seen
from warrenmq.cluster.glue.following import Following
from warrenmq.cluster.glue.host import Host
from warrenmq.cluster.glue.leading import Leading
from warrenmq.cluster.glue.link import Link, Owner
from warrenmq.cluster.glue.members import Members
from warrenmq.cluster.glue.orders import REMOVED, LeaderOrders
from warrenmq.cluster.glue.security import Security
from warrenmq.cluster.glue.standing import Epoch, gathered
from warrenmq.cluster.glue.store import Store
from warrenmq.cluster.handshake import NONCE, Handshake
from warrenmq.cluster.messages import Ack, Batches, Hello, Message, TooOld, Welcome
from warrenmq.cluster.rules import Node, Rules
from warrenmq.cluster.value import ValueRefused, decoded, encoded, shown
from warrenmq.cluster.wire import Fields, Frame, WireError
from warrenmq.log.epochs import Epochs
from warrenmq.log.files import Files
from warrenmq.log.format import LogError
from warrenmq.log.log import Log
from warrenmq.log.recovery import Recovered
from warrenmq.log.replica.replica import Replica, ReplicaListener
from warrenmq.log.runner import ThreadRunner
from warrenmq.log.settings import LogSettings
from warrenmq.server.app import Cluster, Server
from warrenmq.server.background import Background, Periodic
from warrenmq.server.cluster_orders import Orders
from warrenmq.server.config import Settings
from warrenmq.server.listening import WILDCARDS, Address
from warrenmq.server.listening import shown as place
from warrenmq.server.logging import events
from warrenmq.server.standing import Standing
from warrenmq.server.web_sockets import WebSockets

TICK = 0.05
UPKEEP = 5  # milliseconds of a follower's housekeeping in each
CALL_PATIENCE = 1.0  # seconds until a call of etcd has no answer
AGAIN = 0.2  # seconds until a write to etcd that was not answered is sent again
STRANGERS = 64  # connections that have not proven to be a node, at once
STRANGER = 5.0  # seconds they have for it
GRACE = 300.0  # seconds in which a start as a leader may hold the event loop
LAST_ACKS = 2.0  # seconds a leader that is stopped waits for its followers to have everything
MARK = "cluster.json"


HandOver = Callable[[], Awaitable[WebSockets]]


class Ears(ReplicaListener):
    """The host, as the log of a follower knows it."""

    def __init__(self, host: NodeHost) -> None:
        self._host = host

    def synced(self, number: int) -> None:
        self._host.synced(number)

    def failed(self, reason: str) -> None:
        self._host.failed(reason)


class NodeHost(Host, Owner, Cluster):
    """A node's process."""

    def __init__(self, settings: Settings, security: Security) -> None:
        assert settings.cluster is not None
        self.settings = settings
        self.security = security
        self.name = settings.cluster_node or socket.gethostname()
        self.ttl = float(settings.cluster_ttl)
        self.prefix = f"/warren/{settings.cluster}/0/"
        self.boot = f"{secrets.randbits(64):016x}"
        self.loop = asyncio.get_running_loop()
        self.background = Background(self.loop)
        self.reader = ThreadPoolExecutor(1, "warren-ship")
        self.over: asyncio.Future[str] = self.loop.create_future()  # why this start of the process ends
        self.leads: asyncio.Future[None] = self.loop.create_future()
        self.links: dict[int, Link] = {}
        self.numbers = 0
        self.seen: Seen | None = None
        self.members = Members()
        self.removed: set[int] = set()
        self.address: tuple[str, int] = ("", 0)
        self.leading: Leading | None = None
        self.server: Server | None = None
        self.following: Following
        self.asker: Asker
        self._opened: tuple[Log, Recovered] | None = None
        self._carrying = False
        self._admitted = False  # whether nobody else runs under this node's number
        self._complaint = ""
        self._turned = time.monotonic()
        self._starting_since = 0.0
        self._serves: asyncio.Future[None] = self.loop.create_future()
        self._runners: list[ThreadRunner] = []
        self._listener: asyncio.Server | None = None
        self._ticking: Periodic | None = None
        self._stopping = False
        self._commit_told = 0
        self._epoch = Epoch()
        self._http: tuple[list[Address], list[Address]] = ([], [])  # where it serves HTTP, and HTTPS
        self._hand_over: HandOver
        self._listens = False
        self._orders: LeaderOrders | None = None

    # --- start and end

    async def start(self) -> None:
        """The log opened, the port open, etcd asked. Raises LogError and OSError."""
        folder = str(self.settings.data_dir)
        self.replica = await self.loop.run_in_executor(self.reader, Replica.open, folder, Files(), LogSettings())
        self._attach()
        rules = Rules()
        rules.min_in_sync = self.settings.cluster_min_in_sync
        replica = self.replica
        start = secrets.randbits(62) | 1
        self.node = Node(rules, replica.node, start, replica.epochs.copy(), replica.end, replica.kept)
        self.following = Following(self)
        await self._listen()
        context = self.security.etcd
        endpoints = [(host, port) for host, port in self.settings.etcd_places()]
        post = self.loop.call_soon_threadsafe
        self.asker = Asker(Store(endpoints, context, CALL_PATIENCE), post)
        self.keeper = LeaseKeeper(
            Store(endpoints, context, CALL_PATIENCE),
            self.prefix,
            self.alive_key(replica.node),
            int(self.ttl),
            self._gate,
            post,
            self._saw,
            self._etcd_failed,
        )
        self.keeper.start(self._life())
        self.node.begin()
        self.carry()
        self._ticking = self.background.every("the cluster's clock", self._tick)
        events("cluster").info("cluster.node_started", name=self.name, node=shown(replica.node), end=replica.end)

    def _attach(self) -> None:
        replica = self.replica
        post = self._post_done
        committer, worker = ThreadRunner(post, "warren-commit"), ThreadRunner(post, "warren-maintain")
        self._runners = [committer, worker]
        replica.attach(Ears(self), committer, worker)

    def _post_done(self, number: int) -> None:
        try:
            self.loop.call_soon_threadsafe(self._done, number)
        except RuntimeError:
            pass  # the loop is closed

    def _done(self, number: int) -> None:
        if self.leading is None:
            self.replica.done(number)

    def reopen(self) -> None:
        """After a snapshot: the folder is another one now."""
        self.replica.close()
        for runner in self._runners:
            runner.stop()
        self.replica = Replica.open(str(self.settings.data_dir), Files(), LogSettings())
        self._attach()

    async def stop(self) -> None:
        """Before the end of the process: those who follow may go on at once."""
        if self._stopping:
            return
        self._stopping = True
        leading = self.leading
        if leading is not None:
            until = time.monotonic() + LAST_ACKS
            while not leading.everybody_has_all() and time.monotonic() < until:
                await asyncio.sleep(0.005)
        if self._ticking is not None:
            self._ticking.cancel()
        if self._listener is not None:
            self._listener.close()
        for link in list(self.links.values()):
            link.send(wire.frame(wire.RESIGN if leading is not None else wire.BYE, b""))
            link.close()
        await self.loop.run_in_executor(None, self.keeper.stop, CALL_PATIENCE)
        self.asker.stop()
        if leading is None:
            self.replica.close()
        await asyncio.sleep(0.01)

    def let_go(self, reason: str) -> None:
        """Before the process starts anew: followers learn that they may go on."""
        events("cluster").warning("cluster.leaves", reason=reason)
        for link in list(self.links.values()):
            if self.leading is not None:
                link.send(wire.frame(wire.RESIGN, b""))
            link.close()

    def resign(self, reason: str) -> None:
        self.node.resign(reason)
        self.carry()

    # --- what the server asks of a leader (Cluster)

    def open(self) -> tuple[Log, Recovered]:
        assert self._opened is not None
        return self._opened

    def attached(self, server: Server) -> None:
        leading = self.leading
        assert leading is not None
        leading.server = self.server = server
        leading.log.attach_shipping(leading)
        leading.log.begin_epoch()

    async def ready(self) -> None:
        """The epoch's own batch is committed: clients may come."""
        await self._serves

    def listening(self) -> None:
        self._starting_since = 0.0
        self._listens = True
        self.keeper.say(self._life(), {self.prefix + "members/" + shown(self.replica.node): self._life()})

    # --- what is told of it

    def web_listens(self, http: list[Address], https: list[Address], hand_over: HandOver) -> None:
        """Where HTTP is served, whoever leads; said before ``start``."""
        self._http = (http, https)
        self._hand_over = hand_over

    async def web_sockets(self) -> WebSockets:
        return await self._hand_over()

    def listens(self) -> bool:
        return self._listens

    def orders(self) -> Orders:
        assert self.leading is not None
        if self._orders is None:
            self._orders = LeaderOrders(self, self.leading, self.asker)
        return self._orders

    def standing(self) -> Standing:
        return gathered(self, self.leading, self._epoch, [self.keeper.store, self.asker.store])

    # --- effects

    def carry(self) -> None:
        """What the rules ask for, in their order, until they ask for nothing."""
        if self._carrying:
            return
        self._carrying = True
        try:
            effects = self.node.effects
            while effects and not self.over.done():
                self._carry(effects.pop(0))
            commit = self.node.member.commit
            if self.leading is None and commit != self._commit_told and not self.over.done():
                self._commit_told = commit
                self.replica.committed_to(commit)
        except Exception as error:  # half of what the rules asked for was done: this start cannot go on
            events("cluster").exception("cluster.node_failed")
            self._end(f"an error: {error!r}")
        finally:
            self._carrying = False

    def _carry(self, effect: Effect) -> None:
        leading = self.leading
        if isinstance(effect, Say):
            self._say(effect.stream, effect.message)
        elif isinstance(effect, Ship):
            assert leading is not None
            leading.ship(effect)
        elif isinstance(effect, (Write, Sync, Cut)):
            if leading is None:  # a leader's log has done it
                self._carry_log(effect)
        elif isinstance(effect, Committed):
            assert leading is not None
            leading.committed(effect.end)
            if not self._serves.done() and leading.leader.serves():
                self._serves.set_result(None)
        elif isinstance(effect, Promised):
            assert leading is not None
            leading.promised(effect.end)
        elif isinstance(effect, Look):
            self.keeper.look()
        elif isinstance(effect, Propose):
            self._propose(effect)
        elif isinstance(effect, Connect):
            self.following.call(effect)
        elif isinstance(effect, Close):
            link = self.links.get(effect.stream)
            if link is not None:
                link.send(wire.frame(wire.BYE, b""))
                link.close()
        elif isinstance(effect, ShipAll):
            assert leading is not None
            leading.ship_all(effect.stream)
        elif isinstance(effect, Install):
            pass  # it was in place before the rules heard of it
        elif isinstance(effect, Lead):
            self._lead(effect.epoch)
        elif isinstance(effect, Renew):
            self._renew(effect.keep)
        elif isinstance(effect, Restart):
            self._end(effect.reason)

    def _carry_log(self, effect: Effect) -> None:
        replica = self.replica
        try:
            if isinstance(effect, Write):
                replica.write(self.following.arrived.pop(effect.batch.payload))
            elif isinstance(effect, Sync):
                replica.sync(effect.number)
            elif isinstance(effect, Cut):
                replica.cut(effect.end)
        except LogError as error:
            events("cluster").error("cluster.replica_refused", reason=str(error))
            self._end(f"the log refuses: {error}")

    def _lead(self, epoch: int) -> None:
        self._starting_since = time.monotonic()
        events("cluster").warning("cluster.leading", epoch=epoch, end=self.node.member.end)
        try:
            self._opened = self.replica.promote(epoch)
        except (LogError, OSError) as error:
            self._end(f"cannot lead: {error}")
            return
        for runner in self._runners:
            runner.stop()
        if self.replica.scanned:
            events("cluster").warning("cluster.scanned", seconds=round(time.monotonic() - self._starting_since, 3))
        self.leading = Leading(self, self._opened[0])
        self.keeper.pause = self.ttl / 3
        if not self.leads.done():
            self.leads.set_result(None)

    def _renew(self, keep: int) -> None:
        events("cluster").error(
            "cluster.node_renewed", keep=keep, hint="this node becomes another one and takes what it lacks"
        )
        self.replica.renew(keep)
        self._end("the node has a new number")

    def _end(self, reason: str) -> None:
        if not self.over.done():
            self.over.set_result(reason)

    # --- the replica

    def synced(self, number: int) -> None:
        self.node.synced(number)
        self.carry()

    def failed(self, reason: str) -> None:
        events("cluster").error("cluster.disk_failed", reason=reason)
        self.node.disk_failed()
        self.carry()

    # --- etcd

    def _propose(self, effect: Propose) -> None:
        key = self.prefix + "config"
        request = etcd.swap(key, encoded(effect.base), encoded(effect.value))
        self.asker.ask(request, partial(self._proposed, effect.value), self._unanswered)

    def _proposed(self, value: Config, status: int, raw: bytes) -> None:
        try:
            answer = etcd.swapped(status, raw)
        except EtcdError as error:
            self._unanswered(str(error))
            return
        current = None if answer.current is None else self._config(answer.current)
        self.node.answered(value, answer.accepted, current, answer.store)
        self.carry()

    def _unanswered(self, reason: str) -> None:
        events("cluster").warning("cluster.etcd_unanswered", reason=reason)
        self.background.later(AGAIN, "a write to etcd, again", self._send_again)

    def _send_again(self) -> None:
        if not self.over.done() and not self._stopping:
            self.node.unanswered()
            self.carry()

    def _config(self, raw: bytes) -> Config | None:
        try:
            return decoded(raw)
        except ValueRefused as error:
            self._complain("cluster.config_refused", reason=f"{self.prefix}config: {error}")
            return None

    def _complain(self, event: str, **fields: object) -> None:
        """Once, until something else is wrong."""
        said = f"{event} {fields}"
        if said != self._complaint:
            self._complaint = said
            events("cluster").error(event, **fields)

    def _etcd_failed(self, reason: str) -> None:
        self._complain("cluster.etcd_silent", reason=reason)

    def _saw(self, seen: Seen) -> None:
        """All that stands in etcd, read when the lease was renewed."""
        if self.over.done() or self._stopping:
            return
        first = self.seen is None
        self.seen = seen
        wrong = self.members.take(seen.values, self.prefix + "members/")
        if wrong:
            self._complain("cluster.member_refused", reason=f"{wrong} is none of Warren's")
        self._take_removed(seen)
        if not self._admitted:
            self._admit_self(seen)
            return
        if first:
            self.keeper.look()
        raw = seen.values.get(self.prefix + "config")
        if raw is None:
            self._found_cluster(seen)
            return
        config = self._config(raw)
        if config is None:
            return
        if config.store != seen.store:
            self._complain(
                "cluster.etcd_another", reason="this etcd is another one than the value in it was written for",
                hint="it was restored or set up anew; the page on clusters says what to do",
            )  # fmt: skip
            return
        if config.epoch < self.node.member.epochs.last():
            self._complain("cluster.etcd_old", reason=f"epoch {config.epoch} in etcd is older than this node's log")
            return
        self._complaint = ""
        mark = Path(self.settings.data_dir) / MARK
        if not mark.exists():
            mark.write_text(json.dumps({"cluster": self.settings.cluster, "store": f"{seen.store:x}"}) + "\n")
        self.node.learned(config, seen.store)
        self.carry()

    def _take_removed(self, seen: Seen) -> None:
        """Who may not come back is no member, whatever he says."""
        prefix = self.prefix + REMOVED
        found = set()
        for key in seen.values:
            if key.startswith(prefix):
                try:
                    found.add(int(key.removeprefix(prefix), 16))
                except ValueError:
                    self._complain("cluster.member_refused", reason=f"{key} is none of Warren's")
        self.removed = found
        for number in found:
            self.members.forget(number)

    def _admit_self(self, seen: Seen) -> None:
        """Unless somebody runs under this number somewhere else: a copy of the folder."""
        wanted = settings.version(seen.values, self.prefix)
        if wanted > wire.HIGHEST:
            self._complain(
                "cluster.too_old", reason=f"the cluster uses version {wanted}, and this node knows {wire.HIGHEST}",
                hint="upgrade this node",
            )  # fmt: skip
            return
        raw = seen.values.get(self.alive_key(self.replica.node))
        if raw is not None:
            try:
                other = json.loads(raw)
            except ValueError:
                other = {}
            if other.get("boot") != self.boot and other.get("address") != list(self.address):
                self._complain(
                    "cluster.node_twice", reason=f"this node's number is in use at {other.get('address')}",
                    hint="a folder must not be copied: empty this one, or stop the other",
                )  # fmt: skip
                return
        self._admitted = True
        self.keeper.say(self._life(), {self.prefix + "members/" + shown(self.replica.node): self._life()})

    def _found_cluster(self, seen: Seen) -> None:
        """Nothing stands there: the first node of a cluster begins it with what it has."""
        if (Path(self.settings.data_dir) / MARK).exists() or self.node.member.known is not None:
            self._complain(
                "cluster.etcd_empty", reason=f"there is no {self.prefix}config, and this node was in a cluster before",
                hint="etcd lost its data; the page on clusters says what to do",
            )  # fmt: skip
            return
        others = [key for key in seen.values if key.startswith(self.prefix + "members/")]
        if others and others != [self.prefix + "members/" + shown(self.replica.node)] and not self.replica.end:
            return  # somebody else is here, and this node has nothing to begin with
        value = Config(
            int(self.replica.last_epoch), 0, frozenset((self.replica.node,)), 0, 1, secrets.randbits(62), seen.store
        )
        events("cluster").warning("cluster.begins", node=shown(self.replica.node))
        self.asker.ask(etcd.swap(self.prefix + "config", None, encoded(value)), self._began, self._etcd_failed)

    def _began(self, status: int, raw: bytes) -> None:  # noqa: ARG002 (what stands there is read again, whoever wrote it)
        self.keeper.look()

    def alive_key(self, node: int) -> str:
        return self.prefix + "alive/" + shown(node)

    def etcd_answers(self, now: float) -> bool:
        return self.seen is not None and now - self.seen.began < self.ttl

    def _life(self) -> bytes:
        server = self.server
        amqp = self._reachable([*server.amqp_addresses, *server.tls_addresses]) if server else []
        http, https = (self._reachable(found) for found in self._http)
        urls = [f"{scheme}://{place(one)}" for scheme, found in (("https", https), ("http", http)) for one in found]
        return json.dumps(
            {
                "boot": self.boot,
                "version": warrenmq.__version__,
                "wire": wire.HIGHEST,
                "name": self.name,
                "address": list(self.address),
                "amqp": amqp,
                "http": http + https,
                "url": urls[0] if urls else "",
            }
        ).encode()

    def _reachable(self, addresses: list[Address]) -> list[Address]:
        """For others, who come to themselves where this one says that it listens everywhere."""
        host = self.settings.cluster_host
        return list(dict.fromkeys((host if one in WILDCARDS else one, port) for one, port in addresses))

    def _gate(self) -> bool:
        """Called on the lease's thread: whether the node may be taken for alive. Its event loop must have turned, and
        its disk must not have been stuck for long."""
        if not self._admitted or self.over.done():
            return False
        now = time.monotonic()
        if self._starting_since:
            return now - self._starting_since < GRACE
        return now - self._turned < self.ttl / 2

    def _tick(self) -> float:
        now = self._turned = time.monotonic()
        if self.over.done():
            return TICK
        known = self.node.member.known
        if known is not None:
            self._epoch.seen(known.epoch)
        for link in [link for link in self.links.values() if not link.handshake.done and now - link.heard > STRANGER]:
            link.refuse("no proof in time")
        if self.leading is not None:
            if self.server is not None:
                self.leading.tick(now)
        else:
            self.following.tick(now)
            if self.leading is None and not self.over.done():
                self.replica.maintain(int(now * 1000), UPKEEP)
        return TICK

    # --- other nodes

    async def _listen(self) -> None:
        def made() -> Link:
            strangers = [link for link in self.links.values() if not link.handshake.done and link.open]
            if len(strangers) >= STRANGERS:
                strangers[0].abort()
            self.numbers += 1
            link = Link(self, self._handshake(False), self.numbers)
            self.links[link.number] = link
            return link

        settings = self.settings
        self._listener = await self.loop.create_server(
            made, settings.cluster_host, settings.cluster_port, ssl=self.security.called
        )
        port = self._listener.sockets[0].getsockname()[1]
        self.address = (settings.cluster_host, port)

    def _handshake(self, calls: bool) -> Handshake:
        return Handshake(calls, self.security.mode, self.security.secret, os.urandom(NONCE))

    async def call(self, host: str, port: int) -> None:
        self.numbers += 1
        link = Link(self, self._handshake(True), self.numbers)
        self.links[link.number] = link
        try:
            await self.loop.create_connection(
                lambda: link,
                host,
                port,
                ssl=self.security.calling,
                server_hostname=host if self.security.calling else None,
            )
        except BaseException:
            self.links.pop(link.number, None)
            raise

    def check_certificate(self, link: Link, name: str) -> None:
        if self.security.called is not None and name not in link.names():
            raise WireError(f"a certificate for {', '.join(link.names())} from a node that says it is {name!r}")

    def link_known(self, link: Link) -> None:
        if link.handshake.calls:
            self.following.link_known(link)

    def link_said(self, link: Link, frame: Frame) -> None:
        if self.over.done():
            return
        if link.handshake.calls:
            self.following.said(link, frame)
        elif frame.kind == wire.HELLO:
            self._hello(link, Fields(frame))
        elif frame.kind == wire.ACK:
            epoch, end = wire.read_ack(frame.payload)
            self.node.said(link.number, Ack(epoch, end))
            self.carry()
            if self.leading is not None and link.node:
                self.leading.acknowledged(link.number, link.node, end)
        elif frame.kind == wire.BEAT:
            life = wire.read_beat(frame.payload)
            if self.leading is not None and link.node:
                self.leading.answered_beat(link.number, link.node, life.time)
        elif frame.kind == wire.ASK:
            operating.answer(self, link, Fields(frame))
        elif frame.kind == wire.BYE:
            link.close()
        else:
            raise WireError(f"{frame} from a follower")

    def _hello(self, link: Link, fields: Fields) -> None:
        cluster, name, node = fields.text("cluster"), fields.text("name"), fields.number("node")
        if cluster != self.settings.cluster:
            link.refuse(f"this is the cluster {self.settings.cluster!r}, not {cluster!r}")
            return
        self.check_certificate(link, name)
        if self.leading is None:
            link.send(wire.frame(wire.BYE, b""))
            link.close()
            return
        end = fields.number("end")
        if end and fields.number("log_id") != self.replica.log_id:
            link.refuse("this cluster's log is another one than this node's: empty its data folder to let it join")
            return
        if node == self.node.member.node:
            link.refuse("this is the leader's own number: a folder must not be copied; empty it to let it join")
            return
        if node in self.removed:
            link.refuse(
                f"this node was removed from the cluster: `warren cluster add {name}` lets it come back, and with an "
                "empty data folder it comes as a new one"
            )
            return
        link.node = node
        leader = self.node.leader
        if leader is not None:
            leader.readable = int(self.leading.log.readable_from())
        epochs = Epochs()
        for number, first in fields.pairs("epochs"):
            epochs.wrote(number, first)
        hello = Hello(node, epochs, end)
        events("cluster").info("cluster.follower_came", name=name, node=shown(node), end=end)
        self.node.said(link.number, hello)
        self.carry()
        self.leading.pump(link.number)

    def said(self, link: Link, message: Message) -> None:
        if isinstance(message, Batches) and self.node.follower.stream != link.number:
            return
        self.node.said(link.number, message)
        self.carry()

    def _say(self, number: int, message: Message) -> None:
        link = self.links.get(number)
        if link is None:
            return
        if isinstance(message, Ack):
            link.send(wire.ack(message.epoch, message.end))
        elif isinstance(message, Welcome):
            fields: dict[str, object] = {
                "epoch": message.epoch,
                "cut": message.cut,
                "commit": message.commit,
                "log_id": self.replica.log_id,
                "name": self.name,
            }
            link.send(wire.said(wire.WELCOME, fields))
        elif isinstance(message, TooOld):
            link.send(wire.said(wire.TOO_OLD, {"epoch": message.epoch}))

    def link_takes_more(self, link: Link) -> None:
        if self.leading is not None:
            self.leading.pump(link.number)

    def link_gone(self, link: Link) -> None:
        self.links.pop(link.number, None)
        if self._stopping or self.over.done():
            return
        if link.handshake.calls:
            self.following.link_gone(link)
        elif self.leading is not None:
            self.leading.gone(link.number, link.node)
        self.node.ended(link.number)
        self.carry()

    def carried_over(self, node: int) -> Link | None:
        leader = self.node.leader
        for number in leader.streams if leader is not None else ():
            link = self.links.get(number)
            if link is not None and link.open and link.node == node:
                return link
        return None

    def ends(self) -> bool:
        return self._stopping or self.over.done()

    def lose(self, number: int) -> None:
        link = self.links.get(number)
        if link is not None:
            link.abort()
