"""The broker's time: milliseconds and microseconds since 1970 that never step back while the broker is up.

It is the wall clock read once at the start plus monotonic time since, so a step of the system's clock
neither expires nor delays anything; across a restart the wall clock counts again.
"""

from __future__ import annotations

import time
from typing import final

from mypy_extensions import i64


class Clock:
    """A clock as the broker asks it; the two below answer."""

    def now_us(self) -> i64:
        raise NotImplementedError

    def now_ms(self) -> i64:
        return self.now_us() // 1000


@final
class SystemClock(Clock):
    """The machine's time of day at the start, advanced by its monotonic clock."""

    def __init__(self) -> None:
        self._wall: i64 = int(time.time() * 1000) * 1000
        self._start: i64 = time.monotonic_ns()

    def now_us(self) -> i64:
        now: i64 = time.monotonic_ns()
        return self._wall + (now - self._start) // 1000


@final
class VirtualClock(Clock):
    """Time that moves only when told to."""

    def __init__(self, start_ms: i64 = 1_700_000_000_000) -> None:
        self._now: i64 = start_ms

    def now_us(self) -> i64:
        return self._now * 1000

    def set_ms(self, now: i64) -> None:
        self._now = now
