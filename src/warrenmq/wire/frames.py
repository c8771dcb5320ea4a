"""Frames out of a stream of octets, however the network cut it.

    frame = type(octet) channel(short) size(long) payload(size octets) %xCE
    type  = 1 method / 2 header / 3 body / 8 heartbeat (channel 0, no payload)

Duty: whole frames, or "nothing yet", or the error RabbitMQ answers (texts asked of 3.10). Holds at most
the octets it was fed and refuses a too large frame from its 7 octets of header, before any payload is waited for.
Not here: what is in the payload. The broker's connection has its own hot loop over the same grammar; the error texts
it needs are the functions below.
"""

from __future__ import annotations

from typing import Final, final

from librt.strings import read_i32_be
from mypy_extensions import i64

from warrenmq.wire.constants import (
    FRAME_BODY,
    FRAME_END,
    FRAME_HEADER,
    FRAME_HEARTBEAT,
    FRAME_METHOD,
    FRAME_OVERHEAD,
    FRAME_SIZE_FUDGE,
)
from warrenmq.wire.erlang import pretty, pretty_pair
from warrenmq.wire.replies import FRAME_ERROR, UNEXPECTED_FRAME, AmqpError


@final
class Frame:
    """One frame."""

    def __init__(self, type: i64, channel: i64, payload: bytes) -> None:
        self.type: Final = type
        self.channel: Final = channel
        self.payload: Final = payload

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Frame):
            return False
        return self.type == other.type and self.channel == other.channel and self.payload == other.payload

    def __hash__(self) -> int:
        return hash(self.payload)

    def __repr__(self) -> str:
        return f"Frame({self.type}, {self.channel}, {self.payload!r})"


def _octets(type: i64, payload: bytes) -> str:
    if len(payload) > 16:
        return pretty(f"type {type}, first 16 octets = ", payload[:16])
    return pretty(f"type {type}, all octets = ", payload)


def frame_too_large(type: i64, size: i64, frame_max: i64) -> AmqpError:
    """Said from the frame's first 7 octets; the payload is not waited for."""
    most = frame_max - FRAME_OVERHEAD
    return AmqpError(FRAME_ERROR, f"{_octets(type, b'')}: {{frame_too_large,{size},{most}}}")


def invalid_frame_end(type: i64, payload: bytes, end: i64) -> AmqpError:
    """The stream cannot be trusted any more."""
    return AmqpError(FRAME_ERROR, pretty_pair(_octets(type, payload) + ": ", "invalid_frame_end_marker", str(end)))


def unknown_frame(type: i64, payload: bytes) -> AmqpError:
    """No such type, or a payload too short for its type, or a heartbeat with a payload."""
    return AmqpError(FRAME_ERROR, _octets(type, payload) + ": unknown_frame")


def unexpected_frame(type: i64, payload: bytes) -> AmqpError:
    """A good frame on the wrong channel: a heartbeat on a channel, or content on channel 0."""
    return AmqpError(UNEXPECTED_FRAME, _octets(type, payload))


def check_frame(type: i64, channel: i64, payload: bytes) -> None:
    """Raise unless type, channel and payload go together, in the order RabbitMQ looks at them."""
    if type == FRAME_METHOD:
        if len(payload) < 4:
            raise unknown_frame(type, payload)
    elif type == FRAME_BODY:
        if channel == 0:
            raise unexpected_frame(type, payload)
    elif type == FRAME_HEADER:
        if len(payload) < 12:
            raise unknown_frame(type, payload)
        if channel == 0:
            raise unexpected_frame(type, payload)
    elif type == FRAME_HEARTBEAT:
        if len(payload) > 0:
            raise unknown_frame(type, payload)
        if channel != 0:
            raise unexpected_frame(type, payload)
    else:
        raise unknown_frame(type, payload)


@final
class FrameReader:
    """A reader of frames: ``feed`` octets as they come, take frames with ``next`` until it says None. ``frame_max`` 0 =
    no limit."""

    def __init__(self, frame_max: int = 0) -> None:
        self.frame_max: i64 = i64(frame_max)
        self._data = b""
        self._at: i64 = 0
        # Octets fed while a frame is known to be incomplete; joined once it is there, so that a large frame that comes
        # in small pieces is not copied again for each of them.
        self._later: list[bytes] = []
        self._held: i64 = 0  # octets in _data from _at on, and in _later
        self._wanted: i64 = 7  # octets the next step needs

    def feed(self, data: bytes) -> None:
        if len(data) == 0:
            return
        self._later.append(data)
        self._held += len(data)

    @property
    def buffered(self) -> int:
        """Octets fed and not yet given out."""
        return int(self._held)

    def next(self) -> Frame | None:
        if self._held < self._wanted:
            return None
        if len(self._data) - self._at < self._wanted:
            self._later.insert(0, self._data[self._at :])
            self._data = b"".join(self._later)
            self._at = 0
            self._later = []
        data = self._data
        at = self._at
        type: i64 = data[at]
        high: i64 = data[at + 1]
        low: i64 = data[at + 2]
        size = i64(read_i32_be(data, at + 3)) & 0xFFFFFFFF
        if self.frame_max != 0 and size > self.frame_max - FRAME_OVERHEAD + FRAME_SIZE_FUDGE:
            raise frame_too_large(type, size, self.frame_max)
        whole = size + FRAME_OVERHEAD
        if self._held < whole:
            self._wanted = whole
            return None
        if len(data) - at < whole:
            self._wanted = whole
            return self.next()
        payload = data[at + 7 : at + 7 + size]
        end: i64 = data[at + 7 + size]
        if end != FRAME_END:
            raise invalid_frame_end(type, payload, end)
        channel = high << 8 | low
        check_frame(type, channel, payload)
        self._at = at + whole
        self._held -= whole
        self._wanted = 7
        return Frame(type, channel, payload)
