"""One record: a message, a message whose body is in chunks, or a chunk. Its layout is in ``grammar``.

Duty: sizes, fields, checks, and the same record with other holders. Records of format 1 (kinds 1 to 3) carry no sums:
they are read as they stand, and every rewriting turns them into those of today.
"""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter, read_i16_le, read_i32_le, read_i64_le, write_i32_le, write_i64_le
from mypy_extensions import i32, i64

from warrenmq.log.format import StoredMessage
from warrenmq.log.layout import (
    BODY_LENGTH_AT,
    BODY_SUM_AT,
    CHUNK,
    CHUNK_BODY_SUM_AT,
    CHUNK_FIXED,
    CHUNK_HEAD_SUM_AT,
    CHUNK_LENGTH_AT,
    CHUNKED,
    EXCHANGE_LENGTH_AT,
    FLAGS_AT,
    HEAD_SUM,
    HEADER_LENGTH_AT,
    HOLDER,
    HOLDER_EXPIRY_AT,
    HOLDER_FLAGS_AT,
    HOLDER_POSITION_AT,
    HOLDER_QUEUE_AT,
    HOLDERS_AT,
    KEYS_LENGTH_AT,
    MESSAGE,
    MESSAGE_FIXED,
    MESSAGE_ID_AT,
    OLD_CHUNK,
    OLD_CHUNK_FIXED,
    OLD_CHUNKED,
    OLD_MESSAGE,
    OLD_MESSAGE_FIXED,
    RECORD_AT,
)
from warrenmq.log.sums import LOW, Sums, chunk_head, holder_head, signed, total

WHOLE: Final = 0  # what ``check`` finds
BODY_DAMAGED: Final = 1
HEAD_DAMAGED: Final = 2

Holder = tuple[int, int, int, int]  # queue, position, expiry, flags


def is_chunk(kind: int) -> bool:
    return kind == CHUNK or kind == OLD_CHUNK


def is_chunked(kind: int) -> bool:
    return kind == CHUNKED or kind == OLD_CHUNKED


def number_of(data: bytes, at: i64) -> i64:
    return i64(read_i32_le(data, at + RECORD_AT))


def record_size(data: bytes, at: i64) -> i64:
    """The length of the record at ``at``, of any kind; 0 when the bytes are no record, or too few to say."""
    left = len(data) - at
    if left < OLD_CHUNK_FIXED:
        return 0
    kind = data[at]
    if kind == CHUNK:
        return positive(CHUNK_FIXED, chunk_length(data, at))
    if kind == OLD_CHUNK:
        return positive(OLD_CHUNK_FIXED, chunk_length(data, at))
    if left < OLD_MESSAGE_FIXED:
        return 0
    if kind == MESSAGE or kind == CHUNKED:
        return positive(holders_start(data, at) - at + HEAD_SUM, holder_count(data, at) * HOLDER)
    if kind == OLD_MESSAGE or kind == OLD_CHUNKED:
        return positive(holders_start(data, at) - at, holder_count(data, at) * HOLDER)
    return 0


def positive(fixed: i64, more: i64) -> i64:
    """Lengths that damage made negative give no size."""
    return fixed + more if more >= 0 and fixed > 0 else 0


def header_start(data: bytes, at: i64) -> i64:
    return at + (MESSAGE_FIXED if data[at] >= MESSAGE else OLD_MESSAGE_FIXED)


def body_start(data: bytes, at: i64) -> i64:
    return header_start(data, at) + i64(read_i32_le(data, at + HEADER_LENGTH_AT))


def body_length(data: bytes, at: i64) -> i64:
    return i64(read_i32_le(data, at + BODY_LENGTH_AT))


def holder_count(data: bytes, at: i64) -> i64:
    return i64(read_i32_le(data, at + HOLDERS_AT))


def exchange_length(data: bytes, at: i64) -> i64:
    return i64(read_i16_le(data, at + EXCHANGE_LENGTH_AT)) & 0xFFFF


def keys_length(data: bytes, at: i64) -> i64:
    return i64(read_i32_le(data, at + KEYS_LENGTH_AT))


def message_id_of(data: bytes, at: i64) -> i64:
    return read_i64_le(data, at + MESSAGE_ID_AT)


def flags_of(data: bytes, at: i64) -> i64:
    return i64(read_i32_le(data, at + FLAGS_AT))


def chunk_length(data: bytes, at: i64) -> i64:
    return i64(read_i32_le(data, at + CHUNK_LENGTH_AT))


def holders_start(data: bytes, at: i64) -> i64:
    """Where the holders of the message at ``at`` begin."""
    return body_start(data, at) + body_length(data, at) + exchange_length(data, at) + keys_length(data, at)


def head_length(data: bytes, at: i64) -> i64:
    """The octets that say what the message at ``at`` was, beside its body."""
    return i64(read_i32_le(data, at + HEADER_LENGTH_AT)) + exchange_length(data, at) + keys_length(data, at)


def is_bare(data: bytes, at: i64) -> bool:
    """Is it a message of which no more is left than its number and its id?"""
    return holder_count(data, at) == 0 and i64(read_i32_le(data, at + HEADER_LENGTH_AT)) == 0


def decode_message(data: bytes, at: i64, with_body: bool = True) -> StoredMessage:
    """The message at ``at``; of a chunked one the body is its list of chunk addresses."""
    header = header_start(data, at)
    body = header + i64(read_i32_le(data, at + HEADER_LENGTH_AT))
    exchange = body + body_length(data, at)
    keys = exchange + exchange_length(data, at)
    return StoredMessage(
        message_id_of(data, at),
        data[header:body],
        data[body:exchange] if with_body else b"",
        data[exchange:keys].decode("utf-8", "surrogateescape"),
        data[keys : keys + keys_length(data, at)],
        flags_of(data, at),
    )


def chunk_bytes(data: bytes, at: i64) -> bytes:
    begin = at + (CHUNK_FIXED if data[at] == CHUNK else OLD_CHUNK_FIXED)
    return data[begin : begin + chunk_length(data, at)]


# --- sums


def unsigned(data: bytes, at: i64) -> i64:
    return i64(read_i32_le(data, at)) & LOW


def head_sum(sums: Sums, data: bytes, at: i64) -> i64:
    """The sum the head of this record should have, of any kind, by what stands there."""
    kind = data[at]
    if is_chunk(kind):
        return chunk_head(sums.start, number_of(data, at), chunk_length(data, at), body_sum(data, at))
    header = header_start(data, at)
    body = body_start(data, at)
    exchange = body + body_length(data, at)
    held = holders_start(data, at)
    count = holder_count(data, at)
    head = sums.head(
        is_chunked(kind),
        number_of(data, at),
        message_id_of(data, at),
        flags_of(data, at),
        count,
        data[header:body],
        exchange - body,
        body_sum(data, at),
        exchange_length(data, at),
        data[exchange:held],
    )
    while count > 0:
        head = holder_head(
            head,
            i64(read_i32_le(data, held + HOLDER_QUEUE_AT)),
            read_i64_le(data, held + HOLDER_POSITION_AT),
            read_i64_le(data, held + HOLDER_EXPIRY_AT),
            i64(read_i32_le(data, held + HOLDER_FLAGS_AT)),
        )
        held += HOLDER
        count -= 1
    return head


def body_sum(data: bytes, at: i64) -> i64:
    """As it is written in the record; of an old one, which has none, as it is."""
    kind = data[at]
    if kind == CHUNK:
        return unsigned(data, at + CHUNK_BODY_SUM_AT)
    if kind >= MESSAGE:
        return unsigned(data, at + BODY_SUM_AT)
    return true_sum(data, at)


def true_sum(data: bytes, at: i64) -> i64:
    """The sum of the body that stands there."""
    if is_chunk(data[at]):
        return total(chunk_bytes(data, at))
    begin = body_start(data, at)
    return total(data[begin : begin + body_length(data, at)])


def written_head(data: bytes, at: i64, size: i64) -> i64:
    """The sum of the head as it is written in the record."""
    return unsigned(data, at + CHUNK_HEAD_SUM_AT if data[at] == CHUNK else at + size - HEAD_SUM)


def check(sums: Sums, data: bytes, at: i64, size: i64) -> i64:
    """WHOLE, BODY_DAMAGED or HEAD_DAMAGED. A record of format 1 cannot be judged by itself: WHOLE."""
    if data[at] < MESSAGE:
        return WHOLE
    if head_sum(sums, data, at) != written_head(data, at, size):
        return HEAD_DAMAGED
    return WHOLE if true_sum(data, at) == body_sum(data, at) else BODY_DAMAGED


# --- writing again


def rewritten(sums: Sums, data: bytes, at: i64, size: i64, held: list[Holder] | None) -> bytes:
    """The record as it is written today, with these holders (None: its own). What is damaged in it stays so."""
    if data[at] >= MESSAGE and held is None:
        return data[at : at + size]
    out = BytesWriter()
    body = body_sum(data, at)
    if is_chunk(data[at]):
        write_chunk(out, sums, number_of(data, at), chunk_bytes(data, at), body)
        return out.getvalue()
    count = holder_count(data, at) if held is None else len(held)
    start = holders_start(data, at)
    out.append(CHUNKED if is_chunked(data[at]) else MESSAGE)
    out.write(data[at + RECORD_AT : at + HOLDERS_AT])
    write_i32_le(out, i32(count))
    out.write(data[at + HEADER_LENGTH_AT : at + OLD_MESSAGE_FIXED])
    write_i32_le(out, i32(signed(body)))
    out.write(data[header_start(data, at) : start])
    if held is None:
        out.write(data[start : start + count * HOLDER])
    else:
        for queue, position, expiry, flags in held:
            write_holder(out, queue, position, expiry, flags)
    head = head_sum(sums, out.getvalue(), 0)
    write_i32_le(out, i32(signed(head)))
    return out.getvalue()


def write_holder(out: BytesWriter, queue_id: i64, position: i64, expiry: i64, flags: i64) -> None:
    write_i32_le(out, i32(queue_id))
    write_i64_le(out, position)
    write_i64_le(out, expiry)
    write_i32_le(out, i32(flags))


def write_chunk(out: BytesWriter, sums: Sums, record: i64, data: bytes, body: i64) -> i64:
    """``body``: the sum of ``data``. The head's sum."""
    head = chunk_head(sums.start, record, len(data), body)
    out.append(CHUNK)
    write_i32_le(out, i32(record))
    write_i32_le(out, i32(len(data)))
    write_i32_le(out, i32(signed(body)))
    write_i32_le(out, i32(signed(head)))
    out.write(data)
    return head
