"""A lease: messages of a queue held out of consumers' reach under an id, readable again and again, settled by that id.

Spark reads queues this way: a delivery tag dies with its channel, a lease survives connections and restarts. A lease
that runs out unrenewed, or is released, puts its messages back at their place, flagged redelivered. So a message is
delayed by a lease of its own that nobody settles.

Duty: one lease, and what is in each of its slots. Not here: giving it out, settling it, and all of it in the log
(``leases.py``); reading it (``lease_view.py``); HTTP.
"""

from __future__ import annotations

import json
from typing import Final, final

from librt.vecs import append, vec
from mypy_extensions import i64, trait

from warrenmq.broker.queue.queue import Queue
from warrenmq.broker.services.timers import Timer
from warrenmq.log.events import Named

REDELIVERED: Final = 1
DEFAULT_TTL: Final = 7 * 86_400_000


class LeaseError(Exception):
    """A lease that cannot be used: ``status`` is what the HTTP API answers."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


@trait
class Lessor:
    """The giver of a lease."""

    def expired(self, lease: Lease) -> None:
        """Its time is over: what is left goes back to the queue."""
        raise NotImplementedError

    def set_aside(self, lease: Lease, slot: i64) -> None:
        """This slot's message is damaged: it leaves the lease, so that nobody settles what nobody could read."""
        raise NotImplementedError


@final
class Lease(Timer):
    """A lease of messages. Its slots are numbered from 0 in queue order; a settled one stays as a gap, so numbers keep
    their meaning. At its end what is left goes back to the queue."""

    def __init__(self, lessor: Lessor, queue: Queue, id: str, owner: str, key: str, ttl: i64) -> None:
        super().__init__()
        self.lessor: Final = lessor
        self.queue: Final = queue
        self.id: Final = id
        self.owner: Final = owner
        self.key: Final = key
        self.ttl: i64 = ttl
        self.expires_at: i64 = 0
        self.addresses: vec[i64] = vec[i64]()  # 0 = settled; negative = in the transient store
        self.positions: vec[i64] = vec[i64]()
        self.metas: vec[i64] = vec[i64]()  # size << 16 | priority << 8 | flags
        self.expiries: vec[i64] = vec[i64]()
        self.left: i64 = 0
        self.bytes: i64 = 0
        self.settled: i64 = 0  # slots that were acted upon; what is neither left nor settled is lost
        self.noted: bool = False  # the log has that number
        self.went_back: list[int] = []  # slots whose messages went back in this turn
        self.backs: i64 = 0  # records of such slots
        self.closed_below: i64 = 0  # while it is returning: no slot before this one is open
        self.delayed: bool = False  # it is there to run out
        self.retry: bool = False  # so that what a client gave back is tried again then
        self.filling: bool = False  # it gets more, in turns to come: up to
        self.wanted: i64 = 0  # so many messages
        self.wanted_bytes: i64 = -1  # of so many bytes, -1 = no such bound
        self.ran_out: bool = False
        self.returning: bool = False  # it ran out or was released; its messages go back slice by slice
        self.named: Named | None = None  # as the log's events know it, once they speak of it
        self.told: dict[int, int] = {}  # by slot, what they call messages that they tell of and the log does not hold

    def fire(self) -> None:
        self.lessor.expired(self)

    def subject(self) -> str:
        return f"a lease on {self.queue.name}"

    def add(self, address: i64, position: i64, size: i64, priority: i64, flags: i64, expires_at: i64) -> None:
        self.addresses = append(self.addresses, address)
        self.positions = append(self.positions, position)
        self.metas = append(self.metas, size << 16 | priority << 8 | flags)
        self.expiries = append(self.expiries, expires_at)
        if address:
            self.left += 1
            self.bytes += size

    def text(self) -> bytes:
        """Its name in the log's events."""
        whose = {"user": self.owner} if self.owner else {}
        return json.dumps(whose | {"vhost": self.queue.name.virtual_host, "consumer": self.id}).encode()

    def number(self, slot: i64) -> i64:
        """What the log's events call the message there; 0: they do not tell of it."""
        address = self.addresses[slot]
        return address if address > 0 else self.told.get(int(slot), 0)

    def claim(self, slot: i64, address: i64, size: i64, priority: i64, flags: i64, expires_at: i64) -> None:
        """At start: the log still has this slot's message."""
        self.addresses[slot] = address
        self.metas[slot] = size << 16 | priority << 8 | flags
        self.expiries[slot] = expires_at
        self.left += 1
        self.bytes += size

    def count(self) -> i64:
        return len(self.addresses)

    def wants_more(self) -> bool:
        """Messages: a negative number is no bound."""
        return self.wanted < 0 or self.count() < self.wanted

    def size_of(self, slot: i64) -> i64:
        return self.metas[slot] >> 16

    def redelivered(self, slot: i64) -> bool:
        return (self.metas[slot] & REDELIVERED) != 0

    def describe(self) -> dict[str, object]:
        return {
            "id": self.id,
            "queue": self.queue.name.name,
            "vhost": self.queue.name.virtual_host,
            "owner": self.owner,
            "key": self.key,
            "count": int(self.count()),
            "left": int(self.left),
            "settled": int(self.settled),
            "bytes": int(self.bytes),
            "delayed": self.delayed,
            "ttl_ms": int(self.ttl),
            "expires_at": int(self.expires_at),
        }

    def open_slots(self, first: i64, last: i64, most: i64 = -1) -> list[int]:
        """Those from first to last whose messages it still has; the first so many of them."""
        found: list[int] = []
        end = last if last < self.count() else self.count() - 1
        slot = first
        while slot <= end and len(found) != most:
            if self.addresses[slot]:
                found.append(int(slot))
            slot += 1
        return found

    def open_runs(self, slot: i64, end: i64) -> list[list[int]]:
        """Of the slots from there on and before the end, as [first, last] of those that follow one another."""
        runs: list[list[int]] = []
        first: i64 = -1
        if end > self.count():
            end = self.count()
        while slot < end:
            if self.addresses[slot] == 0:
                if first >= 0:
                    runs.append([int(first), int(slot - 1)])
                first = -1
            elif first < 0:
                first = slot
            slot += 1
        if first >= 0:
            runs.append([int(first), int(slot - 1)])
        return runs

    def stored(self) -> dict[str, object]:
        """As the log keeps it: positions as runs."""
        return {
            "id": self.id,
            "queue": int(self.queue.id),
            "owner": self.owner,
            "key": self.key,
            "ttl": int(self.ttl),
            "expires_at": int(self.expires_at),
            "runs": runs_of([int(position) for position in self.positions]),
            "delayed": self.delayed,
            "retry": self.retry,
        }


def runs_of(numbers: list[int]) -> list[list[int]]:
    """Numbers as [first, last] of those that follow one another."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][1] + 1 == number:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return runs


def no_lease(queue: Queue, id: str) -> LeaseError:
    return LeaseError(404, f"no lease '{id}' of {queue.name}: settled already, or never there")
