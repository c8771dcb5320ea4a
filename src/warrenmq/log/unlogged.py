"""Messages without a record, told like those that have one: at the level ``all``.

Duty: what they were, which queues they entered and how they left, joined into runs: messages one after the other that
differ in nothing but their ids and their bodies, positions in a row, ids in a row. Deliveries are ``events``'. Not
here: who is told of (``levels``), how a message ended badly where nothing else of it is told (``fates``).
"""

from __future__ import annotations

from typing import Final, final

from librt.strings import write_i16_le, write_i32_le, write_i64_le
from mypy_extensions import i16, i32, i64

from warrenmq.log.events import NOBODY, Events, Named
from warrenmq.log.layout import (
    EVENT_ENTERED,
    EVENT_ENTERED_FIXED,
    EVENT_HEAD,
    EVENT_LEFT,
    EVENT_LEFT_FIXED,
    EVENT_UNLOGGED,
    EVENT_UNLOGGED_FIXED,
    WITHOUT_RECORD,
)


@final
class Entering:
    """A message that is being put into queues, as far as that is."""

    def __init__(self, publisher: Named, number: i64, route: Named, told: i64, untold: i64, untold_events: i64) -> None:
        self.publisher: Final = publisher
        self.number: Final = number
        self.route: Final = route
        self.told: Final = told
        self.untold: Final = untold
        self.untold_events: Final = untold_events


@final
class Unlogged:
    """The runs of the open turn."""

    def __init__(self, events: Events) -> None:
        self._events: Final = events
        self._publisher: Named = NOBODY  # whose publish is being put into queues
        self._number: i64 = 0  # the number of that publish
        self._route: Named = NOBODY  # by which that publish goes to its queues
        # a run of messages
        self._who: Named = NOBODY
        self._first: i64 = 0
        self._messages: i64 = 0
        self._first_number: i64 = 0
        self._header: bytes = b""
        self._exchange: str = ""
        self._keys: bytes = b""
        self._told: i64 = 0  # the message that is being put into queues, once it is told
        self._untold: i64 = 0  # the message that sampling left out of all queues that it entered so far
        self._untold_events: i64 = 0
        # a run of entries
        self._queue: Named = NOBODY
        self._position: i64 = 0
        self._address: i64 = 0
        self._entries: i64 = 0
        # a run of those that left
        self._left_queue: Named = NOBODY
        self._left_address: i64 = 0
        self._left: i64 = 0
        self._cause: i64 = 0

    def publishing(self, who: Named, number: i64, route: Named) -> None:
        """What enters queues from now on comes from there, and by this route. Who puts messages into queues says so
        before, here or by ``within``."""
        self._publisher = who
        self._number = number
        self._route = route
        self._told = 0
        self._untold = 0

    def within(self, route: Named) -> Entering:
        """What enters queues until ``back`` comes from the broker, by this route, perhaps while a publish is being put
        into its own: a dead letter of what that drives out, the firehose's copy of what a consumer gets at once."""
        outer = Entering(self._publisher, self._number, self._route, self._told, self._untold, self._untold_events)
        self.publishing(NOBODY, 0, route)
        return outer

    def back(self, outer: Entering) -> None:
        """What enters queues from now on is again what it was before ``within``, which gave ``outer``."""
        self.publishing(outer.publisher, outer.number, outer.route)
        self._told = outer.told
        self._untold = outer.untold
        self._untold_events = outer.untold_events

    def message(self, id: i64, header: bytes, exchange: str, keys: bytes) -> None:
        """It is about to enter a queue, for the first time or not."""
        if id == self._told:
            return
        if id == self._untold:  # but this queue tells it
            self._events.sampled_out(-self._untold_events)
            self._untold = 0
        number = self._number
        count = self._messages
        if (
            count
            and id == self._first + count
            and self._publisher is self._who
            and number == (self._first_number + count if self._first_number else 0)
            and header == self._header
            and keys == self._keys
            and exchange == self._exchange
        ):
            self._messages = count + 1
        else:
            if count:
                self._end_messages()
            self._events.touch()
            self._who = self._publisher
            self._first = id
            self._messages = 1
            self._first_number = number
            self._header = header
            self._exchange = exchange
            self._keys = keys
        self._told = id
        if self._route is not NOBODY:
            self._events.routed(self._route, WITHOUT_RECORD | id)

    def untold(self, id: i64) -> None:
        """It entered a queue that tells of others: what it was, and that it is confirmed, is not told either unless
        another queue tells it."""
        if id != self._told and id != self._untold:
            self._untold = id
            self._untold_events = 2 if self._number else 1
            self._events.sampled_out(self._untold_events)

    def entered(self, queue: Named, position: i64, address: i64) -> None:
        count = self._entries
        if queue is self._queue and position == self._position + count and address == self._address + count and count:
            self._entries = count + 1
            return
        if count:
            self._end_entries()
        self._events.touch()
        self._queue = queue
        self._position = position
        self._address = address
        self._entries = 1

    def left(self, queue: Named, address: i64, cause: i64) -> None:
        count = self._left
        if queue is self._left_queue and address == self._left_address + count and cause == self._cause and count:
            self._left = count + 1
            return
        if count:
            self._end_left()
        self._events.touch()
        self._left_queue = queue
        self._left_address = address
        self._left = 1
        self._cause = cause

    def end_turn(self) -> None:
        """Before the events' own."""
        if self._messages:
            self._end_messages()
            self._messages = 0
        if self._entries:
            self._end_entries()
            self._entries = 0
        if self._left:
            self._end_left()
            self._left = 0

    def end_messages_of(self, who: Named) -> None:
        """A run of this publisher is over."""
        if self._messages and self._who is who:
            self._end_messages()
            self._messages = 0

    def _end_messages(self) -> None:
        events = self._events
        if not events.room_for(self._who, NOBODY):
            events.left_out(self._messages)
            return
        unconfirmed = self._who.unconfirmed
        if self._first_number and unconfirmed is not None:
            unconfirmed.add(self._first_number, WITHOUT_RECORD | self._first, self._messages)
        name = self._exchange.encode("utf-8", "surrogateescape")
        out = events.out
        out.append(EVENT_UNLOGGED)
        length = EVENT_UNLOGGED_FIXED - EVENT_HEAD + len(self._header) + len(name) + len(self._keys)
        write_i32_le(out, i32(length))
        write_i32_le(out, i32(self._who.number))
        write_i64_le(out, self._first)
        write_i32_le(out, i32(self._messages))
        write_i64_le(out, self._first_number)
        write_i32_le(out, i32(len(self._header)))
        write_i16_le(out, i16(len(name)))
        write_i32_le(out, i32(len(self._keys)))
        out.write(self._header)
        out.write(name)
        out.write(self._keys)

    def _end_entries(self) -> None:
        events = self._events
        if not events.room_for(NOBODY, self._queue):
            events.left_out(self._entries)
            return
        out = events.out
        out.append(EVENT_ENTERED)
        write_i32_le(out, EVENT_ENTERED_FIXED - EVENT_HEAD)
        write_i32_le(out, i32(self._queue.number))
        write_i64_le(out, self._position)
        write_i64_le(out, self._address)
        write_i32_le(out, i32(self._entries))

    def _end_left(self) -> None:
        events = self._events
        if not events.room_for(NOBODY, self._left_queue):
            events.left_out(self._left)
            return
        out = events.out
        out.append(EVENT_LEFT)
        write_i32_le(out, EVENT_LEFT_FIXED - EVENT_HEAD)
        write_i32_le(out, i32(self._left_queue.number))
        write_i64_le(out, self._left_address)
        write_i32_le(out, i32(self._left))
        write_i32_le(out, i32(self._cause))
