"""Rates of counters, made from samples taken when somebody asks: no cost for a broker nobody looks at.

The rate of a counter is its growth between the last two samples at least ``INTERVAL`` apart; 0 when it is asked for
the first time.

Things come and go, so samples must be forgotten, but never those of things that are still looked at, however many
they are. So there are two generations: a sample that is asked for moves to the present one. When that is both large
and old it becomes the past one, and what was in the past one, asked for by nobody since, is dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

from warrenmq.http.models import Object, Rate

INTERVAL = 5.0
GENERATION = 200_000  # samples, at least
GENERATION_SECONDS = 60.0  # at least, so that even a very long listing finds all the samples of the one before


class Rates:
    """The last samples of counters, each forgotten when nobody has asked for long."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._samples: dict[Hashable, tuple[float, int, float]] = {}  # when, value, rate
        self._past: dict[Hashable, tuple[float, int, float]] = {}
        self._began = now()

    def __len__(self) -> int:
        """Samples remembered, some of them perhaps twice."""
        return len(self._samples) + len(self._past)

    def rate(self, key: Hashable, value: int) -> float:
        now = self._now()
        if len(self._samples) >= GENERATION and now - self._began >= GENERATION_SECONDS:
            self._past, self._samples, self._began = self._samples, {}, now
        sample = self._samples.get(key)
        if sample is None:
            sample = self._samples[key] = self._past.get(key) or (now, value, 0.0)
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
