"""docs/benchmarks.md and its plots, from the raw figures of a run."""

from __future__ import annotations

import datetime
import statistics
from pathlib import Path
from typing import Any

from bench.scenarios import Scenario

HEAD = """# Benchmarks

Measured by `make bench` on {date}: {cpu}, {cores} cores, {reps} runs of each, brokers in turn.
{versions}
One `fdatasync` of 1 KiB took {sync:.2f} ms (median) in the same run.

CPU seconds of the broker per million messages are the figure to trust: they move far less than messages a second when
something else runs on the machine. Each cell is min / **median** / max. Lower is better.
The load is made by `warren bench`, in Python on the same machine, so messages a second show what the load could make,
not what the broker could take.
"""


def spread(values: list[float], digits: int = 2) -> str:
    if not values:
        return "–"
    low, middle, high = min(values), statistics.median(values), max(values)
    return f"{low:.{digits}f} / **{middle:.{digits}f}** / {high:.{digits}f}"


def figure(record: dict[str, Any], path: str) -> float | None:
    value: Any = record
    for part in path.split("/"):
        value = value.get(part) if isinstance(value, dict) else None
    return float(value) if isinstance(value, (int, float)) else None


def column(records: list[dict[str, Any]], path: str) -> list[float]:
    return [value for record in records if (value := figure(record, path)) is not None]


def cpu_paths(scenario: Scenario) -> list[tuple[str, str]]:
    if scenario.workload.fill:
        return [("fill", "fill/cpu_s_per_million"), ("drain", "drain/cpu_s_per_million")]
    return [("", "cpu_s_per_million")]


def write(
    folder: Path,
    scenarios: list[Scenario],
    runs: dict[str, dict[str, list[dict[str, Any]]]],
    facts: dict[str, Any],
    extras: dict[str, dict[str, float]],
) -> None:
    brokers = list(facts["versions"])
    lines = [
        HEAD.format(
            date=datetime.date.today().isoformat(),
            cpu=facts["cpu"],
            cores=facts["cores"],
            reps=facts["reps"],
            versions="\n".join(f"- {name} {version}" for name, version in facts["versions"].items()),
            sync=facts["sync_ms"],
        ),
        "## CPU seconds per million messages\n",
        "| scenario | " + " | ".join(brokers) + " | ratio | goal |",
        "|---|" + "---|" * (len(brokers) + 2),
    ]
    for scenario in scenarios:
        for label, path in cpu_paths(scenario):
            cells = [column(runs[scenario.name].get(name, []), path) for name in brokers]
            ratio = "–"
            if len(cells) > 1 and cells[0] and cells[1] and statistics.median(cells[0]):
                ratio = f"{statistics.median(cells[1]) / statistics.median(cells[0]):.1f}×"
            title = f"`{scenario.name}` {scenario.what}" + (f" ({label})" if label else "")
            goal = "–" if scenario.goal is None else f"{scenario.goal:g}"
            lines.append(f"| {title} | " + " | ".join(spread(cell) for cell in cells) + f" | {ratio} | {goal} |")
    lines += ["", "## Latency, milliseconds\n", "| scenario | " + " | ".join(brokers) + " |",
              "|---|" + "---|" * len(brokers)]  # fmt: skip
    for scenario in scenarios:
        for kind in ("latency_ms", "confirm_ms"):
            for part in ("p50", "p99"):
                cells = [column(runs[scenario.name].get(name, []), f"{kind}/{part}") for name in brokers]
                if any(cells):
                    title = f"`{scenario.name}` {scenario.what}: {kind[:-3]} {part}"
                    lines.append(f"| {title} | " + " | ".join(spread(cell, 3) for cell in cells) + " |")
    lines += ["", "## Connections, declares, idle\n", "| | " + " | ".join(brokers) + " |",
              "|---|" + "---|" * len(brokers)]  # fmt: skip
    for key in extras[brokers[0]]:
        lines.append(f"| {key} | " + " | ".join(f"{extras[name].get(key, 0):,.2f}" for name in brokers) + " |")
    lines += ["", "![CPU per million messages](benchmarks.png)", ""]
    (folder / "benchmarks.md").write_text("\n".join(lines))
    plot(folder / "benchmarks.png", scenarios, runs, brokers)


def plot(path: Path, scenarios: list[Scenario], runs: dict[str, dict[str, list[dict[str, Any]]]],
         brokers: list[str]) -> None:  # fmt: skip
    try:
        import matplotlib
    except ImportError:
        print("no plot: matplotlib is missing (pip install matplotlib)")
        return
    matplotlib.use("Agg")
    from matplotlib import pyplot

    labels, values = [], {name: [] for name in brokers}
    for scenario in scenarios:
        for label, cpu in cpu_paths(scenario):
            labels.append(scenario.name + (f" {label}" if label else ""))
            for name in brokers:
                cells = column(runs[scenario.name].get(name, []), cpu)
                values[name].append(statistics.median(cells) if cells else 0)
    shown, axes = pyplot.subplots(figsize=(11, 5))
    width = 0.8 / len(brokers)
    for index, name in enumerate(brokers):
        places = [place + index * width for place in range(len(labels))]
        axes.bar(places, values[name], width, label=name)
    axes.set_yscale("log")
    axes.set_xticks([place + 0.4 - width / 2 for place in range(len(labels))], labels)
    axes.set_ylabel("broker CPU seconds per million messages (log)")
    axes.legend()
    shown.tight_layout()
    shown.savefig(path, dpi=110)
