"""`make bench ARGS="flow growth --reps 5"`: measure, print as it goes, write docs/benchmarks.md.

Sections: flow (all scenarios beside RabbitMQ), shapes (TLS, streams, kinds of queues, great numbers, likewise), floors
(what a line can cost at least), rest (starts, memory, a page of a long list), growth, overload, stalls (attacks),
consoles (ten of them), delayed, cores, journal, cluster (several nodes), spark, pipeline (audit and what-if over
journals); all of them when none is named. Each leaves its raw figures in bench/results/, and the page is written from
all that is there: sections may be measured on different days, and say so.
"""

from __future__ import annotations

import argparse
import datetime
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench import (
    cluster,
    consoles,
    cores,
    delayed,
    extras,
    floors,
    flow,
    growth,
    http_attacks,
    journal,
    overload,
    report,
    rest,
    shapes,
    stalls,
)
from bench.scenarios import SCENARIOS

RESULTS = Path(__file__).parent / "results"


def main() -> None:
    sections: dict[str, Callable[[], dict[str, Any]]] = {
        "flow": lambda: flow.measure(options.reps, not options.no_rabbitmq, only),
        "shapes": lambda: shapes.measure(only, options.scale, options.reps, not options.no_rabbitmq),
        "floors": lambda: floors.measure(options.scale, options.reps),
        "rest": lambda: rest.measure(options.scale, options.reps, not options.no_rabbitmq),
        "growth": lambda: growth.measure(only, options.scale, options.reps),
        "overload": lambda: overload.measure(),
        "stalls": lambda: stalls.measure(only, options.scale),
        "consoles": lambda: consoles.measure(options.scale, not options.no_rabbitmq),
        "delayed": lambda: delayed.measure(int(10_000_000 * options.scale), 10_000, 20),
        "cores": lambda: cores.measure(options.reps),
        "journal": lambda: journal.measure(options.reps),
        "cluster": lambda: cluster.measure(options.scale, options.reps, not options.no_rabbitmq),
        "spark": lambda: spark(options, only),
        "pipeline": lambda: pipeline(options, only),
    }
    parser = argparse.ArgumentParser(
        prog="make bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=", ".join(sections))
    parser.add_argument(
        "--only",
        help="of a section, comma separated: "
        + ",".join(s.name for s in SCENARIOS)
        + "; of shapes: "
        + ",".join(shapes.WORKS)
        + "; of stalls: "
        + ",".join(http_attacks.ATTACKS)
        + "; of spark: read (stream,leased),write,route,rabbitmq; many (100 M rows)"
        + "; of pipeline: usual (1 and 10 M events), many (100 M), bounds",
    )
    parser.add_argument("--reps", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0, help="smaller is quicker: 0.1 is a tenth of the messages")
    parser.add_argument("--rows", type=int, help="spark --only route: so many rows, instead of all the usual tables")
    parser.add_argument("--unique", action="store_true", help="with --rows: no two keys are the same")
    parser.add_argument("--no-rabbitmq", action="store_true")
    parser.add_argument("--no-report", action="store_true", help="print only")
    options = parser.parse_args()
    only = options.only.split(",") if options.only else None
    unknown = [name for name in options.sections if name not in sections]
    if unknown:
        parser.error(f"no section {', '.join(unknown)}; there are {', '.join(sections)}")
    for name in options.sections or list(sections):
        print(f"== {name}", flush=True)
        found = sections[name]()
        if found and not options.no_report:
            keep(name, found, partial=only is not None or "parts" in found)
    if not options.no_report:
        report.write(Path("docs"), RESULTS)
        print("written: docs/benchmarks.md")


def keep(name: str, found: dict[str, Any], partial: bool) -> None:
    """The raw figures of a section; a part of them, measured anew, joins the rest."""
    file = RESULTS / f"{name}.json"
    if partial and file.exists():
        before = json.loads(file.read_text())["figures"]
        if "runs" in found:
            found["runs"] = {**before["runs"], **found["runs"]}
        elif "parts" in found:
            kept = [line for line in before["lines"] if line.get("part", found["parts"][0]) not in found["parts"]]
            found = {**before, **found, "lines": [*kept, *found["lines"]]}
        else:
            found = {**before, **found}
    record = {"date": datetime.date.today().isoformat(), **extras.machine(), "figures": found}
    RESULTS.mkdir(exist_ok=True)
    file.write_text(json.dumps(record, indent=1) + "\n")


def pipeline(options: argparse.Namespace, only: list[str] | None) -> dict[str, Any]:
    if not has_spark():
        return {}
    from bench import pipeline as section

    unknown = [part for part in only or () if part not in section.PARTS]
    if unknown:
        raise SystemExit(f"pipeline has no part {', '.join(unknown)}; there are {', '.join(section.PARTS)}")
    return section.measure(options.scale, options.reps, only or section.PARTS)


def has_spark() -> bool:
    try:
        import pyspark  # noqa: F401
    except ImportError:
        print("PySpark is not installed (pip install '.[spark]'): left out")
        return False
    return True


def spark(options: argparse.Namespace, only: list[str] | None) -> dict[str, Any]:
    if not has_spark():
        return {}
    from bench import routing
    from bench import spark as section

    named = [part for name in only or section.NAMES for part in section.GROUPS.get(name, (name,))]
    unknown = [name for name in named if name not in (*section.NAMES, section.MANY)]
    if unknown:
        there = ", ".join((*section.NAMES, *section.GROUPS, section.MANY))
        raise SystemExit(f"spark has no part {', '.join(unknown)}; there are {there}")
    tables = [
        ("route", routing.REPEATED_ROWS, False),
        ("route", routing.UNIQUE_ROWS, True),
        (section.MANY, routing.MANY_ROWS, True),
    ]
    tables = [(part, int(rows * options.scale), unique) for part, rows, unique in tables if part in named]
    if options.rows:
        tables = [("rows", options.rows, options.unique)]  # beside the usual ones, not in their place
    rows = int(1_000_000 * options.scale)
    return section.measure(rows, tables, options.reps, not options.no_rabbitmq, named)


if __name__ == "__main__":
    main()
