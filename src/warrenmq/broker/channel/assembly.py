"""Content in several frames: method, header, body frames, put together per channel.

Duty: the order of frames and sizes. The common case, all of it in one piece of input, never comes here
(``frame_loop.py``). A message that is too large is refused from its header, before any body is buffered.
"""

from __future__ import annotations

from typing import Final, final

from librt.strings import read_i16_be, read_i64_be
from mypy_extensions import i64, trait

from warrenmq.broker.delivering.large_body import LARGE, LargeBody
from warrenmq.broker.publish.arrival import assembled
from warrenmq.broker.publish.path import goes_to_log, publish, resolve
from warrenmq.broker.publish.publishing import Publishing
from warrenmq.wire.constants import CLASS_BASIC
from warrenmq.wire.methods import Method
from warrenmq.wire.peek import peek_properties
from warrenmq.wire.replies import FRAME_ERROR, UNEXPECTED_FRAME, AmqpError

SMALL: Final = 1024  # pieces of a body below this size are joined
JOIN_AT: Final = 256


@trait
class Receiver:
    """The channel on which content comes in."""

    def content_is_complete(self) -> None:
        """Before it is published: raises when the channel takes nothing now."""
        raise NotImplementedError


@final
class Assembly:
    """The content that is coming in on one channel, as far as it has."""

    def __init__(self, publishing: Publishing) -> None:
        self._publishing: Final = publishing
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

    def header(self, receiver: Receiver, payload: bytes) -> None:
        """The content header frame."""
        method = self.method
        if method is None:
            raise AmqpError(UNEXPECTED_FRAME, "expected method frame, got non method frame instead")
        if self._header is not None:
            raise self.unexpected_frame()
        class_id: i64 = i64(read_i16_be(payload, 0)) & 0xFFFF
        if read_i16_be(payload, 2) != 0:  # the weight
            raise self.unexpected_frame()
        if class_id != CLASS_BASIC:
            raise AmqpError(
                UNEXPECTED_FRAME,
                f"expected content header for class 60, got one for class {class_id} instead",
                method.spec.class_id,
                method.spec.method_id,
            )
        size: i64 = read_i64_be(payload, 4)
        if size < 0 or size > self._publishing.broker.services.limits.max_message_size:
            self.method = None
            self._publishing.tally.turned_away()
            # the stages before the size come first; then it is refused before any body is buffered
            resolve(self._publishing, self._arguments, size if size > 0 else 0x7FFFFFFFFFFFFFFF)
            raise AmqpError(FRAME_ERROR, f"content body size {size} is not acceptable")
        self._header = payload
        self.size = size
        self.left = size
        self.chunks = []
        self._publishing.broker.services.freeing.add_body(self.chunks, size)
        self._small = 0
        if size == 0:
            self._complete(receiver)
        elif size > LARGE and self._will_be_logged(payload):
            self._large = LargeBody(self._publishing.broker.services.log, self.chunks)

    def _will_be_logged(self, header: bytes) -> bool:
        """Will the body go to the log? Then its pieces may go there as they come. (Should an interceptor make another
        one of it, they are left behind.)"""
        publishing = self._publishing
        try:
            persistent = peek_properties(header).delivery_mode == 2
            route = resolve(publishing, self._arguments, self.size)
        except AmqpError:
            return False  # told when the content is complete
        return goes_to_log(route, persistent)

    def body(self, receiver: Receiver, payload: bytes) -> None:
        """A content body frame."""
        if self.method is None:
            raise AmqpError(UNEXPECTED_FRAME, "expected method frame, got non method frame instead")
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
                self._publishing.teller.charge(self._publishing.broker.services.log.batch, logged)
        if self.left == 0:
            self._complete(receiver)

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

    def _complete(self, receiver: Receiver) -> None:
        header = self._header
        assert header is not None
        publishing = self._publishing
        receiver.content_is_complete()
        message = assembled(header, self.chunks, self.size)
        self.method = None
        self._header = None
        publishing.large_body = self._large
        before = publishing.last_number
        try:
            publish(publishing, self._arguments, message)
        except AmqpError as error:
            publishing.refused(before, self._arguments, message, error)
            raise
        finally:
            if publishing.take_large_body() is None:
                self._large = None  # the transaction has it
            self.abandon()

    def unexpected_frame(self) -> AmqpError:
        """A frame of another kind than the one that must come next."""
        method = self.method
        assert method is not None
        if self._header is None:
            text = f"expected content header for class {method.spec.class_id}, got non content header frame instead"
        else:
            text = "expected content body, got non content body frame instead"
        return AmqpError(UNEXPECTED_FRAME, text, method.spec.class_id, method.spec.method_id)
