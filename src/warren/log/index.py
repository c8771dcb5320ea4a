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
        """Order by position. Only moved and shared messages are found out of order."""
        if self.sorted:
            return
        rows = sorted(zip(self.positions, self.addresses, self.expiries, self.flags, strict=True))
        self.positions = vec[i64]()
        self.addresses = vec[i64]()
        self.expiries = vec[i64]()
        self.flags = vec[i64]()
        for position, address, expiry, flags in rows:
            self.positions = append(self.positions, position)
            self.addresses = append(self.addresses, address)
            self.expiries = append(self.expiries, expiry)
            self.flags = append(self.flags, flags)
        self.sorted = True
