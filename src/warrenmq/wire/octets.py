"""Bounds-checked reading and writing of AMQP's elementary types; what every other reader here stands on.

    octet = 1 octet unsigned     short = 2    long = 4    longlong = 8     (big-endian, unsigned)
    shortstr = octet-length *octet     longstr = long-length *octet

Duty: never read outside ``[offset, end)``. Reading past it raises ``Malformed``, which the caller that knows the
context (a method, a content header) turns into RabbitMQ's reply. librt's readers are signed and check only the end of
the bytes, hence this layer.
"""

from __future__ import annotations

from librt.strings import BytesWriter, read_i16_be, read_i32_be, read_i64_be, write_i16_be, write_i32_be, write_i64_be
from mypy_extensions import i16, i32, i64

from warrenmq.wire.replies import FRAME_ERROR, AmqpError


class Malformed(AmqpError):
    """The octets do not follow the grammar."""

    def __init__(self, explanation: str) -> None:
        super().__init__(FRAME_ERROR, explanation)


def need(offset: i64, count: i64, end: i64) -> None:
    """Refuse unless ``count`` octets lie between ``offset`` and ``end``."""
    if offset < 0 or count < 0 or count > end - offset:
        raise Malformed("unexpected end of data")


def read_octet(data: bytes, offset: i64, end: i64) -> i64:
    need(offset, 1, end)
    value: i64 = data[offset]
    return value


def read_short(data: bytes, offset: i64, end: i64) -> i64:
    need(offset, 2, end)
    return i64(read_i16_be(data, offset)) & 0xFFFF


def read_long(data: bytes, offset: i64, end: i64) -> i64:
    need(offset, 4, end)
    return i64(read_i32_be(data, offset)) & 0xFFFFFFFF


def read_longlong(data: bytes, offset: i64, end: i64) -> int:
    """Unsigned 64 bit, so a Python integer: i64 would wrap."""
    need(offset, 8, end)
    value = int(read_i64_be(data, offset))
    return value + 0x10000000000000000 if value < 0 else value


def shortstr_end(data: bytes, offset: i64, end: i64) -> i64:
    """The offset behind the shortstr that starts at ``offset``."""
    need(offset, 1, end)
    size: i64 = data[offset]
    if size > end - offset - 1:
        raise Malformed("unexpected end of data")
    return offset + 1 + size


def longstr_end(data: bytes, offset: i64, end: i64) -> i64:
    """The offset behind the longstr (or table, or array) that starts at ``offset``."""
    size = read_long(data, offset, end)
    if size > end - offset - 4:
        raise Malformed("unexpected end of data")
    return offset + 4 + size


def write_short(out: BytesWriter, value: int) -> None:
    if not 0 <= value <= 0xFFFF:
        raise ValueError(f"{value} does not fit into 16 bits unsigned")
    if value > 0x7FFF:
        value -= 0x10000
    write_i16_be(out, i16(value))


def write_long(out: BytesWriter, value: int) -> None:
    if not 0 <= value <= 0xFFFFFFFF:
        raise ValueError(f"{value} does not fit into 32 bits unsigned")
    if value > 0x7FFFFFFF:
        value -= 0x100000000
    write_i32_be(out, i32(value))


def write_longlong(out: BytesWriter, value: int) -> None:
    if not 0 <= value <= 0xFFFFFFFFFFFFFFFF:
        raise ValueError(f"{value} does not fit into 64 bits unsigned")
    if value > 0x7FFFFFFFFFFFFFFF:
        value -= 0x10000000000000000
    write_i64_be(out, i64(value))


def write_octet(out: BytesWriter, value: int) -> None:
    if not 0 <= value <= 0xFF:
        raise ValueError(f"{value} does not fit into 8 bits unsigned")
    out.append(value)


def write_shortstr(out: BytesWriter, value: str) -> None:
    """Surrogate escapes (octets that were no UTF-8 when they came) go out as they came."""
    encoded = value.encode("utf-8", "surrogateescape")
    if len(encoded) > 255:
        raise ValueError(f"a short string holds at most 255 octets, not {len(encoded)}")
    out.append(len(encoded))
    out.write(encoded)


def write_longstr(out: BytesWriter, value: bytes) -> None:
    write_long(out, len(value))
    out.write(value)
