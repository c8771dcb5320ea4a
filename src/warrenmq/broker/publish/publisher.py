"""Whoever publishes, as far as the stages may know.

Duty: facts for the checks. There is no channel and no connection in it, so that Spark's ``route`` asks the same checks.
"""

from __future__ import annotations

from typing import Final, final

from warrenmq.broker.access.access import Access
from warrenmq.broker.records import Exchange
from warrenmq.broker.services.limits import Limits


@final
class Publisher:
    """A user in a virtual host, with the rights and limits that hold for it."""

    def __init__(
        self,
        username: str | None,
        virtual_host: str,
        exchanges: dict[str, Exchange],
        access: Access,
        limits: Limits,
    ) -> None:
        self.username: Final = username  # None: nobody in particular, who may do everything
        self.virtual_host: Final = virtual_host
        self.exchanges: Final = exchanges
        self.access: Final = access
        self.limits: Final = limits
        self.reply_address: str = ""  # where replies to it arrive while it listens for them (direct reply-to)
