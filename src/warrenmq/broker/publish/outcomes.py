"""What became of each message: the one place that turns outcomes into return, ack and nack.

Duty: to tell the publisher, at once, or, when a durable queue holds a persistent message, when the log says that the
batch is on disk. Putting messages into queues is in ``delivering.py``.

Invariants: a return precedes the ack or nack of the same message; every sequence number is settled exactly once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mypy_extensions import i64

from warrenmq.broker.delivering.delivering import (
    ACCEPTED,
    KEPT,
    NO_ROUTE,
    REFUSED,
    SCHEDULED,
    WAITING,
    accept,
    offer,
    turn_to,
    twin,
)
from warrenmq.broker.exchange.walk import Routed
from warrenmq.broker.fates import never_entered
from warrenmq.broker.message import Message
from warrenmq.broker.publish.publishing import Publishing
from warrenmq.broker.records import DIRECT_REPLY, Exchange
from warrenmq.log.causes import DUPLICATE, NACKED, NOT_TAKEN, RETURNED, UNROUTABLE
from warrenmq.log.events import NOBODY, Named
from warrenmq.log.levels import BODIES, NONE, OFF, level_of
from warrenmq.wire.replies import NO_ROUTE as NO_ROUTE_CODE

if TYPE_CHECKING:
    from warrenmq.broker.queue.queue import Queue
    from warrenmq.broker.vhost.vhost import VHost

DISK_FAILED: Final = "the disk could not take it"
QUEUE_FAILED: Final = "a queue failed before it was safe"


def deliver(
    publishing: Publishing,
    exchange: Exchange,
    message: Message,
    queues: list[Queue],
    routed: Routed | None,
    route: Named,
    mandatory: bool,
    number: i64,
    promised: bool = False,
    too_few: bool = False,
) -> i64:
    """Put a message into its queues and tell its publisher, now or when the log has it. Returns the outcome.

    ``route``: as the journal has the way to the queues. ``promised``: the queues were asked before and do not refuse
    it. ``too_few``: it is nacked whoever takes it, because fewer queues do than it asks for."""
    if exchange is not publishing.exchange:
        publishing.turn_to(exchange, number)
    publishing.published += 1
    exchange.messages_in += 1
    exchange.messages_out += len(queues)
    route.messages += 1
    if publishing.vhost.journal.telling_all > 0:
        publishing.services.log.unlogged.publishing(publishing.sender.named, number, route)
    if promised:
        turn_to(exchange, queues)
        outcome = accept(publishing.services, message, queues, publishing.large_body)
    else:
        outcome = offer(publishing.services, exchange, message, queues, publishing.large_body)
    if outcome <= WAITING:
        publishing.tally.routed += 1
    elif outcome == REFUSED:
        _not_taken(publishing, message, queues, number)
    if message.address:
        told = number
        if publishing.vhost.journal.telling_nothing > 0 and not _any_tells(queues, message):
            told = 0  # nothing is told of it: nor is that it was confirmed
        events = publishing.services.log.events
        events.published(publishing.sender.named, message.address, told)
        if route is not NOBODY:
            events.routed(route, message.address)
    if routed is not None and routed.scheduled:
        if queues:
            message = twin(message)
        scheduled = publishing.broker.delay.schedule(
            publishing.sender, message, routed, mandatory, number, publishing.large_body
        )
        if outcome == NO_ROUTE:
            outcome = scheduled
            if scheduled != NO_ROUTE:
                publishing.tally.scheduled += 1
        elif outcome == ACCEPTED and message.batch:
            outcome = WAITING
    if message.batch:
        publishing.teller.charge(message.batch, message.size)
    if number or outcome >= NO_ROUTE:  # else nobody is to be told anything
        tell(publishing, exchange, message, queues, outcome, mandatory, number, too_few)
    return outcome


def _any_tells(queues: list[Queue], message: Message) -> bool:
    """Is anything told of it by those for which the log has it?"""
    for queue in queues:
        if queue.journal.level > OFF and queue.logs(message):
            return True
    return False


def keep(
    publishing: Publishing, exchange: Exchange, message: Message, delay: i64, mandatory: bool, number: i64
) -> None:
    """Keep a message at a delayed exchange, which asks for nothing but a delay, and tell its publisher."""
    if exchange is not publishing.exchange:
        publishing.turn_to(exchange, number)
    publishing.published += 1
    exchange.messages_in += 1
    if publishing.vhost.journal.telling_all > 0:
        publishing.services.log.unlogged.publishing(publishing.sender.named, number, NOBODY)
    outcome = publishing.broker.delay.keep_for(
        publishing.sender, message, exchange, delay, mandatory, number, publishing.large_body
    )
    publishing.tally.scheduled += 1
    if message.batch:
        publishing.teller.charge(message.batch, message.size)
    tell(publishing, exchange, message, [], outcome, mandatory, number)


def duplicate(
    publishing: Publishing,
    exchange: Exchange,
    message: Message,
    original: i64,
    number: i64,
    batch: i64,
    queues: list[Queue],
) -> None:
    """The exchange took the same message before (``duplicates.py``), as ``original``: acked, when that one's batch is
    on disk in its queues (0: it is), and never returned."""
    message.id = original  # for the journal it belongs to that one's life
    _tell_journal(publishing, DUPLICATE, NOBODY, message, number, 0, "")
    if exchange is not publishing.exchange:
        publishing.turn_to(exchange, number)
    publishing.published += 1
    exchange.messages_in += 1
    publishing.tally.duplicates += 1
    if not number or not publishing.sender.confirms:
        return
    confirms = publishing.confirms
    if batch:
        if confirms.waiting:
            batch = max(batch, confirms.waiting[-1].batch)  # they wait in the order of batches
        confirms.wait(number, batch, queues, False, publishing.services.log.time)
        publishing.teller.waits()
    else:
        confirms.ack(number)
        publishing.teller.owes()


def tell(
    publishing: Publishing,
    exchange: Exchange,
    message: Message,
    queues: list[Queue],
    outcome: i64,
    mandatory: bool,
    number: i64,
    too_few: bool = False,
) -> None:
    """Turn an outcome into what the publisher is told. The only function that does."""
    if outcome == NO_ROUTE:
        exchange.messages_unroutable += 1
        publishing.services.unroutable += 1
        if exchange.name.name == "" and is_for_one_name(message):
            exchange.messages_out += 1
        if mandatory:
            exchange.messages_returned += 1
            publishing.tally.returned += 1
            give_back(publishing, message, number)
        else:
            publishing.tally.dropped += 1
            publishing.dropped += 1
            if not is_heard_reply(publishing, message):
                _tell_journal(publishing, UNROUTABLE, NOBODY, message, number, 0, "")
    elif outcome == SCHEDULED and mandatory:
        give_back(publishing, message, number)
    if not number:
        return
    confirms = publishing.confirms
    if not too_few and (outcome == WAITING or outcome == SCHEDULED or outcome == KEPT):
        if message.batch == 0:
            if publishing.sender.confirms:
                confirms.ack(number)
                publishing.teller.owes()
            return
        if mandatory and outcome == WAITING and not any_accepted(queues, message):
            publishing.mandatory.track(number, queues, message)
        elif mandatory and outcome == KEPT:
            publishing.mandatory.track(number, [], message)
        if publishing.sender.confirms or mandatory:
            confirms.wait(number, message.batch, queues, False, publishing.services.log.time)
            publishing.teller.waits()
        return
    if publishing.sender.confirms:
        if outcome == REFUSED or too_few or (outcome == NO_ROUTE and is_nacked(publishing, message)):
            confirms.nack(number)
            _tell_journal(publishing, NACKED, NOBODY, message, number, 0, _why(outcome, too_few))
        else:
            confirms.ack(number)
        publishing.teller.owes()


def give_back(publishing: Publishing, message: Message, number: i64) -> None:
    """A mandatory message that reached no queue."""
    publishing.teller.basic_return(message, NO_ROUTE_CODE, "NO_ROUTE")
    _tell_journal(publishing, RETURNED, NOBODY, message, number, NO_ROUTE_CODE, "NO_ROUTE")


def _not_taken(publishing: Publishing, message: Message, queues: list[Queue], number: i64) -> None:
    """Some queue refused it: the journal is told which, and why."""
    for queue in queues:
        cause = queue.refusal(message) if queue.journal.level > OFF else ""
        if cause:
            _tell_journal(publishing, NOT_TAKEN, queue.journal.named(), message, number, 0, cause)


def _tell_journal(
    publishing: Publishing, what: i64, queue: Named, message: Message, number: i64, code: i64, text: str
) -> None:
    level = level_at(publishing.vhost, message.origin.exchange)
    log = publishing.services.log
    if level == OFF:
        publishing.vhost.journal.leave_out(1, log.time)
        return
    body = level == BODIES and what != NACKED and what != DUPLICATE  # which are never all that is told of it
    never_entered(log, what, publishing.sender.named, queue, message, number, code, text, body)


def level_at(vhost: VHost, exchange: str) -> i64:
    """How much is told of what reached no queue from this exchange: as its policy says, else as its vhost does."""
    found = vhost.exchanges.get(exchange)
    level = NONE if found is None else level_of(found.policy.definition.get("journal"))
    return vhost.journal.level if level == NONE else level


def _why(outcome: i64, too_few: bool) -> str:
    if too_few:
        return "fewer queues took it than x-confirm-min-queues"
    return "a queue did not take it" if outcome == REFUSED else "no queue"


def is_nacked(publishing: Publishing, message: Message) -> bool:
    """Is a message without a queue nacked? Where the vhost says so, unless it is a reply that reached its channel."""
    return publishing.vhost.nack_unroutable and not is_heard_reply(publishing, message)


def is_for_one_name(message: Message) -> bool:
    """Was it meant for one queue, whether there is one of this name or not? RabbitMQ counts it as gone out then."""
    keys = message.origin.routing_keys
    return len(keys) == 1 and not keys[0].startswith(DIRECT_REPLY + ".")


def is_heard_reply(publishing: Publishing, message: Message) -> bool:
    """Was it published to the address of a channel that listens for replies?"""
    if message.origin.exchange != "":
        return False
    for key in message.origin.routing_keys:
        if key in publishing.broker.replies:
            return True
    return False


def any_accepted(queues: list[Queue], message: Message) -> bool:
    """Has some queue accepted the message at once, because it keeps it in memory only?"""
    for queue in queues:
        if not queue.logs(message):
            return True
    return False


# -- what the log says later -------------------------------------------------------------------------------------


def synced(publishing: Publishing, batch: i64) -> None:
    """Batches up to this one are on disk: the publishes that waited for them are acked, mandatory ones forgotten."""
    confirms = publishing.confirms
    tracked = len(publishing.mandatory) > 0
    now = publishing.services.log.time
    for waiting in confirms.take_synced(batch):
        if publishing.sender.confirms:
            publishing.tally.confirm_times.add(now - waiting.since, waiting.last - waiting.first + 1)
        seq = waiting.first
        while seq <= waiting.last:
            if tracked:
                publishing.mandatory.forget(seq)
            if publishing.sender.confirms and seq > confirms.offset:
                if waiting.refused:
                    confirms.nack_late(seq, QUEUE_FAILED)
                else:
                    confirms.ack(seq)
            seq += 1
    if confirms.owed():
        publishing.teller.owes()


def queue_lost(publishing: Publishing, queue: Queue, deleted: bool) -> None:
    """A queue went away while publishes waited for it: deleted normally counts as confirmed, a failure as refused.

    A mandatory message none of whose queues accepted it is returned first.
    """
    lost = publishing.mandatory.queue_gone(queue)
    returned = dict(lost)
    for seq in sorted(returned):
        give_back(publishing, returned[seq], seq)
    confirms = publishing.confirms
    for waiting in confirms.take_queue(queue):
        rest = [q for q in waiting.queues if q is not queue]
        refused = waiting.refused or not deleted
        seq = waiting.first
        while seq <= waiting.last:
            if rest and (not refused or publishing.mandatory.tracks(seq)):
                # other queues may still accept it; a mandatory one may yet have to be returned before its nack
                confirms.wait(seq, waiting.batch, rest, refused, waiting.since)
            elif publishing.sender.confirms and seq > confirms.offset:
                if refused:
                    confirms.nack_late(seq, QUEUE_FAILED)
                else:
                    confirms.ack(seq)
            seq += 1
    confirms.sort_waiting()
    if confirms.owed():
        publishing.teller.owes()


def batch_failed(publishing: Publishing, batch: i64, taken: dict[int, int]) -> None:
    """The log could not write a batch: what waited for it is nacked, and mandatory messages that no consumer has
    seen (``taken``: by address, out of how many queues they could be taken) are returned first."""
    confirms = publishing.confirms
    for waiting in confirms.take_synced(batch):
        seq = waiting.first
        while seq <= waiting.last:
            queues = publishing.mandatory.open_queues(seq)
            message = publishing.mandatory.forget(seq)
            if message is not None and taken.get(message.address, 0) >= queues:
                give_back(publishing, message, seq)
            if publishing.sender.confirms and seq > confirms.offset:
                confirms.nack_late(seq, DISK_FAILED)
            seq += 1
    if confirms.owed():
        publishing.teller.owes()
