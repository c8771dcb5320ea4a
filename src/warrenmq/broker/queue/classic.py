"""A classic queue: takes messages, keeps them in order, hands them to consumers.

Duty: the life of an entry in this queue, from ``publish`` to ``settle``. Left to others: order (``fifo.py``), what is
in memory (``paging.py``), whose turn it is (``dispatch.py``), when a delivery has to wait for the log (``promise.py``),
arguments (``arguments.py``), what a dead letter looks like (``dead_letter.py``), what holds for every queue
(``queue.py``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from librt.vecs import vec
from mypy_extensions import i64

from warrenmq.broker.message import Message
from warrenmq.broker.queue import paging
from warrenmq.broker.queue.arguments import DROP_HEAD, REJECT_PUBLISH_DLX, settings
from warrenmq.broker.queue.entry import Entry
from warrenmq.broker.queue.fifo import Fifo
from warrenmq.broker.queue.lease import Lease, Leases, Lender
from warrenmq.broker.queue.page import MOVED, PERSISTENT
from warrenmq.broker.queue.paging import SMALL_WINDOW, WINDOW, WINDOW_BYTES
from warrenmq.broker.queue.place import Place, by_position
from warrenmq.broker.queue.promise import EVERYTHING, Promise
from warrenmq.broker.queue.queue import Queue
from warrenmq.broker.queue.read_ahead import ReadAhead
from warrenmq.broker.queue.surroundings import Owner, Realm
from warrenmq.broker.records import Content, Resource
from warrenmq.broker.services.jobs import Job
from warrenmq.broker.services.postponed import Postponed
from warrenmq.broker.services.timers import Timer
from warrenmq.log.index import QueueIndex
from warrenmq.wire.fields import Table
from warrenmq.wire.replies import PRECONDITION_FAILED, AmqpError

if TYPE_CHECKING:
    from warrenmq.broker.queue.entry import Consumer


@final
class HeadExpiry(Timer):
    """The head of the queue expires."""

    def __init__(self, queue: ClassicQueue) -> None:
        super().__init__()
        self._queue: Final = queue

    def fire(self) -> None:
        self._queue.overlooked = False
        self._queue.expire_heads(self._queue.broker.turn.now)

    def subject(self) -> str:
        return str(self._queue.name)


@final
class QueueExpiry(Timer):
    """Nobody used the queue for x-expires."""

    def __init__(self, queue: ClassicQueue) -> None:
        super().__init__()
        self._queue: Final = queue

    def fire(self) -> None:
        self._queue.vhost.remove_queue(self._queue)

    def subject(self) -> str:
        return str(self._queue.name)


@final
class Trim(Job):
    """Heads over a limit are dropped; the queue counts as whole when it is within the limit."""

    def __init__(self, queue: ClassicQueue) -> None:
        super().__init__(None)
        self._queue: Final = queue
        queue.busy += 1

    def step(self) -> bool:
        queue = self._queue
        if not queue.gone and not queue.trimmed():
            return False
        queue.busy -= 1
        queue.trimming = False
        if queue.busy == 0 and not queue.gone:
            queue.came_back()
        return True

    def subject(self) -> str:
        return str(self._queue.name)


class ClassicQueue(Queue, Lender):
    """Order, expiry, limits, consumers in turn, and leases."""

    def __init__(
        self,
        name: Resource,
        vhost: Realm,
        id: i64,
        durable: bool,
        exclusive_owner: Owner | None,
        auto_delete: bool,
        arguments: Table,
    ) -> None:
        super().__init__(name, vhost, id, durable, exclusive_owner, auto_delete, arguments)
        priorities: i64 = 0
        field = arguments.get("x-max-priority")
        if field is not None and isinstance(field.value, int):
            priorities = field.value
        self.max_priority: Final[i64] = priorities
        self._fifo: Final = Fifo(self, 0)  # priority 0, the only one without x-max-priority
        self._fifos: list[Fifo] = [self._fifo]
        i: i64 = 0
        while i < priorities:
            i += 1
            self._fifos.append(Fifo(self, i))
        self.leases: Final = Leases(self, self)
        self._promise: Final = Promise(self)
        self._head_expiry: Final = HeadExpiry(self)
        self._expiry: Final = QueueExpiry(self)
        self.prepare()
        self.apply_settings()

    def prepare(self) -> None:
        """Other kinds of queue set up what is theirs."""

    # -- settings ----------------------------------------------------------------------------------------------

    def apply_settings(self) -> None:
        """Arguments or policy changed: take the new limits into force, also on what waits here already."""
        dropped = self.settings.overflow == DROP_HEAD
        self.settings = settings(self.arguments, self.policy_definition)
        self.overlooked = False
        s = self.settings
        self.eager = s.max_length >= 0 or s.max_bytes >= 0
        if s.ttl >= 0:
            self.expiring = True
        self.touch()
        if self.eager and (dropped or s.overflow == DROP_HEAD):
            self._drop_heads()  # a new limit finds the old overflow behaviour still in force, as in RabbitMQ

    # -- publishing --------------------------------------------------------------------------------------------

    def refused(self, message: Message) -> None:
        """A publish was rejected here: reject-publish-dlx dead-letters it all the same."""
        if self.settings.overflow == REJECT_PUBLISH_DLX and not self.failed:
            self.broker.dead_letters.add(self, Entry(message, self, 0), "maxlen")

    def publish(self, message: Message, expires_at: i64) -> None:
        """Take a message in at the tail. It has been logged already if it must be."""
        position = self.next_position
        self.next_position = position + 1
        self.published += 1
        self.ready += 1
        self.ready_bytes += message.size
        fifo = self._fifo
        if self.max_priority > 0:
            fifo = self._fifo_of(message.priority)
            if expires_at and self.ready > 1 and fifo.length == 0:
                self._overlook(fifo)
        if expires_at:
            self.expiring = True
        if fifo.paged > 0 or (
            (fifo.length >= SMALL_WINDOW or self.ready_bytes - message.size > WINDOW_BYTES)
            and paging.is_due(self, fifo.length, message)
        ):
            self._page_out(fifo, message, position, expires_at)
        else:
            entry = Entry(message, self, position)
            entry.expires_at = expires_at
            fifo.push(entry)
        if not self.dirty:
            self.mark_dirty()
        if self.eager:
            self.drain()
            if self.settings.overflow == DROP_HEAD:
                self._drop_heads(2)
        elif self.max_priority > 0:
            self.drain()  # a waiting consumer gets each message as it comes; a later one must not overtake it
        if expires_at:
            if expires_at <= self.broker.turn.now:  # a TTL of 0: a consumer takes it now, or it expires
                self.drain()
                self.expire_heads(self.broker.turn.now, 2)  # more than came, so that a flood does not outrun it
            else:
                self.arm_head_expiry()

    def _page_out(self, fifo: Fifo, message: Message, position: i64, expires_at: i64) -> None:
        """Keep only where the content is; what no disk takes keeps its content in memory."""
        try:
            address = paging.address_of(self, message)
        except OSError:
            entry = Entry(message, self, position)
            entry.expires_at = expires_at
            fifo.push_resident(entry)
            return
        flags: i64 = (PERSISTENT if message.persistent else 0) | (MOVED if message.moved else 0)
        fifo.push_packed(address, position, message.size, flags, expires_at)

    def _overlook(self, fifo: Fifo) -> None:
        """Something that may expire arrives in a priority queue in which others wait. Does it become the head? RabbitMQ
        looks whether its head has expired only when something is taken, comes back or is dropped for a limit, or when
        an earlier head was to expire; so until then this one stays, and is delivered."""
        if self._first_fifo().priority < fifo.priority:
            self.overlooked = True

    def _fifo_of(self, priority: i64) -> Fifo:
        if priority > self.max_priority:
            priority = self.max_priority
        return self._fifos[priority]

    def recover(self, position: i64, address: i64, size: i64, flags: i64, expires_at: i64, priority: i64) -> None:
        """An entry found in the log at start; they come in order of position."""
        if position >= self.next_position:
            self.next_position = position + 1
        self.ready += 1
        self.ready_bytes += size
        if expires_at:
            self.expiring = True
        self._fifo_of(priority).push_packed(address, position, size, flags | PERSISTENT, expires_at)

    # -- delivering --------------------------------------------------------------------------------------------

    def drain(self) -> None:
        """Deliver while there is a message and a consumer that can take it."""
        self.dirty = False
        if self.busy:
            return
        dispatch = self.dispatch
        while self.ready > 0:
            consumer = dispatch.next()
            if consumer is None:
                break
            entry = self._take()
            if entry is None:
                break
            consumer.deliver(entry)
            if consumer.no_ack:
                self.delivered_no_ack += 1
                self._leave(entry)
            else:
                self.delivered += 1
                self.unacked += 1
                self.unacked_bytes += entry.message.size
                if self.unacked > WINDOW:
                    paging.let_go(self, entry)
            dispatch.served(consumer)
        if self.expiring:
            self.expire_heads(self.broker.turn.now)

    def get(self) -> Entry | None:
        """Take the oldest message for basic.get; the answer waits for the log where a delivery would have."""
        self.touch()
        self._promise.renew()
        limit = self._promise.limit
        self._promise.limit = EVERYTHING
        entry = self._take()
        self._promise.limit = limit
        return entry

    def check_delete(self, if_unused: bool, if_empty: bool) -> None:
        """Raise when the flags of queue.delete forbid it."""
        if if_empty and self.ready > 0:
            raise AmqpError(PRECONDITION_FAILED, f"{self.name} not empty")
        if if_unused and len(self.dispatch.consumers) > 0:
            raise AmqpError(PRECONDITION_FAILED, f"{self.name} in use")

    def got(self, entry: Entry, no_ack: bool) -> None:
        """basic.get took this entry."""
        if entry.redelivered:
            self.redelivered += 1
        if no_ack:
            self.fetched_no_ack += 1
            self._leave(entry)
        else:
            self.fetched += 1
            self.unacked += 1
            self.unacked_bytes += entry.message.size
        if self.expiring:
            self.expire_heads(self.broker.turn.now)  # what comes to the head and is expired does not count any more

    def _take(self) -> Entry | None:
        """The next entry to deliver, out of the fifo; None when there is none or it must wait for the log."""
        fifo = self._fifo
        if self.max_priority > 0:
            fifo = self._first_fifo()
        if self.expiring:
            self.expire_heads(self.broker.turn.now - 1, 2)
            if self.behind or self.busy:
                return None
            if self.max_priority > 0:
                fifo = self._first_fifo()
        if fifo.paged > 0 and self._reads_ahead(fifo):
            return None
        if self.durable:
            head = fifo.peek()
            promise = self._promise
            if head is None or (head.position > promise.limit and not promise.covers(head)):
                return None
            if self.moved_batch > self.broker.log.synced and promise.limit != EVERYTHING and promise.moving(head):
                return None
        entry = fifo.pop()
        if entry is not None:
            self.ready -= 1
            self.ready_bytes -= entry.message.size
            if self.overlooked:
                self.overlooked = False
                self.expire_heads(self.broker.turn.now)
        return entry

    def _reads_ahead(self, fifo: Fifo) -> bool:
        """Is the head so long that it is read in turns to come?"""
        address = fifo.unread_head()
        if address == 0 or len(self.broker.log.body_parts(address)) == 0:
            return False
        if address == fifo.awaited:
            return True
        self.broker.jobs.add(ReadAhead(self, fifo, address))
        return self.busy > 0

    def promise_pending(self) -> bool:
        """Must an answer that carries a message wait for the log?"""
        if self.moved_batch > self.broker.log.synced and not self.broker.pressure.log_failing:
            return True
        return self.durable and not self.promise_kept() and not self.broker.pressure.log_failing

    def promise_kept(self) -> bool:
        """The log synced: may deliveries that waited for it go on? False while it is still open."""
        return self._promise.kept()

    def _first_fifo(self) -> Fifo:
        i: i64 = len(self._fifos) - 1
        while i > 0:
            if self._fifos[i].length > 0:
                return self._fifos[i]
            i -= 1
        return self._fifo

    # -- settling ----------------------------------------------------------------------------------------------

    def settle(self, entry: Entry) -> None:
        """A consumer acknowledged it, or it is dropped after delivery: it leaves for good."""
        self.unacked -= 1
        self.unacked_bytes -= entry.message.size
        self._leave(entry)

    def _leave(self, entry: Entry) -> None:
        if not self.gone and self.holds(entry.message):
            self.broker.log.settle(self.id, entry.message.address)

    def requeue(self, entries: list[Entry]) -> None:
        """Back to their places, flagged redelivered; oldest first in the list. What is over a limit or has expired then
        is dropped before anybody gets it again."""
        back: list[Entry] = []
        for entry in entries:
            self.unacked -= 1
            self.unacked_bytes -= entry.message.size
            if self.gone:
                continue
            entry.redelivered = True
            entry.consumer = None
            self.requeued += 1
            if paging.recall(self, entry):
                back.append(entry)
                self.ready += 1
                self.ready_bytes += entry.message.size
        if self.max_priority == 0:
            self._fifo.put_back(back)
        else:
            for entry in back:
                self._fifo_of(entry.message.priority).put_back([entry])
        if not self.gone:
            self.came_back()

    def came_back(self) -> None:
        """After a requeue: limits and expiry first, then consumers."""
        if self.busy:
            return  # more comes back
        if self.eager and self.settings.overflow == DROP_HEAD:
            self._drop_heads()
        if self.expiring:
            self.overlooked = False
            self.expire_heads(self.broker.turn.now)
        self.mark_dirty()

    def reject(self, entry: Entry) -> None:
        """Rejected without requeue: dead-lettered if there is where to, else gone."""
        self.unacked -= 1
        self.unacked_bytes -= entry.message.size
        self.give_up(entry, "rejected")

    def give_up(self, entry: Entry, reason: str) -> None:
        """It leaves the queue for this reason: dead-lettered if there is where to, else gone."""
        if self.settings.dead_letter_exchange is not None and not self.gone:
            if not paging.recall(self, entry):
                return
            self.broker.dead_letters.add(self, entry, reason)
        self._leave(entry)

    # -- limits and expiry -------------------------------------------------------------------------------------

    def _drop_heads(self, least: i64 = 0) -> None:
        """Down to the limit: as many as this turn may, and the rest in turns to come."""
        if not self.trimmed(least) and not self.trimming:
            self.trimming = True
            self.broker.jobs.add(Trim(self))

    def trimmed(self, least: i64 = 0) -> bool:
        """Drop heads that are over a limit, ``least`` in any case; says whether none is left."""
        broker = self.broker
        s = self.settings
        buried = s.dead_letter_exchange is not None  # else nobody needs what is dropped: it is not read
        while self.ready > 0 and (
            (s.max_length >= 0 and self.ready > s.max_length) or (s.max_bytes >= 0 and self.ready_bytes > s.max_bytes)
        ):
            if broker.turn.expiries_left <= 0:
                if least <= 0:
                    return False
                least -= 1
            fifo = self._first_fifo() if self.max_priority > 0 else self._fifo  # its head: delivered next
            if buried and fifo.paged > 0 and self._reads_ahead(fifo):
                return False
            entry = fifo.pop() if buried else fifo.pop_unread()
            if entry is None:
                return True
            broker.turn.expiries_left -= 1 if entry.message.absent else 1 + (entry.message.size >> 12)
            self.ready -= 1
            self.ready_bytes -= entry.message.size
            self.overlooked = False
            self.give_up(entry, "maxlen")
        return True

    def expire_heads(self, now: i64, least: i64 = 0) -> None:
        """Drop what expired at ``now`` or before from the head, unless that is ``overlooked``; behind a higher priority
        nothing is looked at.

        Not more in a turn than the broker's bound allows, but ``least`` in any case. When more has expired the queue
        is ``behind``: it delivers nothing and whoever asks it something waits, until later turns have done the rest.
        """
        broker = self.broker
        if self.overlooked:
            return
        if self.behind:
            now = broker.turn.now  # what was to go in an earlier turn
        buried = self.settings.dead_letter_exchange is not None
        while self.ready > 0:
            fifo = self._first_fifo() if self.max_priority > 0 else self._fifo
            expires_at = fifo.head_expiry()
            if expires_at == 0 or expires_at > now:
                break
            if broker.turn.expiries_left <= 0:
                if least <= 0:
                    self.behind = True
                    broker.timers.arm(self._head_expiry, broker.turn.now)
                    return
                least -= 1
            if buried and fifo.paged > 0 and self._reads_ahead(fifo):
                return  # when it is read, this goes on
            if buried:
                head = fifo.peek()
                if head is None or head.expires_at != expires_at:
                    continue  # what stood here is damaged, and set aside
                fifo.pop()
            else:
                head = fifo.pop_unread()
                assert head is not None
            size = head.message.size
            broker.turn.expiries_left -= 1 if head.message.absent else 1 + (size >> 12)
            self.ready -= 1
            self.ready_bytes -= size
            self.give_up(head, "expired")
        if self.behind:
            self.behind = False
            self.mark_dirty()
        self.arm_head_expiry()

    def check_whole(self) -> None:
        """Whoever asks the queue something waits until nothing expired is left at its head, all that goes back has
        come, and nothing is over a limit."""
        if self.busy:
            raise Postponed
        if self.expiring:
            self.expire_heads(self.broker.turn.now - 1)
            if self.behind or self.busy:
                raise Postponed

    def check_readable(self) -> None:
        fifo = self._first_fifo() if self.max_priority > 0 else self._fifo
        if fifo.paged > 0 and self._reads_ahead(fifo):
            raise Postponed

    def arm_head_expiry(self) -> None:
        if self.overlooked:
            return
        expires_at = (self._first_fifo() if self.max_priority > 0 else self._fifo).head_expiry()
        if expires_at:
            self.broker.timers.arm(self._head_expiry, expires_at)
        elif self._head_expiry.due >= 0:
            self.broker.timers.cancel(self._head_expiry)

    def touch(self) -> None:
        """The queue was used: x-expires counts anew, as long as nobody consumes."""
        self.idle_since = self.broker.turn.now
        expires = self.settings.expires
        if expires >= 0 and self.consumer_count() == 0:
            self.broker.timers.arm(self._expiry, self.broker.turn.now + expires)
        else:
            self.broker.timers.cancel(self._expiry)

    # -- consumers ---------------------------------------------------------------------------------------------

    def subscribe(self, consumer: Consumer) -> None:
        self.had_consumer = True
        if consumer.exclusive:
            self.exclusive_consumer = consumer
        self.dispatch.add(consumer)
        self.touch()
        self._promise.renew()
        self.mark_dirty()

    def unsubscribe(self, consumer: Consumer) -> None:
        """The consumer left. What it holds stays with its channel."""
        consumer.cancelled = True
        self.dispatch.remove(consumer)
        if self.exclusive_consumer is consumer:
            self.exclusive_consumer = None
        self.mark_dirty()
        if len(self.dispatch.consumers) == 0:
            self.touch()
            if self.auto_delete and self.had_consumer and not self.gone:
                self.vhost.remove_queue(self)

    def wake(self, consumer: Consumer) -> None:
        """A consumer may be able to take messages again."""
        self.dispatch.wake(consumer)
        if self.ready > 0:
            self.mark_dirty()

    # -- the whole queue ---------------------------------------------------------------------------------------

    def purge(self) -> i64:
        """Drop what is ready; what is with consumers stays. Returns how many."""
        count = self.ready
        self._note_leased("queue_purged_around_leases")
        if self.durable and count:
            self.broker.log.purge(self.id, self.logged_addresses())
        self._clear()
        self.overlooked = False
        if self._head_expiry.due >= 0:
            self.broker.timers.cancel(self._head_expiry)
        return count

    def stop(self) -> None:
        """The queue is deleted: no timers, nothing waits. Its consumers are told by the vhost."""
        self._note_leased("queue_deleted_with_leases")
        if self.durable:
            self.broker.drop_from_log(self)
        self.leases.drop()
        if self.aside is not None:
            self.aside.clear()
        self.gone = True
        self.broker.timers.cancel(self._head_expiry)
        self.broker.timers.cancel(self._expiry)
        self._clear()

    def _note_leased(self, event: str) -> None:
        leased = self.leases.messages()
        if leased:
            self.broker.notes.event(
                "warning", event, {"queue": str(self.name), "messages": int(self.ready), "leased": int(leased)}
            )

    def forget_transient(self) -> None:
        """Drop what would not be there after a restart of the process; nobody holds anything any more."""
        if self.keeps_all:
            return
        self.ready = 0
        self.ready_bytes = 0
        for fifo in self._fifos:
            self.ready_bytes += fifo.forget_transient()
            self.ready += fifo.length
        if self.expiring:
            self.arm_head_expiry()

    def _clear(self) -> None:
        for fifo in self._fifos:
            fifo.free_transient()
            fifo.clear()
        self.ready = 0
        self.ready_bytes = 0

    def lease_out(self, lease: Lease, count: i64, max_bytes: i64, most: i64, most_bytes: i64) -> bool:
        """Move messages from the head to a lease: they count as unacknowledged and nobody else gets them.

        ``count`` of them, of ``max_bytes`` in all (-1 = no such bound), but not more now than ``most`` or about
        ``most_bytes``. Says whether it has all it may have."""
        self.overlooked = False
        if self.expiring:
            self.expire_heads(self.broker.turn.now)
        full = True
        while self.ready > 0 and not self.behind and not self.busy and (count < 0 or lease.count() < count):
            fifo = self._first_fifo() if self.max_priority > 0 else self._fifo
            size = fifo.head_size()
            if max_bytes >= 0 and lease.count() > 0 and lease.bytes + size > max_bytes:
                break
            if most <= 0 or most_bytes <= 0:
                full = False
                break
            fifo.lease_head(lease, fifo.priority)
            most -= 1
            most_bytes -= size
            self.ready -= 1
            self.ready_bytes -= size
            self.unacked += 1
            self.unacked_bytes += size
        if self.expiring:
            self.arm_head_expiry()
        self._promise.renew()
        return full

    def places(self, first: i64, end: i64, most: i64) -> list[Place]:
        """Where what waits here is, by position from ``first`` up to ``end``: for somebody who only looks."""
        if self.max_priority == 0:
            return self._fifo.places(first, end, most)
        found: list[Place] = []
        for fifo in self._fifos:
            found.extend(fifo.places(first, end, most))
        found.sort(key=by_position)
        return found[:most]

    def head_timestamp(self) -> int | None:
        """The ``timestamp`` property of the next message, while that is in memory.

        RabbitMQ's ``head_message_timestamp`` looks at what is with consumers too.
        """
        head = self._first_fifo().head_in_memory()
        return None if head is None else Content(head.message.header(), b"").properties.timestamp

    def kept_addresses(self) -> list[i64]:
        """Where the log keeps what neither waits here for consumers nor is with them: it outlives a purge."""
        return self.leases.addresses()

    def logged_addresses(self) -> vec[i64]:
        """Where the log keeps what waits here."""
        addresses = vec[i64]()
        for fifo in self._fifos:
            addresses = fifo.logged(addresses)
        return addresses

    def index(self) -> QueueIndex:
        """What waits here, for the log to remember at a clean stop."""
        index = QueueIndex()
        priority: i64 = 0
        for fifo in self._fifos:
            fifo.fill_index(index, priority)
            priority += 1
        self.leases.fill_index(index)
        if self.aside is not None:
            self.aside.fill_index(index)
        index.sort()
        return index

    def take_back(self, first: i64) -> list[i64]:
        """The log could not write the batches from ``first`` on: take out what no consumer has seen of them.
        Returns where the log has what was taken."""
        addresses: list[i64] = []
        for fifo in self._fifos:
            before = fifo.length
            self.ready_bytes -= fifo.take_back(first, addresses)
            self.ready -= before - fifo.length
        return addresses


def leases_of(queue: Queue) -> Leases:
    """Its leases; every kind has them, though a stream gives none out."""
    assert isinstance(queue, ClassicQueue)
    return queue.leases
