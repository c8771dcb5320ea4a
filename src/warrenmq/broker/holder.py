"""The 32 bits the log keeps for us with each (queue, message).

    not negative    bit 30       redelivered
                    bits 8..29   body size; all ones: larger than fits, ask the log
                    bits 0..7    priority

What came back to a quorum queue is negative: its failures are counted, and it has no priority. But for the sign:

    bit 30 clear    bits 8..29   body size, as above
                    bits 0..7    failed deliveries
    bit 30 set      bits 0..29   failed deliveries, more than fit there; the body size: ask the log
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

REDELIVERED_BIT: Final = 1 << 30
MANY_BIT: Final = 1 << 30
SIGN: Final = 1 << 31
LARGE: Final = (1 << 22) - 1


def pack(priority: i64, size: i64, redelivered: bool) -> i64:
    if size > LARGE:
        size = LARGE
    packed = size << 8 | (priority & 255)
    return packed | REDELIVERED_BIT if redelivered else packed


def pack_failed(failures: i64, size: i64) -> i64:
    """For a message that came back to a quorum queue so many times."""
    if failures > 255:
        return (MANY_BIT | min(failures, MANY_BIT - 1)) - SIGN
    if size > LARGE:
        size = LARGE
    return (size << 8 | failures) - SIGN


def was_delivered(packed: i64) -> bool:
    return packed < 0 or (packed & REDELIVERED_BIT) != 0


def failures_of(packed: i64) -> i64:
    if packed >= 0:
        return 0
    rest = packed + SIGN
    return rest & (MANY_BIT - 1) if rest & MANY_BIT else rest & 255


def priority_of(packed: i64) -> i64:
    return packed & 255 if packed >= 0 else 0


def size_of(packed: i64) -> i64:
    """The body size, or LARGE when it did not fit."""
    if packed < 0:
        packed += SIGN
        if packed & MANY_BIT:
            return LARGE
    return (packed >> 8) & LARGE
