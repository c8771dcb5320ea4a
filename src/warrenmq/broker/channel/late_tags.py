"""The tags of deliveries that missed their deadline and went back to their queues.

Duty: whether a tag is one of them, in little memory. What a client says about such a tag is ignored; one that was never
given out is an error.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Final, final

RUNS: Final = 10_000  # of tags that are remembered


@final
class LateTags:
    """The tags of late deliveries, as runs of numbers that follow one another: a client that never answers has one."""

    def __init__(self) -> None:
        self._first: list[int] = []
        self._last: list[int] = []

    def __contains__(self, tag: object) -> bool:
        assert isinstance(tag, int)
        at = bisect_right(self._first, tag) - 1
        return at >= 0 and tag <= self._last[at]

    def add(self, tag: int) -> None:
        at = bisect_right(self._first, tag)
        joins_left = at > 0 and self._last[at - 1] == tag - 1
        joins_right = at < len(self._first) and self._first[at] == tag + 1
        if joins_left and joins_right:
            self._last[at - 1] = self._last[at]
            del self._first[at]
            del self._last[at]
        elif joins_left:
            self._last[at - 1] = tag
        elif joins_right:
            self._first[at] = tag
        else:
            self._first.insert(at, tag)
            self._last.insert(at, tag)
            if len(self._first) > RUNS:
                del self._first[0]
                del self._last[0]
