"""What a queue holds, as a follower knows it: rows that come and go, found by their addresses.

Duty: one queue's entries while batches are taken in, and its index when the node begins to lead. Not here: who counts
as a record's holder besides (``warm``).

Rows whose addresses rise, as those of messages written to a queue do, are packed columns, 32 octets each, searched by
halves; one that is gone keeps its place until half of them are. Others, moved in from elsewhere, are in a dict.
"""

from __future__ import annotations

from typing import Final, final

from librt.vecs import append, vec
from mypy_extensions import i64

from warrenmq.log.index import QueueIndex

GONE: Final = -(1 << 62)  # in the place of a position
FEW: Final = 1024


@final
class Rows:
    """The entries of one queue."""

    def __init__(self) -> None:
        self.positions: vec[i64] = vec[i64]()
        self.addresses: vec[i64] = vec[i64]()
        self.expiries: vec[i64] = vec[i64]()
        self.flags: vec[i64] = vec[i64]()
        self.others: dict[int, tuple[int, int, int]] = {}  # address -> position, expiry, flags
        self._head: i64 = 0  # all rows before it are gone
        self._gone: i64 = 0

    def add(self, position: i64, address: i64, expiry: i64, flags: i64) -> None:
        count: i64 = len(self.addresses)
        if count > 0 and address <= self.addresses[count - 1]:
            self.others[address] = (int(position), int(expiry), int(flags))
            return
        self.positions = append(self.positions, position)
        self.addresses = append(self.addresses, address)
        self.expiries = append(self.expiries, expiry)
        self.flags = append(self.flags, flags)

    def settle(self, address: i64) -> bool:
        """Whether it was there."""
        if self.others and self.others.pop(address, None) is not None:
            return True
        at = self._find(address)
        if at < 0:
            return False
        self.positions[at] = GONE
        self._gone += 1
        count: i64 = len(self.addresses)
        while self._head < count and self.positions[self._head] == GONE:
            self._head += 1
        if self._gone > FEW and self._gone * 2 > count:
            self._close_up()
        return True

    def requeue(self, address: i64, position: i64, flags: i64) -> None:
        """It came back, to this position; its expiry stays."""
        other = self.others.get(address) if self.others else None
        if other is not None:
            self.others[address] = (int(position), other[1], int(flags))
            return
        at = self._find(address)
        if at >= 0:
            self.positions[at] = position
            self.flags[at] = flags

    def held(self) -> vec[i64]:
        """The addresses of all rows."""
        found = vec[i64]()
        at = self._head
        while at < len(self.addresses):
            if self.positions[at] != GONE:
                found = append(found, self.addresses[at])
            at += 1
        for address in self.others:
            found = append(found, i64(address))
        return found

    def index(self) -> QueueIndex:
        """By position, as a start finds it."""
        found = QueueIndex()
        at = self._head
        while at < len(self.addresses):
            if self.positions[at] != GONE:
                found.add(self.positions[at], self.addresses[at], self.expiries[at], self.flags[at])
            at += 1
        for address, (position, expiry, flags) in sorted(self.others.items(), key=by_position):
            found.add(position, address, expiry, flags)
        found.sort()
        return found

    def _find(self, address: i64) -> i64:
        """The row with this address; -1 when there is none."""
        low = self._head
        high: i64 = len(self.addresses)
        if low < high and self.addresses[low] == address:  # most leave in the order in which they came
            return low
        while low < high:
            middle = (low + high) >> 1
            if self.addresses[middle] < address:
                low = middle + 1
            else:
                high = middle
        if low < len(self.addresses) and self.addresses[low] == address and self.positions[low] != GONE:
            return low
        return -1

    def _close_up(self) -> None:
        left = Rows()
        at = self._head
        while at < len(self.addresses):
            if self.positions[at] != GONE:
                left.add(self.positions[at], self.addresses[at], self.expiries[at], self.flags[at])
            at += 1
        self.positions = left.positions
        self.addresses = left.addresses
        self.expiries = left.expiries
        self.flags = left.flags
        self._head = 0
        self._gone = 0


def by_position(item: tuple[int, tuple[int, int, int]]) -> int:
    return item[1][0]


def rows_of(index: QueueIndex) -> Rows:
    """Of what a start found."""
    rows = Rows()
    for at in range(len(index)):
        rows.add(index.positions[at], index.addresses[at], index.expiries[at], index.flags[at])
    return rows
