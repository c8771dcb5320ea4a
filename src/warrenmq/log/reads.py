"""What consumers got from streams, where a message stays however often it is read.

Duty: an event for a run of offsets that one consumer got in one turn: a replay of very many messages takes little room.
An offset stands for the message, which the log has at that position of the stream; so no address is told, and messages
of others in between end no run. Not here: deliveries from other queues (``events``).
"""

from __future__ import annotations

from typing import Final, final

from librt.strings import write_i32_le, write_i64_le
from mypy_extensions import i32, i64

from warrenmq.log.events import NOBODY, Events, Named
from warrenmq.log.layout import EVENT_HEAD, EVENT_READ, EVENT_READ_FIXED


@final
class Reads:
    """The run of the open turn."""

    def __init__(self, events: Events) -> None:
        self._events: Final = events
        self._who: Named = NOBODY
        self._queue: i64 = 0
        self._offset: i64 = 0
        self._tag: i64 = 0
        self._count: i64 = 0

    def read(self, who: Named, queue: i64, offset: i64, tag: i64) -> None:
        """This consumer of the stream got the message at this offset."""
        count = self._count
        if who is self._who and offset == self._offset + count and tag == self._tag + count and count:
            self._count = count + 1
            return
        if count:
            self._end()
        self._events.touch()
        self._who = who
        self._queue = queue
        self._offset = offset
        self._tag = tag
        self._count = 1

    def end_turn(self) -> None:
        """Before the events' own."""
        if self._count:
            self._end()
            self._count = 0
            self._who = NOBODY

    def _end(self) -> None:
        events = self._events
        if not events.room_for(self._who, NOBODY):
            events.left_out(self._count)
            return
        out = events.out
        out.append(EVENT_READ)
        write_i32_le(out, EVENT_READ_FIXED - EVENT_HEAD)
        write_i32_le(out, i32(self._who.number))
        write_i32_le(out, i32(self._queue))
        write_i64_le(out, self._offset)
        write_i32_le(out, i32(self._count))
        write_i64_le(out, self._tag)
