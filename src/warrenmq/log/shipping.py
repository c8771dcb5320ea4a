"""The seam between the log and the other nodes: what a leader's log hands over, and what it is told.

Duty: the types that both sides share. A log with nobody attached (``Commits.shipping`` is None) is one node's, and
what is synced is committed. The sockets, the threads and the rules are ``cluster``'s, which the log does not know.

The leader's side, all of it on the broker's own thread:

==============================  ====================================================================================
log, then host                  when
==============================  ====================================================================================
``Shipping.submit(batch)``      a batch got its place; from now on it never changes, and the disk is writing it
``Shipping.synced(position)``   the leader's own disk has everything before this position
``Shipping.failed()``           the disk took some batches neither at once nor in a new file: may they be replaced?
``Log.committed_to(position)``  from the host: every node that counts has everything before this position
==============================  ====================================================================================

Positions are whole numbers that rise along the log, as in ``cluster/rules.py``: ``position(segment, offset)``. Only
ends of batches are positions, so that two logs with the same batches name the same ones: **a batch begins, for the
rules, where the one before it ended**, also when it stands at the beginning of the next segment. 0 is the beginning.

Invariants:
- Batches are submitted in their order, each following the one before; ``submit`` comes before the batch is synced.
- An epoch and a position name one batch for ever. A batch that was submitted is written as it is or not at all; only
  after ``failed`` has returned True, as no other node has seen it, another one may be submitted in its place.
- ``committed_to`` never goes beyond what ``synced`` has told.
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64, mypyc_attr

from warrenmq.log.layout import BATCH_HEADER

OFFSET_BITS: Final = 32
OFFSETS: Final = (1 << 32) - 1


def position(segment: i64, offset: i64) -> i64:
    return segment << OFFSET_BITS | offset


def segment_of(position: i64) -> i64:
    return position >> OFFSET_BITS


def offset_of(position: i64) -> i64:
    return position & OFFSETS


@final
class ShippedBatch:
    """A batch as it goes from node to node: its place and its payload. Each node writes a header of its own around it,
    with what that node knows to be synced; everything else in the header is here."""

    def __init__(
        self,
        follows: i64,
        segment: i64,
        offset: i64,
        epoch: i64,
        number: i64,
        first_record: i64,
        records: i64,
        messages: bytes,
        changes: bytes,
        sum: i64,
        time: i64,
    ) -> None:
        self.follows: Final = follows  # the position where the log ended before
        self.segment: Final = segment  # where it stands: behind the one before, or at the beginning of a segment
        self.offset: Final = offset
        self.epoch: Final = epoch
        self.number: Final = number  # the last turn in it
        self.first_record: Final = first_record
        self.records: Final = records
        self.messages: Final = messages
        self.changes: Final = changes
        self.sum: Final = sum  # of the payload, begun with the log's identity: as in the batch's header on disk
        self.time: Final = time  # when it was closed, in µs since 1970

    def size(self) -> i64:
        """What it takes on disk."""
        return BATCH_HEADER + len(self.messages) + len(self.changes)

    def end(self) -> i64:
        """The position behind it."""
        return position(self.segment, self.offset + self.size())


@mypyc_attr(allow_interpreted_subclasses=True)
class Shipping:
    """The other nodes, as the log of a leader sees them. All on the broker's own thread; nothing here may block."""

    def submit(self, batch: ShippedBatch) -> None:
        """This batch is on its way to the own disk. Nodes that count may have it at once, all others only when it is
        ``synced``: until then a leader that is alone may have to write another one in its place."""

    def synced(self, position: i64) -> None:
        """The own disk has everything before this position. ``committed_to`` may be called from here."""

    def failed(self) -> bool:
        """What was submitted behind the last synced position could not be written, not even to a new file.

        True: no other node has seen any of it. It is taken back, and will be submitted anew, or something else in its
        place, when the disk takes writes again. False: others have it, so it must not change: this node leads no
        longer. The log then writes nothing more, confirms nothing more, and is to be opened anew.
        """
        return False
