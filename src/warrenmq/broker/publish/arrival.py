"""Content as it came: a message that has no origin, no id and no queue yet.

Duty: to make one of the two forms in which content arrives. Where it goes is decided on the ``path``.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from warrenmq.broker.message import Message, Origin, message_from

NOWHERE: Final = Origin("", [""])


def framed(frames: bytes, channel: i64, header_size: i64, size: i64) -> Message:
    """Header frame and at most one body frame, as they stood in the input."""
    return Message(NOWHERE, 0, frames, channel, header_size, size, False)


def assembled(header: bytes, chunks: list[bytes], size: i64) -> Message:
    """The header's payload and the body in pieces, put together from many frames."""
    return message_from(NOWHERE, 0, header, chunks, size, False)
