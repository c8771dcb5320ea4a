"""What a query's filters leave to read of streams.

Duty: from filters on ``offset``, ``queue`` and ``timestamp`` to the streams and offsets that can hold such rows. Spark
evaluates every filter again on what is read, so this may keep too much and must never keep too little: filters it does
not know are passed over. Not here: asking the broker for the offset of a time (``looking.py``).

``timestamp`` is whatever the publisher wrote, and nothing keeps it in the order of offsets. Only where option
``timestampTolerance`` says how far it may be from the time at which the broker got the message do filters on it bound
the offsets.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql.datasource import DataSourceReader

from warrenmq.spark.looking import Streams

# AMQP's times have whole seconds, and RabbitMQ dates chunks, which hold what came within a moment.
MARGIN = timedelta(seconds=2)


@dataclass
class Wanted:
    """The offsets and times that are wanted. Bounds that are None are none; ``end`` is the first offset that is not
    wanted."""

    streams: frozenset[str] | None = None
    start: int = 0
    end: int | None = None
    since: datetime | None = None
    until: datetime | None = None

    def add(self, filter: Any) -> None:
        """Narrow by one more filter; they all apply."""
        kind = type(filter).__name__  # Spark before 4.1 has none of these classes
        column, value = getattr(filter, "attribute", None), getattr(filter, "value", None)
        values = list(value or ()) if kind == "In" else [value]
        if column == ("queue",) and kind in ("EqualTo", "EqualNullSafe", "In"):
            named = frozenset(one for one in values if isinstance(one, str))
            self.streams = named if self.streams is None else self.streams & named
        elif column == ("offset",):
            numbers = [one for one in values if isinstance(one, int) and not isinstance(one, bool)]
            if len(numbers) == len(values) and numbers:
                self._offsets(kind, min(numbers), max(numbers))
        elif column == ("timestamp",):
            moments = [_aware(one) for one in values if isinstance(one, datetime)]
            if len(moments) == len(values) and moments:
                self._times(kind, min(moments), max(moments))

    def _offsets(self, kind: str, least: int, most: int) -> None:
        if kind in ("EqualTo", "EqualNullSafe", "In", "GreaterThanOrEqual", "GreaterThan"):
            self.start = max(self.start, least + (kind == "GreaterThan"))
        if kind in ("EqualTo", "EqualNullSafe", "In", "LessThanOrEqual", "LessThan"):
            end = most + (kind != "LessThan")
            self.end = end if self.end is None else min(self.end, end)

    def _times(self, kind: str, least: datetime, most: datetime) -> None:
        if kind in ("EqualTo", "EqualNullSafe", "In", "GreaterThanOrEqual", "GreaterThan"):
            self.since = least if self.since is None else max(self.since, least)
        if kind in ("EqualTo", "EqualNullSafe", "In", "LessThanOrEqual", "LessThan"):
            self.until = most if self.until is None else min(self.until, most)

    def names(self, streams: Iterable[str]) -> list[str]:
        return [name for name in streams if self.streams is None or name in self.streams]

    def narrow(self, streams: Streams, name: str, start: int, end: int) -> tuple[int, int]:
        """What is left of a stream's range."""
        start = max(start, self.start)
        end = end if self.end is None else min(end, self.end)
        seconds = streams.options.timestamp_tolerance
        if seconds is None or start >= end:
            return start, end
        tolerance = timedelta(seconds=seconds)
        since = None if self.since is None else _shifted(self.since, -tolerance)
        if since is not None:
            start = max(start, streams.at_time(name, since))
        until = None if self.until is None else _shifted(self.until, tolerance + MARGIN)
        if until is not None and until < datetime.now(UTC) and start < end:
            end = min(end, streams.at_time(name, until))
        return start, end


def _aware(moment: datetime) -> datetime:
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment


def _shifted(moment: datetime, by: timedelta) -> datetime | None:
    """None where that is no time AMQP can say."""
    try:
        shifted = moment + by
    except OverflowError:
        return None
    return shifted if shifted.timestamp() >= 0 else None


class PushFilters:
    """``pushFilters`` of a reader, as Spark calls it where spark.sql.python.filterPushdown.enabled is set.

    Where it is not, Spark refuses every reader that has a method of its own by that name, which it tells by
    ``__func__``: that must be the one every reader has. Such a session reads without push-down.
    """

    def __init__(self, wanted: Wanted) -> None:
        self.wanted = wanted
        self.__func__ = getattr(DataSourceReader, "pushFilters", None)

    def __call__(self, filters: list[Any]) -> list[Any]:
        for filter in filters:
            self.wanted.add(filter)
        return filters  # Spark evaluates all of them again
