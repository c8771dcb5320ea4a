"""Rows of a journal's files as the rows that a watch looks at: few columns, none of them null, each with its bucket.

Duty: which events matter, and to whom. All that is waited for in one queue goes to one bucket of its log, a publish and
its confirm to another, so that a bucket judges by itself; what concerns all (time, gaps) goes to each. Of publishes and
of what no queue took there are sums by exchange and window. Not here: what is overdue (``judging``).
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from warrenmq.journal.columns import (
    CONFIRMED,
    DELIVERED,
    FETCHED,
    GAP,
    INTERRUPTED,
    PUBLISHED,
    QUEUE_DELETED,
    REQUEUED,
)
from warrenmq.spark.auditing.kinds import CODES, ENDS, UNKNOWN

if TYPE_CHECKING:
    import pyarrow as pa

BUCKETS = 4  # of a log; a checkpoint is for as many as it was begun with
CLOCK, MISSED, COUNTED = -2, -3, -4  # beside the numbers of events
WITHDRAWN, NACKED = CODES["withdrawn"], CODES["nacked"]
OF_PUBLISH = (PUBLISHED, CONFIRMED, NACKED, WITHDRAWN)
OF_QUEUE = (DELIVERED, FETCHED, REQUEUED, QUEUE_DELETED, *ENDS)
NO_QUEUE_TOOK = (CODES["returned"], CODES["unroutable"])
NONE = -1

COLUMNS = (
    *("time", "event", "message", "vhost", "queue", "user", "connection", "channel", "consumer", "number", "until"),
    *("exchange", "routing_keys", "message_id"),
)
FIELDS = {
    "log": "string",
    "bucket": "int",
    "seq": "bigint",  # in which order they were told
    "kind": "int",
    "at": "bigint",  # µs
    "record": "bigint",
    "vhost": "string",
    "queue": "string",
    "exchange": "string",
    "routing_key": "string",
    "message_id": "string",
    "user": "string",
    "connection": "string",
    "channel": "int",
    "consumer": "string",
    "number": "bigint",  # counted: published; gap, missed: until when
    "taken": "bigint",  # counted: of these so many reached a queue
}
DDL = ", ".join(f"{name} {kind}" for name, kind in FIELDS.items())
LAST = (1 << 62) - 1  # behind all rows


def rows_of(table: pa.Table, log: str, segment: int, first: int, window: int) -> pa.RecordBatch:
    """Of the rows of a segment from number ``first`` on."""
    import numpy
    import pyarrow as pa

    kind = _kinds(table)
    at = _numbers(table, "time")
    record = _numbers(table, "message", 0)
    counted = _numbers(table, "number", NONE) >= 0
    seq = (segment << 32) + first + numpy.arange(table.num_rows)
    of_publish = (record != 0) & ((kind == PUBLISHED) & counted | numpy.isin(kind, OF_PUBLISH[1:]))
    queues = _keyed(table, "queue", _bucket)
    of_queue = numpy.isin(kind, OF_QUEUE) & (queues >= 0) & ((record != 0) | (kind == QUEUE_DELETED))
    parts = [
        _some(table, log, seq, kind, at, of_publish, record % BUCKETS),
        _some(table, log, seq, kind, at, of_queue, queues),
        _counted(table, log, seq, kind, at, window),
    ]
    gaps = numpy.flatnonzero((kind == GAP) | (kind == INTERRUPTED))  # what waited then may have ended untold
    until = _numbers(table, "until", 0)
    for n in gaps.tolist():
        parts.append(_for_all(log, int(seq[n]), GAP, int(at[n]), int(until[n])))
    whole = pa.Table.from_batches(parts).combine_chunks()
    return whole.to_batches()[0] if whole.num_rows else parts[0]


def clock_row(log: str, until: int) -> pa.RecordBatch:
    """So late is it in this log."""
    return _for_all(log, LAST, CLOCK, until, until)


def missed_row(log: str, segment: int, row: int, since: int, until: int) -> pa.RecordBatch:
    """Rows that no file has any more."""
    return _for_all(log, (segment << 32) + row, MISSED, since, until)


def _bucket(text: str) -> int:
    return zlib.crc32(text.encode()) % BUCKETS


def _kinds(table: pa.Table) -> Any:
    return _keyed(table, "event", lambda name: CODES.get(name, UNKNOWN))


def _keyed(table: pa.Table, name: str, number: Callable[[str], int]) -> Any:
    """A number for each text of a column; for null -1."""
    import numpy
    import pyarrow as pa

    column = table.column(name).combine_chunks()
    if isinstance(column, pa.ChunkedArray):
        column = column.chunk(0) if column.num_chunks else pa.array([], pa.string()).dictionary_encode()
    coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    numbers = numpy.array([*(number(text or "") for text in coded.dictionary.to_pylist()), NONE], numpy.int64)
    places: Any = coded.indices.fill_null(len(numbers) - 1).to_numpy(zero_copy_only=False)
    return numbers[places]


def _numbers(table: pa.Table, name: str, default: int = 0) -> Any:
    import pyarrow as pa

    return table.column(name).cast(pa.int64()).fill_null(default).to_numpy()


def _some(table: pa.Table, log: str, seq: Any, kind: Any, at: Any, mask: Any, bucket: Any) -> pa.RecordBatch:
    import numpy
    import pyarrow as pa

    chosen = numpy.flatnonzero(mask)
    rows = table.take(pa.array(chosen))
    keys = rows.column("routing_keys").to_pylist()
    numbers = {"bucket": bucket, "seq": seq, "kind": kind, "at": at}
    columns: dict[str, Any] = {name: values[chosen] for name, values in numbers.items()}
    columns |= {
        "record": _numbers(rows, "message", 0),
        "channel": _numbers(rows, "channel", NONE),
        "routing_key": pa.array([(some or [""])[0] or "" for some in keys], pa.string()),
        **{name: rows.column(name) for name in ("vhost", "queue", "exchange", "message_id", "user", "connection")},
        "consumer": rows.column("consumer"),
    }
    return _batch(columns, log, len(chosen))


def _counted(table: pa.Table, log: str, seq: Any, kind: Any, at: Any, window: int) -> pa.RecordBatch:
    """Sums by exchange and window: of what was published, and of what of it reached a queue."""
    import numpy

    lost = numpy.isin(kind, NO_QUEUE_TOOK)
    chosen = numpy.flatnonzero(lost | (kind == PUBLISHED))
    sums: Counter[tuple[str, str, int, bool]] = Counter()
    if len(chosen):
        # numbers for names, so that the rows are counted by numpy
        vhosts, exchanges = _names(table, "vhost"), _names(table, "exchange")
        keys = numpy.stack([vhosts[1], exchanges[1], at // window, lost], axis=1)[chosen]
        found, counts = numpy.unique(keys, axis=0, return_counts=True)
        for (vhost, exchange, begin, was_lost), count in zip(found.tolist(), counts.tolist(), strict=True):
            sums[vhosts[0][vhost], exchanges[0][exchange], begin * window, bool(was_lost)] += count
    groups = sorted({key[:3] for key in sums})
    taken = [sums[(*group, False)] for group in groups]
    columns = {
        "bucket": [_bucket(f"{vhost}\0{exchange}") for vhost, exchange, _ in groups],
        "seq": [int(seq[-1])] * len(groups) if len(seq) else [],
        "kind": [COUNTED] * len(groups),
        "at": [begin for _, _, begin in groups],
        "vhost": [vhost for vhost, _, _ in groups],
        "exchange": [exchange for _, exchange, _ in groups],
        "number": [sums[(*group, True)] + some for group, some in zip(groups, taken, strict=True)],
        "taken": taken,
    }
    return _batch(columns, log, len(groups))


def _names(table: pa.Table, name: str) -> tuple[list[str], Any]:
    """The texts of a column, and which each row has."""
    names: list[str] = []

    def next_number(text: str) -> int:
        names.append(text)
        return len(names) - 1

    places = _keyed(table, name, next_number)
    return [*names, ""], places  # null is the last


def _for_all(log: str, seq: int, kind: int, at: int, until: int) -> pa.RecordBatch:
    one: Mapping[str, Sequence[int]] = {
        "bucket": list(range(BUCKETS)),
        **{name: [value] * BUCKETS for name, value in (("seq", seq), ("kind", kind), ("at", at), ("number", until))},
    }
    return _batch(one, log, BUCKETS)


def _batch(columns: Mapping[str, Any], log: str, count: int) -> pa.RecordBatch:
    """All columns; what is not given or null is empty."""
    import pyarrow as pa

    types = {"string": pa.string(), "int": pa.int32(), "bigint": pa.int64()}
    arrays = []
    for name, kind in FIELDS.items():
        empty: str | int = "" if kind == "string" else NONE
        values = columns.get(name)
        if values is None:
            arrays.append(pa.repeat(pa.scalar(log if name == "log" else empty, types[kind]), count))
            continue
        if isinstance(values, pa.ChunkedArray):
            values = values.combine_chunks()
            values = values.chunk(0) if isinstance(values, pa.ChunkedArray) and values.num_chunks else values
        array = values if isinstance(values, pa.Array) else pa.array(values)
        if pa.types.is_dictionary(array.type):
            array = array.dictionary_decode()
        arrays.append(array.cast(types[kind]).fill_null(empty))
    return pa.RecordBatch.from_arrays(arrays, names=list(FIELDS))
