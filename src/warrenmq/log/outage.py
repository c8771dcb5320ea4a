"""An outage: the disk failed twice in a row, and nothing is promised until it is well again.

Duty: keep what could not be written, without what nobody holds any more, and know when the disk is to be tried again.
When that is done and when service is back, ``commits`` says: when a commit has succeeded and the room held back for bad
times is there again. The first failure of a commit is no outage: it is tried once more, in a new file.
"""

from __future__ import annotations

from typing import Final, final

from librt.vecs import append, vec
from mypy_extensions import i64

from warrenmq.log.batch import Sealed, without_dead
from warrenmq.log.core import Core


@final
class Outage:
    """The batches of a failing disk, kept until they are written again or given up."""

    def __init__(self, log: Core) -> None:
        self.log: Final = log
        self.failing: bool = False  # nothing is promised: the disk fails, or has no room but what was held back
        self.written: bool = True  # the last commit succeeded
        self.reason: str = ""
        self.retained: list[Sealed] = []  # failed batches, waiting for the disk
        self.retry_at: i64 = 0

    def begin(self, batches: list[Sealed], reason: str) -> None:
        """These could not be written, not even to a new file. Also when it was not the first time."""
        self.reason = reason
        self.failing = True
        self.written = False
        self.retained = batches
        self.retry_later()

    def drop_dead(self) -> None:
        """What nobody holds any more need not be written when the disk is well again."""
        for i in range(len(self.retained)):
            self.retained[i] = self._without_dead(self.retained[i])

    def _without_dead(self, sealed: Sealed) -> Sealed:
        """The batch without what nobody holds any more."""
        segment = self.log.segments[sealed.segment]
        dead = vec[bool]()
        any_dead = False
        i: i64 = 0
        while i < len(sealed.offsets):
            gone = segment.holders(sealed.first_record + i) == 0
            dead = append(dead, gone)
            any_dead = any_dead or gone
            i += 1
        return without_dead(sealed, dead, self.log.seed) if any_dead else sealed

    def take(self) -> list[Sealed]:
        """What has to be written before anything else."""
        batches = self.retained
        self.retained = []
        return batches

    def retry_later(self) -> None:
        self.retry_at = self.log.now + self.log.settings.retry_ms
