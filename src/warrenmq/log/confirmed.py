"""Confirms: which publishes their publishers were told that the broker has, and which not after all.

Duty: an event for a run of publishes that were confirmed together, in the turn in which they were, and one for each
that had been taken and was nacked, with the cause. Publishers are told by the numbers of a channel, and whoever reads
is told by message: until then it is kept which message had which number, as runs, for what the log tells of at all. Not
here: who is told when (``broker/publish/``), publishes (``events``, ``unlogged``), what is refused at once
(``fates``). What is never answered, as its channel is gone, is never told.
"""

from __future__ import annotations

from typing import Final, final

from librt.strings import write_i32_le, write_i64_le
from mypy_extensions import i32, i64

from warrenmq.log.causes import NACKED
from warrenmq.log.events import NOBODY, Events, Named
from warrenmq.log.fates import Fates
from warrenmq.log.layout import EVENT_CONFIRMED, EVENT_CONFIRMED_FIXED, EVENT_HEAD
from warrenmq.log.unconfirmed import Unconfirmed
from warrenmq.log.unlogged import Unlogged


@final
class Confirmed:
    """The writer of them, into the events of the open batch."""

    def __init__(self, events: Events, unlogged: Unlogged) -> None:
        self._events: Final = events
        self._unlogged: Final = unlogged
        self._fates: Final = Fates(events)

    def select(self, who: Named, last: i64) -> None:
        """This channel's publishes behind number ``last`` are answered."""
        who.unconfirmed = Unconfirmed(last)

    def acked(self, who: Named, first: i64, last: i64) -> None:
        """It is told that the broker has these; some may not have been told of."""
        for number, address, count in self._take(who, first, last):
            self._tell(who, number, address, count)

    def nacked(self, who: Named, number: i64, why: str) -> None:
        """It is told that the broker does not have this one. ``why``: if that was not said before."""
        for first, address, count in self._take(who, number, number):
            if why:
                n: i64 = 0
                while n < count:
                    self._fates.tell(NACKED, who, NOBODY, 0, address + n, first + n, 0, why, b"", "", b"")
                    n += 1

    def _take(self, who: Named, first: i64, last: i64) -> list[tuple[i64, i64, i64]]:
        unconfirmed = who.unconfirmed
        if unconfirmed is None:
            return []
        self._events.end_publishes_of(who)  # what was published in this very turn
        self._unlogged.end_messages_of(who)
        return unconfirmed.take(first, last)

    def _tell(self, who: Named, number: i64, address: i64, count: i64) -> None:
        events = self._events
        if not events.room_for(who, NOBODY):
            events.left_out(count)
            return
        out = events.out
        out.append(EVENT_CONFIRMED)
        write_i32_le(out, EVENT_CONFIRMED_FIXED - EVENT_HEAD)
        write_i32_le(out, i32(who.number))
        write_i64_le(out, address)
        write_i32_le(out, i32(count))
        write_i64_le(out, number)
