"""The firehose: copies of what is published and delivered, to amq.rabbitmq.trace, while a vhost is traced.

A witness, where there is one, is told of the same in every vhost (``witness.py``); its faults harm no message.

The copies are transient, carry the traced message's facts in headers, and are never traced themselves. One with a very
long body for a queue that logs all it gets (a quorum queue, a stream) goes to the log some a turn, and the copies
behind it wait, so that they arrive in order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64

from warrenmq.broker.delivering.delivering import move
from warrenmq.broker.delivering.large_body import LoggedAhead
from warrenmq.broker.delivering.witness import Witness, is_traced
from warrenmq.broker.exchange.walk import route as walk
from warrenmq.broker.message import Message, Origin, message_from
from warrenmq.broker.queue.paging import LONG
from warrenmq.broker.records import Content
from warrenmq.broker.sender import Sender
from warrenmq.broker.services.jobs import Job
from warrenmq.log.causes import COPY
from warrenmq.wire.content import Properties, encode_header
from warrenmq.wire.fields import Field, Table, field_of

if TYPE_CHECKING:
    from warrenmq.broker.queue.queue import Queue, Realm
    from warrenmq.broker.services.services import Services

TRACE: Final = "amq.rabbitmq.trace"
AT_ONCE: Final = 8 << 20  # octets of a copy that are logged in a turn


def _signed(value: int) -> int:
    """RabbitMQ gives every number as 32 bits with a sign, also the timestamps that do not fit."""
    value &= 0xFFFFFFFF
    return value - 0x100000000 if value > 0x7FFFFFFF else value


@final
class Copy:
    """A trace message and where it goes."""

    def __init__(self, message: Message, targets: list[Queue]) -> None:
        self.message: Final = message
        self.targets: Final = targets

    def is_logged(self) -> bool:
        for target in self.targets:
            if target.logs(self.message):
                return True
        return False


@final
class Copies(Job):
    """Copies of which the first takes several turns, and those behind it."""

    def __init__(self, services: Services) -> None:
        super().__init__(None)
        self._services: Final = services
        self._waiting: Final[list[Copy]] = []
        self._ahead: LoggedAhead | None = None  # what the log has of the first

    def add(self, copy: Copy) -> None:
        self._waiting.append(copy)

    def is_over(self) -> bool:
        return not self._waiting

    def step(self) -> bool:
        left: i64 = AT_ONCE
        while self._waiting and left > 0:
            copy = self._waiting[0]
            message = copy.message
            if message.size > LONG and copy.is_logged():
                if self._ahead is None:
                    self._ahead = LoggedAhead(self._services.log, message.pieces())
                if not self._services.jobs.may_log() or not self._ahead.log_some(left):
                    return False
            left -= message.size
            targets = [target for target in copy.targets if not target.gone]
            move(self._services, message, targets, 0, COPY, self._ahead)
            if self._ahead is not None:
                self._ahead.abandon()  # unless it was taken
                self._ahead = None
            del self._waiting[0]
        return not self._waiting

    def subject(self) -> str:
        return TRACE


@final
class Firehose:
    """The maker of trace messages, for what is published and for what is delivered."""

    def __init__(self, services: Services, node: str) -> None:
        self._services: Final = services
        self._node: Final = node
        self._copies: Copies | None = None  # that are sent in turns to come
        self.witness: Witness | None = None

    def published(self, sender: Sender, vhost: Realm, message: Message, queues: list[Queue]) -> None:
        origin = message.origin
        names = [queue.name.name for queue in queues]
        witness = self.witness
        if witness is not None and is_traced(message):
            try:
                witness.published(sender, vhost.name, message, names)
            except Exception as error:
                self._services.notes.crash("witness_failed", {"exchange": origin.exchange}, error)
        if not vhost.tracing:
            return
        if origin.exchange == "":
            names = sorted(set(origin.routing_keys))  # the default exchange does not ask whether they exist
        headers = self._facts(message)
        self._who(headers, sender, vhost)
        headers["routed_queues"] = Field("A", [Field("S", name) for name in names])
        self._send(vhost, "publish." + origin.exchange, headers, message)

    def delivered(self, receiver: Sender, vhost: Realm, queue: str, message: Message, redelivered: bool) -> None:
        witness = self.witness
        if witness is not None and is_traced(message):
            try:
                witness.delivered(receiver, vhost.name, queue, message, redelivered)
            except Exception as error:
                self._services.notes.crash("witness_failed", {"queue": queue}, error)
        if not vhost.tracing:
            return
        headers = self._facts(message)
        headers["redelivered"] = Field("I", 1 if redelivered else 0)
        self._who(headers, receiver, vhost)
        self._send(vhost, "deliver." + queue, headers, message)

    def _facts(self, message: Message) -> Table:
        properties: Table = {}
        for name, value in reversed(Content(message.header(), b"").properties.present().items()):
            if name == "headers":
                properties[name] = Field("F", value)
            elif isinstance(value, int):
                properties[name] = Field("I", _signed(value))
            else:
                properties[name] = field_of(value)
        return {
            "exchange_name": Field("S", message.origin.exchange),
            "routing_keys": Field("A", [Field("S", key) for key in message.origin.routing_keys]),
            "properties": Field("F", properties),
            "node": Field("S", self._node),
        }

    def _who(self, headers: Table, receiver: Sender, vhost: Realm) -> None:
        headers["vhost"] = Field("S", vhost.name)
        headers["connection"] = Field("S", receiver.connection_name)
        headers["channel"] = Field("I", int(receiver.channel_number))
        headers["user"] = Field("S", receiver.username)

    def _send(self, vhost: Realm, key: str, headers: Table, message: Message) -> None:
        if message.origin.exchange == TRACE:
            return
        header = encode_header(Properties(headers=headers), message.size)
        id = self._services.ids.message()
        copy = message_from(Origin(TRACE, [key]), id, header, message.pieces(), message.size, False)
        record = copy.basic_message(vhost.name)
        routed = walk(vhost.exchanges[TRACE], record, vhost.exchanges, vhost.queues)
        self._services.pacing.looked(record.looks)
        targets = [vhost.queues[found.name.name] for found in routed.queues if found.name.name in vhost.queues]
        self._forward(Copy(copy, targets))

    def _forward(self, copy: Copy) -> None:
        copies = self._copies
        if copies is not None and not copies.is_over():
            copies.add(copy)
        elif copy.message.size > LONG and copy.is_logged():
            copies = Copies(self._services)
            copies.add(copy)
            self._copies = copies
            self._services.jobs.add(copies)
        else:
            move(self._services, copy.message, copy.targets, 0, COPY)
