"""The 32 bits the log keeps for us with each (queue, message).

    not negative    bit 30       redelivered
                    bits 8..29   body size; all ones: larger than fits, ask the log
                    bits 0..7    priority

What came back to a quorum queue, or died there, is negative, and has no priority. But for the sign:

    bit 30 clear    bits 8..29   body size; all ones: larger than fits, ask the log
                    bits 0..7    failed deliveries
    bit 30 set      bits 0..28   failed deliveries, more than fit there; the body size: ask the log
    bit 29 set too  bits 24..26  why it is a dead letter that waits for its targets
                    bits 0..21   body size; all ones: larger than fits, ask the log
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

REDELIVERED_BIT: Final = 1 << 30
MANY_BIT: Final = 1 << 30
DEAD_BIT: Final = 1 << 29
REASON_SHIFT: Final = 24
SIGN: Final = 1 << 31
LARGE: Final = (1 << 22) - 1
REASONS: Final = ["rejected", "expired", "maxlen", "delivery_limit"]  # their places here are on disk


def pack(priority: i64, size: i64, redelivered: bool) -> i64:
    if size > LARGE:
        size = LARGE
    packed = size << 8 | (priority & 255)
    return packed | REDELIVERED_BIT if redelivered else packed


def pack_failed(failures: i64, size: i64) -> i64:
    """For a message that came back to a quorum queue so many times."""
    if failures > 255:
        return (MANY_BIT | min(failures, DEAD_BIT - 1)) - SIGN
    if size > LARGE:
        size = LARGE
    return (size << 8 | failures) - SIGN


def pack_dead(reason: str, size: i64) -> i64:
    """For a dead letter that waits in its quorum queue."""
    if size > LARGE:
        size = LARGE
    return (MANY_BIT | DEAD_BIT | i64(REASONS.index(reason)) << REASON_SHIFT | size) - SIGN


def reason_of(packed: i64) -> str:
    """Why it is a dead letter, "" when it is none."""
    if packed >= 0:
        return ""
    rest = packed + SIGN
    return REASONS[(rest >> REASON_SHIFT) & 7] if rest & MANY_BIT and rest & DEAD_BIT else ""


def was_delivered(packed: i64) -> bool:
    return packed < 0 or (packed & REDELIVERED_BIT) != 0


def failures_of(packed: i64) -> i64:
    if packed >= 0:
        return 0
    rest = packed + SIGN
    if rest & MANY_BIT:
        return 0 if rest & DEAD_BIT else rest & (DEAD_BIT - 1)
    return rest & 255


def priority_of(packed: i64) -> i64:
    return packed & 255 if packed >= 0 else 0


def size_of(packed: i64) -> i64:
    """The body size, or LARGE when it did not fit."""
    if packed < 0:
        packed += SIGN
        if packed & MANY_BIT:
            return packed & LARGE if packed & DEAD_BIT else LARGE
    return (packed >> 8) & LARGE
