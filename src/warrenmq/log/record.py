"""One record: a message, a message whose body is in chunks, or a chunk. Its layout is in ``format``.

Duty: sizes, fields, checks, and the same record with other holders. Records of format 1 (kinds 1 to 3) carry no sums:
they are read as they stand, and every rewriting turns them into those of today.
"""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter, read_i32_le, read_i64_le, write_i32_le, write_i64_le
from mypy_extensions import i32, i64

from warrenmq.log.format import StoredMessage
from warrenmq.log.sums import LOW, Sums, chunk_head, holder_head, signed, total

MESSAGE: Final = 4
CHUNKED: Final = 5
CHUNK: Final = 6
OLD_MESSAGE: Final = 1
OLD_CHUNKED: Final = 2
OLD_CHUNK: Final = 3

MESSAGE_FIXED: Final = 39
OLD_MESSAGE_FIXED: Final = 35
CHUNK_FIXED: Final = 17
OLD_CHUNK_FIXED: Final = 9
END: Final = 4  # behind the holders: the sum of the head
HOLDER: Final = 24

WHOLE: Final = 0  # what ``check`` finds
BODY_DAMAGED: Final = 1
HEAD_DAMAGED: Final = 2

Holder = tuple[int, int, int, int]  # queue, position, expiry, flags


def is_chunk(kind: int) -> bool:
    return kind == CHUNK or kind == OLD_CHUNK


def is_chunked(kind: int) -> bool:
    return kind == CHUNKED or kind == OLD_CHUNKED


def number_of(data: bytes, at: i64) -> i64:
    return i64(read_i32_le(data, at + 1))


def record_size(data: bytes, at: i64) -> i64:
    """The length of the record at ``at``, of any kind; 0 when the bytes are no record, or too few to say."""
    left = len(data) - at
    if left < OLD_CHUNK_FIXED:
        return 0
    kind = data[at]
    if kind == CHUNK:
        return positive(CHUNK_FIXED, i64(read_i32_le(data, at + 5)))
    if kind == OLD_CHUNK:
        return positive(OLD_CHUNK_FIXED, i64(read_i32_le(data, at + 5)))
    if left < OLD_MESSAGE_FIXED:
        return 0
    if kind == MESSAGE or kind == CHUNKED:
        return positive(holders_start(data, at) - at + END, holder_count(data, at) * HOLDER)
    if kind == OLD_MESSAGE or kind == OLD_CHUNKED:
        return positive(holders_start(data, at) - at, holder_count(data, at) * HOLDER)
    return 0


def positive(fixed: i64, more: i64) -> i64:
    """Lengths that damage made negative give no size."""
    return fixed + more if more >= 0 and fixed > 0 else 0


def header_start(data: bytes, at: i64) -> i64:
    return at + (MESSAGE_FIXED if data[at] >= MESSAGE else OLD_MESSAGE_FIXED)


def body_start(data: bytes, at: i64) -> i64:
    return header_start(data, at) + i64(read_i32_le(data, at + 21))


def body_length(data: bytes, at: i64) -> i64:
    return i64(read_i32_le(data, at + 25))


def holder_count(data: bytes, at: i64) -> i64:
    return i64(read_i32_le(data, at + 17))


def holders_start(data: bytes, at: i64) -> i64:
    """Where the holders of the message at ``at`` begin."""
    exchange = i64(data[at + 29]) | i64(data[at + 30]) << 8
    return body_start(data, at) + body_length(data, at) + exchange + i64(read_i32_le(data, at + 31))


def decode_message(data: bytes, at: i64) -> StoredMessage:
    """The message at ``at``; of a chunked one the body is its list of chunk addresses."""
    a = header_start(data, at)
    b = a + i64(read_i32_le(data, at + 21))
    c = b + i64(read_i32_le(data, at + 25))
    d = c + (i64(data[at + 29]) | i64(data[at + 30]) << 8)
    return StoredMessage(
        read_i64_le(data, at + 5),
        data[a:b],
        data[b:c],
        data[c:d].decode("utf-8", "surrogateescape"),
        data[d : d + i64(read_i32_le(data, at + 31))],
        i64(read_i32_le(data, at + 13)),
    )


def chunk_bytes(data: bytes, at: i64) -> bytes:
    begin = at + (CHUNK_FIXED if data[at] == CHUNK else OLD_CHUNK_FIXED)
    return data[begin : begin + i64(read_i32_le(data, at + 5))]


# --- sums


def unsigned(data: bytes, at: i64) -> i64:
    return i64(read_i32_le(data, at)) & LOW


def head_sum(sums: Sums, data: bytes, at: i64) -> i64:
    """The sum the head of this record should have, of any kind, by what stands there."""
    kind = data[at]
    if is_chunk(kind):
        return chunk_head(sums.start, number_of(data, at), i64(read_i32_le(data, at + 5)), body_sum(data, at))
    a = header_start(data, at)
    b = body_start(data, at)
    c = b + body_length(data, at)
    end = holders_start(data, at)
    head = sums.head(
        is_chunked(kind),
        number_of(data, at),
        read_i64_le(data, at + 5),
        i64(read_i32_le(data, at + 13)),
        holder_count(data, at),
        data[a:b],
        c - b,
        body_sum(data, at),
        i64(data[at + 29]) | i64(data[at + 30]) << 8,
        data[c:end],
    )
    count = holder_count(data, at)
    while count > 0:
        head = holder_head(
            head,
            i64(read_i32_le(data, end)),
            read_i64_le(data, end + 4),
            read_i64_le(data, end + 12),
            i64(read_i32_le(data, end + 20)),
        )
        end += HOLDER
        count -= 1
    return head


def body_sum(data: bytes, at: i64) -> i64:
    """As it is written in the record; of an old one, which has none, as it is."""
    kind = data[at]
    if kind == CHUNK:
        return unsigned(data, at + 9)
    if kind >= MESSAGE:
        return unsigned(data, at + 35)
    return true_sum(data, at)


def true_sum(data: bytes, at: i64) -> i64:
    """The sum of the body that stands there."""
    if is_chunk(data[at]):
        return total(chunk_bytes(data, at))
    begin = body_start(data, at)
    return total(data[begin : begin + body_length(data, at)])


def written_head(data: bytes, at: i64, size: i64) -> i64:
    """The sum of the head as it is written in the record."""
    return unsigned(data, at + 13 if data[at] == CHUNK else at + size - END)


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
    out.write(data[at + 1 : at + 17])
    write_i32_le(out, i32(count))
    out.write(data[at + 21 : at + OLD_MESSAGE_FIXED])
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
