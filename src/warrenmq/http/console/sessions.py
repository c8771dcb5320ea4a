"""Who is logged in at the console: sessions in memory, by the hash of a token that only the browser has.

Duty: to begin, find and end them, and to bound their number. A session is the user's of that log-in: it is over when
the account is deleted (also if one of the same name follows) or has another password, or when its time is up. Not
here: whether the user may come at all (``auth.py``), cookies (``login.py``). The clock is handed in, in milliseconds.
"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass

from warrenmq.broker.access.access import Access, User

LIFE = 8 * 3600 * 1000  # ms, as RabbitMQ's login_session_timeout
MOST = 1000
MOST_OF_A_USER = 50


@dataclass(slots=True)
class Session:
    """One log-in: whose it is, with which password, and until when it counts."""

    account: User
    password_hash: str
    until: int


class Sessions:
    """The sessions of one broker, the oldest first."""

    def __init__(
        self, access: Access, life: int = LIFE, most: int = MOST, most_of_a_user: int = MOST_OF_A_USER
    ) -> None:
        self._access = access
        self._life = life
        self._most = most
        self._most_of_a_user = most_of_a_user
        self._by_hash: dict[bytes, Session] = {}

    def __len__(self) -> int:
        return len(self._by_hash)

    def begin(self, user: User, now: int) -> str:
        """The token of a new session; what is over goes, and, where there are too many, the oldest."""
        for hash in [hash for hash, one in self._by_hash.items() if not self._holds(one, now)]:
            del self._by_hash[hash]
        own = [hash for hash, one in self._by_hash.items() if one.account is user]
        if len(own) >= self._most_of_a_user:
            del self._by_hash[own[0]]
        elif len(self._by_hash) >= self._most:
            del self._by_hash[next(iter(self._by_hash))]
        token = secrets.token_urlsafe(32)
        self._by_hash[_hash(token)] = Session(user, user.password_hash, now + self._life)
        return token

    def user(self, token: str, now: int) -> User | None:
        """Whose session this is; none when it is over."""
        hash = _hash(token)
        found = self._by_hash.get(hash)
        if found is None:
            return None
        if not self._holds(found, now):
            del self._by_hash[hash]
            return None
        return found.account

    def end(self, token: str) -> None:
        self._by_hash.pop(_hash(token), None)

    def _holds(self, session: Session, now: int) -> bool:
        account = session.account
        same = self._access.user(account.name) is account and account.password_hash == session.password_hash
        return same and now < session.until


def _hash(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
