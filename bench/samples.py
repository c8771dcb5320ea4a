"""What the samples of counters take of memory: `python -m bench.samples` for 10,000 queues that had messages."""

from __future__ import annotations

import argparse
import gc
from pathlib import Path

from warrenmq.http.figures.history import BASIC, COLUMNS, TICK, History

FIRST = 1_000_000  # the tick that it begins with
MINUTE = 60 // TICK


def resident() -> int:
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def filled(queues: int, busy: bool) -> float:
    """Octets of resident memory a queue, when everything is kept that ever is."""
    names = [f"queue-{number}" for number in range(queues)]
    before = resident()
    history = History()
    recent = BASIC[0][1] // TICK
    ticks = [*range(FIRST, FIRST + BASIC[1][1] // TICK, MINUTE)]
    ticks += range(ticks[-1] + 1, ticks[-1] + recent + 2)
    width = len(COLUMNS["queue"])
    for number, tick in enumerate(ticks):
        value = 1000 * (number if busy else 1)
        for name in names:
            history.put(tick, "queue", "/", name, [value] * width)
        history.done(tick)
    return (resident() - before) / queues


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queues", type=int, default=10_000)
    queues = parser.parse_args().queues
    for busy, what in ((False, "idle"), (True, "changing at every sample")):
        each = filled(queues, busy)
        print(f"{queues:,} queues, {what}: {each:,.0f} bytes each, {each * queues / 1e6:,.1f} MB")


if __name__ == "__main__":
    main()
