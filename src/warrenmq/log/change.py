"""One change: what a batch or a ledger says besides messages.

Duty: the length of a change of any kind, where a definition's parts stand, and settles as they are written. The other
kinds are written in ``batch`` and read by ``state`` and ``holders``. Changes carry no sums of their own: their batch or
their block has one.
"""

from __future__ import annotations

from librt.strings import BytesWriter, read_i16_le, read_i32_le, write_i32_le, write_i64_le
from mypy_extensions import i32, i64

from warrenmq.log.layout import (
    DEFINE,
    DEFINE_FIXED,
    DELIVERED,
    DELIVERED_FIXED,
    DROP,
    DROP_COUNT_AT,
    DROP_FIXED,
    DROP_SEGMENT,
    ENQUEUE,
    ENQUEUE_FIXED,
    EVENT_HEAD,
    EVENT_LENGTH_AT,
    EVENT_TURN,
    KEY_LENGTH_AT,
    KIND_LENGTH_AT,
    REQUEUE,
    REQUEUE_FIXED,
    SETTLE,
    SETTLE_FIXED,
    SETTLE_RUN,
    SETTLE_RUN_FIXED,
    UNDEFINE,
    UNDEFINE_FIXED,
    VALUE_LENGTH_AT,
)


def change_size(data: bytes, at: i64) -> i64:
    """The length of the change or event at ``at``; 0 when the bytes are neither.

    A ladder and not a table: a start comes here for every change there is, and the most frequent ones stand first.
    """
    kind = data[at]
    if kind == SETTLE:
        return SETTLE_FIXED
    if kind == DELIVERED:
        return DELIVERED_FIXED
    if kind == SETTLE_RUN:
        return SETTLE_RUN_FIXED
    if kind == ENQUEUE:
        return ENQUEUE_FIXED
    if kind == REQUEUE:
        return REQUEUE_FIXED
    if kind == DROP:
        return DROP_FIXED + DROP_SEGMENT * i64(read_i32_le(data, at + DROP_COUNT_AT))
    if kind == DEFINE:
        return DEFINE_FIXED + kind_length(data, at) + key_length(data, at) + value_length(data, at)
    if kind == UNDEFINE:
        return UNDEFINE_FIXED + kind_length(data, at) + key_length(data, at)
    if kind >= EVENT_TURN:
        return EVENT_HEAD + i64(read_i32_le(data, at + EVENT_LENGTH_AT))
    return 0


def kind_length(data: bytes, at: i64) -> i64:
    """Of a definition's kind, in a define or undefine."""
    return i64(read_i16_le(data, at + KIND_LENGTH_AT)) & 0xFFFF


def key_length(data: bytes, at: i64) -> i64:
    return i64(read_i32_le(data, at + KEY_LENGTH_AT))


def value_length(data: bytes, at: i64) -> i64:
    return i64(read_i32_le(data, at + VALUE_LENGTH_AT))


def write_settles(out: BytesWriter, queue_id: i64, address: i64, count: i64) -> None:
    """So many neighbouring records, from this one on: a settle, or a settle run."""
    out.append(SETTLE if count == 1 else SETTLE_RUN)
    write_i32_le(out, i32(queue_id))
    write_i64_le(out, address)
    if count > 1:
        write_i32_le(out, i32(count))
