"""A queue as everybody else knows it: what it is, what it counts, and what can be asked of it.

Duty: state, and the answers that follow from it alone. What a queue does with its messages is each kind's own:
``classic.py``, ``quorum.py``, ``stream.py``.

Invariants: an entry is in exactly one place: waiting here, or outstanding on a channel (``acks.py``), or gone.
Everything that changes what the log knows happens within one turn, so it lands in one batch.
"""

from __future__ import annotations

from typing import Final

from librt.vecs import vec
from mypy_extensions import i64

from warrenmq.broker.message import Message
from warrenmq.broker.queue import holder
from warrenmq.broker.queue.arguments import DROP_HEAD, QueueSettings, settings
from warrenmq.broker.queue.aside import Aside
from warrenmq.broker.queue.dispatch import Dispatch
from warrenmq.broker.queue.entry import Consumer, Entry
from warrenmq.broker.queue.place import Place
from warrenmq.broker.queue.surroundings import Owner, Realm
from warrenmq.broker.records import Binding, Destination, Resource
from warrenmq.broker.services.held_deliveries import Promised
from warrenmq.broker.services.turn import Delivering
from warrenmq.log.index import QueueIndex
from warrenmq.wire.fields import Table

UNLIMITED: Final = 1 << 40


class Queue(Destination, Delivering, Promised):
    """The base of all kinds."""

    kind: str = "classic"

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
        super().__init__(name)
        self.vhost: Final = vhost
        self.broker: Final = vhost.broker
        self.id: Final = id  # never used again, so a queue declared anew under the name is another one for the log
        self.identity: str = str(id)  # the same for clients that come back later, on whichever data folder
        self.durable: Final = durable
        self.exclusive_owner: Final = exclusive_owner
        self.auto_delete: Final = auto_delete
        self.arguments: Final = arguments
        self.policy: str | None = None
        self.operator_policy: str | None = None
        self.policy_definition: dict[str, object] = {}
        self.settings: QueueSettings = settings(arguments, {})
        self.bindings_in: dict[object, Binding] = {}
        sac = arguments.get("x-single-active-consumer")
        self.dispatch: Final = Dispatch(sac is not None and sac.value is True)
        self.had_consumer: bool = False
        self.exclusive_consumer: Consumer | None = None
        self.dirty: bool = False
        self.keeps_all: bool = False  # does it log transient messages too? (streams)
        self.knows_consumers: bool = False  # does it get back what an ended channel held by consumer? (quorum)
        self.aside: Aside | None = None  # what is damaged
        self.failed: bool = False  # set by a fault: accepts nothing any more
        self.next_position: i64 = 1
        self.moved_batch: i64 = 0  # the last log batch in which a message came from inside the broker
        self.ready: i64 = 0
        self.ready_bytes: i64 = 0
        self.unacked: i64 = 0
        self.unacked_bytes: i64 = 0
        self.eager: bool = False  # must each publish be settled before the next? (limits)
        self.expiring: bool = False  # may entries here expire?
        self.overlooked: bool = False  # did the head arrive before others that waited? Then nobody has looked at it yet
        self.busy: i64 = 0  # jobs before whose end nothing goes out
        self.trimming: bool = False  # one of them drops heads
        self.behind: bool = False  # more has expired than a turn may drop: the rest is at the head still
        # counters
        self.published: i64 = 0
        self.delivered: i64 = 0  # to consumers who acknowledge; the others and those by basic.get count below
        self.delivered_no_ack: i64 = 0
        self.fetched: i64 = 0
        self.fetched_no_ack: i64 = 0
        self.fetched_nothing: i64 = 0  # basic.get of an empty queue
        self.redelivered: i64 = 0  # of all these, those that had been delivered before
        self.acked: i64 = 0
        self.requeued: i64 = 0
        self.idle_since: i64 = vhost.broker.turn.now

    # -- settings --------------------------------------------------------------------------------------------------

    def apply_settings(self) -> None:
        """Arguments or policy changed: take the new limits into force, also on what waits here already."""
        raise NotImplementedError

    def touch(self) -> None:
        """The queue was used: x-expires counts anew, as long as nobody consumes."""
        raise NotImplementedError

    # -- publishing ------------------------------------------------------------------------------------------------

    def refuses(self, message: Message) -> bool:
        """Would this message be over the limit of a queue that rejects publishes?"""
        return self.would_refuse(0, 0, message.size)

    def would_refuse(self, more: i64, more_bytes: i64, size: i64) -> bool:
        """The same after ``more`` messages of ``more_bytes`` in all had come (a transaction checks before it acts)."""
        if self.failed:
            return True
        s = self.settings
        if s.overflow == DROP_HEAD:
            return False
        if s.max_length >= 0 and self.ready + more + 1 > s.max_length:
            return True
        return s.max_bytes >= 0 and self.ready_bytes + more_bytes + size > s.max_bytes

    def refused(self, message: Message) -> None:
        """A publish was rejected here: reject-publish-dlx dead-letters it all the same."""
        raise NotImplementedError

    def expiry_for(self, message: Message) -> i64:
        """When a message arriving now expires here; 0 = never."""
        ttl = self.settings.ttl
        own = message.expiration
        if own >= 0 and (ttl < 0 or own < ttl):
            ttl = own
        if ttl < 0:
            return 0
        return self.broker.turn.now + ttl

    def publish(self, message: Message, expires_at: i64) -> None:
        """Take a message in at the tail. It has been logged already if it must be."""
        raise NotImplementedError

    def holds(self, message: Message) -> bool:
        """Does the log know that this queue holds the message?"""
        return self.durable and message.persistent and message.address != 0

    def logs(self, message: Message) -> bool:
        """Must the message go to the log for this queue?"""
        return self.durable and message.persistent

    # -- delivering ------------------------------------------------------------------------------------------------

    def mark_dirty(self) -> None:
        """There may be something to deliver: look at the end of the turn."""
        if not self.dirty:
            self.dirty = True
            self.broker.turn.dirty.append(self)

    def deliver_now(self) -> None:
        """The end of the turn. A queue that fails, on a disk that cannot be read say, does not keep the others from
        their turn."""
        if not self.dirty or self.gone:
            return
        try:
            self.drain()
        except Exception as error:
            self.broker.notes.crash("queue_failed", {"queue": str(self.name)}, error)

    def drain(self) -> None:
        """Deliver while there is a message and a consumer that can take it."""
        raise NotImplementedError

    def get(self) -> Entry | None:
        """Take the oldest message for basic.get; the answer waits for the log where a delivery would have."""
        raise NotImplementedError

    def got(self, entry: Entry, no_ack: bool) -> None:
        """basic.get took this entry."""
        raise NotImplementedError

    def taken(self) -> i64:
        """How many messages left for clients, in whatever way."""
        return self.delivered + self.delivered_no_ack + self.fetched + self.fetched_no_ack

    def promise_pending(self) -> bool:
        """Must an answer that carries a message wait for the log?"""
        raise NotImplementedError

    def promise_kept(self) -> bool:
        """The log synced: may deliveries that waited for it go on? False while it is still open."""
        raise NotImplementedError

    # -- may it be done? -------------------------------------------------------------------------------------------

    def prefetch_for(self, asked: i64) -> i64:
        """What a consumer that asked for this many may hold; 0 = no limit."""
        return asked

    def check_consumer(self, consumer: Consumer) -> None:
        """Raise when this kind of queue does not serve such a consumer."""

    def refusal_problem(self, method: str) -> str:
        """Why this kind of queue does not take deliveries back or discards them, "" where it does."""
        return ""

    def check_get(self) -> None:
        """Raise when this kind of queue has no basic.get."""

    def check_purge(self) -> None:
        """Raise when this kind of queue cannot be purged."""

    def check_delete(self, if_unused: bool, if_empty: bool) -> None:
        """Raise when the flags of queue.delete forbid it."""
        raise NotImplementedError

    def check_whole(self) -> None:
        """Whoever asks the queue something waits until nothing expired is left at its head, all that goes back has
        come, and nothing is over a limit."""
        raise NotImplementedError

    def check_readable(self) -> None:
        """Whoever takes the head waits while its body is read."""

    # -- settling --------------------------------------------------------------------------------------------------

    def settle(self, entry: Entry) -> None:
        """A consumer acknowledged it, or it is dropped after delivery: it leaves for good."""
        raise NotImplementedError

    def requeue(self, entries: list[Entry]) -> None:
        """Back to their places, flagged redelivered; oldest first in the list. What is over a limit or has expired then
        is dropped before anybody gets it again."""
        raise NotImplementedError

    def abandoned(self, entries: list[Entry]) -> None:
        """The channel that held them is gone; oldest first in the list."""
        self.requeue(entries)

    def came_back(self) -> None:
        """After a requeue: limits and expiry first, then consumers."""
        raise NotImplementedError

    def reject(self, entry: Entry) -> None:
        """Rejected without requeue: dead-lettered if there is where to, else gone."""
        raise NotImplementedError

    def give_up(self, entry: Entry, reason: str) -> None:
        """It leaves the queue for this reason: dead-lettered if there is where to, else gone."""
        raise NotImplementedError

    def set_aside(
        self, address: i64, position: i64, size: i64, redelivered: bool, expires_at: i64, priority: i64
    ) -> None:
        """A message of this queue is damaged on disk: nobody gets it, and those behind it go on."""
        if self.aside is None:
            broker, stream = self.broker, self.kind == "stream"
            self.aside = Aside(broker, broker.damaged, self.id, "queue", self.vhost.name, self.name.name, stream)
        self.aside.put(position, address, size, holder.pack(priority, size, redelivered), expires_at)

    # -- limits and expiry -----------------------------------------------------------------------------------------

    def trimmed(self, least: i64 = 0) -> bool:
        """Drop heads that are over a limit, ``least`` in any case; says whether none is left."""
        raise NotImplementedError

    def expire_heads(self, now: i64, least: i64 = 0) -> None:
        """Drop what expired at ``now`` or before from the head, unless that is ``overlooked``; behind a higher priority
        nothing is looked at.

        Not more in a turn than the broker's bound allows, but ``least`` in any case. When more has expired the queue
        is ``behind``: it delivers nothing and whoever asks it something waits, until later turns have done the rest.
        """
        raise NotImplementedError

    def arm_head_expiry(self) -> None:
        raise NotImplementedError

    # -- consumers -------------------------------------------------------------------------------------------------

    def consumer_count(self) -> int:
        """As clients are told it."""
        return len(self.dispatch.consumers)

    def subscribe(self, consumer: Consumer) -> None:
        raise NotImplementedError

    def unsubscribe(self, consumer: Consumer) -> None:
        """The consumer left. What it holds stays with its channel."""
        raise NotImplementedError

    def wanted_now(self) -> i64:
        """How many more messages the consumers would take at once."""
        total: i64 = 0
        for consumer in self.dispatch.consumers:
            if consumer.active and consumer.can_take():
                if consumer.prefetch == 0 or consumer.no_ack:
                    return UNLIMITED
                total += consumer.prefetch - consumer.unacked
        return total

    def wake(self, consumer: Consumer) -> None:
        """A consumer may be able to take messages again."""
        raise NotImplementedError

    # -- the whole queue -------------------------------------------------------------------------------------------

    def purge(self) -> i64:
        """Drop what is ready; what is with consumers stays. Returns how many."""
        raise NotImplementedError

    def stop(self) -> None:
        """The queue is deleted: no timers, nothing waits. Its consumers are told by the vhost."""
        raise NotImplementedError

    def forget_transient(self) -> None:
        """Drop what would not be there after a restart of the process; nobody holds anything any more."""
        raise NotImplementedError

    def places(self, first: i64, end: i64, most: i64) -> list[Place]:
        """Where what waits here is, by position from ``first`` up to ``end``: for somebody who only looks."""
        raise NotImplementedError

    def head_timestamp(self) -> int | None:
        """The ``timestamp`` property of the next message, while that is in memory.

        RabbitMQ's ``head_message_timestamp`` looks at what is with consumers too.
        """
        raise NotImplementedError

    def kept_addresses(self) -> list[i64]:
        """Where the log keeps what neither waits here for consumers nor is with them: it outlives a purge."""
        raise NotImplementedError

    def logged_addresses(self) -> vec[i64]:
        """Where the log keeps what waits here."""
        raise NotImplementedError

    def index(self) -> QueueIndex:
        """What waits here, for the log to remember at a clean stop."""
        raise NotImplementedError

    def take_back(self, first: i64) -> list[i64]:
        """The log could not write the batches from ``first`` on: take out what no consumer has seen of them.
        Returns where the log has what was taken."""
        raise NotImplementedError

    # -- start -----------------------------------------------------------------------------------------------------

    def recover(self, position: i64, address: i64, size: i64, flags: i64, expires_at: i64, priority: i64) -> None:
        """An entry found in the log at start; they come in order of position."""
        raise NotImplementedError

    def recovered_failures(self, position: i64, failures: i64) -> None:
        """The log knows how often deliveries of this entry failed; only quorum queues count that."""

    def recovered_letter(self, position: i64, address: i64, size: i64, reason: str) -> None:
        """The log knows a dead letter that waits here for its targets; only quorum queues have those."""

    def recovered_lease(self, position: i64, size: i64) -> None:
        """A leased message found in the log at start: it counts, but does not wait here."""
        if position >= self.next_position:
            self.next_position = position + 1
        self.unacked += 1
        self.unacked_bytes += size

    def letters_waiting(self) -> tuple[int, int]:
        """Dead letters that stay here until their targets take them, and the bytes of their bodies."""
        return 0, 0
