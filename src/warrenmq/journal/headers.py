"""Headers of messages as text, by name: for the index and for whoever looks for one.

Duty: one answer to what a header's value is as text: texts as they are, numbers and booleans in digits and words, and
nothing for all else. Not here: hashing (``hashes``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from warrenmq.client.columns import PropertyColumns

_NOT_A_TEXT = re.compile(rb"[-+0-9.e]*|true|false|nan|-?inf")  # perhaps: then it does not stand there in these octets


def _nothing(_value: bytes) -> bytes | None:
    return None


def named_headers(
    payloads: Sequence[bytes | None], names: Sequence[bytes], wanted: bytes = b""
) -> Iterator[tuple[int, bytes, bytes]]:
    """Row, name and value of each header with one of these names; a content header that cannot be read has none.
    ``wanted``: only those with this value are, where that saves taking others apart."""
    literal = b"" if _NOT_A_TEXT.fullmatch(wanted) else wanted
    for row, payload in enumerate(payloads):
        if payload is None or literal not in payload or not any(name in payload for name in names):
            continue  # most have none of them: they are not taken apart
        columns = PropertyColumns(["headers"], _nothing)
        if not columns.add([payload]):
            continue
        columns.end()
        found = columns.headers
        keys, values = _texts(found.names), _texts(found.values)
        for key, value in zip(keys, values, strict=True):
            if key in names and value is not None:
                yield row, key or b"", value


def _texts(column: object) -> list[bytes | None]:
    ends, data, there = (getattr(column, name).getvalue() for name in ("ends", "data", "there"))
    bounds = [int.from_bytes(ends[at : at + 4], "little") for at in range(0, len(ends), 4)]
    return [data[bounds[row] : bounds[row + 1]] if there[row] else None for row in range(len(there))]
