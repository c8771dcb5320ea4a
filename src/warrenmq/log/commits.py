"""Commits: when the closed turns go to disk, and what is known once they are there.

Duty: decide at the end of a turn, by time or on demand that everything closed is handed to the committer, give each
batch its place, begin the next segment when one is full, take over what came of it, and try a failed disk again. The
writing is ``tail``'s; what could not be written is ``outage``'s; what other nodes have of it, if there are any,
``replicating`` counts.

Invariants:
- At most one commit is in flight; what arrives meanwhile is the next batch.
- ``Listener.synced(n)`` is called only after a sync that covers turn n, on every node that counts.
- What was given to other nodes is written as it is, or never.
- Only closed turns are sealed: nothing is submitted while something was logged since the last ``end_turn``.
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from warrenmq.log.batch import Sealed
from warrenmq.log.core import Core
from warrenmq.log.format import LogError
from warrenmq.log.histogram import DISK_TIMES, Histogram
from warrenmq.log.layout import BATCH_HEADER
from warrenmq.log.maintenance import Maintenance
from warrenmq.log.outage import Outage
from warrenmq.log.replicating import Replicating
from warrenmq.log.segment import Part
from warrenmq.log.tail import Commit, Tail

EVENT_DELAY_MS: Final = 1000
EVENT_BYTES: Final = 1 << 20


@final
class Disk:
    """The work that commits have asked of the disk. Nothing is decided by it."""

    def __init__(self) -> None:
        self.writes: i64 = 0
        self.octets: i64 = 0
        self.write_us: i64 = 0
        self.syncs: Final = Histogram(DISK_TIMES)

    def count(self, commit: Commit) -> None:
        self.octets += commit.octets
        self.write_us += commit.write_ns // 1000
        for took in commit.syncs:
            self.writes += 1
            self.syncs.add(took // 1000, 1)


@final
class Commits:
    """The batches between the end of their turn and their place on disk."""

    def __init__(self, log: Core, tail: Tail, outage: Outage, maintenance: Maintenance) -> None:
        self.log: Final = log
        self.tail: Final = tail
        self.outage: Final = outage
        self.maintenance: Final = maintenance
        self.replicating: Replicating | None = None  # None: what is synced is committed, and promised
        self.held_back: bool = False  # so much is under way to other nodes that no further batch is closed
        self.over: bool = False  # nothing is written any more: others have what this disk cannot take
        self.in_flight: Commit | None = None
        self.disk: Final = Disk()
        self._owed: bool = False  # somebody waits for a turn that is not submitted yet
        self._unsynced_since: i64 = 0  # 0: nothing waits; else the time of the first tick that saw it

    # --- when

    def turn_ended(self, number: i64, owed: bool) -> None:
        log = self.log
        if owed:
            self._owed = True
        size = log.close_turn()
        if self.in_flight is None and not self.outage.failing:
            if size > 0:
                if not log.kept_open and not self.held_back and (self._owed or size >= log.settings.commit_bytes):
                    self.submit(1)
            elif log.synced == number - 1:
                log.synced = number  # an empty turn owes the disk nothing
                if owed:
                    self._owed = False
                if self.replicating is not None:
                    self._tell_turns(self.replicating, log.committed, log.promised)
                    return
                log.committed = number
                log.promised = number
                if owed:
                    log.listener.synced(number)

    def tick(self, now_ms: i64) -> None:
        """Time passes: sync what has waited long enough, and try a failed disk again."""
        self.log.now = now_ms
        if self.in_flight is not None or not self.log.sealable():
            return
        if self.outage.failing:
            if now_ms >= self.outage.retry_at:
                self.retry()
            return
        if self.held_back or self.log.current.is_empty():
            self._unsynced_since = 0
        elif self._unsynced_since == 0:
            self._unsynced_since = now_ms
        elif now_ms - self._unsynced_since >= self._patience():
            self.submit(1)

    def _patience(self) -> i64:
        """How long what nobody waits for may stay in memory, in ms; events alone need not go to disk at once."""
        current = self.log.current
        if current.size() > 0 or len(current.events.out) >= EVENT_BYTES:
            return self.log.settings.sync_delay_ms
        return EVENT_DELAY_MS

    def flush(self) -> bool:
        """Between turns: wait until every closed turn is synced. False when the disk fails."""
        while True:
            commit = self.in_flight
            if commit is not None:
                self.log.committer.wait()
                self.log.done(commit.number)
            elif self.outage.failing:
                return False
            elif not self.log.current.is_empty() and self.log.sealable():
                self.submit(1)
            else:
                return True

    # --- a failed disk

    def retry(self) -> None:
        """Try a failed disk now."""
        log = self.log
        if self.outage.failing and self.in_flight is None and log.sealable() and not self.over:
            if self.outage.retained or log.current.size() > 0:
                self.submit(2)
            else:
                self._restore()

    def _failed(self, batches: list[Sealed], reason: str) -> None:
        """These could not be written, not even to a new file. Also when it was not the first time."""
        log = self.log
        replicating = self.replicating
        if replicating is not None:
            if not replicating.shipping.failed():
                self.over = True
                self.outage.begin(batches, reason)
                return
            replicating.take_back()
            self.held_back = replicating.full()
        self.maintenance.reserve_given()
        self.outage.begin(batches, reason)
        between = log.between_turns()
        log.listener.failed(log.batch - 1, reason)
        if between:
            log.close_turn()  # what the listener settled belongs to the failed turns
        self.maintenance.release_unsynced()
        self.outage.drop_dead()

    def _restore(self) -> None:
        """Before all is well, the room held back for bad times has to be there again."""
        self.outage.retry_later()
        self.maintenance.restore_reserve()
        self.end_outage()

    def end_outage(self) -> None:
        """If the disk takes commits, and the room held back is there again, all is well."""
        if self.outage.failing and self.outage.written and not self.maintenance.reserve_wanted:
            self.outage.failing = False
            self.log.listener.recovered_service()
            if self._owed and self.in_flight is None and not self.held_back and self.log.sealable():
                self.submit(1)  # whoever waited meanwhile waits no longer than needed

    # --- submitting

    def submit(self, attempt: i64) -> None:
        """Hand everything closed to the committer."""
        log = self.log
        batches = self.outage.take()
        if not log.current.is_empty():
            batches.append(log.current.seal(log.active.number, log.batch - 1, log.time))
            log.close_turn()
            self._roll(batches)
        if batches:
            self._start(batches, attempt)

    def _start(self, batches: list[Sealed], attempt: i64) -> None:
        log = self.log
        self._owed = False
        self._unsynced_since = 0
        self._place(batches)
        commit = Commit(log.task_number(), self.tail, batches, attempt)
        self.in_flight = commit
        if self.replicating is not None:
            for sealed in batches:
                self.replicating.submit(sealed)
            self.held_back = self.replicating.full()
        log.run(log.committer, commit)

    def _place(self, batches: list[Sealed]) -> None:
        """Each behind the one before it, the first behind what is synced."""
        segment = self.tail.segment
        end = self.tail.end
        for sealed in batches:
            sealed.epoch = self.log.epoch
            sealed.at = end if sealed.segment == segment else 0
            segment = sealed.segment
            end = sealed.at + sealed.size()

    def _roll(self, batches: list[Sealed]) -> None:
        """The batch just sealed may have filled the segment: later records belong to the next one."""
        log = self.log
        active = log.active
        size = active.end
        for sealed in batches:
            if sealed.segment == active.number:
                size += sealed.size()
        if size >= log.settings.segment_bytes:
            log.begin_segment(active.number + 1)

    # --- what came of it

    def done(self, commit: Commit) -> None:
        log = self.log
        self.in_flight = None
        self.disk.count(commit)
        for segment, part, base in commit.opened:
            log.segments[segment].parts.append(Part(part, base))
        done = commit.done
        if done > 0:
            i: i64 = 0
            while i < done:
                self._settle(commit.batches[i])
                i += 1
            last = commit.batches[done - 1].number
            if last > log.synced:
                log.synced = last
        if done < len(commit.batches):
            left = commit.batches[done:]
            if commit.attempt == 1:
                self._start(left, 2)  # once more, whole, to a new file
            else:
                self._failed(left, commit.error)
            return
        if log.current.size() == 0:
            log.synced = log.batch - 1  # turns without a trace
            self._owed = False
        elif (
            not self.outage.failing
            and not self.held_back
            and self.log.sealable()
            and (self._owed or log.current.size() >= log.settings.commit_bytes)
        ):
            self.submit(1)  # first the disk, then the news: the two overlap
        if self.replicating is None:
            log.committed = log.synced
            log.promised = log.synced
            log.listener.synced(log.synced)
        else:
            self._tell_others(self.replicating)
        if self.outage.failing:
            self.outage.written = True
            self._restore()

    def _settle(self, sealed: Sealed) -> None:
        """A batch is synced: its records can be read from disk now."""
        segment = self.log.segments[sealed.segment]
        base = sealed.at + BATCH_HEADER
        count: i64 = len(sealed.offsets)
        i: i64 = 0
        while i < count:
            segment.place(base + i64(sealed.offsets[i]), sealed.size_of(i))
            i += 1
        segment.end = base + len(sealed.messages) + len(sealed.changes)
        if self.replicating is None:
            self.maintenance.committed(sealed.number, sealed.segment, segment.end, sealed.changes)
        else:
            self.replicating.was_synced(sealed)

    # --- other nodes

    def others(self) -> Replicating:
        if self.replicating is None:
            raise LogError("this log is of one node")
        return self.replicating

    def committed_to(self, position: i64) -> None:
        replicating = self.others()
        if self.over:
            return
        committed, promised = self.log.committed, self.log.promised
        replicating.committed_to(position)
        self._tell_turns(replicating, committed, promised)
        self._let_on(replicating)

    def hold_batches(self, held: bool) -> None:
        """Close no further batch, so that what is under way comes to its end; or go on."""
        replicating = self.others()
        replicating.held = held
        if held:
            self.held_back = True
        else:
            self._let_on(replicating)

    def _let_on(self, replicating: Replicating) -> None:
        if self.held_back and not replicating.full():
            self.held_back = False
            log = self.log
            waits = self._owed or log.current.size() >= log.settings.commit_bytes
            if (
                waits
                and self.in_flight is None
                and not self.outage.failing
                and log.sealable()
                and log.current.size() > 0
            ):
                self.submit(1)

    def promised_to(self, position: i64) -> None:
        replicating = self.others()
        if not self.over:
            committed, promised = self.log.committed, self.log.promised
            replicating.promised_to(position)
            self._tell_turns(replicating, committed, promised)

    def _tell_others(self, replicating: Replicating) -> None:
        replicating.shipping.synced(replicating.synced)
        self._tell_turns(replicating, self.log.committed, self.log.promised)

    def _tell_turns(self, replicating: Replicating, committed: i64, promised: i64) -> None:
        if replicating.count_turns(committed, promised):
            self.log.listener.synced(self.log.committed)

    def record(self, segment: i64, record: i64) -> bytes:
        """The bytes of a record that is not on disk yet: in flight, waiting for the disk, or in the open batch."""
        commit = self.in_flight
        if commit is not None:
            for sealed in commit.batches:
                if sealed.holds(segment, record):
                    return sealed.record(record)
        for sealed in self.outage.retained:
            if sealed.holds(segment, record):
                return sealed.record(record)
        return self.log.current.record(record)
