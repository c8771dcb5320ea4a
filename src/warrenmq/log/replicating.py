"""A leader's batches between their submission and what clients may be told: counted, and kept for whoever lacks them.

Duty: which batches other nodes have been given, which of them the own disk has, which everybody has, and which may be
promised to clients; when so many are under way that no more are closed. There is none of this on a single node. Not
here: who the others are (``shipping``), and when a batch is submitted (``commits``).

Invariants: ``committed <= synced <= end``; a batch is submitted once, unless it was taken back before.
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from warrenmq.log.batch import Sealed
from warrenmq.log.core import Core
from warrenmq.log.epochs import Epochs
from warrenmq.log.format import LogError
from warrenmq.log.maintenance import Maintenance
from warrenmq.log.recovery import Uncommitted
from warrenmq.log.shipping import ShippedBatch, Shipping, position

MOST_BATCHES: Final = 256  # batches under way to other nodes, at most
MOST_OCTETS: Final = 64 << 20  # octets of them


@final
class Replicating:
    """The positions of a leader's log, and the turns that stand for them."""

    def __init__(
        self,
        log: Core,
        maintenance: Maintenance,
        shipping: Shipping,
        end: i64,
        committed: i64,
        epochs: Epochs,
        uncommitted: list[Uncommitted],
    ) -> None:
        self.log: Final = log
        self.maintenance: Final = maintenance
        self.shipping: Final = shipping
        self.epochs: Final = epochs
        self.end: i64 = end  # behind the last batch that was submitted
        self.synced: i64 = end  # the own disk has everything before
        self.committed: i64 = committed
        self.unsynced: list[ShippedBatch] = []
        self.ahead: list[Uncommitted] = uncommitted  # submitted, and not committed
        self.octets: i64 = 0  # of those
        self.held: bool = False  # another node is to lead: nothing more is begun here
        self.unpromised: list[tuple[int, int]] = []  # (position, turn) of what is committed and not promised
        for batch in uncommitted:
            self.octets += len(batch.changes)

    # --- batches

    def submit(self, sealed: Sealed) -> None:
        """It has its place now. Once more, in another file, it is the same batch."""
        end = position(sealed.segment, sealed.at + sealed.size())
        if end <= self.end:
            return
        batch = ShippedBatch(
            self.end,
            sealed.segment,
            sealed.at,
            sealed.epoch,
            sealed.number,
            sealed.first_record,
            len(sealed.offsets),
            sealed.messages,
            sealed.changes,
            sealed.payload_sum(),
            sealed.time,
        )
        self.epochs.wrote(int(sealed.epoch), int(self.end))
        self.end = end
        self.unsynced.append(batch)
        self.ahead.append(Uncommitted(end, sealed.number, sealed.segment, sealed.at + sealed.size(), sealed.changes))
        self.octets += len(sealed.messages) + len(sealed.changes)
        self.ahead[-1].octets = len(sealed.messages) + len(sealed.changes)
        self.shipping.submit(batch)

    def was_synced(self, sealed: Sealed) -> None:
        self.synced = position(sealed.segment, sealed.at + sealed.size())
        while self.unsynced and self.unsynced[0].end() <= self.synced:
            del self.unsynced[0]

    def take_back(self) -> None:
        """Nobody has seen what is not synced: something else may come in its place."""
        self.unsynced.clear()
        while self.ahead and self.ahead[-1].position > self.synced:
            self.octets -= self.ahead.pop().octets
        self.end = self.synced
        self.epochs.cut(int(self.end))

    def full(self) -> bool:
        """So much is under way that no further batch is closed."""
        return self.held or len(self.ahead) >= MOST_BATCHES or self.octets >= MOST_OCTETS

    # --- what the other nodes have

    def committed_to(self, reached: i64) -> None:
        if reached > self.synced:
            raise LogError(f"position {reached:#x} cannot be committed: the own disk has {self.synced:#x}")
        count: i64 = 0
        for batch in self.ahead:
            if batch.position > reached:
                break
            self.maintenance.committed(batch.number, batch.segment, batch.offset, batch.changes)
            self.log.committed = batch.number
            self.unpromised.append((int(batch.position), int(batch.number)))
            self.octets -= batch.octets
            count += 1
        if count > 0:
            del self.ahead[: int(count)]
        if reached > self.committed:
            self.committed = reached

    def promised_to(self, reached: i64) -> None:
        if reached > self.committed:
            raise LogError(f"position {reached:#x} cannot be promised: {self.committed:#x} is committed")
        count = 0
        for end, turn in self.unpromised:
            if end > reached:
                break
            self.log.promised = turn
            count += 1
        del self.unpromised[:count]

    def count_turns(self, committed: i64, promised: i64) -> bool:
        """Turns that left no trace are committed and promised with those before. Whether there is news since then."""
        log = self.log
        if not self.ahead:
            log.committed = log.synced
        if not self.unpromised:
            log.promised = log.committed
        return log.committed > committed or log.promised > promised
