"""The queues of a table of messages, before and after, each from its first message to its last.

Duty: what Spark calls with all messages of one queue. Not here: one queue (``waiting``), which queues are worth it
(``job``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from warrenmq.broker.expiration import read_expiration
from warrenmq.spark.supposing.queues import Bounds, Place
from warrenmq.spark.supposing.waiting import fates
from warrenmq.wire.replies import AmqpError

FATES = "vhost string, queue string, message string, was_fate string, fate string"
ABSENT = "absent"


def queue_fates(
    before: dict[Place, Bounds], after: dict[Place, Bounds], until: int
) -> Callable[[tuple[Any, ...], pa.Table], pa.Table]:
    """What Spark sends to the workers: a function, as it takes no object that can be called. ``until``: how far it is
    known who took what, in ms."""

    def of_queue(key: tuple[Any, ...], rows: pa.Table) -> pa.Table:
        vhost, queue = (part.as_py() for part in key)
        rows = rows.sort_by([("at", "ascending"), ("number", "ascending")])
        was = _there(rows, "was_there", before.get((vhost, queue), Bounds()), until)
        now = _there(rows, "is_there", after.get((vhost, queue), Bounds()), until)
        names = [pa.repeat(vhost, rows.num_rows), pa.repeat(queue, rows.num_rows)]
        columns = [*names, rows.column("message"), pa.array(was, pa.string()), pa.array(now, pa.string())]
        return pa.Table.from_arrays(columns, names=["vhost", "queue", "message", "was_fate", "fate"])

    return of_queue


def _there(rows: pa.Table, name: str, bounds: Bounds, until: int) -> list[str]:
    """The fates of those rows that come to the queue; the others are not there."""
    there, times, sizes, expirations, taken = (
        rows.column(column).to_pylist() for column in (name, "at", "body_size", "expiration", "taken")
    )
    come = [row for row, flag in enumerate(there) if flag]
    told = fates(bounds, [(times[row], sizes[row] or 0, _ttl(expirations[row]), taken[row]) for row in come], until)
    found = [ABSENT] * rows.num_rows
    for row, fate in zip(come, told, strict=True):
        found[row] = fate
    return found


def _ttl(text: str | None) -> int | None:
    try:
        ttl = int(read_expiration(text))
    except AmqpError:  # then it was refused, and is in no queue
        return None
    return None if ttl < 0 else ttl
