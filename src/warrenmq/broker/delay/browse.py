"""Looking around in the schedules, and among retries: what waits, in order of due time, a bounded step at a time.

Duty: walk the sources of a vhost together, from a place where an earlier step stopped, and pick what a filter wants.
The place is a position in the order, not in a list, so what arrives or leaves meanwhile does no harm. Not here: JSON,
permissions (``http/messages/delayed.py``).
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from warrenmq.broker.delay.source import Source
from warrenmq.broker.message import packed_keys_of, unpack_keys
from warrenmq.broker.records import Content
from warrenmq.log.format import LogError, StoredMessage
from warrenmq.wire.content import body_size
from warrenmq.wire.fields import as_text

BEFORE_ALL: Final = -1
LAST_KEY: Final = 0x7FFFFFFFFFFFFFFF


@final
class Place:
    """The place behind the entry with this due time, schedule and key. Written as text it is a continuation token."""

    def __init__(self, due: i64, schedule: i64, key: i64) -> None:
        self.due: Final = due
        self.schedule: Final = schedule
        self.key: Final = key

    def token(self) -> str:
        return f"{self.due:x}.{self.schedule:x}.{self.key:x}"


def start() -> Place:
    return Place(BEFORE_ALL, 0, 0)


def place_of(token: str) -> Place | None:
    """None when the text is no token."""
    parts = token.split(".")
    if len(parts) != 3:
        return None
    numbers: list[int] = []
    for part in parts:
        try:
            number = int(part, 16)
        except ValueError:
            return None
        if not 0 <= number < 1 << 63:
            return None
        numbers.append(number)
    return Place(numbers[0], numbers[1], numbers[2])


@final
class Filter:
    """A filter of waiting messages: everything by default."""

    def __init__(self) -> None:
        self.routing_key: str | None = None
        self.message_id: str | None = None
        self.headers: dict[str, str] = {}
        self.since: i64 = 0  # due at this time or later
        self.until: i64 = LAST_KEY  # due at this time or earlier

    def reads(self) -> bool:
        """Has the content to be read to decide?"""
        return self.routing_key is not None or self.message_id is not None or len(self.headers) > 0

    def wants(self, stored: StoredMessage) -> bool:
        if self.routing_key is not None and self.routing_key not in unpack_keys(packed_keys_of(stored)):
            return False
        content = Content(stored.header, b"")
        if self.message_id is not None and content.properties.message_id != self.message_id:
            return False
        for name, value in self.headers.items():
            field = content.headers.get(name)
            if field is None or as_text(field) != value:
                return False
        return True


@final
class Waiting:
    """One message that waits."""

    def __init__(self, source: Source, due: i64, key: i64, stored: StoredMessage | None) -> None:
        self.source: Final = source
        self.due: Final = due
        self.key: Final = key
        self._stored: StoredMessage | None = stored

    def stored(self, most: i64) -> StoredMessage:
        """The data, and at least so many octets of a long body, if it has them."""
        found = self._stored
        if found is None or (len(found.body) < most and len(found.body) < body_size(found.header)):
            found = self.source.peek(self.key, most)
            self._stored = found
        return found

    def id(self) -> str:
        return self.source.id_of(self.due, self.key)


@final
class Step:
    """The finds of one step."""

    def __init__(self) -> None:
        self.found: list[Waiting] = []
        self.looked: i64 = 0
        self.place: Place | None = None  # where to go on; None at the end


def step(sources: list[Source], wanted: Filter, behind: Place, most: i64, looks: i64) -> Step:
    """Go on behind a place until ``most`` are found or ``looks`` were looked at, in order of due time."""
    result = Step()
    pending: list[list[tuple[int, int]]] = []
    heads: list[int] = []
    chunk: i64 = looks if looks < 256 else 256
    for source in sources:
        pending.append(_behind(source, wanted, behind, chunk))
        heads.append(0)
    while True:
        at = _next(sources, pending, heads)
        if at < 0 or pending[at][heads[at]][0] > wanted.until:
            result.place = None
            return result
        due, key = pending[at][heads[at]]
        source = sources[at]
        if result.looked >= looks or len(result.found) >= most:
            return result  # ``place`` is that of the last one
        heads[at] += 1
        if heads[at] == len(pending[at]):
            pending[at] = source.after(due, key, chunk)
            heads[at] = 0
        result.looked += 1
        result.place = Place(due, source.number(), key)
        if wanted.reads():
            try:
                stored = source.peek(key, 0)
            except LogError:
                continue
            if wanted.wants(stored):
                result.found.append(Waiting(source, due, key, stored))
        else:
            result.found.append(Waiting(source, due, key, None))


def _behind(source: Source, wanted: Filter, behind: Place, chunk: i64) -> list[tuple[int, int]]:
    if behind.due < wanted.since:
        return source.after(wanted.since, -1, chunk)
    number = source.number()
    if number == behind.schedule:
        return source.after(behind.due, behind.key, chunk)
    return source.after(behind.due, LAST_KEY if number < behind.schedule else -1, chunk)


def _next(sources: list[Source], pending: list[list[tuple[int, int]]], heads: list[int]) -> int:
    """Which source comes next, by (due, its number, key); -1 when none has anything left."""
    best = -1
    best_due: i64 = 0
    best_id: i64 = 0
    for i in range(len(sources)):
        if heads[i] < len(pending[i]):
            due: i64 = pending[i][heads[i]][0]
            id = sources[i].number()
            if best < 0 or due < best_due or (due == best_due and id < best_id):
                best = i
                best_due = due
                best_id = id
    return best
