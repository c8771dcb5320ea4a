"""Waiting: for the log, until a change is on disk or it is said why it is not; for others, while the client does."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from starlette.requests import ClientDisconnect, Request

from warrenmq.http.errors import ApiError

if TYPE_CHECKING:
    from warrenmq.broker.broker import Broker

Result = TypeVar("Result")

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


async def while_there(request: Request, working: Coroutine[Any, Any, Result]) -> Result:
    """What this comes to, as long as the client of a request without a body waits for it; else it is cancelled."""
    work = asyncio.ensure_future(working)
    leaving = asyncio.ensure_future(_leaves(request))
    try:
        await asyncio.wait([work, leaving], return_when=asyncio.FIRST_COMPLETED)
        if work.done():
            return await work
        raise ClientDisconnect
    finally:
        for task in (work, leaving):
            task.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await task


async def _leaves(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
