"""etcd over HTTP: one request at a time, each with a deadline, on the thread that asks.

Duty: the way to one of several endpoints, and from it. What is asked and what an answer means is ``etcd.py``.

Invariants:
- **A request is sent at most once.** Whoever counts the copies of a write under way (``proposals.py``) must know of
  each, so what was sent and not answered is never repeated here. Only an endpoint to which no connection could be made
  has got nothing, and then the next one is tried.
- Every call ends in time: ``ask`` gives up by itself after ``patience`` seconds without an octet, and ``give_up``
  ends it from another thread.
"""

from __future__ import annotations

import http.client
import socket
import ssl
import time
from collections.abc import Sequence

from warrenmq.cluster.etcd import Request

MOST = 4 << 20  # octets of an answer
LINE = 65536


class NotAsked(Exception):
    """No endpoint could be reached: nothing was sent."""


class Unanswered(Exception):
    """Something was sent, and no whole answer came: nobody knows whether it was carried out."""


class Store:
    """One connection to etcd, kept while it works."""

    def __init__(self, endpoints: Sequence[tuple[str, int]], context: ssl.SSLContext | None, patience: float) -> None:
        self.endpoints = list(endpoints)
        self.context = context
        self.patience = patience
        self.errors = 0  # calls that brought no answer
        self.at = 0  # the endpoint that is asked
        self._connection: http.client.HTTPConnection | None = None

    def ask(self, request: Request) -> tuple[int, bytes]:
        """The status and the body of the answer."""
        deadline = time.monotonic() + self.patience
        connection = self._connected(deadline)
        try:
            self._allow(connection, deadline)
            connection.request("POST", request.path, request.body, {"Content-Type": "application/json"})
            response = connection.getresponse()
            raw = self._whole(connection, response, deadline)
        except (OSError, http.client.HTTPException, ValueError, AttributeError) as error:
            # the last two are http.client's when the socket is closed under it
            self.errors += 1
            self.close()
            self.at += 1
            raise Unanswered(f"{self.shown()}: {error or type(error).__name__}") from None
        if response.will_close:
            self.close()
        return response.status, raw

    def _connected(self, deadline: float) -> http.client.HTTPConnection:
        if self._connection is not None:
            return self._connection
        reasons = []
        for _ in self.endpoints:
            host, port = self.endpoints[self.at % len(self.endpoints)]
            patience = max(0.05, min(self.patience / 2, deadline - time.monotonic()))
            connection = (
                http.client.HTTPConnection(host, port, timeout=patience)
                if self.context is None
                else http.client.HTTPSConnection(host, port, timeout=patience, context=self.context)
            )
            try:
                self._connection = connection
                connection.connect()
                connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                return connection
            except (OSError, AttributeError) as error:
                reasons.append(f"{self.shown()}: {error}")
                self.close()
                self.at += 1
        self.errors += 1
        raise NotAsked("; ".join(reasons))

    def _whole(
        self, connection: http.client.HTTPConnection, response: http.client.HTTPResponse, deadline: float
    ) -> bytes:
        pieces, size = [], 0
        while True:
            self._allow(connection, deadline)
            piece = response.read1(LINE)
            if not piece:
                break
            pieces.append(piece)
            size += len(piece)
            if size > MOST:
                raise OSError(f"an answer of more than {MOST} octets")
        if response.length:
            raise OSError("the answer ended in the middle")
        response.close()  # else http.client takes the connection for busy
        return b"".join(pieces)

    def _allow(self, connection: http.client.HTTPConnection, deadline: float) -> None:
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError("no answer in time")
        if connection.sock is not None:
            connection.sock.settimeout(left)

    def shown(self) -> str:
        host, port = self.endpoints[self.at % len(self.endpoints)]
        return f"{host}:{port}"

    def give_up(self) -> None:
        """From another thread: the call under way ends, as if the other side had hung up."""
        connection = self._connection
        sock = connection.sock if connection is not None else None
        if sock is not None:
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
