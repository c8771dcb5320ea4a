"""What must hold after every step, whatever happens.

1. An epoch has one leader, and that one has everything that was ever committed.
2. Two commits of one position are the same batch.
3. Nothing is newly committed by a leader once a later epoch has committed its first batch.
4. Every node that etcd lists as in sync has everything committed on its disk. (Any of them may lead next.)
5. No cut goes before a checkpoint, and none takes what was committed from the disk of a node in sync.
6. What a node believes committed is committed.
7. What is promised to clients was on the disks of ``min_in_sync`` nodes, and as many are in sync by etcd.
"""

from __future__ import annotations

from warrenmq.cluster.config import Config
from warrenmq.cluster.messages import Batch
from warrenmq.cluster.model.disk import Disk
from warrenmq.cluster.model.violation import Violation


class Ledger:
    """Everything that was ever committed, and by which epochs."""

    def __init__(self) -> None:
        self.commits: list[Batch] = []
        self.leaders: dict[int, int] = {}
        self.epoch = 0  # the latest that has committed a batch of its own
        self.latest = 0  # the latest that has committed anything new
        self.promised = 0
        self.lost: list[list[Batch]] = []  # what was on disks that are gone

    def leads(self, epoch: int, start: int, disk: Disk) -> None:
        if epoch in self.leaders:
            raise Violation(f"two leaders of epoch {epoch}")
        self.leaders[epoch] = start
        if epoch > self.latest:  # else it learned of its victory after it had been followed: it will commit nothing
            self.has_all(disk.written, f"the leader of epoch {epoch} (node {disk.number})")

    def has_all(self, log: list[Batch], whose: str) -> None:
        commits = self.commits
        if len(log) < len(commits):
            raise Violation(f"{whose} lacks the committed batch at {len(log)}")
        for i in range(len(commits)):
            if log[i] is not commits[i]:
                raise Violation(f"{whose} has another batch than the committed one at {i}")

    def commit(self, epoch: int, disk: Disk, end: int, config: Config, disks: list[Disk]) -> None:
        """A leader takes everything before ``end`` for committed."""
        log = disk.written
        commits = self.commits
        before = len(commits)
        if end > len(log):
            raise Violation(f"node {disk.number} commits {end - 1}, which it does not have")
        for i in range(min(end, before)):
            if log[i] is not commits[i]:
                raise Violation(f"two commits at {i}")
        if end <= before:
            return
        if epoch < self.epoch:
            raise Violation(f"epoch {epoch} commits {before} after epoch {self.epoch} has")
        commits.extend(log[before:end])
        self.latest = max(self.latest, epoch)
        if log[end - 1].epoch == epoch:
            self.epoch = epoch
        for other in disks:
            if other.number in config.in_sync and not other.suspect:
                self.in_sync_has(other, before)

    def in_sync_has(self, disk: Disk, since: int) -> None:
        commits, platter = self.commits, disk.platter
        if len(platter) < len(commits):
            raise Violation(f"node {disk.number} is in sync without the committed batch at {len(platter)} on its disk")
        for i in range(since, len(commits)):
            if platter[i] is not commits[i]:
                raise Violation(f"node {disk.number} is in sync with another batch than the committed one at {i}")

    def stands(self, config: Config, disks: list[Disk]) -> None:
        """A new value stands in etcd."""
        for disk in disks:
            if disk.number in config.in_sync and not disk.suspect:
                self.in_sync_has(disk, 0)

    def promise(self, epoch: int, end: int, least: int, config: Config, disks: list[Disk]) -> None:
        holders = 0
        batch = self.commits[end - 1]
        for platter in [disk.platter for disk in disks] + self.lost:
            if len(platter) >= end and platter[end - 1] is batch:
                holders += 1
        if holders < least:
            raise Violation(f"promised {end - 1} with {holders} copies")
        if config.epoch == epoch and len(config.in_sync) < least:
            raise Violation(f"promised {end - 1} while {len(config.in_sync)} are in sync")
        self.promised = max(self.promised, end)

    def cut(self, disk: Disk, end: int, config: Config) -> None:
        """A node that is not in sync may be cut too far by a leader that is one no longer: it catches up again."""
        if end < disk.kept:
            raise Violation(f"node {disk.number} cuts to {end}, before its checkpoint at {disk.kept}")
        if disk.number not in config.in_sync:
            return
        if end < len(self.commits) and end < disk.same and disk.written[end] is self.commits[end]:
            raise Violation(f"node {disk.number} cuts away the committed batch at {end}")

    def believed(self, disk: Disk, since: int, end: int) -> None:
        """A follower's commit: never ahead of the truth."""
        for i in range(since, end):
            if i >= len(self.commits) or disk.written[i] is not self.commits[i]:
                raise Violation(f"node {disk.number} takes {i} for committed")
