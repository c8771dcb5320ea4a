"""Credit: a connection that publishes faster than the log commits is not read until the log has caught up.

Each connection may have so many bytes of persistent messages on the way to the disk; a sync gives the credit back. The
limit is per connection, so a flood stops itself and not the slow publisher beside it. Consumers never wait for
credit. RabbitMQ counts messages hop by hop (400, then 200 more); here there is one hop, to the log.
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

CREDIT: Final = 8 << 20  # bytes a connection may have uncommitted
MORE_AFTER: Final = CREDIT // 2  # reading goes on when it is down to this
OVERHEAD: Final = 256  # what a message costs besides its body
SHOWN_FOR: Final = 5000  # ms that the state reads "flow" after the last stop


@final
class Credit:
    def __init__(self) -> None:
        self.used: i64 = 0
        self._batches: list[i64] = []
        self._bytes: list[i64] = []

    def take(self, batch: i64, size: i64) -> bool:
        """A message of this size goes to the log in this batch; False when credit is used up."""
        size += OVERHEAD
        self.used += size
        if self._batches and self._batches[-1] == batch:
            self._bytes[-1] += size
        else:
            self._batches.append(batch)
            self._bytes.append(size)
        return self.used < CREDIT

    def give_back(self, synced: i64) -> bool:
        """Batches up to this one are settled, written or failed; True when nothing is outstanding any more."""
        n: i64 = 0
        while n < len(self._batches) and self._batches[n] <= synced:
            self.used -= self._bytes[n]
            n += 1
        if n:
            del self._batches[:n]
            del self._bytes[:n]
        return self.used == 0

    def enough(self) -> bool:
        """May a stopped connection be read again?"""
        return self.used <= MORE_AFTER
