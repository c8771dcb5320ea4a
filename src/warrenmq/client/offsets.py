"""Where a delivery of a stream stands in it: the header ``x-stream-offset``, read in place.

Duty: find the entry that the broker made by walking the table, so that nothing a publisher wrote can be taken for it:
neither a value with the same octets inside nor an entry of that name, which a message has that was read from one stream
and published into another. Not here: any other header (``columns.py``).
"""

from __future__ import annotations

from typing import Final

from librt.strings import read_i16_be, read_i64_be
from mypy_extensions import i64

from warrenmq.client.messages import Message
from warrenmq.wire.constants import STREAM_OFFSET_ENTRY
from warrenmq.wire.content import HEADER_FIXED
from warrenmq.wire.fields import value_end
from warrenmq.wire.octets import longstr_end, shortstr_end
from warrenmq.wire.properties import FLAG_CONTENT_ENCODING, FLAG_CONTENT_TYPE, FLAG_HEADERS
from warrenmq.wire.replies import AmqpError

OFFSET_NAME: Final = b"x-stream-offset"
# Its name as a short string, sixteen octets, read as two numbers; then the letter of a signed 64 bit number.
_FIRST: Final = 0x0F782D7374726561  # \x0f x - s t r e a
_SECOND: Final = 0x6D2D6F6666736574  # m - o f f s e t
_SIZE: Final = 16
_LETTER: Final = 108  # l


def stream_offset(data: bytes, at: i64, end: i64) -> i64:
    """Of the content header that stands there; -1 when it has none. Of several the last is the broker's."""
    if end - at < HEADER_FIXED:
        return -1
    found: i64 = -1
    begin = at
    try:
        flags = i64(read_i16_be(data, at + 12))
        if flags & FLAG_HEADERS == 0:
            return -1
        at += HEADER_FIXED
        if flags & FLAG_CONTENT_TYPE:
            at = shortstr_end(data, at, end)
        if flags & FLAG_CONTENT_ENCODING:
            at = shortstr_end(data, at, end)
        stop = longstr_end(data, at, end)
        at += 4
        while at < stop:
            value = shortstr_end(data, at, stop)
            behind = value_end(data, value, stop)
            if (
                value - at == _SIZE
                and data[value] == _LETTER
                and read_i64_be(data, at) == _FIRST
                and read_i64_be(data, at + 8) == _SECOND
            ):
                found = read_i64_be(data, value + 1)
            at = behind
    except AmqpError:  # an earlier version let it in: what the broker added is there all the same
        return _searched(data[begin:end])
    return found


def stream_offsets(messages: list[Message]) -> list[int]:
    """The offset each delivery of a stream carries in its headers; -1 where there is none."""
    return [int(stream_offset(message.header, 0, len(message.header))) for message in messages]


def _searched(header: bytes) -> i64:
    at: i64 = header.rfind(STREAM_OFFSET_ENTRY)
    if at < 0 or at + _SIZE + 9 > len(header):
        return -1
    return read_i64_be(header, at + _SIZE + 1)
