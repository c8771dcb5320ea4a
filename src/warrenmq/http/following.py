"""The HTTP of a node that follows: it has no broker, so it tells how the cluster stands and who leads.

Duty: probes, metrics, ``/api/cluster`` and the check for load balancers; everything else is 503 and names the leader.
It is no redirect: a client would send its password to an address that it was not given. When the node begins to lead,
the sockets go to the broker's HTTP (``hand_over``), so nobody is refused in between.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable

from warrenmq.http.accepting import Accepting, Apps, Surroundings
from warrenmq.http.protocol.http_connections import HttpConnections
from warrenmq.server.background import Background
from warrenmq.server.config import Settings
from warrenmq.server.standing import Standing
from warrenmq.server.tls_files import https_context
from warrenmq.server.watchdog import Watchdog
from warrenmq.server.web_sockets import WebSockets


class FollowerWeb:
    """The HTTP of a node, from the beginning of its process until the node leads, or ends."""

    def __init__(self, settings: Settings, background: Background, standing: Callable[[], Standing]) -> None:
        self._settings = settings
        self._standing = standing
        self._https: ssl.SSLContext | None = None if settings.https_port is None else https_context(settings)
        connections = HttpConnections(lambda: settings.http_connection_max)
        self._accepting = Accepting(
            Surroundings(settings, background, Watchdog(), connections, lambda: self._https, self._apps)
        )

    def start(self, sockets: WebSockets) -> None:
        self._accepting.start(sockets)

    async def hand_over(self) -> WebSockets:
        return await self._accepting.let_go()

    async def stop(self) -> None:
        await self._accepting.stop()

    def _apps(self) -> Apps:
        from warrenmq.http.follower_app import everything, metrics

        return Apps(everything(self._settings, self._standing), metrics(self._settings, self._standing))
