"""What one queue counts of what came to it and left it, but for its deliveries (``services/deliveries.py``).

Duty: the numbers of publishes, which the management API has, and the accounts (``accounts.py``) of whatever came or
left in other ways. Nothing is decided by them, but for what the journal is told where nothing else is told of a queue.
"""

from __future__ import annotations

from typing import final

from mypy_extensions import i64

from warrenmq.broker.queue.accounts import DEAD_LETTERING, Accounts
from warrenmq.log.causes import DUE


@final
class QueueCounters:
    """The counters of one queue; most queues never need accounts, so those are made late."""

    def __init__(self) -> None:
        self.published: i64 = 0
        self.recorded: i64 = 0  # of these, those of which the log has that they are here
        self.turned_away: i64 = 0  # publishes that it refused
        # dropped from the head, or refused, because there were too many, or too many octets
        self.over_length: i64 = 0
        self.over_bytes: i64 = 0
        self.letters_lost: i64 = 0  # given up to a dead-letter exchange, and no queue took them
        self._accounts: Accounts | None = None

    def unrecorded(self) -> i64:
        """How many messages came that the log does not have."""
        return self.published - self.recorded

    def routed(self) -> i64:
        """How many copies of what clients published were meant for it, also those that it refused."""
        accounts = self._accounts
        if accounts is None:
            return self.published + self.turned_away
        return self.published + self.turned_away - accounts.came_otherwise() + accounts.came_by(DUE)

    def came(self, way: i64, count: i64) -> None:
        """So many entries come in another way than by a publish."""
        if count:
            self._kept().came(way, count)

    def left(self, cause: i64, count: i64) -> None:
        """So many entries left for a cause that nothing else counts."""
        if count:
            self._kept().left(cause, count)

    def dead_lettering(self, more: i64) -> None:
        """So many more entries, or fewer, are given up and not yet where they go."""
        self._kept().here(DEAD_LETTERING, more)

    def lettered(self, cause: i64) -> None:
        """One of them is with others now, or nowhere."""
        self.dead_lettering(-1)
        self.left(cause, 1)

    def none_dead_lettering(self) -> None:
        """What was on its way out goes with the queue."""
        accounts = self._accounts
        if accounts is not None:
            accounts.here(DEAD_LETTERING, -accounts.in_place(DEAD_LETTERING))

    def accounts(self) -> Accounts:
        """What of them was counted here, for others to complete."""
        found = Accounts()
        if self._accounts is not None:
            found.add(self._accounts)
        return found

    def _kept(self) -> Accounts:
        kept = self._accounts
        if kept is None:
            kept = Accounts()
            self._accounts = kept
        return kept
