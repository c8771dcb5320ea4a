"""How many connections and channels each user has.

Duty: to count, and to say when a limit is reached. Which connections there are is in ``connections.py``.
"""

from __future__ import annotations

from typing import Final

from warrenmq.broker.channel.session import Session
from warrenmq.broker.connection.again import Again
from warrenmq.broker.connection.greeting import Greeting
from warrenmq.broker.connection.introductions import Introductions
from warrenmq.broker.core import Core
from warrenmq.wire.replies import NOT_ALLOWED, AmqpError


class Attendance:
    """The connections as each of them knows the others. Counts are kept, never walked for."""

    def __init__(self, core: Core) -> None:
        self._access: Final = core.registry.access
        self._totals: Final = core.registry.totals
        self._of_user: Final[dict[str, int]] = {}  # those that have opened a vhost
        self._channels_of_user: Final[dict[str, int]] = {}
        self.starting: bool = False  # the broker does not know all its messages yet
        self.greeting: Final = Greeting(core.node)
        self.introductions: Final = Introductions()
        self.again: Final = Again(core.services.io_timers, core.services.io_clock)

    def __len__(self) -> int:
        raise NotImplementedError

    def gone(self, connection: Session, reason: str) -> None:
        """It has ended, and why."""
        raise NotImplementedError

    def wait_for_start(self, connection: Session) -> None:
        """It has logged in while the broker starts: what it asks is heard when that is over."""
        raise NotImplementedError

    def vhost_opened(self, username: str) -> None:
        """A connection has logged in and opened its vhost."""
        _count(self._of_user, username, 1)

    def vhost_left(self, username: str) -> None:
        _count(self._of_user, username, -1)

    def of_user(self, username: str) -> int:
        return self._of_user.get(username, 0)

    def check_channel_limit(self, username: str) -> None:
        """530 when the user has as many channels as it may."""
        limit = self._access.user_limit(username, "max-channels")
        if limit >= 0 and self._channels_of_user.get(username, 0) >= limit:
            raise AmqpError(
                NOT_ALLOWED,
                f"number of channels opened for user '{username}' has reached the maximum allowed "
                f"user limit of ({limit})",
            )

    def direct_opened(self, username: str) -> None:
        """The management API does something as this user, on a connection and a channel that nobody lists."""
        self._totals.connections_opened += 1
        self.channel_opened(username)

    def direct_closed(self) -> None:
        """It is done; the channel has been counted where it ended."""
        self._totals.connections_closed += 1

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
