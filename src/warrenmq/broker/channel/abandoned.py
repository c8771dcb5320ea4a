"""In which order an ended channel gives back what it held.

The oldest first; only quorum queues know a channel's consumers apart, and get everything of one before anything of the
next, in the order of their tags. To them a basic.get is a consumer too, whose tag is its delivery tag as a text. So it
is in RabbitMQ as long as they are few; the order of many is that of a hash there, and here the oldest are first again.

Duty: order. Not here: what becomes of the entries (``Outstanding.give_back``).
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from warrenmq.broker.channel.acks import Taken, Unacked
from warrenmq.broker.channel.sources import Sources
from warrenmq.broker.queue.queue import Consumer, Entry, Queue

FEW: Final = 32  # consumers of a channel on a queue; RabbitMQ keeps so many sorted


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
        out: list[Entry] = []
        for tag in sorted(by_tag):
            out.extend(by_tag[tag])
        return out


def take_all(unacked: Unacked, sources: Sources) -> list[Entry]:
    """Nothing is outstanding any more."""
    return _sorted(unacked.take_tagged_up_to(0)) if sources.mix_consumers() else unacked.take_up_to(0)


def _sorted(taken: Taken) -> list[Entry]:
    others: list[Entry] = []
    known: dict[Queue, _Held] = {}
    queue: Queue | None = None
    held: _Held | None = None  # of this queue
    i: i64 = 0
    while i < len(taken.entries):
        entry = taken.entries[i]
        if entry.queue is not queue:  # seldom: a look-up for each would take long
            queue = entry.queue
            held = known.setdefault(queue, _Held()) if queue.tells_consumers_apart() else None
        if held is not None:
            held.add(taken.tags[i], entry)
        else:
            others.append(entry)
        i += 1
    for each in known.values():
        others.extend(each.in_order())
    return others
