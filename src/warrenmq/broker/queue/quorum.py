"""``x-queue-type: quorum`` on a single node: what its clients may expect of one, minus the replicas.

Every message is logged, failed deliveries are counted (``x-delivery-count``) and limited (``x-delivery-limit``), the
flags that RabbitMQ refuses are refused with its codes. There is one member and nothing is replicated, and we say so:
once in the log when such a queue is declared, and in the API.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from warrenmq.broker.message import Entry, Message, message_from
from warrenmq.broker.queue.queue import Queue
from warrenmq.broker.records import Content
from warrenmq.wire.content import encode_header
from warrenmq.wire.fields import Field, Table
from warrenmq.wire.replies import AmqpError

if TYPE_CHECKING:
    from warrenmq.broker.consumer import Consumer

DELIVERY_COUNT: Final = "x-delivery-count"


@final
class QuorumQueue(Queue):
    def prepare(self) -> None:
        super().prepare()
        self.kind = "quorum"
        self.keeps_all = True

    def logs(self, message: Message) -> bool:
        return True

    def holds(self, message: Message) -> bool:
        return message.address != 0

    def check_consumer(self, consumer: Consumer) -> None:
        if consumer.channel.global_prefetch:
            raise AmqpError(540, f"{self.name} does not support global qos")

    def check_delete(self, if_unused: bool, if_empty: bool) -> None:
        flag = "if-unused" if if_unused else "if-empty" if if_empty else ""
        if flag:
            raise AmqpError(
                540,
                f"cannot delete {self.name}. queue.delete operations with {flag} flag set are not supported by "
                "quorum queues",
            )

    def put_back(self, entry: Entry) -> None:
        """A failed delivery: counted, and one too many is a dead letter."""
        entry.delivery_count += 1
        limit = self.settings.delivery_limit
        if limit >= 0 and entry.delivery_count > limit:
            entry.consumer = None
            self.give_up(entry, "delivery_limit")
            return
        super().put_back(entry)
        entry.message = counted(entry.message, entry.delivery_count)


def counted(message: Message, count: int) -> Message:
    """The same message with its number of failed deliveries in the headers."""
    properties = Content(message.header(), b"").properties.copy()
    headers: Table = {} if properties.headers is None else dict(properties.headers)
    headers[DELIVERY_COUNT] = Field("l", count)
    properties.headers = headers
    chunks = message.chunks
    if chunks is None:
        chunks = [message.body()] if message.size else []
    header = encode_header(properties, message.size)
    new = message_from(message.origin, message.id, header, chunks, message.size, message.persistent)
    new.expiration = message.expiration
    new.priority = message.priority
    new.address = message.address
    new.batch = message.batch
    return new
