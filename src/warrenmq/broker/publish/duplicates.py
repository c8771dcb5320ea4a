"""Publishes whose message id their exchange has taken before, within its window.

Duty: to find them, and to have those remembered that are taken. A duplicate goes nowhere; its publisher is told
what the first one's was told, when that one is on disk. Not here: the memory (``deduplication/``), how anybody is told
(``outcomes.py``). Only publishes come here: dead letters, moves and what became due are not judged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mypy_extensions import i64

from warrenmq.broker.deduplication.window import NONE, Window
from warrenmq.broker.delivering.delivering import NO_ROUTE, REFUSED, WAITING
from warrenmq.broker.exchange.walk import Routed
from warrenmq.broker.message import Message
from warrenmq.broker.publish.marks import Mark
from warrenmq.broker.publish.outcomes import deliver, duplicate
from warrenmq.broker.publish.publisher import Publisher
from warrenmq.broker.publish.publishing import Publishing
from warrenmq.broker.publish.wish import Wish
from warrenmq.broker.receipts.receipt import Receipt
from warrenmq.broker.records import Exchange
from warrenmq.log.events import Named
from warrenmq.wire.peek import Peek

if TYPE_CHECKING:
    from warrenmq.broker.queue.queue import Queue


def mark_of(window: Window, publisher: Publisher, properties: Peek) -> Mark | None:
    """None for a message without an id: it is not judged."""
    id = properties.message_id
    if not id:
        return None
    user = publisher.username or ""
    return Mark(window, f"{len(user)}:{user}{id}")


def found(publishing: Publishing, mark: Mark) -> bool:
    """Did the exchange take it before?"""
    window = mark.window
    return not window.gone and window.find(mark.key, publishing.services.turn.now) != NONE


def is_unsynced(publishing: Publishing, mark: Mark) -> bool:
    """Is the one that it took not on disk yet?"""
    window = mark.window
    return int(window.find(mark.key, publishing.services.turn.now)) in window.unsynced


def tell_duplicate(
    publishing: Publishing, exchange: Exchange, message: Message, mark: Mark, number: i64, wish: Wish | None
) -> Receipt | None:
    """A duplicate that was ``found``: tell its publisher. The receipt, if one is wished for; its ``batch`` says whether
    it has to wait for the log."""
    window = mark.window
    place = window.find(mark.key, publishing.services.turn.now)
    window.duplicates += 1
    unsynced = window.unsynced.get(int(place))
    if unsynced is None:
        duplicate(publishing, exchange, message, window.message_of(place), number, 0, [])
    else:
        original = window.message_of(place)
        duplicate(publishing, exchange, message, original, number, unsynced.batch, unsynced.queues)
    if wish is None or (not wish.queue and not wish.address):
        return None
    receipt = Receipt(wish.publish, publishing.vhost.name, wish.queue, wish.address, message.persistent, [])
    receipt.duplicate_of = window.message_of(place)
    receipt.confirms = publishing.sender.confirms
    if unsynced is not None:
        receipt.batch = unsynced.batch
    return receipt


def deliver_once(
    publishing: Publishing,
    exchange: Exchange,
    message: Message,
    queues: list[Queue],
    routed: Routed | None,
    route: Named,
    mandatory: bool,
    number: i64,
    mark: Mark,
    promised: bool = False,
    too_few: bool = False,
) -> None:
    """``deliver``, and if it is taken, and its publisher not told otherwise, its id is remembered."""
    outcome = deliver(publishing, exchange, message, queues, routed, route, mandatory, number, promised, too_few)
    if outcome == NO_ROUTE or outcome == REFUSED or too_few or mark.window.gone:
        return
    logged = outcome == WAITING or message.batch != 0
    publishing.broker.deduplication.remember(mark.window, mark.key, message.id, logged, queues, promised)
