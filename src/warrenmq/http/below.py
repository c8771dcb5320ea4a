"""A route to all paths that begin alike, whatever follows.

Starlette's own kind ends at a line feed, and names of vhosts, users and policies may have one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import Scope

VERBS = ["GET", "HEAD", "PUT", "POST", "DELETE", "OPTIONS"]


class Below(Route):
    """Whoever asks for one of them, with any verb."""

    def __init__(self, beginning: str, endpoint: Callable[[Request], Awaitable[Response]]) -> None:
        super().__init__(beginning, endpoint, methods=VERBS)

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        if scope["type"] != "http" or not scope["path"].startswith(self.path):
            return Match.NONE, {}
        if scope["method"] not in VERBS:
            return Match.PARTIAL, {"endpoint": self.endpoint, "path_params": {}}
        return Match.FULL, {"endpoint": self.endpoint, "path_params": {}}
