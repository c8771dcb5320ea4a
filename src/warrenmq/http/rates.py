"""Rates of counters, made from samples taken when somebody asks: no cost for a broker nobody looks at.

The rate of a counter is its growth between the last two samples at least ``INTERVAL`` apart.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

from warrenmq.http.models import Object, Rate

INTERVAL = 5.0
REMEMBERED = 200_000


class Rates:
    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._samples: dict[Hashable, tuple[float, int, float]] = {}  # when, value, rate

    def rate(self, key: Hashable, value: int) -> float:
        now = self._now()
        sample = self._samples.get(key)
        if sample is None:
            if len(self._samples) >= REMEMBERED:
                self._samples.clear()
            self._samples[key] = (now, value, 0.0)
            return 0.0
        when, old, rate = sample
        if now - when < INTERVAL:
            return rate
        rate = round((value - old) / (now - when), 1)
        self._samples[key] = (now, value, rate)
        return rate

    def details(self, key: Hashable, value: int) -> Rate:
        return Rate(self.rate(key, value))

    def stats(self, key: Hashable, counters: dict[str, int]) -> Object:
        """RabbitMQ's ``message_stats``: every counter with its ``_details``."""
        stats: Object = {}
        for name, value in counters.items():
            stats[name] = value
            stats[name + "_details"] = Rate(self.rate((key, name), value))
        return stats
