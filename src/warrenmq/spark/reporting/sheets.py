"""What a page shows, as CSV for a spreadsheet: a file a section. Times are UTC, without a zone, as a spreadsheet takes
them; a name that it would take for a formula begins with an apostrophe."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from warrenmq.spark.reporting.facts import Facts


def write_sheets(facts: Facts, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    names = sorted({name for _, counts in facts.rates for name in counts})
    rates = ([start, *(counts.get(name, 0) for name in names)] for start, counts in facts.rates)
    _write(folder / "rates.csv", ["window_start", *names], rates)
    bands = ([band.title, *point] for band in facts.bands for point in band.points)
    _write(folder / "latency.csv", ["step", "window_start", "p50", "p90", "p99"], bands)
    _write(folder / "publishes.csv", ["outcome", "messages"], facts.publishes.items())
    ledger = ([queue, outcome, count] for queue, counts in facts.queues for outcome, count in counts.items())
    _write(folder / "ledger.csv", ["queue", "outcome", "messages"], ledger)
    for name, rows in facts.worst.items():
        columns = list(rows[0]) if rows else []
        _write(folder / f"{name}.csv", columns, ([row[column] for column in columns] for row in rows))


def _write(path: Path, head: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writing = csv.writer(file)
        writing.writerow(head)
        writing.writerows([_cell(value) for value in row] for row in rows)


def _cell(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.replace(tzinfo=None)
    return f"'{value}" if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r")) else value
