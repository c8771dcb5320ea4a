"""What of a queue does not wait for its turn: with consumers, leased, dead-lettering at least once, damaged.

Duty: those with the lowest positions of all that is held, wherever it is, found in steps: a queue may have a million
deliveries outstanding, in no order. Nothing is changed. Not here: what waits (``fifo.py``), reading content
(``peek.py``), and who has deliveries (``connection/connections.py``).
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64, trait

from warrenmq.broker.queue.damaged import Damaged
from warrenmq.broker.queue.lease import Lease
from warrenmq.broker.queue.letters import Letter
from warrenmq.broker.queue.place import Held, Place
from warrenmq.broker.queue.queue import Entry, Queue

UNACKED: Final = "unacked"
LEASED: Final = "leased"
DELAYED: Final = "delayed"  # given back with a delay
DEAD_LETTERING: Final = "dead-lettering"
DAMAGED: Final = "damaged"
NOT_HERE: Final = -1


class Source:
    """Some messages of a queue that are held, numbered in whatever order."""

    def __len__(self) -> int:
        raise NotImplementedError

    def position(self, i: i64) -> i64:
        """NOT_HERE when there is nothing of this queue under the number."""
        raise NotImplementedError

    def place(self, i: i64) -> Place:
        raise NotImplementedError


@trait
class Holder:
    """Whoever has deliveries."""

    def describe(self) -> dict[str, object]:
        raise NotImplementedError


@final
class Deliveries(Source):
    """The entries that one channel has of a queue, among others' and gaps; or those on their way back."""

    def __init__(self, queue: Queue, entries: list[Entry | None], holder: Holder) -> None:
        self._queue: Final = queue
        self.entries: Final = entries
        self._holder: Final = holder

    def __len__(self) -> int:
        return len(self.entries)

    def position(self, i: i64) -> i64:
        entry = self.entries[i]
        return NOT_HERE if entry is None or entry.queue is not self._queue else entry.position

    def place(self, i: i64) -> Place:
        entry = self.entries[i]
        assert entry is not None
        about = self._holder.describe()
        consumer = entry.consumer
        if consumer is not None:
            about["consumer_tag"] = consumer.tag
        original = entry.original
        message = entry.message if original is None else original
        held = Held(UNACKED, entry.delivered_at, about)
        return Place(entry.position, message.size, entry.redelivered, entry.expires_at, 0, message, held)


@final
class Leased(Source):
    """The entries under one lease."""

    def __init__(self, lease: Lease) -> None:
        self._lease: Final = lease

    def __len__(self) -> int:
        return self._lease.count()

    def position(self, i: i64) -> i64:
        return self._lease.positions[i] if self._lease.addresses[i] else NOT_HERE

    def place(self, i: i64) -> Place:
        lease = self._lease
        about: dict[str, object] = {"lease": lease.id, "until": int(lease.expires_at)}
        if lease.owner:
            about["owner"] = lease.owner
        held = Held(DELAYED if lease.delayed else LEASED, lease.expires_at - lease.ttl, about)
        address = lease.addresses[i]
        return Place(lease.positions[i], lease.size_of(i), lease.redelivered(i), lease.expiries[i], address, None, held)


@final
class WaitingLetters(Source):
    """Dead letters that stay with their queue until all targets have them."""

    def __init__(self, queue: Queue, letters: list[Letter]) -> None:
        self._queue: Final = queue
        self._letters: Final = letters

    def __len__(self) -> int:
        return len(self._letters)

    def position(self, i: i64) -> i64:
        return self._letters[i].position

    def place(self, i: i64) -> Place:
        letter = self._letters[i]
        about: dict[str, object] = {"reason": letter.reason, "taken_by": [name for name in letter.taken or [] if name]}
        held = Held(DEAD_LETTERING, self._queue.marks.since(letter.position), about)
        return Place(letter.position, letter.size, True, 0, letter.address, None, held)


@final
class SetAside(Source):
    """The entries that are damaged on disk, and out of everybody's way until an operator drops them."""

    def __init__(self, queue: Queue, damaged: list[Damaged]) -> None:
        self._queue: Final = queue
        self._damaged: Final = damaged

    def __len__(self) -> int:
        return len(self._damaged)

    def position(self, i: i64) -> i64:
        return self._damaged[i].position

    def place(self, i: i64) -> Place:
        one = self._damaged[i]
        about: dict[str, object] = {"reason": one.problem, "id": f"{self._queue.id}-{one.position}"}
        return Place(one.position, one.size, False, one.expires_at, one.address, None, Held(DAMAGED, 0, about))


@final
class LowestHeld:
    """The search for the held messages with the lowest positions from ``first`` up to ``end``."""

    def __init__(self, sources: list[Source], first: i64, end: i64, most: i64) -> None:
        self._sources: Final = sources
        self._first: Final = first
        self._most: Final = most
        self.end: i64 = end  # up to here all of them are found, when the search is over
        self._found: list[tuple[int, int, int]] = []  # position, source, number there
        self._source: i64 = 0
        self._next: i64 = 0

    def step(self, looks: i64) -> bool:
        """Look at so many; says whether that was all."""
        while self._source < len(self._sources):
            source = self._sources[self._source]
            count: i64 = len(source)
            while self._next < count:
                if looks <= 0:
                    return False
                looks -= 1
                position = source.position(self._next)
                if self._first <= position < self.end:
                    self._found.append((int(position), int(self._source), int(self._next)))
                    if len(self._found) >= 2 * self._most:
                        self._keep_lowest()
                self._next += 1
            self._source += 1
            self._next = 0
        self._keep_lowest()
        return True

    def _keep_lowest(self) -> None:
        self._found.sort()
        if len(self._found) > self._most:
            self.end = self._found[self._most][0]
            del self._found[self._most :]

    def places(self) -> list[Place]:
        """By position."""
        return [self._sources[source].place(number) for _, source, number in self._found]
