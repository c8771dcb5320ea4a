"""One HTTP connection that cannot stay for ever without getting anywhere.

uvicorn waits as long as a client likes: for the rest of a header, for the next octet of a body, for somebody to read an
answer. Here each of these has its time, and a header its size. Time counts from the beginning of a header and not from
its last octet, and a body or an answer has to get on by ``PACE`` octets in each span, so that an octet now and then
does not help.

Duty: deadlines, and counting the connection under what it is doing. Parsing and answering are uvicorn's.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from warrenmq.http.protocol.http_connections import (
    ANSWER,
    ANSWER_TIMEOUT,
    BODY,
    BODY_TIMEOUT,
    HEADER,
    HEADER_SIZE,
    HEADER_TIMEOUT,
    IDLE,
    HttpConnections,
)

if TYPE_CHECKING:
    from warrenmq.server.background import Background
    from warrenmq.server.config import Settings

LARGEST_HEADER = 64 << 10
PACE = 64 << 10
CUT_OFF = "cut_off"  # in the state of a request: ends its connection
ENDS = b"connection: close\r\ncontent-length: 0\r\n\r\n"
TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\n" + ENDS
TOO_LATE = b"HTTP/1.1 408 Request Timeout\r\n" + ENDS


class PatientProtocol(HttpToolsProtocol):
    """A connection of uvicorn's with deadlines for headers, bodies and idleness, and a place among the others."""

    def __init__(
        self, settings: Settings, http_connections: HttpConnections, background: Background, **of_uvicorn: Any
    ) -> None:
        super().__init__(**of_uvicorn)
        self._settings = settings
        self._http_connections = http_connections
        self._background = background
        self._stage = HEADER
        self._reading: asyncio.TimerHandle | None = None
        self._writing: asyncio.TimerHandle | None = None
        self._got = 0  # octets of the header, or of the body in this span
        self._requests = 0  # that were read to their end

    # -- what the client sends

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._enter(HEADER)

    def data_received(self, data: bytes) -> None:
        if self._stage == IDLE:
            self._enter(HEADER)  # before uvicorn, which counts from the first whole octet of a request
        others = self._requests
        super().data_received(data)
        if self._stage == HEADER:
            # behind the end of another request, how much of it is this header's is not known: it is the beginning
            self._got += len(data) if self._requests == others else 1
            if self._got > LARGEST_HEADER and not self.transport.is_closing():
                self._http_connections.dropped[HEADER_SIZE] += 1
                self.transport.write(TOO_LARGE)
                self.transport.close()
        if self.transport.is_closing():
            self._linger()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope["state"][CUT_OFF] = self.cut_off
        if self._stage != HEADER:
            self._enter(HEADER)  # a request right behind another one

    def on_headers_complete(self) -> None:
        super().on_headers_complete()
        self._enter(BODY)

    def on_body(self, body: bytes) -> None:
        super().on_body(body)
        self._got += len(body)
        if self._got >= PACE and not self.cycle.response_complete:  # what nobody wants any more gets no more time
            self._enter(BODY)

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._requests += 1
        self._enter(IDLE if self.cycle.response_complete else ANSWER)

    # -- what it is sent

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self._stage == ANSWER:
            self._enter(IDLE)
        if self.transport.is_closing():
            self._linger()

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        self._linger()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._expect_reading()

    def resume_writing(self) -> None:
        super().resume_writing()
        if not self.transport.is_closing():
            self._stop_timers(reading=False)

    def _linger(self) -> None:
        """The connection closes when everything is sent; a client that does not read does not keep it open."""
        if self.transport.get_write_buffer_size() > 0:
            self._expect_reading()

    def _expect_reading(self) -> None:
        if self._writing is None:
            look = partial(self._look, self.transport.get_write_buffer_size())
            self._writing = self._background.later(self._settings.http_body_timeout, "a slow HTTP client", look)

    def _look(self, before: int) -> None:
        self._writing = None
        left = self.transport.get_write_buffer_size()
        if left == 0:
            return
        if left > before - PACE:
            self._http_connections.dropped[ANSWER_TIMEOUT] += 1
            self.leave()
        else:
            self._expect_reading()

    # -- time

    def _enter(self, stage: int) -> None:
        self._stage = stage
        self._got = 0
        self._stop_timers(writing=False)
        self._http_connections.enter(self, stage)
        if stage in (HEADER, BODY):
            self._expect_more()

    def _expect_more(self) -> None:
        settings = self._settings
        seconds = settings.http_header_timeout if self._stage == HEADER else settings.http_body_timeout
        self._reading = self._background.later(seconds, "a slow HTTP client", self._give_up)

    def _give_up(self) -> None:
        if self.flow.read_paused:  # we do not read at the moment, so it is not the client's fault
            self._expect_more()
            return
        self._http_connections.dropped[HEADER_TIMEOUT if self._stage == HEADER else BODY_TIMEOUT] += 1
        if self._stage == HEADER and self._got:  # as RabbitMQ does
            self.transport.write(TOO_LATE)
            self.transport.close()
            self._linger()
        else:
            self.leave()

    def leave(self) -> None:
        self.transport.abort()

    def cut_off(self) -> None:
        """The rest of an answer will not come: the client gets what there is, and sees by the end that it is short."""
        self.transport.close()
        self._linger()

    def connection_lost(self, error: Exception | None) -> None:
        super().connection_lost(error)
        self._stop_timers()
        self._http_connections.leave(self)

    def _stop_timers(self, reading: bool = True, writing: bool = True) -> None:
        if reading and self._reading is not None:
            self._reading.cancel()
            self._reading = None
        if writing and self._writing is not None:
            self._writing.cancel()
            self._writing = None
