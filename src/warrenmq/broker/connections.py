"""Who is connected: the open connections, and how many connections and channels each user has.

Duty: to count, and to say when a limit is reached. The life of one connection is in ``connection.py``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, final

from warrenmq.broker import reports
from warrenmq.broker.access import Access
from warrenmq.broker.totals import Totals
from warrenmq.wire.replies import AmqpError

if TYPE_CHECKING:
    from warrenmq.broker.connection import Connection


@final
class Connections:
    """In the order they came. Counts are kept, never walked for."""

    def __init__(self, access: Access, totals: Totals) -> None:
        self._access: Final = access
        self._totals: Final = totals
        self._all: Final[dict[Connection, bool]] = {}
        self._of_user: Final[dict[str, int]] = {}  # those that have opened a vhost
        self._channels_of_user: Final[dict[str, int]] = {}

    def __iter__(self) -> Iterator[Connection]:
        """Those that are there now; the loop may close them."""
        return iter(list(self._all))

    def __len__(self) -> int:
        return len(self._all)

    def __contains__(self, connection: object) -> bool:
        return connection in self._all

    def add(self, connection: Connection) -> None:
        self._all[connection] = True
        self._totals.connections_opened += 1

    def opened(self, connection: Connection) -> None:
        """It has logged in and opened its vhost."""
        _count(self._of_user, connection.username, 1)
        reports.about("info", "connection_opened", connection)

    def gone(self, connection: Connection) -> None:
        del self._all[connection]
        self._totals.connections_closed += 1
        vhost = connection.vhost
        if vhost is not None:
            vhost.connections -= 1
            _count(self._of_user, connection.username, -1)
            reports.about("info", "connection_closed", connection)

    def of_user(self, username: str) -> int:
        return self._of_user.get(username, 0)

    def check_channel_limit(self, username: str) -> None:
        """530 when the user has as many channels as it may."""
        limit = self._access.user_limit(username, "max-channels")
        if limit >= 0 and self._channels_of_user.get(username, 0) >= limit:
            raise AmqpError(
                530,
                f"number of channels opened for user '{username}' has reached the maximum allowed "
                f"user limit of ({limit})",
            )

    def channel_opened(self, username: str) -> None:
        self._totals.channels_opened += 1
        _count(self._channels_of_user, username, 1)

    def channel_closed(self, username: str) -> None:
        self._totals.channels_closed += 1
        _count(self._channels_of_user, username, -1)


def _count(counts: dict[str, int], name: str, change: int) -> None:
    count = counts.get(name, 0) + change
    if count > 0:
        counts[name] = count
    else:
        counts.pop(name, None)
