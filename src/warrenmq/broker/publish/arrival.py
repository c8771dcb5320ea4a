"""Content as it came: a message that has no origin, no id and no queue yet.

It comes in one of two forms: header and body frame as they stood in the input, which the frame loop takes whole, or put
together from many frames. Where it goes is decided on the ``path``.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from warrenmq.broker.message import Message, Origin, message_from

NOWHERE: Final = Origin("", [""])  # until its route is known


def assembled(header: bytes, chunks: list[bytes], size: i64) -> Message:
    """The header's payload and the body in pieces, put together from many frames."""
    return message_from(NOWHERE, 0, header, chunks, size, False)
