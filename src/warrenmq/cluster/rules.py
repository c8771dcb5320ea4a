"""The protocol of a node: events in, effects out.

Duty: which role a node has, and which event is whose. ``Node`` is one start of a process on one data folder: its host
calls a method for what happened, and carries out what then stands in ``effects`` (effects.py). There is no socket, no
clock, no file and no thread here: when somebody should campaign, drop, admit or look is the host's to say, and
**whenever it says so, it is safe**. So far the only host is the model, in which that is tried (model/).

Roles: every node is a follower first; one that is in sync may become a candidate, and that one the leader. A leader
that is one no longer, or must take back what others may have seen, starts anew: its memory is ahead of what is
committed.
"""

from __future__ import annotations

from warrenmq.cluster.candidate import Candidate
from warrenmq.cluster.config import Config, HandedOver
from warrenmq.cluster.effects import Effect, Look, Renew, Restart
from warrenmq.cluster.follower import Follower
from warrenmq.cluster.leader import Leader
from warrenmq.cluster.member import Member
from warrenmq.cluster.messages import Ack, Batches, Beat, Bye, Hello, Message, Snapshot, TooOld, Welcome
from warrenmq.log.epochs import Epochs


class Rules:
    """The parts a node is made of. The model's planted faults are parts with one rule left out."""

    min_in_sync = 1

    def member(self, node: int, start: int, epochs: Epochs, end: int, kept: int) -> Member:
        return Member(node, start, epochs, end, kept)

    def follower(self, member: Member) -> Follower:
        return Follower(member)

    def candidate(self, member: Member, base: Config) -> Candidate:
        return Candidate(member, base)

    def leader(self, member: Member, config: Config) -> Leader:
        return Leader(member, config, self.min_in_sync)

    def resumes(self, member: Member, config: Config) -> bool:
        """Whether a node that finds itself named as leader goes on as one. Never: its epoch ended with its memory."""
        return False

    def leads_alone(self) -> bool:
        """Whether a leader has left whom it followed."""
        return True

    def renews(self) -> bool:
        """Whether a node that discards what it acknowledged becomes another one."""
        return True


class Node:
    """One start of a node: its role, and what happens to it."""

    def __init__(self, rules: Rules, node: int, start: int, epochs: Epochs, end: int, kept: int) -> None:
        self.rules = rules
        self.member = rules.member(node, start, epochs, end, kept)
        self.follower = rules.follower(self.member)
        self.candidate: Candidate | None = None
        self.leader: Leader | None = None
        self.over = False

    @property
    def effects(self) -> list[Effect]:
        return self.member.effects

    def begin(self) -> None:
        self.look()
        self.member.sync()

    def restart(self, reason: str) -> None:
        self.over = True
        self.member.effects.append(Restart(reason))

    # --- etcd

    def look(self) -> None:
        self.member.effects.append(Look())

    def learned(self, config: Config, store: int) -> None:
        """A value that was read in the etcd of this number."""
        member = self.member
        if not member.trusts(config, store):
            return
        if member.known is None and member.rolled_back(config):
            self.discard(member.end)
            return
        candidate, leader = self.candidate, self.leader
        first = member.known is None
        newer = member.learn(config)
        if leader is not None:
            leader.proposals.learned(config)
            self.settle_leader(leader)
        elif candidate is not None:
            candidate.proposals.learned(config)
            self.settle_candidate(candidate)
        elif newer:
            if first and self.rules.resumes(member, config):
                self.lead(config)
            else:
                self.follower.learned(config)

    def answered(self, value: Config, accepted: bool, current: Config | None, store: int) -> None:
        """The answer to a write. One by another etcd than the value is meant for says nothing."""
        if store != value.store:
            return
        member = self.member
        if accepted:
            current = value
        if current is not None and not member.trusts(current, store):
            current = None
        candidate, leader = self.candidate, self.leader
        if leader is not None:
            leader.proposals.answered(value, accepted, current)
        elif candidate is not None:
            candidate.proposals.answered(value, accepted, current)
        if current is not None:
            member.learn(current)
        if leader is not None:
            self.settle_leader(leader)
        elif candidate is not None:
            self.settle_candidate(candidate)
        elif current is not None:
            self.follower.learned(current)

    def unanswered(self) -> None:
        """No answer in time: the write stays in doubt, and is sent once more to end that."""
        leader, candidate = self.leader, self.candidate
        if leader is not None:
            leader.proposals.unanswered()
            self.settle_leader(leader)
            leader.proposals.send_again(self.effects)
        elif candidate is not None:
            candidate.proposals.unanswered()
            candidate.proposals.send_again(self.effects)
            self.settle_candidate(candidate)

    def settle_leader(self, leader: Leader) -> None:
        if leader.fenced():
            self.restart("a newer epoch")
        else:
            leader.advance()

    def settle_candidate(self, candidate: Candidate) -> None:
        if candidate.won():
            self.lead(candidate.proposals.base)
        elif candidate.lost():
            self.candidate = None
            self.member.release()
            if self.member.known is not None:
                self.follower.learned(self.member.known)

    # --- roles

    def campaign(self) -> None:
        """The leader seems to be gone."""
        known = self.member.known
        if self.leader is None and self.candidate is None and known is not None and self.follower.may_campaign(known):
            candidate = self.rules.candidate(self.member, known)
            if self.follower.stream and not candidate.keeps_following():
                self.follower.leave()
            self.candidate = candidate
            candidate.begin()

    def lead(self, config: Config) -> None:
        if self.follower.stream and self.rules.leads_alone():
            self.follower.leave()
        self.candidate = None
        self.leader = self.rules.leader(self.member, config)
        self.member.promise(config.epoch)
        self.leader.begin()

    def resign(self, reason: str) -> None:
        """The host cannot go on: no lease, a stalled disk, a wish of the operator."""
        if self.leader is not None:
            self.restart(reason)

    def hand_over(self) -> HandedOver:
        """For the recovery of an etcd that was lost: what this node knows. It starts anew with that.

        Else the answer of the lost etcd to a write could still come, and count beside what is written to the new one.
        """
        member, leader = self.member, self.leader
        led = leader.epoch if leader is not None else 0
        base = leader.proposals.base if leader is not None else None
        required = leader.required() if leader is not None else frozenset[int]()
        known = member.known.epoch if member.known is not None else 0
        self.restart("etcd is recovered")
        return HandedOver(led, base, required, max(member.epochs.last(), known), member.promised)

    def discard(self, keep: int) -> None:
        """Something of the log has to go: damage, a rollback, a snapshot in its place."""
        self.over = True
        if self.rules.renews():
            self.member.effects.append(Renew(keep))
        else:
            self.restart("damage")

    def connect(self) -> None:
        if self.leader is None and self.candidate is None:
            self.follower.connect()

    # --- the log

    def append(self, payload: int, size: int) -> None:
        if self.leader is not None:
            self.leader.append(payload, size)

    def synced(self, number: int) -> None:
        if not self.member.was_synced(number):
            return
        if self.leader is not None:
            self.leader.synced()
        else:
            self.follower.synced()

    def disk_failed(self) -> None:
        if self.leader is None:
            self.follower.disk_failed()
        elif not self.leader.disk_failed():
            self.restart("the disk fails")

    def absorb(self) -> None:
        self.member.absorb()

    # --- streams

    def said(self, stream: int, message: Message) -> None:
        """A message, to the leader or to the follower that has this stream."""
        leader = self.leader
        follower = self.follower
        if isinstance(message, Hello):
            if leader is not None:
                leader.hello(stream, message)
            else:
                self.member.close(stream)
        elif isinstance(message, Ack):
            if leader is not None:
                leader.acknowledged(stream, message.epoch, message.end)
        elif isinstance(message, Bye):
            self.ended(stream)
        elif stream != follower.stream:
            pass
        elif isinstance(message, Batches):
            follower.batches(message)
        elif isinstance(message, Welcome):
            follower.welcome(message)
        elif isinstance(message, Beat):
            follower.beat(message)
        elif isinstance(message, Snapshot):
            follower.snapshot(message)
        elif isinstance(message, TooOld):
            self.discard(0)

    def ended(self, stream: int) -> None:
        if self.leader is not None:
            self.leader.closed(stream)
        if stream == self.follower.stream:
            self.follower.closed()
