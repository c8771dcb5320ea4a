"""The console's routes; nothing of it is under /api."""

from __future__ import annotations

from starlette.routing import BaseRoute, Route

from warrenmq.http.bridge import Bridge
from warrenmq.http.console.files import Files
from warrenmq.http.console.login import Login
from warrenmq.http.console.stream import Look, Streams


def routes(bridge: Bridge, look: Look) -> list[BaseRoute]:
    files, login, streams = Files(), Login(bridge), Streams(bridge, look)
    return [
        Route("/", files.page, methods=["GET"]),
        Route("/console/session", login.session, methods=["GET", "POST", "DELETE"]),
        Route("/console/stream", streams.stream, methods=["GET"]),
        Route("/console/{path:path}", files.file, methods=["GET"]),
    ]
