"""The epochs of a log: in which epoch the batch at a position was written.

Duty: the list (epoch, first position), its growth and its cut, and the last point up to which two logs are the same.
That point rests on one invariant of the whole protocol: **an epoch and a position name one batch for ever**. An epoch
has one leader, a leader writes a position once, and what has been shipped is never replaced within its epoch.
"""

from __future__ import annotations

from typing import final


@final
class Epochs:
    """The list (epoch → first position) of one log; both columns rise."""

    def __init__(self) -> None:
        self.numbers: list[int] = []
        self.firsts: list[int] = []

    def last(self) -> int:
        """The epoch of the last batch; 0 for an empty log."""
        return self.numbers[-1] if self.numbers else 0

    def wrote(self, epoch: int, first: int) -> None:
        """A batch of this epoch begins at this position, which is the log's end."""
        if not self.numbers or self.numbers[-1] != epoch:
            self.numbers.append(epoch)
            self.firsts.append(first)

    def cut(self, end: int) -> None:
        """The log ends here now."""
        while self.firsts and self.firsts[-1] >= end:
            self.firsts.pop()
            self.numbers.pop()

    def until(self, end: int) -> Epochs:
        """The list of the log as far as this position."""
        copy = self.copy()
        copy.cut(end)
        return copy

    def copy(self) -> Epochs:
        copy = Epochs()
        copy.numbers, copy.firsts = self.numbers[:], self.firsts[:]
        return copy


def common_point(left: Epochs, left_end: int, right: Epochs, right_end: int) -> int:
    """The last position up to which two logs hold the same batches."""
    i = 0
    while (
        i < len(left.numbers)
        and i < len(right.numbers)
        and left.numbers[i] == right.numbers[i]
        and left.firsts[i] == right.firsts[i]
    ):
        i += 1
    if i == 0:
        return 0
    ours = left.firsts[i] if i < len(left.firsts) else left_end
    theirs = right.firsts[i] if i < len(right.firsts) else right_end
    return min(ours, theirs)
