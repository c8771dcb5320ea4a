"""A consumer: one subscription of a channel to a queue, with its prefetch and how its deliveries are written.

Duty: may it take another message, and hand one over. Not here: whose turn it is (``queue/dispatch.py``), what is
outstanding (``acks.py``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64

from warrenmq.broker.channel.deliver_frame import DeliverFrame
from warrenmq.broker.queue.arguments import STREAM
from warrenmq.broker.queue.queue import Consumer, Entry, Queue
from warrenmq.broker.sender import consumer_text
from warrenmq.log.events import REDELIVERED
from warrenmq.wire.fields import Table
from warrenmq.wire.methods import method_frame

if TYPE_CHECKING:
    from warrenmq.broker.channel.channel import Channel


@final
class Subscription(Consumer):
    """A consumer that is a channel's."""

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
        of = queue.vhost.queues.get(queue.name.name, queue)  # whose lease it may be that is read
        counted = channel.handed_out.of(of)
        super().__init__(queue, tag, no_ack, exclusive, priority, prefetch, arguments, counted)
        self.channel: Final = channel
        # what every delivery reads stands here, not behind the channel
        self._consumers: Final = channel.consumers
        self._outstanding: Final = channel.outstanding
        self._output: Final = channel.connection.output
        self._turn: Final = channel.services.turn
        self._frame: Final = DeliverFrame(channel.number, tag)
        events = channel.services.log.events
        self._events: Final = events
        self._reads: Final = channel.services.log.reads
        self._stays: Final = queue.kind == STREAM  # what it gets
        self._named: Final = events.name(consumer_text(channel.publishing.sender, queue.vhost.name, tag))

    def tell_cancelled(self) -> None:
        """basic.cancel from the broker, behind the answer to the method that caused it."""
        channel = self.channel
        if self._consumers.wants_cancels():
            channel.answers.reply(method_frame(channel.number, "basic.cancel", consumer_tag=self.tag, nowait=True))

    def queue_deleted(self) -> None:
        self._consumers.queue_deleted(self)

    def shares_prefetch(self) -> bool:
        return self._consumers.global_prefetch > 0

    def can_take(self) -> bool:
        return not self.is_full() and self._consumers.can_deliver()

    def waits(self) -> bool:
        return not self.is_full() and self._consumers.wait()

    def deliver(self, entry: Entry) -> None:
        """Send the message as the channel's next delivery."""
        outstanding = self._outstanding
        deliveries = self.counted
        tag = outstanding.next_tag()
        self.last_tag = tag
        if self.no_ack:
            deliveries.delivered_no_ack += 1
        else:
            deliveries.delivered += 1
            entry.consumer = self
            entry.delivered_at = self._turn.now
            self.unacked += 1
            self._consumers.unacked += 1
            outstanding.unacked.add(tag, entry)
        message = entry.message
        self._frame.write(self._output, tag, entry.redelivered, message)
        flags: i64 = 0
        if message.address:
            flags = REDELIVERED if entry.redelivered else 0
            self._events.delivered(self._named, self.queue.id, entry.position, message.address, tag, flags)
        elif self._stays:
            self._reads.read(self._named, self.queue.id, entry.position, tag)
        elif self.queue.journal.all:
            if self.queue.journal.tells(message):
                flags = REDELIVERED if entry.redelivered else 0
                self._events.know(self.queue.journal.named())
                self._events.delivered(self._named, self.queue.id, entry.position, message.number(), tag, flags)
            else:
                self._events.sampled_out(1)
        if entry.redelivered:
            deliveries.redelivered += 1
            self.queue.deliveries.redelivered += 1
        if self.queue.vhost.watched:
            channel = self.channel
            channel.broker.firehose.delivered(
                channel.publishing.sender, self.queue.vhost, self.queue.name.name, entry.message, entry.redelivered
            )


def subscriptions(queue: Queue) -> list[Subscription]:
    """The consumers of a queue that channels have, in the order they came."""
    return [consumer for consumer in queue.consumers if isinstance(consumer, Subscription)]
