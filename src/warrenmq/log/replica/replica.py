"""The log of a node that follows: batches are written where the leader wrote them, and cut off where they have to be.

Duty: what the rules of a cluster ask of a follower's log (``write``, ``sync``, ``cut``, ``committed_to``), in their
order and one piece of disk work at a time; the node's number; the way from following to leading (``promote``). Not
here: when any of that is done; bytes on disk, which are ``ending``'s and ``tail``'s; what the batches amount to, which
is ``warm``'s.

Invariants:
- A batch is written only at the end of the log, and only when every byte of it checks.
- ``kept <= committed <= synced <= end``: what a checkpoint has taken in cannot be cut any more.
- What was not synced may be cut away; what was found at the start stays until somebody says where to cut.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import Final, final

from mypy_extensions import i64, mypyc_attr

from warrenmq.log.batch import Sealed
from warrenmq.log.epochs import Epochs
from warrenmq.log.files import Files
from warrenmq.log.format import LogError, seed
from warrenmq.log.installing import install
from warrenmq.log.log import Log
from warrenmq.log.manifest import NAME as MANIFEST
from warrenmq.log.manifest import Manifest, replace
from warrenmq.log.node import new_node, node_of
from warrenmq.log.opening import follow, lead, look_again
from warrenmq.log.recovery import Recovered, Recovery, Uncommitted
from warrenmq.log.replica.checked import checked
from warrenmq.log.replica.ending import Ending
from warrenmq.log.replica.receiving import Incoming
from warrenmq.log.replica.warm import FIRST_TASK, Warm, uncommitted
from warrenmq.log.replica.work import Work
from warrenmq.log.runner import Runner
from warrenmq.log.segment import Part
from warrenmq.log.settings import LogSettings
from warrenmq.log.shipping import ShippedBatch, offset_of, position, segment_of
from warrenmq.log.sums import Sums
from warrenmq.log.tail import ZERO_AHEAD, Tail


@mypyc_attr(allow_interpreted_subclasses=True)
class ReplicaListener:
    """The listener who is told what came of the disk's work. All on the thread of the replica's owner."""

    def synced(self, number: int) -> None:
        """Everything written before ``sync(number)`` is on the disk."""

    def failed(self, reason: str) -> None:
        """The disk took it neither at once nor in a new file. Nothing more is written until the log has been cut."""


@final
class Replica:
    """The log of a data folder, as its followers' rules see it."""

    def __init__(self, folder: str, files: Files, settings: LogSettings, lock: int, found: Recovery) -> None:
        self.folder: Final = folder
        self.files: Final = files
        self.settings: Final = settings
        self.lock: Final = lock
        self.node: Final = node_of(folder, files)
        self.log_id: i64 = found.manifest.log_id
        self.last_epoch: Final = max(int(found.recovered.epoch), found.epochs.last()) if found.end > 0 else 0
        self.epochs: Epochs = found.epochs.copy()
        self.end: i64 = found.end
        self.kept: i64 = found.committed
        self.committed: i64 = found.committed
        self.listener: ReplicaListener = ReplicaListener()
        self.committer: Runner = Runner()
        self.worker: Runner = Runner()
        self.tail: Tail = self._new_tail(found.last_segment, found.last_part, found.last_end)
        self.ending: Final = Ending(folder, files, found, self.tail)
        self.sums: Sums = Sums(seed(self.log_id))
        self.warm: Warm = Warm(folder, files, settings, found)
        self._found: list[Uncommitted] = found.uncommitted  # in the tables since the start, and not committed
        self._found_end: i64 = found.end
        self._ahead: list[Sealed] = []  # written since, and not in the tables
        self._files: dict[int, list[Part]] = {}  # that the last segments consist of
        self._stale: bool = False  # what the start found was cut: the tables have to be made anew
        self._told: i64 = 0  # committed, by the leader's word
        self._ends: list[int] = [int(self.kept)]  # of the batches that may be cut off, and before them
        for batch in found.uncommitted:
            self._ends.append(int(batch.position))
        self._written: list[Sealed] = []  # batches that the disk has not been given yet
        self._orders: list[tuple[int, list[Sealed], int]] = []  # cut, batches, sync: to be carried out in turn
        self._work: Work | None = None
        self._works: i64 = 0
        self._owed: i64 = -1  # a cut that the disk has not done
        self.problem: str = ""  # why the disk failed, until the log is cut
        self.over: bool = False
        self.scanned: bool = False  # its node leads, and had to read all segments first
        self._note_files()

    def _new_tail(self, segment: i64, part: i64, end: i64) -> Tail:
        tail = Tail(self.folder, self.files, self.log_id, segment, part, end)
        tail.zero_ahead = min(ZERO_AHEAD, self.settings.segment_bytes // 4) if self.settings.zero_ahead else 0
        return tail

    @staticmethod
    def open(folder: str, files: Files, settings: LogSettings) -> Replica:
        """The folder's log as it was left, made durable. LogError, LogCorrupt."""
        lock, found = follow(folder, files)
        try:
            return Replica(folder, files, settings, lock, found)
        except OSError as error:
            files.close(lock)
            raise LogError(f"{folder}: {error.strerror or error}: a start needs a disk that works") from error
        except BaseException:
            files.close(lock)
            raise

    def attach(self, listener: ReplicaListener, committer: Runner, worker: Runner) -> None:
        """Whom to tell, and who does the disk work."""
        self.listener = listener
        self.committer = committer
        self.worker = worker
        self.warm.worker = worker

    # --- what the rules ask for

    def adopt(self, log_id: i64) -> None:
        """The identity of the log that is followed, which an empty one takes."""
        if log_id == self.log_id:
            return
        if not self._empty():
            raise LogError(f"{self.folder}: belongs to another log than the leader's; move it out of the way")
        try:
            replace(self.files, self.folder, MANIFEST, [Manifest(log_id).encode()])
        except OSError as error:
            raise LogError(f"{self.folder}: {error.strerror or error}") from error
        self.log_id = log_id
        self.sums = Sums(seed(log_id))
        self.tail.give_up()
        self.tail = self._new_tail(0, 0, 0)
        self.ending.begin_anew(self.tail)
        self._look_again()

    def write(self, batch: ShippedBatch) -> None:
        """A batch at the log's end. LogError: it belongs elsewhere, or does not check."""
        if self.problem:
            raise LogError(f"{self.folder}: {self.problem}: nothing is written before the log has been cut")
        same = batch.segment == segment_of(self.end)
        follows = batch.follows == self.end and batch.offset == (offset_of(self.end) if same else 0)
        if not follows or batch.end() <= self.end or batch.epoch < self.epochs.last():
            raise LogError(f"the batch at {batch.segment}, {batch.offset} does not follow {self.end:#x}")
        sealed = checked(self.sums, seed(self.log_id), batch)
        self._written.append(sealed)
        self._ahead.append(sealed)
        self.epochs.wrote(int(batch.epoch), int(batch.follows))
        self.end = batch.end()
        self._ends.append(int(self.end))

    def sync(self, number: int) -> None:
        """All that was written brought to the disk; the listener is told with this number, maybe at once."""
        if self.problem:
            self.listener.failed(self.problem)
            return
        self._orders.append((-1, self._written, number))
        self._written = []
        self._go_on()

    def cut(self, end: i64) -> None:
        """The log ended at the end of a batch. LogError: a checkpoint has what comes behind."""
        if end < self.kept or end > self.end:
            raise LogError(f"{self.folder}: cannot be cut at {end:#x}: it goes from {self.kept:#x} to {self.end:#x}")
        left = bisect_right(self._ends, int(end))
        if self._ends[left - 1] != end:
            raise LogError(f"{self.folder}: cannot be cut at {end:#x}, where no batch ends")
        del self._ends[left:]
        while self._written and position(self._written[-1].segment, self._written[-1].at) >= end:
            self._written.pop()
        while self._ahead and position(self._ahead[-1].segment, self._ahead[-1].at) >= end:
            self._ahead.pop()
        self._stale = self._stale or end < self._found_end
        self.end = end
        self.epochs.cut(int(end))
        self.problem = ""
        self._orders.append((int(end), [], 0))
        self._go_on()

    def committed_to(self, reached: i64) -> None:
        """The leader says so; it counts as far as this disk has it."""
        self._told = max(self._told, reached)
        reached = min(self._told, self._on_disk(), self.end)
        if reached > self.committed:
            self.committed = reached
        if not self._stale:
            self._take_in()

    def _on_disk(self) -> i64:
        """Up to here this disk has what the log has: what is still to be cut there is something else."""
        end = self.ending.end
        if self._owed >= 0:
            end = min(end, self._owed)
        for cut, _, _ in self._orders:
            if cut >= 0:
                end = min(end, i64(cut))
        return end

    def _take_in(self) -> None:
        """What is committed goes into the tables, and may go into the next checkpoint."""
        count = 0
        for batch in self._found:
            if batch.position > self.committed:
                break
            self.warm.maintenance.committed(batch.number, batch.segment, batch.offset, batch.changes)
            count += 1
        del self._found[:count]
        count = 0
        for sealed in self._ahead:
            if position(sealed.segment, sealed.at + sealed.size()) > self.committed:
                break
            self.warm.takes(sealed)
            self.warm.maintenance.committed(sealed.number, sealed.segment, sealed.at + sealed.size(), sealed.changes)
            count += 1
        del self._ahead[:count]
        self.warm.files_are(self._files)

    def _note_files(self) -> None:
        """Which files the last segments consist of; nothing is being written."""
        self._files = {}
        for number, parts in self.ending.parts.items():
            self._files[number] = parts[:]

    def _try_to_look_again(self) -> None:
        try:
            self._look_again()
        except LogError:
            pass  # a disk that fails: a node that leads looks once more

    def _look_again(self) -> None:
        """The tables anew, from what the disk has now."""
        self.warm.close()
        found = look_again(self.folder, self.files)
        self.warm = Warm(self.folder, self.files, self.settings, found)
        self.warm.worker = self.worker
        self._found = found.uncommitted
        self._found_end = found.end
        while self._ahead and position(self._ahead[0].segment, self._ahead[0].at) < found.end:
            del self._ahead[0]
        self._stale = False
        for cut, _, _ in self._orders:
            self._stale = self._stale or 0 <= cut < self._found_end

    def maintain(self, now_ms: i64, budget_ms: i64) -> bool:
        """Some housekeeping of what is committed. True when there is more to do."""
        if self._stale or self.over:
            return False
        more = self.warm.maintain(now_ms, budget_ms)
        self._checkpointed()
        return more

    def _checkpointed(self) -> None:
        manifest = self.warm.maintenance.manifest
        if manifest.segment > 0 and position(manifest.segment, manifest.offset) > self.kept:
            self.kept = position(manifest.segment, manifest.offset)
            del self._ends[: bisect_left(self._ends, int(self.kept))]
            self.ending.forget_before(manifest.segment)

    # --- the disk

    def _go_on(self) -> None:
        """Give the disk what comes next."""
        while self._work is None and self._orders:
            cut, batches, sync = self._orders.pop(0)
            if cut >= 0 and (self._owed < 0 or cut < self._owed):
                self._owed = cut
            self._works += 1
            work = Work(self._works, self.ending, self.tail, self._owed, self.epochs.last(), batches, sync)
            self._work = work
            if self.committer.submit(work):
                self.done(int(work.number))

    def done(self, number: int) -> None:
        """A runner's task is over (posted by its thread, or called at once)."""
        if number >= FIRST_TASK:
            self.warm.done(number)
            self._checkpointed()
            return
        work = self._work
        if work is None or work.number != number:
            return
        self._work = None
        if work.is_cut:
            self._owed = -1
            if self._stale:
                self._try_to_look_again()
        self._note_files()
        self.committed_to(self._told)
        if work.error:
            self._orders = []
            self._written = []
            if self.end > (self.ending.end if self._owed < 0 else min(self._owed, self.ending.end)):
                self.problem = work.error
            self.listener.failed(work.error)
        elif work.sync:
            self.listener.synced(work.sync)
        self._go_on()

    def _empty(self) -> bool:
        """Has the log nothing, on the disk either? A cut may still be under way, or owed."""
        if self.end > 0:
            return False
        self._finish()
        if self.ending.end > 0:
            self.sync(0)
            self._finish()
        return self.ending.end == 0

    def _finish(self) -> None:
        """Until nothing is under way."""
        while self._work is not None:
            self.committer.wait()
            self.done(int(self._work.number))
        self.warm.wait()

    # --- the end of following

    def promote(self, epoch: int) -> tuple[Log, Recovered]:
        """The log to lead with, in this epoch. All that was written is synced. LogError: the disk does not take it."""
        if epoch <= self.epochs.last():
            raise LogError(f"{self.folder}: was written in epoch {self.epochs.last()}, and cannot be led in {epoch}")
        self.sync(0)
        self._finish()
        if self.ending.end != self.end:
            raise LogError(f"{self.folder}: {self.problem}: leading needs a disk that works")
        found = self._known()
        self._end()
        try:
            if found is None:
                self.scanned = True
                found = lead(self.folder, self.files, self.committed, epoch)
        except BaseException:
            self.files.close(self.lock)
            raise
        found.recovered.epoch = epoch
        return Log(self.folder, self.files, self.settings, self.lock, found), found.recovered

    def _known(self) -> Recovery | None:
        """All that a scan would find, without one. None: only a scan knows."""
        if self._stale:
            return None
        left = self._found[:]
        for sealed in self._ahead:
            self.warm.takes(sealed)
            left.append(uncommitted(sealed))
        self.warm.files_are(self._files)
        return self.warm.found(self.tail, self.end, self.committed, self.epochs, left)

    def receive(self) -> Incoming:
        """Where a snapshot may arrive. LogError: there is a log already."""
        if not self._empty():
            raise LogError(f"{self.folder}: a snapshot is for an empty log")
        return Incoming(self.folder, self.files)

    def renew(self, keep: i64) -> None:
        """Another node, which never acknowledged anything, with the log as far as ``keep`` or with none. It is over."""
        self._finish()
        new_node(self.folder, self.files)
        if keep < self.kept:
            install(self.folder, self.files, [], Manifest(self.log_id).encode())
        elif keep < self.ending.end:
            self.ending.cut(keep, 0)
        self.close()

    def close(self) -> None:
        """Let go of the folder."""
        if not self.over:
            self._finish()
            self._end()
            self.files.close(self.lock)

    def _end(self) -> None:
        self.over = True
        self.committer.stop()
        self.worker.stop()
        self.tail.close()
        self.warm.reader.close()
