"""The checksums of records: one for the body, one for everything else, so that a record can be judged by itself.

Duty: what the sums are; where they stand is ``record``'s. Why two: when only a body is damaged the rest of the record
can be trusted, so it is known which queues hold the message, and the start goes on. Why not a plain CRC-32 of the
record: the sum is taken for each message, and the call and the short run would cost several times what the bytes do.
So each byte is summed once, by zlib and in long runs: the body by itself, header and route only when they differ from
the record before (they seldom do); and the numbers of the head are weighed, each with an odd weight of its own, modulo
2**32, so that a change of any one of them always changes the sum. Adler-32 is the faster of zlib's two sums for short
bytes, CRC-32 for long ones. Either finds every change of a single octet.
"""

from __future__ import annotations

from typing import Final, final
from zlib import adler32, crc32

from mypy_extensions import i64

from warrenmq.log.layout import OLD_CHUNK, OLD_CHUNKED, OLD_MESSAGE

# The kind is weighed as format 1 numbers it, so that a record has one sum, whichever format it stands in.

SHORT: Final = 2048  # bytes from which CRC-32 is the faster one
LOW: Final = 0xFFFFFFFF
SIGN: Final = 0x80000000
CHAIN: Final = 0x01000193


def total(data: bytes) -> i64:
    """The sum of these bytes."""
    if len(data) < SHORT:
        return adler32(data)
    return crc32(data)


def signed(value: i64) -> i64:
    """The same 32 bits as a signed number, which is how they are written."""
    return (value ^ SIGN) - SIGN


def chained(before: i64, value: i64) -> i64:
    """The sum of a sequence: ``value`` behind what came before."""
    return (before * CHAIN + value) & LOW


def chunk_head(start: i64, record: i64, length: i64, body: i64) -> i64:
    return (start + OLD_CHUNK * 0x4C957F3 + record * 0x5851F43 + length * 0x14057B7 + body * 0x2F0B4C5) & LOW


def holder_head(before: i64, queue: i64, position: i64, expiry: i64, flags: i64) -> i64:
    """The head's sum with one more holder."""
    one = (
        (queue & LOW) * 0x5851F43
        + (position & LOW) * 0x14057B7
        + (position >> 32 & LOW) * 0x2F0B4C5
        + (expiry & LOW) * 0x369DEA1
        + (expiry >> 32 & LOW) * 0x7A646E7
        + (flags & LOW) * 0x2545F49
    )
    return (before * CHAIN + one) & LOW


@final
class Sums:
    """Sums of heads. Remembers the last header and route, which the next message as a rule repeats."""

    def __init__(self, start: i64) -> None:
        self.start: Final = start  # the log's seed: a record of another log does not check in this one
        self.header: bytes = b""
        self.header_sum: i64 = total(b"")
        self.route: bytes = b""
        self.route_sum: i64 = total(b"")

    def head(
        self,
        chunked: bool,
        record: i64,
        message_id: i64,
        flags: i64,
        holders: i64,
        header: bytes,
        body_length: i64,
        body: i64,
        exchange_length: i64,
        route: bytes,
    ) -> i64:
        """Of a message without its holders: ``holder_head`` adds them. ``route``: the exchange's name and the keys."""
        if header != self.header:
            self.header = header
            self.header_sum = total(header)
        if route is not self.route and route != self.route:
            self.route = route
            self.route_sum = total(route)
        return (
            self.start
            + (OLD_CHUNKED if chunked else OLD_MESSAGE) * 0x4C957F3
            + record * 0x5851F43
            + (message_id & LOW) * 0x14057B7
            + (message_id >> 32 & LOW) * 0x2F0B4C5
            + (flags & LOW) * 0x369DEA1
            + holders * 0x7A646E7
            + len(header) * 0x2545F49
            + body_length * 0x6C8E943
            + exchange_length * 0x1B56C4F
            + len(route) * 0x3A9F10D
            + body * 0x5D588B7
            + self.header_sum * 0x26A0E4B
            + self.route_sum * 0x71B2F19
        ) & LOW
