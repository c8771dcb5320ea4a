"""An outage: the disk failed twice in a row, and nothing is promised until it is well again.

Duty: keep what could not be written, let the broker take out what it need not keep, try the disk again, and say when
service is back: when a commit has succeeded and the room held back for bad times is there again. The first failure of a
commit is no outage: ``commits`` tries it once more, in a new file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from librt.vecs import append, vec
from mypy_extensions import i64

from warrenmq.log.batch import Sealed, without_dead

if TYPE_CHECKING:
    from warrenmq.log.commits import Commits
    from warrenmq.log.log import Log


@final
class Outage:
    """The batches of a failing disk, kept until they are written again or given up."""

    def __init__(self, log: Log, commits: Commits) -> None:
        self.log: Final = log
        self.commits: Final = commits
        self.failing: bool = False  # nothing is promised: the disk fails, or has no room but what was held back
        self.written: bool = True  # the last commit succeeded
        self.reason: str = ""
        self.retained: list[Sealed] = []  # failed batches, waiting for the disk
        self.retry_at: i64 = 0

    def begin(self, batches: list[Sealed], reason: str) -> None:
        """These could not be written, not even to a new file. Also when it was not the first time."""
        log = self.log
        self.reason = reason
        self.failing = True
        self.written = False
        log.maintenance.reserve_given()
        self._retry_later()
        self.retained = batches
        between = self.commits.between_turns()
        log.listener.failed(log.batch - 1, reason)
        if between:
            self.commits.close_turn()  # what the listener settled belongs to the failed turns
        log.maintenance.release_unsynced()
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
        return without_dead(sealed, dead, self.log.tail.seed) if any_dead else sealed

    def take(self) -> list[Sealed]:
        """What has to be written before anything else."""
        batches = self.retained
        self.retained = []
        return batches

    def retry(self) -> None:
        """Try a failed disk now."""
        commits = self.commits
        if self.failing and commits.in_flight is None and commits.sealable():
            if self.retained or self.log.current.size() > 0:
                commits.submit(2)
            else:
                self._retry_later()
                self.log.maintenance.restore_reserve()

    def written_again(self) -> None:
        """A commit succeeded."""
        if self.failing:
            self.written = True
            self._retry_later()
            self.log.maintenance.restore_reserve()

    def _retry_later(self) -> None:
        self.retry_at = self.commits.now + self.log.settings.retry_ms

    def end(self) -> None:
        """The room held back is there again: if commits succeed too, all is well."""
        if self.failing and self.written:
            self.failing = False
            self.log.listener.recovered_service()
            self.commits.service_is_back()
