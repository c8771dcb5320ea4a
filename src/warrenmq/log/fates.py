"""Fates: what became of messages that the log does not hold: refused, returned, in no queue, or transient and gone.

Duty: one event for each, with what the message was, since no record says it; no more a second of transient ones than
``MOST_A_SECOND``, the others are counted (``Events.left_out``). Not here: who is told of at all (``broker/fates.py``),
what the numbers mean (``causes``).
"""

from __future__ import annotations

from typing import Final, final

from librt.strings import write_i16_le, write_i32_le, write_i64_le
from mypy_extensions import i16, i32, i64

from warrenmq.log.events import Events, Named
from warrenmq.log.layout import EVENT_FATE, EVENT_FATE_FIXED, EVENT_HEAD

SECOND: Final = 1_000_000  # µs
# A client that publishes to nowhere as fast as it can would else fill the disk with what nobody asked to be kept: this
# many, with the properties they usually have, are some 200 KB a second.
MOST_A_SECOND: Final = 1000
MOST_TEXT: Final = 1024  # octets of why: reply texts are shorter


@final
class Fates:
    """The writer of them, into the events of the open batch."""

    def __init__(self, events: Events) -> None:
        self._events: Final = events
        self._second: i64 = 0
        self._told: i64 = 0  # transient ones in it

    def allows(self, time: i64) -> bool:
        """May one more of a transient message be told at this time (µs)? If not, it is counted."""
        second = time // SECOND
        if second != self._second:
            self._second = second
            self._told = 0
        if self._told >= MOST_A_SECOND:
            self._events.left_out(1)
            return False
        self._told += 1
        return True

    def left_out(self, count: i64) -> None:
        """So many will not be told."""
        if count > 0:
            self._events.left_out(count)

    def tell(
        self,
        what: i64,
        who: Named,
        queue: Named,
        message_id: i64,
        address: i64,
        number: i64,
        code: i64,
        text: str,
        header: bytes,
        exchange: str,
        keys: bytes,
    ) -> None:
        """``who``, ``queue``: NOBODY where there is none."""
        events = self._events
        name = exchange.encode("utf-8", "surrogateescape")
        why = text.encode("utf-8", "surrogateescape")[:MOST_TEXT]
        if not events.room_for(who, queue):
            events.left_out(1)
            return
        out = events.out
        out.append(EVENT_FATE)
        write_i32_le(out, i32(EVENT_FATE_FIXED - EVENT_HEAD + len(header) + len(name) + len(keys) + len(why)))
        write_i32_le(out, i32(who.number))
        write_i32_le(out, i32(what))
        write_i32_le(out, i32(code))
        write_i32_le(out, i32(queue.number))
        write_i64_le(out, message_id)
        write_i64_le(out, address)
        write_i64_le(out, number)
        write_i32_le(out, i32(len(header)))
        write_i16_le(out, i16(len(name)))
        write_i32_le(out, i32(len(keys)))
        write_i16_le(out, i16(len(why)))
        out.write(header)
        out.write(name)
        out.write(keys)
        out.write(why)
