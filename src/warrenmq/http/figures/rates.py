"""Rates of counters and what they were, from the samples that are taken all the time (``history.py``).

The rate of a counter is its growth a second between the last two samples. Who asks for a range of time
(``lengths_age`` and ``lengths_incr``, and the same with ``msg_rates_``, ``data_rates_`` and ``node_stats_``) is told
what it was at every so many seconds, as by RabbitMQ: the last first, 0 before there was anything to count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from warrenmq.http.errors import bad_request
from warrenmq.http.figures.history import COLUMNS, TICK, History, Track, levels_of
from warrenmq.http.models import Object, Rate, Sample

MOST_SAMPLES = 500  # RabbitMQ's own limit


@dataclass(frozen=True, slots=True)
class Range:
    """A span of time: so many seconds back, in steps of so many."""

    age: int
    step: int


@dataclass(frozen=True, slots=True)
class Ranges:
    """The spans of the past that a request asks for; None: the rate alone."""

    lengths: Range | None = None
    msg_rates: Range | None = None
    data_rates: Range | None = None
    node_stats: Range | None = None


NOW = Ranges()


def ranges(query: Mapping[str, str]) -> Ranges:
    return Ranges(*(_range(query, name) for name in ("lengths", "msg_rates", "data_rates", "node_stats")))


def _range(query: Mapping[str, str], name: str) -> Range | None:
    """None where one of the two is not there or no number, as in RabbitMQ."""
    try:
        age, step = int(query[f"{name}_age"]), int(query[f"{name}_incr"])
    except (KeyError, ValueError):
        return None
    if age <= 0 or step <= 0 or age // step > MOST_SAMPLES:
        raise bad_request(f"Invalid range parameters: age {age}, incr {step}")
    return Range(age, step)


class Rates:
    """The samples of one object, or of several together."""

    def __init__(self, history: History, kind: str, tracks: Iterable[Track | None]) -> None:
        self._history = history
        self._kind = kind
        self._tracks = [track for track in tracks if track is not None]

    def details(self, name: str, wanted: Range | None = None) -> Rate:
        column = COLUMNS[self._kind][name]
        history = self._history
        if wanted is None:
            if not self._tracks or not history.before:
                return Rate()
            now, then = self._sums(0, column, [history.tick, history.before])
            return Rate((now - then) / ((history.tick - history.before) * TICK))
        number = self._level(wanted.age)
        step = levels_of(self._kind)[number][0]
        last = history.tick * TICK // wanted.step * wanted.step
        times = range(last, last - wanted.age - 1, -wanted.step)
        values = self._sums(number, column, [time // step for time in times])
        return Rate(
            rate=(values[0] - values[1]) / wanted.step if len(values) > 1 else 0.0,
            samples=[Sample(value, time * 1000) for value, time in zip(values, times, strict=True)],
            avg_rate=(values[0] - values[-1]) / ((len(values) - 1) * wanted.step) if len(values) > 1 else 0.0,
            avg=sum(values) / len(values),
        )

    def stats(self, counters: Mapping[str, int], wanted: Range | None = None) -> Object:
        """RabbitMQ's ``message_stats``: every counter with its ``_details``."""
        stats: Object = {}
        for name, value in counters.items():
            stats[name] = value
            stats[name + "_details"] = self.details(name, wanted)
        return stats

    def _level(self, age: int) -> int:
        """The finest that reaches so far back, else the one that reaches furthest."""
        levels = levels_of(self._kind)
        return next((number for number, (_, keep) in enumerate(levels) if age <= keep), len(levels) - 1)

    def _sums(self, level: int, column: int, places: list[int]) -> list[int]:
        total = [0] * len(places)
        for track in self._tracks:
            for place, value in enumerate(track.levels[level].values(column, places)):
                total[place] += value
        return total


def rising(history: History, kind: str, counter: str) -> Callable[[str, str], float]:
    """The rate of one counter now, as ``Rates.details`` says it, of very many objects by vhost and name."""
    column, tick, before = COLUMNS[kind][counter], history.tick, history.before
    tracks = history.of_kind(kind)

    def rate(vhost: str, name: str) -> float:
        track = tracks.get(vhost, {}).get(name)
        if track is None or not before:
            return 0.0
        return track.levels[0].growth(column, tick, before) / ((tick - before) * TICK)

    return rate
