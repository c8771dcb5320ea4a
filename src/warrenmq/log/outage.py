"""An outage: the disk failed twice in a row, and nothing is promised until it is well again.

Duty: keep what could not be written, without what nobody holds any more but for what it was, and know when the disk is
to be tried again. When that is done and when service is back, ``commits`` says: when a commit has succeeded and the
room held back for bad times is there again. The first failure of a commit is no outage: it is tried once more, in a new
file.
"""

from __future__ import annotations

from typing import Final, final

from librt.strings import read_i32_le
from librt.vecs import append, vec
from mypy_extensions import i64

from warrenmq.log.batch import HEAD, NUMBER, WHOLE, Sealed, without_dead
from warrenmq.log.core import Core
from warrenmq.log.layout import HOLDER, HOLDER_QUEUE_AT
from warrenmq.log.levels import Level
from warrenmq.log.record import head_length, holder_count, holders_start, is_chunk, message_id_of

# A disk without room has to take these before it takes anything that makes room: no more of them than this, of the
# reserve's four mebibytes.
MOST_HEADS: Final = 1 << 20  # octets


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
        self._room: i64 = 0  # for what messages were that are not kept

    def begin(self, batches: list[Sealed], reason: str) -> None:
        """These could not be written, not even to a new file. Also when it was not the first time."""
        self.reason = reason
        self.failing = True
        self.written = False
        self.retained = batches
        self.retry_later()

    def drop_dead(self) -> None:
        """What nobody holds any more need not be written when the disk is well again, but for what it was: its
        publisher was told that it is not taken, and may ask where it went."""
        self._room = MOST_HEADS
        levels = self.log.levels.by_queue()
        for i in range(len(self.retained)):
            self.retained[i] = self._without_dead(self.retained[i], levels)

    def _without_dead(self, sealed: Sealed, levels: dict[int, Level]) -> Sealed:
        """The batch without what nobody holds any more."""
        segment = self.log.segments[sealed.segment]
        kept = vec[i64]()
        any_dead = False
        i: i64 = 0
        while i < len(sealed.offsets):
            keep: i64 = WHOLE
            if segment.holders(sealed.first_record + i) == 0:
                keep = self._kept_of_dead(sealed.messages, i64(sealed.offsets[i]), levels)
                any_dead = True
            kept = append(kept, keep)
            i += 1
        return without_dead(sealed, kept, self.log.seed) if any_dead else sealed

    def _kept_of_dead(self, data: bytes, at: i64, levels: dict[int, Level]) -> i64:
        """HEAD of a message of which the journal tells, as long as there is room."""
        if is_chunk(data[at]) or not _is_told(data, at, levels):
            return NUMBER
        length = head_length(data, at)
        if length > self._room:
            return NUMBER
        self._room -= length
        return HEAD

    def take(self) -> list[Sealed]:
        """What has to be written before anything else."""
        batches = self.retained
        self.retained = []
        return batches

    def retry_later(self) -> None:
        self.retry_at = self.log.now + self.log.settings.retry_ms


def _is_told(data: bytes, at: i64, levels: dict[int, Level]) -> bool:
    """Does any queue tell of it that it was written for? When it was emptied before, that was seen to then."""
    id = message_id_of(data, at)
    count = holder_count(data, at)
    if count == 0 or not levels:
        return id != 0
    holder = holders_start(data, at)
    while count > 0:
        level = levels.get(int(read_i32_le(data, holder + HOLDER_QUEUE_AT)))
        if level is None or level.tells(id):
            return id != 0
        holder += HOLDER
        count -= 1
    return False
