"""Which published messages the broker has not yet answered for.

Sequence numbers count from 1. Nearly always confirms come in order, so the state is a low mark and a small set above
it. Not here: what the caller does about a nack.
"""

from __future__ import annotations

from typing import final

from mypy_extensions import i64


@final
class Unconfirmed:
    """Everything up to ``low`` is settled, and so are the numbers in ``above``."""

    def __init__(self) -> None:
        self.published: i64 = 0
        self.low: i64 = 0
        self.above: set[int] = set()
        self.nacked: list[int] = []

    @property
    def count(self) -> int:
        return int(self.published - self.low) - len(self.above)

    def settle(self, tag: i64, multiple: bool, acked: bool) -> None:
        above = self.above
        if not multiple and tag != self.low + 1:
            if tag <= self.low or tag > self.published or tag in above:
                return
            above.add(int(tag))
            if not acked:
                self.nacked.append(int(tag))
            return
        if multiple and (tag == 0 or tag > self.published):
            tag = self.published
        if not acked:
            for number in range(int(self.low) + 1, int(tag) + 1):
                if number not in above:
                    self.nacked.append(number)
        if tag > self.low:
            self.low = tag
        if len(above) == 0:
            return
        if multiple:
            self.above = above = {number for number in above if number > self.low}
        while int(self.low + 1) in above:
            self.low += 1
            above.discard(int(self.low))
