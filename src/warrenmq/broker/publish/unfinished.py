"""A publish that takes several turns, as an interceptor has made a very long body of what came.

Duty: to remember how far it is: everything up to the interceptors is done, and the log gets the new body some a turn.
Not here: the rest of its way (``path.finish``), and who sees it to its end (``channel/finishing.py``).
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from warrenmq.broker.delivering.large_body import LoggedAhead
from warrenmq.broker.message import Message
from warrenmq.broker.publish.wish import Wish
from warrenmq.broker.services.services import Services
from warrenmq.wire.peek import Peek

AT_ONCE: Final = 8 << 20  # octets that are logged in a turn


@final
class Unfinished:
    """One publish, with its message as the interceptors made it."""

    def __init__(
        self,
        services: Services,
        arguments: bytes,
        size: i64,
        properties: Peek,
        message: Message,
        number: i64,
        wish: Wish | None,
    ) -> None:
        self._services: Final = services
        self.arguments: Final = arguments
        self.size: Final = size  # as it came
        self.properties: Final = properties  # as they came
        self.message: Final = message
        self.number: Final = number
        self.wish: Final = wish
        self.body: Final = LoggedAhead(services.log, message.pieces())

    def log_some(self) -> bool:
        """As much as a turn may; says whether the log has all of the body."""
        return self._services.jobs.may_log() and self.body.log_some(AT_ONCE)
