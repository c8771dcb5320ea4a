"""Space: checkpoints, removal of dead segments, compaction of half-dead ones, in slices beside the broker's work.

Duty: decide what is worth doing, do the thinking in slices on the broker's thread and the disk work on the worker, one
thing at a time. Bound kept: files of at most twice the live data plus four segments, and as much again while a journal
has not read them: what it has yet to read stays as it was written, up to ``held_bytes``. Not here: what a commit is.
"""

from __future__ import annotations

from typing import Final, final

from librt.vecs import append, vec
from mypy_extensions import i16, i32, i64, u8

from warrenmq.log import clean
from warrenmq.log.checkpoint import Checkpoint, LedgerBlock, Removal, Reserve
from warrenmq.log.compaction import Compaction, Replace
from warrenmq.log.core import Core
from warrenmq.log.format import LogCorrupt
from warrenmq.log.index import QueueIndex
from warrenmq.log.ledger import block, read_ledger
from warrenmq.log.manifest import Manifest, ManifestSegment, replace
from warrenmq.log.outage import Outage
from warrenmq.log.recovery import Recovery
from warrenmq.log.runner import Task
from warrenmq.log.segment import SIZE_CLAMP, SIZE_UNIT, Part, Segment, file_name, ledger_name
from warrenmq.log.state import LogState
from warrenmq.log.tail import RESERVE

BYTES_PER_MS: Final = 256 << 10  # of changes absorbed or records copied: what a millisecond is taken to be worth
ABSORB_AT_ONCE: Final = 8 << 20
NOBODY: Final = 1 << 62  # who needs no segment needs those from here on


@final
class Committed:
    """Changes of a committed batch that the state has not absorbed yet."""

    def __init__(self, number: i64, segment: i64, end: i64, changes: bytes) -> None:
        self.number: Final = number
        self.segment: Final = segment
        self.end: Final = end
        self.changes: Final = changes


@final
class Maintenance:
    """The housekeeper: it decides what is checkpointed, removed or compacted next, and does it in slices."""

    def __init__(self, log: Core, outage: Outage, found: Recovery) -> None:
        self.log: Final = log
        self.outage: Final = outage
        self.state: Final[LogState] = found.absorbed
        self.manifest: Manifest = found.manifest
        self.last_message_id: i64 = found.state.next_message_id - 1
        self.waiting: list[Committed] = []
        self.waiting_bytes: i64 = 0
        self.busy: bool = False  # the worker has a task
        self.pinned: i64 = 0  # a backup is reading, or a queue being dropped: nothing may be removed or replaced
        self._journalled: i64 = NOBODY  # the first segment that a journal has yet to read
        self._lagging: i64 = NOBODY  # the first segment that another node has yet to get
        self._most_lag: i64 = 0  # octets of segments that are kept for another node, at most
        self._held_from: i64 = NOBODY  # segments from here on stay as they are, for the journal and other nodes
        self._removing: list[int] = []  # by the checkpoint under way
        self.compaction: Compaction | None = None
        self.found_uncommitted: i64 = found.uncommitted[-1].number if found.uncommitted else 0  # the last such turn
        self.doubtful: Checkpoint | None = None  # has to be finished before anything else
        self.fresh: bool = False  # a checkpoint was made for the compaction to come
        self.reserved: bool = False  # room is held back
        self.reserve_wanted: bool = False  # it was given to a full disk, and has to be there before service returns
        self.leftover: list[str] = []  # files to remove with the next ones
        self.not_before: i64 = 0  # after a failed task: when to try again
        self.problem: str = ""  # why the last task failed
        self.dead_chunked: list[tuple[int, int]] = []  # (open batch when it died, address)
        self.checkpoints: i64 = 0  # counters, for the metrics
        self.compactions: i64 = 0
        self.removed: i64 = 0

    # --- following the log

    def committed(self, number: i64, segment: i64, end: i64, changes: bytes) -> None:
        """Nothing else is absorbed: a checkpoint cannot be taken back, and what is not committed may have to be."""
        self.waiting.append(Committed(number, segment, end, changes))
        self.waiting_bytes += len(changes)
        if self.waiting_bytes > ABSORB_AT_ONCE:
            self._absorb(self.waiting_bytes)

    def committed_position(self) -> tuple[int, int]:
        """Segment and offset behind the last committed batch; (0, 0) when there is none."""
        if self.waiting:
            last = self.waiting[-1]
            return int(last.segment), int(last.end)
        return int(self.state.segment), int(self.state.offset)

    def absorb_all(self) -> None:
        """Everything that is committed."""
        self._absorb(self.waiting_bytes + 64 * len(self.waiting) + 1)

    def _absorb(self, budget: i64) -> i64:
        """Up to this many bytes of changes; what is left of the budget."""
        state = self.state
        count: i64 = 0
        while count < len(self.waiting) and budget > 0:
            one = self.waiting[count]
            state.absorb(one.changes)
            state.segment = one.segment
            state.offset = one.end
            state.batch = one.number
            state.next_message_id = self.last_message_id + 1
            self.waiting_bytes -= len(one.changes)
            budget -= len(one.changes) + 64
            count += 1
        if count > 0:
            del self.waiting[: int(count)]
            self._release_chunks(state.batch)
        return budget

    def died(self, address: i64, batch: i64) -> None:
        """A chunked message is dead; its chunks follow when that is on disk."""
        self.dead_chunked.append((batch, address))

    def _release_chunks(self, batch: i64) -> None:
        count: i64 = 0
        for died, address in self.dead_chunked:
            if died > batch:
                break
            for chunk in self.log.chunked.pop(address, vec[i64]()):
                self.log.release_chunk(chunk)
            count += 1
        if count > 0:
            del self.dead_chunked[: int(count)]

    def drop_ended(self) -> None:
        """Memory knows all that a dropped queue held; the disk may have known for a while."""
        self.pinned -= 1
        self._release_chunks(self.state.batch)

    def release_unsynced(self) -> None:
        """A failed batch: chunked messages that died before they were ever on disk need no waiting."""
        left: list[tuple[int, int]] = []
        for died, address in self.dead_chunked:
            if self.log.is_synced(address):
                left.append((died, address))
            else:
                for chunk in self.log.chunked.pop(address, vec[i64]()):
                    self.log.release_chunk(chunk)
        self.dead_chunked = left

    # --- a journal that reads what is written

    def journalled(self, segment: i64) -> None:
        """A journal is being written; all before this segment is in it."""
        self._journalled = segment

    def lagging(self, segment: i64, most: i64) -> None:
        """Another node lacks what stands in this segment and those behind it."""
        self._lagging = segment
        self._most_lag = most

    def going(self) -> i64:
        """The last segment that is just being removed or rewritten; 0: none."""
        last: i64 = 0 if self.compaction is None else self.compaction.segment.number
        for number in self._removing:
            last = max(last, number)
        return last

    def _hold(self) -> None:
        """What the journal and other nodes lack stays, and nothing when the disk is full."""
        self._held_from = NOBODY
        if not self.outage.failing:
            journalled = self._held_for(self._journalled, self.log.settings.held_bytes)
            self._held_from = min(journalled, self._held_for(self._lagging, self._most_lag))

    def _held_for(self, first: i64, most: i64) -> i64:
        """The first segment to be held for whoever lacks those from ``first`` on: the latest, if that is too much."""
        if first == NOBODY:
            return NOBODY
        held: i64 = 0
        for number in sorted(self.log.segments, reverse=True):
            if number < first:
                break
            if held >= most:
                return number + 1
            if number < self.state.segment:
                held += self.log.segments[number].end
        return first

    def _held(self, segment: Segment) -> bool:
        """A compacted segment has nothing left for them."""
        return segment.number >= self._held_from and segment.generation == 0

    # --- what to do next

    def run(self, budget_ms: i64) -> bool:
        budget = budget_ms * BYTES_PER_MS
        budget = self._absorb(budget)
        if self.busy or budget <= 0:
            return budget <= 0
        if self.state.batch < self.found_uncommitted:
            return False  # the start counted as dead what other nodes may still have to cut alive again
        log = self.log
        if not self.outage.written or log.now < self.not_before or self.pinned > 0:
            return False
        if self.doubtful is not None:
            self._submit(self.doubtful)
            return True
        compaction = self.compaction
        if compaction is not None and not self.outage.failing:
            self._compact(compaction, budget)
            return True
        if self._checkpoint_due():
            self.checkpoint()
            return True
        candidate = self._candidate()
        if candidate is None:
            wanted = log.settings.reserve_bytes > 0 and self.checkpoints > 0
            if wanted and not self.reserved and not self.reserve_wanted:
                self._reserve()
                return True
            return False
        if self.outage.failing and not self._removable(candidate):
            return False  # what room is left is for settles and checkpoints
        if self.fresh and self._covered(candidate) and not self._removable(candidate):
            self.fresh = False
            self._begin_compaction(candidate)
        else:
            self.checkpoint()  # so that the compaction knows of all that has died
        return True

    def _checkpoint_due(self) -> bool:
        state = self.state
        limit = self.log.settings.checkpoint_bytes
        if state.definition_bytes > limit:
            limit = state.definition_bytes
        # a segment was filled since? Cover it, so that recovery replays little and it may be removed
        return state.pending_bytes >= limit or state.segment > self.manifest.segment

    def _removable(self, segment: Segment) -> bool:
        if self.state.batch < self.found_uncommitted:
            return False
        dead = segment.live == 0 and segment.number < self.state.segment and segment.dead_at <= self.state.batch
        return dead and not self._held(segment)

    def _covered(self, segment: Segment) -> bool:
        """Everything written in this segment is also in ledgers and manifest."""
        return segment.number < self.manifest.segment and segment.generation == segment.manifest_generation

    def disk_bytes(self) -> i64:
        total: i64 = 0
        for segment in self.log.segments.values():
            total += segment.end + segment.ledger
        return total

    def live_bytes(self) -> i64:
        total: i64 = 0
        for segment in self.log.segments.values():
            total += segment.live_bytes
        return total

    def _candidate(self) -> Segment | None:
        """The segment to compact now, when the files are more than the live data warrants."""
        self._hold()
        total: i64 = 0
        live: i64 = 0
        best: Segment | None = None
        best_share: i64 = 0
        earlier: Segment | None = None  # of an earlier format: written again when there is nothing better to do
        for segment in self.log.segments.values():
            size = segment.end + segment.ledger
            total += size
            live += segment.live_bytes
            if segment.number >= self.state.segment or size == 0 or self._held(segment):
                continue
            if self._removable(segment):
                return segment  # needs no more than a checkpoint
            if segment.unreadable:
                continue
            if segment.old and earlier is None:
                earlier = segment
            if segment.compacted_at > self.state.batch:
                continue  # records died during its last compaction and are not known to be on disk yet: no gain
            share = segment.waste()
            if share > best_share:
                best_share = share
                best = segment
        if total <= 2 * live + self.log.settings.slack_bytes or best_share < 25:
            return earlier
        return best

    # --- room held back

    def reserve_given(self) -> None:
        """A commit failed for good, and gave the reserve to the disk."""
        self.reserve_wanted = self.reserve_wanted or self.reserved
        self.reserved = False

    def restore_reserve(self) -> None:
        """A commit succeeded: hold room back again if it had been given away."""
        if self.reserve_wanted and not self.busy:
            self._reserve()

    def _reserve(self) -> None:
        log = self.log
        self._submit(Reserve(log.task_number(), log.files, f"{log.folder}/{RESERVE}", log.settings.reserve_bytes))

    # --- checkpoints

    def checkpoint(self) -> None:
        """Write the state as far as it is absorbed; what is dead by then goes."""
        self._hold()
        log = self.log
        state = self.state
        removed: list[int] = []
        for segment in log.segments.values():
            if self._removable(segment):
                removed.append(segment.number)
        self._removing = removed
        blocks: list[LedgerBlock] = []
        for number, pending in state.take_pending().items():
            found = log.segments.get(number)
            if found is None or number in removed:
                continue
            changes = pending.value()
            if changes:
                name = ledger_name(number, found.generation)
                blocks.append(LedgerBlock(number, name, found.ledger, block(changes)))
        manifest = self._manifest(removed, blocks)
        self._submit(Checkpoint(log.task_number(), log.files, log.folder, blocks, manifest, removed))

    def _manifest(self, removed: list[int], blocks: list[LedgerBlock]) -> Manifest:
        state = self.state
        m = Manifest(self.manifest.log_id)
        m.checkpoint = self.manifest.checkpoint + 1
        m.epoch = self.log.epoch
        m.segment = state.segment
        m.offset = state.offset
        m.batch = state.batch
        m.next_message_id = state.next_message_id
        m.definitions = dict(state.definitions)
        m.delivered = dict(state.delivered)
        more = {int(one.segment): len(one.data) for one in blocks}
        for number in sorted(self.log.segments):
            segment = self.log.segments[number]
            if number in removed or number > state.segment:
                continue
            end = segment.end if number < state.segment else state.offset
            ledger = segment.ledger + more.get(number, 0)
            parts = [(int(part.part), int(part.base)) for part in segment.parts]
            m.segments.append(ManifestSegment(number, segment.generation, end, ledger, len(segment.references), parts))
        return m

    def _checkpointed(self, task: Checkpoint) -> None:
        log = self.log
        self.doubtful = task if task.in_doubt() else None
        if task.in_doubt():
            return
        self._removing = []
        if task.error:
            blocks: dict[int, bytes] = {}
            for one in task.blocks:
                blocks[int(one.segment)] = one.data[8:]
            self.state.give_back(blocks)
            return
        self.checkpoints += 1
        self.fresh = True
        self.manifest = task.manifest
        for entry in task.manifest.segments:
            segment = log.segments[entry.number]
            segment.ledger = entry.ledger
            segment.manifest_generation = entry.generation
        names = self.leftover
        self.leftover = []
        for number in task.removed:
            segment = log.segments[number]
            names.append(ledger_name(number, segment.generation))
            for part in segment.parts:
                names.append(file_name(number, part.part))
            log.forget_segment(number)
            self.removed += 1
        # their settles, absorbed since, concern nothing any more
        for number in task.removed:
            self.state.pending.pop(number, None)
        self.state.forget_cache()
        if names:
            self._submit(Removal(log.task_number(), log.files, log.folder, names))

    # --- compaction

    def _begin_compaction(self, segment: Segment) -> None:
        log = self.log
        try:
            changes = b""
            if segment.ledger > 0:
                name = ledger_name(segment.number, segment.generation)
                changes = read_ledger(log.files, f"{log.folder}/{name}", segment.ledger)
            self.compaction = Compaction(log.folder, log.files, self.manifest.log_id, self.log.seed, segment, changes)
        except OSError as error:
            self._postpone(str(error))
        except LogCorrupt as damaged:
            self._give_up(segment, str(damaged))

    def _give_up(self, segment: Segment, problem: str) -> None:
        """It cannot be compacted as it is; it must not keep others from being so."""
        segment.unreadable = True
        self._postpone(problem)
        self.log.damage.found_segment(segment.number, problem)

    def _compact(self, compaction: Compaction, budget: i64) -> None:
        try:
            if compaction.step(budget):
                self._submit(compaction.task(self.log.task_number()))
        except OSError as error:
            self.compaction = None
            self._postpone(str(error))
        except LogCorrupt as damaged:
            self.compaction = None
            self._give_up(compaction.segment, str(damaged))

    def _compacted(self, task: Replace) -> None:
        compaction = self.compaction
        self.compaction = None
        if compaction is None or not task.renamed:
            return
        # renamed: reads must use the new file from now on, even if syncing the folder failed (the next checkpoint
        # syncs it again before it names this generation)
        self.compactions += 1
        if task.error:
            self.leftover.extend(task.old)
        old = compaction.segment
        new_references = vec[u8]()
        new_offsets = vec[i32]()
        new_sizes = vec[i16]()
        old_many = old.many
        i: i64 = 0
        while i < len(compaction.numbers):
            slot = old.slot(i64(compaction.numbers[i]))
            new_references = append(new_references, old.references[slot] if slot >= 0 else u8(0))
            new_offsets = append(new_offsets, i32(compaction.offsets[i]))
            units = (compaction.sizes[i] + SIZE_UNIT - 1) // SIZE_UNIT
            new_sizes = append(new_sizes, i16(SIZE_CLAMP if units > SIZE_CLAMP else units))
            i += 1
        old.old = False
        old.sparse = True
        old.numbers = compaction.numbers
        old.references = new_references
        old.offsets = new_offsets
        old.sizes = new_sizes
        old.many = old_many
        old.count_bytes()
        old.generation += 1
        old.compacted_at = old.dead_at
        old.parts = [Part(0, 0)]
        old.end = compaction.length
        old.ledger = 0
        self.log.reader.forget(old.number)
        self.log.found_damaged([old.number << 32 | record for record in compaction.damaged])

    # --- the worker

    def _submit(self, task: Task) -> None:
        self.busy = True
        self.log.run(self.log.worker, task)

    def lend_worker(self, task: Task) -> bool:
        """The worker for somebody else's task, unless there is work that cannot wait. ``worker_is_back`` ends it."""
        if self.busy:
            return False
        self._submit(task)
        return True

    def worker_is_back(self) -> None:
        self.busy = False

    def done(self, task: Task) -> None:
        self.busy = False
        if task.error and not (isinstance(task, Reserve) and self.reserve_wanted):
            self._postpone(task.error)  # the reserve is asked for again by the log's own retries
        if isinstance(task, Reserve):
            self.reserved = not task.error
            if self.reserved:
                self.reserve_wanted = False
        elif isinstance(task, Checkpoint):
            self._checkpointed(task)
        elif isinstance(task, Replace):
            self._compacted(task)

    def _postpone(self, problem: str) -> None:
        self.problem = problem
        self.not_before = self.log.now + self.log.settings.retry_ms

    def wait(self) -> None:
        """Until the worker has nothing to do."""
        while self.busy:
            self.log.worker.wait()
            for number in list(self.log.tasks):
                self.log.done(number)

    def finish(self, indexes: dict[int, QueueIndex] | None) -> bool:
        """The last checkpoint: a clean stop."""
        self.wait()
        self.compaction = None
        self.absorb_all()
        self.problem = ""
        if self.doubtful is not None:
            self._submit(self.doubtful)
            self.wait()
        if self.doubtful is None:
            self.checkpoint()
            self.wait()
        if self.problem or indexes is None:
            return not self.problem
        log = self.log
        segments = {number: segment for number, segment in log.segments.items() if number <= self.manifest.segment}
        marker = clean.encode(self.manifest.log_id, self.manifest.checkpoint, segments, log.chunked, indexes)
        try:
            replace(log.files, log.folder, clean.NAME, [marker])
        except OSError as error:
            self.problem = str(error)  # the next start scans
        return True
