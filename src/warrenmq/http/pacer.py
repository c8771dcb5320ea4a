"""Long work on the loop in short slices. Nothing else is imported here."""

from __future__ import annotations

import asyncio
import time

SLICE = 0.0015  # seconds before everybody else is served
SLICE_ITEMS = 100  # items before everybody else is served


class Pacer:
    """A clock for long work: ``await pacer.breathe()`` between items: gives way when the slice is used up.

    A garbage collection within a slice only makes it give way the sooner.
    """

    __slots__ = ("_items", "_until")

    def __init__(self) -> None:
        self._items = 0
        self._until = time.perf_counter() + SLICE

    async def breathe(self) -> None:
        self._items += 1
        if self._items >= SLICE_ITEMS or time.perf_counter() >= self._until:
            await self.pause()

    async def pause(self) -> None:
        """Give way in any case: what was done is as long as a slice."""
        await asyncio.sleep(0)
        self._items = 0
        self._until = time.perf_counter() + SLICE
