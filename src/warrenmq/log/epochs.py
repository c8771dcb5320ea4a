"""The epochs of a log: in which epoch the batch at a position was written.

Duty: the list (epoch, first position), its growth and its cut, and its text in the log: each epoch begins with a batch
that defines the whole list (``KIND``, ``KEY``), so that every checkpoint has it as far as it goes, and the headers of
the batches behind the checkpoint tell the rest. Positions are ``shipping``'s. Not here: what two logs have in common.
"""

from __future__ import annotations

import json
from typing import Final, final

KIND: Final = "cluster"
KEY: Final = "epochs"


@final
class Epochs:
    """The list (epoch → first position) of one log; both columns rise."""

    def __init__(self) -> None:
        self.numbers: list[int] = []
        self.firsts: list[int] = []

    def last(self) -> int:
        """The epoch of the last batch; 0 for an empty log."""
        return self.numbers[-1] if self.numbers else 0

    def wrote(self, epoch: int, first: int) -> None:
        """A batch of this epoch begins at this position, which is the log's end."""
        if not self.numbers or self.numbers[-1] != epoch:
            self.numbers.append(epoch)
            self.firsts.append(first)

    def cut(self, end: int) -> None:
        """The log ends here now."""
        while self.firsts and self.firsts[-1] >= end:
            self.firsts.pop()
            self.numbers.pop()

    def until(self, end: int) -> Epochs:
        """The list of the log as far as this position."""
        copy = self.copy()
        copy.cut(end)
        return copy

    def copy(self) -> Epochs:
        copy = Epochs()
        copy.numbers, copy.firsts = self.numbers[:], self.firsts[:]
        return copy

    def text(self) -> bytes:
        """As it is defined in the log."""
        return json.dumps({"epochs": [list(pair) for pair in zip(self.numbers, self.firsts, strict=True)]}).encode()


def from_text(text: bytes) -> Epochs:
    """What ``text`` gave."""
    epochs = Epochs()
    for number, first in json.loads(text)["epochs"]:
        epochs.wrote(int(number), int(first))
    return epochs
