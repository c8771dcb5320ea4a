"""What became of every publish, and of every answer that publishers were owed, since the start.

Duty: the numbers, each counted where it happens and apart from the others, so that they can be compared
(``broker/ledger.py``). What a channel counts for itself is added here when the channel is over. Nothing is decided by
them.
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from warrenmq.log.histogram import DISK_TIMES, SIZES, Histogram


@final
class Tally:
    """Publishes by what became of them."""

    def __init__(self) -> None:
        self.published: i64 = 0  # every one whose content has come, or that was refused before
        self.routed: i64 = 0  # at least one queue took it
        self.scheduled: i64 = 0  # no queue, but a delayed exchange took it, or did what it says to what waits there
        self.returned: i64 = 0  # no queue, and mandatory
        self.dropped: i64 = 0  # no queue, and not mandatory
        self.refused_by_queues: i64 = 0  # by every queue
        self.duplicates: i64 = 0  # an exchange that deduplicates had taken it before
        self.refused: i64 = 0  # by the broker: the channel or connection was closed for it
        # in transactions
        self.transacted: i64 = 0
        self.committed: i64 = 0
        self.rolled_back: i64 = 0
        self.not_committed: i64 = 0  # the commit was refused
        # on confirming channels that are over
        self.numbered: i64 = 0
        self.acked: i64 = 0
        self.nacked: i64 = 0
        self.refused_numbered: i64 = 0
        self.abandoned: i64 = 0  # the channel was over before their answer
        self.sizes: Final = Histogram(SIZES)  # octets of the bodies of all that were published
        # microseconds from the turn that brought a publish to its confirm, of those that waited for the disk
        self.confirm_times: Final = Histogram(DISK_TIMES)

    def turned_away(self) -> None:
        """A publish was refused before it was a message."""
        self.published += 1
        self.refused += 1
