"""Bodies of messages without a record, for the journal at the level ``all+bodies``; those with one have it there.

Duty: an event for each, before the event that tells of the message; no more octets a turn than ``MOST_A_TURN``: of what
is over that, the event says that its body is lacking. Not here: whose bodies are told (``broker/queue/queue.py``).
"""

from __future__ import annotations

from typing import Final, final

from librt.strings import write_i32_le, write_i64_le
from mypy_extensions import i32, i64

from warrenmq.log.events import MOST_BYTES, NOBODY, Events
from warrenmq.log.layout import EVENT_BODY, EVENT_BODY_FIXED, EVENT_HEAD

MOST_A_TURN: Final = 4 << 20  # octets: what a turn can copy and check without anybody noticing

# why an event has no body
THERE: Final = 0
IN_RECORD: Final = 1  # the log holds the message for other queues, body and all
TOO_MANY: Final = 2
NOT_ALL_CAME: Final = 3
DAMAGED: Final = 4
TOO_LONG: Final = 5
NOT_WRITTEN: Final = 6
LACKING: Final = {
    TOO_MANY: f"body left out: more than {MOST_A_TURN >> 20} MiB of transient bodies at a time",
    NOT_ALL_CAME: "body left out: it was refused before all of it came",
    DAMAGED: "body left out: it is damaged or gone in the log",
    TOO_LONG: "body left out: it is longer than 16 MiB",
    NOT_WRITTEN: "body left out: the disk did not take it",
}


@final
class ToldBodies:
    """The writer of them, into the events of the open batch."""

    def __init__(self, events: Events) -> None:
        self._events: Final = events
        self._last: i64 = 0  # the message whose body was told last in this turn
        self._octets: i64 = 0  # in this turn

    def tell(self, id: i64, size: i64, pieces: list[bytes]) -> None:
        """Of a message that is told of in this turn; once, however many queues it enters."""
        if id == self._last:
            return
        self._last = id
        came: i64 = 0
        for piece in pieces:
            came += len(piece)
        if came != size:
            self._write(id, NOT_ALL_CAME, 0, [])
        elif self._octets + size > MOST_A_TURN or len(self._events.out) + size > MOST_BYTES:
            self._write(id, TOO_MANY, 0, [])
        else:
            self._octets += size
            self._write(id, THERE, size, pieces)

    def in_record(self, id: i64) -> None:
        """The log holds it for queues whose level may be another one."""
        if id != self._last:
            self._last = id
            self._write(id, IN_RECORD, 0, [])

    def end_turn(self) -> None:
        self._last = 0
        self._octets = 0

    def _write(self, id: i64, lacking: i64, size: i64, pieces: list[bytes]) -> None:
        events = self._events
        if not events.room_for(NOBODY, NOBODY):
            return  # nor for the message, and that is counted
        out = events.out
        out.append(EVENT_BODY)
        write_i32_le(out, i32(EVENT_BODY_FIXED - EVENT_HEAD + size))
        write_i64_le(out, id)
        write_i32_le(out, i32(lacking))
        write_i32_le(out, i32(size))
        for piece in pieces:
            out.write(piece)
