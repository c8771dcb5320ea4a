"""One connection between two nodes, on the event loop: octets in and out, and the proof that comes before everything.

Duty: frames from the socket to the owner, octets to the socket, how long ago the other side was heard, and whether the
socket takes more. A link that breaks a rule of the wire is closed with the reason in the log. What frames mean is
``node.py``'s.

It is asyncio and not a thread for each way: a small batch then costs a follower one write and one read on the loop that
has it at hand, and no hand-over between threads in either direction.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from typing import Any

from warrenmq.cluster import wire
from warrenmq.cluster.handshake import Handshake, Refused
from warrenmq.cluster.wire import Frame, Frames, WireError
from warrenmq.server.logging import events

HIGH_WATER = 4 << 20  # octets in our hands for a socket; beyond it nothing more is given to it


class Owner:
    """The owner of links."""

    def link_known(self, link: Link) -> None:
        """The other side has proven to be a node."""
        raise NotImplementedError

    def link_said(self, link: Link, frame: Frame) -> None:
        raise NotImplementedError

    def link_takes_more(self, link: Link) -> None:
        raise NotImplementedError

    def link_gone(self, link: Link) -> None:
        """Nothing more comes; said once, also of a link that never was known."""
        raise NotImplementedError


class Link(asyncio.Protocol):
    """One end of a connection."""

    def __init__(self, owner: Owner, handshake: Handshake, number: int) -> None:
        self.owner = owner
        self.handshake = handshake
        self.number = number
        self.node = 0  # who is at the other end, once it has said so
        self.peer = "?"
        self.heard = time.monotonic()
        self.paused = False
        self.resigned = False  # whether a leader said that it goes
        self.open = False
        self.transport: Any = None
        self._frames = Frames()
        self._gone = False

    # --- asyncio

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.open = True
        peer = transport.get_extra_info("peername")
        self.peer = f"{peer[0]}:{peer[1]}" if peer else "?"
        transport.set_write_buffer_limits(HIGH_WATER)
        self.send(self.handshake.begin())

    def data_received(self, data: bytes) -> None:
        self.heard = time.monotonic()
        self._frames.feed(data)
        try:
            while self.open:
                frame = self._frames.next()
                if frame is None:
                    return
                if self.handshake.done:
                    self.owner.link_said(self, frame)
                else:
                    self._shake_hands(frame)
        except (WireError, Refused) as error:
            self.refuse(str(error))

    def _shake_hands(self, frame: Frame) -> None:
        self.send(self.handshake.take(frame))
        if self.handshake.done:
            self._frames.trusted = True
            self.owner.link_known(self)

    def connection_lost(self, error: Exception | None) -> None:  # noqa: ARG002 (asyncio's)
        self._end()

    def pause_writing(self) -> None:
        self.paused = True

    def resume_writing(self) -> None:
        self.paused = False
        if self.open:
            self.owner.link_takes_more(self)

    # --- the owner

    def send(self, data: bytes) -> None:
        if self.open and data:
            self.transport.write(data)

    def send_parts(self, parts: list[bytes]) -> None:
        if self.open:
            self.transport.writelines(parts)

    def refuse(self, reason: str) -> None:
        """Close it, say why, to both sides."""
        events("cluster").warning("cluster.link_refused", peer=self.peer, reason=reason)
        self.send(wire.said(wire.REFUSE, {"reason": reason[:400]}))
        self.close()

    def close(self) -> None:
        """What was sent before still goes out."""
        if self.open:
            self.open = False
            self.transport.close()
        self._end()

    def abort(self) -> None:
        self.open = False
        if self.transport is not None:
            self.transport.abort()
        self._end()

    def _end(self) -> None:
        self.open = False
        if not self._gone:
            self._gone = True
            self.owner.link_gone(self)

    def names(self) -> list[str]:
        """What the certificate of the other side says, over TLS."""
        tls = self.transport.get_extra_info("ssl_object") if self.transport is not None else None
        if not isinstance(tls, (ssl.SSLObject, ssl.SSLSocket)):
            return []
        shown: Any = tls.getpeercert() or {}
        found = [value for kind, value in shown.get("subjectAltName", ()) if kind == "DNS"]
        found += [value for part in shown.get("subject", ()) for kind, value in part if kind == "commonName"]
        return found
