"""The end of the log on disk: the one place that writes batches and syncs them.

Duty: write the batches of one commit to the active segment file, begin a new file where needed, sync, and report.
Used by one thread at a time (the committer's while a commit is in flight, else nobody's); touches no broker object.

After any failed write, sync or creation the file is closed for good at its last synced offset, because nobody knows
what the page cache still holds: the next batch goes to a new file (a further *part* of the same segment, so that
addresses stay), whose header names the closed one and that offset, and recovery reads no further there.
"""

from __future__ import annotations

import time
from typing import Final, final

from mypy_extensions import i64

from warrenmq.log.batch import Sealed
from warrenmq.log.files import Files
from warrenmq.log.format import BatchHeader, FileHeader, batch_header, file_header, seed
from warrenmq.log.layout import FILE_HEADER
from warrenmq.log.runner import Task
from warrenmq.log.segment import file_name

RESERVE: Final = "reserve"  # room held back, so that a full disk can still take the settles that empty it
PLAIN_COMMITS: Final = 100  # after a failure that many go without zeros: they may have been what did not fit
ZERO_AHEAD: Final = 1 << 20  # small commits overwrite zeros: a sync then need not write the file's metadata
SMALL_COMMIT: Final = 64 << 10  # octets; zeros ahead only make larger commits slower, as bandwidth bounds those
BUSY_COMMITS: Final = 20  # after a large commit so many small ones go without zeros too


@final
class Tail:
    """The writer: the open segment, its end, and the batches that go there."""

    def __init__(self, folder: str, files: Files, log_id: i64, segment: i64, part: i64, end: i64) -> None:
        self.folder: Final = folder
        self.files: Final = files
        self.log_id: Final = log_id
        self.seed: Final = seed(log_id)
        self.zero_ahead: i64 = ZERO_AHEAD  # bytes; 0: never
        self.plain: i64 = 0  # commits to go before zeros are written again
        self.descriptor: int = -1
        # the last file with synced batches, and where they end: what the next file's header closes
        self.segment: i64 = segment
        self.part: i64 = part
        self.end: i64 = end
        # the file being written
        self.open_segment: i64 = 0
        self.open_part: i64 = 0
        self.base: i64 = 0
        self.zeroed: i64 = 0  # file offset up to which zeros or batches stand

    def fail(self, give_reserve: bool) -> None:
        """The open file is closed for good; what was written behind its end is given back, if the disk lets us.

        So is the reserve, once publishing is about to be blocked: settles and the next checkpoint then find room.
        """
        self.plain = PLAIN_COMMITS
        try:
            if self.descriptor >= 0:
                if self.open_segment == self.segment and self.open_part == self.part:
                    self.files.truncate(self.descriptor, FILE_HEADER + self.end - self.base)
                else:
                    self.files.unlink(self.folder + "/" + file_name(self.open_segment, self.open_part))
            if give_reserve:
                self.files.unlink(self.folder + "/" + RESERVE)
        except OSError:
            pass
        self.give_up()

    def give_up(self) -> None:
        """Never write to the open file again."""
        if self.descriptor >= 0:
            try:
                self.files.close(self.descriptor)
            except OSError:
                pass
            self.descriptor = -1

    def write(self, commit: Commit) -> None:
        """Write and sync all of it, ``commit.done`` counting what is synced. OSError: the rest is not."""
        batches = commit.batches
        first: i64 = 0
        while first < len(batches):
            # one sync for all batches of one segment
            last = first
            while last + 1 < len(batches) and batches[last + 1].segment == batches[first].segment:
                last += 1
            self._write(commit, first, last)
            commit.done = last + 1
            first = last + 1

    def _write(self, commit: Commit, first: i64, last: i64) -> None:
        segment = commit.batches[first].segment
        parts: list[bytes] = []
        fresh = False
        if self.descriptor < 0 or self.open_segment != segment:
            parts.append(self._begin(segment, commit.batches[first].epoch))
            fresh = True
        begin = commit.batches[first].at
        at = begin
        index = first
        while index <= last:
            sealed = commit.batches[index]
            header = BatchHeader(
                segment,
                sealed.at,
                sealed.epoch,
                self.segment,
                self.end,
                sealed.number,
                sealed.first_record,
                len(sealed.offsets),
                len(sealed.messages),
                len(sealed.changes),
                sealed.payload_sum(),
                sealed.time,
            )
            parts.append(batch_header(self.seed, header))
            if sealed.messages:
                parts.append(sealed.messages)
            if sealed.changes:
                parts.append(sealed.changes)
            at += sealed.size()
            index += 1
        position = 0 if fresh else FILE_HEADER + begin - self.base
        finish = FILE_HEADER + at - self.base
        small = finish - position <= SMALL_COMMIT
        if not small:
            self.plain = max(self.plain, BUSY_COMMITS)
        elif self.plain > 0:
            self.plain -= 1
        elif self.zero_ahead > 0 and finish > self.zeroed:
            parts.append(bytes(self.zero_ahead))
            self.zeroed = finish + self.zero_ahead
        began: i64 = time.monotonic_ns()
        written = began
        if not (small and self.files.write_through(self.descriptor, parts, position)):
            self.files.write(self.descriptor, parts, position)
            written = time.monotonic_ns()
            self.files.sync(self.descriptor)
        synced: i64 = time.monotonic_ns()
        commit.octets += finish - position
        commit.write_ns += written - began
        commit.syncs.append(int(synced - written))
        if fresh:
            self.files.sync_folder(self.folder)
            commit.opened.append((segment, self.open_part, self.base))
        self.segment = segment
        self.part = self.open_part
        self.end = at

    def _begin(self, segment: i64, epoch: i64) -> bytes:
        """A new file for this segment; the header to write first."""
        if self.descriptor >= 0:
            # a roll: the old file is synced and done; the zeros behind its end are given back
            self.close()
        part: i64 = 0
        base: i64 = 0
        if self.segment == segment:
            part = self.part + 1
            base = self.end
        self.descriptor = self.files.create(self.folder + "/" + file_name(segment, part))
        self.open_segment = segment
        self.open_part = part
        self.base = base
        self.zeroed = 0
        return file_header(FileHeader(self.log_id, segment, part, 0, epoch, base, self.segment, self.part, self.end, 0))

    def ends_at(self, segment: i64, part: i64, end: i64) -> None:
        """The last batch stands here: what is written next closes this file, wherever it ended before."""
        self.give_up()
        self.segment = segment
        self.part = part
        self.end = end

    def begin_part(self, epoch: i64) -> i64:
        """Close the last file for certain, by a new part without a batch; its number. OSError: it is not closed."""
        header = self._begin(self.segment, epoch)
        self.files.write(self.descriptor, [header], 0)
        self.files.sync(self.descriptor)
        self.files.sync_folder(self.folder)
        self.part = self.open_part
        return self.part

    def close(self) -> None:
        if self.descriptor >= 0:
            try:
                self.files.truncate(self.descriptor, FILE_HEADER + self.end - self.base)
            except OSError:
                pass  # the zeros may stay
            self.give_up()


@final
class Commit(Task):
    """Some batches to be synced, and what came of it."""

    def __init__(self, number: i64, tail: Tail, batches: list[Sealed], attempt: i64) -> None:
        super().__init__(number)
        self.tail: Final = tail
        self.batches: Final = batches
        self.attempt: Final = attempt
        self.done: i64 = 0  # how many of them are synced
        # what the disk did for it
        self.octets: i64 = 0
        self.write_ns: i64 = 0
        self.syncs: list[int] = []  # nanoseconds of each
        self.opened: list[tuple[int, int, int]] = []  # (segment, part, base) of files begun

    def work(self) -> None:
        try:
            self.tail.write(self)
        except Exception:
            self.tail.fail(self.attempt > 1)
            raise
