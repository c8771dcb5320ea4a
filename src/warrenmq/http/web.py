"""The HTTP side of a server: the management app on the same loop, by uvicorn. ``Server`` is given it, or none."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from warrenmq.http.figures.history import History
from warrenmq.http.figures.sampler import Sampler
from warrenmq.http.protocol.http_connections import HEADER
from warrenmq.server.app import Server, Web
from warrenmq.server.config import SettingsError
from warrenmq.server.logging import events

if TYPE_CHECKING:
    from warrenmq.http.bridge import Bridge
    from warrenmq.http.protocol.http_connections import HttpConnections
    from warrenmq.http.telemetry.telemetry import Telemetry

OUT_OF_DESCRIPTORS = 0.1  # seconds to wait when a socket cannot be accepted


class WebServer(Web):
    """A server that listens from the start, and loads the app when somebody comes."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self.history = History()
        self._sampling: asyncio.Task[None] | None = None
        self._uvicorn: Any = None
        self._task: asyncio.Task[None] | None = None
        self._sockets: list[socket.socket] = []
        self._secure: list[socket.socket] = []
        self._metrics: list[socket.socket] = []
        self._bridge: Bridge | None = None
        self._telemetry: Telemetry | None = None

    def start(self, sockets: list[socket.socket], secure: list[socket.socket], metrics: list[socket.socket]) -> None:
        """The app is loaded when somebody comes: it is a third of the memory of an idle broker, and half of its
        start."""
        self._sockets = [*sockets, *secure, *metrics]
        self._secure = secure
        self._metrics = metrics
        sampler = Sampler(self._server, self.history)
        self._sampling = self._server.background.forever("the samples of counters", sampler.run)
        for one in self._sockets:
            asyncio.get_running_loop().add_reader(one.fileno(), self._somebody_came)
        endpoint = self._server.settings.otel_endpoint
        if endpoint is not None:
            self._telemetry = self._start_telemetry(endpoint)

    def _start_telemetry(self, endpoint: str) -> Telemetry:
        from warrenmq.http.metrics.page import families

        try:
            from warrenmq.http.telemetry.telemetry import Telemetry
        except ModuleNotFoundError as error:
            hint = 'pip install "warrenmq[otel]"'
            raise SettingsError(f"otel_endpoint: {error.name} is not installed; {hint}, or leave it out") from None
        telemetry = Telemetry(self._server, endpoint, lambda: families(self._its_bridge()))
        telemetry.start()
        return telemetry

    def _its_bridge(self) -> Bridge:
        from warrenmq.http.bridge import Bridge

        if self._bridge is None:
            self._bridge = Bridge(self._server, self.history)
        return self._bridge

    def _somebody_came(self) -> None:
        self._stop_watching()
        self._task = self._server.background.forever("the HTTP server", self._run)

    def _stop_watching(self) -> None:
        for one in self._sockets:
            asyncio.get_running_loop().remove_reader(one.fileno())

    async def _run(self) -> None:
        import uvicorn

        from warrenmq.http.app import create_app
        from warrenmq.http.metrics.routes import create_app as create_metrics_app

        bridge = self._its_bridge()
        http_connections = bridge.http_connections
        config = self._config(create_app(bridge))
        self._uvicorn = uvicorn.Server(config)
        self._uvicorn.capture_signals = _no_signals
        protocol = self._protocol(config, http_connections)
        of_metrics = self._protocol(self._config(create_metrics_app(bridge)), http_connections)
        background = self._server.background
        accepting = [
            background.forever(
                "the HTTP listener",
                partial(self._accept, one, http_connections, of_metrics if one in self._metrics else protocol),
            )
            for one in self._sockets
        ]
        try:
            await self._uvicorn.serve(sockets=[])
        finally:
            for task in accepting:
                task.cancel()

    def _config(self, app: Any) -> Any:
        import uvicorn

        from warrenmq.http.protocol.protocol import PatientProtocol
        from warrenmq.server.measured import measured

        config = uvicorn.Config(
            measured(app, self._server.watchdog),
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

    def _protocol(self, config: Any, http_connections: HttpConnections) -> Callable[[], Any]:
        """What makes a connection; those of all apps end with the one server."""
        from warrenmq.http.protocol.protocol import PatientProtocol

        settings, background = self._server.settings, self._server.background
        state = self._uvicorn.server_state
        return partial(
            PatientProtocol, settings, http_connections, background, config=config, server_state=state, app_state={}
        )

    async def _accept(
        self, listener: socket.socket, http_connections: HttpConnections, protocol: Callable[[], Any]
    ) -> None:
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
                await http_connections.room()
                if listener in self._secure:
                    shaking = Handshake(self._server, client, protocol, http_connections)
                    self._server.background.task("an HTTPS handshake", shaking.run())
                else:
                    await loop.connect_accepted_socket(protocol, client)
            except OSError:
                client.close()  # it left before it was let in

    async def stop(self) -> None:
        if self._sampling is not None:
            self._sampling.cancel()
        if self._telemetry is not None:
            await self._telemetry.stop()
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


class Handshake:
    """A connection that is not yet one: it counts as one without a header, and has as long as for a header."""

    def __init__(
        self, server: Server, client: socket.socket, protocol: Callable[[], Any], http_connections: HttpConnections
    ) -> None:
        self._server = server
        self._client = client
        self._protocol = protocol
        self._http_connections = http_connections
        http_connections.enter(self, HEADER)

    def leave(self) -> None:
        """Somebody else needs the place."""
        self._client.close()

    async def run(self) -> None:
        timeout = self._server.settings.http_header_timeout
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                self._protocol, self._client, ssl=self._server.https, ssl_handshake_timeout=timeout
            )
        except (OSError, ValueError, TimeoutError) as error:  # ssl.SSLError is an OSError; ValueError: it was closed
            events("http").info("https.handshake_failed", reason=str(error) or type(error).__name__)
            self._client.close()
        finally:
            self._http_connections.leave(self)


class _no_signals:
    """Signals belong to ``warren serve``, not to the web server."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exc: object) -> None:
        return None
