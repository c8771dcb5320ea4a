"""A connection: the handshake, its channels, and how it is closed.

Duty: what users call. Not here: octets and channel 0 (``line.py``), what channels do with what was read
(``channel.py``).
"""

from __future__ import annotations

import ssl as tls
from typing import Final, final

from mypy_extensions import i64

from warrenmq.client.address import Address, parse_url
from warrenmq.client.channel import Channel
from warrenmq.client.errors import ChannelClosed, ConnectError, ConnectionClosed, Timeout
from warrenmq.client.line import Line
from warrenmq.client.transport import Transport
from warrenmq.client.why import why
from warrenmq.wire.constants import PROTOCOL_HEADER
from warrenmq.wire.methods import Method, method_frame
from warrenmq.wire.replies import FRAME_ERROR, SUCCESS

CLOSE_TIMEOUT: Final = 5.0
FIRST_FRAME_MAX: Final = 131072  # until tuned; a bigger first frame is some other protocol

CAPABILITIES: Final[dict[str, object]] = {
    "publisher_confirms": True,
    "exchange_exchange_bindings": True,
    "basic.nack": True,
    "consumer_cancel_notify": True,
    "connection.blocked": True,
    "authentication_failure_close": True,
}


@final
class Connection(Line):
    """A connection: ``Connection("amqp://guest:guest@127.0.0.1:5672/")`` or by keywords; also a context manager.

    ``timeout`` bounds connecting and every call that waits for the broker's answer. ``server_name`` is the name in the
    broker's certificate, where that is not ``host``. ``heartbeat`` 0 asks for none: heartbeats are only sent while a
    call of this client waits.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        host: str = "127.0.0.1",
        port: int = 5672,
        virtual_host: str = "/",
        username: str = "guest",
        password: str = "guest",
        ssl: tls.SSLContext | None = None,
        server_name: str | None = None,
        heartbeat: int = 0,
        frame_max: int = 131072,
        channel_max: int = 2047,
        connection_name: str = "",
        mechanism: str = "PLAIN",
        client_properties: dict[str, object] | None = None,
        timeout: float | None = 30.0,
    ) -> None:
        if url is not None:
            self.address = parse_url(url)
        else:
            self.address = Address(host, port, virtual_host, username, password, ssl is not None)
        if self.address.tls and ssl is None:
            ssl = tls.create_default_context()
        self.channel_max: i64 = i64(channel_max)
        self.channels: Final[dict[int, Channel]] = {}
        try:
            transport = Transport(self.address.host, self.address.port, ssl, timeout, server_name or self.address.host)
        except OSError as error:
            where = f"{self.address.host}:{self.address.port}"
            raise ConnectError(f"cannot connect to {where}: {why(error)}") from error
        super().__init__(transport, timeout, frame_max)
        try:
            self._handshake(mechanism, connection_name, client_properties, heartbeat)
        except ConnectionClosed as closed:
            self._transport.close()
            raise ConnectError(closed.text, closed.code) from None
        except BaseException:
            self._transport.close()
            raise

    # --- for users

    def channel(self, number: int = 0) -> Channel:
        """Open a channel: the given number, or the lowest free one."""
        self.check()
        if number == 0:
            number = 1
            while number in self.channels:
                number += 1
        elif number in self.channels:
            raise ValueError(f"channel {number} is open already")
        if self.channel_max != 0 and number > self.channel_max:
            raise ValueError(f"the connection has no more than {self.channel_max} channels")
        channel = Channel(self, number, self.decoder.open(number))
        self.channels[number] = channel
        try:
            channel.call("channel.open")
        except ChannelClosed:
            self.forget(number)
            raise
        return channel

    def fileno(self) -> int:
        """For select and poll; a readable socket means: call ``read(0)``."""
        return self._transport.socket.fileno()

    def update_secret(self, new_secret: str, reason: str = "") -> None:
        """connection.update-secret"""
        self.out.write(method_frame(0, "connection.update-secret", new_secret=new_secret, reason=reason))
        self._expect("connection.update-secret-ok", self.timeout)

    def close(self, code: int = SUCCESS, text: str = "Goodbye") -> None:
        """Flush and say goodbye; never raises for a connection that is gone already."""
        if self.closed is None and not self._transport.ended:
            try:
                self.out.write(method_frame(0, "connection.close", reply_code=code, reply_text=text))
                self._expect("connection.close-ok", CLOSE_TIMEOUT)
            except (ConnectionClosed, Timeout):
                pass
        if self.closed is None:
            self.closed = ConnectionClosed(0, "closed by this side")
        self._transport.close()

    def abort(self) -> None:
        """Drop the socket without a word, as a crash would."""
        self.closed = ConnectionClosed(0, "aborted by this side")
        self._transport.close()

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Connection to {self.address!r}{' closed' if self.closed is not None else ''}>"

    # --- inside

    def forget(self, number: int) -> None:
        """The channel is closed on both sides; its number may be used again."""
        self.channels.pop(number, None)
        self.decoder.close(number)

    def _noticed(self) -> None:
        for channel in list(self.channels.values()):
            channel.react()

    def _handshake(
        self, mechanism: str, connection_name: str, client_properties: dict[str, object] | None, heartbeat: int
    ) -> None:
        """protocol header, start, start-ok, tune, tune-ok, open, open-ok."""
        self.decoder.frame_max = FIRST_FRAME_MAX
        self.out.write(PROTOCOL_HEADER)
        self.flush()
        start = self._expect_start()
        self.server_properties = start.table("server_properties")
        properties: dict[str, object] = {
            "product": "warren client",
            "platform": "Python",
            "capabilities": CAPABILITIES,
        }
        if connection_name:
            properties["connection_name"] = connection_name
        if client_properties is not None:
            properties.update(client_properties)
        self.out.write(
            method_frame(
                0,
                "connection.start-ok",
                client_properties=properties,
                mechanism=mechanism,
                response=self._response(mechanism),
                locale="en_US",
            )
        )
        tune = self._expect("connection.tune", self.timeout)
        self.frame_max = _lower(self.frame_max, i64(tune.int("frame_max")))
        self.channel_max = _lower(self.channel_max, i64(tune.int("channel_max")))
        self.heartbeat = i64(heartbeat)  # the client's value wins
        self.decoder.frame_max = self.frame_max
        self.out.write(
            method_frame(
                0,
                "connection.tune-ok",
                channel_max=int(self.channel_max),
                frame_max=int(self.frame_max),
                heartbeat=heartbeat,
            )
        )
        self.out.write(method_frame(0, "connection.open", virtual_host=self.address.virtual_host))
        self._expect("connection.open-ok", self.timeout)

    def _expect_start(self) -> Method:
        try:
            return self._expect("connection.start", self.timeout)
        except ConnectionClosed as closed:
            if closed.code == FRAME_ERROR:
                raise ConnectError("the other side does not speak AMQP 0-9-1") from None
            raise

    def _response(self, mechanism: str) -> bytes:
        username = self.address.username
        password = self.address.password
        if mechanism == "PLAIN":
            return f"\0{username}\0{password}".encode()
        if mechanism == "AMQPLAIN":
            payload = method_frame(
                0, "connection.start-ok", client_properties={"LOGIN": username, "PASSWORD": password}
            )
            size = int.from_bytes(payload[11:15], "big")
            return payload[15 : 15 + size]  # a table without its length word
        return b""  # EXTERNAL: the certificate says it all


def _lower(mine: i64, theirs: i64) -> i64:
    """Negotiation: 0 means no limit."""
    if mine == 0 or theirs == 0:
        return mine if theirs == 0 else theirs
    return mine if mine < theirs else theirs
