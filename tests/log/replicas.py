"""What the tests of replication share: a leader's log with nobody behind it, and a disk whose numbers differ."""

from __future__ import annotations

from tests.log.disk import SimulatedFiles
from tests.log.world import World
from warrenmq.log.log import Log
from warrenmq.log.settings import LogSettings
from warrenmq.log.shipping import ShippedBatch, Shipping


class Others(Shipping):
    """The other nodes, of whom there are none: what a leader's log hands over is written down."""

    def __init__(self) -> None:
        self.submitted: list[ShippedBatch] = []
        self.synced_to = 0
        self.gives_back = True  # what ``failed`` answers

    def submit(self, batch: ShippedBatch) -> None:
        assert batch.follows == (self.submitted[-1].end() if self.submitted else batch.follows)
        self.submitted.append(batch)

    def synced(self, position: int) -> None:
        assert position >= self.synced_to
        self.synced_to = int(position)

    def failed(self) -> bool:
        if self.gives_back:
            self.submitted = [batch for batch in self.submitted if batch.end() <= self.synced_to]
        return self.gives_back


class Leading(World):
    """The miniature broker on a log that other nodes follow."""

    def __init__(self, files: SimulatedFiles, settings: LogSettings) -> None:
        super().__init__(files, settings)
        self.others = Others()
        self.log.attach_shipping(self.others)

    def commit(self) -> None:
        """All others have what this node has."""
        self.log.committed_to(self.others.synced_to)

    def promise(self) -> None:
        self.commit()
        self.log.promised_to(self.log.committed_position())


def content(batch: ShippedBatch) -> tuple[object, ...]:
    """Everything about a batch, for comparison."""
    return tuple(getattr(batch, name) for name in ShippedBatch.__init__.__annotations__ if name != "return")


def all_batches(log: Log) -> list[ShippedBatch]:
    """All that can be read back from a log, a little at a time."""
    reading = log.reading(log.readable_from(), log.end_position())
    found: list[ShippedBatch] = []
    while some := reading.next(1):
        found.extend(some)
    reading.close()
    return found
