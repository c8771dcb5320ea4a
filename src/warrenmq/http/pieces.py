"""Long answers: made and sent in pieces, so that no list of very many objects is ever joined or copied as a whole.

Duty: parts become pieces of a bounded size as they are made; a short answer is sent as one, a long one piece by piece
with everybody else served in between. Not here: what the parts say.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from typing import Any

from starlette.responses import Response, StreamingResponse

from warrenmq.http.endpoint import Json
from warrenmq.http.protocol.protocol import CUT_OFF
from warrenmq.server.measured import measured_parts
from warrenmq.server.watchdog import Watchdog

PIECE = 256 << 10  # octets that are sent before everybody else is served
SHORT = 1 << 20  # octets of an answer that is sent as one


class Pieces:
    """An answer that is being made, or octets for a file."""

    def __init__(self, first: bytes = b"") -> None:
        self._whole: deque[bytes] = deque()
        self._parts = [first]
        self._room = PIECE - len(first)
        self.size = len(first)

    def add(self, part: bytes) -> None:
        self._parts.append(part)
        self._room -= len(part)
        self.size += len(part)
        if self._room <= 0:
            self._close()

    def _close(self) -> None:
        self._whole.append(b"".join(self._parts))
        self._parts = []
        self._room = PIECE

    def taken(self) -> deque[bytes]:
        """All of it; nothing is added any more."""
        if self._parts:
            self._close()
        return self._whole

    def json(self) -> Response:
        if self.size <= SHORT:
            return Json(b"".join(self.taken()))
        return InPieces(self, Json.media_type)

    def answer(self, media_type: str) -> Response:
        if self.size <= SHORT:
            return Response(b"".join(self.taken()), media_type=media_type)
        return InPieces(self, media_type)


class MayEndEarly(StreamingResponse):
    """An answer that is made as it is sent, and ends its connection when ``Ended`` says that the rest will not come."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self._cut_off = scope["state"][CUT_OFF]
        await super().__call__(scope, receive, send)

    async def stream_response(self, send: Any) -> None:
        try:
            await super().stream_response(send)
        except Ended:
            self._cut_off()
            await asyncio.Event().wait()  # until the connection is gone, which ends this


class Ended(Exception):
    """There is no more of what is being sent, and it is not whole."""


class InPieces(Response):
    """A long answer on its way; what is sent is let go."""

    def __init__(self, pieces: Pieces, media_type: str) -> None:
        self.status_code = 200
        self.media_type = media_type
        self.background = None
        self.size = pieces.size
        self.pieces = pieces.taken()
        self.init_headers({"content-length": str(self.size)})

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        while self.pieces:
            await send({"type": "http.response.body", "body": self.pieces.popleft(), "more_body": True})
            await asyncio.sleep(0)
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def paced(watchdog: Watchdog, what: str, parts: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Parts for a streamed answer: however fast the client reads, everybody else is served between two, and whoever
    makes one for long is named."""
    async for part in measured_parts(watchdog, what, parts):
        yield part
        await asyncio.sleep(0)
