"""Which published messages the broker has not yet answered for.

Sequence numbers count from 1. Nearly always confirms come in order, so the state is a low mark and a small set above
it. Not here: what the caller does about a nack.
"""

from __future__ import annotations

from typing import final

from mypy_extensions import i64


@final
class Unconfirmed:
    """The publishes that are not confirmed: everything up to ``low`` is settled, and so are the numbers in
    ``above``."""

    def __init__(self) -> None:
        self.published: i64 = 0
        self.low: i64 = 0
        self.above: set[int] = set()
        self.nacked: list[int] = []

    @property
    def count(self) -> int:
        return int(self.published - self.low) - len(self.above)

    def settle(self, tag: i64, multiple: bool, acked: bool) -> None:
        """A tag that was never published, or is settled already, changes nothing."""
        if multiple:
            if tag == 0 or tag > self.published:  # 0: everything so far
                tag = self.published
            if tag > self.low:
                self._up_to(tag, acked)
            return
        if tag <= self.low or tag > self.published or int(tag) in self.above:
            return
        if not acked:
            self.nacked.append(int(tag))
        if tag > self.low + 1:
            self.above.add(int(tag))
            return
        self.low = tag
        self._close_gap()

    def _up_to(self, tag: i64, acked: bool) -> None:
        if not acked:
            for number in range(int(self.low) + 1, int(tag) + 1):
                if number not in self.above:
                    self.nacked.append(number)
        self.low = tag
        if len(self.above) > 0:
            self.above = {number for number in self.above if number > tag}
            self._close_gap()

    def _close_gap(self) -> None:
        if len(self.above) == 0:
            return
        while int(self.low + 1) in self.above:
            self.low += 1
            self.above.discard(int(self.low))
