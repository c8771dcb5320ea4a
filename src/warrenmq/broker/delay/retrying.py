"""What waits in one queue for its retry, for whoever looks around among the delayed messages.

Duty: to show it in order of due time, and to find one by its id. It is the queue's own (``queue/leases.py``); a
position in the queue is its key here.
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from warrenmq.broker.delay.source import Source, peek_at
from warrenmq.broker.queue.classic import ClassicQueue
from warrenmq.broker.queue.lease import Lease
from warrenmq.log.damage import RecordDamaged
from warrenmq.log.format import StoredMessage

PREFIX: Final = "retry"


@final
class Retrying(Source):
    """A look at one queue, good for as long as nothing changes."""

    def __init__(self, queue: ClassicQueue) -> None:
        self.queue: Final = queue
        self._leases: Final = queue.leases.of_retries()
        self._leases.sort(key=_due)
        self._seen: dict[int, tuple[Lease, int]] = {}  # where those are that were found, by position

    def number(self) -> i64:
        return self.queue.id

    def waiting(self) -> i64:
        return self.queue.leases.retrying()

    def after(self, due: i64, key: i64, most: i64) -> list[tuple[int, int]]:
        found: list[tuple[int, int]] = []
        for lease in self._leases:
            if lease.expires_at < due:
                continue
            if len(found) >= most and found[-1][0] < lease.expires_at:
                break
            for slot in lease.open_slots(0, lease.count() - 1):
                position = int(lease.positions[slot])
                if lease.expires_at > due or position > key:
                    found.append((int(lease.expires_at), position))
                    self._seen[position] = (lease, slot)
        found.sort()
        return found[:most]

    def find(self, id: str) -> tuple[int, int] | None:
        """(due, key) of an id, None when nothing of the kind waits here."""
        parts = id.split("-")
        if len(parts) != 4 or parts[0] != PREFIX or parts[1] != f"{self.queue.id:x}":
            return None
        try:
            due, key = int(parts[2], 16), int(parts[3], 16)
        except ValueError:
            return None
        found = self._slot(key)
        return (due, key) if found is not None and found[0].expires_at == due else None

    def _slot(self, key: int) -> tuple[Lease, int] | None:
        seen = self._seen.get(key)
        if seen is not None:
            return seen if seen[0].addresses[seen[1]] else None
        for lease in self._leases:
            for slot in lease.open_slots(0, lease.count() - 1):
                if lease.positions[slot] == key:
                    return lease, slot
        return None

    def peek(self, key: i64, most: i64) -> StoredMessage:
        found = self._slot(key)
        if found is None:
            raise RecordDamaged("it waits here no more")
        address = found[0].addresses[found[1]]
        broker = self.queue.broker
        return peek_at(broker.log, address, most) if address > 0 else broker.transient.get(-address)

    def id_of(self, due: i64, key: i64) -> str:
        return f"{PREFIX}-{self.queue.id:x}-{due:x}-{key:x}"

    def deliver_now(self, key: i64) -> None:
        """As if its time had come."""
        found = self._slot(key)
        if found is not None:
            self.queue.leases.requeue(found[0], [found[1]])
            self.queue.leases.acted(found[0])


def _due(lease: Lease) -> int:
    return lease.expires_at
