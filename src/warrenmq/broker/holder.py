"""The 31 bits the log keeps for us with each (queue, message): priority, body size and whether it was redelivered.

    bit 30       redelivered
    bits 8..29   body size; all ones: larger than fits, ask the log
    bits 0..7    priority
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

REDELIVERED_BIT: Final = 1 << 30
LARGE: Final = (1 << 22) - 1


def pack(priority: i64, size: i64, redelivered: bool) -> i64:
    if size > LARGE:
        size = LARGE
    packed = size << 8 | (priority & 255)
    return packed | REDELIVERED_BIT if redelivered else packed


def priority_of(packed: i64) -> i64:
    return packed & 255


def size_of(packed: i64) -> i64:
    """The body size, or LARGE when it did not fit."""
    return (packed >> 8) & LARGE
