"""Events as Parquet files: one table, whose schema is ``SCHEMA`` and stands with its version in every file.

Duty: columns into Arrow, Arrow into a file, files into one. Not here: what happened (``columns``), which files there
are and when they are written (``writer``).
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy
import pyarrow as pa
import pyarrow.parquet as pq

from warrenmq.broker.message import unpack_keys
from warrenmq.journal.bodies import (
    BODY,
    NO_BODIES,
    Bodies,
    JoinedBodies,
    LoggedBodies,
    Pieces,
    groups,
    have_bodies,
)
from warrenmq.journal.columns import (
    CONFIRMED,
    DELIVERED,
    ENQUEUED,
    FETCHED,
    GAP,
    INTERRUPTED,
    LEASED,
    LEFT,
    LEFT_OUT,
    LETTER_LOST,
    LEVEL,
    PUBLISHED,
    QUEUE_DELETED,
    READ,
    REQUEUED,
    WRITTEN,
    EventColumns,
)
from warrenmq.journal.files import being_made
from warrenmq.journal.index import write_index
from warrenmq.journal.routes import WAY, shown_way
from warrenmq.log.causes import FATE_NAMES
from warrenmq.log.leasings import LEASE_NAMES
from warrenmq.wire.content import decode_properties
from warrenmq.wire.fields import printable
from warrenmq.wire.replies import AmqpError

VERSION = 4

EVENTS = {
    PUBLISHED: "published",
    WRITTEN: "written",
    ENQUEUED: "enqueued",
    DELIVERED: "delivered",
    FETCHED: "fetched",
    REQUEUED: "requeued",
    QUEUE_DELETED: "queue deleted",
    GAP: "gap",
    LETTER_LOST: "letter lost",
    LEVEL: "level",
    CONFIRMED: "confirmed",
    READ: "read",
    LEFT_OUT: "left out",
    INTERRUPTED: "interrupted",
} | {LEASED + what: name for what, name in enumerate(LEASE_NAMES)}
EVENTS |= {LEFT + cause: name for cause, name in FATE_NAMES.items()}
"""What an event is called, by its number."""

SPANS = (GAP, LEFT_OUT, INTERRUPTED)
"""Those that were not at one time, but until another."""

TIME = pa.timestamp("us", "UTC")
NAME = pa.dictionary(pa.int32(), pa.string())
FIELDS: list[tuple[str, pa.DataType, str]] = [
    ("time", TIME, "when; events of one turn of the broker have one time"),
    ("event", NAME, "what happened"),
    (
        "message",
        pa.int64(),
        "the record in the log: all events of one record have the same; 2^62 + `id` of one without, at the level `all`",
    ),
    ("id", pa.int64(), "published, written, no record: the message, the same in its dead letters"),
    ("vhost", NAME, "of the queue, or of the channel"),
    ("queue", NAME, "where it happened; `amq.delayed.` and a delayed exchange's name; `#7` where the name is lost"),
    (
        "position",
        pa.int64(),
        "enqueued, delivered, fetched, requeued, read: its place in the queue, the offset in a stream",
    ),
    ("user", NAME, "published, confirmed, delivered, fetched, read: whose channel; leased, lease_…: the lease's owner"),
    ("connection", NAME, "published, confirmed, delivered, fetched, read: by its name"),
    ("channel", pa.int32(), "published, confirmed, delivered, fetched, read: its number"),
    ("consumer", NAME, "delivered, read: its tag; leased, lease_…: the id of the lease"),
    (
        "number",
        pa.int64(),
        "published, confirmed: which publish of its channel, where they are counted; gap, left out: how many events; "
        "level: 1 in so many",
    ),
    ("tag", pa.int64(), "delivered, fetched, read: the delivery tag"),
    ("redelivered", pa.bool_(), "delivered, fetched: was it delivered before?"),
    ("until", TIME, "gap, left out, interrupted: its end; its beginning is `time`"),
    ("exchange", NAME, "published, written, no record: to which exchange"),
    ("routing_keys", pa.list_(pa.string()), "published, written, no record: the publish key, then CC, then BCC"),
    ("size", pa.int64(), "published, written, no record: octets of the body"),
    ("message_id", pa.string(), "published, written, no record: the property"),
    ("correlation_id", pa.string(), "published, written, no record: the property"),
    ("header", pa.binary(), "published, written, no record: all properties, as AMQP's content header has them"),
    ("code", pa.int32(), "refused, returned: the reply code"),
    (
        "text",
        pa.string(),
        "refused, returned, not taken, nacked: the reply text, or why; edited: by whom; level: which; published, "
        "written: why `body` is empty",
    ),
    ("source", NAME, "enqueued: the exchange whose binding led to the queue"),
    ("binding_key", NAME, "enqueued: the key of that binding; in the default exchange the name of the queue"),
    ("binding_arguments", NAME, "enqueued: its arguments, if it has any: JSON"),
    (
        "route",
        NAME,
        "enqueued, where it was not one binding of `exchange`: all hops from there to the queue, JSON: bindings "
        "(of several that match, one and how many), alternate exchanges",
    ),
    (BODY, pa.binary(), "published, written, no record, at the level `all+bodies`: what it said, up to 16 MiB"),
]
"""Name, type and meaning of every column, in order."""

SCHEMA = pa.schema(
    [pa.field(name, kind, metadata={"meaning": meaning}) for name, kind, meaning in FIELDS],
    metadata={"warren.journal": str(VERSION)},
)

BUT_BODIES = pa.schema([field for field in SCHEMA if field.name != BODY])
"""What is made for all rows of a file at once; bodies are fetched for some at a time."""

COUNTED = ("time", "message", "id", "position", "number", "tag", "size")  # mostly as in the row before, or one more
LOOKED_UP = [*(name for name, kind, _ in FIELDS if pa.types.is_dictionary(kind)), "routing_keys.list.element"]
BOUNDED = ("time", "message", "id", "vhost", "queue", BODY)  # least and greatest are told where they may spare a read


def write(path: Path, rows: pa.Table, headers: Sequence[str] = (), bodies: Bodies = NO_BODIES) -> None:
    """Whole under its name, or not at all, with its index beside it. ``headers``: by which messages are found too."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_index(path, rows, headers)
    write_beside(path, rows, bodies).rename(path)


def write_beside(path: Path, rows: pa.Table, bodies: Bodies) -> Path:
    """All of it on disk, under a name of its own: whoever renames it has it whole under its name, or not at all."""
    unfinished = being_made(path)
    encoding = dict.fromkeys(COUNTED, "DELTA_BINARY_PACKED")
    with pq.ParquetWriter(
        unfinished,
        SCHEMA,
        compression="zstd",
        use_dictionary=LOOKED_UP,
        column_encoding=encoding,
        write_statistics=list(BOUNDED),
    ) as out:
        for group in groups(rows, bodies):
            out.write_table(group.cast(SCHEMA))
    with unfinished.open("rb") as file:
        os.fsync(file.fileno())
    return unfinished


def in_one(paths: list[Path]) -> tuple[pa.Table, Bodies]:
    """The rows of all these files, which may be of earlier versions, in this order."""
    tables = []
    for path in paths:
        with pq.ParquetFile(path) as file:
            tables.append(file.read([name for name in file.schema_arrow.names if name != BODY]))
    whole = pa.concat_tables(tables, promote_options="default")
    for name in BUT_BODIES.names:
        if name not in whole.column_names:
            whole = whole.append_column(name, pa.nulls(len(whole), SCHEMA.field(name).type))
    rows = whole.select(BUT_BODIES.names).cast(BUT_BODIES).unify_dictionaries()
    if not have_bodies(paths):
        return rows, NO_BODIES
    return rows, JoinedBodies(paths, rows.column("size").fill_null(0).to_numpy())


def order_of(columns: EventColumns) -> Any:
    """The rows by their times; None where they are in order."""
    times = numbers(columns.times)
    return None if numpy.all(times[:-1] <= times[1:]) else numpy.argsort(times, kind="stable")


def bodies_of(columns: EventColumns, pieces: Pieces) -> Bodies:
    """What is left out of ``table``; long ones are fetched from ``pieces``."""
    if not columns.bodies:
        return NO_BODIES
    order = order_of(columns)
    places = None
    if order is not None:
        places = numpy.empty(len(order), numpy.int64)
        places[order] = numpy.arange(len(order))
    return LoggedBodies(columns.bodies, int(columns.rows), places, pieces)


def table(columns: EventColumns, queues: dict[int, dict[str, str]]) -> pa.Table:
    """The rows in the order of their times, but for their bodies."""
    times = numbers(columns.times)
    order = order_of(columns)

    def of(column: Any, kind: type = numpy.int64) -> Any:
        values: Any = numpy.frombuffer(column.getvalue(), kind)
        return values if order is None else values[order]

    kinds, whos, ids = of(columns.kinds, numpy.int32), of(columns.whos, numpy.int32), of(columns.queues, numpy.int32)
    addresses, tags, flags = of(columns.messages), of(columns.tags), of(columns.flags, numpy.uint8)
    delivered = (kinds == DELIVERED) | (kinds == FETCHED)
    who = [json.loads(text) for text in columns.names]
    coded = negative_is_none(ids, pa.int32()).dictionary_encode()
    named = [queues.get(id, {"queue": f"#{id}"}) for id in coded.dictionary.to_pylist()]
    place = coded.indices.fill_null(-1).to_numpy()
    vhost = numpy.where(ids >= 0, place, numpy.where(whos >= 0, whos + len(named), -1))
    found: dict[str, pa.Array] = {
        "time": array(of(columns.times), None, TIME),
        "event": chosen([EVENTS.get(n, f"left ({n - LEFT})") for n in range(int(kinds.max(initial=0)) + 1)], kinds),
        "message": array(addresses, addresses == 0, pa.int64()),
        "vhost": chosen([one.get("vhost") for one in [*named, *who]], vhost),
        "queue": chosen([one["queue"] for one in named], place),
        "position": negative_is_none(of(columns.positions), pa.int64()),
        "user": chosen([one.get("user") for one in who], whos),
        "connection": chosen([one.get("connection") for one in who], whos),
        "channel": pa.array([one.get("channel") for one in who], pa.int32()).take(negative_is_none(whos, pa.int32())),
        "consumer": chosen([one.get("consumer") for one in who], whos),
        "number": negative_is_none(of(columns.numbers), pa.int64()),
        "tag": array(tags, ~(delivered | (kinds == READ)), pa.int64()),
        "redelivered": array(flags != 0, ~delivered, pa.bool_()),
        "until": array(tags, ~numpy.isin(kinds, SPANS), TIME),
    }
    said = Places(columns.message_rows, len(times), order)
    for name, values in of_messages(columns).items():
        found[name] = said.spread(values)
    why = Places(columns.said_rows, len(times), order)
    codes = numpy.frombuffer(columns.codes.getvalue(), numpy.int32)
    found["code"] = why.spread(array(codes, codes == 0, pa.int32()))
    found["text"] = why.spread(readable(binary(columns.texts, len(codes))))
    found |= of_ways(columns, len(times), order)
    return pa.Table.from_arrays([found[name] for name in BUT_BODIES.names], schema=BUT_BODIES)


class Places:
    """The rows, of so many, that have what only some have, and in which order those come."""

    def __init__(self, rows: Any, count: int, order: Any) -> None:
        there = numpy.frombuffer(rows.getvalue(), numpy.int32)
        self.count = count
        self.has = numpy.zeros(count, bool)
        self.has[there] = True
        self.chosen: Any = None  # None: as they come
        if order is not None:
            places = numpy.empty(count, numpy.int64)
            places[there] = numpy.arange(len(there))
            self.has = self.has[order]
            places = places[order][self.has]
            if numpy.any(places[:-1] > places[1:]):
                self.chosen = pa.array(places)

    def spread(self, values: pa.Array) -> pa.Array:
        """A value where a row has one, none for the others. Mostly there are none at all."""
        if values.null_count == len(values):
            return pa.nulls(self.count, values.type)
        kind = values.type
        if pa.types.is_dictionary(kind):
            return pa.DictionaryArray.from_arrays(self.spread(values.indices), values.dictionary)
        if self.chosen is not None:
            values = values.take(self.chosen)
        there = self._there(values)
        if pa.types.is_list(kind) or pa.types.is_string(kind) or pa.types.is_binary(kind):
            return self._spread_ends(values, there)
        spread = numpy.zeros(self.count, kind.to_pandas_dtype())
        spread[self.has] = numpy.frombuffer(values.buffers()[1], spread.dtype, len(values))
        return pa.Array.from_buffers(kind, self.count, [there, pa.py_buffer(spread)])

    def _spread_ends(self, values: pa.Array, there: pa.Buffer) -> pa.Array:
        """What the values are made of stays where it is: a row without one ends where the row before does."""
        ends = numpy.frombuffer(values.buffers()[1], numpy.int32, len(values) + 1)
        spread = numpy.zeros(self.count + 1, numpy.int64)
        numpy.cumsum(self.has, out=spread[1:])
        ends = pa.py_buffer(ends[spread])
        if pa.types.is_list(values.type):
            return pa.Array.from_buffers(values.type, self.count, [there, ends], children=[values.values])
        return pa.Array.from_buffers(values.type, self.count, [there, ends, values.buffers()[2]])

    def _there(self, values: pa.Array) -> pa.Buffer:
        has = self.has
        if values.null_count:
            has = has.copy()
            has[has] = values.is_valid().to_numpy(zero_copy_only=False)
        return pa.py_buffer(numpy.packbits(has, bitorder="little"))


def of_messages(columns: EventColumns) -> dict[str, pa.Array]:
    """What a message was, a row for each."""
    count = columns.headers.rows
    ids = numbers(columns.ids)
    headers = binary(columns.headers, count)
    found = {
        "id": array(ids, ids == 0, pa.int64()),
        "size": array(numbers(columns.sizes), None, pa.int64()),
        "exchange": readable(binary(columns.exchanges, count)).dictionary_encode().cast(NAME),
        "routing_keys": keys(binary(columns.keys, count)),
        "header": headers,
    }
    properties = columns.properties()
    for name in ("message_id", "correlation_id"):
        if properties is None:
            found[name] = pa.array([property_of(header, name) for header in columns.header_list], pa.string())
        else:
            found[name] = readable(binary(properties.texts[name], count))
    return found


def of_ways(columns: EventColumns, rows: int, order: Any) -> dict[str, pa.Array]:
    """By which bindings messages came to their queues."""
    which = numpy.full(rows, -1, numpy.int32)
    which[numpy.frombuffer(columns.way_rows.getvalue(), numpy.int32)] = numpy.frombuffer(
        columns.way_numbers.getvalue(), numpy.int32
    )
    if order is not None:
        which = which[order]
    ways = [shown_way(text) for text in columns.ways.ways]
    return {name: chosen([way.get(name) for way in ways], which) for name in WAY}


def property_of(header: bytes, name: str) -> str | None:
    """For headers among which one cannot be read."""
    try:
        value = getattr(decode_properties(header), name)
    except AmqpError:
        return None
    return None if value is None else printable(value)


def binary(column: Any, rows: int) -> pa.Array:
    ends, data = pa.py_buffer(column.ends.getvalue()), pa.py_buffer(column.data.getvalue())
    there = None
    if column.missing:
        bits = numpy.packbits(numpy.frombuffer(column.there.getvalue(), numpy.uint8), bitorder="little")
        there = pa.py_buffer(bits)
    return pa.Array.from_buffers(pa.binary(), rows, [there, ends, data], column.missing)


def readable(column: pa.Array) -> pa.Array:
    """Octets as text; what is no UTF-8 is shown as near as can be."""
    try:
        return column.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array(
            [None if one is None else one.decode("utf-8", "replace") for one in column.to_pylist()], pa.string()
        )


def keys(packed: pa.Array) -> pa.Array:
    """Packed routing keys taken apart, each distinct packing once."""
    coded = packed.dictionary_encode()
    lists = [[printable(key) for key in unpack_keys(one)] for one in coded.dictionary.to_pylist()]
    return pa.array(lists, pa.list_(pa.string())).take(coded.indices)


def numbers(column: Any) -> numpy.ndarray[Any, numpy.dtype[numpy.int64]]:
    return numpy.frombuffer(column.getvalue(), numpy.int64)


def array(values: Any, missing: Any, kind: pa.DataType) -> pa.Array:
    """Numbers as they are, none where they are missing; without a copy, and without what `pyarrow.array` looks at."""
    there = None if missing is None else pa.py_buffer(numpy.packbits(~missing, bitorder="little"))
    data = numpy.packbits(values, bitorder="little") if pa.types.is_boolean(kind) else numpy.ascontiguousarray(values)
    return pa.Array.from_buffers(kind, len(values), [there, pa.py_buffer(data)])


def negative_is_none(values: Any, kind: pa.DataType) -> pa.Array:
    return array(values, values < 0, kind)


def chosen(values: list[str | None], which: Any) -> pa.Array:
    """Of these names the one with the row's number; none where it is negative, or has no name."""
    numbers: dict[str, int] = {}
    mapped = [-1 if value is None else numbers.setdefault(value, len(numbers)) for value in values]
    indices = numpy.array([*mapped, -1], numpy.int32)[which]  # the last one is that of negative numbers
    return pa.DictionaryArray.from_arrays(negative_is_none(indices, pa.int32()), pa.array(list(numbers), pa.string()))
