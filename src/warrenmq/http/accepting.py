"""Connections taken on HTTP's sockets, and the application behind them: uvicorn's protocol on the broker's loop.

Duty: who comes is let in when there is room, over TLS where that is asked for; the application is loaded when somebody
comes, as it is a third of the memory of an idle broker and half of its start. ``let_go`` leaves the sockets open and
nobody on them, so that somebody else can go on there. Not here: what is answered (``app.py``, ``following.py``).
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from warrenmq.http.protocol.http_connections import HEADER, HttpConnections
from warrenmq.server.background import Background
from warrenmq.server.config import Settings
from warrenmq.server.logging import events
from warrenmq.server.watchdog import Watchdog
from warrenmq.server.web_sockets import WebSockets

if TYPE_CHECKING:
    from starlette.applications import Starlette

OUT_OF_DESCRIPTORS = 0.1  # seconds to wait when a socket cannot be accepted
GRACE = 2.0  # seconds that requests have to be answered in the end


class Apps(NamedTuple):
    """The applications that are served, on the metrics port and on all others."""

    everything: Starlette
    metrics: Starlette


class Surroundings(NamedTuple):
    """The things that ``Accepting`` needs of whoever serves HTTP."""

    settings: Settings
    background: Background
    watchdog: Watchdog
    http_connections: HttpConnections
    https: Callable[[], ssl.SSLContext | None]  # what HTTPS shows from now on
    apps: Callable[[], Apps]


class Accepting:
    """The taking of connections, from ``start`` to ``let_go`` or ``stop``."""

    def __init__(self, around: Surroundings) -> None:
        self._around = around
        self._sockets = WebSockets()
        self._uvicorn: Any = None
        self._task: asyncio.Task[None] | None = None
        self._accepting: list[asyncio.Task[None]] = []

    def start(self, sockets: WebSockets) -> None:
        self._sockets = sockets
        for one in sockets.all():
            asyncio.get_running_loop().add_reader(one.fileno(), self._somebody_came)

    def _somebody_came(self) -> None:
        self._stop_watching()
        self._task = self._around.background.forever("the HTTP server", self._run)

    def _stop_watching(self) -> None:
        for one in self._sockets.all():
            asyncio.get_running_loop().remove_reader(one.fileno())

    async def _run(self) -> None:
        import uvicorn

        apps = self._around.apps()
        config = self._config(apps.everything)
        self._uvicorn = uvicorn.Server(config)
        self._uvicorn.capture_signals = _no_signals
        protocol, of_metrics = self._protocol(config), self._protocol(self._config(apps.metrics))
        self._accepting = [
            self._around.background.forever(
                "the HTTP listener",
                partial(self._accept, one, of_metrics if one in self._sockets.metrics else protocol),
            )
            for one in self._sockets.all()
        ]
        try:
            await self._uvicorn.serve(sockets=[])
        finally:
            for task in self._accepting:
                task.cancel()

    def _config(self, app: Any) -> Any:
        import uvicorn

        from warrenmq.http.protocol.protocol import PatientProtocol
        from warrenmq.server.measured import measured

        config = uvicorn.Config(
            measured(app, self._around.watchdog),
            http=PatientProtocol,
            ws="none",
            log_config=None,
            access_log=False,
            lifespan="off",
            server_header=False,
            proxy_headers=False,  # http/protocol/peer.py reads them, from whom it may
            timeout_graceful_shutdown=1,
        )
        config.load()
        return config

    def _protocol(self, config: Any) -> Callable[[], Any]:
        """What makes a connection; those of all apps end with the one server."""
        from warrenmq.http.protocol.protocol import PatientProtocol

        around = self._around
        state = self._uvicorn.server_state
        return partial(
            PatientProtocol,
            around.settings,
            around.http_connections,
            around.background,
            config=config,
            server_state=state,
            app_state={},
        )

    async def _accept(self, listener: socket.socket, protocol: Callable[[], Any]) -> None:
        """One at a time, and only when there is room: a flood of connections takes no descriptor from AMQP."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                client, _ = await loop.sock_accept(listener)
            except OSError as error:
                events("http").error("http.accept_failed", reason=str(error))
                await asyncio.sleep(OUT_OF_DESCRIPTORS)
                continue
            try:
                await self._around.http_connections.room()
                if listener in self._sockets.secure:
                    shaking = Handshake(self._around, client, protocol)
                    self._around.background.task("an HTTPS handshake", shaking.run())
                else:
                    await loop.connect_accepted_socket(protocol, client)
            except OSError:
                client.close()  # it left before it was let in

    async def let_go(self) -> WebSockets:
        """Nobody is taken here any more, and the requests under way are answered to their end beside whoever goes on:
        the sockets, with those on them that nobody has taken yet."""
        if self._task is None:
            self._stop_watching()
        for task in self._accepting:
            task.cancel()
        await asyncio.gather(*self._accepting, return_exceptions=True)
        if self._uvicorn is not None:
            self._uvicorn.should_exit = True
        sockets, self._sockets = self._sockets, WebSockets()
        return sockets

    async def stop(self) -> None:
        if self._uvicorn is not None:
            self._uvicorn.should_exit = True
        if self._task is not None:
            try:
                await asyncio.wait_for(self._task, GRACE)
            except (TimeoutError, asyncio.CancelledError):
                self._task.cancel()
        if self._task is None:
            self._stop_watching()
        self._sockets.close()


class Handshake:
    """A connection that is not yet one: it counts as one without a header, and has as long as for a header."""

    def __init__(self, around: Surroundings, client: socket.socket, protocol: Callable[[], Any]) -> None:
        self._around = around
        self._client = client
        self._protocol = protocol
        around.http_connections.enter(self, HEADER)

    def leave(self) -> None:
        """Somebody else needs the place."""
        self._client.close()

    async def run(self) -> None:
        timeout = self._around.settings.http_header_timeout
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                self._protocol, self._client, ssl=self._around.https(), ssl_handshake_timeout=timeout
            )
        except (OSError, ValueError, TimeoutError) as error:  # ssl.SSLError is an OSError; ValueError: it was closed
            events("http").info("https.handshake_failed", reason=str(error) or type(error).__name__)
            self._client.close()
        finally:
            self._around.http_connections.leave(self)


class _no_signals:
    """Signals belong to ``warren serve``, not to the web server."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        return None
