"""Very many objects put in order some at a time: to sort a hundred thousand at once holds everybody up."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar

from warrenmq.http.pacer import Pacer

Item = TypeVar("Item")
Key = TypeVar("Key")

RUN = 2048  # objects sorted at once; so many runs are merged one object at a time


async def in_order(items: Collection[Item], key: Callable[[Item], Any], reverse: bool = False) -> list[Item]:
    """As ``sorted`` does it."""
    found = list(items)
    if len(found) <= RUN:
        found.sort(key=key, reverse=reverse)
        return found
    pacer = Pacer()
    runs: list[list[Item]] = []
    for start in range(0, len(found), RUN):
        runs.append(sorted(found[start : start + RUN], key=key, reverse=reverse))
        await pacer.pause()
    merged: list[Item] = []
    for item in heapq.merge(*runs, key=key, reverse=reverse):
        merged.append(item)
        await pacer.breathe()
    return merged


async def by_key(objects: Mapping[Key, Item]) -> list[Item]:
    """The objects of a table by their keys, as they are when their turn comes: not those that are gone then."""
    found: list[Item] = []
    pacer = Pacer()
    for key in await in_order(objects.keys(), _itself):
        one = objects.get(key)
        if one is not None:
            found.append(one)
        await pacer.breathe()
    return found


def _itself(key: Any) -> Any:
    return key
