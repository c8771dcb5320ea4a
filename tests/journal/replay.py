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

from warrenmq.log.causes import CAUSE_NAMES
from warrenmq.log.event_reader import Witness
from warrenmq.log.events import FETCHED, REDELIVERED
from warrenmq.log.holders import read_holders
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

    def entered(self, _time: int, queue: int, address: int, _position: int) -> None:
        found = self.queue(queue)
        found.entered += 1
        found.entry(address).entered += 1

    def left(self, _time: int, queue: int, address: int, count: int, cause: int) -> None:
        found = self.queue(queue)
        found.left[CAUSE_NAMES[cause]] += count
        for one in range(address, address + count):
            entry = found.entry(one)
            entry.left += 1
            entry.cause = CAUSE_NAMES[cause]

    def letter_lost(self, _time: int, queue: int, address: int) -> None:
        found = self.queue(queue)
        cause = found.entry(address).cause
        found.left[cause] -= 1
        found.left[cause.replace("dead_lettered", "gone")] += 1

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
