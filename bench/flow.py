"""The scenarios, Warren and RabbitMQ in turn, and what connections, declares and an idle broker cost."""

from __future__ import annotations

import contextlib
from typing import Any

from bench import brokers, extras, report
from bench.scenarios import SCENARIOS
from warrenmq.bench.run import BenchFailed, run


def measure(reps: int, with_rabbitmq: bool, only: list[str] | None = None) -> dict[str, Any]:
    chosen = [scenario for scenario in SCENARIOS if not only or scenario.name in only]
    runs: dict[str, dict[str, list[dict[str, Any]]]] = {scenario.name: {} for scenario in chosen}
    with contextlib.ExitStack() as stack:
        up = [stack.enter_context(brokers.warren())]
        if with_rabbitmq and brokers.rabbitmq_installed():
            up.append(stack.enter_context(brokers.rabbitmq()))
        elif with_rabbitmq:
            print("RabbitMQ is not installed (Debian: apt-get install rabbitmq-server): Warren alone")
        more: dict[str, dict[str, float]] = {
            broker.name: {"start to listening, s": broker.start_seconds, "idle, MB": extras.idle_bytes(broker) / 1e6}
            for broker in up
        }
        if any(scenario.limited for scenario in chosen):
            for broker in up:
                broker.add_limited_user()
        syncs = [extras.fdatasync_ms(".")]
        for scenario in chosen:
            print(f"{scenario.name}: {scenario.what}", flush=True)
            for _ in range(reps):
                for broker in up:
                    try:
                        record = run(broker.limited_url if scenario.limited else broker.url, scenario.workload)
                    except BenchFailed as error:
                        print(f"  {broker.name} failed: {error}", flush=True)
                        continue
                    runs[scenario.name].setdefault(broker.name, []).append(record)
            syncs.append(extras.fdatasync_ms("."))
            for broker in up:
                for label, path in report.cpu_paths(scenario.workload.fill):
                    cells = report.column(runs[scenario.name].get(broker.name, []), path)
                    print(f"  {broker.name:<9}{label:<6} CPU s/M {report.spread(cells)}", flush=True)
        for broker in up:
            for name, measurement in (("connections", extras.connections), ("declares", extras.declares)):
                try:
                    more[broker.name].update(measurement(broker))
                except Exception as error:
                    print(f"  {broker.name} {name}: {error}")
            print(f"  {broker.name}: " + ", ".join(f"{key} {value:,.2f}" for key, value in more[broker.name].items()))
        return {
            "versions": {broker.name: broker.version for broker in up},
            "sync_ms": sorted(syncs)[len(syncs) // 2],
            "reps": reps,
            "runs": runs,
            "extras": more,
        }
