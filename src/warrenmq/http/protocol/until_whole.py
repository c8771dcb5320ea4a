"""Requests that come while the broker still reads its messages wait until it knows them all.

Duty: hold every request but the probes, so that no count is answered too small and no queue as empty. AMQP clients wait
likewise (``broker/connection/connections.py``).
"""

from __future__ import annotations

import asyncio

from starlette.types import ASGIApp, Receive, Scope, Send

PROBES = ("/healthz", "/readyz")


class UntilWhole:
    """The ASGI layer that holds requests until the event is set."""

    def __init__(self, app: ASGIApp, whole: asyncio.Event) -> None:
        self._app = app
        self._whole = whole

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not self._whole.is_set() and scope["type"] == "http" and scope["path"] not in PROBES:
            await self._whole.wait()
        await self._app(scope, receive, send)
