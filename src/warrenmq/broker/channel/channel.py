"""A channel: the state one client conversation has with the broker.

Duty: delivery tags, what is outstanding, consumers, confirm and transaction mode, and the order of replies. The
methods themselves are in ``methods/``, one handler per AMQP method; publishing is in ``publish/``.

Replies to changes of durable things leave only when the log has them (``reply_when_synced``); whatever the channel says
meanwhile queues up behind (``held``), so a client sees one order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from librt.strings import BytesWriter
from librt.vecs import vec
from mypy_extensions import i64

from warrenmq.broker.access import rights
from warrenmq.broker.channel.abandoned import take_all
from warrenmq.broker.channel.acks import Taken, Unacked
from warrenmq.broker.channel.assembly import Assembly, Receiver
from warrenmq.broker.channel.deliver_frame import ReplyConsumer
from warrenmq.broker.channel.session import Session
from warrenmq.broker.channel.settling import FEW, GiveBack, Settle, Settler, in_groups, queues_of
from warrenmq.broker.channel.states import CHANNEL, CHANNEL_OPEN, RUNNING
from warrenmq.broker.channel.transaction import (
    ACK,
    NACK_OR_REJECT,
    REJECT,
    REQUEUE,
    Transaction,
    command_while_committing,
)
from warrenmq.broker.durability.durability import WaitsForLog
from warrenmq.broker.message import Message
from warrenmq.broker.publish import outcomes
from warrenmq.broker.publish.publisher import Publisher
from warrenmq.broker.publish.publishing import Publishing, Teller
from warrenmq.broker.queue.entry import Consumer, Entry
from warrenmq.broker.records import DIRECT_REPLY, Exchange, Resource
from warrenmq.broker.replies import Listener
from warrenmq.broker.sender import Sender
from warrenmq.broker.services.turn import Answering
from warrenmq.wire.constants import CLASS_BASIC, ID_BASIC_ACK
from warrenmq.wire.methods import PUBLISH, method_frame
from warrenmq.wire.replies import NOT_IMPLEMENTED, PRECONDITION_FAILED, AmqpError

if TYPE_CHECKING:
    from warrenmq.broker.queue.queue import Queue


METHOD_ACK: Final = ID_BASIC_ACK & 0xFFFF
NEVER: Final = 0x7FFFFFFFFFFFFFFF  # no batch of the log has this number


@final
class Held:
    """Frames that wait for the log, with the message they announce if they do."""

    def __init__(self, batch: i64, frames: bytes, even_failing: bool, message: Message | None) -> None:
        self.batch: i64 = batch
        self.frames: Final = frames
        self.even_failing: bool = even_failing  # does it go out when the disk fails?
        self.message: Final = message


@final
class Channel(Teller, Answering, Listener, WaitsForLog, Receiver, Settler):
    """One conversation of a connection."""

    def __init__(self, number: i64, connection: Session) -> None:
        self.number: Final = number
        self.name: Final = f"{connection.name} ({number})"  # as RabbitMQ names channels
        self.connection: Final = connection
        self.broker: Final = connection.broker
        self.state: i64 = CHANNEL_OPEN
        self.unacked: Final = Unacked()
        self.consumer_unacked: i64 = 0  # of them, those that a global prefetch counts: delivered to consumers
        self._delivery_tag: i64 = 0
        self.consumers: dict[str, Consumer] = {}
        self.prefetch: i64 = 0  # for consumers started from now on
        self.global_prefetch: i64 = 0
        vhost = connection.open_vhost()
        publisher = Publisher(connection.username, vhost.name, vhost.exchanges, self.broker.access, self.broker.limits)
        sender = Sender(connection.username, connection.name, self.name, number)
        self.publishing: Final = Publishing(self.broker, vhost, publisher, sender, connection.memo, self)
        self.assembly: Final = Assembly(self.publishing)
        self.tx: Transaction | None = None
        self.committing: Held | None = None  # tx.commit-ok while it waits: no other command is taken meanwhile
        self.last_queue: str | None = None
        self.reply_consumer: ReplyConsumer | None = None  # direct reply-to
        # ordering
        self._held: list[Held] = []  # what waits for the log
        self._mark: i64 = 0  # the log's, when the method being handled began
        self._owes: bool = False
        self._waits: bool = False
        # counters
        self.delivered: i64 = 0  # as a queue counts them
        self.delivered_no_ack: i64 = 0
        self.fetched: i64 = 0
        self.fetched_no_ack: i64 = 0
        self.fetched_nothing: i64 = 0  # basic.get of an empty queue
        self.redelivered: i64 = 0
        self.acked: i64 = 0
        self.flow_until: i64 = 0

    def enter(self, state: i64) -> None:
        self.state = CHANNEL.entered(self.state, state)

    # -- writing -----------------------------------------------------------------------------------------------

    def reply(self, frames: bytes) -> None:
        """Say something to the client, behind what is held."""
        if self._held:
            last = self._held[-1]
            self._held.append(Held(last.batch, frames, last.even_failing, None))
        else:
            self.connection.write(frames)

    def method_begins(self) -> None:
        """What is written to the log from now on is this method's doing: its answer waits for that."""
        self._mark = self.broker.log.mark()

    def reply_when_synced(self, frames: bytes, found_durable: bool = True) -> None:
        """Answer when the log has what the method changed, and what it may have found there.

        What is not durable is found in memory alone: such an answer does not wait for other clients' definitions,
        which a failing disk may hold up for long.
        """
        broker = self.broker
        if broker.log.mark() != self._mark:
            self.reply_behind_the_log(frames)
        elif found_durable and broker.store.batch > broker.log.synced:
            self._hold(Held(broker.store.batch, frames, False, None))
        else:
            self.reply(frames)

    def reply_behind_the_log(self, frames: bytes) -> None:
        """Answer when everything up to now is on disk."""
        self._hold(Held(self.broker.log.batch, frames, False, None))

    def reply_to_commit(self, frames: bytes, durable: bool) -> None:
        """tx.commit-ok for messages that queues took: at the end of the turn, or when the log has them.

        Until then the channel takes no other command, as in RabbitMQ, where the queues' answers are waited for.
        """
        if durable:
            self.reply_behind_the_log(frames)
        elif self._held:
            self.reply(frames)
        else:
            self._held.append(Held(self.broker.log.synced, frames, True, None))
            self.broker.turn.committed.append(self)
        self.committing = self._held[-1]

    def forget_commit_answer(self) -> None:
        """The client closes the channel before tx.commit was answered: only the close is answered."""
        if self.committing is not None:
            self._held.remove(self.committing)
            self.committing = None

    def reply_with_message(self, method: bytes, message: Message, waits: bool) -> None:
        """An answer that carries a message may wait for the log as a delivery does: not while the disk fails."""
        held = Held(self.broker.log.batch, method, True, message)
        if waits:
            self._hold(held)
        elif self._held:
            held.batch = self._held[-1].batch
            held.even_failing = self._held[-1].even_failing
            self._held.append(held)
        else:
            self._send(held)

    def _hold(self, held: Held) -> None:
        if not self._held:
            self.broker.durability.gated.append(self)
        elif self._held[-1].batch > held.batch:
            held.batch = self._held[-1].batch
        self._held.append(held)
        self.broker.turn.owed = True

    def commit_goes_on(self, frames: bytes, queued: bool) -> None:
        """tx.commit-ok comes when ``commit_is_over``; whatever else is said meanwhile comes behind it."""
        self._hold(Held(NEVER, frames, False, None))
        if queued:
            self.committing = self._held[-1]

    def commit_is_over(self, durable: bool) -> None:
        """The answer goes out, when the log has what was committed."""
        batch: i64 = self.broker.log.batch if durable else self.broker.log.synced
        for held in self._held:
            if held.batch == NEVER:
                held.batch = batch
                held.even_failing = not durable
        self.broker.turn.owed = True
        if self.committing is not None:
            self.owes()
        elif not durable:
            self.release(self.broker.log.synced)

    def _send(self, held: Held) -> None:
        output = self.connection.output
        message = held.message
        if message is None:
            if held.frames:
                output.write(held.frames)
            return
        output.buffer.write(held.frames)
        output.write_content(self.number, message)

    def log_failed(self) -> bool:
        """The disk fails: messages that waited for it go out. Says whether nothing is held any more."""
        if self._over():
            return True
        held = self._held
        n: i64 = 0
        while n < len(held) and held[n].even_failing:
            self._send(held[n])
            n += 1
        del held[:n]
        if held:
            return False
        self.committing = None
        self.wake_consumers()
        return True

    def hold_until_synced(self, found_durable: bool = True) -> None:
        """Hold whatever comes next until the log has the open batch."""
        self.reply_when_synced(b"", found_durable)

    def release(self, synced: i64) -> bool:
        """The log synced up to here: send what waited. Says whether nothing is held any more."""
        if self._over():
            return True
        held = self._held
        n: i64 = 0
        while n < len(held) and held[n].batch <= synced:
            self._send(held[n])
            n += 1
        del held[:n]
        if held:
            return False
        self.committing = None
        self.wake_consumers()
        return True

    def _over(self) -> bool:
        """Nothing is said behind connection.close: what is held then is forgotten."""
        if self.connection.state == RUNNING:
            return False
        self._held = []
        return True

    def owes(self) -> None:
        """Confirms are owed: flush at the end of the turn."""
        if not self._owes:
            self._owes = True
            self.broker.turn.owing.append(self)

    def waits(self) -> None:
        """Publishes wait for the log."""
        self.broker.turn.owed = True
        if not self._waits:
            self._waits = True
            self.broker.durability.waiting.append(self)

    def waited(self) -> bool:
        """After a sync: does anything wait still? If not, leave the list."""
        self._waits = len(self.publishing.confirms.waiting) > 0
        return self._waits

    def log_synced(self, batch: i64) -> None:
        outcomes.synced(self.publishing, batch)

    def batch_failed(self, batch: i64, taken: dict[int, int]) -> None:
        outcomes.batch_failed(self.publishing, batch, taken)

    def queue_lost(self, queue: Queue, deleted: bool) -> None:
        outcomes.queue_lost(self.publishing, queue, deleted)

    def flush_confirms(self) -> None:
        self._owes = False
        if self.state != CHANNEL_OPEN or not self.publishing.confirms.owed():
            return
        if self._held:
            w = BytesWriter()
            self.publishing.confirms.flush(w, self.number)
            self.reply(w.getvalue())
        else:
            output = self.connection.output
            self.publishing.confirms.flush(output.buffer, self.number)
            output.wrote()

    def basic_return(self, message: Message, code: i64, text: str) -> None:
        """Hand an unroutable mandatory message back."""
        if self.state != CHANNEL_OPEN:
            return
        self.publishing.returned += 1
        method = method_frame(
            self.number,
            "basic.return",
            reply_code=code,
            reply_text=text,
            exchange=message.origin.exchange,
            routing_key=message.origin.routing_keys[0],
        )
        self.reply_with_message(method, message, False)

    # -- permissions -------------------------------------------------------------------------------------------

    def check(self, permission: str, name: Resource) -> None:
        """403 unless the user may configure, write or read the resource."""
        rights.check(self.broker.access, self.connection.username, permission, name)

    def check_topic(self, permission: str, exchange: Exchange, routing_key: str) -> None:
        rights.check_topic(self.broker.access, self.connection.username, permission, exchange, routing_key)

    def charge(self, batch: i64, size: i64) -> None:
        """A message goes to the log: that uses the connection's credit."""
        self.connection.charge(batch, size)

    # -- delivering and settling -------------------------------------------------------------------------------

    def content_is_complete(self) -> None:
        if self.committing is not None:
            self.assembly.abandon()
            raise command_while_committing(PUBLISH)
        if self.broker.pressure.reason:
            self.connection.block()  # behind this one: on a disk that fails it is what the log is tried with

    def next_delivery_tag(self) -> i64:
        self._delivery_tag += 1
        return self._delivery_tag

    def coming_delivery_tag(self) -> i64:
        """The next one, not used up."""
        return self._delivery_tag + 1

    def listen_for_replies(self, address: str, tag: str) -> None:
        """basic.consume of amq.rabbitmq.reply-to."""
        self.publishing.publisher.reply_address = address
        self.reply_consumer = ReplyConsumer(self.number, tag)

    def stop_listening_for_replies(self) -> str:
        address = self.publishing.publisher.reply_address
        self.publishing.publisher.reply_address = ""
        self.reply_consumer = None
        return address

    def listens_as(self, tag: str) -> bool:
        """Is this the consumer tag under which replies come?"""
        return self.reply_consumer is not None and self.reply_consumer.tag == tag

    def deliver_reply(self, message: Message) -> None:
        """A reply carries the channel's next delivery tag but does not use it up, as in RabbitMQ."""
        if self.reply_consumer is None:
            return
        self.delivered_no_ack += 1
        self.reply_consumer.frame.write(self.connection.output, self.coming_delivery_tag(), False, message)
        vhost = self.publishing.vhost
        if vhost.tracing:
            self.broker.firehose.delivered(self.publishing.sender, vhost, DIRECT_REPLY, message, False)

    def can_deliver(self) -> bool:
        if self._held or not self.connection.output.writable or self.state != CHANNEL_OPEN:
            return False
        # a full channel holds all its consumers, those without acknowledgements too
        return self.global_prefetch == 0 or self.consumer_unacked < self.global_prefetch

    def basic_ack(self, tag: i64, multiple: bool) -> None:
        if self.tx is not None:
            self.tx.settle(ACK, self._take_tagged(tag, multiple, METHOD_ACK))
        elif multiple:
            entries = self._take_up_to(tag, METHOD_ACK)
            if self._few(entries):
                self.settle(entries)
            else:
                self.broker.jobs.add(Settle(self, self.connection, self.broker.turn, entries, False))
        else:
            entry = self.unacked.take(tag)
            if entry is None:
                raise unknown_tag(tag, METHOD_ACK)
            self.settle_one(entry)

    def basic_nack(self, tag: i64, multiple: bool, requeue: bool, method_id: i64) -> None:
        if self.tx is not None:
            self.tx.settle(REQUEUE if requeue else REJECT, self._take_tagged(tag, multiple, method_id))
            return
        entries: list[Entry]
        if multiple:
            entries = self._take_up_to(tag, method_id)
        else:
            entry = self.unacked.take(tag)
            if entry is None:
                raise unknown_tag(tag, method_id)
            entries = [entry]
        if self._few(entries):
            self.refuse(entries, requeue)
        elif requeue:
            self.give_back_many(entries, NACK_OR_REJECT)
        else:
            self._discard_many(entries)

    def basic_recover(self) -> None:
        """Everything outstanding goes back."""
        entries = self.unacked.take_up_to(0)
        if self._few(entries):
            self.refuse(entries, True, "basic.recover")
        else:
            self.give_back_many(entries, "basic.recover")

    def _few(self, entries: list[Entry]) -> bool:
        """May these be settled here and now?"""
        broker = self.broker
        if broker.turn.settles_left <= 0 or len(entries) > FEW:
            return False
        broker.turn.settles_left -= len(entries)
        return True

    def _take_up_to(self, tag: i64, method_id: i64) -> list[Entry]:
        if tag != 0 and not self.unacked.contains(tag):
            raise unknown_tag(tag, method_id)
        return self.unacked.take_up_to(tag)

    def _take_tagged(self, tag: i64, multiple: bool, method_id: i64) -> Taken:
        if not multiple:
            entry = self.unacked.take(tag)
            if entry is None:
                raise unknown_tag(tag, method_id)
            return Taken(vec[i64]([tag]), [entry])
        if tag != 0 and not self.unacked.contains(tag):
            raise unknown_tag(tag, method_id)
        return self.unacked.take_tagged_up_to(tag)

    def settle(self, entries: list[Entry]) -> None:
        """Acknowledge: the entries leave their queues for good."""
        for entry in entries:
            self.settle_one(entry)

    def settle_one(self, entry: Entry) -> None:
        self.acked += 1
        queue = entry.queue
        queue.acked += 1
        queue.settle(entry)
        self._no_longer_held(entry)

    def refuse(self, entries: list[Entry], requeue: bool, method: str = NACK_OR_REJECT) -> None:
        """nack or reject: back to their queues, or discarded there; oldest first in the list.

        As in RabbitMQ one (queue, consumer) after the other, each queue serving its consumers before the next comes.
        """
        if len(entries) > 1:
            groups: dict[tuple[str, str], list[Entry]] = {}
            for entry in entries:
                consumer = entry.consumer
                groups.setdefault((entry.queue.name.name, "" if consumer is None else consumer.tag), []).append(entry)
            if len(groups) > 1:
                for group in groups.values():
                    self._check_refusal(group[0].queue, entries, method)
                for key in sorted(groups):
                    self._refuse_group(groups[key], requeue)
                    self.broker.settle_down()
                return
        if entries:
            self._check_refusal(entries[0].queue, entries, method)
            self._refuse_group(entries, requeue)

    def _check_refusal(self, queue: Queue, entries: list[Entry], method: str) -> None:
        """Where a queue takes nothing back the connection ends; what was to be refused goes back as at any end."""
        problem = queue.refusal_problem(method)
        if problem:
            for entry in entries:
                self._refuse_group([entry], True)
            raise AmqpError(NOT_IMPLEMENTED, problem)

    def _refuse_group(self, entries: list[Entry], requeue: bool) -> None:
        for entry in entries:
            self._no_longer_held(entry)
        if requeue:
            entries[0].queue.requeue(entries)
        else:
            for entry in entries:
                entry.queue.reject(entry)

    def _discard_many(self, entries: list[Entry]) -> None:
        """As ``refuse`` would, in the same order, a slice a turn."""
        for queue in queues_of(entries):
            self._check_many(queue, entries, NACK_OR_REJECT)
        self.broker.jobs.add(Settle(self, self.connection, self.broker.turn, in_groups(entries), True))

    def give_back_many(self, entries: list[Entry], method: str) -> None:
        """As ``refuse`` would, a slice a turn."""
        queues = queues_of(entries)
        for queue in queues:
            self._check_many(queue, entries, method)
        self.broker.jobs.add(GiveBack(self, self.connection, self.broker.turn, entries, queues))

    def _check_many(self, queue: Queue, entries: list[Entry], method: str) -> None:
        problem = queue.refusal_problem(method)
        if problem:
            self.broker.jobs.add(GiveBack(self, None, self.broker.turn, entries))
            raise AmqpError(NOT_IMPLEMENTED, problem)

    def give_back(self, entries: list[Entry], abandoned: bool) -> None:
        """Some of what goes back; their queues hold still."""
        if not abandoned:
            self.refuse(entries, True)
            return
        queues: dict[Queue, list[Entry]] = {}
        for entry in entries:
            if entry.consumer is not None:
                entry.consumer.unacked -= 1
                entry.consumer = None
            queues.setdefault(entry.queue, []).append(entry)
        for queue, held in queues.items():
            queue.abandoned(held)

    def discard(self, entries: list[Entry]) -> None:
        """Rejected for good."""
        for entry in entries:
            self._no_longer_held(entry)
            entry.queue.reject(entry)

    def _no_longer_held(self, entry: Entry) -> None:
        consumer = entry.consumer
        if consumer is None:
            return
        entry.consumer = None
        self._released(consumer)

    def _released(self, consumer: Consumer) -> None:
        was_full = self.global_prefetch > 0 and self.consumer_unacked >= self.global_prefetch
        consumer.unacked -= 1
        self.consumer_unacked -= 1
        if was_full:
            self.wake_consumers()
        elif not consumer.in_turn and not consumer.cancelled:
            consumer.queue.wake(consumer)

    def wake_consumers(self) -> None:
        """All may be able to take messages again: first whoever waits longest for one, so that nobody starves."""
        consumers = list(self.consumers.values())
        if len(consumers) > 1:
            consumers.sort(key=_last_served)
        for consumer in consumers:
            consumer.queue.wake(consumer)

    # -- ending ------------------------------------------------------------------------------------------------

    def queue_deleted(self, consumer: Consumer) -> None:
        """The consumer's queue is gone: tell the client if it understands."""
        consumer.queue.dispatch.remove(consumer)
        consumer.cancelled = True
        self.consumers.pop(consumer.tag, None)
        self.broker.turn.cancelled.append(consumer)

    def tell_cancelled(self, consumer: Consumer) -> None:
        """basic.cancel from the broker, behind the answer to the method that caused it."""
        if self.connection.consumer_cancel_notify and self.state == CHANNEL_OPEN:
            self.reply(method_frame(self.number, "basic.cancel", consumer_tag=consumer.tag, nowait=True))

    def terminate(self) -> None:
        """The channel is over: consumers leave, what is outstanding goes back."""
        if self.reply_consumer is not None:
            self.broker.replies.stop(self)
        consumers = list(self.consumers.values())
        self.consumers.clear()
        if self.tx is not None:
            self.tx.rollback()
            self.tx = None
        entries = take_all(self.unacked)
        for consumer in consumers:
            consumer.cancelled = True
            consumer.queue.dispatch.remove(consumer)
        if self._few(entries):
            self.give_back(entries, True)
        else:
            self.broker.jobs.add(GiveBack(self, None, self.broker.turn, entries))
        for consumer in consumers:
            consumer.queue.unsubscribe(consumer)
        self.publishing.end()
        self.assembly.abandon()


def _last_served(consumer: Consumer) -> int:
    return consumer.last_tag


def unknown_tag(tag: i64, method_id: i64) -> AmqpError:
    shown: int = tag
    said = f"unknown delivery tag {shown if shown >= 0 else shown + (1 << 64)}"
    return AmqpError(PRECONDITION_FAILED, said, CLASS_BASIC, method_id)
