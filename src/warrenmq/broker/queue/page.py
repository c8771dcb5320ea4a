"""Entries of a queue whose content is elsewhere: four packed integers each.

Duty: the record. Order among pages is ``fifo.py``, when content leaves memory ``paging.py``.
"""

from __future__ import annotations

from typing import Final, final

from librt.vecs import append, vec
from mypy_extensions import i64

PAGE: Final = 1024  # entries a page

# flags of an entry
REDELIVERED: Final = 1
PERSISTENT: Final = 2
MOVED: Final = 4  # came from inside the broker


@final
class Page:
    """Packed entries; ``start`` is the first not yet taken."""

    def __init__(self) -> None:
        self.addresses: vec[i64] = vec[i64](capacity=PAGE)
        self._first: i64 = 0  # position of the first entry; without ``_positions`` the others follow it one by one
        self._positions: vec[i64] | None = None  # positions that do not follow one by one
        self.metas: vec[i64] = vec[i64](capacity=PAGE)  # size << 8 | flags
        self.expiries: vec[i64] | None = None  # only when some entry expires
        self.start: i64 = 0

    def add(self, address: i64, position: i64, meta: i64, expires_at: i64) -> None:
        if expires_at:
            if self.expiries is None:
                self.expiries = vec[i64]([0] * len(self.addresses), capacity=PAGE)
            self.expiries = append(self.expiries, expires_at)
        elif self.expiries is not None:
            self.expiries = append(self.expiries, 0)
        self._add_position(position)
        self.addresses = append(self.addresses, address)
        self.metas = append(self.metas, meta)

    def _add_position(self, position: i64) -> None:
        count: i64 = len(self.addresses)
        if self._positions is None:
            if count == 0:
                self._first = position
                return
            if position == self._first + count:
                return
            known = vec[i64](capacity=PAGE)
            i: i64 = 0
            while i < count:
                known = append(known, self._first + i)
                i += 1
            self._positions = known
        self._positions = append(self._positions, position)

    def position(self, i: i64) -> i64:
        positions = self._positions
        return self._first + i if positions is None else positions[i]

    def replace(self, other: Page) -> None:
        """Hold what the other one holds."""
        self.addresses = other.addresses
        self._first = other._first
        self._positions = other._positions
        self.metas = other.metas
        self.expiries = other.expiries
        self.start = other.start
