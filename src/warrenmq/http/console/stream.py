"""/console/stream: what the console's views watch, in one stream of server-sent events instead of a poll of each.

A view names paths of the API (``?watch=/overview&watch=/queues?page=1``). Each is asked as its user would ask it, at
once and then every ``EVERY`` seconds, and sent when the answer is another one. So a stream shows what the API shows,
to whom the API shows it: the session and the rights are looked at again every time, and no page of another origin may
open one. A round that took long is followed by a pause ``SHARE`` times as long, two consoles of one user ask once,
there are at most ``MOST`` streams, and without any nothing is done.

Duty: rounds, their pace, the form of an event. Not here: what an answer is (the API), slow readers (``protocol.py``).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from warrenmq.broker.access.access import User
from warrenmq.http import auth
from warrenmq.http.bridge import Bridge
from warrenmq.http.endpoint import Json
from warrenmq.http.errors import ApiError
from warrenmq.http.pieces import paced
from warrenmq.http.protocol import origin

EVERY = 2.0  # seconds between two rounds, at least
SHARE = 20  # times as long as a round took is the pause behind it
SLOWEST = 30.0  # seconds between two rounds, at most
FRESH = 1.0  # seconds in which an answer serves other consoles of the same user
SIGN_OF_LIFE = 15.0
MOST = 100
MOST_WATCHED = 16
LONGEST_PATH = 4096
OVER = b"event: over\ndata: {}\n\n"

Look = Callable[[User, str, Request], Awaitable[tuple[int, bytes]]]


class Streams:
    """The open streams of one broker. ``look``: what the API answers to this user."""

    def __init__(self, bridge: Bridge, look: Look, every: float = EVERY) -> None:
        self._bridge = bridge
        self._look = look
        self._every = every
        self._fresh: dict[tuple[str, str], tuple[float, int, bytes]] = {}
        self.open = 0

    async def stream(self, request: Request) -> Response:
        watched = request.query_params.getlist("watch")
        try:
            origin.check(request.headers, request.url.scheme, self._bridge.server.settings.http_origins, False)
            if auth.by_session(request, self._bridge) is None:
                raise ApiError(401, "not_authorized", "log in first")
            check(watched)
            if self.open >= MOST:
                raise ApiError(503, "unavailable", f"{MOST} consoles are watching already")
        except ApiError as error:
            return Json({"error": error.error, "reason": error.reason}, status_code=error.status)
        self.open += 1
        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        rounds = paced(self._bridge.server.watchdog, "what a console watches", self._rounds(request, watched))
        return Stream(self, rounds, headers)

    def closed(self) -> None:
        self.open -= 1
        if not self.open:
            self._fresh.clear()

    async def _rounds(self, request: Request, watched: list[str]) -> AsyncIterator[bytes]:
        sent: dict[str, tuple[int, bytes]] = {}
        quiet = time.monotonic()
        while not self._bridge.server.stopping:
            began = time.perf_counter()
            for path in watched:
                user = self._user(request)
                if user is None:
                    yield OVER
                    return
                found = await self._answer(user, path, request)
                if sent.get(path) != found:
                    sent[path] = found
                    quiet = time.monotonic()
                    yield event(path, *found)
            if time.monotonic() - quiet > SIGN_OF_LIFE:
                quiet = time.monotonic()
                yield b": here\n\n"
            await asyncio.sleep(pause(time.perf_counter() - began, self._every))

    def _user(self, request: Request) -> User | None:
        try:
            return auth.by_session(request, self._bridge)
        except ApiError:
            return None  # no tag any more, or not from this address

    async def _answer(self, user: User, path: str, request: Request) -> tuple[int, bytes]:
        now = time.monotonic()
        known = self._fresh.get((user.name, path))
        if known is not None and now - known[0] < FRESH:
            return known[1:]
        found = await self._look(user, path, request)
        for key in [key for key, (then, _, _) in self._fresh.items() if now - then >= FRESH]:
            del self._fresh[key]
        self._fresh[(user.name, path)] = (now, *found)
        return found


class Stream(StreamingResponse):
    """An answer that is counted until it ends, however it does."""

    def __init__(self, streams: Streams, content: AsyncIterator[bytes], headers: dict[str, str]) -> None:
        super().__init__(content, media_type="text/event-stream", headers=headers)
        self._streams = streams

    async def __call__(self, scope: object, receive: object, send: object) -> None:
        try:
            await super().__call__(scope, receive, send)  # type: ignore[arg-type]
        finally:
            self._streams.closed()


def check(watched: list[str]) -> None:
    if not 1 <= len(watched) <= MOST_WATCHED:
        raise ApiError(400, "bad_request", f"watch: between 1 and {MOST_WATCHED} paths")
    for path in watched:
        if not path.startswith("/") or len(path) > LONGEST_PATH:
            raise ApiError(400, "bad_request", f"watch: '{path[:40]}' is no path of the API")


def event(path: str, status: int, body: bytes) -> bytes:
    """``body`` is JSON in one line, or nothing."""
    shown = msgspec.json.encode({"path": path, "status": status, "body": msgspec.Raw(body or b"null")})
    return b"data: " + shown + b"\n\n"


def pause(took: float, every: float) -> float:
    """Seconds until the next round: what it costs is a small share of the time, however many objects there are."""
    return min(max(every, took * SHARE), SLOWEST)
