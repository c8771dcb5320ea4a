"""Failed logins, remembered by user and address, so that guessing a password takes its time.

Each failed attempt of a pair costs it a second; ten seconds may be owed before anybody waits. Who owes more waits its
turn before its password is looked at, right or wrong, so that neither the answer nor its time tells a guess from a hit,
and trying on many connections at once gains nothing. A pair never waits for another address: a right password from
there comes in at once, whoever guesses elsewhere.

Trying a few passwords with very many users takes its time too: the first failed attempt of each pair costs its address
a second as well, of which sixty may be owed. So a client that fails again and again with one user delays that user
alone, and not others behind the same address.

Duty: who waits how long. Not here: judging passwords (``access.py``), and what is done while somebody waits.

Invariant: what is remembered is bounded by ``MOST`` pairs and addresses; what failed longest ago is forgotten first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

from mypy_extensions import i64

from warrenmq.broker.services.timers import Timer

COST: Final = 1000  # ms that a failed attempt costs
FREE: Final = 10_000  # ms that a pair may owe before it waits
ADDRESS_FREE: Final = 60_000  # ms that an address may owe for its pairs before new ones wait
LONGEST: Final = 5000  # ms; whoever would have to wait longer is refused instead
MOST: Final = 10_000  # pairs, and addresses
WAITING: Final = 20  # attempts of one address that may wait at once
NAME: Final = 255  # characters of a user name that count: there are no longer ones
REFUSED: Final = -1


@final
class Debts:
    """A bounded memory of who owes time, and until when, in ms."""

    def __init__(self) -> None:
        self._until: dict[tuple[str, str], int] = {}

    def __len__(self) -> int:
        return len(self._until)

    def of(self, who: tuple[str, str], now: i64) -> int:
        return max(self._until.get(who, 0), int(now))

    def put(self, who: tuple[str, str], until: int, now: i64) -> None:
        """Remember it as the latest, unless nothing is owed; and forget the earliest."""
        self._until.pop(who, None)
        if until > now:
            self._until[who] = until
        for _ in range(2):
            if not self._until:
                return
            first = next(iter(self._until))
            if self._until[first] > now and len(self._until) <= MOST:
                return
            del self._until[first]


@final
class FailedLogins:
    """The recent failures of each user and address, and the pause that the next attempt has to keep."""

    def __init__(self) -> None:
        self._pairs: Final = Debts()  # by user and address
        self._addresses: Final = Debts()  # by "" and address
        self._waiting: dict[str, int] = {}  # by address

    def __len__(self) -> int:
        return len(self._pairs) + len(self._addresses)

    def wait(self, user: str, address: str, now: i64) -> i64:
        """Somebody attempts a login: ms until the password may be looked at, or ``REFUSED``.

        Unless refused, ``over`` has to follow, once, when it was looked at.
        """
        pair = (user[:NAME], address)
        owed = self._pairs.of(pair, now)
        by_address = 0
        wait: i64 = owed + COST - FREE - now
        if owed == now:
            by_address = self._addresses.of(("", address), now)
            wait = max(wait, by_address + COST - ADDRESS_FREE - now)
        if wait > LONGEST or (wait > 0 and self._waiting.get(address, 0) >= WAITING):
            return REFUSED
        self._pairs.put(pair, owed + COST, now)
        if by_address:
            self._addresses.put(("", address), by_address + COST, now)
        if wait <= 0:
            return 0
        self._waiting[address] = self._waiting.get(address, 0) + 1
        return wait

    def over(self, user: str, address: str, waited: bool, right: bool, now: i64) -> None:
        """The attempt was judged, or given up: a right password costs nothing."""
        if waited:
            left = self._waiting.get(address, 1) - 1
            if left > 0:
                self._waiting[address] = left
            else:
                self._waiting.pop(address, None)
        if right:
            pair = (user[:NAME], address)
            owed = self._pairs.of(pair, now) - COST
            self._pairs.put(pair, owed, now)
            if owed <= now:  # it was the first of its pair
                self._addresses.put(("", address), self._addresses.of(("", address), now) - COST, now)


@final
class Turn(Timer):
    """The end of a wait."""

    def __init__(self, work: Callable[[], None]) -> None:
        super().__init__()
        self._work: Final = work

    def fire(self) -> None:
        self._work()
