"""The HTTP side of a server: the management app on the same loop, by uvicorn. ``Server`` is given it, or none."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from warrenmq.http.accepting import Accepting, Apps, Surroundings
from warrenmq.http.figures.history import History
from warrenmq.http.figures.sampler import Sampler
from warrenmq.http.protocol.http_connections import HttpConnections
from warrenmq.server.app import Server, Web
from warrenmq.server.config import SettingsError
from warrenmq.server.web_sockets import WebSockets

if TYPE_CHECKING:
    from warrenmq.http.bridge import Bridge
    from warrenmq.http.telemetry.telemetry import Telemetry


class WebServer(Web):
    """A server that listens from the start, and loads the app when somebody comes."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self.history = History()
        self._http_connections = HttpConnections(lambda: server.settings.http_connection_max)
        self._accepting = Accepting(
            Surroundings(
                server.settings,
                server.background,
                server.watchdog,
                self._http_connections,
                lambda: server.https,
                self._apps,
            )
        )
        self._sampling: asyncio.Task[None] | None = None
        self._bridge: Bridge | None = None
        self._telemetry: Telemetry | None = None

    def start(self, sockets: WebSockets) -> None:
        sampler = Sampler(self._server, self.history)
        self._sampling = self._server.background.forever("the samples of counters", sampler.run)
        self._accepting.start(sockets)
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
            self._bridge = Bridge(self._server, self.history, self._http_connections)
        return self._bridge

    def _apps(self) -> Apps:
        from warrenmq.http.app import create_app
        from warrenmq.http.metrics.routes import create_app as create_metrics_app

        bridge = self._its_bridge()
        return Apps(create_app(bridge), create_metrics_app(bridge))

    async def stop(self) -> None:
        if self._sampling is not None:
            self._sampling.cancel()
        if self._telemetry is not None:
            await self._telemetry.stop()
        await self._accepting.stop()
