"""The last point up to which two logs are the same, from the epochs of both.

That point rests on one invariant of the whole protocol: **an epoch and a position name one batch for ever**. An epoch
has one leader, a leader writes a position once, and what has been shipped is never replaced within its epoch.
"""

from __future__ import annotations

from warrenmq.log.epochs import Epochs


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
