"""How long messages had waited in a queue when they were handed out: a histogram.

Duty: to count, once for all that a queue handed out in a turn: by the marks of ``marks.py``, so that no message pays
for it. What a turn handed out is taken for what stood before the last of it; that is so but for messages that came back
and for priorities, where the times of those few are the last one's neighbours'.
"""

from __future__ import annotations

from typing import Final, final

from librt.vecs import vec
from mypy_extensions import i64

from warrenmq.broker.queue.marks import Marks

BOUNDS: Final[list[i64]] = [1, 5, 15, 60, 300, 900, 3600, 14400, 86400]  # seconds; what waited longer has a place too


@final
class Waits:
    """The histogram of one queue."""

    def __init__(self) -> None:
        self.counts: vec[i64] = vec[i64]([0] * (len(BOUNDS) + 1))
        self.total_ms: i64 = 0

    def handed_out(self, marks: Marks, last: i64, count: i64, now: i64) -> None:
        """So many messages, of which the last had this position."""
        while count > 0:
            mark = marks.find(last)
            waited = now - marks.time_of(mark)
            some = last - marks.start_of(mark) + 1
            if some > count or some < 1:
                some = count
            bucket: i64 = 0
            while bucket < len(BOUNDS) and waited > BOUNDS[bucket] * 1000:
                bucket += 1
            self.counts[bucket] += some
            self.total_ms += waited * some
            count -= some
            last -= some

    def add(self, other: Waits) -> None:
        i: i64 = 0
        while i < len(self.counts):
            self.counts[i] += other.counts[i]
            i += 1
        self.total_ms += other.total_ms
