"""What became of each message: the one place that turns outcomes into return, ack and nack.

``publish`` offers a routed message to its queues and settles what the publisher is owed: at once, or, when a durable
queue holds a persistent message, when the log says that the batch is on disk. Later the journal is fed from here.

Invariants: a return precedes the ack or nack of the same message; every sequence number is settled exactly once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mypy_extensions import i64

from warrenmq.broker import holder, large
from warrenmq.broker.exchange.walk import Routed
from warrenmq.broker.message import Message
from warrenmq.broker.records import Exchange

if TYPE_CHECKING:
    from warrenmq.broker.broker import Broker
    from warrenmq.broker.channel import Channel
    from warrenmq.broker.queue.queue import Queue

# outcomes of offering a message to its queues
ACCEPTED: Final = 0  # every queue took it, or took and dropped it
WAITING: Final = 1  # accepted in memory; on disk when its batch is
REFUSED: Final = 2  # some queue refused it (reject-publish, or the queue failed)
NO_ROUTE: Final = 3  # no queue
SCHEDULED: Final = 4  # delayed: the schedule holds it, and drop-in behaviour returns it if mandatory
KEPT: Final = 5  # the same, and it counts as routed


def publish(
    channel: Channel,
    exchange: Exchange,
    message: Message,
    queues: list[Queue],
    routed: Routed | None,
    mandatory: bool,
    seq: i64,
    promised: bool = False,
) -> None:
    """Deliver a message to its queues and tell its publisher, now or when the log has it. ``promised``: the queues were
    asked before and do not refuse it."""
    channel.published += 1
    exchange.messages_in += 1
    exchange.messages_out += len(queues)
    broker = channel.broker
    outcome = accept(broker, message, queues) if promised else offer(broker, message, queues)
    if routed is not None and routed.scheduled:
        if queues:
            message = twin(message)
        scheduled = broker.delay.schedule(channel, message, routed, mandatory, seq)
        if outcome == NO_ROUTE:
            outcome = scheduled
        elif outcome == ACCEPTED and message.batch:
            outcome = WAITING
    if message.batch:
        channel.connection.charge(message.batch, message.size)
    settle(channel, exchange, message, queues, outcome, mandatory, seq)


def schedule(channel: Channel, message: Message, exchange: Exchange, delay: i64, mandatory: bool, seq: i64) -> None:
    """Keep a message at a delayed exchange, which asks for nothing but a delay, and tell its publisher."""
    channel.published += 1
    exchange.messages_in += 1
    outcome = channel.broker.delay.keep_for(channel, message, exchange, delay, mandatory, seq)
    if message.batch:
        channel.connection.charge(message.batch, message.size)
    settle(channel, exchange, message, [], outcome, mandatory, seq)


def settle(
    channel: Channel, exchange: Exchange, message: Message, queues: list[Queue], outcome: i64, mandatory: bool, seq: i64
) -> None:
    """Turn an outcome into what the publisher is told. The only function that does."""
    confirms = channel.confirms
    if outcome == NO_ROUTE:
        exchange.messages_unroutable += 1
        channel.broker.unroutable += 1
        if mandatory:
            channel.basic_return(message, 312, "NO_ROUTE")
        else:
            channel.dropped += 1
    elif outcome == SCHEDULED and mandatory:
        channel.basic_return(message, 312, "NO_ROUTE")
    if not seq:
        return
    if outcome == WAITING or outcome == SCHEDULED or outcome == KEPT:
        if message.batch == 0:
            if confirms.selected:
                confirms.ack(seq)
                channel.owes()
            return
        if mandatory and outcome == WAITING and not any_accepted(queues, message):
            channel.mandatory.track(seq, queues, message)
        elif mandatory and outcome == KEPT:
            channel.mandatory.track(seq, [], message)
        if confirms.selected or mandatory:
            confirms.wait(seq, message.batch, queues, False)
            channel.waits()
        return
    if confirms.selected:
        if outcome == REFUSED:
            confirms.nack(seq)
        else:
            confirms.ack(seq)
        channel.owes()


def any_accepted(queues: list[Queue], message: Message) -> bool:
    """Has some queue accepted the message at once, because it keeps it in memory only?"""
    for queue in queues:
        if not queue.logs(message):
            return True
    return False


def offer(broker: Broker, message: Message, queues: list[Queue]) -> i64:
    """Put the message into its queues; log it once when it must survive."""
    if not queues:
        return NO_ROUTE
    refused = False
    accepting = queues
    for queue in queues:
        if queue.eager and queue.refuses(message):
            refused = True
            break
    if refused:
        accepting = []
        for queue in queues:
            if queue.eager and queue.refuses(message):
                queue.refused(message)
            else:
                accepting.append(queue)
    outcome = accept(broker, message, accepting)
    return REFUSED if refused else outcome


def accept(broker: Broker, message: Message, queues: list[Queue]) -> i64:
    """The same where no queue refuses."""
    if not queues:
        return NO_ROUTE
    logged = log_message(broker, message, queues)
    if message.moved:
        for queue in queues:
            queue.moved_batch = message.batch
    for queue in queues:
        queue.publish(message, queue.expiry_for(message))
    return WAITING if logged else ACCEPTED


def move(broker: Broker, message: Message, queues: list[Queue], address: i64) -> bool:
    """Put a message that waited inside the broker into its queues; says whether any took it.

    ``address`` is where the log has it already, so that its body is not written again; 0 when it has not.
    """
    if not address:
        return offer(broker, message, queues) not in (NO_ROUTE, REFUSED)
    log = broker.log
    accepting: list[Queue] = []
    for queue in queues:
        if queue.eager and queue.refuses(message):
            queue.refused(message)
            continue
        accepting.append(queue)
        if queue.logs(message):
            log.enqueue(
                address, queue.id, queue.next_position, queue.expiry_for(message),
                holder.pack(message.priority, message.size, False),
            )  # fmt: skip
            message.address = address
            message.batch = log.batch
            queue.moved_batch = log.batch
            broker.durable_change = True
    for queue in accepting:
        queue.publish(message, queue.expiry_for(message))
    return len(accepting) > 0


def undeliverable(broker: Broker, exchange: Exchange, message: Message) -> None:
    """A delayed message that no queue takes when it is due; there is no publisher to be told any more."""
    broker.unroutable += 1
    exchange.messages_unroutable += 1


def twin(message: Message) -> Message:
    """The same content once more: what waits in a schedule is logged apart from what is in queues."""
    frames = message.frames
    new = Message(
        message.origin, message.id, frames, message.channel, message.header_size, message.size, message.persistent
    )
    new.expiration = message.expiration
    new.priority = message.priority
    new.batch = message.batch
    new.header_payload = message.header_payload
    new.chunks = message.chunks
    return new


def log_message(broker: Broker, message: Message, queues: list[Queue]) -> bool:
    """Write a message to the log, once for all queues that must not lose it. Says whether there is one."""
    log = broker.log
    origin = message.origin
    chunks = message.chunks
    if len(queues) == 1 and (chunks is None or message.size <= large.LARGE):
        only = queues[0]
        if not only.logs(message):
            return False
        message.address = log.append_one(
            message.id, message.header(), message.body(), origin.exchange, origin.packed_keys, origin.bcc,
            only.id, only.next_position, only.expiry_for(message), holder.pack(message.priority, message.size, False),
        )  # fmt: skip
        message.batch = log.batch
        broker.durable_change = True
        return True
    ids: list[int] = []
    positions: list[int] = []
    expiries: list[int] = []
    holders: list[int] = []
    for queue in queues:
        if queue.logs(message):
            ids.append(queue.id)
            positions.append(queue.next_position)
            expiries.append(queue.expiry_for(message))
            holders.append(holder.pack(message.priority, message.size, False))
    if not ids:
        return False
    if chunks is not None and message.size > large.LARGE:
        message.address = log.append_body(
            large.handle_of(broker, chunks), message.id, message.header(), origin.exchange, origin.packed_keys,
            origin.bcc, ids, positions, expiries, holders,
        )  # fmt: skip
        message.batch = log.batch
        broker.durable_change = True
        return True
    message.address = log.append(
        message.id, message.header(), message.body(), origin.exchange, origin.packed_keys, origin.bcc,
        ids, positions, expiries, holders,
    )  # fmt: skip
    message.batch = log.batch
    broker.durable_change = True
    return True


# -- what the log says later -------------------------------------------------------------------------------------


def synced(channel: Channel, batch: i64) -> None:
    """Batches up to this one are on disk: the publishes that waited for them are acked, mandatory ones forgotten."""
    confirms = channel.confirms
    tracked = len(channel.mandatory) > 0
    for waiting in confirms.take_synced(batch):
        seq = waiting.first
        while seq <= waiting.last:
            if tracked:
                channel.mandatory.forget(seq)
            if confirms.selected and seq > confirms.offset:
                if waiting.refused:
                    confirms.nack(seq)
                else:
                    confirms.ack(seq)
            seq += 1
    if confirms.owed():
        channel.owes()


def queue_lost(channel: Channel, queue: Queue, deleted: bool) -> None:
    """A queue went away while publishes waited for it: deleted normally counts as confirmed, a failure as refused.

    A mandatory message none of whose queues accepted it is returned first (spec §18).
    """
    lost = channel.mandatory.queue_gone(queue)
    returned = dict(lost)
    for seq in sorted(returned):
        channel.basic_return(returned[seq], 312, "NO_ROUTE")
    confirms = channel.confirms
    for waiting in confirms.take_queue(queue):
        rest = [q for q in waiting.queues if q is not queue]
        refused = waiting.refused or not deleted
        seq = waiting.first
        while seq <= waiting.last:
            if rest and (not refused or channel.mandatory.tracks(seq)):
                # other queues may still accept it; a mandatory one may yet have to be returned before its nack
                confirms.wait(seq, waiting.batch, rest, refused)
            elif confirms.selected and seq > confirms.offset:
                if refused:
                    confirms.nack(seq)
                else:
                    confirms.ack(seq)
            seq += 1
    confirms.sort_waiting()
    if confirms.owed():
        channel.owes()


def batch_failed(channel: Channel, batch: i64, taken: dict[int, int]) -> None:
    """The log could not write a batch: what waited for it is nacked, and mandatory messages that no consumer has
    seen (``taken``: by address, out of how many queues they could be taken) are returned first."""
    confirms = channel.confirms
    for waiting in confirms.take_synced(batch):
        seq = waiting.first
        while seq <= waiting.last:
            queues = channel.mandatory.open_queues(seq)
            message = channel.mandatory.forget(seq)
            if message is not None and taken.get(message.address, 0) >= queues:
                channel.basic_return(message, 312, "NO_ROUTE")
            if confirms.selected and seq > confirms.offset:
                confirms.nack(seq)
            seq += 1
    if confirms.owed():
        channel.owes()
