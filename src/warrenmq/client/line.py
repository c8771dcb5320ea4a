"""The line to the broker: octets out in order and in large pieces, octets in to the decoder, and channel 0.

Duty: buffer and send, the one loop that reads for all channels, heartbeats, and the end of the connection as one
exception that every later call raises again. It knows no channels: whoever has some is told that the decoder noticed
something for them. Not here: the handshake and what users call (``connection.py``), channels (``channel.py``).
"""

from __future__ import annotations

import time
from typing import Final

from librt.strings import BytesWriter
from mypy_extensions import i64

from warrenmq.client.decoder import Decoder
from warrenmq.client.errors import ConnectionClosed, Timeout
from warrenmq.client.transport import Transport
from warrenmq.wire.constants import FRAME_HEARTBEAT
from warrenmq.wire.content import frame
from warrenmq.wire.fields import Table
from warrenmq.wire.methods import Method, method_frame
from warrenmq.wire.replies import UNEXPECTED_FRAME, AmqpError


class Line:
    """A connection as its channels see it."""

    def __init__(self, transport: Transport, timeout: float | None, frame_max: int) -> None:
        self.timeout: Final = timeout
        self.server_properties: Table = {}
        self.blocked: str | None = None  # the broker's reason while it takes no publishes
        self.closed: ConnectionClosed | None = None
        self.frame_max: i64 = i64(frame_max)
        self.heartbeat: i64 = 0
        self.out = BytesWriter()  # what is to be sent next
        self.decoder: Final = Decoder()
        self._transport: Final = transport

    def flush(self) -> None:
        """Send what is buffered."""
        self.check()
        if len(self.out) == 0:
            return
        data = self.out.getvalue()
        self.out = BytesWriter()
        try:
            self._transport.send(data, self.decoder)
        except AmqpError as error:
            raise self._broken(error) from None
        self._react()
        if self._transport.ended:
            raise self._ended()

    def read(self, timeout: float | None) -> bool:
        """Flush, then wait for the broker at most ``timeout`` seconds; False when nothing came. Feeds all channels."""
        self.flush()
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            block = self._receive(left)
            if block:
                try:
                    self.decoder.feed(block)
                except AmqpError as error:
                    raise self._broken(error) from None
                self._react()
                return True
            if self._transport.ended:
                raise self._ended()
            if left == 0.0:
                return False

    def check(self) -> None:
        """Raise why the connection is gone, if it is."""
        closed = self.closed
        if closed is not None:
            raise ConnectionClosed(closed.code, closed.text, closed.class_id, closed.method_id)

    def forget(self, number: int) -> None:
        """The channel is closed on both sides; its number may be used again."""
        self.decoder.close(number)

    def _noticed(self) -> None:
        """There is something for channels."""

    # --- inside

    def _receive(self, timeout: float | None) -> bytes:
        """Wait for octets, keeping up the heartbeats that were agreed on."""
        if self.heartbeat == 0:
            return self._transport.receive(timeout)
        interval = float(self.heartbeat) / 2.0
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            now = time.monotonic()
            if now - self._transport.sent_at >= interval:
                self._transport.send(frame(FRAME_HEARTBEAT, 0, b""), self.decoder)
            left = interval if deadline is None else min(interval, max(0.0, deadline - now))
            block = self._transport.receive(left)
            if block or self._transport.ended:
                return block
            if time.monotonic() - self._transport.received_at > 2.0 * float(self.heartbeat):
                self._transport.close()
                self.closed = ConnectionClosed(0, "the broker missed its heartbeats")
                self.check()
            if deadline is not None and time.monotonic() >= deadline:
                return b""

    def _react(self) -> None:
        """Deal with what came on channel 0, and with channels the broker closed."""
        if len(self.decoder.control) > 0:
            kept: list[Method] = []
            for method in self.decoder.control:
                name = method.name
                if name == "connection.close":
                    self._answer_close(method)
                elif name == "connection.blocked":
                    self.blocked = method.str("reason")
                elif name == "connection.unblocked":
                    self.blocked = None
                else:
                    kept.append(method)
            self.decoder.control = kept
        if self.decoder.noticed:
            self.decoder.noticed = False
            self._noticed()
            self.check()
            self.flush()  # the broker waits for channel.close-ok
        self.check()

    def _answer_close(self, method: Method) -> None:
        if self.closed is None:
            self.closed = ConnectionClosed(
                method.int("reply_code"), method.str("reply_text"), method.int("class_id"), method.int("method_id")
            )
        self._transport.send(method_frame(0, "connection.close-ok"), self.decoder)
        self._transport.close()

    def _expect(self, name: str, timeout: float | None) -> Method:
        """The next method of channel 0, which has to be ``name``."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while len(self.decoder.control) == 0:
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                raise Timeout(f"no {name} from the broker within {timeout} s")
            self.read(left)
        method = self.decoder.control.pop(0)
        if method.name != name:
            raise self._broken(AmqpError(UNEXPECTED_FRAME, f"expected {name}, got {method.name}"))
        return method

    def _broken(self, error: AmqpError) -> ConnectionClosed:
        """The broker's octets make no sense: say so and hang up."""
        self.closed = ConnectionClosed(error.code, error.text)
        self._transport.close()
        return self.closed

    def _ended(self) -> ConnectionClosed:
        if self.closed is None:
            self.closed = ConnectionClosed(0, "the broker closed the socket without a word")
        self._transport.close()
        return self.closed
