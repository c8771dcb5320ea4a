"""Journals with known faults, made with numpy and pyarrow alone, as large as wanted: for tests and for benchmarks.

A message is published every millisecond, enters a queue in the same turn, is delivered and acknowledged later; those
that are planted do otherwise. A file is a segment: it has the events of its time, whichever message they are of. What
is kept in memory for all events are numbers; a table is made for one file at a time.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy
import pyarrow as pa

from warrenmq.journal.bodies import NO_BODIES
from warrenmq.journal.files import file_name
from warrenmq.journal.parquet import BUT_BODIES, write_beside
from warrenmq.wire.content import Properties, encode_header

LOG = 0xAA
NAME = f"{LOG:016x}"
START = 1_700_000_000_000_000  # µs
EVERY = 1000  # µs between two publishes
EPOCH = 1 << 40  # the first id
SIZE = 100  # octets of a body
HEADER = encode_header(Properties(delivery_mode=2), SIZE)
Numbers = numpy.ndarray[Any, numpy.dtype[Any]]

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
EVENTS = (
    *("published", "confirmed", "enqueued", "delivered", "requeued", "acked"),
    *("rejected_dead_lettered", "written", "unroutable"),
)
CODES = {name: code for code, name in enumerate(EVENTS)}
TOLD = [CODES[name] for name in ("published", "written", "unroutable")]  # with what the message was
OF_CHANNEL = [CODES[name] for name in ("published", "confirmed", "unroutable", "delivered")]
NO_QUEUE = [*TOLD, CODES["confirmed"]]
QUEUES = ("work", "dead")
NONE = -1


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


@dataclass
class Events:
    """Some events, a row each: numbers alone."""

    code: Numbers
    number: Numbers  # of the message
    record: Numbers
    time: Numbers
    place: Numbers  # the time by which its file is chosen
    position: Numbers
    flag: Numbers  # a redelivery; or the second queue

    def take(self, order: Numbers) -> Events:
        return Events(*(values[order] for values in vars(self).values()))


def record(number: Any, per_segment: int) -> Any:
    """The number that the log gives a message: its segment, and its place there."""
    return ((number // per_segment + 1) << 32) | (number % per_segment)


def plant(
    folder: Path, messages: int, per_segment: int, each: int, seed: int = 1, keys: int = 1, log: int = LOG
) -> Planted:
    """Write a journal of so many messages with ``each`` of every fault. ``keys``: how many routing keys there are."""
    made = Planted(folder, messages, per_segment)
    random = numpy.random.default_rng(seed)
    chosen = random.choice(messages, each * len(FAULTS), replace=False)
    made.faults = {name: set(chosen[n * each : (n + 1) * each].tolist()) for n, name in enumerate(FAULTS)}
    of = {name: numpy.array(sorted(numbers), numpy.int64) for name, numbers in made.faults.items()}
    events = _events(made, of, random)
    made.rows = len(events.code)
    _write(made, events, random, keys, log)
    return made


def _events(made: Planted, of: dict[str, Numbers], random: numpy.random.Generator) -> Events:
    """All of them, kind by kind."""
    per_segment = made.per_segment
    waits = random.integers(1, 3 * per_segment * EVERY // 4, made.messages)  # until it is delivered
    took = random.integers(1, per_segment * EVERY // 4, made.messages)  # until it is acknowledged
    at = START + numpy.arange(made.messages) * EVERY
    out, done = at + waits, at + waits + took
    parts: list[Events] = []

    def but(*names: str) -> Numbers:
        wanted = numpy.ones(made.messages, bool)
        for name in names:
            wanted[of[name]] = False
        return numpy.flatnonzero(wanted)

    def add(event: str, which: Numbers, when: Numbers, **more: Any) -> None:
        count = len(which)

        def filled(value: Any, kind: type) -> Numbers:
            return numpy.broadcast_to(numpy.asarray(value, kind), count)

        number = record(which, per_segment)
        parts.append(
            Events(
                filled(CODES[event], numpy.int8),
                which,
                filled(more.get("record", number), numpy.int64),
                when,
                more.get("place", when),
                which + 1 if event == "enqueued" else filled(NONE, numpy.int64),
                filled(more.get("flag", False), bool),
            )
        )

    published = but("no beginning", "no record", "unroutable")
    add("published", published, at[published])
    confirmed = but("no beginning", "no record", "unroutable", "unconfirmed")
    add("confirmed", confirmed, at[confirmed] + 500)
    entered = but("no beginning", "nowhere", "unroutable")
    add("enqueued", entered, at[entered])
    add("enqueued", of["entered twice"], at[of["entered twice"]])
    delivered = but("nowhere", "waiting", "unroutable")
    add("delivered", delivered, out[delivered])
    for n in range(4):
        add("requeued", of["redelivered"], out[of["redelivered"]] + 2 * n + 1)
        add("delivered", of["redelivered"], out[of["redelivered"]] + 2 * n + 2, flag=True)
    acked = but("nowhere", "waiting", "held", "dead-lettered", "unroutable", "late")
    add("acked", acked, done[acked] + 10)
    add("acked", of["left twice"], done[of["left twice"]] + 20)
    late = of["late"]
    add("acked", late, done[late], place=done[late] + 2 * per_segment * EVERY)
    letters = of["dead-lettered"]
    add("rejected_dead_lettered", letters, done[letters])
    # the letters are the last records of their segments
    again = ((letters // per_segment + 1) << 32) | (per_segment + letters % per_segment)
    add("written", letters, done[letters], record=again)
    add("enqueued", letters, done[letters], record=again, flag=True)
    nobody = of["unroutable"]
    add("unroutable", nobody, at[nobody], record=NONE)
    return Events(*(numpy.concatenate(some) for some in zip(*(vars(one).values() for one in parts), strict=True)))


def _write(made: Planted, events: Events, random: numpy.random.Generator, keys: int, log: int) -> None:
    """All rows into the files of their time, out of order within a second."""
    made.folder.mkdir(parents=True, exist_ok=True)
    where = events.place
    last = START + made.messages * EVERY - 1
    segment = (numpy.minimum(where, last) - START) // (made.per_segment * EVERY) + 1
    order = numpy.lexsort((where + random.integers(0, 1_000_000, len(where)), segment))
    segments = int(segment.max())
    bounds = numpy.searchsorted(segment[order], numpy.arange(1, segments + 2))
    for number in range(1, segments + 1):
        path = made.folder / file_name(log, number, 0, 1000)
        write_beside(path, table(events.take(order[bounds[number - 1] : bounds[number]]), keys), NO_BODIES).rename(path)


def table(events: Events, keys: int) -> pa.Table:
    """These events as the journal has them."""
    count = len(events.code)
    code = events.code
    told, of_channel = numpy.isin(code, TOLD), numpy.isin(code, OF_CHANNEL)
    delivered = code == CODES["delivered"]
    numbered = numpy.isin(code, [CODES["published"], CODES["confirmed"]])

    def named(values: list[str], which: Numbers | None = None, there: Numbers | None = None) -> pa.Array:
        which = numpy.zeros(count, numpy.int32) if which is None else which.astype(numpy.int32)
        indices = pa.array(which, mask=None if there is None else ~there)
        return pa.DictionaryArray.from_arrays(indices, pa.array(values, pa.string()))

    def some(values: Any, there: Numbers, kind: pa.DataType) -> pa.Array:
        return pa.array(numpy.broadcast_to(values, count), kind, mask=~there)

    rows = pa.array(numpy.where(told, numpy.cumsum(told) - 1, 0), mask=~told)
    ids = numpy.char.add("m", events.number[told].astype("U10"))
    texts = ["k"] if keys == 1 else [f"order.{key}" for key in range(keys)]
    columns: dict[str, pa.Array] = {
        "time": pa.array(events.time).cast(BUT_BODIES.field("time").type),
        "event": named(list(EVENTS), code),
        "message": some(events.record, events.record >= 0, pa.int64()),
        "vhost": named(["/"]),
        "id": some(events.number + EPOCH + 1, told, pa.int64()),
        "exchange": named(["orders"], there=told),
        "routing_keys": pa.array([[text] for text in texts]).take(
            pa.array((events.number % keys).astype(numpy.int32), mask=~told)
        ),
        "size": some(SIZE, told, pa.int64()),
        "message_id": pa.array(ids.tolist(), pa.string()).take(rows),
        "header": pa.array([HEADER], pa.binary()).take(some(0, told, pa.int32())),
        "user": named(["shop"], there=of_channel),
        "connection": named(["a -> b"], there=of_channel),
        "channel": some(1, of_channel, pa.int32()),
        "queue": named(
            list(QUEUES), numpy.where(events.flag & (code == CODES["enqueued"]), 1, 0), ~numpy.isin(code, NO_QUEUE)
        ),
        "number": some(events.number + 1, numbered, pa.int64()),
        "position": some(events.position, events.position != NONE, pa.int64()),
        "redelivered": pa.array(events.flag, pa.bool_(), mask=~delivered),
    }
    filled = [columns.get(field.name, pa.nulls(count, field.type)).cast(field.type) for field in BUT_BODIES]
    return pa.Table.from_arrays(filled, schema=BUT_BODIES)
