"""A content header with ``x-stream-offset`` added to its headers, without decoding the rest.

A message that was read from a stream and published into another has such a header already: as with RabbitMQ it makes
room for this stream's.

header = class(2) weight(2) body-size(8) flags(2) [content-type] [content-encoding] [headers table] ...
"""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter, read_i16_be, read_i32_be, write_i16_be, write_i32_be, write_i64_be
from mypy_extensions import i16, i32, i64

from warrenmq.wire.constants import STREAM_OFFSET_ENTRY
from warrenmq.wire.fields import value_end
from warrenmq.wire.octets import Malformed, shortstr_end
from warrenmq.wire.properties import FLAG_CONTENT_ENCODING, FLAG_CONTENT_TYPE, FLAG_HEADERS

_NAME: Final = STREAM_OFFSET_ENTRY[:-1]
_NAME_SIZE: Final = len(_NAME)
_ENTRY_SIZE: Final = len(STREAM_OFFSET_ENTRY) + 8


def with_stream_offset(header: bytes, offset: i64) -> bytes:
    flags: i64 = i64(read_i16_be(header, 12)) & 0xFFFF
    at: i64 = 14
    if flags & FLAG_CONTENT_TYPE:
        at += 1 + i64(header[at])
    if flags & FLAG_CONTENT_ENCODING:
        at += 1 + i64(header[at])
    w = BytesWriter()
    w.write(header[:12])
    write_i16_be(w, i16((flags | FLAG_HEADERS) - (65536 if flags & 0x8000 else 0)))
    w.write(header[14:at])
    size: i64 = 0
    rest = at
    if flags & FLAG_HEADERS:
        size = i64(read_i32_be(header, at))
        rest = at + 4 + size
    table = _others(header, at + 4, rest) if size else b""
    write_i32_be(w, i32(len(table) + _ENTRY_SIZE))
    w.write(table)
    w.write(STREAM_OFFSET_ENTRY)
    write_i64_be(w, offset)
    w.write(header[rest:])
    return w.getvalue()


def _others(header: bytes, at: i64, end: i64) -> bytes:
    """The entries of the table that stands there, but none of that name."""
    begin = at
    kept = b""
    try:
        while at < end:
            value = shortstr_end(header, at, end)
            behind = value_end(header, value, end)
            if value - at == _NAME_SIZE and header[at:value] == _NAME:
                kept += header[begin:at]
                begin = behind
            at = behind
    except Malformed:
        pass  # an earlier version let it in: the rest goes out as it is
    return header[begin:end] if len(kept) == 0 else kept + header[begin:end]
