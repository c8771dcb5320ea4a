"""What came into a queue, what left it and what is there, by way, cause and place; and whether that adds up.

Duty: the numbers and their difference. A queue keeps one of these for whatever it does not count for the management
API anyway, and makes another one, whole, for whoever asks (``Queue.account``). Nothing is decided by them. They are
counted apart from one another, where things happen, so that whatever is lost, doubled or miscounted shows. All sums
together are ``broker/ledger.py``.
"""

from __future__ import annotations

from typing import Final, final

from librt.vecs import vec
from mypy_extensions import i64

from warrenmq.log.causes import ALL_CAUSES, PUBLISHED, RECOVERED, WAYS

# where an entry is that has not left
WAITING: Final = 0
UNACKED: Final = 1
LEASED: Final = 2
DEAD_LETTERING: Final = 3  # given up, and not yet where it goes
ASIDE: Final = 4  # damaged on disk, and not dropped yet
RETAINED: Final = 5  # in a stream
RETRY_WAITING: Final = 6  # given back by a client, and not yet to be delivered again
PLACES: Final = 7
PLACE_NAMES: Final = ["waiting", "unacked", "leased", "dead_lettering", "damaged_aside", "retained", "retry_waiting"]


@final
class Accounts:
    """The accounts of one queue, or of many together."""

    def __init__(self) -> None:
        self._came: vec[i64] = vec[i64]([0] * WAYS)
        self._left: vec[i64] = vec[i64]([0] * ALL_CAUSES)
        self._here: vec[i64] = vec[i64]([0] * PLACES)
        self.misplaced: i64 = 0  # by how many what is counted as waiting differs from what stands in the order

    # -- counting ----------------------------------------------------------------------------------------------

    def came(self, way: i64, count: i64) -> None:
        self._came[way] = self._came[way] + count

    def left(self, cause: i64, count: i64) -> None:
        self._left[cause] = self._left[cause] + count

    def here(self, place: i64, count: i64) -> None:
        self._here[place] = self._here[place] + count

    def add(self, other: Accounts) -> None:
        i: i64 = 0
        while i < WAYS:
            self._came[i] = self._came[i] + other._came[i]
            i += 1
        i = 0
        while i < ALL_CAUSES:
            self._left[i] = self._left[i] + other._left[i]
            i += 1
        i = 0
        while i < PLACES:
            self._here[i] = self._here[i] + other._here[i]
            i += 1
        self.misplaced += other.misplaced

    # -- asking ------------------------------------------------------------------------------------------------

    def came_by(self, way: i64) -> i64:
        return self._came[way]

    def came_otherwise(self) -> i64:
        """How many came from inside the broker while it ran."""
        total: i64 = 0
        way: i64 = 0
        while way < WAYS:
            if way != PUBLISHED and way != RECOVERED:
                total += self._came[way]
            way += 1
        return total

    def left_for(self, cause: i64) -> i64:
        return self._left[cause]

    def in_place(self, place: i64) -> i64:
        return self._here[place]

    def all_here(self) -> i64:
        total: i64 = 0
        for count in self._here:
            total += count
        return total

    def difference(self) -> i64:
        """What came and neither left nor is there; less than nothing: more left, or is there, than ever came."""
        total: i64 = 0
        for count in self._came:
            total += count
        for count in self._left:
            total -= count
        return total - self.all_here()
