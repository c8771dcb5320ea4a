"""``settle``: what is to become of each row of a leased queue: done, dead-lettered, back to the queue, or later.

Duty: rows into requests to the broker. All rows are judged before the first is acted upon, because reading a lease and
settling it do not go together. A message is acted upon once, however often this is repeated: whoever dies in the middle
runs the batch again, reads what is left and settles that. Not here: reading (``lease_reading.py``), the end of a batch
(``leased.py``), which acknowledges every row that nobody acted upon.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from warrenmq.spark.httpapi import HttpApi, LeaseExpired
from warrenmq.spark.options import parse
from warrenmq.spark.routing.definitions import InputError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

log = logging.getLogger("warrenmq.spark")

ACTIONS = ("ack", "requeue", "reject", "delay")
COLUMNS = ("queue", "lease", "slot", "action")
LONGEST_DELAY = 365 * 86_400_000
# Of one request: runs of slots, and messages that the broker has to read.
MOST_RUNS = 10_000
MOST_READ = 10_000

Verdicts = dict[int, tuple[str, int]]  # of one lease: slot -> action and delay in ms


def settle(df: DataFrame, options: Mapping[str, str]) -> int:
    """Act on each row as its column ``action`` says; returns how many messages that changed.

    ``ack``: done. ``reject``: to the queue's dead-letter exchange, or dropped. ``requeue``: back to its place.
    ``delay``: the same, ``delay_ms`` later. The columns ``queue``, ``lease`` and ``slot`` are those of a read with
    option ``leaseColumns``; ``options`` are that read's.
    """
    absent = [name for name in COLUMNS if name not in df.columns]
    if absent:
        raise InputError(
            f"settle needs the columns {', '.join(COLUMNS)} (and delay_ms for delays), and there is no "
            f"{', no '.join(absent)}; lease and slot come with option leaseColumns=true"
        )
    chosen = ["queue", "lease", "cast(slot as int) slot", "lower(cast(action as string)) action"]
    delay = "delay_ms" if "delay_ms" in df.columns else "null"
    # A batch has a million rows at most, so this fits a driver.
    return settle_table(df.selectExpr(*chosen, f"cast({delay} as bigint) delay_ms").toArrow(), options)


def settle_table(table: pa.Table, options: Mapping[str, str]) -> int:
    """Settle what an Arrow table names, in the columns ``queue``, ``lease``, ``slot``, ``action`` and ``delay_ms``."""
    given = {name: value for name, value in options.items() if name.lower() not in ("queue", "stream")}
    api = HttpApi(parse({**given, "queue": "every"}))
    settled = 0
    for (queue, lease), verdicts in sorted(_verdicts(table).items()):
        try:
            for request in requests(verdicts):
                settled += api.settle(queue, lease, request)
        except LeaseExpired as expired:
            if api.options.fail_on_data_loss:
                raise
            log.warning("%s; going on because failOnDataLoss=false", expired)
    return settled


def _verdicts(table: pa.Table) -> dict[tuple[str, str], Verdicts]:
    """By queue and lease."""
    columns = [table.column(name).to_pylist() for name in (*COLUMNS, "delay_ms")]
    found: dict[tuple[str, str], Verdicts] = {}
    for queue, lease, slot, action, delay in zip(*columns, strict=True):
        row = f"the row with slot {slot} of lease {lease} on queue '{queue}'"
        if queue is None or lease is None or slot is None:
            raise InputError(f"{row} does not say what it is about: queue, lease and slot must not be null")
        if action not in ACTIONS:
            raise InputError(f"{row} has action '{action}'; there are {', '.join(ACTIONS)}")
        if action != "delay":
            delay = 0
        elif delay is None or not 1 <= delay <= LONGEST_DELAY:
            raise InputError(f"{row} is to be delayed by delay_ms {delay}; expected 1 to {LONGEST_DELAY}")
        verdicts = found.setdefault((queue, lease), {})
        other = verdicts.setdefault(slot, (action, delay))
        if other != (action, delay):
            raise InputError(f"{row} is there twice, to be settled by {other[0]} and by {action}")
    return found


def requests(verdicts: Verdicts) -> Iterator[dict[str, Any]]:
    """What is posted for one lease, in requests of bounded size."""
    slots: dict[tuple[str, int], list[int]] = {}
    for slot, verdict in verdicts.items():
        slots.setdefault(verdict, []).append(slot)
    request: dict[str, Any] = {}
    count = read = 0
    for (action, delay), numbers in sorted(slots.items()):
        for first, last in _runs(sorted(numbers)):
            if action == "delay":
                waiting = request.setdefault("delay", [])
                if not waiting or waiting[-1]["delay_ms"] != delay:
                    waiting.append({"delay_ms": delay, "slots": []})
                waiting[-1]["slots"].append([first, last])
            else:
                request.setdefault(action, []).append([first, last])
            count += 1
            if action in ("reject", "requeue"):
                read += last - first + 1
            if count >= MOST_RUNS or read >= MOST_READ:
                yield request
                request = {}
                count = read = 0
    if request:
        yield request


def _runs(slots: Iterable[int]) -> Iterator[tuple[int, int]]:
    """First and last of those that follow one another, none longer than a request may be."""
    first = last = -1
    for slot in slots:
        if slot == last + 1 and first >= 0 and slot - first < MOST_READ:
            last = slot
            continue
        if first >= 0:
            yield first, last
        first = last = slot
    if first >= 0:
        yield first, last
