"""A small model that replays the journal: what the events say must be in each queue, who holds it, what each got.

It knows nothing of the broker. Events of one turn have one time and no order among each other, so it counts: an entry
is in its queue when it entered more often than it left, and held when it was delivered more often than it was given
back or settled.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from warrenmq.broker.records import AS_QUEUE
from warrenmq.journal.names import queue_of
from warrenmq.log.causes import CAUSE_NAMES, LETTER_LOST
from warrenmq.log.event_reader import Fate, Witness
from warrenmq.log.events import FETCHED, REDELIVERED
from warrenmq.log.holders import read_holders
from warrenmq.log.layout import WITHOUT_RECORD
from warrenmq.log.leasings import LEASED
from warrenmq.log.record import decode_message, holder_count, holders_start
from warrenmq.wire.content import decode_properties

OF_WHAT_IS_HELD = ("acked", "auto_acked", "lease_settled", "rejected_", "delivery_limit_")


@dataclass
class Entry:
    """A message in a queue, as far as it has been told."""

    entered: int = 0
    left: int = 0
    cause: str = ""  # why it left
    delivered: int = 0
    came_back: int = 0
    settled: int = 0  # left for a cause that is said of what somebody has

    @property
    def here(self) -> int:
        return self.entered - self.left

    @property
    def held(self) -> int:
        return self.delivered - self.came_back - self.settled


@dataclass
class QueueModel:
    """A queue as the journal tells it."""

    entries: dict[int, Entry] = field(default_factory=dict)
    gone: Counter[str] = field(default_factory=Counter)  # by cause, but for dead letters
    letters: dict[int, list[str]] = field(default_factory=dict)  # the causes of those
    lost: Counter[int] = field(default_factory=Counter)  # and how many of them reached nobody
    entered: int = 0

    def here(self) -> Counter[int]:
        """How often each is: a copy may come to where the same one is."""
        return Counter({address: entry.here for address, entry in self.entries.items() if entry.here})

    def held(self) -> Counter[int]:
        return Counter({address: entry.held for address, entry in self.entries.items() if entry.held})

    @property
    def left(self) -> Counter[str]:
        """Why messages left. What a letter becomes may be told before it left."""
        found = +self.gone
        for address, causes in self.letters.items():
            for number, cause in enumerate(causes):
                is_lost = number < self.lost[address]
                found[cause.replace("dead_lettered", "gone") if is_lost else cause] += 1
        return found

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
        self._interruptions: list[tuple[int, int]] = []  # from when to when (µs) not all is told, because of a crash
        self.delayed: set[int] = set()  # which are no queues
        self.fates: Counter[int] = Counter()  # what became of messages of which nothing else is told
        self._who: dict[int, Any] = {}

    def queue(self, id: int) -> QueueModel:
        return self.queues.setdefault(id, QueueModel())

    def named(self, who: int, text: bytes) -> None:
        self._who[who] = json.loads(text)

    def message(self, _time: int, address: int, data: bytes, at: int, who: int, _number: int) -> None:
        id = decode_properties(decode_message(data, at).header).message_id or ""
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
            entry.settled += entry.cause.startswith(OF_WHAT_IS_HELD)
            if entry.cause.endswith("_dead_lettered"):
                found.letters.setdefault(one, []).append(entry.cause)
            else:
                found.gone[entry.cause] += 1

    def letter_lost(self, _time: int, queue: int, address: int) -> None:
        self.queue(queue).lost[address] += 1

    def defined(self, kind: str, _key: str, value: bytes) -> None:
        queue = queue_of(kind, value)
        if queue is not None and queue[2].startswith(AS_QUEUE):
            self.delayed.add(queue[0])

    def left_delayed(self) -> Counter[str]:
        """Why messages left delayed exchanges; what was in one that was deleted went with it."""
        found: Counter[str] = Counter()
        for id in self.delayed:
            found.update(self.queue(id).left)
            if id in self.gone:
                found["deleted"] += self.queue(id).here().total()
        return found

    def fate(self, time: int, fate: Fate) -> None:
        self.fates[int(fate.what)] += 1
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

    def interrupted(self, since: int, until: int) -> None:
        self._interruptions.append((since, until))

    def admits(self, time: int) -> bool:
        """Is it said that not all of this time (µs) is told?"""
        return any(since <= time <= until for since, until in self._interruptions)
