"""Entries that came back to a queue, in the order in which they go out again.

Duty: order, at a price that hardly grows with the number of entries, whatever the order in which they come: a client
may give back a million of them one by one, each behind all the others. So they are kept in chunks: a place is found by
halving, and what makes room for an entry is one chunk. Not here: counts and flags.

The next entry is the last of the last chunk; no chunk is empty.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64

from warrenmq.broker.queue.queue import Entry

if TYPE_CHECKING:
    from warrenmq.broker.services.freeing import Freeing

CHUNK: Final = 512  # entries at most


@final
class Returned:
    """The entries that were requeued, ahead of all that nobody has had yet."""

    def __init__(self) -> None:
        self.count: i64 = 0
        self._chunks: list[list[Entry]] = []

    def next(self) -> Entry:
        """The next to go out; there is one."""
        return self._chunks[-1][-1]

    def newest(self) -> Entry:
        """The last to go out; there is one."""
        return self._chunks[0][0]

    def pop(self) -> Entry:
        """Take the next; there is one."""
        chunks = self._chunks
        last = chunks[-1]
        entry = last.pop()
        if not last:
            chunks.pop()
        self.count -= 1
        return entry

    def put(self, entry: Entry) -> None:
        """At its position, where all the others are at theirs."""
        self.count += 1
        position = entry.position
        chunks = self._chunks
        if not chunks:
            chunks.append([entry])
            return
        low: i64 = 0
        high: i64 = len(chunks) - 1
        if position > chunks[high][-1].position:
            while low < high:  # the first chunk that holds something older
                middle = (low + high) // 2
                if chunks[middle][-1].position > position:
                    low = middle + 1
                else:
                    high = middle
        chunk = chunks[high]
        at: i64 = len(chunk)
        if position > chunk[-1].position:
            low = 0
            while low < at:
                middle = (low + at) // 2
                if chunk[middle].position > position:
                    low = middle + 1
                else:
                    at = middle
        if len(chunk) < CHUNK:
            chunk.insert(at, entry)
        elif at == 0:
            if high > 0 and len(chunks[high - 1]) < CHUNK:
                chunks[high - 1].append(entry)
            else:
                chunks.insert(high, [entry])
        elif at == len(chunk):
            chunks.insert(high + 1, [entry])
        else:
            half: i64 = len(chunk) // 2
            younger = chunk[:half]
            del chunk[:half]
            chunks.insert(high, younger)
            if at <= half:
                younger.insert(at, entry)
            else:
                chunk.insert(at - half, entry)

    def put_behind(self, entries: list[Entry]) -> None:
        """In this order, behind all others."""
        self.count += len(entries)
        chunks = self._chunks
        i: i64 = 0
        if len(entries) == 1 and chunks and len(chunks[0]) < CHUNK:
            chunks[0].insert(0, entries[0])
            return
        new: list[list[Entry]] = []
        while i < len(entries):
            chunk = entries[i : i + CHUNK]
            chunk.reverse()
            new.append(chunk)
            i += CHUNK
        new.reverse()
        chunks[:0] = new

    def all(self) -> list[Entry]:
        """The next one last."""
        out: list[Entry] = []
        for chunk in self._chunks:
            out.extend(chunk)
        return out

    def between(self, first: i64, end: i64, most: i64) -> list[Entry]:
        """Those with positions from ``first`` up to ``end``, the next one first."""
        out: list[Entry] = []
        if self.count == 0 or self.newest().position < first:
            return out  # all of them are older
        c: i64 = len(self._chunks) - 1
        while c >= 0 and len(out) < most:
            chunk = self._chunks[c]
            i: i64 = len(chunk) - 1
            while i >= 0 and len(out) < most:
                if first <= chunk[i].position < end:
                    out.append(chunk[i])
                i -= 1
            c -= 1
        return out

    def take(self, position: i64) -> Entry | None:
        """Take the one at this position; None: it is not here."""
        c: i64 = len(self._chunks) - 1
        while c >= 0:
            chunk = self._chunks[c]
            i: i64 = len(chunk) - 1
            while i >= 0:
                if chunk[i].position == position:
                    entry = chunk.pop(i)
                    if not chunk:
                        del self._chunks[c]
                    self.count -= 1
                    return entry
                i -= 1
            c -= 1
        return None

    def keep(self, entries: list[Entry]) -> None:
        """Only these remain, in this order, the next one last."""
        self._chunks = []
        self.count = 0
        self.put_behind(entries[::-1])

    def clear(self, freeing: Freeing) -> None:
        """Nobody needs them any more."""
        freeing.add_pieces(self._chunks)
        self._chunks = []
        self.count = 0
