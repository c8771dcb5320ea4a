"""Content in several frames: method, header, body frames, put together per channel.

Duty: the order of frames and sizes. The common case, all of it in one piece of input, never comes here
(``frame_loop.py``). A message that is too large is refused from its header, before any body is buffered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from librt.strings import read_i16_be, read_i64_be
from mypy_extensions import i64

from warrenmq.broker.large import LARGE, LargeBody
from warrenmq.broker.publish.arrival import assembled
from warrenmq.broker.publish.path import publish, resolve
from warrenmq.broker.transaction import command_while_committing
from warrenmq.wire.methods import Method
from warrenmq.wire.peek import peek_properties
from warrenmq.wire.replies import AmqpError

if TYPE_CHECKING:
    from warrenmq.broker.channel import Channel

SMALL: Final = 1024  # pieces of a body below this size are joined
JOIN_AT: Final = 256


@final
class Assembly:
    """The content that is coming in on one channel, as far as it has."""

    def __init__(self) -> None:
        self.method: Method | None = None  # basic.publish, while its content is not complete
        self._arguments: bytes = b""
        self._header: bytes | None = None
        self.chunks: list[bytes] = []
        self._small: i64 = 0  # how many of the last chunks are small and not joined yet
        self.size: i64 = 0
        self.left: i64 = 0
        self._large: LargeBody | None = None

    def begin(self, method: Method, arguments: bytes) -> None:
        """basic.publish came: its content follows."""
        self.method = method
        self._arguments = arguments

    def abandon(self) -> None:
        """The rest will not come."""
        self.method = None
        self._header = None
        self.chunks = []
        if self._large is not None:
            self._large.abandon()
            self._large = None

    def header(self, channel: Channel, payload: bytes) -> None:
        """The content header frame."""
        method = self.method
        if method is None:
            raise AmqpError(505, "expected method frame, got non method frame instead")
        if self._header is not None:
            raise self.unexpected_frame()
        class_id: i64 = i64(read_i16_be(payload, 0)) & 0xFFFF
        if read_i16_be(payload, 2) != 0:  # the weight
            raise self.unexpected_frame()
        if class_id != 60:
            raise AmqpError(
                505,
                f"expected content header for class 60, got one for class {class_id} instead",
                method.spec.class_id,
                method.spec.method_id,
            )
        size: i64 = read_i64_be(payload, 4)
        if size < 0 or size > channel.broker.limits.max_message_size:
            self.method = None
            # the stages before the size come first; then it is refused before any body is buffered
            resolve(channel.publishing, self._arguments, size if size > 0 else 0x7FFFFFFFFFFFFFFF)
            raise AmqpError(501, f"content body size {size} is not acceptable")
        self._header = payload
        self.size = size
        self.left = size
        self.chunks = []
        self._small = 0
        if size == 0:
            self._complete(channel)
        elif size > LARGE and self._will_be_logged(channel, payload):
            self._large = LargeBody(channel.broker.log, self.chunks)

    def _will_be_logged(self, channel: Channel, header: bytes) -> bool:
        """Will the body go to the log? Then its pieces may go there as they come."""
        publishing = channel.publishing
        if not publishing.is_plain():
            return False
        try:
            if peek_properties(header).delivery_mode != 2:
                return False
            route = resolve(publishing, self._arguments, self.size)
        except AmqpError:
            return False  # told when the content is complete
        for queue in route.queues:
            if queue.durable:
                return True
        return False

    def body(self, channel: Channel, payload: bytes) -> None:
        """A content body frame."""
        if self.method is None:
            raise AmqpError(505, "expected method frame, got non method frame instead")
        if self._header is None or len(payload) > self.left:
            raise self.unexpected_frame()
        if not payload:
            return
        self.left -= len(payload)
        self._collect(payload)
        if self._large is not None:
            logged = self._large.collected(self.size - self.left, self.left == 0)
            if logged:
                self._small = 0
                channel.charge(channel.broker.log.batch, logged)
        if self.left == 0:
            self._complete(channel)

    def _collect(self, payload: bytes) -> None:
        """Keep a piece of the body. Small ones are joined: tiny frames cost no more memory than their octets."""
        chunks = self.chunks
        chunks.append(payload)
        if len(payload) >= SMALL:
            self._small = 0
            return
        self._small += 1
        if self._small == JOIN_AT:
            first: i64 = len(chunks) - JOIN_AT
            joined = b"".join(chunks[first:])
            del chunks[first:]
            chunks.append(joined)
            self._small = 0

    def _complete(self, channel: Channel) -> None:
        header = self._header
        assert header is not None
        if channel.committing is not None:
            self.abandon()
            raise command_while_committing(60, 40)
        if channel.broker.pressure.reason:
            channel.connection.block()  # behind this one: on a disk that fails it is what the log is tried with
        message = assembled(header, self.chunks, self.size)
        self.method = None
        self._header = None
        channel.publishing.large_body = self._large
        try:
            publish(channel.publishing, self._arguments, message)
        finally:
            channel.publishing.large_body = None
            self.abandon()

    def unexpected_frame(self) -> AmqpError:
        """A frame of another kind than the one that must come next."""
        method = self.method
        assert method is not None
        if self._header is None:
            text = f"expected content header for class {method.spec.class_id}, got non content header frame instead"
        else:
            text = "expected content body, got non content body frame instead"
        return AmqpError(505, text, method.spec.class_id, method.spec.method_id)
