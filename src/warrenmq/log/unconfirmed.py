"""The publishes of one channel that were told of and not answered yet: which number is which message, as runs.

Duty: memory, between the turn of a publish and the turn of its confirm. A turn's publishes of one channel mostly are
one run, and so are those of several turns that follow one another in the log.
"""

from __future__ import annotations

from typing import Final, final

from librt.vecs import append, vec
from mypy_extensions import i64

FEW: Final = 64  # runs: among so many, those that are over are no trouble


@final
class Unconfirmed:
    """The publishes that are not confirmed yet: runs of numbers with the addresses that go with them, which come in no
    order and overlap where one publish made several records."""

    def __init__(self, last: i64) -> None:
        self._last: Final = last  # nobody answers this one, or any before it
        self._numbers: vec[i64] = vec[i64]()
        self._addresses: vec[i64] = vec[i64]()
        self._counts: vec[i64] = vec[i64]()  # 0: it is over
        self._open: i64 = 0  # runs that are not

    def add(self, number: i64, address: i64, count: i64) -> None:
        unanswered = self._last + 1 - number
        if unanswered > 0:
            number += unanswered
            address += unanswered
            count -= unanswered
        if count <= 0:
            return
        at: i64 = len(self._counts) - 1
        if at >= 0 and self._counts[at] > 0:
            before = self._counts[at]
            if self._numbers[at] + before == number and self._addresses[at] + before == address:
                self._counts[at] = before + count
                return
        self._numbers = append(self._numbers, number)
        self._addresses = append(self._addresses, address)
        self._counts = append(self._counts, count)
        self._open += 1

    def take(self, first: i64, last: i64) -> list[tuple[i64, i64, i64]]:
        """These are answered: number, address and count of each run among them. They are forgotten."""
        taken: list[tuple[i64, i64, i64]] = []
        at: i64 = 0
        runs: i64 = len(self._counts)
        while at < runs:
            number = self._numbers[at]
            end = number + self._counts[at]
            if number <= last and first < end and number < end:
                begin = max(first, number)
                behind = min(last + 1, end)
                address = self._addresses[at]
                taken.append((begin, address + begin - number, behind - begin))
                self._counts[at] = begin - number
                if begin == number:
                    self._numbers[at] = behind
                    self._addresses[at] = address + behind - number
                    self._counts[at] = end - behind
                elif behind < end:  # some before and some behind stay
                    self._numbers = append(self._numbers, behind)
                    self._addresses = append(self._addresses, address + behind - number)
                    self._counts = append(self._counts, end - behind)
                    self._open += 1
                if self._counts[at] == 0:
                    self._open -= 1
            at += 1
        if self._open == 0 or (runs > FEW and self._open * 2 < runs):
            self._close_up()
        return taken

    def _close_up(self) -> None:
        numbers, addresses, counts = self._numbers, self._addresses, self._counts
        self._numbers = vec[i64]()
        self._addresses = vec[i64]()
        self._counts = vec[i64]()
        at: i64 = 0
        while at < len(counts):
            if counts[at] > 0:
                self._numbers = append(self._numbers, numbers[at])
                self._addresses = append(self._addresses, addresses[at])
                self._counts = append(self._counts, counts[at])
            at += 1
