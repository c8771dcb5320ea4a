"""`make bench ARGS="--only a,b --reps 3"`: run, print as it goes, write docs/benchmarks.md."""

from __future__ import annotations

import argparse
import contextlib
import json
from pathlib import Path
from typing import Any

from bench import brokers, extras, report
from bench.scenarios import SCENARIOS
from warren.bench.run import BenchFailed, run


def main() -> None:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--only", help="scenarios, comma separated: " + ",".join(s.name for s in SCENARIOS))
    parser.add_argument("--reps", type=int, default=3)
    parser.add_argument("--no-rabbitmq", action="store_true")
    parser.add_argument("--raw", type=Path, help="also write the raw figures here, as JSON")
    parser.add_argument("--no-report", action="store_true", help="print only")
    options = parser.parse_args()
    wanted = options.only.split(",") if options.only else [s.name for s in SCENARIOS]
    unknown = [name for name in wanted if name not in {s.name for s in SCENARIOS}]
    if unknown:
        parser.error(f"--only: no scenario {', '.join(unknown)}")
    chosen = [s for s in SCENARIOS if s.name in wanted]
    runs: dict[str, dict[str, list[dict[str, Any]]]] = {s.name: {} for s in chosen}
    with contextlib.ExitStack() as stack:
        up = [stack.enter_context(brokers.warren())]
        if options.no_rabbitmq:
            pass
        elif brokers.rabbitmq_installed():
            up.append(stack.enter_context(brokers.rabbitmq()))
        else:
            print("RabbitMQ is not installed (Debian: apt-get install rabbitmq-server): Warren alone")
        more = {
            broker.name: {"start to listening, s": broker.start_seconds, "idle, MB": extras.idle_bytes(broker) / 1e6}
            for broker in up
        }
        for scenario in chosen:
            print(f"{scenario.name}: {scenario.what}", flush=True)
            for _ in range(options.reps):
                for broker in up:
                    try:
                        record = run(broker.url, scenario.workload)
                    except BenchFailed as error:
                        print(f"  {broker.name} failed: {error}", flush=True)
                        continue
                    runs[scenario.name].setdefault(broker.name, []).append(record)
            for broker in up:
                for label, path in report.cpu_paths(scenario):
                    cells = report.column(runs[scenario.name].get(broker.name, []), path)
                    print(f"  {broker.name:<9}{label:<6} CPU s/M {report.spread(cells)}", flush=True)
        for broker in up:
            for name, measure in (("connections", extras.connections), ("declares", extras.declares)):
                try:
                    more[broker.name].update(measure(broker))
                except Exception as error:
                    print(f"  {broker.name} {name}: {error}")
        facts = {
            "versions": {broker.name: broker.version for broker in up},
            "sync_ms": extras.fdatasync_ms("."),
            "reps": options.reps,
            **extras.machine(),
        }
    if options.raw:
        options.raw.write_text(json.dumps({"facts": facts, "runs": runs, "extras": more}, indent=1))
    print(json.dumps(more, indent=1))
    if not options.no_report:
        report.write(Path("docs"), chosen, runs, facts, more)
        print("written: docs/benchmarks.md")


if __name__ == "__main__":
    main()
