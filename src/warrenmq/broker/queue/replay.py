"""Reading without taking: consumers that go over kept messages with a cursor of their own.

Streams and leases are read this way. An acknowledgement gives credit for more and settles nothing; what a dead channel
held is simply read again by whoever asks. A very long body is read some a turn, and what is behind it waits for it.
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from warrenmq.broker.message import Message
from warrenmq.broker.queue.queue import Consumer, Declaration, Entry, Queue, Realm
from warrenmq.broker.queue.read_ahead import BodyReader
from warrenmq.broker.services.jobs import Job
from warrenmq.log.damage import RecordDamaged

SLICE: Final = 128  # messages read at a time
READ_BYTES: Final = 4 << 20  # of bodies that are read in one go; one message, however long


@final
class Cursor:
    """The place where one consumer reads next."""

    def __init__(self, consumer: Consumer, at: i64) -> None:
        self.consumer: Final = consumer
        self.at: i64 = at
        self.awaited: i64 = -1  # the place of a long body that is being read
        self.body: list[bytes] | None = None  # a long body that has been read
        self.body_at: i64 = 0  # the place of the body that has been read


@final
class ReadLong(Job):
    """The reading of one long body, for one cursor that has come to it."""

    def __init__(self, queue: ReplayQueue, cursor: Cursor, address: i64) -> None:
        super().__init__(None)
        self._queue: Final = queue
        self._cursor: Final = cursor
        self._at: Final = cursor.at
        self._address: Final = address
        self._reader: Final = BodyReader(queue.broker, address)

    def step(self) -> bool:
        cursor = self._cursor
        if self._is_wanted():
            try:
                if not self._reader.read_some():
                    return False
                cursor.body = self._reader.pieces
                cursor.body_at = self._at
            except RecordDamaged:
                self._queue.unreadable(self._at)
        if cursor.awaited == self._at:
            cursor.awaited = -1
        if not self._queue.gone:
            self._queue.mark_dirty()
        return True

    def _is_wanted(self) -> bool:
        """Is the cursor still there, and the message?"""
        queue, cursor = self._queue, self._cursor
        if queue.gone or cursor.consumer.cancelled or cursor.at != self._at:
            return False
        return self._at >= queue.readable_start() and queue.long_at(self._at) == self._address

    def subject(self) -> str:
        return str(self._queue.name)


class ReplayQueue(Queue):
    """A queue that is read, not emptied. Subclasses say where a consumer starts, how far it may read, and what the
    messages are."""

    def __init__(self, vhost: Realm, declared: Declaration) -> None:
        super().__init__(vhost, declared)
        self._cursors: list[Cursor] = []

    def start_of(self, consumer: Consumer) -> i64:
        raise NotImplementedError

    def readable_end(self) -> i64:
        """One behind the last that may be read."""
        raise NotImplementedError

    def read_messages(self, start: i64, count: i64) -> list[Message]:
        """Messages from ``start`` on, at most ``count``, and none with a long body behind the first. Fewer where one is
        damaged; ``skip`` then passes over it."""
        raise NotImplementedError

    def long_at(self, at: i64) -> i64:
        """The address of the message there, when its body is too long to be read at once; else 0."""
        raise NotImplementedError

    def read_with(self, at: i64, body: list[bytes]) -> Message:
        """The message there, whose long body has been read. RecordDamaged when the rest of it does not check."""
        raise NotImplementedError

    def unreadable(self, at: i64) -> None:
        """The message there is damaged: ``skip`` passes over it from now on."""
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
        if self.paused:
            return
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
            if self._waits_for_body(cursor):
                return
            for message in self._read(cursor, wanted):
                if not consumer.can_take():
                    return
                entry = Entry(message, self, cursor.at)
                entry.redelivered = self.flags_redelivered(cursor.at)
                cursor.at += 1
                self.deliveries.delivered += 1
                if not consumer.no_ack:
                    self.unacked += 1
                consumer.deliver(entry)

    def _waits_for_body(self, cursor: Cursor) -> bool:
        """Is a long body that is next read in turns to come?"""
        if cursor.body is not None:
            if cursor.body_at == cursor.at:
                return False
            cursor.body = None  # it is gone meanwhile
        address = self.long_at(cursor.at)
        if address == 0:
            return False
        if cursor.awaited != cursor.at:
            cursor.awaited = cursor.at
            self.broker.jobs.add(ReadLong(self, cursor, address))
        return cursor.awaited >= 0

    def _read(self, cursor: Cursor, wanted: i64) -> list[Message]:
        body = cursor.body
        if body is None:
            return self.read_messages(cursor.at, wanted)
        cursor.body = None
        try:
            return [self.read_with(cursor.at, body)]
        except RecordDamaged:
            self.unreadable(cursor.at)
        return []

    def flags_redelivered(self, at: i64) -> bool:
        return False

    def settle(self, entry: Entry) -> None:
        self.deliveries.acked += 1
        self.unacked -= 1

    def requeue(self, entries: list[Entry]) -> None:
        self.unacked -= len(entries)

    def reject(self, entry: Entry) -> None:
        self.unacked -= 1
