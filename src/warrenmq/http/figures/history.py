"""What counters were, every five seconds, for as long as RabbitMQ 3.10 keeps it: packed, and only where it changed.

Duty: to keep and to find values. Who is sampled is ``sampler.py``, what is made of them ``rates.py``. Nothing heavy is
imported here: samples are taken before anybody has loaded the HTTP app.

Time is counted in ticks of ``TICK`` seconds since 1970. A ``Level`` holds values at every so many ticks: the newest in
full, and before that rows of differences in 32 bits (64 where that is too little), one for each time that something
changed. So a queue that never had a message has nothing here, one that is idle its newest values and no rows, and one
that changes all the time 121 rows at five seconds and 60 at a minute.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence

TICK = 5  # seconds

# (seconds between samples, seconds that they are kept)
BASIC = ((5, 605), (60, 3_660))  # queues, exchanges, connections, channels
DETAILED = ((5, 605),)  # pairs of them
GLOBAL = (*BASIC, (600, 29_400), (1_800, 86_400))  # vhosts, the node

MESSAGES = ("messages", "messages_ready", "messages_unacknowledged")
PUBLISHING = ("publish", "confirm", "return_unroutable", "drop_unroutable")
DELIVERIES = (
    *("deliver", "deliver_no_ack", "get", "get_no_ack", "deliver_get"),
    *("redeliver", "get_empty", "ack"),
)
OCTETS = ("recv_oct", "send_oct")
CHURN = (
    *("connection_created", "connection_closed", "channel_created", "channel_closed"),
    *("queue_declared", "queue_created", "queue_deleted"),
)
DISK = (
    *("confirms_waited", "confirm_microseconds", "sync_microseconds"),
    *("io_sync_count", "io_write_count", "io_write_bytes"),
)
COLUMNS: dict[str, dict[str, int]] = {
    kind: {name: place for place, name in enumerate(names)}
    for kind, names in {
        "queue": (*MESSAGES, "publish", *DELIVERIES),
        "exchange": ("publish_in", "publish_out"),
        "channel": (*PUBLISHING, *DELIVERIES),
        "connection": OCTETS,
        "exchange and queue": ("publish",),
        "channel and exchange": PUBLISHING,
        "channel and queue": DELIVERIES,
        "vhost": (*MESSAGES, *PUBLISHING, *DELIVERIES, *OCTETS),
        "node": (*CHURN, *DISK, "fd_used", "sockets_used", "mem_used", "disk_free"),
    }.items()
}

# which of them only grow
FIRST_COUNTER = {"queue": len(MESSAGES), "vhost": len(MESSAGES)}
LAST_COUNTER = {"node": len(CHURN) + len(DISK)}


class Level:
    """Values at every ``step`` seconds, in places of that length."""

    __slots__ = ("_first", "newest", "_place", "_rows")

    def __init__(self) -> None:
        self.newest: array[int] | None = None
        self._place = 0  # since when the newest values are these
        self._first = 0  # before the first row; nothing is known of earlier places
        self._rows: array[int] | None = None  # places since the row before, then the difference of each value

    def put(self, place: int, values: Sequence[int], keep: int) -> None:
        """What they are at this place; those of more than ``keep`` places ago are forgotten."""
        newest = self.newest
        if newest is None:
            self.newest = array("q", values)
            self._place = self._first = place
            return
        if list(newest) != list(values) and place > self._place:
            row = [place - self._place, *(now - then for now, then in zip(values, newest, strict=True))]
            rows = array("i") if self._rows is None else self._rows
            try:
                rows.extend(row)
            except OverflowError:
                del rows[len(rows) - len(rows) % len(row) :]  # what of it went in
                rows = array("q", rows)
                rows.extend(row)
            self._rows = rows
            self.newest = array("q", values)
            self._place = place
        self._forget(place - keep)

    def _forget(self, before: int) -> None:
        rows = self._rows
        if rows is None or self.newest is None:
            return
        width = len(self.newest) + 1
        gone = 0
        while gone < len(rows) and self._first + rows[gone] <= before:
            self._first += rows[gone]
            gone += width
        if gone:
            self._rows = rows[gone:] if gone < len(rows) else None

    def values(self, column: int, places: Sequence[int]) -> list[int]:
        """What it was at these places, the last first; 0 where nothing is known."""
        newest = self.newest
        if newest is None:
            return [0] * len(places)
        rows = array("i") if self._rows is None else self._rows
        width = len(newest) + 1
        row = len(rows) - width
        value, since = newest[column], self._place
        found: list[int] = []
        for place in places:
            while place < since and row >= 0:
                value -= rows[row + 1 + column]
                since -= rows[row]
                row -= width
            found.append(value if place >= since else 0)
        return found

    def growth(self, column: int, place: int, before: int) -> int:
        """By how much it grew from one place to the newest of all, at little cost where nothing changed."""
        if self.newest is None or self._place <= before:
            return 0
        if self._rows is not None:
            width = len(self.newest) + 1
            if self._place - self._rows[-width] <= before:
                return self._rows[1 + column - width]  # all of it at once, as nearly always
        now, then = self.values(column, (place, before))
        return now - then

    def octets(self) -> int:
        """What it takes of memory, in about."""
        return 64 + sum(64 + len(one) * one.itemsize for one in (self.newest, self._rows) if one is not None)


class Track:
    """The past of one object's counters."""

    __slots__ = ("levels",)

    def __init__(self, levels: int) -> None:
        self.levels = tuple(Level() for _ in range(levels))

    def fell(self, values: Sequence[int], first: int, last: int) -> bool:
        """Is a counter less than it was? Then it is another object, of the same name."""
        newest = self.levels[0].newest
        return newest is not None and any(values[place] < newest[place] for place in range(first, last))

    def octets(self) -> int:
        return 72 + sum(level.octets() for level in self.levels)


Tracks = dict[str, dict[str, dict[str, Track]]]  # kind, vhost ("" where there is none), name


class History:
    """The tracks of all objects, and when samples were taken."""

    def __init__(self) -> None:
        self._tracks: Tracks = {}
        self._coming: Tracks = {}
        self.tick = 0  # of the last samples
        self.before = 0  # of those before them

    def find(self, kind: str, vhost: str, name: str) -> Track | None:
        return self._tracks.get(kind, {}).get(vhost, {}).get(name)

    def of_kind(self, kind: str) -> Mapping[str, Mapping[str, Track]]:
        """By vhost and name, those of the last round."""
        return self._tracks.get(kind, {})

    # -- a round of samples ------------------------------------------------------------------------------------------

    def put(
        self, tick: int, kind: str, vhost: str, name: str, values: Sequence[int], before: Sequence[int] = ()
    ) -> None:
        """One of the samples of this tick, which is later than those before; complete when ``done`` is called.
        ``before``: what it was at the last tick, where it is new and had been counted before."""
        track = self.find(kind, vhost, name)
        if track is None or track.fell(values, FIRST_COUNTER.get(kind, 0), LAST_COUNTER.get(kind, len(values))):
            if not any(values):
                return
            track = Track(len(levels_of(kind)))
            if before:
                track.levels[0].put(self.tick, before, DETAILED[0][1] // TICK)
        for level, (step, keep) in zip(track.levels, levels_of(kind), strict=True):
            ticks = step // TICK
            if tick % ticks == 0 or (self.tick and tick // ticks != self.tick // ticks):
                level.put(tick // ticks, values, keep // step)
        self._coming.setdefault(kind, {}).setdefault(vhost, {})[name] = track

    def done(self, tick: int) -> None:
        """All there is was sampled: what is gone is forgotten."""
        self._tracks, self._coming = self._coming, {}
        self.before, self.tick = self.tick, tick

    def octets(self) -> int:
        """What all of it takes of memory, in about."""
        named = (some for kind in self._tracks.values() for some in kind.values())
        return sum(64 + track.octets() for some in named for track in some.values())


def pair(one: str, other: str) -> str:
    """How what two objects have together is named here."""
    return f"{one}\0{other}"


def levels_of(kind: str) -> tuple[tuple[int, int], ...]:
    if kind in ("vhost", "node"):
        return GLOBAL
    return DETAILED if " and " in kind else BASIC
