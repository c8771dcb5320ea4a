"""Charts as SVG, drawn here: a page that needs nothing else has no library to draw with.

Duty: series, bands and sums as shapes with titles that a browser shows under the pointer. Colours are classes: the
page's style says what they look like, in the light and in the dark. Not here: what is drawn (``page``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from html import escape
from itertools import pairwise

LEFT, RIGHT, TOP, BOTTOM = 56, 12, 12, 26
GRID = 4  # lines
BAR = 860  # the width of a bar


@dataclass(frozen=True)
class Frame:
    """The room of a chart: where a value and a moment are in it."""

    width: int
    height: int

    @property
    def floor(self) -> float:
        return self.height - BOTTOM

    def y(self, value: float, most: float) -> float:
        return self.floor - (value / most if most else 0) * (self.floor - TOP)

    def xs(self, moments: Sequence[datetime]) -> list[float]:
        """Where each is between the first and the last of them."""
        if len(moments) == 1:
            return [(LEFT + self.width - RIGHT) / 2]
        scale = (self.width - LEFT - RIGHT) / (moments[-1] - moments[0]).total_seconds()
        return [LEFT + (one - moments[0]).total_seconds() * scale for one in moments]

    def hover(self, x: float, xs: Sequence[float], said: str) -> str:
        """An invisible column whose title the browser shows."""
        width = min((right - left for left, right in pairwise(xs)), default=40.0)
        at = f'x="{x - width / 2:.1f}" y="{TOP}" width="{width:.1f}" height="{self.floor - TOP}"'
        return f'<rect class="hover" {at}><title>{escape(said)}</title></rect>'

    def grid(self, first: datetime, last: datetime, most: float, shown: Callable[[float], str]) -> str:
        drawn = []
        end = self.width - RIGHT
        for n in range(GRID + 1):
            y = self.y(n, GRID)
            drawn.append(f'<line class="grid" x1="{LEFT}" x2="{end}" y1="{y:.1f}" y2="{y:.1f}"/>')
            label = escape(shown(most * n / GRID))
            drawn.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{label}</text>')
        day = "%H:%M:%S" if first.date() == last.date() else "%m-%d %H:%M"
        drawn.append(f'<text x="{LEFT}" y="{self.height - 6}">{first:{day}}</text>')
        if last != first:
            drawn.append(f'<text x="{end}" y="{self.height - 6}" text-anchor="end">{last:{day}}</text>')
        return "".join(drawn)

    def svg(self, drawn: Sequence[str]) -> str:
        return f'<svg viewBox="0 0 {self.width} {self.height}" role="img">{"".join(drawn)}</svg>'


WIDE, NARROW = Frame(860, 220), Frame(430, 180)


def series(points: Sequence[tuple[datetime, Mapping[str, int]]], names: Sequence[str]) -> str:
    """One line a name over time, the area under the first filled."""
    most = max((counts.get(name, 0) for _, counts in points for name in names), default=0)
    drawn = [WIDE.grid(points[0][0], points[-1][0], most, number)]
    xs = WIDE.xs([at for at, _ in points])
    for place, name in enumerate(names):
        line = [(x, WIDE.y(counts.get(name, 0), most)) for x, (_, counts) in zip(xs, points, strict=True)]
        if place == 0:
            drawn.append(f'<path class="area c0" d="{_path([(xs[0], WIDE.floor), *line, (xs[-1], WIDE.floor)])}Z"/>')
        drawn.append(f'<path class="line c{place}" d="{_path(line)}"/>')
    for x, (moment, counts) in zip(xs, points, strict=True):
        said = "\n".join(f"{name} {counts.get(name, 0):,}" for name in names)
        drawn.append(WIDE.hover(x, xs, f"{moment:%Y-%m-%d %H:%M:%S}\n{said}"))
    return WIDE.svg(drawn)


def bands(points: Sequence[tuple[datetime, float, float, float]], every: float) -> str:
    """p50 as a line, up to p90 and up to p99 as bands behind it; nothing where for more than ``every`` seconds nothing
    was."""
    most = max((p99 for *_, p99 in points), default=0.0)
    xs = NARROW.xs([at for at, *_ in points])
    drawn = [NARROW.grid(points[0][0], points[-1][0], most, seconds)]
    for run in runs([at for at, *_ in points], every):
        some = [(xs[n], *points[n][1:]) for n in run]
        if len(some) == 1:
            x, *marks = some[0]
            some = [(x + side, marks[0], marks[1], marks[2]) for side in (-1, 1)]
        lines = [[(one[0], NARROW.y(one[mark], most)) for one in some] for mark in (1, 2, 3)]
        floor = [(some[-1][0], NARROW.floor), (some[0][0], NARROW.floor)]
        drawn.append(f'<path class="band far" d="{_path([*lines[2], *floor])}Z"/>')
        drawn.append(f'<path class="band near" d="{_path([*lines[1], *floor])}Z"/>')
        drawn.append(f'<path class="line c0" d="{_path(lines[0])}"/>')
    for x, (moment, p50, p90, p99) in zip(xs, points, strict=True):
        said = f"p50 {seconds(p50)}\np90 {seconds(p90)}\np99 {seconds(p99)}"
        drawn.append(NARROW.hover(x, xs, f"{moment:%Y-%m-%d %H:%M:%S}\n{said}"))
    return NARROW.svg(drawn)


def runs(moments: Sequence[datetime], every: float) -> list[list[int]]:
    """Which of them follow one another without a hole."""
    found: list[list[int]] = []
    for number, moment in enumerate(moments):
        if not number or (moment - moments[number - 1]).total_seconds() > 1.5 * every:
            found.append([])
        found[-1].append(number)
    return found


def bar(parts: Sequence[tuple[str, int, str]]) -> str:
    """A sum as one bar: name, how many, class. What is there at all can be seen."""
    total = sum(count for _, count, _ in parts) or 1
    least = 0.004
    shares = [max(count / total, least) for _, count, _ in parts]
    scale = BAR / (sum(shares) or 1)
    drawn, at = [], 0.0
    for (name, count, kind), share in zip(parts, shares, strict=True):
        width = share * scale
        said = escape(f"{name} {count:,} ({count / total:.1%})")
        rectangle = f'<rect class="{kind}" x="{at:.1f}" y="0" width="{max(width - 1, 1):.1f}" height="28" rx="2">'
        drawn.append(f"{rectangle}<title>{said}</title></rect>")
        at += width
    return f'<svg viewBox="0 0 {BAR} 28" role="img" class="bar" preserveAspectRatio="none">{"".join(drawn)}</svg>'


def seconds(value: float) -> str:
    """A duration as people say it."""
    if value >= 86400:
        return f"{value / 86400:.1f} d"
    if value >= 3600:
        return f"{value / 3600:.1f} h"
    if value >= 120:
        return f"{value / 60:.0f} min"
    if value >= 1:
        return f"{value:.3g} s"
    return f"{value * 1000:.3g} ms" if value >= 0.001 or value == 0 else f"{value * 1e6:.3g} µs"


def number(value: float) -> str:
    """A count, short."""
    for size, unit in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if value >= size:
            return f"{value / size:.3g}{unit}"
    return f"{value:.3g}"


def _path(points: Sequence[tuple[float, float]]) -> str:
    if len(points) == 1:  # a single window is a short line
        (x, y) = points[0]
        points = [(x - 20, y), (x + 20, y)]
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
