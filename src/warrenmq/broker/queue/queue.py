"""A queue as everybody else knows it, with whom it deals: its vhost, its owner, its consumers, and its entries.

Duty: what every kind of queue has and is asked. Whoever publishes, settles, lists or recovers knows this and no more;
what a queue does with its messages is each kind's own: ``classic.py``, ``quorum.py``, ``stream.py``. These few classes
name one another, so they stand in one module.

Invariants: an entry is in exactly one place: waiting here, or outstanding on a channel (``acks.py``), or gone.
Everything that changes what the log knows happens within one turn, so it lands in one batch.
"""

from __future__ import annotations

from typing import Final, final

from librt.vecs import vec
from mypy_extensions import i64, mypyc_attr, trait

from warrenmq.broker.message import Message
from warrenmq.broker.queue import holder
from warrenmq.broker.queue.accounts import Accounts
from warrenmq.broker.queue.arguments import STREAM, QueueSettings, queue_type, settings
from warrenmq.broker.queue.counters import QueueCounters
from warrenmq.broker.queue.damaged import Damaged, OwnerDamage
from warrenmq.broker.queue.journal import QueueJournal, VhostJournal
from warrenmq.broker.queue.marks import Marks
from warrenmq.broker.queue.place import Place
from warrenmq.broker.queue.surroundings import Surroundings
from warrenmq.broker.queue.waits import Waits
from warrenmq.broker.records import Binding, Destination, Exchange, PolicyInForce, Resource
from warrenmq.broker.services.deliveries import Deliveries
from warrenmq.broker.services.held_deliveries import Promised
from warrenmq.broker.services.postponed import Postponed
from warrenmq.broker.services.taking_apart import Assembled
from warrenmq.broker.services.turn import Cancelled, Delivering
from warrenmq.log.index import QueueIndex
from warrenmq.wire.fields import Table

UNLIMITED: Final = 1 << 40


@trait
class Owner:
    """The connection whose an exclusive queue is."""

    def owns(self, queue: Queue) -> None:
        raise NotImplementedError

    def owns_no_more(self, queue: Queue) -> None:
        raise NotImplementedError


class Realm:
    """A vhost as its queues know it."""

    def __init__(self, name: str, broker: Surroundings) -> None:
        self.name: Final = name
        self.broker: Final = broker
        self.exchanges: dict[str, Exchange] = {}
        self.queues: dict[str, Queue] = {}
        self.tracing: bool = False  # is the firehose on?
        self.watched: bool = False  # is anybody told of what is published and delivered, the firehose or a witness?
        self.journal: Final = VhostJournal()

    def remove_queue(self, queue: Queue) -> i64:
        """Take a queue away, with its bindings. Returns how many messages waited in it."""
        raise NotImplementedError


# Garbage collection does not look at entries: with a million of them it held everybody up for a quarter of a second.
# Nor can it free what they lead to, so whoever holds entries lets go of them at its end: a channel gives them back, a
# queue that is deleted drops them, and so does every queue when its broker has stopped (``Queue.let_go``).
@final
@mypyc_attr(acyclic=True)
class Entry:
    """A message in one queue: its place there and what happened to it since."""

    def __init__(self, message: Message, queue: Queue, position: i64) -> None:
        self.message: Message = message
        self.queue: Final = queue
        self.position: Final = position
        self.expires_at: i64 = 0  # broker time in ms, 0 = never
        self.redelivered: bool = False
        self.consumer: Consumer | None = None  # who holds it, when delivered to a consumer
        self.delivered_at: i64 = 0
        self.original: Message | None = None  # as published, while ``message`` shows a delivery count


class Consumer(Cancelled):
    """A subscription to a queue, with its prefetch, as far as queues know one."""

    def __init__(
        self,
        queue: Queue,
        tag: str,
        no_ack: bool,
        exclusive: bool,
        priority: i64,
        prefetch: i64,
        arguments: Table,
        counted: Deliveries,
    ) -> None:
        self.queue: Final = queue
        self.tag: Final = tag
        self.no_ack: Final = no_ack
        self.exclusive: Final = exclusive
        self.priority: Final = priority
        self.asked_prefetch: Final = prefetch  # fixed when the consumer starts
        self.prefetch: Final[i64] = queue.prefetch_for(prefetch)  # what holds; 0 = unlimited
        self.arguments: Final = arguments
        self.counted: Final = counted  # what its channel gets from this queue
        self.unacked: i64 = 0
        self.last_tag: i64 = 0  # of its last delivery: who of the channel's consumers has waited longest?
        self.in_turn: bool = False  # is it in the queue's ring of consumers that can take a message?
        self.active: bool = True  # single active consumer: is it the one?
        self.cancelled: bool = False

    def is_full(self) -> bool:
        """Does it hold all it may?"""
        return self.prefetch > 0 and self.unacked >= self.prefetch and not self.no_ack

    def can_take(self) -> bool:
        """Would a message reach it now?"""
        raise NotImplementedError

    def waits(self) -> bool:
        """Would one reach it now, or as soon as an answer before it that waits for the log is out?"""
        raise NotImplementedError

    def deliver(self, entry: Entry) -> None:
        """Hand a message over."""
        raise NotImplementedError

    def queue_deleted(self) -> None:
        """There will be no more."""
        raise NotImplementedError

    def shares_prefetch(self) -> bool:
        """Is there a limit that it shares with others (basic.qos with global set)?"""
        raise NotImplementedError


@final
class Declaration:
    """The facts that queue.declare asked for, or the log found: all that is said of a queue before it is there.

    ``id`` is never used again, so that a queue declared anew under the name is another one for the log; ``identity`` is
    the same for clients that come back later, on whichever data folder.
    """

    def __init__(
        self,
        name: Resource,
        id: i64,
        identity: str,
        durable: bool,
        exclusive_owner: Owner | None,
        auto_delete: bool,
        arguments: Table,
    ) -> None:
        self.name: Final = name
        self.id: Final = id
        self.identity: Final = identity
        self.durable: Final = durable
        self.exclusive_owner: Final = exclusive_owner
        self.auto_delete: Final = auto_delete
        self.arguments: Final = arguments


class Queue(Destination, Delivering, Promised, Assembled):
    """The base of all kinds."""

    def __init__(self, vhost: Realm, declared: Declaration) -> None:
        super().__init__(declared.name)
        arguments = declared.arguments
        self.vhost: Final = vhost
        self.broker: Final = vhost.broker
        self.declared: Final = declared
        self.id: Final = declared.id
        self.kind: Final = queue_type(arguments)
        self.durable: Final = declared.durable
        self.arguments: Final = arguments
        self.policy: Final = PolicyInForce()
        self.settings: QueueSettings = settings(arguments, {})
        self.counters: Final = QueueCounters()
        self.deliveries: Final = Deliveries()
        self.journal: Final = QueueJournal(
            vhost.broker.log,
            vhost.journal,
            declared.name,
            declared.id,
            self.kind == STREAM,
            declared.durable,
            self.counters,
        )
        self.broker.deadlines.changed(-1, self.settings.ack_deadline, False)
        self.bindings_in: Final[dict[object, Binding]] = {}
        sac = arguments.get("x-single-active-consumer")
        self.single_active: Final = sac is not None and sac.value is True
        self.consumers: Final[list[Consumer]] = []  # all of them, in the order they came
        self.dirty: bool = False
        self.busy: i64 = 0  # jobs before whose end nothing goes out
        self.eager: bool = False  # must each publish be settled before the next? (limits)
        self.failed: bool = False  # by a fault: accepts nothing any more
        self.paused: bool = False  # by an operator: takes messages, and hands none out
        self.next_position: i64 = 1
        self.marks: Final = Marks()
        self.waits: Final = Waits()
        self.ready: i64 = 0
        self.ready_bytes: i64 = 0
        self.unacked: i64 = 0
        self.unacked_bytes: i64 = 0
        self._damage: OwnerDamage | None = None  # what is damaged
        self.idle_since: i64 = vhost.broker.turn.now

    # -- settings --------------------------------------------------------------------------------------------------

    def take_policy(self, name: str | None, operator: str | None, definition: dict[str, object]) -> None:
        """These policies apply from now on. If they say what was said before, nothing else changes."""
        if self.policy.take(name, operator, definition):
            self.apply_settings()

    def apply_settings(self) -> None:
        """The policy changed: take the new limits into force, also on what waits here already."""
        before = self.settings.ack_deadline
        self.settings = settings(self.arguments, self.policy.definition)
        self.broker.deadlines.changed(before, self.settings.ack_deadline, self.unacked > 0)
        self.journal.settings_changed(self.settings)
        self.touch()

    def touch(self) -> None:
        """The queue was used: x-expires counts anew, as long as nobody consumes."""
        self.idle_since = self.broker.turn.now

    def fail(self) -> None:
        """A fault: it accepts nothing any more."""
        self.failed = True
        self.eager = True

    # -- publishing ------------------------------------------------------------------------------------------------

    def refuses(self, message: Message) -> bool:
        """Would this message be over the limit of a queue that rejects publishes?"""
        return self.would_refuse(0, 0, message.size)

    def would_refuse(self, more: i64, more_bytes: i64, size: i64) -> bool:
        """Would it after ``more`` messages of ``more_bytes`` in all had come? A transaction checks before it acts."""
        return self.failed

    def refusal(self, message: Message) -> str:
        """Why it would refuse this message, "" when it would not."""
        return "the queue failed" if self.failed else ""

    def refused(self, message: Message) -> None:
        """A publish was rejected here."""

    def expiry_for(self, message: Message) -> i64:
        """What the log keeps beside a message that arrives now: when it expires here; 0 = never."""
        raise NotImplementedError

    def publish(self, message: Message, expires_at: i64) -> None:
        """Take a message in at the tail. It has been logged already if it must be."""
        raise NotImplementedError

    def moved_in(self, batch: i64) -> None:
        """A message from inside the broker is about to come, and the log has the move in this batch."""

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
            turn = self.broker.turn
            turn.dirty.append(self)
            if turn.now >= self.marks.due:
                self._set_mark(turn.now)

    def _set_mark(self, now: i64) -> None:
        if self.ready == 0 and self.unacked == 0:
            self.marks.begin(self.next_position, now)
        else:
            self.marks.mark(self.next_position, now)

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

    def promise_kept(self) -> bool:
        """The log synced: may deliveries that waited for it go on? False while it is still open."""
        raise NotImplementedError

    def hold_back(self) -> None:
        """A job begins before whose end nothing goes out."""
        self.busy += 1

    def go_on(self) -> bool:
        """It is over. Says whether it was the last of them, and deliveries go on."""
        self.busy -= 1
        if self.busy > 0 or self.gone:
            return False
        self.came_back()
        return True

    def pause(self) -> None:
        """Nobody is handed anything any more: no consumer, no basic.get, no lease. What they hold stays theirs."""
        self.paused = True

    def resume(self) -> None:
        self.paused = False
        self.mark_dirty()

    def came_back(self) -> None:
        """After entries came back: consumers may get them."""
        self.mark_dirty()

    # -- accounts --------------------------------------------------------------------------------------------------

    def account(self) -> Accounts:
        """What came, what left and what is here. Of a queue that is gone nothing is here."""
        return self.counters.accounts()

    # -- may it be done? -------------------------------------------------------------------------------------------

    def prefetch_for(self, asked: i64) -> i64:
        """What a consumer that asked for this many may hold; 0 = no limit."""
        return asked

    def check_consumer(self, consumer: Consumer) -> None:
        """Raise when this kind of queue does not serve such a consumer."""

    def refusal_problem(self, method: str) -> str:
        """Why this kind of queue does not take deliveries back or discards them, "" where it does."""
        return ""

    def check_delete(self, if_unused: bool, if_empty: bool) -> None:
        """Raise when the flags of queue.delete forbid it; RabbitMQ does not look at those for a stream."""

    def check_whole(self) -> None:
        """Whoever asks the queue something waits until all that goes back has come."""
        if self.busy:
            raise Postponed

    # -- settling --------------------------------------------------------------------------------------------------

    def settle(self, entry: Entry) -> None:
        """A consumer acknowledged it: it leaves for good."""
        raise NotImplementedError

    def requeue(self, entries: list[Entry]) -> None:
        """They come back; oldest first in the list."""
        raise NotImplementedError

    def give_back(self, entries: list[Entry]) -> None:
        """A client gives them back; oldest first in the list. They come again at once, or when a policy says so."""
        self.requeue(entries)

    def retry(self, entries: list[Entry]) -> None:
        """They have waited long enough for being delivered again."""
        self.requeue(entries)

    def tell_back(self, entries: list[Entry]) -> None:
        """The journal is told that they come back, unless it will know that from the log."""

    def abandoned(self, entries: list[Entry]) -> None:
        """The channel that held them is gone; oldest first in the list."""
        self.requeue(entries)

    def reject(self, entry: Entry) -> None:
        """Rejected without requeue."""
        raise NotImplementedError

    def tells_consumers_apart(self) -> bool:
        """Does it get back what an ended channel held consumer by consumer?"""
        return False

    def set_aside(
        self, address: i64, position: i64, size: i64, redelivered: bool, expires_at: i64, priority: i64
    ) -> None:
        """A message of this queue is damaged on disk: nobody gets it, and those behind it go on."""
        if self._damage is None:
            broker, in_place = self.broker, self.kind == STREAM
            self._damage = OwnerDamage(
                broker, broker.damaged, self.id, "queue", self.vhost.name, self.name.name, in_place
            )
        self._damage.put(position, address, size, holder.pack(priority, size, redelivered), expires_at)

    # -- looking ---------------------------------------------------------------------------------------------------

    def places(self, first: i64, end: i64, most: i64) -> list[Place]:
        """Where what waits here is, by position from ``first`` up to ``end``: for somebody who only looks."""
        raise NotImplementedError

    def visible_end(self) -> i64:
        """One behind the last position that may be looked at."""
        return self.next_position

    def came_at(self, position: i64) -> i64:
        """When the message at this position came; earlier than that where ``knows_when`` says no."""
        return self.marks.since(position)

    def knows_when(self, position: i64) -> bool:
        return self.marks.is_known(position)

    def held_since(self) -> i64:
        """Since when the oldest of what is held here, and is with no client, is held; 0: there is nothing."""
        return 0

    def promise_pending(self) -> bool:
        """Must an answer that carries a message wait for the log?"""
        return False

    def damaged(self) -> list[Damaged]:
        """What was set aside."""
        return [] if self._damage is None else list(self._damage.kept.values())

    # -- consumers -------------------------------------------------------------------------------------------------

    def consumer_count(self) -> int:
        """As clients are told it."""
        return len(self.consumers)

    def exclusive_consumer(self) -> Consumer | None:
        """The one that has the queue for itself."""
        return self.consumers[0] if self.consumers and self.consumers[0].exclusive else None

    def subscribe(self, consumer: Consumer) -> None:
        raise NotImplementedError

    def pass_over(self, consumer: Consumer) -> None:
        """It is about to leave, or there is nothing left to leave: it gets no more."""
        raise NotImplementedError

    def unsubscribe(self, consumer: Consumer) -> None:
        """The consumer left. What it holds stays with its channel."""
        raise NotImplementedError

    def wanted_now(self) -> i64:
        """How many more messages the consumers would take at once, but for what waits for the log."""
        total: i64 = 0
        if self.paused:
            return 0
        for consumer in self.consumers:
            if consumer.active and consumer.waits():
                if consumer.prefetch == 0 or consumer.no_ack:
                    return UNLIMITED
                total += consumer.prefetch - consumer.unacked
        return total

    def reserved(self) -> i64:
        """How many at the head are a consumer's, who gets them when the log is ready: no limit counts them."""
        return 0

    def is_reserved(self, expires_at: i64) -> bool:
        """Is the head, whose time ends then, such a one? Not if it had ended before anybody waited."""
        return False

    def wake(self, consumer: Consumer) -> None:
        """A consumer may be able to take messages again."""
        raise NotImplementedError

    # -- the whole queue -------------------------------------------------------------------------------------------

    def stop(self) -> None:
        """The queue is deleted, and the log has dropped it: nothing waits. Its consumers are told by the vhost."""
        if self._damage is not None:
            self._damage.clear()
        self.broker.deadlines.changed(self.settings.ack_deadline, -1, False)
        self.journal.queue_gone()
        self.gone = True

    def own_references(self) -> i64:
        return 0

    def come_apart(self) -> None:
        """It is gone and nobody has it any more: let go of the parts, which lead back here."""

    def let_go(self) -> None:
        """The broker has stopped: hold no entries any more, which lead back here."""

    def tell_left(self, message: Message, cause: i64) -> None:
        """It was given up for this cause, and the journal may have to be told."""

    def tell_forgotten(self) -> None:
        """Tell the journal of what a restart of the process will not find."""

    def forget_transient(self) -> None:
        """Drop what would not be there after a restart of the process; nobody holds anything any more."""

    def head_timestamp(self) -> int | None:
        """The ``timestamp`` property of the next message, while that is in memory.

        RabbitMQ's ``head_message_timestamp`` looks at what is with consumers too.
        """
        return None

    def letters_waiting(self) -> tuple[int, int]:
        """Dead letters that stay here until their targets take them, and the bytes of their bodies."""
        return 0, 0

    def logged_addresses(self) -> vec[i64]:
        """Where the log keeps whatever it holds for this queue, but for what is with consumers."""
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

    def recovered(self) -> None:
        """That was all the log has. It does not say when a message came."""
        self.marks.begin(self.next_position, self.broker.turn.now)
