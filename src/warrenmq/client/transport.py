"""A socket, plain or TLS, that can be read while it is written.

Duty: connect, ``send`` everything, ``receive`` what is there within a time. While a send has to wait, what arrives is
read and handed to the sink: otherwise a client that publishes and a broker that delivers could each wait for the other
to read. Not here: frames.
"""

from __future__ import annotations

import select
import socket
import ssl
import time
from typing import Final, final

from warrenmq.client.decoder import Decoder

RECEIVE_SIZE: Final = 262144


@final
class Transport:
    """A socket to a broker. ``ended`` turns true when the other side closed or reset."""

    def __init__(
        self, host: str, port: int, context: ssl.SSLContext | None, timeout: float | None, server_name: str
    ) -> None:
        plain = socket.create_connection((host, port), timeout)
        try:
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if context is not None:
                self.socket: socket.socket = context.wrap_socket(plain, server_hostname=server_name)
            else:
                self.socket = plain
            self.socket.setblocking(False)
        except BaseException:
            plain.close()
            raise
        self._poll: Final = select.poll()
        self._number: Final = self.socket.fileno()
        self.ended = False
        self.sent_at = time.monotonic()
        self.received_at = self.sent_at

    def send(self, data: bytes, sink: Decoder) -> None:
        """All of ``data``; what comes in meanwhile goes to ``sink``."""
        view = memoryview(data)
        at = 0
        while at < len(data) and not self.ended:
            try:
                at += self.socket.send(view[at:])
            except (BlockingIOError, ssl.SSLWantWriteError):
                self._wait(True, None)
                block = self._read()
                if block:
                    sink.feed(block)
            except ssl.SSLWantReadError:
                self._wait(False, None)
                block = self._read()
                if block:
                    sink.feed(block)
            except OSError:
                # What the broker said before it closed may still be there to read.
                self._drain(sink)
                self.ended = True
        self.sent_at = time.monotonic()

    def receive(self, timeout: float | None) -> bytes:
        """What there is, waiting at most ``timeout`` seconds (None: for ever) for something; b"" when nothing came."""
        block = self._read()
        if block or self.ended or timeout == 0:
            return block
        self._wait(False, timeout)
        return self._read()

    def close(self) -> None:
        self.ended = True
        self.socket.close()

    def _wait(self, to_write: bool, timeout: float | None) -> None:
        events = select.POLLIN | select.POLLOUT if to_write else select.POLLIN
        self._poll.register(self._number, events)
        self._poll.poll(None if timeout is None else max(0.0, timeout * 1000))

    def _read(self) -> bytes:
        if self.ended:
            return b""
        try:
            block = self.socket.recv(RECEIVE_SIZE)
        except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError, InterruptedError):
            return b""
        except OSError:
            self.ended = True
            return b""
        if not block:
            self.ended = True
        else:
            self.received_at = time.monotonic()
        return block

    def _drain(self, sink: Decoder) -> None:
        while not self.ended:
            block = self._read()
            if not block:
                return
            sink.feed(block)
