"""Sizes in bytes as people write them: the one table of units, for the settings, the HTTP API and ``warren ctl``.

    size   = number [unit]                  spaces around both do not count
    number = digits [ "." digits ]
    unit   = a row of UNITS, in upper or lower case

RabbitMQ's units mean what they mean there; bytes, tera, fractions and spaces are ours. Where RabbitMQ takes nothing but
a number of bytes (``max-length-bytes`` in an argument or a policy) nobody asks this module.
"""

from __future__ import annotations

import re
from typing import Final

KIB: Final = 1 << 10
MIB: Final = 1 << 20
GIB: Final = 1 << 30
TIB: Final = 1 << 40

UNITS: Final = {
    "": 1,
    "b": 1,
    "k": KIB,
    "kib": KIB,
    "kb": 1000,
    "m": MIB,
    "mib": MIB,
    "mb": 1000**2,
    "g": GIB,
    "gib": GIB,
    "gb": 1000**3,
    "t": TIB,
    "tib": TIB,
    "tb": 1000**4,
}
EXAMPLES: Final = "500000, 64KiB or 128MB"

_SIZE: Final = re.compile(r"\s*(\d+)(\.\d+)?\s*([a-z]*)\s*", re.IGNORECASE | re.ASCII)
_MOST: Final = 1 << 60  # more than any disk has


def parse_size(text: str) -> int:
    """The bytes; ValueError says what is wrong and what would be right."""
    found = _SIZE.fullmatch(text)
    if found is None or len(found[1]) > len(str(_MOST)):  # digits without end are not worked out
        raise ValueError(f"{text!r} is not a size such as {EXAMPLES}")
    whole, fraction, name = found.groups()
    unit = UNITS.get(name.lower())
    if unit is None:
        raise ValueError(f"unknown unit in {text!r}: use B, KB, KiB, MB, MiB, GB, GiB, TB or TiB")
    size = int(whole) * unit + int(float(fraction or 0) * unit)
    if size > _MOST:
        raise ValueError(f"{text!r} is not a size: more than {_MOST} bytes")
    return size
