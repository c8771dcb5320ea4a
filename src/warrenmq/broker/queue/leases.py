"""The leases of one queue: giving them out, settling them, taking them back, and all of it in the log.

Duty: what is leased to whom and until when, and what became of each slot. What a lease is: ``lease.py``. Not here:
reading a lease (``lease_view.py``), HTTP.

In the log: ``lease`` (whose, until when, which positions), ``lease_settled`` (how many slots somebody has acted upon,
so that they are told from those that a crash took) and ``lease_back`` (slots whose messages are in the queue again, or
under another lease: the log still has them at their positions). The count is written anew with each request; what went
back is added to, so that many small requests write little.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, final

from librt.vecs import append, vec
from mypy_extensions import i64

from warrenmq.broker.access.access import store_key
from warrenmq.broker.message import Message, message_from
from warrenmq.broker.queue import holder, paging
from warrenmq.broker.queue.fifo import NOWHERE
from warrenmq.broker.queue.head_expiry import HeadExpiry
from warrenmq.broker.queue.lease import REDELIVERED, Lease, LeaseError, Lessor, no_lease, runs_of
from warrenmq.broker.queue.lease_reading import SlotReader
from warrenmq.broker.queue.order import Order
from warrenmq.broker.queue.promise import Promise
from warrenmq.broker.queue.queue import Entry, Queue
from warrenmq.broker.services.turn import Concluding
from warrenmq.broker.stored import Origins, message_of
from warrenmq.log.causes import DELETED, LEASE_SETTLED
from warrenmq.log.damage import RecordDamaged
from warrenmq.log.format import StoredMessage
from warrenmq.log.index import QueueIndex
from warrenmq.log.leasings import LEASE_EXPIRED, LEASE_RELEASED, LEASE_REQUEUED, LEASED

REMEMBERED: Final = 1000  # leases of a queue that are remembered as returned
TAKEN: Final = 16384  # messages that are leased within one turn, at most
TAKEN_BYTES: Final = 4 << 20  # octets that have to leave memory for leases within one turn, about
SLICE: Final = 1024  # messages that are read to be given back or rejected within one turn, at most
SLICE_BYTES: Final = 4 << 20  # octets of messages read within one turn, about


@final
class Leases(Lessor, Concluding):
    """The leases of one queue."""

    def __init__(self, queue: Queue, order: Order, expiry: HeadExpiry, promise: Promise) -> None:
        self._queue: Final = queue
        self._order: Final = order
        self._expiry: Final = expiry
        self._promise: Final = promise
        self._leases: dict[str, Lease] = {}
        self._reading: dict[tuple[str, int], SlotReader] = {}  # slots whose long bodies are read before they go back
        self.acked: i64 = 0  # messages that left under a lease
        self._opened: dict[int, Lease] = {}  # of retries, by when they are due; the log has not got them yet
        self._returned: dict[str, bool] = {}  # ids of leases that ran out or were released: settling them is too late

    def __len__(self) -> int:
        return len(self._leases)

    def messages(self) -> i64:
        """How many messages are leased."""
        total: i64 = 0
        for lease in self._leases.values():
            total += lease.left
        return total

    def note(self, event: str) -> None:
        """The queue is purged or deleted: say so if anything is leased."""
        leased = self.messages()
        if leased:
            queue = self._queue
            fields: dict[str, object] = {"queue": str(queue.name), "messages": int(queue.ready), "leased": int(leased)}
            queue.broker.notes.event("warning", event, fields)

    def all(self, owner: str = "") -> list[Lease]:
        return [lease for lease in self._leases.values() if not lease.returning and (not owner or lease.owner == owner)]

    def holding(self) -> list[Lease]:
        """All that hold something, those on their way back as well."""
        return [lease for lease in self._leases.values() if lease.left > 0]

    def oldest(self) -> i64:
        """Since when the oldest lease holds something; 0: there is none. What is only delayed does not count."""
        found: i64 = 0
        for lease in self._leases.values():
            since = lease.expires_at - lease.ttl
            if lease.left > 0 and not lease.delayed and (found == 0 or since < found):
                found = since
        return found

    # -- taking ------------------------------------------------------------------------------------------------

    def create(self, count: i64, max_bytes: i64, ttl: i64, owner: str, key: str) -> Lease:
        """Lease up to ``count`` messages or ``max_bytes`` of bodies (-1 = no such bound; at least one message if any).

        The same key gives the same lease again while it lives, so a lost answer strands nothing. A large one is filled
        in turns to come: ``fill`` while it is ``filling``.
        """
        queue = self._queue
        if key:
            for lease in self._leases.values():
                if lease.key == key and lease.owner == owner and not lease.returning:
                    return lease
        lease = Lease(self, queue, str(queue.broker.ids.message()), owner, key, ttl)
        lease.wanted = count
        lease.wanted_bytes = max_bytes
        lease.filling = not self._take(lease)
        if lease.count():  # an empty one is told, not kept
            self._keep(lease)
        return lease

    def fill(self, lease: Lease) -> None:
        """Another turn's worth of messages, unless the lease is over meanwhile."""
        queue = self._queue
        if queue.gone or lease.returning or self._leases.get(lease.id) is not lease:
            lease.filling = False
        elif lease.filling:
            lease.filling = not self._take(lease)
            if not lease.filling:
                self._keep(lease)

    def _take(self, lease: Lease) -> bool:
        """Move messages from the head to a lease, as many as it wants or a turn may: they count as unacknowledged and
        nobody else gets them. Says whether it has all it may have."""
        queue = self._queue
        expiry = self._expiry
        most: i64 = TAKEN
        most_bytes: i64 = TAKEN_BYTES
        expiry.seen()
        if expiry.possible:
            expiry.expire(queue.broker.turn.now)
        full = True
        begin = lease.count()
        while queue.ready > 0 and not expiry.behind and not queue.busy and not queue.paused and lease.wants_more():
            fifo = self._order.first()
            size = fifo.head_size()
            if lease.wanted_bytes >= 0 and lease.count() > 0 and lease.bytes + size > lease.wanted_bytes:
                break
            if most <= 0 or most_bytes <= 0:
                full = False
                break
            fifo.lease_head(lease, fifo.priority)
            most -= 1
            most_bytes -= size
            queue.ready -= 1
            queue.ready_bytes -= size
            queue.unacked += 1
            queue.unacked_bytes += size
        if expiry.possible:
            expiry.arm()
        self._promise.renew()
        self._tell(LEASED, lease, range(begin, lease.count()))
        return full

    def _tell(self, what: i64, lease: Lease, slots: Iterable[int]) -> None:
        """The journal is told what became of these, where it is told of them at all."""
        queue = self._queue
        log = queue.broker.log
        named = lease.named
        if named is None:
            named = log.events.name(lease.text())
            lease.named = named
        for slot in slots:
            number = lease.number(slot)
            if number:
                log.leasings.tell(what, named, queue.journal.named(), lease.positions[slot], number)
            elif queue.journal.all:
                log.events.sampled_out(1)

    def _keep(self, lease: Lease) -> None:
        broker = self._queue.broker
        self._leases[lease.id] = lease
        lease.expires_at = broker.turn.now + lease.ttl
        broker.timers.arm(lease, lease.expires_at)
        self._store(lease)

    def _store(self, lease: Lease) -> None:
        if self._queue.durable:
            self._queue.broker.store.put("lease", self._store_key(lease), lease.stored())

    def _store_key(self, lease: Lease) -> str:
        return store_key([str(self._queue.id), lease.id])

    def get(self, id: str) -> Lease:
        """The living lease; LeaseError 410 when its messages went back, 404 when it was settled or never was."""
        lease = self._leases.get(id)
        if lease is not None and not lease.returning:
            return lease
        if lease is not None or id in self._returned:
            raise LeaseError(410, f"lease {id} of {self._queue.name} ran out or was released; its messages went back")
        raise no_lease(self._queue, id)

    # -- settling ----------------------------------------------------------------------------------------------
    # Each of these is followed by ``acted`` within the same turn, so that the log has what was done and its count
    # together. A slot that was settled already is passed over.

    def ack(self, lease: Lease, first: i64, last: i64) -> i64:
        """Slots first..last leave the queue for good; returns how many were not settled already."""
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
                    number = lease.number(slot)
                    if number:
                        queue.broker.log.unlogged.left(queue.journal.named(), number, LEASE_SETTLED)
                    elif queue.journal.all:
                        queue.broker.log.events.sampled_out(1)
                self._off(lease, slot)
                queue.deliveries.acked += 1
                settled += 1
            slot += 1
        if len(gone):
            queue.broker.log.settle_many(queue.id, gone, LEASE_SETTLED)
        lease.settled += settled
        self.acked += settled
        return settled

    def requeue(self, lease: Lease, slots: list[int]) -> None:
        """These open slots go back to their place in the queue, flagged redelivered. At most a slice of them."""
        lease.went_back.extend(slots)
        if lease.retry:
            self._queue.retry(self._taken_off(lease, slots))
            return
        what: i64 = LEASE_REQUEUED
        if lease.returning:
            what = LEASE_EXPIRED if lease.ran_out else LEASE_RELEASED
        self._tell(what, lease, slots)
        entries = self._taken_off(lease, slots)
        self._queue.tell_back(entries)
        self._queue.requeue(entries)

    def reject(self, lease: Lease, slots: list[int]) -> None:
        """These open slots are discarded, dead-lettered where the queue says so. At most a slice of them."""
        for entry in self._taken_off(lease, slots):
            self._queue.reject(entry)

    def delay(self, lease: Lease, slots: list[int], milliseconds: i64) -> None:
        """These open slots go back to the queue so much later: until then they are under a lease of their own."""
        later = Lease(self, self._queue, str(self._queue.broker.ids.message()), "", "", milliseconds)
        later.delayed = True
        for slot in slots:
            meta = lease.metas[slot]
            later.add(
                lease.addresses[slot],
                lease.positions[slot],
                meta >> 16,
                (meta >> 8) & 255,
                meta & 255,
                lease.expiries[slot],
            )
            if lease.addresses[slot] < 0 and slot in lease.told:
                later.told[int(later.count()) - 1] = lease.told[slot]
            lease.addresses[slot] = 0
            lease.left -= 1
            lease.bytes -= meta >> 16
        lease.settled += len(slots)
        lease.went_back.extend(slots)
        self._keep(later)

    # -- retries -----------------------------------------------------------------------------------------------

    def postpone(self, entry: Entry, due: i64) -> bool:
        """What a client gave back waits under a lease that runs out then, with all that is due at the same time and
        came in the same turn; for the queue it stays unacknowledged. Says whether it waits: not when no disk takes it.
        """
        queue = self._queue
        message = entry.message
        try:
            address = paging.address_of(queue, message)
        except OSError:
            return False
        lease = self._opened.get(due)
        if lease is None:
            lease = Lease(self, queue, str(queue.broker.ids.message()), "", "", due - queue.broker.turn.now)
            lease.delayed = True
            lease.retry = True
            lease.expires_at = due
            if not self._opened:
                queue.broker.turn.concluding.append(self)
            self._opened[due] = lease
            self._leases[lease.id] = lease
            queue.broker.timers.arm(lease, due)
        lease.add(address, entry.position, message.size, message.priority, REDELIVERED, entry.expires_at)
        if address < 0 and queue.journal.tells(message):
            lease.told[int(lease.count()) - 1] = int(message.number())
        return True

    def conclude(self) -> None:
        """The log gets what was postponed in this turn."""
        opened = self._opened
        self._opened = {}
        for lease in opened.values():
            if self._leases.get(lease.id) is lease:  # else the queue is deleted
                self._store(lease)

    def of_retries(self) -> list[Lease]:
        return [lease for lease in self._leases.values() if lease.retry and lease.left > 0]

    def retrying(self) -> i64:
        """How many messages wait to be tried again."""
        total: i64 = 0
        for lease in self._leases.values():
            if lease.retry:
                total += lease.left
        return total

    def acted(self, lease: Lease, ends: bool = True) -> None:
        """After the above. A lease with nothing left is over, unless it is to tell that all of it was settled."""
        if ends and lease.left == 0:
            self._finish(lease)
        elif self._queue.durable:
            store = self._queue.broker.store
            count: dict[str, object] = {
                "queue": int(self._queue.id),
                "id": lease.id,
                "settled": int(lease.settled),
            }
            store.put("lease_settled", self._store_key(lease), count)
            lease.noted = True
            if lease.went_back:
                slots: dict[str, object] = {
                    "queue": int(self._queue.id),
                    "id": lease.id,
                    "slots": runs_of(lease.went_back),
                }
                store.put("lease_back", self._back_key(lease, lease.backs), slots)
                lease.backs += 1
        lease.went_back = []

    def slice_of(self, lease: Lease, slots: list[int], start: i64) -> list[int]:
        """As many of these slots, from ``start`` on, as may be read within one turn. None: the body of the first is so
        long that it is read in turns to come; ask again then."""
        size: i64 = 0
        end = start
        while end < len(slots) and end - start < SLICE and size < SLICE_BYTES:
            if self._is_on_disk(lease, slots[end]) and (end > start or not self._is_read(lease, slots[end])):
                break
            size += lease.size_of(slots[end])
            end += 1
        return slots[start:end]

    def _is_on_disk(self, lease: Lease, slot: i64) -> bool:
        """Is it a very long transient one that has left memory?"""
        address = lease.addresses[slot]
        return address < 0 and self._queue.broker.transient.has_on_disk(-address)

    def _is_read(self, lease: Lease, slot: i64) -> bool:
        """Has its body been read? If nobody is at it, somebody begins."""
        reader = self._reading.get((lease.id, int(slot)))
        if reader is None:
            broker = self._queue.broker
            reader = SlotReader(broker, lease.addresses[slot], str(self._queue.name))
            self._reading[(lease.id, int(slot))] = reader
            broker.jobs.add(reader)
        return reader.over

    def _taken_off(self, lease: Lease, slots: list[int]) -> list[Entry]:
        """Their messages, for the queue to take from the unacknowledged."""
        queue = self._queue
        entries = self._entries(lease, slots)
        for slot in slots:
            if lease.addresses[slot]:  # else it was damaged, and has been set aside
                self._off(lease, slot)
        lease.settled += len(entries)
        queue.unacked += len(entries)
        for entry in entries:
            queue.unacked_bytes += entry.message.size
        return entries

    def _back_key(self, lease: Lease, number: i64) -> str:
        return store_key([str(self._queue.id), lease.id, str(number)])

    def renew(self, lease: Lease, ttl: i64) -> None:
        lease.ttl = ttl
        self._keep(lease)

    def release(self, lease: Lease) -> None:
        """Everything left goes back to its place, a slice now and the others in turns to come; who settles it now is
        told that it is too late."""
        if not lease.returning and not lease.delayed and lease.left > 0:
            self.remember_returned(lease.id)
            if self._queue.durable:
                value: dict[str, object] = {"queue": int(self._queue.id), "id": lease.id}
                self._queue.broker.store.put("lease_returned", self._store_key(lease), value)
        lease.returning = True
        slots = lease.open_slots(lease.closed_below, lease.count() - 1, SLICE)
        part = self.slice_of(lease, slots, 0)
        if part:
            self.requeue(lease, part)
            lease.closed_below = part[-1] + 1
        if part or not slots:
            self.acted(lease)
        if lease.left > 0:
            broker = self._queue.broker
            broker.timers.arm(lease, broker.turn.now + 1)

    def remember_returned(self, id: str) -> None:
        self._returned[id] = True
        if len(self._returned) > REMEMBERED:
            oldest = next(iter(self._returned))
            del self._returned[oldest]
            if self._queue.durable:
                self._queue.broker.store.delete("lease_returned", store_key([str(self._queue.id), oldest]))

    def expired(self, lease: Lease) -> None:
        if not lease.returning and not lease.delayed and lease.left > 0:
            self._queue.broker.notes.event(
                "warning",
                "lease_expired",
                {"queue": str(self._queue.name), "lease": lease.id, "owner": lease.owner, "returned": int(lease.left)},
            )
        lease.ran_out = lease.ran_out or not lease.returning
        self.release(lease)

    def _off(self, lease: Lease, slot: i64) -> None:
        size = lease.size_of(slot)
        lease.addresses[slot] = 0
        if self._reading:
            reader = self._reading.pop((lease.id, int(slot)), None)
            if reader is not None:
                reader.wanted = False
        lease.left -= 1
        lease.bytes -= size
        self._queue.unacked -= 1
        self._queue.unacked_bytes -= size

    def _finish(self, lease: Lease) -> None:
        queue = self._queue
        if lease.left == 0 and lease.id in self._leases:
            del self._leases[lease.id]
            queue.broker.timers.cancel(lease)
            if queue.durable:
                queue.broker.store.delete("lease", self._store_key(lease))
                if lease.noted:
                    queue.broker.store.delete("lease_settled", self._store_key(lease))
                number: i64 = 0
                while number < lease.backs:
                    queue.broker.store.delete("lease_back", self._back_key(lease, number))
                    number += 1

    def _entries(self, lease: Lease, slots: list[int]) -> list[Entry]:
        """The messages of these slots as queue entries, content and all; but what the log has in pieces stays there, to
        be read when somebody wants it."""
        broker = self._queue.broker
        read: list[i64] = []
        for slot in slots:
            if len(paging.parts_of(broker, lease.addresses[slot])) == 0:
                read.append(lease.addresses[slot])
        records = paging.read(broker, read) if read else []
        entries: list[Entry] = []
        taken: i64 = 0
        for slot in slots:
            address = lease.addresses[slot]
            position = lease.positions[slot]
            if self._stays(lease, slot):
                entry = unread(self._queue, address, position, lease.size_of(slot))
            elif address < 0 and len(paging.parts_of(broker, address)) > 0:
                whole = self._whole(lease, slot)
                if whole is None:
                    continue
                entry = whole
            else:
                record = records[taken]
                taken += 1
                if record is None:
                    self.set_aside(lease, slot)
                    continue
                entry = entry_from(self._queue, record, address, position)
            entry.message.priority = (lease.metas[slot] >> 8) & 255
            entry.expires_at = lease.expiries[slot]
            entries.append(entry)
        return entries

    def _whole(self, lease: Lease, slot: i64) -> Entry | None:
        """One whose long body the transient store knows, in its pieces. None: it is damaged, and has been set aside."""
        transient = self._queue.broker.transient
        handle = -lease.addresses[slot]
        reader = self._reading.get((lease.id, int(slot)))
        try:
            if reader is not None and reader.damaged:
                raise RecordDamaged("its body was found damaged")
            head = transient.get_head(handle)
            if reader is not None and reader.over:
                pieces = reader.pieces()
            else:
                pieces = [transient.read_part(piece) for piece in transient.body_parts(handle)]
        except RecordDamaged:
            self.set_aside(lease, slot)
            return None
        transient.free(handle)
        bare = entry_from(self._queue, head, -handle, lease.positions[slot]).message
        message = message_from(bare.origin, bare.id, head.header, pieces, lease.size_of(slot), bare.persistent)
        return Entry(message, self._queue, lease.positions[slot])

    def _stays(self, lease: Lease, slot: i64) -> bool:
        address = lease.addresses[slot]
        return address > 0 and len(self._queue.broker.log.body_parts(address)) > 0

    def set_aside(self, lease: Lease, slot: i64) -> None:
        address = lease.addresses[slot]
        size = lease.size_of(slot)
        priority = (lease.metas[slot] >> 8) & 255
        position = lease.positions[slot]
        self._off(lease, slot)
        self._queue.set_aside(address, position, size, lease.redelivered(slot), lease.expiries[slot], priority)

    # -- start and end -----------------------------------------------------------------------------------------

    def restore(self, value: dict[str, object], settled: int, backs: list[object]) -> dict[int, tuple[Lease, int]]:
        """A stored lease; returns its positions, for the queue to hand over what the log still has."""
        id, owner, key = str(value["id"]), str(value["owner"]), str(value["key"])
        lease = Lease(self, self._queue, id, owner, key, _int(value["ttl"]))
        lease.expires_at = _int(value["expires_at"])
        lease.settled = settled
        lease.noted = settled > 0
        lease.backs = len(backs)
        lease.delayed = value.get("delayed") is True
        lease.retry = value.get("retry") is True
        lease.returning = lease.id in self._returned
        back: set[int] = set()
        for runs in backs:
            assert isinstance(runs, list)
            for run in runs:
                back.update(range(run[0], run[1] + 1))
        wanted: dict[int, tuple[Lease, int]] = {}
        runs = value["runs"]
        assert isinstance(runs, list)
        for run in runs:
            position: i64 = run[0]
            while position <= run[1]:
                if not back or int(lease.count()) not in back:
                    wanted[position] = (lease, int(lease.count()))
                lease.add(0, position, 0, 0, 0, 0)
                position += 1
        self._leases[lease.id] = lease
        return wanted

    def claim(
        self, lease: Lease, slot: i64, address: i64, size: i64, priority: i64, flags: i64, expires_at: i64
    ) -> None:
        """The log still has this slot's message: it counts, but does not wait in the queue."""
        queue = self._queue
        lease.claim(slot, address, size, priority, flags, expires_at)
        if lease.positions[slot] >= queue.next_position:
            queue.next_position = lease.positions[slot] + 1
        queue.unacked += 1
        queue.unacked_bytes += size

    def restored(self) -> None:
        """All of the queue's messages have been handed out. A lease of which nothing is left is over, unless somebody
        acted upon some of it: then it tells how many that were."""
        for lease in list(self._leases.values()):
            if lease.left == 0 and (lease.settled == 0 or lease.returning):
                self._finish(lease)
            else:
                self._queue.broker.timers.arm(lease, 0 if lease.returning else lease.expires_at)

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

    def tell_lost(self, cause: i64) -> None:
        """What is here and only memory has goes for this cause: told where all is told."""
        queue = self._queue
        for lease in self._leases.values():
            for slot, number in lease.told.items():
                if lease.addresses[slot] < 0:
                    queue.broker.log.unlogged.left(queue.journal.named(), number, cause)

    def drop(self) -> None:
        """The queue is deleted."""
        self.tell_lost(DELETED)
        for reader in self._reading.values():
            reader.wanted = False
        self._reading.clear()
        for lease in list(self._leases.values()):
            for address in lease.addresses:
                if address < 0:
                    self._queue.broker.transient.free(-address)
            self._queue.unacked -= lease.left
            self._queue.unacked_bytes -= lease.bytes
            lease.left = 0
            self._finish(lease)
        if self._queue.durable:
            for id in self._returned:
                self._queue.broker.store.delete("lease_returned", store_key([str(self._queue.id), id]))


def entry_from(queue: Queue, record: StoredMessage, address: i64, position: i64) -> Entry:
    """A queue entry from what was stored."""
    return Entry(message_of(record, Origins().of(record), address, address > 0), queue, position)


def unread(queue: Queue, address: i64, position: i64, size: i64) -> Entry:
    """A queue entry of which nothing is known but where the log has it."""
    message = Message(NOWHERE, 0, b"", 0, 0, size, True)
    message.address = address
    message.absent = True
    return Entry(message, queue, position)


def _int(value: object) -> int:
    assert isinstance(value, int)
    return value
