"""Requests that come while the broker still reads its messages wait until it knows them all.

Duty: hold every request but the probes, so that no count is answered too small and no queue as empty. AMQP clients wait
likewise (``broker/connection/connections.py``).
"""

from __future__ import annotations

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from warrenmq.server.app import Server

PROBES = ("/healthz", "/readyz")


class UntilWhole:
    """The ASGI layer that holds requests until the server is whole, or refuses them when it stops before that."""

    def __init__(self, app: ASGIApp, server: Server) -> None:
        self._app = app
        self._server = server

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] not in PROBES and self._server.starting is not None:
            await self._server.whole.wait()
            if self._server.starting is not None:
                await PlainTextResponse("stopping\n", status_code=503)(scope, receive, send)
                return
        await self._app(scope, receive, send)
