"""Credit: a connection that publishes faster than the log commits is not read until the log has caught up.

Each connection may have so many bytes of persistent messages on the way to the disk; a sync gives the credit back. The
limit is per connection, so a flood stops itself and not the slow publisher beside it. Consumers never wait for
credit. RabbitMQ counts messages hop by hop (400, then 200 more); here there is one hop, to the log.

How much that is depends on the disk: what waits in front of a message is what its publisher waits for. ``Allowance``
grows while syncs are quick and shrinks while they are slow, so that a flood delays others by about ``SLOW`` at most.
"""

from __future__ import annotations

from typing import Final, final

from librt.vecs import append, vec
from mypy_extensions import i64

CREDIT: Final = 8 << 20  # bytes a connection may have uncommitted, on a disk that takes them at once
LEAST: Final = 64 << 10
AT_FIRST: Final = 1 << 20
QUICK: Final = 50  # ms from the first publish of a batch to its sync
SLOW: Final = 150
OVERHEAD: Final = 256  # what a message costs besides its body
SHOWN_FOR: Final = 5000  # ms that the state reads "flow" after the last stop


@final
class Allowance:
    """The bytes that each connection may have on the way to the disk now; one for the whole broker."""

    def __init__(self) -> None:
        self.limit: i64 = AT_FIRST
        self.floor: i64 = 0  # ms that a sync takes with next to nothing to write: no limit makes that shorter
        # not synced yet, when their first message came, and bytes; every message comes here, so they are no objects
        self._batches: vec[i64] = vec[i64]()
        self._times: vec[i64] = vec[i64]()
        self._bytes: vec[i64] = vec[i64]()
        self._last: i64 = 0  # when the last sync was over

    def charge(self, batch: i64, size: i64, now: i64) -> None:
        last: i64 = len(self._batches) - 1
        if last >= 0 and self._batches[last] == batch:
            self._bytes[last] += size
        else:
            self._batches = append(self._batches, batch)
            self._times = append(self._times, now)
            self._bytes = append(self._bytes, size)

    def synced(self, batch: i64, now: i64, used_up: bool) -> None:
        """Batches up to this one are settled. ``used_up``: has some connection run out of credit meanwhile?"""
        n: i64 = 0
        written: i64 = 0
        while n < len(self._batches) and self._batches[n] <= batch:
            written += self._bytes[n]
            n += 1
        if n == 0:
            return
        took = now - self._times[0]
        waited = self._times[0] < self._last  # for the sync before its own
        self._last = now
        self._batches = self._batches[n:]
        self._times = self._times[n:]
        self._bytes = self._bytes[n:]
        if written < LEAST:
            if not waited:
                self.floor = (self.floor + took) // 2
        elif took > SLOW + 2 * self.floor:
            self.limit = max(LEAST, self.limit // 2)
        elif took < QUICK + self.floor and used_up:
            self.limit = min(CREDIT, self.limit * 2)


@final
class Credit:
    """The bytes that one connection has on the way to the disk, batch by batch."""

    def __init__(self, allowance: Allowance) -> None:
        self._allowance: Final = allowance
        self.used: i64 = 0
        self._batches: vec[i64] = vec[i64]()
        self._bytes: vec[i64] = vec[i64]()

    def take(self, batch: i64, size: i64, now: i64) -> bool:
        """A message of this size goes to the log in this batch; False when credit is used up."""
        size += OVERHEAD
        self.used += size
        last: i64 = len(self._batches) - 1
        if last >= 0 and self._batches[last] == batch:
            self._bytes[last] += size
        else:
            self._batches = append(self._batches, batch)
            self._bytes = append(self._bytes, size)
        self._allowance.charge(batch, size, now)
        return self.used < self._allowance.limit

    def give_back(self, synced: i64) -> bool:
        """Batches up to this one are settled, written or failed; True when nothing is outstanding any more."""
        n: i64 = 0
        while n < len(self._batches) and self._batches[n] <= synced:
            self.used -= self._bytes[n]
            n += 1
        if n:
            self._batches = self._batches[n:]
            self._bytes = self._bytes[n:]
        return self.used == 0

    def enough(self) -> bool:
        """May a stopped connection be read again?"""
        return self.used <= self._allowance.limit // 2
