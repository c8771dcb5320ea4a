"""Content in several frames: method, header, body frames, put together per channel.

Duty: the order of frames and sizes. The common case, all of it in one piece of input, never comes here
(``frame_loop.py``). A message that is too large is refused from its header, before any body is buffered.
"""

from __future__ import annotations

from typing import Final

from librt.strings import read_i16_be, read_i64_be
from mypy_extensions import i64

from warrenmq.broker import large, publish
from warrenmq.broker.channel import Channel
from warrenmq.broker.publish import Arrived
from warrenmq.broker.transaction import command_while_committing
from warrenmq.wire.glance import quick_properties
from warrenmq.wire.replies import AmqpError

SMALL: Final = 1024  # pieces of a body below this size are joined
JOIN_AT: Final = 256


def content_header(channel: Channel, payload: bytes) -> None:
    method = channel.content_method
    if method is None:
        raise AmqpError(505, "expected method frame, got non method frame instead")
    if channel.content_header is not None:
        raise unexpected_frame(channel, "header")
    class_id: i64 = i64(read_i16_be(payload, 0)) & 0xFFFF
    if read_i16_be(payload, 2) != 0:  # the weight
        raise unexpected_frame(channel, "header")
    if class_id != 60:
        raise AmqpError(
            505,
            f"expected content header for class 60, got one for class {class_id} instead",
            method.spec.class_id,
            method.spec.method_id,
        )
    size: i64 = read_i64_be(payload, 4)
    if size < 0 or size > channel.broker.max_message_size:
        arguments = channel.content_arguments
        channel.content_method = None
        # the stages before the size come first; then it is refused before any body is buffered
        publish.known_route(channel, arguments, size if size > 0 else 0x7FFFFFFFFFFFFFFF)
        raise AmqpError(501, f"content body size {size} is not acceptable")
    channel.content_header = payload
    channel.content_size = size
    channel.content_left = size
    channel.content_chunks = []
    channel.content_small = 0
    if size == 0:
        _complete(channel)
    else:
        large.begin(channel, payload, size)


def content_body(channel: Channel, payload: bytes) -> None:
    method = channel.content_method
    if method is None:
        raise AmqpError(505, "expected method frame, got non method frame instead")
    if channel.content_header is None:
        raise unexpected_frame(channel, "body")
    if len(payload) > channel.content_left:
        raise unexpected_frame(channel, "body")
    if not payload:
        return
    channel.content_left -= len(payload)
    _collect(channel, payload)
    if channel.content_handle:
        large.collected(channel, channel.content_left == 0)
    if channel.content_left == 0:
        _complete(channel)


def _collect(channel: Channel, payload: bytes) -> None:
    """Keep a piece of the body. Small ones are joined, so that tiny frames cost no more memory than their octets."""
    chunks = channel.content_chunks
    chunks.append(payload)
    if len(payload) >= SMALL:
        channel.content_small = 0
        return
    channel.content_small += 1
    if channel.content_small == JOIN_AT:
        first: i64 = len(chunks) - JOIN_AT
        joined = b"".join(chunks[first:])
        del chunks[first:]
        chunks.append(joined)
        channel.content_small = 0


def _complete(channel: Channel) -> None:
    header = channel.content_header
    assert header is not None
    arguments = channel.content_arguments
    chunks = channel.content_chunks
    channel.content_method = None
    channel.content_header = None
    if channel.committing is not None:
        raise command_while_committing(60, 40)
    arrived = Arrived(b"", channel.number, len(header), header, chunks, channel.content_size)
    if channel.broker.blocking:
        channel.connection.block()  # behind this one: on a disk that fails it is what the log is tried with
    channel.broker.arriving = channel
    try:
        publish.publish(channel, arguments, quick_properties(header), arrived)
    finally:
        channel.broker.arriving = None
        large.abandon(channel)
        channel.content_chunks = []


def unexpected_frame(channel: Channel, got: str) -> AmqpError:
    method = channel.content_method
    assert method is not None
    expected = "header" if channel.content_header is None else "body"
    if expected == "header":
        text = f"expected content header for class {method.spec.class_id}, got non content header frame instead"
    else:
        text = "expected content body, got non content body frame instead"
    return AmqpError(505, text, method.spec.class_id, method.spec.method_id)
