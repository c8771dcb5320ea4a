"""Delivering a message whose publisher asked what becomes of it: the facts of its receipt, and its least queues.

Duty: to note, for each queue, what it does with the message, and to nack one that too few take. The message takes the
same way as all others (``outcomes.py``). Not here: what may be asked (``wish.py``), when a receipt is sent
(``receipts/receipts.py``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mypy_extensions import i64

from warrenmq.broker.exchange.walk import Routed
from warrenmq.broker.message import Message
from warrenmq.broker.publish.duplicates import deliver_once
from warrenmq.broker.publish.marks import Mark
from warrenmq.broker.publish.outcomes import deliver, is_heard_reply
from warrenmq.broker.publish.publishing import Publishing
from warrenmq.broker.publish.wish import Wish
from warrenmq.broker.receipts.receipt import Place, Receipt, Wait
from warrenmq.broker.records import Exchange
from warrenmq.log.events import Named

if TYPE_CHECKING:
    from warrenmq.broker.queue.queue import Queue


def deliver_as_wished(
    publishing: Publishing,
    exchange: Exchange,
    message: Message,
    queues: list[Queue],
    routed: Routed | None,
    route: Named,
    mandatory: bool,
    number: i64,
    wish: Wish,
    mark: Mark | None,
    promised: bool,
) -> Receipt | None:
    """``deliver``, and what its receipt says, if one is wished for.

    What each queue will do is asked before it does it: nothing comes in between."""
    places: list[Place] = []
    took: i64 = 0
    for queue in queues:
        cause = "" if promised else queue.refusal(message)
        if not cause:
            took += 1
        places.append(Place(queue, queue.next_position, queue.logs(message), cause))
    publishing.services.pacing.copied(2 * len(places))
    waits = [] if routed is None else _waits(publishing, routed)
    replied = not queues and is_heard_reply(publishing, message)
    too_few = took < wish.least
    if mark is None:
        deliver(publishing, exchange, message, queues, routed, route, mandatory, number, promised, too_few)
    else:
        deliver_once(publishing, exchange, message, queues, routed, route, mandatory, number, mark, promised, too_few)
    if not wish.queue and not wish.address:
        return None
    receipt = Receipt(wish.publish, publishing.vhost.name, wish.queue, wish.address, message.persistent, places)
    receipt.waits = waits
    receipt.replied = replied
    receipt.least = wish.least
    receipt.confirms = publishing.sender.confirms
    receipt.nacks_unroutable = publishing.vhost.nack_unroutable
    return receipt


def _waits(publishing: Publishing, routed: Routed) -> list[Wait]:
    """Where the message is about to wait, or to cancel what does."""
    waits: list[Wait] = []
    delay = publishing.broker.delay
    for exchange in routed.scheduled:
        if exchange.gone:  # deleted between publish and commit
            continue
        request = delay.request(routed)
        if not request.cancel:
            waits.append(Wait(exchange.name.name, request.due, exchange.durable, ""))
        elif delay.finds(exchange, request.cancel):
            waits.append(Wait(exchange.name.name, 0, exchange.durable, request.cancel))
    return waits
