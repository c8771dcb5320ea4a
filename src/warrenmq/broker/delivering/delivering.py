"""Putting a message into its queues: offered to each, logged once for all that must not lose it.

Duty: who takes it, and the log's record. It is the one way in: for what is published, for dead letters, for messages
that became due, for the firehose's copies. Not here: what a publisher is told (``publish/outcomes.py``), where a
message goes (``exchange/walk.py``).
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from warrenmq.broker.delivering.large_body import LARGE, BodyInLog, append_message
from warrenmq.broker.exchange.walk import Routed
from warrenmq.broker.fates import never_entered
from warrenmq.broker.message import Message
from warrenmq.broker.queue import holder
from warrenmq.broker.queue.queue import Queue
from warrenmq.broker.records import Exchange
from warrenmq.broker.services.services import Services
from warrenmq.log.causes import NOT_TAKEN
from warrenmq.log.events import NOBODY, Named
from warrenmq.log.levels import OFF

# what became of a message that was offered to its queues
ACCEPTED: Final = 0  # every queue took it, or took and dropped it
WAITING: Final = 1  # accepted in memory; on disk when its batch is
REFUSED: Final = 2  # some queue refused it (reject-publish, or the queue failed)
NO_ROUTE: Final = 3  # no queue
SCHEDULED: Final = 4  # delayed: the schedule holds it, and drop-in behaviour returns it if mandatory
KEPT: Final = 5  # delayed, and it counts as routed


def queues_of(routed: Routed) -> list[Queue]:
    """The queues among the destinations."""
    queues: list[Queue] = []
    for destination in routed.queues:
        if isinstance(destination, Queue):
            queues.append(destination)
    return queues


def turn_to(exchange: Exchange, queues: list[Queue]) -> None:
    """What comes into them now was published to this exchange."""
    for queue in queues:
        if exchange is not queue.counters.source:
            queue.counters.turn_to(exchange)


def offer(
    services: Services, exchange: Exchange, message: Message, queues: list[Queue], body: BodyInLog | None = None
) -> i64:
    """Put a published message into its queues; log it once when it must survive. ``body``: what the log has of it
    already. How many of them took it is counted here when some refuse it."""
    if len(queues) == 1:
        queue = queues[0]
        if exchange is not queue.counters.source:
            queue.counters.turn_to(exchange)
        if queue.eager and queue.refuses(message):
            queue.refused(message)
            queue.counters.turned_away += 1
            services.tally.refused_by_queues += 1
            return REFUSED
        return _accept_one(services, message, queue, body)
    for queue in queues:
        if exchange is not queue.counters.source:
            queue.counters.turn_to(exchange)
        if queue.eager and queue.refuses(message):
            turn_to(exchange, queues)
            if accept(services, message, _accepting(message, queues, True), body) == NO_ROUTE:
                services.tally.refused_by_queues += 1
            else:
                services.tally.routed += 1
            return REFUSED
    return accept(services, message, queues, body)


def accept(services: Services, message: Message, queues: list[Queue], body: BodyInLog | None) -> i64:
    """Put the message into queues that do not refuse it.

    All of them in this turn, however many: the log's record names its position in each of them, and a crash between two
    batches would leave it in some. Only the number of queues bounds it, a microsecond or so each; it counts for what
    the turn takes, so that the next such message waits for another one.
    """
    if len(queues) == 1:
        return _accept_one(services, message, queues[0], body)
    if not queues:
        return NO_ROUTE
    services.pacing.copied(len(queues))
    logged = _log_for_all(services, message, queues, body)
    if message.moved and logged:
        for queue in queues:
            queue.moved_in(message.batch)
    for queue in queues:
        queue.publish(message, queue.expiry_for(message))
    return WAITING if logged else ACCEPTED


def _accept_one(services: Services, message: Message, queue: Queue, body: BodyInLog | None) -> i64:
    if not queue.logs(message):
        queue.publish(message, queue.expiry_for(message))
        return ACCEPTED
    _log_for_one(services, message, queue, body)
    if message.moved:
        queue.moved_in(message.batch)
    queue.publish(message, queue.expiry_for(message))
    return WAITING


def _accepting(message: Message, queues: list[Queue], published: bool) -> list[Queue]:
    """Those that take it; the others have been told that they refused it."""
    accepting: list[Queue] = []
    for queue in queues:
        if queue.eager and queue.refuses(message):
            queue.refused(message)
            if published:
                queue.counters.turned_away += 1
        else:
            accepting.append(queue)
    return accepting


def move(
    services: Services,
    message: Message,
    queues: list[Queue],
    address: i64,
    way: i64,
    body: BodyInLog | None = None,
    route: Named = NOBODY,
) -> bool:
    """Put a message that comes from inside the broker, in this way (``causes.py``), into its queues; says whether any
    took it.

    ``address`` is where the log has it already, so that it is not written again; 0 when it has not, or has only its
    ``body``. ``route``: as the journal has the way to the queues, if an exchange chose them.
    """
    route.messages += 1
    log = services.log
    outer = log.unlogged.within(route)
    taken = _move(services, message, queues, address, way, body)
    log.unlogged.back(outer)
    if message.address and route is not NOBODY:
        log.events.routed(route, message.address)
    return taken


def _move(
    services: Services, message: Message, queues: list[Queue], address: i64, way: i64, body: BodyInLog | None
) -> bool:
    log = services.log
    accepting = _accepting(message, queues, False)
    if len(accepting) < len(queues):
        _tell_not_taken(services, message, queues)
    for queue in accepting:
        queue.counters.came(way, 1)
    if not address:
        return accept(services, message, accepting, body) != NO_ROUTE
    for queue in accepting:
        if queue.logs(message):
            flags = holder.pack(message.priority, message.size, False)
            log.hold(address, queue.id, queue.next_position, queue.expiry_for(message), flags)
            queue.counters.recorded += 1
            message.address = address
            message.batch = log.batch
            queue.moved_in(log.batch)
    for queue in accepting:
        queue.publish(message, queue.expiry_for(message))
    return len(accepting) > 0


def _tell_not_taken(services: Services, message: Message, queues: list[Queue]) -> None:
    """Some refuse what comes from inside the broker: the journal is told which, and why."""
    for queue in queues:
        cause = queue.refusal(message) if queue.eager and queue.journal.level > OFF else ""
        if cause:
            never_entered(services.log, NOT_TAKEN, NOBODY, queue.journal.named(), message, 0, 0, cause)


def undeliverable(services: Services, exchange: Exchange) -> None:
    """A delayed message that no queue takes when it is due; there is no publisher to be told any more."""
    services.unroutable += 1
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
    new.absent = message.absent
    return new


def _log_for_one(services: Services, message: Message, queue: Queue, body: BodyInLog | None) -> None:
    """Write a message to the log for the one queue that gets it and must not lose it."""
    if message.size > LARGE and message.chunks is not None:
        _log_for_all(services, message, [queue], body)
        return
    log = services.log
    origin = message.origin
    expiry = queue.expiry_for(message)
    flags = holder.pack(message.priority, message.size, False)
    address = log.append(
        message.id,
        message.header(),
        message.body(),
        origin.exchange,
        origin.packed_keys,
        flags=origin.bcc,
        holders=1,
    )
    log.hold(address, queue.id, queue.next_position, expiry, flags)
    queue.counters.recorded += 1
    message.address = address
    message.batch = log.batch


def _log_for_all(services: Services, message: Message, queues: list[Queue], body: BodyInLog | None) -> bool:
    """Write a message to the log, once for all queues that must not lose it. Says whether there is one."""
    holding = [queue for queue in queues if queue.logs(message)]
    if not holding:
        return False
    log = services.log
    address = append_message(log, message, message.origin.packed_keys, message.origin.bcc, len(holding), body)
    flags = holder.pack(message.priority, message.size, False)
    for queue in holding:
        log.hold(address, queue.id, queue.next_position, queue.expiry_for(message), flags)
        queue.counters.recorded += 1
    message.address = address
    message.batch = log.batch
    return True
