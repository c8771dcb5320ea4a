"""What a publisher asks for by headers beyond a confirm: a receipt, and a least number of queues.

    x-receipt              where the receipt goes: amq.rabbitmq.reply-to, or the name of a queue of the vhost
    x-confirm-min-queues   a nack when fewer queues than this took the message

Duty: reading and refusing; a publish that asks for what cannot be had is refused before it goes anywhere. Not here:
what becomes of the message (``accounting.py``), the receipt itself (``receipts/``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64

from warrenmq.broker.exchange.delayed import shown
from warrenmq.broker.exchange.walk import Routed
from warrenmq.broker.message import Message
from warrenmq.broker.publish.publisher import Publisher
from warrenmq.broker.publish.stages import check_write_permission
from warrenmq.broker.receipts.receipt import Publish
from warrenmq.broker.records import DIRECT_REPLY, Content, Resource
from warrenmq.wire.field_types import INTEGER_KINDS
from warrenmq.wire.fields import Field
from warrenmq.wire.methods import refused_publish
from warrenmq.wire.peek import Peek
from warrenmq.wire.replies import NOT_FOUND, PRECONDITION_FAILED, AmqpError

if TYPE_CHECKING:
    from warrenmq.broker.queue.queue import Queue

RECEIPT: Final = "x-receipt"
LEAST: Final = "x-confirm-min-queues"
MOST: Final = 1 << 31  # nobody has more queues


@final
class Wish:
    """One publish's wish: a receipt at ``queue`` or ``address`` (neither: none), and so many queues at least."""

    def __init__(self, publish: Publish, queue: str, address: str, least: i64) -> None:
        self.publish: Final = publish
        self.queue: Final = queue
        self.address: Final = address
        self.least: Final = least


def read_wish(
    publisher: Publisher, queues: dict[str, Queue], message: Message, properties: Peek, confirms: bool, sequence: i64
) -> Wish:
    """The wish in a message that has at least one of the headers. AmqpError when it makes no sense or may not be."""
    headers = Content(message.header(), b"").headers
    receipt = headers.get(RECEIPT)
    least = headers.get(LEAST)
    queue = ""
    address = ""
    if receipt is not None:
        queue = _receiver(publisher, queues, receipt)
        if queue == DIRECT_REPLY:
            queue = ""
            address = publisher.reply_address
    wanted: i64 = 0
    if least is not None:
        wanted = _number(least)
        if not confirms:
            raise _refused(f"{LEAST} needs a channel in confirm mode: nobody would be told of a nack")
    origin = message.origin
    publish = Publish(
        origin.exchange, origin.routing_keys[0], properties.message_id, properties.correlation_id, sequence
    )
    return Wish(publish, queue, address, wanted)


def _receiver(publisher: Publisher, queues: dict[str, Queue], field: Field) -> str:
    """The name that x-receipt gives, once it is known that a receipt may go there."""
    name = field.value
    if field.kind != "S" or not isinstance(name, str) or not 0 < len(name.encode("utf-8", "surrogateescape")) < 256:
        raise _refused(
            f"invalid {RECEIPT} '{shown(field)[:80]}': expected {DIRECT_REPLY} or the name of a queue, as a long string"
        )
    if name == DIRECT_REPLY:
        if not publisher.reply_address:
            raise _refused(f"{RECEIPT} is {DIRECT_REPLY}, from which this channel does not consume")
        return name
    check_write_permission(publisher, Resource(publisher.virtual_host, "exchange", ""))
    if name not in queues:
        resource = Resource(publisher.virtual_host, "queue", name)
        raise refused_publish(NOT_FOUND, f"no {resource} for the receipt ({RECEIPT})")
    return name


def _number(field: Field) -> i64:
    value = field.value
    if field.kind == "S" and isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 12:
        value = int(value)
    elif field.kind not in INTEGER_KINDS:
        value = 0
    if not isinstance(value, int) or value < 1:
        raise _refused(f"invalid {LEAST} '{shown(field)[:80]}': expected a number of queues from 1")
    return min(value, MOST)


def check_least(wish: Wish, routed: Routed) -> None:
    """406 when the message has to wait: which queues take it is known when it is due, and nobody can be told then."""
    if wish.least and routed.scheduled:
        where = routed.scheduled[0].name
        raise _refused(f"{LEAST}: the message has to wait at {where}; which queues take it is known when it is due")


def _refused(text: str) -> AmqpError:
    return refused_publish(PRECONDITION_FAILED, text)
