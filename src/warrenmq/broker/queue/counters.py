"""What one queue counts of what came to it and left it, but for its deliveries (``services/deliveries.py``).

Duty: the numbers of publishes, which the management API has, and the accounts (``accounts.py``) of whatever came or
left in other ways. Nothing is decided by them, but for what the journal is told where nothing else is told of a queue.
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from warrenmq.broker.queue.accounts import DEAD_LETTERING, Accounts
from warrenmq.broker.records import Exchange
from warrenmq.log.causes import DUE

FEW: Final = 64  # exchanges that are kept, gone or not


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
        self.source: Exchange | None = None  # to which what comes now is published
        self._turned_at: i64 = 0  # how much had come before
        self._by_exchange: dict[Exchange, int] | None = None  # what had come by then, once there were several
        self._most: i64 = FEW

    def unrecorded(self) -> i64:
        """How many messages came that the log does not have."""
        return self.published - self.recorded

    def routed(self) -> i64:
        """How many copies of what clients published were meant for it, also those that it refused."""
        accounts = self._accounts
        if accounts is None:
            return self.published + self.turned_away
        return self.published + self.turned_away - accounts.came_otherwise() + accounts.came_by(DUE)

    def turn_to(self, exchange: Exchange) -> None:
        """What comes from now on is published to another exchange. Only this costs anything: how much it is follows
        from what is counted anyway."""
        routed = self.routed()
        source = self.source
        if source is not None:
            known = self._by_exchange
            if known is None:
                known = {}
                self._by_exchange = known
            known[source] = known.get(source, 0) + int(routed - self._turned_at)
            if len(known) > self._most:
                self._by_exchange = {one: count for one, count in known.items() if not one.gone}
                self._most = 2 * len(self._by_exchange) + FEW
        self._turned_at = routed
        self.source = exchange

    def by_exchange(self) -> dict[Exchange, int]:
        """The copies meant for it by the exchange they were published to, which need not be the one it is bound to; of
        exchanges that are there."""
        found: dict[Exchange, int] = {}
        if self._by_exchange is not None:
            found = {exchange: count for exchange, count in self._by_exchange.items() if not exchange.gone}
        source = self.source
        if source is not None and not source.gone:
            found[source] = found.get(source, 0) + int(self.routed() - self._turned_at)
        return found

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
