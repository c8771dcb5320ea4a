"""A queue's index keeps its entries together and in order of position."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from warrenmq.log.index import QueueIndex


@given(st.lists(st.integers(1, 2**60), unique=True, max_size=60))
def test_entries_are_ordered_by_position_whatever_order_they_came_in(positions: list[int]) -> None:
    index = QueueIndex()
    for position in positions:
        index.add(position, position * 2, position * 3, position % 7)
    index.sort()
    assert index.sorted and len(index) == len(positions)
    assert list(index.positions) == sorted(positions)
    assert [int(a) for a in index.addresses] == [p * 2 for p in sorted(positions)]
    assert [int(e) for e in index.expiries] == [p * 3 for p in sorted(positions)]
    assert [int(f) for f in index.flags] == [p % 7 for p in sorted(positions)]
