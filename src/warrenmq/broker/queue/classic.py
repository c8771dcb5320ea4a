"""A classic queue: takes messages, keeps them in order, hands them to consumers.

Duty: the life of an entry in this queue, from ``publish`` to ``settle``, put together from parts with one duty each:
order (``order.py``, ``fifo.py``), what is in memory (``paging.py``, ``read_ahead.py``), expiry (``head_expiry.py``,
``queue_expiry.py``), limits (``limits.py``), whose turn it is (``dispatch.py``), when a delivery has to wait for the
log (``promise.py``, ``reserved.py``), leases (``leases.py``). What holds for every queue is in ``queue.py``; what a
dead letter looks like in ``dead_letter.py``.
"""

from __future__ import annotations

from typing import Final

from librt.vecs import append, vec
from mypy_extensions import i64

from warrenmq.broker.fates import left
from warrenmq.broker.message import Message
from warrenmq.broker.queue import holder, paging
from warrenmq.broker.queue.accounts import (
    ASIDE,
    LEASED,
    RETRY_WAITING,
    UNACKED,
    WAITING,
    Accounts,
)
from warrenmq.broker.queue.arguments import CLASSIC, DROP_HEAD, QUORUM, REJECT_PUBLISH_DLX
from warrenmq.broker.queue.dispatch import Dispatch
from warrenmq.broker.queue.fifo import Fifo
from warrenmq.broker.queue.head_expiry import HeadExpiry
from warrenmq.broker.queue.lease import Lease, no_lease
from warrenmq.broker.queue.leases import Leases
from warrenmq.broker.queue.limits import Limits
from warrenmq.broker.queue.office import DeadLetterOffice, GivesUp
from warrenmq.broker.queue.order import Order
from warrenmq.broker.queue.page import MOVED, PERSISTENT
from warrenmq.broker.queue.paging import LONG, SMALL, SMALL_WINDOW, WINDOW, WINDOW_BYTES
from warrenmq.broker.queue.place import Place
from warrenmq.broker.queue.promise import Promise
from warrenmq.broker.queue.put_away import PutEntryAway
from warrenmq.broker.queue.queue import Consumer, Declaration, Entry, Queue, Realm
from warrenmq.broker.queue.queue_expiry import QueueExpiry
from warrenmq.broker.queue.read_ahead import reads_ahead
from warrenmq.broker.queue.reserved import Reserved
from warrenmq.broker.queue.retries import delay_of
from warrenmq.broker.records import Content
from warrenmq.broker.services.postponed import Postponed
from warrenmq.log.causes import (
    ACKED,
    AUTO_ACKED,
    DAMAGED,
    DELETED,
    DELIVERY_LIMIT,
    FORGOTTEN,
    LEASE_SETTLED,
    LETTERED,
    PUBLISHED,
    PURGED,
    REFUSED,
    REJECTED,
    WITHDRAWN,
)
from warrenmq.log.causes import (
    MOVED as MOVED_AWAY,
)
from warrenmq.log.fates import MOST_A_SECOND
from warrenmq.log.index import QueueIndex
from warrenmq.log.levels import OFF
from warrenmq.wire.replies import NOT_IMPLEMENTED, PRECONDITION_FAILED, AmqpError


class ClassicQueue(Queue, GivesUp):
    """Order, expiry, limits, consumers in turn, a promise to the log, and leases."""

    __deletable__ = ("_order", "_fifo", "_promise", "_reserved", "_expiry", "_queue_expiry", "_limits", "leases")

    def __init__(self, vhost: Realm, declared: Declaration, dead_letters: DeadLetterOffice) -> None:
        super().__init__(vhost, declared)
        priorities: i64 = 0
        field = declared.arguments.get("x-max-priority")
        if field is not None and isinstance(field.value, int):
            priorities = field.value
        self._dead_letters: Final = dead_letters
        self._order = Order(self, priorities)
        self._priorities: Final = priorities > 0  # is there more than one fifo?
        self._fifo = self._order.lowest  # else this is the one
        self._dispatch: Final = Dispatch(self.consumers, self.single_active, self.kind == CLASSIC, self.kind == QUORUM)
        self._promise = Promise(self)
        self._reserved = Reserved(self, self._order, self._dispatch, self._promise)
        self._expiry = HeadExpiry(self, self._order, self)
        self._queue_expiry = QueueExpiry(self)
        self._limits = Limits(self, self._order, self._expiry, self)
        self.leases = Leases(self, self._order, self._expiry, self._promise)
        self._had_consumer: bool = False
        self._tries: dict[int, int] | None = None  # how often clients gave it back, by position; None: none was
        self._moved_batch: i64 = 0  # the last log batch in which a message came from inside the broker
        self._bring_into_force()
        self._queue_expiry.begin_anew(False)

    # -- settings ----------------------------------------------------------------------------------------------

    def apply_settings(self) -> None:
        dropped = self._limits.drop_heads()
        super().apply_settings()
        self._expiry.seen()
        self._bring_into_force()
        if self._limits.exist() and (dropped or self._limits.drop_heads()):
            self._limits.trim()  # a new limit finds the old overflow behaviour still in force, as in RabbitMQ

    def _bring_into_force(self) -> None:
        self.eager = self.failed or self._limits.exist()
        if self.settings.ttl >= 0:
            self._expiry.expect()

    def touch(self) -> None:
        super().touch()
        self._queue_expiry.begin_anew(self.consumer_count() > 0)

    # -- publishing --------------------------------------------------------------------------------------------

    def would_refuse(self, more: i64, more_bytes: i64, size: i64) -> bool:
        return self.failed or self._limits.would_refuse(more, more_bytes, size)

    def refusal(self, message: Message) -> str:
        failed = super().refusal(message)
        if failed or not self.eager or not self.refuses(message):
            return failed
        return self._limits.reached()

    def refused(self, message: Message) -> None:
        """reject-publish-dlx dead-letters it all the same."""
        if self.failed:
            return
        self._limits.count_refused()
        if self.settings.overflow == REJECT_PUBLISH_DLX:
            self._dead_letters.add(self, self, Entry(message, self, 0), REFUSED)

    def expiry_for(self, message: Message) -> i64:
        ttl = self.settings.ttl
        own = message.expiration
        if own >= 0 and (ttl < 0 or own < ttl):
            ttl = own
        if ttl < 0:
            return 0
        return self.broker.turn.now + ttl

    def moved_in(self, batch: i64) -> None:
        self._moved_batch = batch

    def publish(self, message: Message, expires_at: i64) -> None:
        if not self.dirty:
            self.mark_dirty()
        position = self.next_position
        self.next_position = position + 1
        if self.journal.all and not self.holds(message):
            self._tell_entered(message, position)
        self.counters.published += 1
        self.ready += 1
        self.ready_bytes += message.size
        fifo = self._fifo
        if self._priorities:
            fifo = self._order.of(message.priority)
            if self._reserved.will_be(message):
                fifo = self._order.of(self._order.max_priority)  # it goes before whatever comes behind it
            if expires_at and self.ready > 1 and fifo.length == 0:
                self._expiry.overlook(fifo)
        if expires_at:
            self._expiry.expect()
        if (
            fifo.paged > 0
            or message.absent
            or (
                (fifo.length >= SMALL_WINDOW or self.ready_bytes - message.size > WINDOW_BYTES)
                and paging.is_due(self, fifo.length, message, self._dispatch)
            )
        ):
            self._page_out(fifo, message, position, expires_at)
        else:
            entry = Entry(message, self, position)
            entry.expires_at = expires_at
            fifo.push(entry)
        if self.eager:
            self._deliver()  # what is over a limit then leaves before what expires, as in RabbitMQ
            if self.ready > 0:
                self._reserved.came(position)
            if self.settings.overflow == DROP_HEAD:
                self._limits.trim(2)
            if self._expiry.possible:
                self._expiry.expire(self.broker.turn.now)
        elif self._priorities:
            self.drain()  # a waiting consumer gets each message as it comes; a later one must not overtake it
        if expires_at:
            if expires_at <= self.broker.turn.now:  # a TTL of 0: a consumer takes it now, or it expires
                self._deliver()
                if self.ready > 0:
                    self._reserved.came(position)
                self._expiry.expire(self.broker.turn.now, 2)  # more than came, so that a flood does not outrun it
            else:
                self._expiry.arm()

    def _tell_entered(self, message: Message, position: i64) -> None:
        unlogged = self.broker.log.unlogged
        if not self.journal.tells(message):
            self.broker.log.events.sampled_out(1)
            if message.address == 0:
                unlogged.untold(message.id)
            return
        if self.journal.bodies:
            self._tell_body(message)
        if message.address == 0:
            origin = message.origin
            unlogged.message(message.id, message.header(), origin.exchange, origin.packed_keys)
        unlogged.entered(self.journal.named(), position, message.number())

    def _tell_body(self, message: Message) -> None:
        bodies = self.broker.log.told_bodies
        if message.address == 0:
            bodies.tell(message.id, message.size, message.pieces())
        else:
            bodies.in_record(message.id)

    def tell_left(self, message: Message, cause: i64) -> None:
        """It was given up for this cause: the journal is told, unless it knows that from elsewhere."""
        if self.journal.level > OFF and not self.holds(message) and not self.journal.tells(message):
            left(self.broker.log, cause, self.journal.named(), message)

    def _page_out(self, fifo: Fifo, message: Message, position: i64, expires_at: i64) -> None:
        """Keep only where the content is. What no disk takes keeps its content in memory, and a very long body stays
        there until the transient store has it; so does a larger transient one while there is memory."""
        address: i64 = 0
        short = self.broker.pressure.memory_half_full
        stays = not short and message.size > SMALL and not self.holds(message)
        later = short and message.size > LONG and not self.holds(message)
        if not later and not stays:
            try:
                address = paging.address_of(self, message)
            except OSError:
                pass
        if address == 0:
            entry = Entry(message, self, position)
            entry.expires_at = expires_at
            fifo.push_resident(entry)
            if later:
                self.broker.jobs.add(PutEntryAway(self, fifo, entry))
            return
        flags: i64 = (PERSISTENT if message.persistent else 0) | (MOVED if message.moved else 0)
        fifo.push_packed(address, position, message.size, flags, expires_at)

    # -- delivering --------------------------------------------------------------------------------------------

    def drain(self) -> None:
        self._deliver()
        if self.ready > 0 and (self._expiry.possible or self.eager or self._priorities):
            self._reserved.came(self.next_position - 1)
        if self._reserved.given_out() and self.eager and self._limits.drop_heads():
            self._limits.trim()
        if self._expiry.possible and not self.busy:
            self._expiry.expire(self.broker.turn.now)

    def _deliver(self) -> None:
        """As much as consumers take."""
        self.dirty = False
        if self.busy or self.paused:
            return
        dispatch = self._dispatch
        deliveries = self.deliveries
        before = deliveries.delivered + deliveries.delivered_no_ack
        last: i64 = 0
        while self.ready > 0:
            consumer = dispatch.next()
            if consumer is None:
                break
            entry = self._take(False)
            if entry is None:
                break
            last = entry.position
            consumer.deliver(entry)
            if consumer.no_ack:
                deliveries.delivered_no_ack += 1
                self._leave(entry, AUTO_ACKED)
            else:
                deliveries.delivered += 1
                self.unacked += 1
                self.unacked_bytes += entry.message.size
                if self.unacked > WINDOW:
                    paging.let_go(self, entry)
            dispatch.served(consumer)
        if last:
            handed = deliveries.delivered + deliveries.delivered_no_ack - before
            self.waits.handed_out(self.marks, last, handed, self.broker.turn.now)

    def _take(self, answer_waits: bool) -> Entry | None:
        """The next entry, out of the order; None when there is none or it must wait for the log: unless, as with
        basic.get, the answer that carries it does."""
        fifo = self._fifo
        if self._priorities:
            fifo = self._order.first()
        if self._expiry.possible:
            self._expiry.expire(self.broker.turn.now - 1, 2)
            if self._expiry.behind or self.busy:
                return None
            if self._priorities:
                fifo = self._order.first()
        if (fifo.paged > 0 or fifo.bare > 0) and reads_ahead(self, fifo):
            return None
        if self.durable and not answer_waits:
            head = fifo.peek()
            promise = self._promise
            if head is None or (head.position > promise.limit and not promise.covers(head)):
                return None
            if self._moved_batch > self.broker.log.committed and promise.moving(head):
                return None
        entry = fifo.pop()
        if entry is not None:
            self.ready -= 1
            self.ready_bytes -= entry.message.size
            if self._priorities and self._expiry.overlooked:
                self._expiry.seen()
                self._expiry.expire(self.broker.turn.now)
        return entry

    def promise_kept(self) -> bool:
        return self._promise.kept()

    def check_whole(self) -> None:
        """Nor is anything expired left at its head then, or over a limit."""
        super().check_whole()
        if self._expiry.possible:
            self._expiry.expire(self.broker.turn.now - 1)
            if self._expiry.behind or self.busy:
                raise Postponed

    def check_delete(self, if_unused: bool, if_empty: bool) -> None:
        if if_empty and self.ready > 0:
            raise AmqpError(PRECONDITION_FAILED, f"{self.name} not empty")
        if if_unused and len(self.consumers) > 0:
            raise AmqpError(PRECONDITION_FAILED, f"{self.name} in use")

    # -- basic.get ---------------------------------------------------------------------------------------------

    def check_get(self) -> None:
        """Raise when this queue has no basic.get."""

    def check_readable(self) -> None:
        """Whoever takes the head waits while its body is read."""
        if reads_ahead(self, self._order.first()):
            raise Postponed

    def get(self) -> Entry | None:
        """Take the oldest message; the answer waits for the log where a delivery would have."""
        self.touch()
        self._promise.renew()
        return self._take(True)

    def got(self, entry: Entry, no_ack: bool) -> None:
        """basic.get took this entry."""
        self.waits.handed_out(self.marks, entry.position, 1, self.broker.turn.now)
        self.deliveries.fetch(no_ack, entry.redelivered)
        if no_ack:
            self._leave(entry, AUTO_ACKED)
        else:
            self.unacked += 1
            self.unacked_bytes += entry.message.size
        if self._expiry.possible:
            self._expiry.expire(self.broker.turn.now)  # what comes to the head and is expired does not count any more

    def promise_pending(self) -> bool:
        if self.broker.pressure.log_failing:
            return False
        return self._moved_batch > self.broker.log.committed or (self.durable and not self.promise_kept())

    # -- settling ----------------------------------------------------------------------------------------------

    def settle(self, entry: Entry) -> None:
        self.deliveries.acked += 1
        self.unacked -= 1
        self.unacked_bytes -= entry.message.size
        self._leave(entry, ACKED)

    def _leave(self, entry: Entry, cause: i64) -> None:
        if self._tries is not None:
            self._tries.pop(entry.position, None)
        if self.gone:
            if cause <= AUTO_ACKED:
                self._tell_went(entry.message)
            return
        if self.holds(entry.message):
            self.broker.log.settle(self.id, entry.message.address, cause)
        elif self.journal.all:
            if self.journal.tells(entry.message):
                self.broker.log.unlogged.left(self.journal.named(), entry.message.number(), cause)
            elif cause <= AUTO_ACKED or cause == MOVED_AWAY:  # a bad end is told all the same (``tell_left``)
                self.broker.log.events.sampled_out(1)

    def _tell_went(self, message: Message) -> None:
        """A client had it when the queue was deleted, and says now what it will of it."""
        if self.journal.told(message) and not self.holds(message):
            self.broker.log.unlogged.left(self.journal.named(), message.number(), DELETED)

    def give_back(self, entries: list[Entry]) -> None:
        """With a retry policy they wait, each time longer, and go when it was too often; else they are back at once."""
        if self.settings.retry_delay <= 0 or self.gone:
            self.abandoned(entries)
            return
        for entry in entries:
            entry.consumer = None
            tries = 1 if self._tries is None else self._tries.get(entry.position, 0) + 1
            if not self._tried_enough(entry, tries):
                self._count_tries(entry, tries)
                self._postpone(entry, tries)
        self.mark_dirty()

    def tries_of(self, position: i64) -> int:
        """How often clients have given it back."""
        return 0 if self._tries is None else self._tries.get(position, 0)

    def _tried_enough(self, entry: Entry, tries: i64) -> bool:
        """Is that one too many? Then it is given up."""
        limit = self.settings.retry_limit
        if limit < 0 or tries <= limit:
            return False
        self.unacked -= 1
        self.unacked_bytes -= entry.message.size
        self.give_up(entry, DELIVERY_LIMIT)
        return True

    def _count_tries(self, entry: Entry, tries: i64) -> None:
        """The log has no room for both a count and a priority: with priorities a restart forgets the count."""
        if self._tries is None:
            self._tries = {}
        self._tries[entry.position] = tries
        if self._priorities or not self.holds(entry.message):
            self.tell_back([entry])
        else:
            packed = holder.pack_failed(tries, entry.message.size)
            self.broker.log.requeue(self.id, entry.message.address, entry.position, packed)

    def _postpone(self, entry: Entry, tries: i64) -> None:
        broker = self.broker
        due = broker.turn.now + delay_of(self.settings, tries, broker.randomness)
        if not self.leases.postpone(entry, due):
            self.retry([entry])

    def recovered_failures(self, position: i64, failures: i64) -> None:
        if self._tries is None:
            self._tries = {}
        self._tries[position] = failures

    def abandoned(self, entries: list[Entry]) -> None:
        self.tell_back(entries)
        self.requeue(entries)

    def tell_back(self, entries: list[Entry]) -> None:
        if not self.gone:
            events = self.broker.log.events
            for entry in entries:
                if self.holds(entry.message):
                    events.given_back(self.id, entry.position, entry.message.address)
                elif self.journal.all:
                    if self.journal.tells(entry.message):
                        events.know(self.journal.named())
                        events.given_back(self.id, entry.position, entry.message.number())
                    else:
                        events.sampled_out(1)

    def requeue(self, entries: list[Entry]) -> None:
        """Back to their places, flagged redelivered; oldest first in the list. What is over a limit or has expired then
        is dropped before anybody gets it again."""
        back: list[Entry] = []
        for entry in entries:
            self.unacked -= 1
            self.unacked_bytes -= entry.message.size
            if self.gone:
                self._tell_went(entry.message)
                continue
            entry.redelivered = True
            entry.consumer = None
            if paging.recall(self, entry):
                back.append(entry)
        self._order.put_back(back)
        if not self.gone:
            self.came_back()

    def came_back(self) -> None:
        """Limits and expiry first, then consumers."""
        if self.busy:
            return  # more comes back
        if self.eager and self._limits.drop_heads():
            self._limits.trim()
        if self._expiry.possible:
            self._expiry.seen()
            self._expiry.expire(self.broker.turn.now)
        self.mark_dirty()

    def reject(self, entry: Entry) -> None:
        """Dead-lettered if there is where to, else gone."""
        self.unacked -= 1
        self.unacked_bytes -= entry.message.size
        self.give_up(entry, REJECTED)

    def give_up(self, entry: Entry, cause: i64) -> None:
        if self.settings.dead_letter_exchange is None or self.gone:
            self.counters.left(cause, 1)
            self._leave(entry, cause)
            self.tell_left(entry.message, cause)
        elif paging.recall(self, entry):
            self.counters.dead_lettering(1)
            if self._dead_letters.add(self, self, entry, cause):
                self._leave(entry, cause | LETTERED)

    def handed_over(self, entry: Entry, cause: i64) -> None:
        self._leave(entry, cause | LETTERED)

    # -- sent elsewhere ----------------------------------------------------------------------------------------

    def take_out(self, position: i64) -> Entry | None:
        """Take what waits at this position, wherever in the order. ``took_out`` follows within the turn."""
        entry = self._order.take_out(position)
        if entry is not None and self._expiry.possible:
            self._expiry.seen()
            self._expiry.arm()
        return entry

    def took_out(self, entry: Entry, cause: i64) -> None:
        """It is elsewhere now."""
        self.counters.left(cause, 1)
        self._leave(entry, cause)

    # -- consumers ---------------------------------------------------------------------------------------------

    def subscribe(self, consumer: Consumer) -> None:
        self._had_consumer = True
        self._dispatch.add(consumer)
        self.touch()
        self._promise.renew()
        self.mark_dirty()

    def reserved(self) -> i64:
        return self._reserved.messages()

    def is_reserved(self, expires_at: i64) -> bool:
        return self._reserved.messages() > 0 and expires_at >= self._reserved.since

    def pass_over(self, consumer: Consumer) -> None:
        self._dispatch.remove(consumer)

    def unsubscribe(self, consumer: Consumer) -> None:
        consumer.cancelled = True
        self._dispatch.remove(consumer)
        self.mark_dirty()
        if len(self.consumers) == 0:
            self.touch()
            if self.declared.auto_delete and self._had_consumer and not self.gone:
                self.vhost.remove_queue(self)

    def wake(self, consumer: Consumer) -> None:
        self._dispatch.wake(consumer)
        if self.ready > 0:
            self.mark_dirty()

    # -- the whole queue ---------------------------------------------------------------------------------------

    def purge(self) -> i64:
        """Drop what is ready; what is with consumers stays. Returns how many."""
        count = self.ready
        self.leases.note("queue_purged_around_leases")
        unlogged = count
        if self.durable and count:
            logged = self._order.logged()
            self.broker.log.purge(self.id, logged)
            unlogged -= len(logged)
        self._tell_unlogged(PURGED, unlogged)
        self.counters.left(PURGED, count)
        self._clear()
        self._expiry.seen()
        self._expiry.disarm()
        return count

    def stop(self) -> None:
        self.leases.note("queue_deleted_with_leases")
        self.counters.left(DELETED, self.account().all_here())
        self._tell_unlogged(DELETED, self._unlogged())
        self.counters.none_dead_lettering()
        self.leases.drop()
        super().stop()
        self._expiry.disarm()
        self._queue_expiry.disarm()
        self._clear()

    def _clear(self) -> None:
        self._order.clear()
        if self.unacked == 0:
            self._tries = None

    def own_references(self) -> i64:
        """A fifo, the order, the promise, what is reserved, the queue's expiry and the leases have one each; that of
        heads and the limits have two."""
        return len(self._order.fifos) + 9

    def come_apart(self) -> None:
        del self._order, self._fifo, self._promise, self._reserved
        del self._expiry, self._queue_expiry, self._limits, self.leases

    def let_go(self) -> None:
        for fifo in self._order.fifos:
            fifo.let_go()

    def tell_forgotten(self) -> None:
        self._tell_unlogged(FORGOTTEN, self._unlogged())
        self.leases.tell_lost(FORGOTTEN)

    def _unlogged(self) -> i64:
        """How many wait here in memory alone; 0 where the journal is not told of them: to count them takes long."""
        if self.journal.level == OFF:
            return 0
        return self.ready - self._order.count_logged() if self.durable else self.ready

    def _tell_unlogged(self, cause: i64, count: i64) -> None:
        """Tell the journal of what waits here in memory alone, so many, and is about to go. What is not told is
        counted."""
        if count <= 0 or self.journal.level == OFF:
            return
        some = self._order.unlogged(MOST_A_SECOND)
        for entry in some:
            if self.journal.all and self.journal.tells(entry.message):
                self.broker.log.unlogged.left(self.journal.named(), entry.message.number(), cause)
            else:
                left(self.broker.log, cause, self.journal.named(), entry.message)
        self.broker.log.fates.left_out(count - len(some))

    def forget_transient(self) -> None:
        self._tell_unlogged(FORGOTTEN, self._unlogged())
        before = self._order.length()
        self._order.forget_transient()
        self.counters.left(FORGOTTEN, before - self._order.length())
        if self._expiry.possible:
            self._expiry.arm()

    def held_since(self) -> i64:
        return self.leases.oldest()

    def places(self, first: i64, end: i64, most: i64) -> list[Place]:
        return self._order.places(first, end, most)

    def head_timestamp(self) -> int | None:
        head = self._order.first().head_in_memory()
        return None if head is None else Content(head.message.header(), b"").properties.timestamp

    def logged_addresses(self) -> vec[i64]:
        addresses = self._order.logged()
        for address in self.leases.addresses():
            addresses = append(addresses, address)
        return addresses if self._damage is None else self._damage.addresses(addresses)

    def index(self) -> QueueIndex:
        index = QueueIndex()
        self._order.fill_index(index)
        self.leases.fill_index(index)
        if self._damage is not None:
            self._damage.fill_index(index)
        index.sort()
        if self._tries is not None and not self._priorities:
            count_in(index, self._tries)
        return index

    def take_back(self, first: i64) -> list[i64]:
        addresses = self._order.take_back(first)
        self.counters.left(WITHDRAWN, len(addresses))
        return addresses

    def account(self) -> Accounts:
        found = super().account()
        found.came(PUBLISHED, self.counters.published - found.came_otherwise())
        found.left(ACKED, self.deliveries.acked - self.leases.acked)
        found.left(LEASE_SETTLED, self.leases.acked)
        found.left(AUTO_ACKED, self.deliveries.delivered_no_ack + self.deliveries.fetched_no_ack)
        damage = self._damage
        if damage is not None:
            found.left(DAMAGED, damage.dropped)
        if self.gone:
            return found
        leased = self.leases.messages()
        retrying = self.leases.retrying()
        found.here(WAITING, self.ready)
        found.here(UNACKED, self.unacked - leased)
        found.here(LEASED, leased - retrying)
        found.here(RETRY_WAITING, retrying)
        if damage is not None:
            found.here(ASIDE, len(damage.kept))
        found.misplaced = self._order.misplaced()
        return found

    # -- start -------------------------------------------------------------------------------------------------

    def recover(self, position: i64, address: i64, size: i64, flags: i64, expires_at: i64, priority: i64) -> None:
        if position >= self.next_position:
            self.next_position = position + 1
        self.ready += 1
        self.ready_bytes += size
        if expires_at:
            self._expiry.expect()
        self._order.of(priority).push_packed(address, position, size, flags | PERSISTENT, expires_at)

    def recovered(self) -> None:
        super().recovered()
        self.leases.restored()
        if self._expiry.possible:
            self._expiry.arm()


def count_in(index: QueueIndex, counts: dict[int, int]) -> None:
    """Failed deliveries, by position, into what the log remembers at a clean stop."""
    i: i64 = 0
    while i < len(index.positions):
        failures = counts.get(index.positions[i])
        if failures is not None:
            index.flags[i] = holder.pack_failed(failures, holder.size_of(index.flags[i]))
        i += 1


def emptied(queue: Queue, method: str) -> ClassicQueue:
    """The queue as one from which messages can be taken; a stream is only read."""
    if not isinstance(queue, ClassicQueue):
        raise AmqpError(NOT_IMPLEMENTED, f"{method} not supported by stream queues {queue.name}")
    return queue


def leases_of(queue: Queue) -> Leases | None:
    """Its leases; a stream gives none out."""
    return queue.leases if isinstance(queue, ClassicQueue) else None


def lease_of(queue: Queue, id: str) -> Lease:
    """The living lease; LeaseError when there is none."""
    leases = leases_of(queue)
    if leases is None:
        raise no_lease(queue, id)
    return leases.get(id)
