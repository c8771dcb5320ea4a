"""What stands in etcd about a group of nodes, and the ways in which it may change.

Duty: the value under the key ``config`` and its successors. It is replaced by compare-and-swap of the whole value,
never edited, and no two writes are equal (``writer``): a copy of an earlier value, put back by restoring etcd from a
backup, cannot be taken for the one a node knows. Who may write, and when, is the roles' business.

Invariants:
- ``version`` rises with every write, ``epoch`` with every change of the leader and with nothing else.
- ``floor`` was committed when the value was written: who is in sync has everything before it.
- ``store`` names the etcd for which the value was written; in another one it means nothing.
"""

from __future__ import annotations

from typing import Final, final

NOBODY: Final = 0
"""Where no node is meant: a node's number is never 0."""


@final
class Config:
    """The leader, its epoch, and the nodes in sync."""

    def __init__(
        self, epoch: int, leader: int, in_sync: frozenset[int], floor: int, version: int, writer: int, store: int
    ) -> None:
        self.epoch: Final = epoch
        self.leader: Final = leader
        self.in_sync: Final = in_sync
        self.floor: Final = floor
        self.version: Final = version
        self.writer: Final = writer
        self.store: Final = store

    def same(self, other: Config | None) -> bool:
        """Whether it is the same write. Equal content by another writer is another value."""
        return other is not None and self.writer == other.writer and self.version == other.version

    def led_by(self, candidate: int, writer: int) -> Config:
        """The next epoch. The leader before is out: it comes back by catching up, and commits nothing until then."""
        in_sync = (self.in_sync - {self.leader}) | {candidate}
        return Config(self.epoch + 1, candidate, in_sync, self.floor, self.version + 1, writer, self.store)

    def without(self, node: int, floor: int, writer: int) -> Config:
        return self._in_epoch(self.in_sync - {node}, floor, writer)

    def joined_by(self, node: int, floor: int, writer: int) -> Config:
        return self._in_epoch(self.in_sync | {node}, floor, writer)

    def again(self, floor: int, writer: int) -> Config:
        """The same set, to move the floor, or to end a doubt: once it stands, no write before it can come true."""
        return self._in_epoch(self.in_sync, floor, writer)

    def _in_epoch(self, in_sync: frozenset[int], floor: int, writer: int) -> Config:
        return Config(self.epoch, self.leader, in_sync, floor, self.version + 1, writer, self.store)

    def __repr__(self) -> str:
        who = ",".join(str(node) for node in sorted(self.in_sync))
        return f"v{self.version} epoch {self.epoch} of {self.leader}, in sync {who}, floor {self.floor}"


def first(node: int, store: int) -> Config:
    """The value with which a cluster begins: one node that has all there is, and nobody leads yet."""
    return Config(0, NOBODY, frozenset((node,)), 0, 1, 0, store)


@final
class HandedOver:
    """The knowledge of a node when etcd was lost. A node that did not lead says ``led`` 0."""

    def __init__(self, led: int, base: Config | None, required: frozenset[int], heard: int, promised: int) -> None:
        self.led: Final = led
        self.base: Final = base
        self.required: Final = required
        self.heard: Final = heard
        self.promised: Final = promised


def recovered(members: list[HandedOver], writer: int, store: int) -> Config | None:
    """The value for an etcd that lost its own: from all members, each of which has handed over.

    Only a leader knows the set, as its writes are the ones that count: what others have read may be older, and a node
    that was dropped since would pass for one in sync. So without a leader of the last epoch anybody has heard of there
    is none. Nobody leads the new epoch; whoever is in sync may campaign.
    """
    promised = 0
    last = members[0]
    for member in members:
        promised = max(promised, member.promised)
        if member.led > last.led:
            last = member
    for member in members:
        if member.heard > last.led:
            return None
    base = last.base
    if base is None:
        return None
    return Config(promised + 1, NOBODY, last.required, base.floor, base.version + 1, writer, store)
