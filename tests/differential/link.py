"""One raw connection to a broker: bytes out, whole events in.

Duty: the handshake, assembling content, answering closes. Not here: any meaning (driver.py), any wording
(transcript.py). Encoding is shared with ``tests.support.rawclient``, never with ``warrenmq.wire``: an error
there must not be able to hide itself.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.support.rawclient import BODY, HEADER, METHOD, PROTOCOL_HEADER, Frame, method

CAPABILITIES = (
    "authentication_failure_close",
    "consumer_cancel_notify",
    "basic.nack",
    "publisher_confirms",
    "connection.blocked",
)
WITH_CONTENT = ("basic.deliver", "basic.get-ok", "basic.return")


@dataclass
class Event:
    """A method that arrived, with its content if it carries one."""

    channel: int
    name: str
    values: dict[str, Any]
    header: bytes = b""
    body: bytes = b""


class Link:
    """A connection after its handshake. `alive` until either side ended it."""

    def __init__(
        self,
        port: int,
        vhost: str = "/",
        user: str = "guest",
        frame_max: int = 131072,
        capabilities: tuple[str, ...] = CAPABILITIES,
    ) -> None:
        self.frame_max = frame_max
        self.events: list[Event] = []
        self.alive = True
        self._buffer = b""
        self._partial: dict[int, tuple[Event, int]] = {}
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._shake_hands(vhost, user, frame_max, capabilities)

    def _shake_hands(self, vhost: str, user: str, frame_max: int, capabilities: tuple[str, ...]) -> None:
        self.send(PROTOCOL_HEADER)
        self._expect("connection.start")
        self.send(
            method(
                0,
                "connection.start-ok",
                mechanism="PLAIN",
                response=f"\0{user}\0{user}",
                locale="en_US",
                client_properties={"capabilities": dict.fromkeys(capabilities, True)},
            )
        )
        self._expect("connection.tune")
        self.send(
            method(0, "connection.tune-ok", channel_max=64, frame_max=frame_max, heartbeat=0)
            + method(0, "connection.open", virtual_host=vhost)
        )
        self._expect("connection.open-ok")

    def _expect(self, name: str) -> None:
        if not self.pump(lambda: bool(self.events)) or self.events[0].name != name:
            raise RuntimeError(f"expected {name}, got {self.events}")
        self.events.clear()

    def send(self, data: bytes) -> None:
        """A connection the broker has dropped is not an error here: reading will tell."""
        try:
            self._socket.sendall(data)
        except OSError:
            pass

    def pump(self, until: Callable[[], bool], seconds: float = 10.0) -> bool:
        """Reads until the condition holds; False when the time is up or the connection has ended first."""
        deadline = time.monotonic() + seconds
        while not until():
            if not self.alive:
                return False
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                return False
            self._socket.settimeout(remaining)
            try:
                chunk = self._socket.recv(262144)
            except TimeoutError:
                return until()
            except OSError:
                chunk = b""
            if not chunk:
                self.alive = False
                self._socket.close()
                self.events.append(Event(0, "end of connection", {}))
                continue
            self._buffer += chunk
            self._parse()
        return True

    def cut(self) -> None:
        """Gone without a word."""
        self.alive = False
        self._socket.close()

    def _parse(self) -> None:
        position, buffer = 0, self._buffer
        while len(buffer) - position >= 8:
            kind, channel, size = struct.unpack_from(">BHI", buffer, position)
            end = position + 7 + size
            if len(buffer) <= end:
                break
            assert buffer[end] == 0xCE, f"frame end octet {buffer[end]:#x}"
            self._frame(kind, channel, buffer[position + 7 : end])
            position = end + 1
        self._buffer = buffer[position:]

    def _frame(self, kind: int, channel: int, data: bytes) -> None:
        if kind == METHOD:
            received = Frame(kind, channel, data)
            event = Event(channel, received.name, received.values)
            if event.name in WITH_CONTENT:
                self._partial[channel] = (event, -1)
                return
            if event.name in ("channel.close", "connection.close"):
                self.send(method(channel, event.name + "-ok"))
            self.events.append(event)
        elif kind in (HEADER, BODY):
            event, missing = self._partial[channel]
            assert len(data) + 8 <= self.frame_max, "a frame larger than was negotiated"
            if kind == HEADER:
                event.header, missing = data, int(struct.unpack_from(">Q", data, 4)[0])
            else:
                event.body += data
                missing -= len(data)
            assert missing >= 0, "more body than the header promised"
            self._partial[channel] = (event, missing)
            if missing == 0:
                del self._partial[channel]
                self.events.append(event)
