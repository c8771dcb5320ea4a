"""What becomes of messages that the log has no record of: the journal is told, since nothing else will say it.

Duty: which of them are told, and what of the message. Nothing here is on the way of a message that reaches its queue
and is taken from there. Not here: how it is written, and how many a second (``log/fates.py``).
"""

from __future__ import annotations

from mypy_extensions import i64

from warrenmq.broker.message import Message
from warrenmq.log.causes import EDITED, REFUSED_PUBLISH
from warrenmq.log.events import NOBODY, Named
from warrenmq.log.log import Log


def never_entered(
    log: Log,
    what: i64,
    who: Named,
    queue: Named,
    message: Message,
    number: i64,
    code: i64,
    text: str,
    body: bool = False,
) -> None:
    """A publish reached no queue, or not this one: every persistent one is told, of transient ones so many a second.
    ``body``: with what it said."""
    if message.persistent or log.fates.allows(log.time):
        if body:
            log.told_bodies.tell(message.id, message.size, message.pieces())
        _tell(log, what, who, queue, message, number, code, text)


def refused(
    log: Log, who: Named, message: Message, header: bytes, exchange: str, keys: bytes, code: i64, text: str, body: bool
) -> None:
    """A publish broke a rule, and its channel or connection was closed for it. ``body``: it is told with what it said,
    by its id."""
    if log.fates.allows(log.time):
        if body:
            log.told_bodies.tell(message.id, message.size, message.pieces())
        log.fates.tell(REFUSED_PUBLISH, who, NOBODY, message.id, 0, 0, code, text, header, exchange, keys)


def left(log: Log, cause: i64, queue: Named, message: Message) -> None:
    """An entry that only memory had left its queue otherwise than to a client."""
    if log.fates.allows(log.time):
        _tell(log, cause, NOBODY, queue, message, 0, 0, "")


def edited(log: Log, queue: Named, message: Message, address: i64, user: str) -> None:
    """An operator changes a message that is in this queue: what it was, body and all, and who does it."""
    log.told_bodies.tell(message.id, message.size, message.pieces())
    origin = message.origin
    text, header = f"by {user}", message.header()
    log.fates.tell(EDITED, NOBODY, queue, message.id, address, 0, 0, text, header, origin.exchange, origin.packed_keys)


def _tell(log: Log, what: i64, who: Named, queue: Named, message: Message, number: i64, code: i64, text: str) -> None:
    origin = message.origin
    keys = origin.packed_keys
    header = message.header()
    if len(header) == 0:  # it was taken unread, and knows nothing of itself
        keys = b""
    log.fates.tell(what, who, queue, message.id, message.address, number, code, text, header, origin.exchange, keys)
