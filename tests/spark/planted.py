"""Journals with known faults, made with numpy alone, and a recount of what is in their files, without Spark.

A message is published every millisecond, enters a queue in the same turn, is delivered and acknowledged later; those
that are planted do otherwise. A file is a segment: it has the events of its time, whichever message they are of.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy
import pyarrow as pa
import pyarrow.parquet as pq

from warrenmq.journal.files import file_name
from warrenmq.journal.parquet import SCHEMA

LOG = 0xAA
NAME = f"{LOG:016x}"
START = 1_700_000_000_000_000  # µs
EVERY = 1000  # µs between two publishes
EPOCH = 1 << 40  # the first id
Numbers = numpy.ndarray[Any, numpy.dtype[Any]]


@dataclass
class Planted:
    """A journal, and the numbers of the messages with which something is wrong, or only unusual."""

    folder: Path
    messages: int
    per_segment: int
    rows: int = 0
    faults: dict[str, set[int]] = field(default_factory=dict)  # by the number of the message

    def records(self, fault: str) -> set[int]:
        return {int(record(number, self.per_segment)) for number in self.faults[fault]}


def record(number: Any, per_segment: int) -> Any:
    """The number that the log gives a message: its segment, and its place there."""
    return ((number // per_segment + 1) << 32) | (number % per_segment)


#: of how many messages one is planted with each; a message has one fault
FAULTS = (
    "no beginning",  # neither its publish nor its entry is told
    "no record",  # its publish is not told
    "nowhere",  # it is published, and in no queue
    "left twice",
    "entered twice",
    "waiting",
    "held",
    "redelivered",  # five times
    "dead-lettered",
    "late",  # its acknowledgement stands in a later file than its time says
    "unroutable",
    "unconfirmed",
)


def plant(folder: Path, messages: int, per_segment: int, each: int, seed: int = 1) -> Planted:
    """Write a journal of so many messages with ``each`` of every fault."""
    made = Planted(folder, messages, per_segment)
    random = numpy.random.default_rng(seed)
    chosen = random.choice(messages, each * len(FAULTS), replace=False)
    made.faults = {name: set(chosen[n * each : (n + 1) * each].tolist()) for n, name in enumerate(FAULTS)}
    of: dict[str, Numbers] = {name: numpy.array(sorted(numbers), numpy.int64) for name, numbers in made.faults.items()}
    every: Numbers = numpy.arange(messages)
    waits: Numbers = random.integers(1, 3 * per_segment * EVERY // 4, messages)  # until it is delivered
    took: Numbers = random.integers(1, per_segment * EVERY // 4, messages)  # until it is acknowledged

    def but(*names: str) -> Numbers:
        return numpy.setdiff1d(every, numpy.concatenate([of[name] for name in names]))

    at = START + every * EVERY
    out, done = at + waits, at + waits + took
    rows: list[dict[str, Any]] = []

    def add(event: str, which: Numbers, when: Numbers, **more: Any) -> None:
        rows.append({"event": event, "message": record(which, per_segment), "n": which, "time": when, **more})

    published = but("no beginning", "no record", "unroutable")
    add("published", published, at[published], number=published + 1)
    confirmed = but("no beginning", "no record", "unroutable", "unconfirmed")
    add("confirmed", confirmed, at[confirmed] + 500, number=confirmed + 1)
    entered = but("no beginning", "nowhere", "unroutable")
    add("enqueued", entered, at[entered], position=entered + 1)
    add("enqueued", of["entered twice"], at[of["entered twice"]], position=of["entered twice"] + 1)
    delivered = but("nowhere", "waiting", "unroutable")
    add("delivered", delivered, out[delivered])
    for n in range(4):
        add("requeued", of["redelivered"], out[of["redelivered"]] + 2 * n + 1)
        add("delivered", of["redelivered"], out[of["redelivered"]] + 2 * n + 2, redelivered=True)
    acked = but("nowhere", "waiting", "held", "dead-lettered", "unroutable", "late")
    add("acked", acked, done[acked] + 10)
    add("acked", of["left twice"], done[of["left twice"]] + 20)
    late = of["late"]
    add("acked", late, done[late], place=done[late] + 2 * per_segment * EVERY)
    letters = of["dead-lettered"]
    add("rejected_dead_lettered", letters, done[letters])
    # the letters are the last records of their segments
    again = ((letters // per_segment + 1) << 32) | (per_segment + letters % per_segment)
    add("written", letters, done[letters], message=again)
    add("enqueued", letters, done[letters], message=again, queue="dead", position=letters + 1)
    nobody = of["unroutable"]
    add("unroutable", nobody, at[nobody], message=None)
    _write(made, rows, random)
    return made


def _write(made: Planted, rows: list[dict[str, Any]], random: numpy.random.Generator) -> None:
    """All rows into the files of their time, out of order within a second."""
    made.folder.mkdir(parents=True, exist_ok=True)
    tables, places = [], []
    for some in rows:
        tables.append(_table(some))
        places.append(some.get("place", some["time"]))
    whole = pa.concat_tables(tables).unify_dictionaries()
    where = numpy.concatenate(places)
    jitter = random.integers(0, 1_000_000, len(where))
    last = START + made.messages * EVERY - 1
    segment = (numpy.minimum(where, last) - START) // (made.per_segment * EVERY) + 1
    order = numpy.lexsort((where + jitter, segment))
    bounds = numpy.searchsorted(segment[order], numpy.arange(1, segment.max() + 2))
    for number in range(1, int(segment.max()) + 1):
        part = whole.take(pa.array(order[bounds[number - 1] : bounds[number]]))
        pq.write_table(part, made.folder / file_name(LOG, number, 0, 1000), compression="zstd")
    made.rows = len(whole)


def _table(some: dict[str, Any]) -> pa.Table:
    numbers: Numbers = some["n"]
    count = len(numbers)
    event = some["event"]
    told = event in ("published", "written", "unroutable")
    of_channel = event in ("published", "confirmed", "unroutable", "delivered")
    of_queue = not told and event != "confirmed"

    def named(value: str | None) -> pa.Array:
        one = pa.array([value], pa.string())
        return pa.DictionaryArray.from_arrays(pa.array(numpy.zeros(count, numpy.int32)), one)

    columns: dict[str, Any] = {
        "time": pa.array(some["time"]).cast(SCHEMA.field("time").type),
        "event": named(event),
        "message": pa.nulls(count, pa.int64()) if some["message"] is None else pa.array(some["message"], pa.int64()),
        "vhost": named("/"),
    }
    if told:
        columns |= {
            "id": pa.array(numbers + EPOCH + 1, pa.int64()),
            "exchange": named("orders"),
            "routing_keys": pa.array([["k"]] * 1, pa.list_(pa.string())).take(
                pa.array(numpy.zeros(count, numpy.int64))
            ),
            "size": pa.array(numpy.full(count, 100)),
            "message_id": pa.array(numpy.char.add("m", numbers.astype(str)), pa.string()),
        }
    if of_channel:
        columns |= {"user": named("shop"), "connection": named("a -> b"), "channel": pa.array([1] * count, pa.int32())}
    if of_queue:
        columns["queue"] = named(some.get("queue", "work"))
    for name in ("number", "position"):
        if name in some:
            columns[name] = pa.array(some[name], pa.int64())
    if event == "delivered":
        columns["redelivered"] = pa.array(numpy.full(count, bool(some.get("redelivered"))))
    return pa.Table.from_arrays(
        [columns.get(name, pa.nulls(count, SCHEMA.field(name).type)) for name in SCHEMA.names], schema=SCHEMA
    )


@dataclass
class Recount:
    """What the files of a folder say, by the log's number of a message and its queue."""

    no_beginning: set[int]
    open: dict[int, int]  # by when the last of it was told
    outcomes: dict[tuple[str, str], int]  # queue, how it ended or `open`


def recount(folder: Path) -> Recount:
    """Independently: sets, and one file after the other."""
    entered: dict[tuple[str, int], int] = {}
    left: dict[tuple[str, int], str] = {}
    seen: dict[tuple[str, int], int] = {}
    begins = ("enqueued",)
    for path in sorted(folder.glob("*.parquet")):
        table = pq.ParquetFile(path).read(["time", "event", "message", "queue"])
        columns = [table.column(name).to_pylist() for name in ("event", "message", "queue")]
        times = table.column("time").cast(pa.int64()).to_pylist()
        for event, message, queue, time in zip(*columns, times, strict=True):
            if queue is None or message is None:
                continue
            key = (queue, message)
            seen[key] = max(time, seen.get(key, 0))
            if event in begins:
                entered[key] = 1
            elif event not in ("delivered", "requeued"):
                left[key] = event
    outcomes: dict[tuple[str, str], int] = {}
    for key in seen:
        what = left.get(key, "open" if key in entered else "unseen")
        outcomes[key[0], what] = outcomes.get((key[0], what), 0) + 1
    here = {key[1]: seen[key] for key in entered if key not in left}
    return Recount({key[1] for key in seen if key not in entered}, here, outcomes)
