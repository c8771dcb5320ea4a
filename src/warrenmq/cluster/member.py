"""What a node knows whatever its role: its log as the rules see it, its promise, and what it has read in etcd.

Duty: the log's end, what of it is synced, committed and no longer cuttable, and the lowest epoch the node still
obeys. It belongs to one start of a process: everything but the log is gone with it.

Invariants:
- ``kept <= commit <= end``: nothing is absorbed into a checkpoint before it is committed, so what may have to be cut
  still can be.
- ``promised`` is never below the epoch of the last batch in the log: who has written in an epoch obeys no earlier one.
"""

from __future__ import annotations

from warrenmq.cluster.config import Config
from warrenmq.cluster.effects import Close, Cut, Effect, Sync, Write
from warrenmq.cluster.messages import Batch
from warrenmq.log.epochs import Epochs


class Member:
    """A node's memory, apart from its role."""

    def __init__(self, node: int, start: int, epochs: Epochs, end: int, kept: int) -> None:
        self.node = node
        self.epochs = epochs
        self.end = end
        self.found = end  # what the start found, as far as it is still there
        self.kept = kept
        self.commit = kept
        self.synced = self.synced_at_start()
        self.promised = self.promised_at_start()
        self.known: Config | None = None
        self.effects: list[Effect] = []
        self._syncing = 0
        self._covers = 0
        self._syncs = 0
        self._writer = start << 24

    def take_over(self, other: Member) -> None:
        """All that another one of the same start knows: the model tries different ways on from one state."""
        self.epochs = other.epochs.copy()
        self.end, self.found, self.kept, self.commit = other.end, other.found, other.kept, other.commit
        self.synced, self.promised, self.known = other.synced, other.promised, other.known
        self._syncing, self._covers, self._syncs = other._syncing, other._covers, other._syncs
        self._writer = other._writer

    # --- rules

    def synced_at_start(self) -> int:
        """What a killed process wrote may be in the system's cache only: nothing counts before a sync."""
        return 0

    def promised_at_start(self) -> int:
        return self.epochs.last()

    def trusts(self, config: Config, store: int) -> bool:
        """Whether a value read in this etcd can be true: not one from a copy, nor from before the own log."""
        return config.store == store and config.epoch >= self.epochs.last()

    def rolled_back(self, config: Config) -> bool:
        """Whether the folder is older than the node: it is said to have everything before the floor."""
        return self.node in config.in_sync and self.end < config.floor

    def absorbable(self) -> int:
        """How far a checkpoint may go. It cannot be cut afterwards, and a follower may know a commit that it has not
        yet on its own disk."""
        return min(self.commit, self.synced)

    # --- etcd

    def learn(self, config: Config) -> bool:
        """Take over a value, unless a newer one is known."""
        if self.known is not None and config.version <= self.known.version:
            return False
        self.known = config
        self.promise(config.epoch)
        return True

    def promise(self, epoch: int) -> None:
        """Nothing of an earlier epoch is accepted or acknowledged from now on."""
        self.promised = max(self.promised, epoch)

    def release(self) -> None:
        """A campaign was refused for certain: its promise ends."""
        known = self.known
        self.promised = max(self.epochs.last(), known.epoch if known is not None else 0)

    def writer(self) -> int:
        """A number that no other write to etcd has."""
        self._writer += 1
        return self._writer

    # --- the log

    def write(self, batch: Batch) -> None:
        self.epochs.wrote(batch.epoch, batch.first)
        self.end = batch.end
        self.effects.append(Write(batch))

    def sync(self) -> None:
        """One sync at a time; what is written during one shares the next."""
        if not self._syncing and self.synced < self.end:
            self._syncs += 1
            self._syncing = self._syncs
            self._covers = self.end
            self.effects.append(Sync(self._syncing))

    def was_synced(self, number: int) -> bool:
        if number != self._syncing:
            return False
        self._syncing = 0
        self.synced = self._covers
        return True

    def covers(self) -> int:
        """What the sync under way will have brought to the disk; -1 without one."""
        return self._covers if self._syncing else -1

    def syncing(self) -> int:
        """The number of that sync; 0 without one."""
        return self._syncing

    def forget_sync(self) -> None:
        """A sync under way does not cover what comes after a cut."""
        self._syncing = 0

    def cut(self, end: int) -> None:
        self.epochs.cut(end)
        self.end = end
        self.found = min(self.found, end)
        self.synced = min(self.synced, end)
        self.forget_sync()
        self.effects.append(Cut(end))

    def installed(self, end: int) -> None:
        """A snapshot is on the disk when it is there at all, and is committed."""
        self.end = self.synced = self.found = self.commit = self.kept = end
        self.forget_sync()

    def absorb(self) -> None:
        """A checkpoint: everything committed is in the manifest, and batches before it may go."""
        self.kept = max(self.kept, self.absorbable())

    # --- what roles share

    def close(self, stream: int) -> None:
        self.effects.append(Close(stream))
