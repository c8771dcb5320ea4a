"""Long work on the loop in short slices. Nothing else is imported here."""

from __future__ import annotations

import asyncio
import time

SLICE = 0.0015  # seconds before everybody else is served
SLICE_ITEMS = 100  # items before everybody else is served
QUICK = 512  # items, where each is looked at for a microsecond or two


class Pacer:
    """A clock for long work: ``await pacer.breathe()`` between items: gives way when the slice is used up.

    A garbage collection within a slice only makes it give way the sooner.
    """

    __slots__ = ("_items", "_until")

    def __init__(self) -> None:
        self._items = 0
        self._until = time.perf_counter() + SLICE

    async def breathe(self) -> None:
        if self.is_over():
            await self.pause()

    def is_over(self) -> bool:
        """One more item is done: is it time to give way?"""
        self._items += 1
        return self._items >= SLICE_ITEMS or time.perf_counter() >= self._until

    async def pause(self) -> None:
        """Give way in any case: what was done is as long as a slice."""
        await asyncio.sleep(0)
        self._items = 0
        self._until = time.perf_counter() + SLICE
