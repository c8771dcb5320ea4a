"""Writes down what RabbitMQ 3.10 answers:  python -m tests.conformance.record

Every case runs twice; a case whose two answers differ is reported and not recorded.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

from tests.conformance.misuse import MISUSE
from tests.conformance.steps import LIMITED, LIMITED_PERMISSIONS, run, run_together
from tests.support.brokers import SHARED_PLUGINS, RunningBroker, start_rabbitmq

RECORDED = Path(__file__).parent / "recorded" / "misuse.json"


def record(broker: RunningBroker, only: str) -> int:
    broker.add_user(*LIMITED, permissions=LIMITED_PERMISSIONS)
    answers: dict[str, list[str]] = json.loads(RECORDED.read_text()) if RECORDED.exists() else {}
    unstable = 0
    together = [scenario for scenario in MISUSE if not scenario.alone]
    first_time, second_time = run_together(broker, together), run_together(broker, together)
    for scenario in MISUSE:
        if only not in scenario.id:
            continue
        started = time.monotonic()
        try:
            if scenario.alone:
                first, second = run(broker, scenario), run(broker, scenario)
            else:
                first, second = first_time[scenario.id], second_time[scenario.id]
        except Exception as error:
            print(f"FAILED   {scenario.id}: {error!r}")
            unstable += 1
            continue
        seconds = time.monotonic() - started
        if first != second:
            unstable += 1
            print(f"UNSTABLE {scenario.id}\n    {first}\n    {second}")
            continue
        if seconds > 2:
            print(f"slow     {scenario.id}: {seconds / 2:.1f} s")
        answers[scenario.id] = first
    known = {scenario.id for scenario in MISUSE}
    RECORDED.parent.mkdir(exist_ok=True)
    RECORDED.write_text(json.dumps({key: answers[key] for key in sorted(answers) if key in known}, indent=1) + "\n")
    print(f"{len(MISUSE)} cases, {unstable} not recorded")
    return 1 if unstable else 0


if __name__ == "__main__":
    only = sys.argv[1] if len(sys.argv) > 1 else ""
    if "ORACLE_PORT" in os.environ:
        ports = int(os.environ["ORACLE_PORT"]), int(os.environ["ORACLE_HTTP_PORT"])
        running = RunningBroker("rabbitmq", *ports, Path("."), None)  # type: ignore[arg-type]
        sys.exit(record(running, only))
    with start_rabbitmq(SHARED_PLUGINS) as private:
        sys.exit(record(private, only))
