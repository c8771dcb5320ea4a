"""Time spans and sizes as people write them on the command line."""

from __future__ import annotations

TIMES = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
SIZES = {"b": 1, "k": 1 << 10, "kib": 1 << 10, "m": 1 << 20, "mib": 1 << 20, "g": 1 << 30, "gib": 1 << 30}


def milliseconds(text: str) -> int:
    """``90``, ``90ms``, ``5m``, ``2h``; ValueError says what would be right."""
    found = _counted(text, TIMES, "ms")
    if found is None:
        raise ValueError(f"'{text}' is no time span: milliseconds, or a number with {', '.join(TIMES)}")
    return found


def octets(text: str) -> int:
    """``512``, ``10k``, ``4MiB``; ValueError says what would be right."""
    found = _counted(text.lower(), SIZES, "b")
    if found is None:
        raise ValueError(f"'{text}' is no size: octets, or a number with {', '.join(SIZES)}")
    return found


def in_words(milliseconds: int) -> str:
    """The two largest units of a time span: ``2h05m``."""
    seconds = milliseconds // 1000
    if seconds < 1:
        return f"{milliseconds}ms"
    for name, size, smaller, part in (("d", 86_400, "h", 3600), ("h", 3600, "m", 60), ("m", 60, "s", 1)):
        if seconds >= size:
            return f"{seconds // size}{name}{seconds % size // part:02d}{smaller}"
    return f"{seconds}s"


def _counted(text: str, units: dict[str, int], plain: str) -> int | None:
    number = text.rstrip("abcdefghijklmnopqrstuvwxyz")
    unit = text[len(number) :] or plain
    if not number.isascii() or not number.isdigit() or unit not in units or len(number) > 15:
        return None
    return int(number) * units[unit]
