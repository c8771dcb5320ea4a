"""Ten billion messages a day on a hundred cores: arithmetic, from what was measured on two.

Duty: what every job needs of a day, how far each is from what there is, and which would break first. Not here: the
figures (``pipeline``, ``bounds``), the page (``report``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

MESSAGES = 10_000_000_000  # a day
CORES = 100
EVENTS_OF_A_MESSAGE = 5  # published, enqueued, confirmed, delivered, acknowledged
EVENTS = MESSAGES * EVENTS_OF_A_MESSAGE
DAY = 86_400  # seconds
IN_THE_LOG = 1024  # octets of a message there
SEGMENT = 64 << 20  # octets of the log of which one file of a journal tells
LARGEST_QUEUE = 100  # it has one in so many messages
TASK = 4 << 30  # octets of memory that one task has


@dataclass(frozen=True)
class Need:
    """What something needs of a day, as a share of what there is: more than 1 is more than there is."""

    what: str
    arithmetic: str
    share: float


def needs(figures: dict[str, Any]) -> list[Need]:
    """Those that can be said by these figures, the worst first."""
    found = [
        need
        for what in ("audit, raw files", "audit, all tables", "what if")
        if (need := _of_cores(figures["lines"], what)) is not None
    ]
    bounds = figures.get("bounds")
    if bounds is not None:
        files = MESSAGES * IN_THE_LOG / SEGMENT
        driver = bounds["seconds_a_file"]
        found.append(
            Need(
                "the driver, which lists and opens the files",
                f"{files:,.0f} files of a segment each (messages of {IN_THE_LOG:,} octets) at {1000 * driver:.2f} ms",
                files * driver / DAY,
            )
        )
        rate = bounds["written_a_second"]
        found.append(
            Need(
                "the one process that writes a broker's journal, were all of it one broker's",
                f"{EVENTS / DAY:,.0f} events a second, of {rate:,.0f} that it writes in a second of CPU",
                EVENTS / DAY / rate,
            )
        )
        octets = bounds["octets_a_message"]
        of_queue = MESSAGES // LARGEST_QUEUE
        found.append(
            Need(
                "the one task of `whatif` that plays a queue through whose bounds change, were it a whole day",
                f"{of_queue:,} messages (a {LARGEST_QUEUE}th of all) at {octets:,.0f} octets, of {TASK >> 30} GiB",
                of_queue * octets / TASK,
            )
        )
    return sorted(found, key=lambda need: -need.share)


def _of_cores(lines: list[dict[str, Any]], what: str) -> Need | None:
    """By the largest that was measured on all cores, slowed down by as much as it was from the size before it."""
    most = max((one["cores"] for one in lines), default=0)
    sizes = sorted(
        (one for one in lines if one["what"] == what and one["cores"] == most), key=lambda one: one["events"]
    )
    if not sizes:
        return None
    last = sizes[-1]
    rate = rate_of(last) / most
    said = f"{EVENTS:,} events at {rate:,.0f} a second and core"
    if len(sizes) > 1 and rate_of(last) < rate_of(sizes[-2]):
        kept = rate_of(last) / rate_of(sizes[-2])
        tenfold = math.log(EVENTS / CORES / (last["events"] / most)) / math.log(last["events"] / sizes[-2]["events"])
        if tenfold > 0:
            rate *= kept**tenfold
            said += f" with {last['events']:,} of them, {rate:,.0f} if it goes on falling as it did until then"
    return Need(f"{CORES} cores, for `{what}`", said, EVENTS / CORES / rate / DAY)


def rate_of(line: dict[str, Any]) -> float:
    """Events a second, of the median run."""
    seconds = sorted(line["seconds"])
    middle = len(seconds) // 2
    median = seconds[middle] if len(seconds) % 2 else (seconds[middle - 1] + seconds[middle]) / 2
    return float(line["events"] / median)


def told(figures: dict[str, Any]) -> list[str]:
    """As a part of the page."""
    found = needs(figures)
    if not found:
        return []
    lines = [
        "### Ten billion messages a day on a hundred cores",
        "",
        f"Arithmetic from the figures above, not a measurement: {EVENTS_OF_A_MESSAGE} events a message are {EVENTS:,} "
        f"a day, {EVENTS / CORES / DAY:,.0f} a second for each core if they are spread over the day. What is needed is "
        "a share of what a day has; what has more than 100 % breaks, the first line first.",
        "",
        "| what | needs | of what there is |",
        "| --- | --- | --- |",
        *(f"| {one.what} | {one.arithmetic} | {one.share:,.1%} |" for one in found),
        "",
    ]
    octets = [one for one in figures["lines"] if one.get("octets")]
    if octets:
        last = max(octets, key=lambda one: int(one["events"]))
        read, sent = (last[name] * EVENTS / CORES / 1e9 for name in ("octets", "shuffled"))
        lines += [
            f"A core reads {read:,.1f} GB of journals a day ({last['octets']:.1f} octets an event) and, from raw "
            f"files, sends {sent:,.1f} GB to other tasks ({last['shuffled']:.0f} octets an event).",
            "",
        ]
    first = found[0]
    state = "breaks first" if first.share > 1 else "would break first, and does not yet"
    fits = MESSAGES / first.share
    lines += [f"So what {state} is {first.what}: what there is would do for {fits:,.0f} messages a day.", ""]
    return lines
