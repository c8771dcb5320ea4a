"""A consumer: one subscription of a channel to a queue, with its prefetch and how its deliveries are written.

Duty: may it take another message, and hand one over. Not here: whose turn it is (``queue/dispatch.py``), what is
outstanding (``acks.py``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from librt.strings import write_i32_be, write_i64_be
from mypy_extensions import i32, i64

from warrenmq.broker.message import Entry, Message, shortstr
from warrenmq.broker.output import Output
from warrenmq.broker.publish.stages import DIRECT_REPLY
from warrenmq.broker.turn import Cancelled
from warrenmq.wire.constants import FRAME_METHOD
from warrenmq.wire.fields import Table

if TYPE_CHECKING:
    from warrenmq.broker.channel import Channel
    from warrenmq.broker.queue.queue import Queue

BASIC_DELIVER: Final = b"\x00\x3c\x00\x3c"  # class and method


@final
class DeliverFrame:
    """basic.deliver for one consumer tag: everything that does not change is encoded once."""

    def __init__(self, number: i64, tag: str) -> None:
        self._number: Final = number
        self._head: Final = bytes((FRAME_METHOD, (number >> 8) & 255, number & 255))
        consumer_tag = shortstr(tag)
        self._deliver: Final = BASIC_DELIVER + consumer_tag
        self._size: Final[i64] = len(BASIC_DELIVER) + len(consumer_tag) + 9  # delivery tag and redelivered

    def write(self, output: Output, tag: i64, redelivered: bool, message: Message) -> None:
        """The method and its content, into what goes out."""
        w = output.buffer
        suffix = message.origin.suffix  # exchange, routing key and the frame's end
        w.write(self._head)
        write_i32_be(w, i32(self._size + len(suffix) - 1))
        w.write(self._deliver)
        write_i64_be(w, tag)
        w.append(1 if redelivered else 0)
        w.write(suffix)
        output.write_content(self._number, message)


@final
class ReplyConsumer:
    """Direct reply-to: the subscription of a channel to its own address, without a queue."""

    def __init__(self, channel: Channel, tag: str) -> None:
        self.tag: Final = tag
        self._frame: Final = DeliverFrame(channel.number, tag)

    def deliver(self, channel: Channel, message: Message) -> None:
        """A reply carries the channel's next delivery tag but does not use it up, as in RabbitMQ."""
        channel.delivered_no_ack += 1
        self._frame.write(channel.connection.output, channel.coming_delivery_tag(), False, message)
        vhost = channel.publishing.vhost
        if vhost.tracing:
            channel.broker.firehose.delivered(channel.publishing.sender, vhost, DIRECT_REPLY, message, False)


@final
class Consumer(Cancelled):
    """A subscription of a channel to a queue."""

    def __init__(
        self,
        channel: Channel,
        queue: Queue,
        tag: str,
        no_ack: bool,
        exclusive: bool,
        priority: i64,
        prefetch: i64,
        arguments: Table,
    ) -> None:
        self.channel: Final = channel
        self.queue: Final = queue
        self.tag: Final = tag
        self.no_ack: Final = no_ack
        self.exclusive: Final = exclusive
        self.priority: Final = priority
        self.prefetch: Final = prefetch  # 0 = unlimited; fixed when the consumer starts
        self.arguments: Final = arguments
        self.unacked: i64 = 0
        self.last_tag: i64 = 0  # of its last delivery: who of the channel's consumers has waited longest?
        self.in_turn: bool = False  # is it in the queue's ring of consumers that can take a message?
        self.active: bool = True  # single active consumer: is it the one?
        self.cancelled: bool = False
        self._frame: Final = DeliverFrame(channel.number, tag)

    def tell_cancelled(self) -> None:
        self.channel.tell_cancelled(self)

    def can_take(self) -> bool:
        return not self.is_full() and self.channel.can_deliver()

    def is_full(self) -> bool:
        """Does it hold all it may?"""
        return self.prefetch > 0 and self.unacked >= self.prefetch and not self.no_ack

    def deliver(self, entry: Entry) -> None:
        """Send the message as the channel's next delivery."""
        channel = self.channel
        tag = channel.next_delivery_tag()
        self.last_tag = tag
        if self.no_ack:
            channel.delivered_no_ack += 1
        else:
            channel.delivered += 1
            entry.consumer = self
            entry.delivered_at = channel.broker.turn.now
            self.unacked += 1
            channel.consumer_unacked += 1
            channel.unacked.add(tag, entry)
        self._frame.write(channel.connection.output, tag, entry.redelivered, entry.message)
        if entry.redelivered:
            channel.redelivered += 1
            self.queue.redelivered += 1
        if self.queue.vhost.tracing:
            channel.broker.firehose.delivered(
                channel.publishing.sender, self.queue.vhost, self.queue.name.name, entry.message, entry.redelivered
            )
