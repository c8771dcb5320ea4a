"""When messages came to a queue, without a time for each of them: a few marks of (position, time).

A mark says that what has its position, or a later one, came at its time or later. One is set in the first turn of a
second in which the queue is seen to (``Queue.mark_dirty``, which every publish goes through), so a time is known to a
second. Marks are thinned out as they grow old: the older a message, the coarser its time, by a 32nd of its age. So a
queue that is never empty has some hundreds of marks after months, and no message pays for one.

Not here: streams, whose log keeps the time of each message.
"""

from __future__ import annotations

from typing import Final, final

from librt.vecs import append, vec
from mypy_extensions import i64

SECOND: Final = 1000
FINENESS: Final = 32  # a time may be wrong by this part of the message's age, beside a second
FEW: Final = 64  # marks that are not worth thinning out


@final
class Marks:
    """The marks of one queue, the oldest first."""

    def __init__(self) -> None:
        self.due: i64 = 0  # before this time no further mark is needed
        self._positions: vec[i64] = vec[i64]()
        self._times: vec[i64] = vec[i64]()
        self._thin_at: i64 = FEW

    def mark(self, position: i64, now: i64) -> None:
        """What comes from now on has this position or a later one."""
        self.due = now + SECOND
        last: i64 = len(self._positions) - 1
        if last >= 0 and self._positions[last] > position:  # a failed disk took some messages back
            while last >= 0 and self._positions[last] > position:
                last -= 1
            self._positions = self._positions[: last + 1]
            self._times = self._times[: last + 1]
        if last > 0 and self._positions[last] == position:  # nothing came since; the first mark says when it is unknown
            self._times[last] = now
            return
        self._positions = append(self._positions, position)
        self._times = append(self._times, now)
        if last >= self._thin_at:
            self._thin_out(now)

    def begin(self, position: i64, now: i64) -> None:
        """Of what is before this position nothing is known but that it came before now."""
        self._positions = vec[i64]()
        self._times = vec[i64]()
        self.mark(position, now)

    def since(self, position: i64) -> i64:
        """When the message at this position came, or a little before; if ``is_known``, else it came still earlier."""
        return self.time_of(self.find(position))

    def find(self, position: i64) -> i64:
        """The number of the mark that tells when the message at this position came; -1: it came before all marks."""
        high: i64 = len(self._positions)
        if high and self._positions[high - 1] <= position:  # what is handed out has mostly just come
            return high - 1
        low: i64 = 0
        while low < high:
            middle = (low + high) // 2
            if self._positions[middle] <= position:
                low = middle + 1
            else:
                high = middle
        return high - 1

    def time_of(self, mark: i64) -> i64:
        if len(self._times) == 0:
            return 0
        return self._times[mark if mark > 0 else 0]

    def start_of(self, mark: i64) -> i64:
        """The first position that it is about."""
        return 0 if mark < 0 else self._positions[mark]

    def is_known(self, position: i64) -> bool:
        return len(self._positions) > 0 and self._positions[0] <= position

    def _thin_out(self, now: i64) -> None:
        positions = vec[i64]([self._positions[0]])
        times = vec[i64]([self._times[0]])
        kept = self._times[0]
        i: i64 = 1
        while i < len(self._positions):
            time = self._times[i]
            if time - kept >= SECOND and (time - kept) * FINENESS >= now - time:
                positions = append(positions, self._positions[i])
                times = append(times, time)
                kept = time
            i += 1
        self._positions = positions
        self._times = times
        self._thin_at = 2 * len(positions)
        if self._thin_at < FEW:
            self._thin_at = FEW
