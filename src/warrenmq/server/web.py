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
        self._socket: socket.socket | None = None

    async def start(self, host: str, port: int) -> tuple[str, int]:
        """Bind now, so that a port in use is known; the app is loaded when somebody comes (it is a third of the memory
        of an idle broker, and half of its start)."""
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # asyncio looks at it for TCP_NODELAY
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind((host, port))
        except OSError:
            sock.close()
            raise
        sock.listen(128)
        sock.setblocking(False)
        self._socket = sock
        asyncio.get_running_loop().add_reader(sock.fileno(), self._somebody_came)
        address = sock.getsockname()
        return str(address[0]), int(address[1])

    def _somebody_came(self) -> None:
        assert self._socket is not None
        sock = self._socket
        asyncio.get_running_loop().remove_reader(sock.fileno())
        self._task = self._server.background.forever("the HTTP server", lambda: self._run(sock))

    async def _run(self, sock: socket.socket) -> None:
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
        await self._uvicorn.serve(sockets=[sock])

    async def stop(self) -> None:
        if self._uvicorn is not None:
            self._uvicorn.should_exit = True
        if self._task is not None:
            try:
                await asyncio.wait_for(self._task, 2)
            except (TimeoutError, asyncio.CancelledError):
                self._task.cancel()
        if self._socket is not None:
            if self._task is None:
                asyncio.get_running_loop().remove_reader(self._socket.fileno())
            self._socket.close()


class _no_signals:
    """Signals belong to ``warren serve``, not to the web server."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exc: object) -> None:
        return None
