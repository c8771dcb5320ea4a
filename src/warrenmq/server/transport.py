"""One client's socket: asyncio's protocol on one side, the broker's connection on the other.

Output goes to the event loop a bounded amount at a time: it would send all it is given before it looks at anybody else,
and a body may have hundreds of megabytes. The rest waits here, and the broker hears that the client does not take more.
"""

from __future__ import annotations

import asyncio
import ipaddress
from collections import deque
from collections.abc import Iterable
from typing import Any, Final

from mypy_extensions import i64, mypyc_attr

from warrenmq.broker.channel.body_frames import BodyFrames
from warrenmq.broker.channel.sink import Sink
from warrenmq.broker.connection.connection import Connection
from warrenmq.server.certificates import user_of
from warrenmq.server.tls_session import session_of
from warrenmq.server.turns import Turns

HIGH_WATER: Final = 1 << 20  # bytes of output the transport buffers before deliveries to this client stop
LOW_WATER: Final = 1 << 18
GIVEN: Final = 4 << 20  # bytes of large output handed to the loop before it has been round
AT_ONCE: Final = 16  # parts handed over at a time: a part is a frame at the most
CUT: Final = 1 << 20  # bytes of a long body handed over at a time: it is cut into frames when it goes
PASS: Final = 2 << 20  # bytes of small output a turn, about what may come in: many small messages are long work
LINGER: Final = 3.0  # seconds that a closed connection has to take what was written to it


class Nowhere:
    """The transport of a client that is gone. One of asyncio's for TLS raises when it is used after its end."""

    def write(self, data: bytes) -> None: ...

    def writelines(self, parts: list[bytes]) -> None: ...

    def close(self) -> None: ...

    def is_closing(self) -> bool:
        return True

    def get_write_buffer_size(self) -> int:
        return 0

    def get_extra_info(self, name: str) -> None:
        return None


NOWHERE = Nowhere()


@mypyc_attr(allow_interpreted_subclasses=True)
class ClientTransport(Sink):
    """One client's socket: a duck-typed asyncio protocol (a compiled base cannot be combined with asyncio.Protocol)."""

    def __init__(self, turns: Turns, open: set[ClientTransport], login_from: str) -> None:
        self._turns: Final = turns
        self._login_from: Final = login_from  # what of a client's certificate says who it is
        self._open: Final = open  # the sockets of all clients, this one among them while it is there
        self._transport: Any = None
        self._connection: Connection | None = None
        self._waiting: deque[bytes | BodyFrames] = deque()  # output that the loop has not got yet
        self._full = False  # the loop has enough for now
        self._given: i64 = 0  # bytes handed to the loop since it was last free
        self._passed: i64 = 0  # bytes of small output in the turn ``_turn``
        self._turn: i64 = -1  # the number of the turn in which output was passed last
        self._closing = False  # the connection ends when the loop has got all of it

    # -- asyncio calls these -----------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        transport.set_write_buffer_limits(HIGH_WATER, LOW_WATER)
        peer = transport.get_extra_info("peername") or ("", 0)
        local = transport.get_extra_info("sockname") or ("", 0)
        self._turns.begin()
        connection = self._turns.broker.connect(self, str(peer[0]), int(peer[1]), str(local[0]), int(local[1]))
        connection.peer.is_loopback = _is_loopback(str(peer[0]))
        tls = transport.get_extra_info("ssl_object")
        if tls is not None:
            connection.peer.session = session_of(tls)
            connection.peer.tls_name = user_of(tls.getpeercert(), self._login_from)
        self._connection = connection
        self._open.add(self)

    def data_received(self, data: bytes) -> None:
        turns = self._turns
        turns.begin()
        assert self._connection is not None
        self._connection.feed(data)
        turns.fed(len(data))
        turns.watchdog.lap(self)

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, error: Exception | None) -> None:
        self._open.discard(self)
        self._waiting.clear()
        self._transport = NOWHERE
        if self._connection is not None:
            self._turns.begin()
            self._connection.lost("the client went away" if error is None else str(error))
            self._turns.fed(0)
            self._turns.watchdog.lap(self._connection.name + " ended")
            self._connection = None  # they hold each other

    def pause_writing(self) -> None:
        self._full = True
        if self._connection is not None:
            self._connection.pause_writing()

    def resume_writing(self) -> None:
        self._full = False
        self._give()

    def __str__(self) -> str:
        return "a connection" if self._connection is None else f"connection {self._connection.name}"

    # -- the broker calls these --------------------------------------------------------------------------------

    def write(self, data: bytes) -> None:
        if self._waiting:
            self._waiting.append(data)
        else:
            self._transport.write(data)
            if self._turn != self._turns.number:
                self._turn = self._turns.number
                self._passed = 0
            self._passed += len(data)
            if self._passed >= PASS and not self._full and self._connection is not None:
                self._passed = 0
                self._connection.pause_writing()  # others come in between, however fast this client reads
                self._turns.background.later(0, "output", self._free)

    def write_all(self, parts: list[bytes]) -> None:
        if self._waiting or self._full or self._given >= GIVEN:
            self._keep(parts)
        else:
            self._given += sum(map(len, parts))
            self._transport.writelines(parts)
            if self._given >= GIVEN:
                self._turns.background.later(0, "output", self._free)

    def write_body(self, frames: BodyFrames) -> None:
        idle = not self._waiting and not self._full and self._given < GIVEN
        self._keep([frames])
        if idle:
            self._turns.background.later(0, "output", self._free)

    def _keep(self, parts: Iterable[bytes | BodyFrames]) -> None:
        if not self._waiting and self._connection is not None:
            self._connection.pause_writing()
        self._waiting.extend(parts)

    def _free(self) -> None:
        """The loop has been round: it may have more."""
        self._given = 0
        self._give()

    def _give(self) -> None:
        """Hand over as much as may go at once; when nothing waits any more, the broker may go on."""
        waiting = self._waiting
        if self._given >= GIVEN:
            return  # _free comes
        while waiting and not self._full and self._given < GIVEN:
            parts = self._next()
            self._given += sum(map(len, parts))
            self._transport.writelines(parts)
        if self._given >= GIVEN:
            self._turns.background.later(0, "output", self._free)
        elif self._closing:
            if not waiting:
                self._transport.close()
        elif not waiting and not self._full and self._connection is not None and not self._connection.output.writable:
            self._turns.begin()
            self._connection.resume_writing()
            self._turns.fed(0)

    def _next(self) -> list[bytes]:
        """What of the output the loop gets next; something waits."""
        parts: list[bytes] = []
        while self._waiting and len(parts) < AT_ONCE:
            first = self._waiting[0]
            if isinstance(first, BodyFrames):
                parts += first.next(CUT)
                if first.left:
                    break
            else:
                parts.append(first)
            self._waiting.popleft()
        return parts

    def pending(self) -> int:
        if self._transport.is_closing():
            return 0
        kept = sum(int(one.left) if isinstance(one, BodyFrames) else len(one) for one in self._waiting)
        return kept + int(self._transport.get_write_buffer_size())

    def close(self) -> None:
        if self._closing or self._transport.is_closing():
            return  # asyncio's TLS transport, once it is closed, no longer knows how much it has to write
        unread = len(self._waiting) > 0 or self._transport.get_write_buffer_size() > 0
        if self._waiting:
            self._closing = True
            self._transport.pause_reading()
        else:
            self._transport.close()
        if unread:  # a client that does not read would keep its socket for ever
            self._turns.background.later(LINGER, "ending a connection that does not read", self._transport.abort)

    def pause_reading(self) -> None:
        if not self._closing and not self._transport.is_closing():
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        if not self._closing and not self._transport.is_closing():
            self._transport.resume_reading()

    def is_reading(self) -> bool:
        return not self._transport.is_closing() and bool(self._transport.is_reading())


def _is_loopback(address: str) -> bool:
    if address.startswith("127.") or address == "::1":
        return True  # nearly always one of these, when it is
    try:
        return ipaddress.ip_address(address.split("%")[0]).is_loopback
    except ValueError:
        return False
