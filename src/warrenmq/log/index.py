"""A queue's entries as the log hands them over at the start and takes them at a clean stop.

Duty: packed parallel columns, 32 bytes an entry, no object per message. The broker's queues keep their own form.
"""

from __future__ import annotations

from typing import final

from librt.vecs import append, vec
from mypy_extensions import i64


@final
class QueueIndex:
    """The entries of one queue, ordered by position; parallel columns."""

    def __init__(self) -> None:
        self.positions: vec[i64] = vec[i64]()
        self.addresses: vec[i64] = vec[i64]()
        self.expiries: vec[i64] = vec[i64]()
        self.flags: vec[i64] = vec[i64]()
        self.sorted: bool = True

    def add(self, position: i64, address: i64, expiry: i64, flags: i64) -> None:
        count: i64 = len(self.positions)
        if count > 0 and self.positions[count - 1] > position:
            self.sorted = False
        self.positions = append(self.positions, position)
        self.addresses = append(self.addresses, address)
        self.expiries = append(self.expiries, expiry)
        self.flags = append(self.flags, flags)

    def __len__(self) -> int:
        return int(len(self.positions))

    def sort(self) -> None:
        """Order by position. Only moved and shared messages are found out of order, in runs that are merged."""
        while not self.sorted:
            self._merge_runs()

    def _merge_runs(self) -> None:
        """One pass: every two neighbouring ascending runs become one."""
        count: i64 = len(self.positions)
        merged = QueueIndex()
        begin: i64 = 0
        while begin < count:
            middle = self._run_end(begin)
            end = self._run_end(middle) if middle < count else middle
            left = begin
            right = middle
            while left < middle or right < end:
                if right >= end or (left < middle and self.positions[left] <= self.positions[right]):
                    merged.take(self, left)
                    left += 1
                else:
                    merged.take(self, right)
                    right += 1
            begin = end
        self.positions = merged.positions
        self.addresses = merged.addresses
        self.expiries = merged.expiries
        self.flags = merged.flags
        self.sorted = merged.sorted

    def _run_end(self, begin: i64) -> i64:
        count: i64 = len(self.positions)
        end = begin + 1
        while end < count and self.positions[end - 1] <= self.positions[end]:
            end += 1
        return end

    def take(self, other: QueueIndex, at: i64) -> None:
        self.add(other.positions[at], other.addresses[at], other.expiries[at], other.flags[at])
