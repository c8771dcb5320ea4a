"""Leases: messages of a queue held out of consumers' reach under an id, readable again and again, settled by that id.

Spark reads queues this way: a delivery tag dies with its channel, a lease survives connections and restarts. A lease
that runs out unrenewed, or is released, puts its messages back at their place, flagged redelivered.

Duty: what is leased to whom and until when. Not here: reading a lease (``lease_view.py``), HTTP.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from librt.vecs import append, vec
from mypy_extensions import i64

from warrenmq.broker import holder
from warrenmq.broker.access import store_key
from warrenmq.broker.message import Entry, Origin, bcc_of, message_from, packed_keys_of, unpack_keys
from warrenmq.broker.queue import paging
from warrenmq.broker.timers import Timer
from warrenmq.log.format import StoredMessage
from warrenmq.log.index import QueueIndex
from warrenmq.wire.fields import Table
from warrenmq.wire.replies import AmqpError

if TYPE_CHECKING:
    from warrenmq.broker.queue.queue import Queue

REDELIVERED: Final = 1
DEFAULT_TTL: Final = 7 * 86_400_000
REMEMBERED: Final = 1000  # leases of a queue that are remembered as returned


class LeaseError(Exception):
    """A lease that cannot be used: ``status`` is what the HTTP API answers."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


@final
class Expiry(Timer):
    def __init__(self, lease: Lease) -> None:
        super().__init__()
        self._lease: Final = lease

    def fire(self) -> None:
        self._lease.queue.leases.expired(self._lease)

    def subject(self) -> str:
        return f"a lease on {self._lease.queue.name}"


@final
class Lease:
    """Slots are numbered from 0 in queue order; a settled one stays as a gap, so numbers keep their meaning."""

    def __init__(self, queue: Queue, id: str, owner: str, key: str, ttl: i64) -> None:
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
        self.timer: Final = Expiry(self)

    def add(self, address: i64, position: i64, size: i64, priority: i64, flags: i64, expires_at: i64) -> None:
        self.addresses = append(self.addresses, address)
        self.positions = append(self.positions, position)
        self.metas = append(self.metas, size << 16 | priority << 8 | flags)
        self.expiries = append(self.expiries, expires_at)
        if address:
            self.left += 1
            self.bytes += size

    def claim(self, slot: i64, address: i64, size: i64, priority: i64, flags: i64, expires_at: i64) -> None:
        """At start: the log still has this slot's message."""
        self.addresses[slot] = address
        self.metas[slot] = size << 16 | priority << 8 | flags
        self.expiries[slot] = expires_at
        self.left += 1
        self.bytes += size

    def count(self) -> i64:
        return len(self.addresses)

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
            "bytes": int(self.bytes),
            "ttl_ms": int(self.ttl),
            "expires_at": int(self.expires_at),
        }

    def stored(self) -> dict[str, object]:
        """As the log keeps it: positions as runs."""
        runs: list[list[int]] = []
        for position in self.positions:
            if runs and runs[-1][1] + 1 == position:
                runs[-1][1] = int(position)
            else:
                runs.append([int(position), int(position)])
        return {
            "id": self.id,
            "queue": int(self.queue.id),
            "owner": self.owner,
            "key": self.key,
            "ttl": int(self.ttl),
            "expires_at": int(self.expires_at),
            "runs": runs,
        }


@final
class Leases:
    """The leases of one queue."""

    def __init__(self, queue: Queue) -> None:
        self._queue: Final = queue
        self._leases: dict[str, Lease] = {}
        self._returned: dict[str, bool] = {}  # ids of leases that ran out or were released: settling them is too late

    def __len__(self) -> int:
        return len(self._leases)

    def messages(self) -> i64:
        """How many messages are leased."""
        total: i64 = 0
        for lease in self._leases.values():
            total += lease.left
        return total

    def all(self, owner: str = "") -> list[Lease]:
        return [lease for lease in self._leases.values() if not owner or lease.owner == owner]

    # -- taking ------------------------------------------------------------------------------------------------

    def create(self, count: i64, max_bytes: i64, ttl: i64, owner: str, key: str) -> Lease:
        """Lease up to ``count`` messages or ``max_bytes`` of bodies (-1 = no such bound; at least one message if any).

        The same key gives the same lease again while it lives, so a lost answer strands nothing.
        """
        queue = self._queue
        if queue.kind == "stream":
            raise LeaseError(400, f"{queue.name} is a stream: read it by offset")
        if key:
            for lease in self._leases.values():
                if lease.key == key and lease.owner == owner:
                    return lease
        lease = Lease(queue, str(queue.broker.next_id()), owner, key, ttl)
        queue.lease_out(lease, count, max_bytes)
        if lease.count():  # an empty one is told, not kept
            self._keep(lease)
        return lease

    def _keep(self, lease: Lease) -> None:
        broker = self._queue.broker
        self._leases[lease.id] = lease
        lease.expires_at = broker.now + lease.ttl
        broker.timers.arm(lease.timer, lease.expires_at)
        self._store(lease)

    def _store(self, lease: Lease) -> None:
        if self._queue.durable:
            self._queue.broker.store.put("lease", self._store_key(lease), lease.stored())

    def _store_key(self, lease: Lease) -> str:
        return store_key([str(self._queue.id), lease.id])

    def get(self, id: str) -> Lease:
        """The living lease; LeaseError 410 when its messages went back, 404 when it was settled or never was."""
        lease = self._leases.get(id)
        if lease is not None:
            return lease
        if id in self._returned:
            raise LeaseError(410, f"lease {id} of {self._queue.name} ran out or was released; its messages went back")
        raise LeaseError(404, f"no lease '{id}' of {self._queue.name}: settled already, or never there")

    def view(self, arguments: Table) -> Queue:
        """What basic.consume with x-lease reads. With x-lease-left, only if so many of its messages are left.

        A reader that was told a number would wait for ever for messages that are gone: transient ones go with a crash.
        """
        from warrenmq.broker.queue.lease_view import LeaseView

        queue = self._queue
        try:
            lease = self.get(str(arguments["x-lease"].value))
        except LeaseError as error:
            raise AmqpError(404, error.reason) from None
        expected = arguments.get("x-lease-left")
        if expected is not None and str(expected.value) != str(int(lease.left)):
            said = f"x-lease-left is {expected.value}"
            raise AmqpError(406, f"lease {lease.id} of {queue.name} has {lease.left} messages left, {said}")
        view = LeaseView(queue.name, queue.vhost, 0, False, None, False, {})
        view.lease = lease
        return view

    # -- settling ----------------------------------------------------------------------------------------------

    def ack(self, lease: Lease, first: i64, last: i64) -> i64:
        """Settle slots first..last for good; returns how many were not settled already."""
        queue = self._queue
        settled: i64 = 0
        gone = vec[i64]()
        slot = first
        while slot <= last and slot < lease.count():
            address = lease.addresses[slot]
            if address:
                if address > 0:
                    gone = append(gone, address)
                else:
                    queue.broker.transient.free(-address)
                self._off(lease, slot)
                queue.acked += 1
                settled += 1
            slot += 1
        if len(gone):
            queue.broker.log.settle_many(queue.id, gone)
        self._finish(lease)
        return settled

    def nack(self, lease: Lease, first: i64, last: i64, requeue: bool) -> i64:
        """Give slots first..last back to the queue, or discard them (dead-lettered where the queue says so)."""
        queue = self._queue
        slots: list[int] = []
        slot = first
        while slot <= last and slot < lease.count():
            if lease.addresses[slot]:
                slots.append(slot)
            slot += 1
        entries = self._entries(lease, slots)
        for number in slots:
            if lease.addresses[number]:  # else it was damaged, and has been set aside
                self._off(lease, number)
        queue.unacked += len(entries)  # requeue and reject take entries from the unacknowledged
        for entry in entries:
            queue.unacked_bytes += entry.message.size
        if requeue:
            queue.requeue(entries)
        else:
            for entry in entries:
                queue.reject(entry)
        self._finish(lease)
        return len(entries)

    def renew(self, lease: Lease, ttl: i64) -> None:
        lease.ttl = ttl
        self._keep(lease)

    def release(self, lease: Lease) -> i64:
        """Everything left goes back to its place; who settles it now is told that it is too late."""
        self.remember_returned(lease.id)
        if self._queue.durable:
            value: dict[str, object] = {"queue": int(self._queue.id), "id": lease.id}
            self._queue.broker.store.put("lease_returned", self._store_key(lease), value)
        return self.nack(lease, 0, lease.count() - 1, True)

    def remember_returned(self, id: str) -> None:
        self._returned[id] = True
        if len(self._returned) > REMEMBERED:
            oldest = next(iter(self._returned))
            del self._returned[oldest]
            if self._queue.durable:
                self._queue.broker.store.delete("lease_returned", store_key([str(self._queue.id), oldest]))

    def expired(self, lease: Lease) -> None:
        count = self.release(lease)
        self._queue.broker.notes.event(
            "warning",
            "lease_expired",
            {"queue": str(self._queue.name), "lease": lease.id, "owner": lease.owner, "returned": int(count)},
        )

    def _off(self, lease: Lease, slot: i64) -> None:
        size = lease.size_of(slot)
        lease.addresses[slot] = 0
        lease.left -= 1
        lease.bytes -= size
        self._queue.unacked -= 1
        self._queue.unacked_bytes -= size

    def _finish(self, lease: Lease) -> None:
        queue = self._queue
        if lease.left == 0 and lease.id in self._leases:
            del self._leases[lease.id]
            queue.broker.timers.cancel(lease.timer)
            if queue.durable:
                queue.broker.store.delete("lease", self._store_key(lease))

    def _entries(self, lease: Lease, slots: list[int]) -> list[Entry]:
        """The messages of these slots as queue entries, content and all."""
        addresses = [lease.addresses[slot] for slot in slots]
        if not addresses:
            return []
        entries: list[Entry] = []
        i: i64 = 0
        for record in paging.read(self._queue.broker, addresses):
            slot = slots[i]
            address = addresses[i]
            i += 1
            if record is None:
                self.set_aside(lease, slot)
                continue
            entry = entry_from(self._queue, record, address, lease.positions[slot])
            entry.message.priority = (lease.metas[slot] >> 8) & 255
            entry.expires_at = lease.expiries[slot]
            entries.append(entry)
        return entries

    def set_aside(self, lease: Lease, slot: i64) -> None:
        """Damaged: it leaves the lease, so that nobody settles what nobody could read."""
        address = lease.addresses[slot]
        size = lease.size_of(slot)
        priority = (lease.metas[slot] >> 8) & 255
        position = lease.positions[slot]
        self._off(lease, slot)
        self._queue.set_aside(address, position, size, lease.redelivered(slot), lease.expiries[slot], priority)

    # -- start and end -----------------------------------------------------------------------------------------

    def restore(self, value: dict[str, object]) -> dict[int, tuple[Lease, int]]:
        """A stored lease; returns its positions, for the queue to hand over what the log still has."""
        lease = Lease(self._queue, str(value["id"]), str(value["owner"]), str(value["key"]), _int(value["ttl"]))
        lease.expires_at = _int(value["expires_at"])
        wanted: dict[int, tuple[Lease, int]] = {}
        runs = value["runs"]
        assert isinstance(runs, list)
        for run in runs:
            position: i64 = run[0]
            while position <= run[1]:
                wanted[position] = (lease, int(lease.count()))
                lease.add(0, position, 0, 0, 0, 0)
                position += 1
        self._leases[lease.id] = lease
        return wanted

    def restored(self) -> None:
        """All of the queue's messages have been handed out: leases with nothing left are over."""
        for lease in list(self._leases.values()):
            if lease.left == 0:
                self._finish(lease)
            else:
                self._queue.broker.timers.arm(lease.timer, lease.expires_at)

    def fill_index(self, index: QueueIndex) -> None:
        for lease in self._leases.values():
            slot: i64 = 0
            while slot < lease.count():
                if lease.addresses[slot] > 0:
                    meta = lease.metas[slot]
                    packed = holder.pack((meta >> 8) & 255, meta >> 16, (meta & REDELIVERED) != 0)
                    index.add(lease.positions[slot], lease.addresses[slot], lease.expiries[slot], packed)
                slot += 1

    def addresses(self) -> list[i64]:
        """Of everything leased that the log holds."""
        out: list[i64] = []
        for lease in self._leases.values():
            for address in lease.addresses:
                if address > 0:
                    out.append(address)
        return out

    def drop(self) -> None:
        """The queue is deleted."""
        for lease in list(self._leases.values()):
            for address in lease.addresses:
                if address < 0:
                    self._queue.broker.transient.free(-address)
            lease.left = 0
            self._finish(lease)
        if self._queue.durable:
            for id in self._returned:
                self._queue.broker.store.delete("lease_returned", store_key([str(self._queue.id), id]))


def entry_from(queue: Queue, record: StoredMessage, address: i64, position: i64) -> Entry:
    """A queue entry from what was stored."""
    origin = Origin(record.exchange, unpack_keys(packed_keys_of(record)), bcc_of(record))
    body = record.body
    message = message_from(origin, record.message_id, record.header, [body] if body else [], len(body), address > 0)
    message.address = address if address > 0 else 0
    return Entry(message, queue, position)


def _int(value: object) -> int:
    assert isinstance(value, int)
    return value
