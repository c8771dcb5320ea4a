"""A peek at a content header: what the publish path asks of most messages, without decoding it.

Duty: one walk over the payload that checks all of it and picks out next to nothing. It refuses what
``decode_properties`` refuses (``content.py``, where the layout is drawn too), and floats that are no numbers.
"""

from __future__ import annotations

from typing import Final, final

from librt.strings import read_i32_be, read_i64_be
from mypy_extensions import i64

from warrenmq.wire.content import HEADER_FIXED, property_flags, refused, text
from warrenmq.wire.field_types import (
    LETTER_ARRAY,
    LETTER_DOUBLE,
    LETTER_FLOAT,
    LETTER_LONG,
    LETTER_LONG_AS_WELL,
    LETTER_SIGNEDINT,
    LETTER_TABLE,
)
from warrenmq.wire.fields import check_value, value_end
from warrenmq.wire.octets import Malformed, longstr_end, need, shortstr_end
from warrenmq.wire.properties import (
    FLAG_APP_ID,
    FLAG_CLUSTER_ID,
    FLAG_CONTENT_ENCODING,
    FLAG_CONTENT_TYPE,
    FLAG_CORRELATION_ID,
    FLAG_DELIVERY_MODE,
    FLAG_EXPIRATION,
    FLAG_HEADERS,
    FLAG_MESSAGE_ID,
    FLAG_PRIORITY,
    FLAG_REPLY_TO,
    FLAG_TIMESTAMP,
    FLAG_TYPE,
    FLAG_USER_ID,
)

# marks of headers that some stage of the broker looks at
MARK_CC: Final = 1
MARK_BCC: Final = 2
MARK_DELAY: Final = 4  # x-delay
MARK_DELIVER_AT: Final = 8  # x-deliver-at
MARK_DELAY_OTHER: Final = 16  # x-delay-id, x-delay-cancel, x-delay-every and their like
MARK_RECEIPT: Final = 32  # x-receipt
MARK_LEAST: Final = 64  # x-confirm-min-queues


@final
class Peek:
    """The properties that the publish path looks at, read without decoding the rest."""

    def __init__(self) -> None:
        self.flags: i64 = 0
        self.marks: i64 = 0  # special headers: MARK_*
        self.delay: i64 = -1  # x-delay, when it is there once and a positive 32- or 64-bit number, as nearly always
        self.delivery_mode: i64 = 0  # 0 when absent
        self.priority: i64 = -1  # -1 when absent
        self.expiration: str | None = None
        self.reply_to: str | None = None
        self.user_id: str | None = None
        self.message_id: str | None = None
        self.correlation_id: str | None = None


def peek_properties(header: bytes) -> Peek:
    """One walk over the whole payload: refuses everything ``decode_properties`` refuses, decodes next to nothing."""
    peeked = Peek()
    flags = property_flags(header)
    peeked.flags = flags
    if flags & 0xFFFC == 0 and len(header) == HEADER_FIXED:
        return peeked
    try:
        _fill(peeked, header, flags)
    except Malformed:
        raise refused() from None
    return peeked


def _fill(peeked: Peek, header: bytes, flags: i64) -> None:
    end: i64 = len(header)
    at: i64 = HEADER_FIXED
    stop: i64 = 0
    if flags & FLAG_CONTENT_TYPE:
        at = shortstr_end(header, at, end)
    if flags & FLAG_CONTENT_ENCODING:
        at = shortstr_end(header, at, end)
    if flags & FLAG_HEADERS:
        stop = longstr_end(header, at, end)
        peeked.marks = _scan(header, at + 4, stop)
        if peeked.marks & MARK_DELAY:
            peeked.delay = _delay(header, at + 4, stop)
        at = stop
    if flags & FLAG_DELIVERY_MODE:
        need(at, 1, end)
        peeked.delivery_mode = header[at]
        at += 1
    if flags & FLAG_PRIORITY:
        need(at, 1, end)
        peeked.priority = header[at]
        at += 1
    if flags & FLAG_CORRELATION_ID:
        stop = shortstr_end(header, at, end)
        peeked.correlation_id = text(header, at, stop)
        at = stop
    if flags & FLAG_REPLY_TO:
        stop = shortstr_end(header, at, end)
        peeked.reply_to = text(header, at, stop)
        at = stop
    if flags & FLAG_EXPIRATION:
        stop = shortstr_end(header, at, end)
        peeked.expiration = text(header, at, stop)
        at = stop
    if flags & FLAG_MESSAGE_ID:
        stop = shortstr_end(header, at, end)
        peeked.message_id = text(header, at, stop)
        at = stop
    if flags & FLAG_TIMESTAMP:
        need(at, 8, end)
        at += 8
    if flags & FLAG_TYPE:
        at = shortstr_end(header, at, end)
    if flags & FLAG_USER_ID:
        stop = shortstr_end(header, at, end)
        peeked.user_id = text(header, at, stop)
        at = stop
    if flags & FLAG_APP_ID:
        at = shortstr_end(header, at, end)
    if flags & FLAG_CLUSTER_ID:
        at = shortstr_end(header, at, end)
    if at != end:
        raise Malformed("content header longer than its flags say")


def _scan(data: bytes, at: i64, end: i64) -> i64:
    marks: i64 = 0
    while at < end:
        stop = shortstr_end(data, at, end)
        marks |= _mark(data, at + 1, stop - at - 1)
        at = value_end(data, stop, end)
        letter: i64 = data[stop]
        if letter == LETTER_TABLE or letter == LETTER_ARRAY or letter == LETTER_DOUBLE or letter == LETTER_FLOAT:
            check_value(data, stop, at, 0)
    return marks


def _delay(data: bytes, at: i64, end: i64) -> i64:
    """The value of x-delay in a table that was scanned; -1 when it takes more than a look."""
    found: i64 = -1
    while at < end:
        stop = shortstr_end(data, at, end)
        if stop - at == 8 and data[at + 1 : stop] == b"x-delay":
            letter: i64 = data[stop]
            if found != -1:
                return -1
            if letter == LETTER_SIGNEDINT:
                found = i64(read_i32_be(data, stop + 1))
            elif letter == LETTER_LONG or letter == LETTER_LONG_AS_WELL:
                found = read_i64_be(data, stop + 1)
            if found <= 0:
                return -1
        at = value_end(data, stop, end)
    return found


def _mark(data: bytes, at: i64, size: i64) -> i64:
    """The mark of the header name of ``size`` octets at ``at``."""
    if size < 2:
        return 0
    first: i64 = data[at]
    if first == 67:  # C
        return MARK_CC if size == 2 and data[at + 1] == 67 else 0
    if first == 66:  # B
        return MARK_BCC if size == 3 and data[at + 1] == 67 and data[at + 2] == 67 else 0
    if first != 120 or size < 7 or data[at + 1] != 45:  # x -
        return 0
    third: i64 = data[at + 2]
    if third == 114:  # r
        return MARK_RECEIPT if size == 9 and data[at : at + 9] == b"x-receipt" else 0
    if third == 99:  # c
        return MARK_LEAST if size == 20 and data[at : at + 20] == b"x-confirm-min-queues" else 0
    if third != 100 or data[at + 3] != 101 or data[at + 4] != 108:  # d e l
        return 0
    name = data[at : at + size]
    if name == b"x-delay":
        return MARK_DELAY
    if name == b"x-deliver-at":
        return MARK_DELIVER_AT
    return MARK_DELAY_OTHER if name.startswith(b"x-delay") else 0
