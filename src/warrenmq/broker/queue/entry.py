"""A message in one queue, and whoever may get it: what a queue and its consumers hand to one another.

Duty: the entry with its place, and a consumer as far as queues know one. Not here: how a channel is one
(``consumer.py`` of the channel), the order of entries (``fifo.py``), whose turn it is (``dispatch.py``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64

from warrenmq.broker.message import Message
from warrenmq.broker.services.turn import Cancelled
from warrenmq.wire.fields import Table

if TYPE_CHECKING:
    from warrenmq.broker.queue.queue import Queue


@final
class Entry:
    """A message in one queue: its place there and what happened to it since."""

    def __init__(self, message: Message, queue: Queue, position: i64) -> None:
        self.message: Message = message
        self.queue: Final = queue
        self.position: Final = position
        self.expires_at: i64 = 0  # broker time in ms, 0 = never
        self.redelivered: bool = False
        self.consumer: Consumer | None = None  # who holds it, when delivered to a consumer
        self.delivered_at: i64 = 0
        self.original: Message | None = None  # as published, while ``message`` shows a delivery count


class Consumer(Cancelled):
    """A subscription to a queue, with its prefetch."""

    def __init__(
        self, queue: Queue, tag: str, no_ack: bool, exclusive: bool, priority: i64, prefetch: i64, arguments: Table
    ) -> None:
        self.queue: Final = queue
        self.tag: Final = tag
        self.no_ack: Final = no_ack
        self.exclusive: Final = exclusive
        self.priority: Final = priority
        self.asked_prefetch: Final = prefetch  # fixed when the consumer starts
        self.prefetch: Final[i64] = queue.prefetch_for(prefetch)  # what holds; 0 = unlimited
        self.arguments: Final = arguments
        self.unacked: i64 = 0
        self.last_tag: i64 = 0  # of its last delivery: who of the channel's consumers has waited longest?
        self.in_turn: bool = False  # is it in the queue's ring of consumers that can take a message?
        self.active: bool = True  # single active consumer: is it the one?
        self.cancelled: bool = False

    def is_full(self) -> bool:
        """Does it hold all it may?"""
        return self.prefetch > 0 and self.unacked >= self.prefetch and not self.no_ack

    def can_take(self) -> bool:
        """Would a message reach it now?"""
        raise NotImplementedError

    def deliver(self, entry: Entry) -> None:
        """Hand a message over."""
        raise NotImplementedError

    def queue_deleted(self) -> None:
        """There will be no more."""
        raise NotImplementedError

    def shares_prefetch(self) -> bool:
        """Is there a limit that it shares with others (basic.qos with global set)?"""
        raise NotImplementedError
