"""The checksums of records: one for the body, one for everything else, so that a record can be judged by itself.

Duty: what the sums are; where they stand is ``record``'s. Why two: when only a body is damaged the rest of the record
can be trusted, so it is known which queues hold the message, and the start goes on. Why not a plain CRC-32 of the
record: the sum is taken for each message, and the call and the short run would cost several times what the bytes do.
So each byte is summed once, by zlib and in long runs: the body by itself, header and route only when they differ from
the record before (they seldom do); and the numbers of the head are weighed, each with an odd weight of its own, modulo
2**32, so that a change of any one of them always changes the sum. Adler-32 is the faster of zlib's two sums for short
bytes, CRC-32 for long ones. Either finds every change of a single octet. A short body has one call of its own, so
compiled its sum is taken here, four words at a time: less than half of what the call of zlib takes.
"""

from __future__ import annotations

from typing import Final, final
from zlib import adler32, crc32

from librt.strings import read_i64_le
from mypy_extensions import i64

from warrenmq import build_info
from warrenmq.log.layout import OLD_CHUNK, OLD_CHUNKED, OLD_MESSAGE

# The kind is weighed as format 1 numbers it, so that a record has one sum, whichever format it stands in.

SHORT: Final = 2048  # bytes from which CRC-32 is the faster one
LOW: Final = 0xFFFFFFFF
SIGN: Final = 0x80000000
CHAIN: Final = 0x01000193

COMPILED: Final = build_info().compiled
MODULUS: Final = 65521  # of Adler-32
BLOCK: Final = 32  # octets, four words: the sums of eight would not fit into 16 bits
OCTETS: Final = 0x00FF00FF00FF00FF  # every other octet of a word, each with 16 bits to grow in
# four such numbers by these, and the highest 16 bits are the four of them, weighed and added up
ADDED: Final = 0x0001000100010001
EVEN: Final = 0x0008000600040002  # weights: the first octet of a word counts eight times
ODD: Final = 0x0007000500030001  # weights: the last octet of a word counts once


def total(data: bytes) -> i64:
    """The sum of these bytes."""
    if len(data) >= SHORT:
        return crc32(data)
    if COMPILED:
        return short_total(data)
    return adler32(data)


def short_total(data: bytes) -> i64:
    """Adler-32: the octets added up from 1 on, and all of these sums added up. Meant for less than ``SHORT``."""
    size: i64 = len(data)
    low: i64 = 1
    high: i64 = 0
    at: i64 = 0
    while size - at >= BLOCK:
        first = read_i64_le(data, at)
        second = read_i64_le(data, at + 8)
        third = read_i64_le(data, at + 16)
        fourth = read_i64_le(data, at + 24)
        even = first & OCTETS
        odd = first >> 8 & OCTETS
        before = even + odd  # counted again with each word that follows
        even += second & OCTETS
        odd += second >> 8 & OCTETS
        before += even + odd
        even += third & OCTETS
        odd += third >> 8 & OCTETS
        before += even + odd
        even += fourth & OCTETS
        odd += fourth >> 8 & OCTETS
        high += low * BLOCK + (before * ADDED >> 48 & 0xFFFF) * 8 + (even * EVEN + odd * ODD >> 48 & 0xFFFF)
        low += (even + odd) * ADDED >> 48 & 0xFFFF
        at += BLOCK
    while at < size:
        low += i64(data[at])
        high += low
        at += 1
    return (high % MODULUS) << 16 | low % MODULUS


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
        if route is not self.route:
            if route != self.route:
                self.route_sum = total(route)
            self.route = route
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
