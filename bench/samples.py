"""What the samples of counters take of memory and of CPU: `python -m bench.samples` for 10,000 queues with messages."""

from __future__ import annotations

import argparse
import gc
import time
from pathlib import Path

from warrenmq.client import Connection, Properties
from warrenmq.http.figures.history import BASIC, COLUMNS, TICK, History
from warrenmq.http.figures.sampler import Sampler
from warrenmq.testing import Broker

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


def rounds(queues: int, count: int = 5) -> tuple[float, int, float]:
    """Of a round over as many queues with a message each: seconds of CPU, slices, seconds of CPU of the longest one."""
    now = float(FIRST * TICK)
    with Broker() as broker, Connection(broker.url) as connection:
        channel = connection.channel()
        for number in range(queues):
            channel.queue_declare(f"queue-{number}")
        for number in range(queues):
            channel.basic_publish("", f"queue-{number}", b"x", Properties())
        channel.queue_declare("queue-0", passive=True)  # all has come
        sampler = Sampler(broker.server, History(), lambda: now)

        def slices() -> list[float]:
            took: list[float] = []
            look = sampler.look()
            while True:
                begun = time.thread_time()
                try:
                    look.send(None)
                except StopIteration:
                    return took
                finally:
                    took.append(time.thread_time() - begun)

        broker.call(slices)  # which makes what is kept
        found = []
        for _ in range(count):
            now += TICK
            found.append(broker.call(slices))
    best = min(found, key=sum)
    return sum(best), len(best), max(best)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queues", type=int, default=10_000)
    queues = parser.parse_args().queues
    for busy, what in ((False, "idle"), (True, "changing at every sample")):
        each = filled(queues, busy)
        print(f"{queues:,} queues, {what}: {each:,.0f} bytes each, {each * queues / 1e6:,.1f} MB")
    seconds, slices, longest = rounds(queues)
    each = seconds / queues * 1e6
    share = seconds / TICK * 100
    print(
        f"a round over {queues:,} queues, every {TICK} s: {each:.1f} µs of CPU each, {share:.1f} % of a core, "
        f"{slices:,} slices, the longest {longest * 1e3:.1f} ms"
    )


if __name__ == "__main__":
    main()
