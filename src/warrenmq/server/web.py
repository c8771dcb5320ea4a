"""The HTTP side of the server: the management app on the same loop, by uvicorn."""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from warrenmq.server.app import Server


class WebServer:
    def __init__(self, server: Server) -> None:
        self._server = server
        self._uvicorn: Any = None
        self._task: asyncio.Task[None] | None = None
        self._sockets: list[socket.socket] = []

    def start(self, sockets: list[socket.socket]) -> None:
        """The app is loaded when somebody comes: it is a third of the memory of an idle broker, and half of its
        start."""
        self._sockets = sockets
        for one in sockets:
            asyncio.get_running_loop().add_reader(one.fileno(), self._somebody_came)

    def _somebody_came(self) -> None:
        self._stop_watching()
        self._task = self._server.background.forever("the HTTP server", self._run)

    def _stop_watching(self) -> None:
        for one in self._sockets:
            asyncio.get_running_loop().remove_reader(one.fileno())

    async def _run(self) -> None:
        import uvicorn

        from warrenmq.http.app import create_app

        config = uvicorn.Config(
            create_app(self._server),
            log_config=None,
            access_log=False,
            lifespan="off",
            server_header=False,
            timeout_graceful_shutdown=1,
        )
        self._uvicorn = uvicorn.Server(config)
        self._uvicorn.capture_signals = _no_signals
        await self._uvicorn.serve(sockets=self._sockets)

    async def stop(self) -> None:
        if self._uvicorn is not None:
            self._uvicorn.should_exit = True
        if self._task is not None:
            try:
                await asyncio.wait_for(self._task, 2)
            except (TimeoutError, asyncio.CancelledError):
                self._task.cancel()
        if self._task is None:
            self._stop_watching()
        for one in self._sockets:
            one.close()


class _no_signals:
    """Signals belong to ``warren serve``, not to the web server."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exc: object) -> None:
        return None
