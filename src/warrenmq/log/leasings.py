"""Leases: which messages went under which lease, and why they came back from it.

Duty: an event for a run of messages at positions in a row. What was settled under a lease left its queue, and that is
told as of any other message; what came back is told as given back, and here why. Not here: leases (``broker/queue/``).
"""

from __future__ import annotations

from typing import Final, final

from librt.strings import write_i32_le, write_i64_le
from mypy_extensions import i32, i64

from warrenmq.log.events import NOBODY, Events, Named
from warrenmq.log.layout import EVENT_HEAD, EVENT_LEASE, EVENT_LEASE_FIXED

LEASED: Final = 0
LEASE_REQUEUED: Final = 1  # by whoever has the lease
LEASE_RELEASED: Final = 2  # with all else that was left under it
LEASE_EXPIRED: Final = 3  # it was not renewed in time
LEASE_NAMES: Final = ["leased", "lease_requeued", "lease_released", "lease_expired"]


@final
class Leasings:
    """The run of the open turn."""

    def __init__(self, events: Events) -> None:
        self._events: Final = events
        self._what: i64 = LEASED
        self._lease: Named = NOBODY
        self._queue: Named = NOBODY
        self._position: i64 = 0
        self._address: i64 = 0
        self._count: i64 = 0

    def tell(self, what: i64, lease: Named, queue: Named, position: i64, address: i64) -> None:
        count = self._count
        if (
            lease is self._lease
            and what == self._what
            and position == self._position + count
            and address == self._address + count
            and count
        ):
            self._count = count + 1
            return
        if count:
            self._end()
        self._events.touch()
        self._what = what
        self._lease = lease
        self._queue = queue
        self._position = position
        self._address = address
        self._count = 1

    def end_turn(self) -> None:
        """Before the events' own."""
        if self._count:
            self._end()
            self._count = 0
            self._lease = NOBODY
            self._queue = NOBODY

    def _end(self) -> None:
        events = self._events
        if not events.room_for(self._lease, self._queue):
            events.left_out(self._count)
            return
        out = events.out
        out.append(EVENT_LEASE)
        write_i32_le(out, EVENT_LEASE_FIXED - EVENT_HEAD)
        write_i32_le(out, i32(self._lease.number))
        write_i32_le(out, i32(self._queue.number))
        write_i64_le(out, self._position)
        write_i64_le(out, self._address)
        write_i32_le(out, i32(self._count))
        write_i32_le(out, i32(self._what))
