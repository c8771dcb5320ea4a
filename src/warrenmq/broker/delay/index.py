"""What is due when: (due time, key) pairs in order, sixteen bytes each.

Duty: order, and finding a pair again. It stands alone: it knows nothing of messages. A key says where the content is
kept and grows with arrival, so pairs with the same due time come in order of arrival. The original plugin keeps the
same thing as an ordered table of keys; its timer is ``delays.py``'s.

The pairs stand in blocks of two packed columns, each block sorted, the blocks in order. Adding costs a binary search
and the shifting of half a block; messages with a constant delay go straight to the end.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from typing import Final, final

from librt.vecs import append, vec
from mypy_extensions import i64

BLOCK: Final = 512  # pairs a block holds at most

Pair = tuple[int, int]


@final
class Block:
    """Pairs next to each other in the order; never empty while it is in an index."""

    def __init__(self, dues: array[int], keys: array[int]) -> None:
        self.dues: Final = dues
        self.keys: Final = keys

    def place(self, due: i64, key: i64) -> i64:
        """Where the pair stands, or would."""
        low: i64 = bisect_left(self.dues, due)
        if low == len(self.dues) or self.dues[low] != due:
            return low
        high: i64 = bisect_right(self.dues, due, low)
        return bisect_left(self.keys, key, low, high)


@final
class DueIndex:
    """An ordered set of (due time, key) pairs in blocks, cheap to add to, to take from and to search."""

    def __init__(self) -> None:
        self._blocks: list[Block] = []
        self._count: i64 = 0
        # nothing stands behind this pair (it may be gone itself)
        self._last_due: i64 = -1
        self._last_key: i64 = -1

    def __len__(self) -> int:
        return self._count

    def add(self, due: i64, key: i64) -> None:
        """Take a pair in. It must not be there already."""
        self._count += 1
        blocks = self._blocks
        if not blocks or due > self._last_due or (due == self._last_due and key > self._last_key):
            self._append(due, key)
            return
        number = self._find(due, key)
        if number == len(blocks):
            self._append(due, key)
            return
        block = blocks[number]
        at = block.place(due, key)
        block.dues.insert(at, due)
        block.keys.insert(at, key)
        if len(block.dues) > BLOCK:
            self._split(number)

    def _append(self, due: i64, key: i64) -> None:
        """Behind everything: the last block fills up, then a new one begins."""
        self._last_due = due
        self._last_key = key
        if self._blocks:
            last = self._blocks[-1]
            if len(last.dues) < BLOCK:
                last.dues.append(due)
                last.keys.append(key)
                return
        self._blocks.append(Block(array("q", (due,)), array("q", (key,))))

    def _split(self, number: i64) -> None:
        block = self._blocks[number]
        half = BLOCK // 2
        self._blocks.insert(number + 1, Block(block.dues[half:], block.keys[half:]))
        self._blocks[number] = Block(block.dues[:half], block.keys[:half])

    def remove(self, due: i64, key: i64) -> bool:
        """Take a pair out; says whether it was there."""
        number = self._find(due, key)
        if number == len(self._blocks):
            return False
        block = self._blocks[number]
        at = block.place(due, key)
        if at == len(block.dues) or block.dues[at] != due or block.keys[at] != key:
            return False
        del block.dues[at]
        del block.keys[at]
        self._count -= 1
        if not block.dues:
            del self._blocks[number]
        return True

    def contains(self, due: i64, key: i64) -> bool:
        number = self._find(due, key)
        if number == len(self._blocks):
            return False
        block = self._blocks[number]
        at = block.place(due, key)
        return at < len(block.dues) and block.dues[at] == due and block.keys[at] == key

    def first_due(self) -> i64:
        """When the earliest is due, -1 when nothing waits."""
        return self._blocks[0].dues[0] if self._blocks else -1

    def first_key(self) -> i64:
        return self._blocks[0].keys[0] if self._blocks else -1

    def take(self, now: i64, most: i64) -> list[Pair]:
        """Take out what is due at ``now``, in order, at most so many."""
        taken: list[Pair] = []
        while self._blocks and len(taken) < most:
            block = self._blocks[0]
            due: i64 = bisect_right(block.dues, now)
            if due == 0:
                break
            if due > most - len(taken):
                due = most - len(taken)
            taken.extend(zip(block.dues[:due], block.keys[:due], strict=True))
            del block.dues[:due]
            del block.keys[:due]
            if not block.dues:
                del self._blocks[0]
        self._count -= len(taken)
        return taken

    def after(self, due: i64, key: i64, most: i64) -> list[Pair]:
        """The pairs behind this one (which need not be there), in order, at most so many."""
        found: list[Pair] = []
        number = self._find(due, key)
        while number < len(self._blocks) and len(found) < most:
            block = self._blocks[number]
            at: i64 = 0
            if not found:
                at = block.place(due, key)
                if at < len(block.dues) and block.dues[at] == due and block.keys[at] == key:
                    at += 1
            end: i64 = at + most - len(found)
            found.extend(zip(block.dues[at:end], block.keys[at:end], strict=True))
            number += 1
        return found

    def take_all(self) -> vec[i64]:
        """The keys of all pairs, in order; nothing is left."""
        keys = vec[i64]()
        for block in self._blocks:
            for key in block.keys:
                keys = append(keys, key)
        self._blocks = []
        self._count = 0
        return keys

    def _find(self, due: i64, key: i64) -> i64:
        """The first block whose last pair is not before this one; the number of blocks when there is none."""
        blocks = self._blocks
        low: i64 = 0
        high: i64 = len(blocks)
        while low < high:
            middle = (low + high) >> 1
            block = blocks[middle]
            block_due: i64 = block.dues[-1]
            if block_due < due or (block_due == due and i64(block.keys[-1]) < key):
                low = middle + 1
            else:
                high = middle
        return low
