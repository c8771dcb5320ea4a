"""The queues of a table of messages, before and after, each from its first message to its last.

Duty: what Spark calls with all messages of one queue, or of queues that give letters to one another. Not here: what
happens there (``waiting``, ``playing``), which queues are worth it (``job``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from warrenmq.broker.exchange.arguments import routing_keys_of
from warrenmq.broker.message import Message
from warrenmq.spark.headers import from_maps
from warrenmq.spark.routing.definitions import Plan
from warrenmq.supposing.letters import REJECTED, LetterWays, published
from warrenmq.supposing.outcomes import ABSENT, REFUSED
from warrenmq.supposing.playing import Arrival, Stay, play
from warrenmq.supposing.queues import Bounds, Place
from warrenmq.supposing.ttl import ttl_of
from warrenmq.supposing.waiting import fates
from warrenmq.wire.content import Properties
from warrenmq.wire.fields import Table

NAMES = ["vhost", "queue", "message", "was_fate", "fate", "was_nacked", "nacked"]
FATES = "vhost string, queue string, message string, was_fate string, fate string, was_nacked boolean, nacked boolean"
OWN = ("expiration", "priority")  # a message's, for every queue
#: what is asked of a message in a queue that may give letters to others, else null
LETTERS = ("exchange", "routing_key", "headers", "header_types", "message_id", "correlation_id")
Documents = tuple[Plan, dict[Place, Bounds]]


def queue_fates(
    before: Documents, after: Documents, waits: Mapping[Place, int | None], until: int
) -> Callable[[tuple[Any, ...], pa.Table], pa.Table]:
    """What Spark sends to the workers: a function, as it takes no object that can be called. ``until``: how far it is
    known who took what, in ms."""

    def fates_of(key: tuple[Any, ...], rows: pa.Table) -> pa.Table:
        vhost, _, alone = (part.as_py() for part in key)
        if alone is not None:
            return _alone(vhost, alone, rows, before[1], after[1], waits, until)
        messages = _arrivals(rows, "was_place"), _arrivals(rows, "is_place")
        own = {queue: wait for (place, queue), wait in waits.items() if place == vhost}
        was, now = (
            play(LetterWays(vhost, topology, bounds), own, arrivals, until)
            if (topology := plan.path().router.vhosts.get(vhost)) is not None
            else None
            for (plan, bounds), arrivals in zip((before, after), messages, strict=True)
        )
        sides = [(one.fates, one.nacked) if one is not None else ({}, set()) for one in (was, now)]
        names = dict.fromkeys(key for fates, _ in sides for key in fates)
        columns = [
            [vhost] * len(names),
            [queue for _, queue in names],
            [message for message, _ in names],
            *([fates.get(key, ABSENT) for key in names] for fates, _ in sides),
            *([message in nacked for message, _ in names] for _, nacked in sides),
        ]
        return _told(columns)

    return fates_of


def _alone(
    vhost: str,
    queue: str,
    rows: pa.Table,
    before: Mapping[Place, Bounds],
    after: Mapping[Place, Bounds],
    waits: Mapping[Place, int | None],
    until: int,
) -> pa.Table:
    """One queue that neither gives nor gets letters."""
    rows = rows.sort_by([("at", "ascending"), ("number", "ascending")])
    place = (vhost, queue)
    was = _there(rows, "was_place", before.get(place, Bounds()), waits.get(place), until)
    now = _there(rows, "is_place", after.get(place, Bounds()), waits.get(place), until)
    names = [pa.repeat(vhost, rows.num_rows), pa.repeat(queue, rows.num_rows)]
    nacked = [[fate == REFUSED for fate in side] for side in (was, now)]
    return _told([*names, rows.column("message"), was, now, *nacked])


def _told(columns: Sequence[Any]) -> pa.Table:
    kinds = [pa.string()] * 5 + [pa.bool_()] * 2
    arrays = [
        column if isinstance(column, (pa.Array, pa.ChunkedArray)) else pa.array(column, kind)
        for column, kind in zip(columns, kinds, strict=True)
    ]
    return pa.Table.from_arrays(arrays, names=NAMES)


def _there(rows: pa.Table, name: str, bounds: Bounds, wait: int | None, until: int) -> list[str]:
    """The fates of those rows that come to the queue; the others are not there. What was never in a queue is taken from
    it as others were: half of them had waited so long or less."""
    named = (name, "was_place", "at", "body_size", "expiration", "priority", "taken")
    there, recorded, times, sizes, expirations, priorities, taken = (rows.column(each).to_pylist() for each in named)
    come = [row for row, place in enumerate(there) if place]
    left = [
        times[row] + wait if taken[row] is None and not recorded[row] and wait is not None else taken[row]
        for row in come
    ]
    told = fates(
        bounds,
        [
            (times[row], sizes[row] or 0, ttl_of(expirations[row]), out, priorities[row] or 0)
            for row, out in zip(come, left, strict=True)
        ],
        until,
    )
    found = [ABSENT] * rows.num_rows
    for row, fate in zip(come, told, strict=True):
        found[row] = fate
    return found


def _arrivals(rows: pa.Table, name: str) -> list[Arrival]:
    """The messages that come to these queues, in their order, each with its queues in the order of the walk."""
    rows = rows.sort_by([(column, "ascending") for column in ("at", "number", "message", name)])
    found: list[Arrival] = []
    queues: list[str] = []
    recorded: list[str] = []
    for row in rows.to_pylist():
        if not row[name]:
            continue
        if not found or found[-1].message != row["message"]:
            queues, recorded = [], []
            found.append(_arrival(row, queues, recorded))
        queues.append(row["queue"])
        if row["was_place"]:
            recorded.append(row["queue"])
    return found


def _arrival(row: dict[str, Any], queues: list[str], recorded: list[str]) -> Arrival:
    stays: dict[str, list[Stay]] = {}
    for stay in row["stays"] or ():
        one = Stay(_ms(stay["entered"]), _ms(stay["left"]), _ms(stay["given_back"]), stay["why"] or REJECTED)
        stays.setdefault(stay["queue"], []).append(one)
    at, size, ttl, priority = row["at"], row["body_size"] or 0, ttl_of(row["expiration"]), row["priority"] or 0
    return Arrival(row["message"], at, queues, size, ttl, priority, _Content(row), stays, recorded)


class _Content:
    """A message by its row, made when it is a letter."""

    def __init__(self, row: dict[str, Any]) -> None:
        self._row = row

    def __call__(self) -> Message:
        row = self._row
        headers: Table | None = None
        if row["headers"]:
            headers = from_maps(dict(row["headers"]), dict(row["header_types"] or []))
        properties = Properties(
            headers=headers,
            message_id=row["message_id"],
            correlation_id=row["correlation_id"],
            expiration=row["expiration"],
        )
        keys, hidden = routing_keys_of(row["routing_key"] or "", headers)
        return published(row["exchange"] or "", keys, hidden, properties, row["body_size"] or 0)


def _ms(time: int | None) -> int | None:
    return None if time is None else time // 1000
