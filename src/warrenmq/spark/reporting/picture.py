"""What a page shows first, as one PNG: for a chat, a ticket or a slide.

Duty: the verdict, throughput, latencies and the ledger, drawn by matplotlib. Names were chosen by clients: they are
text, never a formula. Not here: the values (``facts``), the page itself (``page``).
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from warrenmq.spark.reporting.drawing import number, runs, seconds
from warrenmq.spark.reporting.facts import Facts
from warrenmq.spark.reporting.page import kind, series_of, span, verdict
from warrenmq.spark.requirements import RequirementMissing

MOST_BANDS = 4
COLOURS = {"k-good": "#2f9e6e", "k-open": "#3b82c4", "k-on": "#c9912b", "k-bad": "#d1495b"}
LINES = ("#3b82c4", "#8a63c9", "#2f9e6e", "#d1495b", "#c9912b", "#5f6b7a", "#a23e8c", "#7a5230")


def write_picture(facts: Facts, path: str, title: str = "Warren") -> None:
    try:
        import matplotlib
    except ImportError:
        raise RequirementMissing("a picture needs matplotlib, which is missing: pip install matplotlib") from None
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    drawn = [band for band in facts.bands if band.points][:MOST_BANDS]
    rows = 2 + -(-len(drawn) // 2)
    with matplotlib.rc_context({"text.parse_math": False, "font.size": 9}):
        figure = Figure(figsize=(11, 2.6 * rows + 0.8), layout="constrained")
        FigureCanvasAgg(figure)
        grid = figure.add_gridspec(rows, 2)
        figure.suptitle(f"{title}: {verdict(facts)}\n{span(facts)}", color="#2f9e6e" if facts.complete else "#d1495b")
        _throughput(figure.add_subplot(grid[0, :]), facts)
        for place, band in enumerate(drawn):
            axes = figure.add_subplot(grid[1 + place // 2, place % 2])
            axes.set_title(f"{band.title} ({band.messages:,})", loc="left")
            _band(axes, band.points, facts.every)
        _ledger(figure.add_subplot(grid[rows - 1, :]), facts)
        figure.savefig(path, dpi=120, format="png")


def _throughput(axes: Any, facts: Facts) -> None:
    axes.set_title(f"Throughput: messages every {seconds(facts.every)}", loc="left")
    moments = [at for at, _ in facts.rates]
    for colour, name in zip(LINES, series_of(facts), strict=False):
        axes.plot(moments, [counts.get(name, 0) for _, counts in facts.rates], color=colour, label=name, lw=1.5)
    axes.yaxis.set_major_formatter(lambda value, _: number(value))
    axes.set_ylim(bottom=0)
    axes.spines[["top", "right"]].set_visible(False)
    if facts.rates:
        axes.legend(frameon=False, ncols=4)


def _band(axes: Any, points: list[tuple[datetime, float, float, float]], every: float) -> None:
    for run in runs([at for at, *_ in points], every):
        some = [points[n] for n in run]
        if len(some) == 1:  # as long as it is
            at, p50, p90, p99 = some[0]
            some = [(at, p50, p90, p99), (at + timedelta(seconds=every), p50, p90, p99)]
        moments = [at for at, *_ in some]
        for mark, shade in ((3, 0.16), (2, 0.28)):
            axes.fill_between(moments, [one[mark] for one in some], color=LINES[0], alpha=shade, lw=0)
        axes.plot(moments, [one[1] for one in some], color=LINES[0], lw=1.5)
    axes.yaxis.set_major_formatter(lambda value, _: seconds(value))
    axes.set_ylim(bottom=0)
    axes.spines[["top", "right"]].set_visible(False)


def _ledger(axes: Any, facts: Facts) -> None:
    axes.set_title("The ledger", loc="left")
    for place, counts in enumerate((facts.outcomes, facts.publishes)):
        total, left = sum(counts.values()) or 1, 0.0
        for name, count in counts.items():
            axes.barh(place, count / total, left=left, color=COLOURS[kind(name)], edgecolor="white", height=0.5)
            if count / total > 0.06:
                said = f"{name.replace('_', ' ')}\n{number(count)}"
                axes.text(left + count / total / 2, place, said, ha="center", va="center", color="white", fontsize=7)
            left += count / total
    sums = [
        f"{said}\n{sum(counts.values()):,}"
        for said, counts in (("in queues", facts.outcomes), ("publishes", facts.publishes))
    ]
    axes.set_yticks([0, 1], sums)
    axes.set_xticks([])
    axes.set_xlim(0, 1)
    axes.spines[["top", "right", "bottom", "left"]].set_visible(False)
