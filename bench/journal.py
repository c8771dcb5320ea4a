"""What the journal costs: the broker's CPU with and without it, and its own process's.

One broker, a vhost for each level, the same workload in them in turn, so that both see the same machine. What its own
process spends on an event is taken from the same runs: reading the log, columns, Parquet, indexes and joined files;
the writing alone is measured by ``conversion``.
"""

from __future__ import annotations

import statistics
import time
from dataclasses import replace
from typing import Any
from urllib.request import urlopen

from bench import conversion
from bench.brokers import Running, warren
from bench.scenarios import SCENARIOS
from warrenmq.bench import process
from warrenmq.bench.run import run
from warrenmq.cli._api import Api

PAIRS = (("b", "off", "outcomes", 0.10), ("a", "off", "all", 0.40))  # scenario, without, with, more CPU at most
LONGER = 4  # than the scenario: the difference of two runs has to be seen
PATIENCE = 60.0  # seconds until its process has written everything


def measure(reps: int) -> dict[str, Any]:
    chosen = {scenario.name: scenario for scenario in SCENARIOS}
    lines: list[dict[str, Any]] = []
    with warren() as broker:
        api = Api(broker.http, 30)
        for level in ("off", "outcomes", "all"):
            api.checked("PUT", f"/vhosts/{level}", {"journal": level})
            api.checked("PUT", f"/permissions/{level}/guest", {"configure": ".*", "write": ".*", "read": ".*"})
        for name, without, with_it, goal in PAIRS:
            scenario = chosen[name]
            workload = replace(scenario.workload, messages=LONGER * scenario.workload.messages)
            spent: dict[str, list[float]] = {without: [], with_it: []}
            own = Own(broker)
            for turn in range(reps + 1):
                if turn == 1:
                    own.begin()  # the first run warms up
                for level in (without, with_it) if turn % 2 else (with_it, without):
                    before = process.cpu_seconds([own.broker])
                    run(f"{broker.url}{level}", workload)
                    cpu = (process.cpu_seconds([own.broker]) - before) / workload.messages * 1e6
                    if turn:
                        spent[level].append(cpu)
            more = statistics.median(b / a for a, b in zip(spent[without], spent[with_it], strict=True)) - 1
            line = {"scenario": name, "what": scenario.what, "level": with_it, "goal": goal, "more": more}
            lines.append({**line, "spent": spent, **own.end()})
            medians = ", ".join(f"{level} {statistics.median(some):.2f}" for level, some in spent.items())
            print(f"  {name:<3} {medians} CPU s/M: {more:+.1%} (goal {goal:+.0%})", flush=True)
            told = lines[-1]
            print(
                f"      {told['events']:,} events, {told['rate']:,.0f} a CPU second, {told['octets']:.1f} octets each"
            )
    return {"levels": lines, "writing": [conversion.measure() for _ in range(reps)]}


class Own:
    """What the journal's process has done between two moments, each of which it has come to an end at."""

    def __init__(self, broker: Running) -> None:
        self.metrics = f"http://{broker.http.rpartition('@')[2]}/metrics"
        self.port = broker.port
        self.broker = process.listening(broker.port)[0]
        self._begun = (0, 0, 0.0)

    def begin(self) -> None:
        self._begun = self._now()

    def end(self) -> dict[str, Any]:
        events, octets, cpu = (now - then for now, then in zip(self._now(), self._begun, strict=True))
        return {"events": events, "rate": events / cpu if cpu else 0.0, "octets": octets / events if events else 0.0}

    def _now(self) -> tuple[int, int, float]:
        """Events, octets and CPU seconds, once nothing is left to be written."""
        until = time.monotonic() + PATIENCE
        last = -1
        while time.monotonic() < until:
            time.sleep(5)
            found = self._metrics()
            if int(found["warren_journal_events_total"]) == last and found["warren_journal_lag_seconds"] == 0:
                break
            last = int(found["warren_journal_events_total"])
        cpu = process.cpu_seconds([pid for pid in process.listening(self.port) if pid != self.broker])
        return last, int(found["warren_journal_bytes"]), cpu

    def _metrics(self) -> dict[str, float]:
        with urlopen(self.metrics, timeout=30) as answer:
            text = answer.read().decode()
        lines = [line.split() for line in text.splitlines() if line.startswith("warren_journal")]
        return {line[0]: float(line[-1]) for line in lines}
