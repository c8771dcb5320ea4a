"""Where HTTP is served: the sockets of the HTTP port, the HTTPS port and the metrics port, bound and listening.

Duty: from settings to sockets. Who takes connections on them is ``http``'s; in a cluster that changes when the node
begins to lead, and the sockets stay.
"""

from __future__ import annotations

import socket
from dataclasses import dataclass, field

from warrenmq.server.config import Settings
from warrenmq.server.listening import listen


@dataclass(slots=True)
class WebSockets:
    """All sockets of HTTP; none where a port is off."""

    plain: list[socket.socket] = field(default_factory=list)
    secure: list[socket.socket] = field(default_factory=list)
    metrics: list[socket.socket] = field(default_factory=list)

    def all(self) -> list[socket.socket]:
        return [*self.plain, *self.secure, *self.metrics]

    def close(self) -> None:
        for one in self.all():
            one.close()


def listen_for_web(settings: Settings) -> WebSockets:
    """Raises OSError when one cannot be had; then none is kept."""
    hosts = settings.http_host or settings.host
    found = WebSockets()
    try:
        if settings.https_port is not None:
            found.secure = listen(hosts, settings.https_port)
        if settings.http_port is not None:
            found.plain = listen(hosts, settings.http_port)
        if settings.metrics_port is not None:
            found.metrics = listen(settings.metrics_host or hosts, settings.metrics_port)
    except OSError:
        found.close()
        raise
    return found
