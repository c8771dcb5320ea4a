"""What a replica's disk does in one go: a cut that is owed, then batches, then a sync.

Duty: the task, made of finished buffers, and what came of it. A commit that fails is tried once more in a new file, as
a leader's is.
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from warrenmq.log.batch import Sealed
from warrenmq.log.replica.ending import Ending
from warrenmq.log.runner import Task
from warrenmq.log.shipping import position
from warrenmq.log.tail import Commit, Tail


@final
class Work(Task):
    """A cut, batches, a sync; each may be missing."""

    def __init__(
        self, number: i64, ending: Ending, tail: Tail, cut: i64, epoch: i64, batches: list[Sealed], sync: int
    ) -> None:
        super().__init__(number)
        self.ending: Final = ending
        self.tail: Final = tail
        self.cut: Final = cut  # where the log is ended first; -1: nowhere
        self.epoch: Final = epoch  # of the log's last batch then
        self.batches: Final = batches
        self.sync: Final = sync  # the number to be told when all of it is on the disk; 0: none
        self.is_cut: bool = False

    def work(self) -> None:
        if self.cut >= 0:
            self.ending.cut(self.cut, self.epoch)
        self.is_cut = True
        if self.batches:
            try:
                self._write(self.batches, 1)
            except OSError:
                left = [sealed for sealed in self.batches if position(sealed.segment, sealed.at) >= self.ending.end]
                self._write(left, 2)

    def _write(self, batches: list[Sealed], attempt: i64) -> None:
        commit = Commit(self.number, self.tail, batches, attempt)
        try:
            commit.work()
        finally:
            for segment, part, base in commit.opened:
                self.ending.opened(segment, part, base)
            if commit.done > 0:
                last = batches[commit.done - 1]
                self.ending.end = position(last.segment, last.at + last.size())
