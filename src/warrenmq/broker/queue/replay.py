"""Reading without taking: consumers that go over kept messages with a cursor of their own.

Streams and leases are read this way. An acknowledgement gives credit for more and settles nothing; what a dead channel
held is simply read again by whoever asks.
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from warrenmq.broker.message import Message
from warrenmq.broker.queue.queue import Consumer, Declaration, Entry, Queue, Realm

SLICE: Final = 128  # messages read at a time


@final
class Cursor:
    """Where one consumer reads next."""

    def __init__(self, consumer: Consumer, at: i64) -> None:
        self.consumer: Final = consumer
        self.at: i64 = at


class ReplayQueue(Queue):
    """Subclasses say where a consumer starts, how far it may read, and what the messages are."""

    def __init__(self, vhost: Realm, declared: Declaration) -> None:
        super().__init__(vhost, declared)
        self._cursors: list[Cursor] = []

    def start_of(self, consumer: Consumer) -> i64:
        raise NotImplementedError

    def readable_end(self) -> i64:
        """One behind the last that may be read."""
        raise NotImplementedError

    def read_messages(self, start: i64, count: i64) -> list[Message]:
        """Messages from ``start`` on, at most ``count``. Fewer where one is damaged; ``skip`` then passes over it."""
        raise NotImplementedError

    def readable_start(self) -> i64:
        return 0

    def skip(self, at: i64) -> i64:
        """The next readable place from here on."""
        return at

    # -- a queue's duties, by cursor ---------------------------------------------------------------------------

    def subscribe(self, consumer: Consumer) -> None:
        self.consumers.append(consumer)
        self._cursors.append(Cursor(consumer, self.start_of(consumer)))
        self.mark_dirty()

    def unsubscribe(self, consumer: Consumer) -> None:
        consumer.cancelled = True
        self.pass_over(consumer)

    def pass_over(self, consumer: Consumer) -> None:
        if consumer in self.consumers:
            self.consumers.remove(consumer)
        self._cursors = [cursor for cursor in self._cursors if cursor.consumer is not consumer]

    def wake(self, consumer: Consumer) -> None:
        self.mark_dirty()

    def drain(self) -> None:
        self.dirty = False
        for cursor in list(self._cursors):
            self._serve(cursor)

    def _serve(self, cursor: Cursor) -> None:
        consumer = cursor.consumer
        while not consumer.cancelled and consumer.can_take():
            if cursor.at < self.readable_start():
                cursor.at = self.readable_start()
            cursor.at = self.skip(cursor.at)
            left = self.readable_end() - cursor.at
            if left <= 0:
                return
            wanted: i64 = SLICE
            if consumer.prefetch > 0 and consumer.prefetch - consumer.unacked < wanted:
                wanted = consumer.prefetch - consumer.unacked
            if left < wanted:
                wanted = left
            for message in self.read_messages(cursor.at, wanted):
                if not consumer.can_take():
                    return
                entry = Entry(message, self, cursor.at)
                entry.redelivered = self.flags_redelivered(cursor.at)
                cursor.at += 1
                self.delivered += 1
                if not consumer.no_ack:
                    self.unacked += 1
                consumer.deliver(entry)

    def flags_redelivered(self, at: i64) -> bool:
        return False

    def settle(self, entry: Entry) -> None:
        self.acked += 1
        self.unacked -= 1

    def requeue(self, entries: list[Entry]) -> None:
        self.unacked -= len(entries)

    def reject(self, entry: Entry) -> None:
        self.unacked -= 1
