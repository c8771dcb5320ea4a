"""Columns as content headers: many messages whose properties stand in lists, one list a property.

Duty: the encoded properties of each row, one behind the other in wire order, behind the flags that say which are there.
Values come encoded; rows that cannot be said are the caller's (``spark/encode.py``). Not here: frames and publishing.
"""

from __future__ import annotations

from typing import Final, final

from librt.strings import BytesWriter, write_i32_be, write_i64_be
from mypy_extensions import i64

from warrenmq.wire.constants import CLASS_BASIC


@final
class Property:
    """The values of one property, encoded: one for all rows, or one a row, empty where a row has none."""

    def __init__(self, flag: int, values: list[bytes] | None, constant: bytes = b"") -> None:
        self.flag: Final[i64] = flag
        self.values: Final = values
        self.constant: Final = constant


def content_headers(bodies: list[bytes], properties: list[Property]) -> list[bytes]:
    """The content header payload of every body; ``properties`` in wire order."""
    found: list[bytes] = []
    out = BytesWriter()
    values = BytesWriter()
    row: i64 = 0
    while row < len(bodies):
        flags: i64 = 0
        values.truncate(0)
        for each in properties:
            column = each.values
            value = each.constant if column is None else column[row]
            if len(value) > 0:
                flags |= each.flag
                values.write(value)
        out.truncate(0)
        write_i32_be(out, CLASS_BASIC << 16)  # class and weight
        write_i64_be(out, len(bodies[row]))
        out.append(int(flags >> 8))
        out.append(int(flags & 0xFF))
        out.write(values.getvalue())
        found.append(out.getvalue())
        row += 1
    return found


def shortstrs(values: list[str | None], too_long: list[int]) -> list[bytes]:
    """Each text as a short string, empty for None. Rows whose text has over 255 octets are named in ``too_long``."""
    found: list[bytes] = []
    out = BytesWriter()
    row: i64 = 0
    while row < len(values):
        value = values[row]
        if value is None:
            found.append(b"")
        else:
            octets = value.encode("utf-8")
            size: i64 = len(octets)
            if size > 255:
                too_long.append(int(row))
                found.append(b"\0")
            else:
                out.truncate(0)
                out.append(int(size))
                out.write(octets)
                found.append(out.getvalue())
        row += 1
    return found


def numbered(prefix: str, first: int, count: int) -> list[str]:
    """The ids of rows that have none of their own."""
    return [prefix + str(number) for number in range(first, first + count)]
