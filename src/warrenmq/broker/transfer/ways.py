"""Where a message goes that is moved, copied or redriven, and what it looks like there.

Duty: one message's way: its targets, or why it has none. A move or copy changes nothing about a message. A redriven one
goes to the exchange and with the keys of its first death, or where the operator says, and counts in ``x-redriven`` how
often that has happened. Not here: taking it out and putting it in (``transfer.py``).
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from warrenmq.broker.access.access import Access
from warrenmq.broker.delivering.deaths import first_death
from warrenmq.broker.exchange.walk import Routed, route
from warrenmq.broker.message import Message, Origin, message_from
from warrenmq.broker.queue.queue import Queue
from warrenmq.broker.records import Content, Exchange
from warrenmq.broker.services.services import Services
from warrenmq.broker.transfer.edit import LONGEST, Edit
from warrenmq.broker.vhost.vhost import VHost
from warrenmq.wire.content import encode_header
from warrenmq.wire.fields import Field, Table
from warrenmq.wire.replies import AmqpError

REDRIVEN: Final = "x-redriven"

# why a message stays where it is
NOT_DEAD: Final = "no dead letter"
TOO_OFTEN: Final = "redriven too often"
NO_EXCHANGE: Final = "no such exchange"
FORBIDDEN: Final = "not permitted"
UNROUTABLE: Final = "no queue takes it"
REFUSED: Final = "refused by a full queue"
ROUND: Final = "it would come back here"
NO_TARGET: Final = "the target is gone"
TOO_LONG: Final = "too long to be edited"


@final
class Way:
    """The message as it arrives, and where; or the problem."""

    def __init__(
        self, problem: str, message: Message | None, targets: list[Queue], routed: Routed | None = None
    ) -> None:
        self.problem: Final = problem
        self.message: Final = message
        self.targets: Final = targets
        self.routed: Final = routed  # where an exchange chose them


class Ways:
    """The finder of the ways of one transfer's messages."""

    def of(self, message: Message) -> Way:
        raise NotImplementedError

    def edit(self) -> Edit | None:
        """What is changed of each, if anything is."""
        return None

    def rewrites(self) -> bool:
        """Is the message another one at its target, so that the log must have it once more?"""
        raise NotImplementedError


@final
class ToQueue(Ways):
    """The way straight into one queue."""

    def __init__(self, target: Queue) -> None:
        self._target: Final = target

    def of(self, message: Message) -> Way:
        target = self._target
        if target.gone:
            return Way(NO_TARGET, None, [])
        if target.eager and target.refuses(message):
            return Way(REFUSED, None, [])
        return Way("", message, [target])

    def rewrites(self) -> bool:
        return False


@final
class BackToExchange(Ways):
    """The way to where it was published before it died, or to one exchange for all."""

    def __init__(
        self,
        services: Services,
        vhost: VHost,
        source: Queue,
        access: Access,
        user: str,
        exchange: str | None,
        key: str | None,
        most: i64,
        edit: Edit | None = None,
    ) -> None:
        self._services: Final = services
        self._vhost: Final = vhost
        self._source: Final = source
        self._access: Final = access
        self._user: Final = user
        self._exchange: Final = exchange
        self._key: Final = key
        self._most: Final = most  # times that a message is redriven
        self._edit: Final = edit

    def edit(self) -> Edit | None:
        return self._edit

    def rewrites(self) -> bool:
        return True

    def of(self, message: Message) -> Way:
        try:
            properties = Content(message.header(), b"").properties.copy()
        except AmqpError:
            return Way(NOT_DEAD, None, [])
        headers: Table = {} if properties.headers is None else dict(properties.headers)
        death = first_death(headers)
        if death is None and (self._exchange is None or self._key is None):
            return Way(NOT_DEAD, None, [])
        times = redriven(headers)
        if times >= self._most:
            return Way(TOO_OFTEN, None, [])
        name = self._exchange
        keys: list[str] = [] if self._key is None else [self._key]
        if death is not None:
            if name is None:
                name = _text(death, "exchange")
            if not keys:
                keys = _keys(death)
        assert name is not None
        exchange = self._vhost.exchanges.get(name)
        if exchange is None:
            return Way(NO_EXCHANGE, None, [])
        if exchange.internal or not self._may_publish(name, exchange.type, keys[0]):
            return Way(FORBIDDEN, None, [])
        pieces, size = message.pieces(), message.size
        edit = self._edit
        if edit is not None:
            if size > LONGEST:
                return Way(TOO_LONG, None, [])
            edit.of(properties, headers)
            pieces, size = edit.pieces(message), edit.size(message)
        headers[REDRIVEN] = Field("l", times + 1)
        properties.headers = headers
        header = encode_header(properties, size)
        persistent = properties.delivery_mode == 2
        again = message_from(Origin(name, keys), message.id, header, pieces, size, persistent)
        again.expiration = message.expiration
        again.priority = message.priority
        again.moved = True
        return self._routed(exchange, again)

    def _routed(self, exchange: Exchange, message: Message) -> Way:
        vhost = self._vhost
        record = message.basic_message(vhost.name)
        try:
            routed = route(exchange, record, vhost.exchanges, vhost.queues, True, self._services.turn.now, True)
        except AmqpError:
            return Way(UNROUTABLE, None, [])
        self._services.pacing.looked(record.looks)
        targets: list[Queue] = []
        for found in routed.queues:
            target = vhost.queues.get(found.name.name)
            if target is None:
                continue
            if target is self._source:
                return Way(ROUND, None, [])
            if target.eager and target.refuses(message):
                return Way(REFUSED, None, [])
            targets.append(target)
        return Way("", message, targets, routed) if targets else Way(UNROUTABLE, None, [])

    def _may_publish(self, name: str, type: str, key: str) -> bool:
        vhost = self._vhost.name
        if not self._access.allowed(self._user, vhost, "write", name):
            return False
        return type != "topic" or self._access.topic_allowed(self._user, vhost, name, "write", key)


def redriven(headers: Table) -> int:
    """How often it was redriven."""
    field = headers.get(REDRIVEN)
    return field.value if field is not None and isinstance(field.value, int) and field.value > 0 else 0


def _text(table: Table, name: str) -> str:
    field = table.get(name)
    return field.value if field is not None and isinstance(field.value, str) else ""


def _keys(death: Table) -> list[str]:
    field = death.get("routing-keys")
    keys: list[str] = []
    if field is not None and isinstance(field.value, list):
        for item in field.value:
            if isinstance(item, Field) and isinstance(item.value, str):
                keys.append(item.value)
    return keys if keys else [""]
