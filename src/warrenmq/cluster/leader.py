"""The leader of an epoch: what is committed, what may be promised to clients, and who is in sync.

Duty: the epoch's batches and their way to the followers; the count of acknowledgements; the changes of the in-sync set.

Invariants:
- A position is written once in an epoch, and what was shipped never changes: who can no longer write it resigns.
- Every node that etcd may list as in sync counts: it must have acknowledged before a batch is committed. A node that
  joins counts from before the write to etcd, one that leaves until after it, in doubt both.
- A node joins only beyond the epoch's first batch: before that is committed nobody knows how far the leaders before
  had come, and the own commit may be far behind theirs.
"""

from __future__ import annotations

from warrenmq.cluster.config import Config
from warrenmq.cluster.effects import Committed, Lead, Promised, Say, Ship, ShipAll
from warrenmq.cluster.epochs import common_point
from warrenmq.cluster.member import Member
from warrenmq.cluster.messages import Batch, Beat, Hello, TooOld, Welcome
from warrenmq.cluster.proposals import Proposals


class Stream:
    """The way to one follower: which node it is, and what is sent next."""

    def __init__(self, node: int, sent: int) -> None:
        self.node = node
        self.sent = sent


class Leader:
    """One epoch of one node."""

    def __init__(self, member: Member, config: Config, min_in_sync: int) -> None:
        self.member = member
        self.epoch = config.epoch
        self.min_in_sync = min_in_sync
        self.proposals = self.made_proposals(config)
        self.streams: dict[int, Stream] = {}
        self.acked: dict[int, int] = {}
        self.opening = 0  # the end of the epoch's first batch; 0: it is not written yet
        self.readable = -1  # from where on batches can still be read, if that is less than what may be cut
        self.shipped = member.end
        self.promised = 0

    # --- rules

    def made_proposals(self, base: Config) -> Proposals:
        return Proposals(base)

    def required(self) -> frozenset[int]:
        """Who must have acknowledged: everyone who is in sync by what stands in etcd, or may stand there."""
        nodes = self.proposals.base.in_sync
        for value in self.proposals.doubts:
            nodes = nodes | value.in_sync
        return nodes

    def certain(self) -> frozenset[int]:
        """Who is in sync whatever became of the writes in doubt."""
        nodes = self.proposals.base.in_sync
        for value in self.proposals.doubts:
            nodes = nodes & value.in_sync
        return nodes

    def own(self) -> int:
        """The leader's own disk counts like any other."""
        return self.member.synced

    def common(self, hello: Hello) -> int:
        return common_point(self.member.epochs, self.member.end, hello.epochs, hello.end)

    def may_join(self, node: int) -> bool:
        return self.opening > 0 and self.acked.get(node, -1) >= max(self.member.commit, self.opening)

    def may_replace(self) -> bool:
        """Whether what is not synced here has been seen by nobody, and may be written otherwise in this epoch."""
        return self.shipped <= self.member.synced

    def sendable(self, node: int) -> int:
        """To nodes that do not count yet only what is synced here: a lone leader may still empty out the rest."""
        return self.member.end if node in self.required() else self.member.synced

    def floor(self) -> int:
        """How far whoever is in sync must have come. A new leader's own commit may be behind what was known before."""
        return max(self.proposals.base.floor, self.member.commit)

    # --- events: the log

    def begin(self) -> None:
        self.member.effects.append(Lead(self.epoch))

    def serves(self) -> bool:
        return 0 < self.opening <= self.member.commit

    def append(self, payload: int, size: int) -> None:
        """The host's log has a batch more. The first one is the epoch's own, and ``Lead`` asks for it."""
        member = self.member
        member.write(Batch(self.epoch, member.end, member.end + size, payload))
        if not self.opening:
            self.opening = member.end
        member.sync()

    def synced(self) -> None:
        self.advance()
        self.member.sync()

    def disk_failed(self) -> bool:
        """Whether the epoch goes on: with what was not synced taken back, unless somebody else has seen it."""
        member = self.member
        if not self.may_replace() or not self.opening or member.synced < self.opening:
            return False
        if member.synced < member.end:
            member.cut(member.synced)
        self.shipped = min(self.shipped, member.end)
        return True

    def advance(self) -> None:
        """Commit what everyone has who counts; promise it to clients if they are enough."""
        member = self.member
        reached = self.own()
        for node in self.required():
            if node != member.node:
                reached = min(reached, self.acked.get(node, 0))
        if reached > member.commit:
            member.commit = reached
            member.effects.append(Committed(reached))
        if self.serves() and member.commit > self.promised and len(self.certain()) >= self.min_in_sync:
            self.promised = member.commit
            member.effects.append(Promised(member.commit))

    # --- events: streams

    def hello(self, stream: int, message: Hello) -> None:
        member = self.member
        for other in list(self.streams):
            if self.streams[other].node == message.node:
                self.leave(other)
        self.acked.pop(message.node, None)
        common = self.common(message)
        if common >= (self.readable if self.readable >= 0 else member.kept):
            self.streams[stream] = Stream(message.node, common)
            member.effects.append(Say(stream, Welcome(self.epoch, common, member.commit)))
        elif message.end:
            member.effects.append(Say(stream, TooOld(self.epoch)))
        else:
            self.streams[stream] = Stream(message.node, member.commit)
            member.effects.append(ShipAll(stream, self.epoch, member.commit))

    def leave(self, stream: int) -> None:
        self.member.close(stream)
        self.closed(stream)

    def closed(self, stream: int) -> None:
        self.streams.pop(stream, None)

    def writable(self, stream: int, most: int) -> None:
        """The stream takes more: what comes next, or a sign of life with the commit."""
        to = self.streams.get(stream)
        if to is None:
            return
        member = self.member
        end = min(self.sendable(to.node), to.sent + most)
        if end > to.sent:
            self.shipped = max(self.shipped, end)
            member.effects.append(Ship(stream, self.epoch, to.sent, end, member.commit))
            to.sent = end
        else:
            member.effects.append(Say(stream, Beat(self.epoch, member.commit)))

    def acknowledged(self, stream: int, epoch: int, end: int) -> None:
        to = self.streams.get(stream)
        if to is not None and epoch == self.epoch:
            self.acked[to.node] = max(self.acked.get(to.node, 0), end)
            self.advance()

    # --- events: etcd

    def propose(self, value: Config) -> None:
        if not self.proposals.full():
            self.proposals.send(value, self.member.effects)

    def drop(self, node: int) -> None:
        """A follower that stays behind. It counts until the write is known to have happened."""
        base = self.proposals.base
        if node in base.in_sync and node != self.member.node:
            self.propose(base.without(node, self.floor(), self.member.writer()))

    def admit(self, node: int) -> None:
        """A follower that has caught up. It counts from now on, whatever becomes of the write."""
        base = self.proposals.base
        if node not in base.in_sync and self.may_join(node):
            self.propose(base.joined_by(node, self.floor(), self.member.writer()))

    def note_floor(self) -> None:
        """Now and then, so that a folder put back to an earlier state is known for one."""
        self.propose(self.proposals.base.again(self.floor(), self.member.writer()))

    def fenced(self) -> bool:
        return self.proposals.base.epoch != self.epoch
