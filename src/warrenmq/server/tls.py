"""The TLS listener: it accepts sockets itself, so that whoever fails the handshake is known by address and reason.

Duty: sockets up to the end of the TLS handshake; asyncio tells nobody about one that fails. What follows is
``transport.py``; who a certificate stands for is decided there and in the broker's ``login.py``.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from functools import partial
from typing import Any

from warrenmq.server.background import Background
from warrenmq.server.logging import events

OUT_OF_DESCRIPTORS = 0.1  # seconds to wait when a socket cannot be accepted


class TlsListener:
    """The listening TLS sockets and the handshakes under way."""

    def __init__(
        self, context: ssl.SSLContext, protocol: Callable[[], Any], handshake_timeout: float, background: Background
    ) -> None:
        self._context = context
        self._protocol = protocol
        self._handshake_timeout = handshake_timeout
        self._background = background
        self._accepting: list[asyncio.Task[None]] = []
        self._shaking: set[asyncio.Task[None]] = set()
        self.sockets: list[socket.socket] = []

    def listen(self, sockets: list[socket.socket]) -> None:
        self.sockets = sockets
        self._accepting = [self._background.forever("the TLS listener", partial(self._accept, one)) for one in sockets]

    def renew(self, context: ssl.SSLContext) -> None:
        """Certificates for whoever shakes hands from now on; connections that are there keep theirs."""
        self._context = context

    def close(self) -> None:
        for task in (*self._accepting, *self._shaking):
            task.cancel()
        for listener in self.sockets:
            listener.close()

    async def _accept(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                client, peer = await loop.sock_accept(listener)
            except OSError as error:
                events("broker").error("tls_accept_failed", reason=str(error))
                await asyncio.sleep(OUT_OF_DESCRIPTORS)
                continue
            shaking = self._shake_hands(client, f"{peer[0]}:{peer[1]}")
            task = self._background.task("a TLS handshake", shaking)
            self._shaking.add(task)
            task.add_done_callback(self._shaking.discard)

    async def _shake_hands(self, client: socket.socket, peer: str) -> None:
        loop = asyncio.get_running_loop()
        try:
            await loop.connect_accepted_socket(
                self._protocol, client, ssl=self._context, ssl_handshake_timeout=self._handshake_timeout
            )
        except ssl.SSLError as error:
            events("broker").warning("tls_handshake_failed", peer=peer, reason=_reason(error), hint=_hint(error))
        except (OSError, TimeoutError) as ended:
            events("broker").info("tls_handshake_ended", peer=peer, reason=str(ended) or type(ended).__name__)


def _reason(error: ssl.SSLError) -> str:
    """OpenSSL's words without the place in its source."""
    verify = getattr(error, "verify_message", "")
    return f"{getattr(error, 'reason', None) or error}" + (f": {verify}" if verify else "")


def _hint(error: ssl.SSLError) -> str:
    if getattr(error, "reason", None) in (
        "WRONG_VERSION_NUMBER",
        "HTTP_REQUEST",
        "UNKNOWN_PROTOCOL",
        "RECORD_LAYER_FAILURE",
    ):
        return "a client without TLS on the TLS port: use the plain port"
    return ""
