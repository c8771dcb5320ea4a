"""Very many objects put in order some at a time: to sort a hundred thousand at once holds everybody up.

They are sorted in runs, and the runs are cut at the same keys, so that what lies between two cuts is sorted by itself.
Who wants a page of them has only that page put together.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, TypeVar

from warrenmq.http.pacer import QUICK, Pacer

Item = TypeVar("Item")
Key = TypeVar("Key")

RUN = 2048  # objects sorted at once
SPAN = 256  # so many of a run lie between two that it is cut at


async def in_order(
    items: Collection[Item], key: Callable[[Item], Any] | None = None, start: int = 0, stop: int | None = None
) -> list[Item]:
    """As ``sorted`` does it; of all those in order, the ones from ``start`` to before ``stop``."""
    found = list(items)
    if len(found) <= RUN:
        found.sort(key=key)
        return found[start:stop]
    pacer = Pacer()
    runs: list[list[Item]] = []
    by: Any = key  # `sorted` asks for a key, or for items that are known to compare
    for first in range(0, len(found), RUN):
        runs.append(sorted(found[first : first + RUN], key=by))
        await pacer.pause()
    chosen: list[Item] = []
    after = 0  # so many come before what is next
    last = len(found) if stop is None else min(stop, len(found))
    for part, alike in _parts(runs, key):
        before, after = after, after + sum(end - begin for begin, end in part)
        if before < last and after > start:
            together = [item for run, (begin, end) in zip(runs, part, strict=True) for item in run[begin:end]]
            if not alike:
                together.sort(key=key)
            chosen += together[max(0, start - before) : last - before]
        if after >= last:
            break
        if pacer.is_over():
            await pacer.pause()
    return chosen


def _parts(runs: list[list[Item]], key: Callable[[Item], Any] | None) -> Iterator[tuple[list[tuple[int, int]], bool]]:
    """From where to where each run lies between two cuts, and whether all of that has one key."""
    samples = [item for run in runs for item in run[SPAN::SPAN]]
    samples.sort(key=key)
    at = [0] * len(runs)
    cut: Any = None
    for number, sample in enumerate(samples):
        before, cut = cut, sample if key is None else key(sample)
        if number and not before < cut:
            continue
        for bisect, alike in ((bisect_left, False), (bisect_right, True)):
            ends = [bisect(run, cut, begin, key=key) for run, begin in zip(runs, at, strict=True)]
            yield list(zip(at, ends, strict=True)), alike
            at = ends
    yield [(begin, len(run)) for run, begin in zip(runs, at, strict=True)], False


async def by_key(objects: Mapping[Key, Item]) -> list[Item]:
    """The objects of a table by their keys, as they are when their turn comes: not those that are gone then."""
    keys = await in_order(objects.keys())
    found: list[Item] = []
    pacer = Pacer()
    for first in range(0, len(keys), QUICK):
        found += [one for one in map(objects.get, keys[first : first + QUICK]) if one is not None]
        if first + QUICK < len(keys):
            await pacer.pause()
    return found
