"""The scrub: what is on disk is read again and again, slowly, so that bit rot is found before somebody needs the bytes.

Duty: which segment comes next, how fast, and one slice of reading as a task for the worker, which does one thing at a
time, so that no file is replaced under it. What is found goes to ``damage``. Not here: when the time comes (the server
asks), and what becomes of damaged messages.
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from warrenmq.log.core import Core
from warrenmq.log.format import LogCorrupt
from warrenmq.log.ledger import read_ledger
from warrenmq.log.maintenance import Maintenance
from warrenmq.log.runner import Task
from warrenmq.log.scan import BatchCursor
from warrenmq.log.segment import Segment, ledger_name

SLICE: Final = 256 << 10  # bytes at least, unless a second's worth is less; a batch is read whole
BUSY: Final = 200  # ms to wait while the worker has better things to do
IDLE: Final = 1000  # ms until the time is looked at again


@final
class ScrubSlice(Task):
    """Some batches of one segment, from an offset on."""

    def __init__(self, number: i64, log: Core, segment: Segment, at: i64, length: i64) -> None:
        super().__init__(number)
        self.segment: Final = segment.number
        self.generation: Final = segment.generation
        self.begin: Final = at
        self.length: Final = length
        self.damaged: list[int] = []  # addresses
        self.problem: str = ""
        self._log: Final = log
        self._ledger: Final = segment.ledger
        self._end: Final = segment.end
        self._cursor: Final = BatchCursor(
            log.folder, log.files, log.seed, segment.number, list(segment.parts), segment.end
        )
        self._cursor.at = at
        self._cursor.tolerated = segment.end
        self.at: i64 = at

    def work(self) -> None:
        if self.begin == 0 and self._ledger > 0:
            path = f"{self._log.folder}/{ledger_name(self.segment, self.generation)}"
            try:
                read_ledger(self._log.files, path, self._ledger)
            except LogCorrupt as error:
                self.problem = str(error)
        cursor = self._cursor
        try:
            while cursor.at - self.begin < self.length and cursor.next():
                for record in cursor.damaged:
                    self.damaged.append(int(self.segment << 32 | record))
        finally:
            cursor.close()
        if cursor.problem:
            where = cursor.file_offset(cursor.at)
            self.problem = f"{cursor.path}: offset {where}: {cursor.problem}, where synced data stood"
        self.at = cursor.at

    def finished(self) -> bool:
        return self.at >= self._end or self.problem != "" or self.error != ""


@final
class Scrub:
    """The slow round through all synced records, a piece at a time."""

    def __init__(self, log: Core, maintenance: Maintenance) -> None:
        self.log: Final = log
        self.maintenance: Final = maintenance
        self.passes: i64 = 0  # finished
        self.bytes: i64 = 0  # read, ever
        self._began: i64 = -1  # when the pass under way, or the last one, began
        self._left: list[int] = []  # segments still to be read in this pass
        self._running: bool = False  # a slice is with the worker
        self._generation: i64 = 0
        self._at: i64 = 0  # in the first of them
        self._asked: i64 = 0
        self._rate: i64 = 0
        self._not_before: i64 = 0

    def step(self, now: i64, rate: i64, interval: i64) -> i64:
        """Go on, at ``rate`` bytes a second, a new pass each ``interval`` ms; in how many ms to ask again."""
        if self._running:
            return BUSY
        if now < self._not_before:
            return self._not_before - now
        if not self._left:
            if self._began >= 0 and now - self._began < interval:
                return IDLE
            self._began = now
            self._left = [number for number in sorted(self.log.segments) if self.log.segments[number].end > 0]
            self._at = 0
            if not self._left:
                return IDLE
        segment = self.log.segments.get(self._left[0])
        if segment is None:
            self._next()  # removed meanwhile
            return 0
        if self._at > 0 and segment.generation != self._generation:
            self._at = 0  # compacted meanwhile: another file
        self._generation = segment.generation
        self._asked = now
        self._rate = rate
        length = SLICE if rate >= SLICE else rate
        task = ScrubSlice(self.log.task_number(), self.log, segment, self._at, length)
        self._running = True
        if not self.maintenance.lend_worker(task):
            self._running = False
            return BUSY
        if self._running:
            return BUSY
        return max(self._not_before - now, 0)

    def done(self, task: ScrubSlice) -> None:
        """The worker has read it."""
        self._running = False
        read = task.at - task.begin
        self.bytes += read
        self._not_before = self._asked + read * 1000 // max(self._rate, 1)
        self._at = task.at
        segment = self.log.segments.get(task.segment)
        if segment is not None and segment.generation == task.generation:
            if task.damaged:
                self.log.found_damaged(task.damaged)
            if task.problem or task.error:
                self.log.damage.found_segment(task.segment, task.problem or task.error)
        if task.finished() and self._left and self._left[0] == task.segment:
            self._next()

    def _next(self) -> None:
        del self._left[0]
        self._at = 0
        if not self._left:
            self.passes += 1
