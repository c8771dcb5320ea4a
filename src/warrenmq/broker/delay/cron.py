"""Cron expressions: five fields and a time zone, and when they match next.

Fields: minute, hour, day of month, month, day of week (0 and 7 are Sunday), each ``*``, a number, a range ``1-5``, a
step ``*/15``, or a list of these; months and weekdays also by their English three-letter names. As in the original
cron, a day matches when either day field does, if both are restricted. Across a change to summer time a time that does
not exist is moved behind the gap, and a fixed time that exists twice counts once; an expression for every hour matches
in both.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Final, final
from zoneinfo import ZoneInfo

from mypy_extensions import i64

MONTHS: Final = "jan feb mar apr may jun jul aug sep oct nov dec".split()
WEEKDAYS: Final = "sun mon tue wed thu fri sat".split()
DAYS_AHEAD: Final = 366 * 8 + 2  # from one 29th of February to the next, over a century without one


class CronError(ValueError):
    """The text is no cron expression; says which part and why."""


@final
class Cron:
    """A cron expression in its time zone; ``next_after`` is all there is to ask."""

    def __init__(self, text: str, zone: str) -> None:
        fields = text.split()
        if len(fields) != 5:
            raise CronError(f"expected 5 fields, not {len(fields)}")
        self.text: Final = text
        self.zone: Final = _zone(zone)
        self._minutes: Final = _numbers(fields[0], 0, 59, [])
        self._hours: Final = _numbers(fields[1], 0, 23, [])
        self._days: Final = _numbers(fields[2], 1, 31, [])
        self._months: Final = _numbers(fields[3], 1, 12, MONTHS)
        self._weekdays: Final = sorted({day % 7 for day in _numbers(fields[4], 0, 7, WEEKDAYS)})
        self._any_day: Final = fields[2].startswith("*")
        self._any_weekday: Final = fields[4].startswith("*")
        if self.next_after(0) < 0:
            raise CronError("it never matches")

    def next_after(self, now_ms: i64) -> i64:
        """The first match after this time, in milliseconds since 1970; -1 when there is none."""
        now = datetime.fromtimestamp(now_ms / 1000, UTC)
        if len(self._hours) == 24:
            found = self._within_the_hour(now)
            if found is not None:
                return _milliseconds(found)
        local = now.astimezone(self.zone).replace(tzinfo=None)
        day = local.date()
        for _ in range(DAYS_AHEAD):
            if self._matches_day(day):
                moment = self._on(day, now)
                if moment is not None:
                    return _milliseconds(moment)
            day += timedelta(days=1)
        return -1

    def _within_the_hour(self, now: datetime) -> datetime | None:
        """An expression for every hour: try the next sixty minutes as they really come."""
        moment = now.replace(second=0, microsecond=0)
        for _ in range(60):
            moment += timedelta(minutes=1)
            local = moment.astimezone(self.zone)
            if local.minute in self._minutes and self._matches_day(local.date()):
                return moment
        return None

    def _on(self, day: date, now: datetime) -> datetime | None:
        """The first match of this day that is after ``now``."""
        for hour in self._hours:
            for minute in self._minutes:
                local = datetime(day.year, day.month, day.day, hour, minute, tzinfo=self.zone)
                moment = local.astimezone(UTC)
                if moment > now:
                    return moment
        return None

    def _matches_day(self, day: date) -> bool:
        if day.month not in self._months:
            return False
        by_day = day.day in self._days
        by_weekday = day.isoweekday() % 7 in self._weekdays
        if self._any_day or self._any_weekday:
            return by_day and by_weekday
        return by_day or by_weekday


def _milliseconds(moment: datetime) -> i64:
    return int(moment.timestamp()) * 1000


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise CronError(f"there is no time zone '{name}'") from None


def _numbers(text: str, low: int, high: int, names: list[str]) -> list[int]:
    """The numbers a field stands for, in order."""
    found: set[int] = set()
    for part in text.split(","):
        span, slash, step_text = part.partition("/")
        step = 1
        if slash:
            if not step_text.isascii() or not step_text.isdigit() or int(step_text[:9]) == 0:
                raise CronError(f"'{part}': the step is no positive number")
            step = int(step_text[:9])
        if span == "*":
            first, last = low, high
        else:
            begin, dash, end = span.partition("-")
            first = _number(begin, part, low, high, names)
            last = _number(end, part, low, high, names) if dash else (high if slash else first)
        if first > last:
            raise CronError(f"'{part}': the range runs backwards")
        found.update(range(first, last + 1, step))
    return sorted(found)


def _number(text: str, part: str, low: int, high: int, names: list[str]) -> int:
    if text.lower() in names:
        return names.index(text.lower()) + (1 if names is MONTHS else 0)
    if not text.isascii() or not text.isdigit() or not low <= int(text[:9]) <= high:
        raise CronError(f"'{part}': expected a number from {low} to {high}")
    return int(text[:9])
