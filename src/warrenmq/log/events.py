"""Events: what a batch tells beside what it is for: when its turns were, who published, who was delivered what.

Duty: write them, joined into runs, so that a thousand deliveries in a row cost one event; and count what had to be left
out. They change nothing: a start skips them, a compaction leaves them out, and no sync is made for their sake alone.
Reading them is ``event_reader``'s. What they are good for is the journal (``docs/journal.md``).

A run ends with its turn. An event that says when a turn was stands behind all else of the turn, and names how many
records and how many octets of changes the batch had then: what stands before that, and behind the turn before, happened
at that time.
"""

from __future__ import annotations

from typing import Final, final

from librt.strings import BytesWriter, write_i32_le, write_i64_le
from mypy_extensions import i32, i64, u8

from warrenmq.log.layout import (
    EVENT_CAUSE,
    EVENT_CAUSE_FIXED,
    EVENT_DELIVERED,
    EVENT_DELIVERED_FIXED,
    EVENT_GAP,
    EVENT_GAP_FIXED,
    EVENT_GIVEN_BACK,
    EVENT_GIVEN_BACK_FIXED,
    EVENT_HEAD,
    EVENT_INTERRUPTED,
    EVENT_INTERRUPTED_FIXED,
    EVENT_LETTER_LOST,
    EVENT_LETTER_LOST_FIXED,
    EVENT_NAME,
    EVENT_NAME_FIXED,
    EVENT_PUBLISHED,
    EVENT_PUBLISHED_FIXED,
    EVENT_QUEUE,
    EVENT_QUEUE_FIXED,
    EVENT_ROUTE,
    EVENT_ROUTE_FIXED,
    EVENT_ROUTED,
    EVENT_ROUTED_FIXED,
    EVENT_SAMPLED_OUT,
    EVENT_SAMPLED_OUT_FIXED,
    EVENT_TURN,
    EVENT_TURN_FIXED,
)
from warrenmq.log.unconfirmed import Unconfirmed

MOST_BYTES: Final = 8 << 20  # of a disk that takes nothing; what comes then is counted

REDELIVERED: Final = 1
FETCHED: Final = 2  # by basic.get


@final
class Named:
    """A channel, a consumer, a queue or a route as events know it: a number, and its name, once a segment."""

    def __init__(self, number: i64, text: bytes) -> None:
        self.number: Final = number
        self.text: Final = text  # JSON
        self.segment: i64 = 0  # in which it was last named
        self.messages: i64 = 0  # of a route: so many took it
        self.unconfirmed: Unconfirmed | None = None  # of a channel whose publishes are confirmed


NOBODY: Final = Named(0, b"")


@final
class Events:
    """The events of the open batch."""

    def __init__(self) -> None:
        self.out: BytesWriter = BytesWriter()
        self.segment: i64 = 0  # where the batch will stand
        self._numbers: i64 = 0
        self._told: bool = False  # is there an event of this turn that is no run?
        self._left_out_now: i64 = 0  # in this turn
        self._left_out: i64 = 0  # before, in this batch
        self._left_out_since: i64 = 0
        self._left_out_until: i64 = 0
        self._sampled_out_now: i64 = 0  # in this turn
        self._sampled_out_from: i64 = 0  # since when (µs), where that was before this turn
        self._sampled_out: i64 = 0  # before, in this batch
        self._sampled_out_since: i64 = 0
        self._sampled_out_until: i64 = 0
        self._interrupted: i64 = 0  # the last that was told before a crash, until it is said that there was one
        # a run of publishes
        self._publisher: Named = NOBODY
        self._published: i64 = 0  # the first address
        self._next_published: i64 = 0
        self._number: i64 = 0  # the first publish's, on its channel
        self._next_number: i64 = 0
        # a run of messages that took one route
        self._route: Named = NOBODY
        self._routed: i64 = 0
        self._next_routed: i64 = 0
        # a run of deliveries
        self._consumer: Named = NOBODY
        self._queue: i64 = 0
        self._position: i64 = 0
        self._delivered: i64 = 0
        self._count: i64 = 0
        self._tag: i64 = 0
        self._flags: i64 = 0
        # a run of messages given back
        self._back_queue: i64 = 0
        self._back_position: i64 = 0
        self._back_first: i64 = 0
        self._back_count: i64 = 0

    def name(self, text: bytes) -> Named:
        """Somebody who will be spoken of."""
        self._numbers += 1
        return Named(self._numbers, text)

    def published(self, publisher: Named, address: i64, number: i64) -> None:
        """This record came from there, as the ``number``-th publish of its channel (0: not counted there)."""
        if publisher is self._publisher and address == self._next_published and number == self._next_number:
            self._next_published = address + 1
            if number:
                self._next_number = number + 1
            return
        if self._publisher is not NOBODY:
            self._end_publishes()
        self._publisher = publisher
        self._published = address
        self._next_published = address + 1
        self._number = number
        self._next_number = number + 1 if number else 0

    def routed(self, route: Named, address: i64) -> None:
        """This message went to its queues by this route."""
        if route is self._route and address == self._next_routed:
            self._next_routed = address + 1
            return
        if self._route is not NOBODY:
            self._end_routed()
        self._route = route
        self._routed = address
        self._next_routed = address + 1

    def delivered(self, consumer: Named, queue: i64, position: i64, address: i64, tag: i64, flags: i64) -> None:
        """The record, at this position of the queue, went to a client."""
        count = self._count
        if (
            consumer is self._consumer
            and address == self._delivered + count
            and tag == self._tag + count
            and position == self._position + count
            and flags == self._flags
            and queue == self._queue
        ):
            self._count = count + 1
            return
        if count:
            self._end_deliveries()
        self._consumer = consumer
        self._queue = queue
        self._position = position
        self._delivered = address
        self._count = 1
        self._tag = tag
        self._flags = flags

    def given_back(self, queue: i64, position: i64, address: i64) -> None:
        """The record came back to its place in this queue."""
        count = self._back_count
        if (
            address == self._back_first + count
            and position == self._back_position + count
            and queue == self._back_queue
            and count
        ):
            self._back_count = count + 1
            return
        if count:
            self._end_given_back()
        self._back_queue = queue
        self._back_position = position
        self._back_first = address
        self._back_count = 1

    def know(self, queue: Named) -> None:
        """Name a queue that perhaps no definition names, before something is told of a message without a record."""
        if queue.segment != self.segment:
            self.room_for(NOBODY, queue)

    def letter_lost(self, queue: i64, address: i64) -> None:
        """What left this queue as a dead letter reached nobody."""
        out = self.out
        if len(out) > MOST_BYTES:
            self.left_out(1)
            return
        self._told = True
        out.append(EVENT_LETTER_LOST)
        write_i32_le(out, EVENT_LETTER_LOST_FIXED - EVENT_HEAD)
        write_i32_le(out, i32(queue))
        write_i64_le(out, address)

    def left_out(self, count: i64) -> None:
        """So many will not be told. The batch says so at its end."""
        self._left_out_now += count

    def sampled_out(self, count: i64) -> None:
        """So many of messages without a record will not be told, as they are not among the 1 in so many."""
        self._sampled_out_now += count

    def not_told(self, count: i64, since: i64) -> None:
        """So many of messages without a record were not told since then (µs), as nothing is told where they were."""
        if self._sampled_out_from == 0 or since < self._sampled_out_from:
            self._sampled_out_from = since
        self._sampled_out_now += count

    def interrupted(self, since: i64) -> None:
        """There was no clean stop: what happened behind this time (µs; 0: nothing did) and was not written, nobody will
        tell."""
        self._interrupted = max(self._interrupted, since)

    def end_turn(self, time: i64, records: i64, changes: i64) -> None:
        """All that came since the last call was at this time (µs); the batch has so many records and changes."""
        if self._publisher is not NOBODY:
            self._end_publishes()
            self._publisher = NOBODY
        if self._route is not NOBODY:
            self._end_routed()
            self._route = NOBODY
        if self._count:
            self._end_deliveries()
            self._count = 0
            self._consumer = NOBODY
        if self._back_count:
            self._end_given_back()
            self._back_count = 0
        if self._interrupted:
            self._tell_interrupted(time)
        if self._left_out_now:
            if self._left_out == 0:
                self._left_out_since = time
            self._left_out_until = time
            self._left_out += self._left_out_now
            self._left_out_now = 0
        if self._sampled_out_now:
            since = self._sampled_out_from if self._sampled_out_from else time
            if self._sampled_out == 0 or since < self._sampled_out_since:
                self._sampled_out_since = since
            self._sampled_out_from = 0
            self._sampled_out_until = time
            self._sampled_out += self._sampled_out_now
            self._sampled_out_now = 0
        self._told = False
        out = self.out
        if len(out) > MOST_BYTES:
            return
        out.append(EVENT_TURN)
        write_i32_le(out, EVENT_TURN_FIXED - EVENT_HEAD)
        write_i64_le(out, time)
        write_i32_le(out, i32(records))
        write_i32_le(out, i32(changes))

    def begun(self) -> bool:
        """Has anything happened in this turn?"""
        if self._count > 0 or self._publisher is not NOBODY or self._back_count > 0:
            return True
        return self._told or self._left_out_now + self._sampled_out_now + self._interrupted > 0

    def touch(self) -> None:
        """A run begins that somebody else will write before the turn ends."""
        self._told = True

    def is_empty(self) -> bool:
        """Is there nothing to tell of the turns that have ended?"""
        return len(self.out) + self._left_out + self._sampled_out == 0

    def take(self) -> bytes:
        """Everything, for the batch that is being closed."""
        if self._left_out:
            self._tell_gap()
        if self._sampled_out:
            self._tell_sampled_out()
        data = self.out.getvalue()
        self.out.truncate(0)
        return data

    def end_publishes_of(self, who: Named) -> None:
        """A run of this publisher is over."""
        if self._publisher is who:
            self._told = True
            self._end_publishes()
            self._publisher = NOBODY

    def _end_publishes(self) -> None:
        if self._room(self._publisher):
            if self._number and self._publisher.unconfirmed is not None:
                count = self._next_published - self._published
                self._publisher.unconfirmed.add(self._number, self._published, count)
            out = self.out
            out.append(EVENT_PUBLISHED)
            write_i32_le(out, EVENT_PUBLISHED_FIXED - EVENT_HEAD)
            write_i32_le(out, i32(self._publisher.number))
            write_i64_le(out, self._published)
            write_i32_le(out, i32(self._next_published - self._published))
            write_i64_le(out, self._number)
        else:
            self.left_out(self._next_published - self._published)

    def _end_routed(self) -> None:
        out = self.out
        route = self._route
        if len(out) > MOST_BYTES:
            self.left_out(self._next_routed - self._routed)
            return
        if route.segment != self.segment:
            route.segment = self.segment
            self._name(EVENT_ROUTE, EVENT_ROUTE_FIXED, route)
        out.append(EVENT_ROUTED)
        write_i32_le(out, EVENT_ROUTED_FIXED - EVENT_HEAD)
        write_i32_le(out, i32(route.number))
        write_i64_le(out, self._routed)
        write_i32_le(out, i32(self._next_routed - self._routed))

    def _end_deliveries(self) -> None:
        if self._room(self._consumer):
            out = self.out
            out.append(EVENT_DELIVERED)
            write_i32_le(out, EVENT_DELIVERED_FIXED - EVENT_HEAD)
            write_i32_le(out, i32(self._consumer.number))
            write_i32_le(out, i32(self._queue))
            write_i64_le(out, self._position)
            write_i64_le(out, self._delivered)
            write_i32_le(out, i32(self._count))
            write_i64_le(out, self._tag)
            write_i32_le(out, i32(self._flags))
        else:
            self.left_out(self._count)

    def _end_given_back(self) -> None:
        out = self.out
        if len(out) > MOST_BYTES:
            self.left_out(self._back_count)
            return
        out.append(EVENT_GIVEN_BACK)
        write_i32_le(out, EVENT_GIVEN_BACK_FIXED - EVENT_HEAD)
        write_i32_le(out, i32(self._back_queue))
        write_i64_le(out, self._back_position)
        write_i64_le(out, self._back_first)
        write_i32_le(out, i32(self._back_count))

    def room_for(self, who: Named, queue: Named) -> bool:
        """For an event that is no run, of this turn, about these two; NOBODY is not named."""
        if len(self.out) > MOST_BYTES:
            return False
        self._told = True
        if who is not NOBODY:
            self._room(who)
        if queue.segment != self.segment and queue is not NOBODY:
            queue.segment = self.segment
            self._name(EVENT_QUEUE, EVENT_QUEUE_FIXED, queue)
        return True

    def _room(self, who: Named) -> bool:
        """Is there room for one more? Whoever it is about is named first, so that each segment stands for itself."""
        if len(self.out) > MOST_BYTES:
            return False
        if who.segment != self.segment:
            who.segment = self.segment
            self._name(EVENT_NAME, EVENT_NAME_FIXED, who)
        return True

    def _name(self, kind: i64, fixed: i64, named: Named) -> None:
        out = self.out
        out.append(u8(kind))
        write_i32_le(out, i32(fixed - EVENT_HEAD + len(named.text)))
        write_i32_le(out, i32(named.number))
        write_i32_le(out, i32(len(named.text)))
        out.write(named.text)

    def _tell_interrupted(self, time: i64) -> None:
        out = self.out
        out.append(EVENT_INTERRUPTED)
        write_i32_le(out, EVENT_INTERRUPTED_FIXED - EVENT_HEAD)
        write_i64_le(out, self._interrupted)
        write_i64_le(out, time)
        self._interrupted = 0

    def _tell_gap(self) -> None:
        out = self.out
        out.append(EVENT_GAP)
        write_i32_le(out, EVENT_GAP_FIXED - EVENT_HEAD)
        write_i64_le(out, self._left_out_since)
        write_i64_le(out, self._left_out_until)
        write_i64_le(out, self._left_out)
        self._left_out = 0

    def _tell_sampled_out(self) -> None:
        out = self.out
        out.append(EVENT_SAMPLED_OUT)
        write_i32_le(out, EVENT_SAMPLED_OUT_FIXED - EVENT_HEAD)
        write_i64_le(out, self._sampled_out_since)
        write_i64_le(out, self._sampled_out_until)
        write_i64_le(out, self._sampled_out)
        self._sampled_out = 0


def write_cause(out: BytesWriter, cause: i64) -> None:
    """Among the changes: why the settles that follow in this batch are, until another cause is said."""
    out.append(EVENT_CAUSE)
    write_i32_le(out, EVENT_CAUSE_FIXED - EVENT_HEAD)
    write_i32_le(out, i32(cause))
