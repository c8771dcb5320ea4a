"""A node that follows a leader: in sync or catching up, which only etcd tells apart.

Duty: the stream to the leader; the cut to what both logs have in common; batches in order; acknowledgements of what is
on the own disk, never before. Whether it may campaign. Its host says when it should.
"""

from __future__ import annotations

from warrenmq.cluster.config import NOBODY, Config
from warrenmq.cluster.effects import Connect, Install, Say
from warrenmq.cluster.member import Member
from warrenmq.cluster.messages import Ack, Batches, Beat, Hello, Snapshot, Welcome


class Follower:
    """The stream to a leader, and what comes on it."""

    def __init__(self, member: Member) -> None:
        self.member = member
        self.stream = 0  # 0: none
        self.leader = NOBODY
        self.epoch = 0
        self.welcomed = False

    # --- rules

    def obeys(self, epoch: int) -> bool:
        return epoch >= self.member.promised

    def acknowledged(self) -> int:
        """What the own disk has, for certain."""
        return self.member.synced

    def cut_point(self, cut: int) -> int:
        """The end of what both logs have in common; what this node knows as committed plays no part in it."""
        return cut

    def may_campaign(self, config: Config) -> bool:
        return self.member.node in config.in_sync and self.member.end >= config.floor

    # --- events

    def learned(self, config: Config) -> None:
        """Another leader: the stream to the one before is over."""
        if self.stream and (config.leader != self.leader or not self.obeys(self.epoch)):
            self.leave()

    def connect(self) -> None:
        member = self.member
        known = member.known
        if self.stream or known is None or known.leader in (NOBODY, member.node):
            return
        self.leader = known.leader
        self.epoch = known.epoch
        self.welcomed = False
        member.effects.append(Connect(known.leader, Hello(member.node, member.epochs.until(member.end), member.end)))

    def connected(self, stream: int) -> None:
        self.stream = stream

    def leave(self) -> None:
        self.member.close(self.stream)
        self.closed()

    def closed(self) -> None:
        self.stream = 0
        self.welcomed = False

    def welcome(self, message: Welcome) -> None:
        member = self.member
        if not self.obeys(message.epoch):
            self.leave()
            return
        member.promise(message.epoch)
        self.epoch = message.epoch
        self.welcomed = True
        cut = self.cut_point(message.cut)
        if cut < member.end:
            member.cut(cut)
        self.committed(message.commit)
        member.sync()
        self.acknowledge()

    def snapshot(self, message: Snapshot) -> None:
        member = self.member
        if not self.obeys(message.epoch) or member.end:
            self.leave()
            return
        member.promise(message.epoch)
        self.epoch = message.epoch
        self.welcomed = True
        member.epochs = message.epochs.copy()
        member.installed(message.batches[-1].end)
        member.effects.append(Install(message))
        self.acknowledge()

    def batches(self, message: Batches) -> None:
        member = self.member
        if not self.welcomed or not self.obeys(message.epoch):
            self.leave()
            return
        for batch in message.batches:
            if batch.first != member.end:
                self.leave()
                return
            member.write(batch)
        self.committed(message.commit)
        member.sync()
        if self.acknowledged() == member.end:
            self.acknowledge()

    def beat(self, message: Beat) -> None:
        if self.welcomed and self.obeys(message.epoch):
            self.committed(message.commit)
        else:
            self.leave()

    def committed(self, commit: int) -> None:
        """What the leader says, as far as the own log goes: up to there it is the leader's."""
        member = self.member
        member.commit = max(member.commit, min(commit, member.end))

    def acknowledge(self) -> None:
        if self.welcomed and self.obeys(self.epoch):
            self.member.effects.append(Say(self.stream, Ack(self.epoch, self.acknowledged())))

    def synced(self) -> None:
        self.acknowledge()
        self.member.sync()

    def disk_failed(self) -> None:
        """What this run wrote and could not sync is given up, with the stream: the leader then does not wait for it.

        What was there at the start stays: it may have been acknowledged by an earlier run.
        """
        member = self.member
        if self.stream:
            self.leave()
        sure = max(member.synced, member.found)
        if sure < member.end:
            member.cut(sure)
