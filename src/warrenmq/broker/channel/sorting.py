"""In which order deliveries are settled together, found out some at a time: a channel may hold a million of them.

What a client refuses goes one (queue, consumer) after the other, by their names. What an ended channel gives back goes
the oldest first; only quorum queues know a channel's consumers apart, and get everything of one before anything of the
next, in the order of their tags. To them a basic.get is a consumer too, whose tag is its delivery tag as a text. So it
is in RabbitMQ as long as they are few; the order of many is that of a hash there, and here the oldest are first again.

Duty: order. Not here: what becomes of the entries (``settling.py``, ``Outstanding.give_back``).
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from warrenmq.broker.channel.acks import Taken
from warrenmq.broker.queue.queue import Consumer, Entry, Queue

FEW: Final = 32  # consumers of a channel on a queue; RabbitMQ keeps so many sorted


class Sorting:
    """Deliveries that are being put in order."""

    def __init__(self, entries: list[Entry]) -> None:
        self.entries: Final = entries  # all of them, as they came
        self._seen: i64 = 0

    def look_at(self, count: i64) -> bool:
        """So many more of them; says whether that was the last."""
        i = self._seen
        end: i64 = min(len(self.entries), i + count)
        while i < end:
            self._add(self.entries[i])
            i += 1
        self._seen = end
        return end == len(self.entries)

    def _add(self, entry: Entry) -> None:
        raise NotImplementedError

    def in_order(self) -> list[Entry]:
        """When all have been looked at."""
        raise NotImplementedError


@final
class Refused(Sorting):
    """Deliveries that a client refuses."""

    def __init__(self, entries: list[Entry]) -> None:
        super().__init__(entries)
        self._groups: Final[dict[tuple[str, str], list[Entry]]] = {}
        self._queue: Queue | None = None
        self._consumer: Consumer | None = None
        self._group: list[Entry] = []  # theirs

    def _add(self, entry: Entry) -> None:
        queue, consumer = entry.queue, entry.consumer
        if queue is not self._queue or consumer is not self._consumer:  # a look-up for each would take long
            self._queue = queue
            self._consumer = consumer
            key = (queue.name.name, "" if consumer is None else consumer.tag)
            self._group = self._groups.setdefault(key, [])
        self._group.append(entry)

    def groups(self) -> list[list[Entry]]:
        """One (queue, consumer) after the other, when all have been looked at."""
        return [self._groups[key] for key in sorted(self._groups)]

    def in_order(self) -> list[Entry]:
        if len(self._groups) < 2:
            return self.entries
        return _joined(self.groups())


@final
class _Held:
    """What a channel holds of one quorum queue."""

    def __init__(self) -> None:
        self._all: Final[list[Entry]] = []
        self._by_tag: Final[dict[str, list[Entry]]] = {}
        self._last: Consumer | None = None
        self._of_last: list[Entry] = []

    def add(self, tag: int, entry: Entry) -> None:
        self._all.append(entry)
        consumer = entry.consumer
        if consumer is None or consumer is not self._last:
            self._last = consumer
            self._of_last = self._by_tag.setdefault(str(tag) if consumer is None else consumer.tag, [])
        self._of_last.append(entry)

    def in_order(self) -> list[Entry]:
        by_tag = self._by_tag
        if len(by_tag) == 1 or len(by_tag) > FEW:
            return self._all
        return _joined([by_tag[tag] for tag in sorted(by_tag)])


@final
class Abandoned(Sorting):
    """Deliveries that an ended channel gives back, some of them to quorum queues."""

    def __init__(self, taken: Taken) -> None:
        super().__init__(taken.entries)
        self._taken: Final = taken
        self._others: Final[list[Entry]] = []
        self._known: Final[dict[Queue, _Held]] = {}
        self._queue: Queue | None = None
        self._held: _Held | None = None  # of this queue
        self._at: i64 = 0

    def _add(self, entry: Entry) -> None:
        queue = entry.queue
        if queue is not self._queue:
            self._queue = queue
            self._held = self._known.setdefault(queue, _Held()) if queue.tells_consumers_apart() else None
        if self._held is not None:
            self._held.add(self._taken.tags[self._at], entry)
        else:
            self._others.append(entry)
        self._at += 1

    def in_order(self) -> list[Entry]:
        return _joined([self._others, *[held.in_order() for held in self._known.values()]])


def _joined(groups: list[list[Entry]]) -> list[Entry]:
    out: list[Entry] = []
    for group in groups:
        out.extend(group)
    return out
