"""A small model that replays the journal: what the events say must be in each queue, who holds it, what each got.

It knows nothing of the broker. Events of one turn have one time and no order among each other, so it counts: an entry
is in its queue when it entered more often than it left, and held when it was delivered more often than it was given
back.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from warrenmq.log.causes import CAUSE_NAMES, LETTER_LOST
from warrenmq.log.event_reader import Fate, Witness
from warrenmq.log.events import FETCHED, REDELIVERED
from warrenmq.log.holders import read_holders
from warrenmq.log.layout import WITHOUT_RECORD
from warrenmq.log.leasings import LEASED
from warrenmq.log.record import decode_message, holder_count, holders_start
from warrenmq.wire.content import decode_properties

WITHDRAWN = "(withdrawn)"  # of what the disk did not take only the place is left


@dataclass
class Entry:
    """A message in a queue, as far as it has been told."""

    entered: int = 0
    left: int = 0
    cause: str = ""  # why it left
    delivered: int = 0
    came_back: int = 0

    @property
    def here(self) -> bool:
        return self.entered > self.left

    @property
    def held(self) -> bool:
        return self.here and self.delivered > self.came_back


@dataclass
class QueueModel:
    """A queue as the journal tells it."""

    entries: dict[int, Entry] = field(default_factory=dict)
    left: Counter[str] = field(default_factory=Counter)
    lost: set[int] = field(default_factory=set)  # as dead letters
    entered: int = 0

    def here(self) -> set[int]:
        return {address for address, entry in self.entries.items() if entry.here}

    def held(self) -> set[int]:
        return {address for address, entry in self.entries.items() if entry.held}

    def entry(self, address: int) -> Entry:
        return self.entries.setdefault(address, Entry())


class Replay(Witness):
    """The model: told everything, it knows what there is."""

    def __init__(self) -> None:
        self.queues: dict[int, QueueModel] = {}
        self.gone: set[int] = set()
        self.messages: dict[int, str] = {}  # message_id by address
        self.published: list[tuple[str, int, str]] = []  # connection, channel, message_id
        self.deliveries: list[tuple[int, int, str, str, bool]] = []  # channel, tag, consumer, message_id, redelivered
        self.reads: list[tuple[int, int, str, str, bool]] = []  # the same, from streams
        self.leases: Counter[tuple[int, str, int]] = Counter()  # queue, lease, position
        self.places: dict[tuple[int, int], int] = {}  # addresses by queue and position, as they entered
        self.gaps = 0
        self._who: dict[int, Any] = {}

    def queue(self, id: int) -> QueueModel:
        return self.queues.setdefault(id, QueueModel())

    def named(self, who: int, text: bytes) -> None:
        self._who[who] = json.loads(text)

    def message(self, _time: int, address: int, data: bytes, at: int, who: int, _number: int) -> None:
        header = decode_message(data, at).header
        id = decode_properties(header).message_id or "" if header else WITHDRAWN
        self.messages[address] = id
        if who:
            sender = self._who[who]
            self.published.append((sender["connection"], sender["channel"], id))
        for queue, position, _expiry, _flags in read_holders(data, holders_start(data, at), holder_count(data, at)):
            self.entered(_time, queue, address, position)

    def unlogged(
        self, _time: int, who: int, id: int, count: int, _number: int, header: bytes, _exchange: bytes, _keys: bytes
    ) -> None:
        for address in range(WITHOUT_RECORD | id, (WITHOUT_RECORD | id) + count):
            self.messages[address] = decode_properties(header).message_id or ""
            if who:
                self.published.append((self._who[who]["connection"], self._who[who]["channel"], self.messages[address]))

    def entered(self, _time: int, queue: int, address: int, position: int) -> None:
        self.places[queue, position] = address
        found = self.queue(queue)
        found.entered += 1
        found.entry(address).entered += 1

    def left(self, _time: int, queue: int, address: int, count: int, cause: int) -> None:
        found = self.queue(queue)
        for one in range(address, address + count):
            entry = found.entry(one)
            entry.left += 1
            entry.cause = CAUSE_NAMES[cause]
            found.left[entry.cause] += 1
            if one in found.lost:  # that has been told already
                self._was_lost(found, entry)

    def letter_lost(self, _time: int, queue: int, address: int) -> None:
        found = self.queue(queue)
        found.lost.add(address)
        if found.entry(address).left:
            self._was_lost(found, found.entry(address))

    def _was_lost(self, queue: QueueModel, entry: Entry) -> None:
        queue.left[entry.cause] -= 1
        queue.left[entry.cause.replace("dead_lettered", "gone")] += 1

    def fate(self, time: int, fate: Fate) -> None:
        if fate.what == LETTER_LOST:
            self.letter_lost(time, fate.queue, WITHOUT_RECORD | fate.id)

    def read(self, _time: int, who: int, queue: int, offset: int, count: int, tag: int) -> None:
        name = self._who[who]
        for i in range(count):
            id = self.messages[self.places[queue, offset + i]]
            self.reads.append((name["channel"], tag + i, name["consumer"], id, False))

    def leased(self, _time: int, who: int, queue: int, position: int, address: int, count: int, what: int) -> None:
        for i in range(count if what == LEASED else 0):  # what comes back is told as such besides
            self.queue(queue).entry(address + i).delivered += 1
            self.leases[queue, self._who[who]["consumer"], position + i] += 1

    def came_back(self, _time: int, queue: int, address: int, _position: int) -> None:
        self.queue(queue).entry(address).came_back += 1

    def queue_gone(self, _time: int, queue: int) -> None:
        self.gone.add(queue)

    def delivered(
        self, _time: int, who: int, queue: int, _position: int, address: int, count: int, tag: int, flags: int
    ) -> None:
        name = self._who[who]
        for i in range(count):
            self.queue(queue).entry(address + i).delivered += 1
            consumer = "" if flags & FETCHED else name["consumer"]
            got = (name["channel"], tag + i, consumer, self.messages[address + i], bool(flags & REDELIVERED))
            self.deliveries.append(got)

    def gap(self, _since: int, _until: int, count: int) -> None:
        self.gaps += count
