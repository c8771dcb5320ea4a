"""A consumer: one subscription of a channel to a queue, with its prefetch and how its deliveries are written.

Duty: may it take another message, and hand one over. Not here: whose turn it is (``queue/dispatch.py``), what is
outstanding (``acks.py``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from librt.strings import write_i32_be, write_i64_be
from mypy_extensions import i32, i64

from warrenmq.broker.message import Entry, shortstr, write_content
from warrenmq.wire.fields import Table

if TYPE_CHECKING:
    from warrenmq.broker.channel import Channel
    from warrenmq.broker.queue.queue import Queue

LARGE_BODY: Final = 8192  # from here on bodies go to the transport without being copied into the output buffer


@final
class Consumer:
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
        number = channel.number
        self._head: Final = bytes((1, (number >> 8) & 255, number & 255))
        ctag = shortstr(tag)
        self._deliver: Final = b"\x00\x3c\x00\x3c" + ctag
        self._size: Final[i64] = 4 + len(ctag) + 9

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
            entry.delivered_at = channel.broker.now
            self.unacked += 1
            channel.consumer_unacked += 1
            channel.unacked.add(tag, entry)
        connection = channel.connection
        message = entry.message
        w = connection.out
        origin = message.origin
        suffix = origin.suffix
        w.write(self._head)
        write_i32_be(w, i32(self._size + len(suffix) - 1))
        w.write(self._deliver)
        write_i64_be(w, tag)
        if entry.redelivered:
            w.append(1)
            channel.redelivered += 1
            self.queue.redelivered += 1
        else:
            w.append(0)
        w.write(suffix)
        if message.size >= LARGE_BODY:
            connection.write_large(channel.number, message)
        else:
            write_content(w, channel.number, message, connection.frame_max)
        connection.wrote()
        if self.queue.vhost.tracing:
            channel.broker.firehose.delivered(channel.publishing.sender, self.queue.vhost, entry)
