"""Waiting for the log: an answer comes when a change is on disk, or says why it is not."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any

from warrenmq.http.errors import ApiError

if TYPE_CHECKING:
    from warrenmq.broker.broker import Broker

LOOK_AGAIN = 5.0  # seconds between looks at whether the log can be written at all
PATIENCE = 60.0  # seconds in all before giving up on an answer


async def written(broker: Broker, change: Awaitable[Any]) -> None:
    """Until ``change`` is there; 503 that names the cause when the disk fails, or is far behind."""
    waiting = asyncio.ensure_future(change)
    waited = 0.0
    try:
        while True:
            done, _ = await asyncio.wait({waiting}, timeout=LOOK_AGAIN)
            if done:
                return
            waited += LOOK_AGAIN
            problem = broker.durability.problem
            if problem or waited >= PATIENCE:
                reason = problem or "the log has not got that far"
                raise ApiError(503, "unavailable", f"made, but not on disk yet: {reason}; it may still get there")
    finally:
        waiting.cancel()
