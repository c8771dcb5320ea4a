"""A simulated disk: what was written and what would survive.

A killed process leaves everything that was written, a power failure what was synced and any part of the rest. A cut
that was not synced may be undone by it. Damage and loss are the world's doing.
"""

from __future__ import annotations

from warrenmq.cluster.messages import Batch
from warrenmq.log.epochs import Epochs


class Disk:
    """The folder of one node: its number, its log, and how far its checkpoint goes."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.written: list[Batch] = []
        self.platter: list[Batch] = []
        self.same = 0  # up to here both are known to be the same
        self.kept = 0
        self.syncing = 0  # the number of the sync under way
        self.covers = 0  # what was written when it began
        self.stalled = False
        self.suspect = False  # put back to an earlier state by somebody

    def write(self, batch: Batch) -> None:
        self.written.append(batch)

    def cut(self, end: int) -> None:
        """A sync under way is taken to cover nothing: the worst that can be."""
        del self.written[end:]
        self.same = min(self.same, end)
        self.syncing = -self.syncing if self.syncing > 0 else self.syncing

    def sync(self, number: int) -> None:
        self.syncing = number
        self.covers = len(self.written)

    def synced(self) -> int:
        """The sync under way ends: its number. What was written since it began is not on the disk yet."""
        number = self.syncing
        self.syncing = 0
        if number < 0:
            return -number
        self.platter[self.same :] = self.written[self.same : self.covers]
        self.same = len(self.platter)
        return number

    def install(self, batches: list[Batch]) -> None:
        """Old or new, never half: the manifest comes last, and is synced."""
        self.written = batches[:]
        self.platter = batches[:]
        self.same = self.kept = len(batches)

    def killed(self) -> None:
        self.syncing = 0

    def lost_power(self, choice: int) -> None:
        """What is read afterwards is on the disk."""
        self.syncing = 0
        if self.same < len(self.platter) and choice & 1:
            self.written = self.platter[:]
        else:
            span = len(self.written) - self.same
            del self.written[self.same + (choice >> 1) % (span + 1) :]
        self.platter = self.written[:]
        self.same = len(self.platter)

    def renewed(self, number: int, keep: int) -> None:
        self.number = number
        self.suspect = False
        del self.written[keep:]
        self.platter = self.written[:]
        self.same = len(self.platter)
        self.kept = min(self.kept, keep)
        self.syncing = 0

    def epochs(self) -> Epochs:
        found = Epochs()
        last = 0
        for batch in self.written:
            if batch.epoch != last:
                last = batch.epoch
                found.wrote(last, batch.first)
        return found
