"""Where reading of streams begins and ends: the same for all, or each at its own place.

Duty: the values of ``startingOffsets``, ``endingOffsets``, ``startingTimestamp`` and ``endingTimestamp``. A number in
the first two is an offset and nothing else, in the last two it is milliseconds since 1970 and nothing else. Not here:
which offset a time is (``looking.py``).

    earliest | latest | 100 | 2026-01-31T12:00Z
    {"orders": 100, "shop.*": "earliest", "*": "2026-01-31T12:00Z"}     names before patterns, patterns in order
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from warrenmq.spark.names import Name, OptionError, name_of

Place = str | int | datetime  # "earliest" or "latest", an offset, a time

# The first milliseconds that are taken for milliseconds (in 1973): fewer are seconds, and no stream has more offsets.
MILLISECONDS = 100_000_000_000


@dataclass(frozen=True)
class Positions:
    """Positions to begin or end at. ``option`` is the one that said so, for errors."""

    option: str
    places: tuple[tuple[Name, Place], ...]

    def of(self, stream: str) -> Place:
        for exact in (True, False):
            for name, place in self.places:
                if (name.pattern is None) == exact and name.matches(stream):
                    return place
        others = '{"*": …} is for all others'
        raise OptionError(f"option '{self.option}' says nothing about stream '{stream}'; {others}")

    def check(self, streams: Iterable[str]) -> None:
        """A name that is not among those read is a mistake; a pattern may match nothing."""
        there = set(streams)
        for name, _ in self.places:
            if name.pattern is None and name.text not in there:
                raise OptionError(f"option '{self.option}' names '{name.text}', which is none of the streams read")


def everywhere(option: str, place: Place) -> Positions:
    return Positions(option, ((name_of("*"), place),))


def offsets(option: str, text: str) -> Positions:
    """Of startingOffsets and endingOffsets."""
    return _positions(option, text, _offset)


def times(option: str, text: str) -> Positions:
    """Of startingTimestamp and endingTimestamp."""
    return _positions(option, text, _time)


def beyond(positions: Positions, stream: str, offset: int, end: int) -> str:
    """Says that an offset is not there yet. One that can only be a time is a mistake in the option."""
    text = f"option '{positions.option}' is {offset}, but stream '{stream}' ends with {end - 1}"
    if offset >= MILLISECONDS:
        other = positions.option.replace("Offsets", "Timestamp")
        raise OptionError(f"{text}; a number is an offset there, for milliseconds since 1970 use option '{other}'")
    return text


def _positions(option: str, text: str, place: Callable[[str, object], Place]) -> Positions:
    text = text.strip()
    if not text.startswith("{"):
        return everywhere(option, place(option, text))
    try:
        pairs = json.loads(text, object_pairs_hook=list)
    except ValueError as error:
        raise OptionError(f"option '{option}' begins with {{ and is no JSON object: {error}") from None
    if not pairs:
        raise OptionError(f"option '{option}' names no stream")
    if len({name for name, _ in pairs}) < len(pairs):
        raise OptionError(f"option '{option}' names a stream twice: {text}")
    return Positions(option, tuple((name_of(name), place(f"{option}' of '{name}", value)) for name, value in pairs))


def _offset(option: str, value: object) -> Place:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    if isinstance(value, str):
        text = value.strip()
        if text.lower() in ("earliest", "latest"):
            return text.lower()
        if text.isdecimal():
            return int(text)
        moment = _moment(text)
        if moment is not None:
            return moment
    expected = "earliest, latest, a number or a time such as 2026-01-31T12:00Z"
    raise OptionError(f"option '{option}' is '{_said(value)}'; expected {expected}")


def _time(option: str, value: object) -> Place:
    number = int(value) if isinstance(value, str) and value.strip().isdecimal() else value
    if isinstance(number, int) and not isinstance(number, bool):
        if 0 <= number < MILLISECONDS:
            meant = f"; seconds would be {number}000" if number else ""
            raise OptionError(f"option '{option}' is {number}, too few for milliseconds since 1970{meant}")
        try:
            return datetime.fromtimestamp(number / 1000, UTC)
        except (ValueError, OverflowError, OSError):
            pass
    moment = _moment(value) if isinstance(value, str) else None
    if moment is None:
        expected = "milliseconds since 1970 or a time such as 2026-01-31T12:00Z"
        raise OptionError(f"option '{option}' is '{_said(value)}'; expected {expected}")
    return moment


def _moment(text: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _said(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)
