"""Failed logins, remembered by user and address, so that guessing a password takes its time.

Each failed attempt of a pair costs it a second; ten seconds may be owed before anybody waits. Who owes more waits its
turn before its password is looked at, right or wrong, so that neither the answer nor its time tells a guess from a hit,
and trying on many connections at once gains nothing. A pair never waits for another one: a right password from another
address comes in at once, whoever guesses elsewhere.

Duty: who waits how long. Not here: judging passwords (``access.py``), and what is done while somebody waits.

Invariant: what is remembered is bounded by ``MOST``; the pair that failed longest ago is forgotten first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

from mypy_extensions import i64

from warrenmq.broker.timers import Timer

COST: Final = 1000  # ms that a failed attempt costs its pair
FREE: Final = 10_000  # ms that may be owed before anybody waits
LONGEST: Final = 5000  # ms; whoever would have to wait longer is refused instead
MOST: Final = 10_000  # pairs
WAITING: Final = 20  # attempts of one address that may wait at once
NAME: Final = 255  # characters of a user name that count: there are no longer ones
REFUSED: Final = -1


@final
class Guesses:
    def __init__(self) -> None:
        self._owed: dict[tuple[str, str], int] = {}  # by user and address: until when, in ms
        self._waiting: dict[str, int] = {}  # by address

    def __len__(self) -> int:
        return len(self._owed)

    def wait(self, user: str, address: str, now: i64) -> i64:
        """Somebody attempts a login: ms until the password may be looked at, or ``REFUSED``.

        Unless refused, ``over`` has to follow, once, when it was looked at.
        """
        owed = max(self._take(user, address), int(now))
        wait: i64 = owed + COST - FREE - now
        if wait > LONGEST or (wait > 0 and self._waiting.get(address, 0) >= WAITING):
            self._put(user, address, owed, now)
            return REFUSED
        self._put(user, address, owed + COST, now)
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
            self._put(user, address, self._take(user, address) - COST, now)

    def _take(self, user: str, address: str) -> int:
        return self._owed.pop((user[:NAME], address), 0)

    def _put(self, user: str, address: str, owed: int, now: i64) -> None:
        """Remember it as the latest, unless nothing is owed; and forget the earliest."""
        if owed > now:
            self._owed[(user[:NAME], address)] = owed
        for _ in range(2):
            if not self._owed:
                return
            first = next(iter(self._owed))
            if self._owed[first] > now and len(self._owed) <= MOST:
                return
            del self._owed[first]


@final
class Turn(Timer):
    """The end of a wait."""

    def __init__(self, work: Callable[[], None]) -> None:
        super().__init__()
        self._work: Final = work

    def fire(self) -> None:
        self._work()
