"""The log: the only durable home of messages and definitions.

Duty: what the broker calls: the turn's operations (``append``, ``hold`` … ``end_turn``), who holds which record, and
the doors to the rest. What its parts share is ``core``'s; the bytes are ``batch``'s; what is committed when
``commits``'; a failed disk ``outage``'s; reading by address ``message_reader``'s; the start ``opening``'s; space
``maintenance``'s.

Invariants:
- Everything between two ``end_turn`` calls reaches the disk in one checksummed batch, or not at all.
- A message and who held it at first are one record: ``append`` says how many, and nothing comes in between.
- Nothing here blocks or does I/O during a turn, except ``read`` of what is on disk.
- An address never changes. 0 is no address: segments count from 1.
"""

from __future__ import annotations

from typing import Final, final

from librt.vecs import append, vec
from mypy_extensions import i64

from warrenmq.log.causes import ACKED, PURGED
from warrenmq.log.commits import Commits
from warrenmq.log.core import Core
from warrenmq.log.epochs import KEY, KIND, Epochs
from warrenmq.log.files import Files
from warrenmq.log.format import LogError, StoredMessage
from warrenmq.log.index import QueueIndex
from warrenmq.log.layout import ADDRESS, CHUNKED, MESSAGE, RECORD_BITS
from warrenmq.log.maintenance import NOBODY, Maintenance
from warrenmq.log.message_reader import MessageReader
from warrenmq.log.opening import Opening
from warrenmq.log.outage import Outage
from warrenmq.log.reading import Reading, end_before, first_as_written
from warrenmq.log.recovery import Recovered, Recovery, Uncommitted
from warrenmq.log.replicating import Replicating
from warrenmq.log.runner import Runner
from warrenmq.log.scrub import Scrub, ScrubSlice
from warrenmq.log.settings import Listener, LogSettings
from warrenmq.log.shipping import Shipping, segment_of
from warrenmq.log.tail import ZERO_AHEAD, Commit, Tail


@final
class Log(Core):
    """The open log of one data folder, as the broker calls it."""

    def __init__(self, folder: str, files: Files, settings: LogSettings, lock: int, found: Recovery) -> None:
        super().__init__(folder, files, settings, found)
        self.closed: bool = False
        self.bodies: dict[int, vec[i64]] = {}  # bodies arriving in chunks
        self.next_body: i64 = 1
        self.tail: Final = Tail(
            folder,
            files,
            found.manifest.log_id,
            found.last_segment,
            found.last_part,
            found.last_end,
        )
        self.tail.zero_ahead = min(ZERO_AHEAD, settings.segment_bytes // 4) if settings.zero_ahead else 0
        outage = Outage(self)
        self.maintenance: Final = Maintenance(self, outage, found)
        self.commits: Final = Commits(self, self.tail, outage, self.maintenance)
        self.scrub: Final = Scrub(self, self.maintenance)
        self.message_reader: Final = MessageReader(self, self.commits)
        self._found_damaged: list[int] = found.damaged
        self._found_end: i64 = found.end
        self._found_committed: i64 = found.committed
        self._found_epochs: Epochs = found.epochs
        self._found_uncommitted: list[Uncommitted] = found.uncommitted
        self._found_time: i64 = found.last_time
        self._lock: Final = lock
        self._appended: i64 = 0  # the message that still lacks some of its holders
        self._unmarked: i64 = 0  # octets that ``mark`` leaves out

    @staticmethod
    def open(folder: str, files: Files, settings: LogSettings) -> tuple[Log, Recovered]:
        """All at once."""
        log, opening = Log.begin(folder, files, settings)
        while opening.step():
            pass
        log.opened(opening)
        return log, opening.found.recovered

    @staticmethod
    def begin(folder: str, files: Files, settings: LogSettings) -> tuple[Log, Opening]:
        """A log whose definitions are known. Nothing else may be done with it until all of ``opening``'s steps are, and
        ``opened`` is called; or ``give_up``."""
        opening = Opening(folder, files)
        return Log(folder, files, settings, opening.lock, opening.found), opening

    def opened(self, opening: Opening) -> None:
        """The messages are known as well: the folder is taken over."""
        opening.finish()
        found = opening.found
        self.tail.part = found.last_part
        self.maintenance.last_message_id = found.state.next_message_id - 1
        if not found.recovered.clean:
            self.events.interrupted(found.last_time)

    def give_up(self, opening: Opening) -> None:
        """It is not to be opened after all: the folder stays as it was found."""
        self.closed = True
        opening.give_up()

    def attach(self, listener: Listener, committer: Runner, worker: Runner) -> None:
        """Whom to tell, and who does the disk work: commits, and everything else (ledgers, compaction)."""
        self.listener = listener
        self.damage.listener = listener
        self.committer = committer
        self.worker = worker

    def attach_shipping(self, shipping: Shipping) -> None:
        """There are other nodes, and this one leads. Before anything is logged."""
        self.events.interrupted(self._found_time)
        found = self._found_uncommitted
        if found:
            self.committed = self.promised = self.maintenance.state.batch
        self.commits.replicating = Replicating(
            self, self.maintenance, shipping, self._found_end, self._found_committed, self._found_epochs.copy(), found
        )

    def begin_epoch(self) -> i64:
        """The first batch of the epoch: it says where each epoch of this log began. The number of its turn."""
        others = self.commits.others()
        epochs = others.epochs.copy()
        epochs.wrote(int(self.epoch), int(others.end))
        self.current.define(KIND, KEY, epochs.text())
        return self.end_turn(True)

    def tell_found(self) -> None:
        """Tell the listener what the start's scan found damaged, where it is still held; a chunk by its message."""
        found = self._found_damaged
        self._found_damaged = []
        self.found_damaged(found)

    # --- during a turn

    def append(
        self,
        message_id: i64,
        header: bytes,
        body: bytes,
        exchange: str,
        routing_keys: bytes,
        flags: i64,
        holders: i64,
        handle: i64 = 0,
    ) -> i64:
        """A message, written once for all that hold it; its address. ``holders`` calls of ``hold`` follow at once, at
        least one. ``handle``: of a body that arrived in chunks, ``body`` is not looked at then."""
        if self._appended != 0 or holders < 1:
            self._refuse_unheld(holders)
        kind: i64 = MESSAGE
        chunks = vec[i64]()
        if handle != 0 or len(body) > self.settings.chunk_bytes:
            chunks = self.bodies.pop(handle) if handle != 0 else self._in_chunks(body)
            kind = CHUNKED
            body = packed(chunks)
        segment = self.active
        record = segment.next_record()
        segment.add(holders, record)
        self.current.begin_message(kind, record, message_id, header, body, exchange, routing_keys, flags, holders)
        if message_id > self.maintenance.last_message_id:
            self.maintenance.last_message_id = message_id
        address = segment.number << 32 | record
        self._appended = address
        if kind == CHUNKED:
            self.chunked[address] = chunks
        return address

    def hold(self, address: i64, queue_id: i64, position: i64, expiry: i64, holder_flags: i64) -> None:
        """A queue holds this message: the one that is being appended, or one that the log has already. That one enters
        a further queue before it is settled in the one it leaves."""
        if address == self._appended:
            if self.current.holder(queue_id, position, expiry, holder_flags):
                self._appended = 0
            return
        if not self.find(address >> 32).hold(address & RECORD_BITS):
            raise LogError(f"message {address:#x} is gone: nothing holds it any more")
        self.current.enqueue(queue_id, address, position, expiry, holder_flags)

    def _refuse_unheld(self, holders: i64) -> None:
        if self._appended != 0:
            raise LogError(f"message {self._appended:#x} was appended for more holders than have been named")
        raise LogError(f"a message was to be appended for {holders} holders: it takes at least one")

    def begin_body(self) -> i64:
        """A body longer than ``settings.chunk_bytes`` is about to arrive piece by piece."""
        handle = self.next_body
        self.next_body += 1
        self.bodies[handle] = vec[i64]()
        return handle

    def body_chunk(self, handle: i64, data: bytes) -> None:
        """The next piece; it need not stay in the caller's memory."""
        if data:
            self.bodies[handle] = append(self.bodies[handle], self._chunk(data))

    def _in_chunks(self, body: bytes) -> vec[i64]:
        chunks = vec[i64]()
        at: i64 = 0
        while at < len(body):
            chunks = append(chunks, self._chunk(body[at : at + self.settings.chunk_bytes]))
            at += self.settings.chunk_bytes
        return chunks

    def _chunk(self, data: bytes) -> i64:
        if self._appended != 0:
            self._refuse_unheld(1)
        segment = self.active
        record = segment.next_record()
        segment.add(1, record)
        self.current.chunk(record, data)
        return segment.number << 32 | record

    def share_body(self, address: i64) -> i64:
        """A handle that stands for the body of a message that somebody holds still: the chunks are the same, and die
        with the last message that has them. 0 when that body is not in chunks."""
        chunks = self.body_parts(address)
        if len(chunks) == 0:
            return 0
        for chunk in chunks:
            self.find(chunk >> 32).hold(chunk & RECORD_BITS)
        handle = self.begin_body()
        self.bodies[handle] = chunks
        return handle

    def abandon_body(self, handle: i64) -> None:
        """The message will not come (refused, unroutable, connection lost): its chunks are garbage."""
        for chunk in self.bodies.pop(handle, vec[i64]()):
            self.release_chunk(chunk)

    def requeue(self, queue_id: i64, address: i64, position: i64, holder_flags: i64) -> None:
        """What this queue holds came back to it, to this position and with these flags; its expiry stays."""
        self.current.requeue(queue_id, address, position, holder_flags)

    def settle(self, queue_id: i64, address: i64, cause: i64 = ACKED) -> None:
        """This queue no longer holds it, for one of the ``causes``."""
        self._release(address, self.batch)
        if cause != self.current.cause:
            self.current.say_cause(cause)
        self.current.settle(queue_id, address)

    def settle_many(self, queue_id: i64, addresses: vec[i64], cause: i64 = ACKED) -> None:
        """This queue no longer holds any of them; addresses in a row cost next to nothing on disk."""
        count: i64 = len(addresses)
        if count > 0 and cause != self.current.cause:
            self.current.say_cause(cause)
        first: i64 = 0
        run: i64 = 0
        i: i64 = 0
        while i < count:
            address = addresses[i]
            self._release(address, self.batch)
            if run > 0 and address == first + run:
                run += 1
            else:
                if run > 0:
                    self.current.settle_run(queue_id, first, run)
                first = address
                run = 1
            i += 1
        if run > 0:
            self.current.settle_run(queue_id, first, run)

    def purge(self, queue_id: i64, addresses: vec[i64]) -> None:
        """What a purge takes out: the ready messages, whose addresses the queue knows."""
        self.settle_many(queue_id, addresses, PURGED)

    def drop_queue(self, queue_id: i64, addresses: vec[i64]) -> None:
        """The queue is gone, with all it still holds (every address: ready and unacknowledged)."""
        batch = self.begin_drop(queue_id, addresses, False)
        i: i64 = 0
        while i < len(addresses):
            self._release(addresses[i], batch)
            i += 1
        self.end_drop()

    def begin_drop(self, queue_id: i64, addresses: vec[i64], others: bool) -> i64:
        """The queue is gone, which the disk is told at once and whole; memory is told of each message by
        ``release_dropped``, with the number that this returns, and of the end by ``end_drop``. ``others``: there are
        messages besides these."""
        segments: list[int] = []
        if others:
            segments.extend(self.segments)
        else:
            last: i64 = -1
            seen: set[int] = set()
            i: i64 = 0
            while i < len(addresses):
                if addresses[i] >> 32 != last:
                    last = addresses[i] >> 32
                    if int(last) not in seen:
                        seen.add(last)
                        segments.append(last)
                i += 1
        self.current.drop(queue_id, segments)
        self.maintenance.pinned += 1  # a compaction would leave out what memory still counts as held
        return self.batch

    def release_dropped(self, address: i64, batch: i64) -> None:
        self._release(address, batch)

    def end_drop(self) -> None:
        self.maintenance.drop_ended()

    def delivered_up_to(self, queue_id: i64, position: i64) -> None:
        """Nothing beyond this position has been or will be delivered before this is logged."""
        self.current.delivered(queue_id, position)

    def define(self, kind: str, key: str, value: bytes) -> None:
        self.current.define(kind, key, value)

    def undefine(self, kind: str, key: str) -> None:
        self.current.undefine(kind, key)

    def mark(self) -> i64:
        """Another number whenever anything was written: whoever compares two knows whether there was a change."""
        return (self.batch << 40) + self.current.size() - self._unmarked

    def define_aside(self, kind: str, key: str, value: bytes) -> None:
        """As ``define``, for what no answer waits for: it leaves no mark."""
        before = self.current.size()
        self.current.define(kind, key, value)
        self._unmarked += self.current.size() - before

    def keep_open(self) -> None:
        """Further turns belong to the open batch too, until ``let_close``: what takes several of them is whole on disk,
        or not there at all."""
        self.kept_open = True

    def let_close(self) -> None:
        """Before the end of the last turn of it."""
        self.kept_open = False

    def end_turn(self, owed: bool) -> i64:
        """Close the turn; its number. ``owed``: somebody waits for its sync, so commit as soon as may be."""
        if self._appended != 0:
            self._refuse_unheld(1)
        if self.events.begun() or not self.between_turns():
            self.current.end_turn(self.time)
        number = self.batch
        self.batch = number + 1
        self.commits.turn_ended(number, owed)
        return number

    # --- the disk

    @property
    def in_flight(self) -> Commit | None:
        return self.commits.in_flight

    @property
    def over(self) -> bool:
        """Others have what this disk could not take: nothing is written or told any more, and the folder is to be
        opened anew."""
        return self.commits.over

    def committed_to(self, position: i64) -> None:
        """Every node that counts has everything before this position, which is not beyond what this disk has."""
        self.commits.committed_to(position)

    def hold_batches(self, held: bool) -> None:
        """Nothing more gets its place, as another node is to lead; or it goes on. Between two turns."""
        self.commits.hold_batches(held)

    def promised_to(self, position: i64) -> None:
        """As many nodes have it as clients were promised; not beyond what is committed."""
        self.commits.promised_to(position)

    def end_position(self) -> i64:
        """Behind the last batch that got its place."""
        return self.commits.others().end

    def synced_position(self) -> i64:
        return self.commits.others().synced

    def committed_position(self) -> i64:
        return self.commits.others().committed

    def readable_from(self) -> i64:
        """From this position on every batch can be read back as it was written."""
        first = first_as_written(self.segments, self.maintenance.going())
        return end_before(self.folder, self.files, first, 0) if first > 0 else self.synced_position()

    def reading(self, first: i64, end: i64) -> Reading:
        """The batches between two positions, for any one thread. What is to be read has to be held back."""
        others = self.commits.others()
        if first < self.readable_from() or end > others.end:
            raise LogError(f"{self.folder}: the batches from {first:#x} to {end:#x} are not there to be read")
        return Reading(
            self.folder, self.files, self.maintenance.manifest.log_id, self.segments, first, end, others.unsynced
        )

    def hold_back(self, first: i64, most: i64) -> None:
        """Keep what is behind this position as it was written, for nodes that lack it; at most so many octets. Nothing
        is held back for a position of -1."""
        self.maintenance.lagging(segment_of(first) if first >= 0 else NOBODY, most)

    @property
    def failing(self) -> bool:
        """Nothing is promised: the disk fails, or has no room but what was held back."""
        return self.commits.outage.failing

    @property
    def reason(self) -> str:
        """Why the disk failed last."""
        return self.commits.outage.reason

    def tick(self, now_ms: i64) -> None:
        """Time passes: sync what has waited long enough, and try a failed disk again."""
        self.commits.tick(now_ms)

    def retry(self) -> None:
        """Try a failed disk now."""
        self.commits.retry()

    def flush(self) -> bool:
        """Between turns: wait until every closed turn is synced. False when the disk fails."""
        return self.commits.flush()

    def done(self, number: i64) -> None:
        """A runner's task is over (posted by its thread, or called at once)."""
        task = self.tasks.pop(number, None)
        if task is None:
            return  # flush() was faster than the post
        if isinstance(task, Commit):
            self.commits.done(task)
        elif isinstance(task, ScrubSlice):
            self.maintenance.worker_is_back()
            self.scrub.done(task)
        else:
            self.maintenance.done(task)
            self.commits.end_outage()

    # --- reading

    def read(self, address: i64) -> StoredMessage:
        """The message, from memory while it is not synced, else from disk. RecordDamaged when it does not check."""
        return self.message_reader.read(address)

    def read_head(self, address: i64) -> StoredMessage:
        """The message without joining a long body."""
        return self.message_reader.read_head(address)

    def read_many(self, addresses: list[int]) -> list[StoredMessage | None]:
        """Messages, in this order: neighbours on disk are read at once. None for what is damaged."""
        return self.message_reader.read_many(addresses)

    def read_part(self, address: i64, chunk: i64) -> bytes:
        """One piece of a long body: ``chunk`` is one of ``body_parts``. RecordDamaged when it does not check."""
        return self.message_reader.read_part(address, chunk)

    def read_parts(self, address: i64) -> list[bytes]:
        """All the pieces, not joined; none for a message that is not in chunks."""
        return self.message_reader.read_parts(address)

    def queues_of(self, address: i64) -> list[int]:
        """The queues a message was written for (it may have moved since), as far as its record can tell."""
        return self.message_reader.queues_of(address)

    def _release(self, address: i64, batch: i64) -> None:
        """One queue less holds it, which the disk knows with this batch."""
        segment = self.find(address >> 32)
        if segment.release(address & RECORD_BITS):
            if batch > segment.dead_at:
                segment.dead_at = batch
            if self.damage.known:
                self.damage.forget(address)
            if self.chunked and int(address) in self.chunked:
                self.maintenance.died(address, batch)

    # --- space, and the end

    def maintain(self, budget_ms: i64) -> bool:
        """Checkpoints, compaction, removal: about this much work. True when there is more to do."""
        return self.maintenance.run(budget_ms)

    def close(self, indexes: dict[int, QueueIndex] | None = None) -> bool:
        """Sync everything and let go of the folder. With every queue's index the next start needs no scan.

        False when the disk failed and something was lost that had not been promised.
        """
        if self.closed:
            return True
        self.closed = True
        if not self.between_turns():
            self.end_turn(False)
        good = self.flush()
        if good:
            good = self.maintenance.finish(indexes if self.commits.replicating is None else None)
        self.committer.stop()
        self.worker.stop()
        self.tail.close()
        self.reader.close()
        self.files.close(self._lock)
        return good


def packed(addresses: vec[i64]) -> bytes:
    out = b""
    for address in addresses:
        out += int(address).to_bytes(ADDRESS, "little")
    return out
