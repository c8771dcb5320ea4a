"""What the parts of the log share: the folder, the open batch, the segments and who holds their records, the runners.

Duty: state that more than one of ``commits``, ``outage``, ``maintenance``, ``scrub`` and ``message_reader`` needs, and
the few operations on it. It knows none of them: each is made with the core and with those parts it uses, and the whole
is ``log.Log``, which is a core with its parts (and ``replica.Warm``, on a node that follows). Not here: any decision.
"""

from __future__ import annotations

from typing import Final

from librt.vecs import vec
from mypy_extensions import i64

from warrenmq.log.batch import OpenBatch
from warrenmq.log.damage import Damage
from warrenmq.log.fates import Fates
from warrenmq.log.files import Files
from warrenmq.log.format import LogError, seed
from warrenmq.log.layout import RECORD_BITS
from warrenmq.log.reader import Reader
from warrenmq.log.recovery import Recovery
from warrenmq.log.routes import Routes
from warrenmq.log.runner import Runner, Task
from warrenmq.log.segment import Segment
from warrenmq.log.settings import Listener, LogSettings


class Core:
    """A log's shared state. ``Log`` is made from it, and a follower's ``Warm``, which has no turns."""

    def __init__(self, folder: str, files: Files, settings: LogSettings, found: Recovery) -> None:
        self.folder: Final = folder
        self.files: Final = files
        self.settings: Final = settings
        self.seed: Final = seed(found.manifest.log_id)
        self.epoch: Final = found.recovered.epoch
        self.now: i64 = 0  # in ms, as of the last tick
        self.time: i64 = 0  # of day, in µs since 1970, of the turn: what is closed now bears it
        # whom to tell, and who does the disk work
        self.listener: Listener = Listener()
        self.damage: Final = Damage(self.listener)
        self.committer: Runner = Runner()
        self.worker: Runner = Runner()
        self.tasks: dict[int, Task] = {}
        self.next_task: i64 = 1
        # turns
        self.batch: i64 = found.state.batch + 1  # the open turn
        self.synced: i64 = found.state.batch  # the last turn that this disk has
        self.committed: i64 = self.synced  # the last turn that all disks have which count: on a single node, this one
        self.promised: i64 = self.synced  # the last turn that enough disks have for clients to be told
        self.current: Final = OpenBatch(self.seed)
        self.events: Final = self.current.events
        self.fates: Final = Fates(self.current.events)
        self.routes: Final = Routes()
        self.unlogged: Final = self.current.unlogged
        self.levels: Final = self.current.levels
        self.confirmed: Final = self.current.confirmed
        self.reads: Final = self.current.reads
        self.leasings: Final = self.current.leasings
        self.told_bodies: Final = self.current.told_bodies
        self.kept_open: bool = False  # the open batch waits for turns to come
        self._closed_size: i64 = 0  # of the open batch, when the last turn ended
        # records
        self.segments: Final = found.segments
        self.active: Segment = Segment(found.highest + 1)  # where records are appended
        self.segments[self.active.number] = self.active
        self.current.events.segment = self.active.number
        self.chunked: Final = found.chunked  # address of a chunked message -> its chunks
        self.reader: Final = Reader(folder, files)
        self._segment: Segment = self.active  # the last one looked up

    # --- turns

    def between_turns(self) -> bool:
        """Nothing was logged since the last turn ended: what is open may be sealed."""
        return self.current.size() == self._closed_size

    def sealable(self) -> bool:
        return not self.kept_open and self.between_turns()

    def close_turn(self) -> i64:
        """Everything logged so far belongs to closed turns; the size of it."""
        self._closed_size = self.current.size()
        return self._closed_size

    # --- records

    def begin_segment(self, number: i64) -> None:
        """Records go to a new segment from now on."""
        self.active = Segment(number)
        self.segments[number] = self.active
        self.current.events.segment = number

    def find(self, number: i64) -> Segment:
        segment = self._segment
        if segment.number == number:
            return segment
        found = self.segments.get(number)
        if found is None:
            raise LogError(f"there is no segment {number}")
        self._segment = found
        return found

    def release_chunk(self, address: i64) -> None:
        """What killed it is synced already, or it never belonged to a message."""
        self.find(address >> 32).release(address & RECORD_BITS)

    def is_synced(self, address: i64) -> bool:
        segment = self.find(address >> 32)
        return segment.slot(address & RECORD_BITS) < len(segment.offsets)

    def body_parts(self, address: i64) -> vec[i64]:
        """The chunks of a long body, empty for any other message."""
        return self.chunked.get(address, vec[i64]())

    def forget_segment(self, number: i64) -> None:
        """Its last record is dead and its file removed."""
        del self.segments[number]
        self.damage.segments.pop(int(number), None)
        self.reader.forget(number)
        if self._segment.number == number:
            self._segment = self.active

    def found_damaged(self, addresses: list[int]) -> None:
        """A scan found these damaged: whoever still holds one is told, of a chunk by its message."""
        owners: dict[int, list[int]] = {}
        for address in addresses:
            if self._is_held(address):
                owners[address] = []
        if owners:
            for message, chunks in self.chunked.items():
                for chunk in chunks:
                    if int(chunk) in owners:
                        owners[int(chunk)].append(message)
        for address, messages in owners.items():
            if not messages:
                self.damage.found_by_scan(address)
            for message in messages:
                if self._is_held(message):
                    self.damage.found_by_scan(message)

    def _is_held(self, address: i64) -> bool:
        segment = self.segments.get(address >> 32)
        return segment is not None and segment.holders(address & RECORD_BITS) > 0

    # --- disk work

    def task_number(self) -> i64:
        number = self.next_task
        self.next_task += 1
        return number

    def run(self, runner: Runner, task: Task) -> None:
        """Give a task to a runner; ``done`` is called when it is over, by now or by its post."""
        self.tasks[task.number] = task
        if runner.submit(task):
            self.done(task.number)

    def done(self, number: i64) -> None:
        """A runner's task is over (posted by its thread, or called at once): the log tells the part that gave it."""
        raise NotImplementedError
