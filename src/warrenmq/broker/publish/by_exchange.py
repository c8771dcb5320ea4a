"""What one channel published, by the exchanges it published to.

Duty: the numbers. The channel counts all it publishes anyway; here stands what of it was whose. While it publishes to
one exchange there is nothing to count: its share is what the channel has counted since it turned to it. Only who turns
to another exchange pays for it, once. Confirms are told by ranges of numbers, so it is kept which of them were whose,
as long as they are not told (``Runs``). Nothing is decided by them.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Final, final

from mypy_extensions import i64

from warrenmq.broker.records import Exchange

FEW: Final = 64  # exchanges that are kept, gone or not; runs that are kept, told or not


@final
class Share:
    """The part of one exchange."""

    def __init__(self) -> None:
        self.published: i64 = 0
        self.confirmed: i64 = 0
        self.returned: i64 = 0
        self.dropped: i64 = 0


@final
class Runs:
    """The shares that numbers of publishes belong to, from the first of each run to the next."""

    def __init__(self) -> None:
        self._firsts: list[int] = []
        self._shares: list[Share] = []
        self._most: i64 = FEW

    def __len__(self) -> int:
        return len(self._shares)

    def begin(self, first: i64, share: Share) -> None:
        self._firsts.append(first)
        self._shares.append(share)

    def acked(self, first: i64, last: i64) -> None:
        """The publisher is told of these."""
        shares = self._shares
        i: i64 = 0 if len(shares) < 2 else max(0, bisect_right(self._firsts, first) - 1)
        while i < len(shares) and first <= last:
            end = last
            if i + 1 < len(shares) and self._firsts[i + 1] <= last:
                end = self._firsts[i + 1] - 1
            shares[i].confirmed += end - first + 1
            first = end + 1
            i += 1

    def forget(self, below: i64) -> None:
        """All below this number are told."""
        if len(self._shares) <= self._most:
            return
        done: i64 = max(0, bisect_right(self._firsts, below) - 1)
        del self._firsts[:done]
        del self._shares[:done]
        self._most = 2 * len(self._shares) + FEW


@final
class ByExchange:
    """The shares of one channel's publishes."""

    def __init__(self) -> None:
        self._shares: Final[dict[Exchange, Share]] = {}
        self._most: i64 = FEW
        self._share: Share | None = None  # of the exchange that is published to now
        # what the channel had counted when it turned to it
        self._published: i64 = 0
        self._dropped: i64 = 0

    def turn(self, exchange: Exchange, published: i64, dropped: i64) -> Share:
        """What is published from now on goes to this exchange; so much was counted until now."""
        self.settle(published, dropped)
        share = self.of(exchange)
        self._share = share
        return share

    def settle(self, published: i64, dropped: i64) -> None:
        """So much was counted until now: what is new of it is the share of the exchange of now."""
        share = self._share
        if share is not None:
            share.published += published - self._published
            share.dropped += dropped - self._dropped
        self._published = published
        self._dropped = dropped

    def of(self, exchange: Exchange) -> Share:
        share = self._shares.get(exchange)
        if share is None:
            share = Share()
            self._shares[exchange] = share
            if len(self._shares) > self._most:
                self._let_go()
                self._most = 2 * len(self._shares) + FEW
        return share

    def shares(self) -> dict[Exchange, Share]:
        """Of the exchanges that are there."""
        self._let_go()
        return self._shares

    def _let_go(self) -> None:
        for exchange in [exchange for exchange in self._shares if exchange.gone]:
            del self._shares[exchange]
