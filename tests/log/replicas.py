"""What the tests of replication share: a leader's log with nobody behind it, and a disk whose numbers differ."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterator

from librt.vecs import vec
from mypy_extensions import i64

from tests.log.crash_points import small
from tests.log.disk import SimulatedFiles
from tests.log.world import World, found_state
from warrenmq.log.epochs import KEY, KIND
from warrenmq.log.files import Files
from warrenmq.log.log import Log
from warrenmq.log.recovery import Recovered, Recovery
from warrenmq.log.replica.replica import Replica, ReplicaListener
from warrenmq.log.runner import Runner
from warrenmq.log.segment import Segment
from warrenmq.log.settings import LogSettings
from warrenmq.log.shipping import ShippedBatch, Shipping
from warrenmq.log.state import LogState

#: What a batch is made of, in the order of its constructor; a compiled class cannot be asked.
PARTS = (
    "follows",
    "segment",
    "offset",
    "epoch",
    "number",
    "first_record",
    "records",
    "messages",
    "changes",
    "sum",
    "time",
)


class Others(Shipping):
    """The other nodes, of whom there are none: what a leader's log hands over is written down."""

    def __init__(self) -> None:
        self.submitted: list[ShippedBatch] = []
        self.synced_to = 0
        self.gives_back = True  # what ``failed`` answers

    def submit(self, batch: ShippedBatch) -> None:
        assert batch.follows == (self.submitted[-1].end() if self.submitted else batch.follows)
        self.submitted.append(batch)

    def synced(self, position: int) -> None:
        assert position >= self.synced_to
        self.synced_to = int(position)

    def failed(self) -> bool:
        if self.gives_back:
            self.submitted = [batch for batch in self.submitted if batch.end() <= self.synced_to]
        return self.gives_back


class Leading(World):
    """The miniature broker on a log that other nodes follow."""

    def __init__(self, files: Files, settings: LogSettings, opened: tuple[Log, Recovered] | None = None) -> None:
        super().__init__(files, settings, opened=opened)
        self.others = Others()
        self.log.attach_shipping(self.others)

    def begin(
        self,
        opened: tuple[Log, Recovered],
        files: Files,
        shipping: Shipping,
        committer: Runner,
        positions: dict[int, int],
    ) -> None:
        """As ``__init__``, with others behind the log, and a disk that takes its time."""
        World.__init__(self, files, small(), opened=opened)
        self.log.attach(self, committer, Runner())
        self.log.attach_shipping(shipping)
        self.take_up(positions)

    def take_up(self, positions: dict[int, int]) -> None:
        """Go on from what the log has. No position of a queue is used twice."""
        self.state = found_state(self.log, self.recovered)
        self.state.definitions.pop((KIND, KEY), None)
        self.positions = positions
        for queue, index in self.recovered.queues.items():
            for at, address in zip(index.positions, index.addresses, strict=True):
                self.addresses[(queue, int(at))] = int(address)
        self.history = {int(self.log.batch) - 1: copy.deepcopy(self.state)}

    def commit(self) -> None:
        """All others have what this node has."""
        self.log.committed_to(self.others.synced_to)

    def promise(self) -> None:
        self.commit()
        self.log.promised_to(self.log.committed_position())


def content(batch: ShippedBatch) -> tuple[object, ...]:
    """Everything about a batch, for comparison."""
    return tuple(getattr(batch, name) for name in PARTS)


def all_batches(log: Log) -> list[ShippedBatch]:
    """All that can be read back from a log, a little at a time."""
    reading = log.reading(log.readable_from(), log.end_position())
    found: list[ShippedBatch] = []
    while some := reading.next(1):
        found.extend(some)
    reading.close()
    return found


class NumberedFiles(SimulatedFiles):
    """A disk on which no two random numbers are the same."""

    def __init__(self, image: dict[str, bytes] | None = None) -> None:
        super().__init__(image)
        self.numbers: Iterator[int] = itertools.count(0x5EED)

    def random_id(self) -> int:
        return next(self.numbers)


class Heard(ReplicaListener):
    """What a replica's disk said."""

    def __init__(self) -> None:
        self.numbers: list[int] = []
        self.failures: list[str] = []

    def synced(self, number: int) -> None:
        self.numbers.append(number)

    def failed(self, reason: str) -> None:
        self.failures.append(reason)


class Following:
    """A replica, and what it has acknowledged."""

    def __init__(self, files: SimulatedFiles) -> None:
        self.files = files
        self.replica = Replica.open("/data", files, small())
        self.heard = Heard()
        self.replica.attach(self.heard, Runner(), Runner())
        self.acknowledged = 0  # this position is on the disk
        self.syncs = 0

    def take(self, batches: list[ShippedBatch]) -> bool:
        """Write and sync them in one go. Whether they are on the disk."""
        for batch in batches:
            self.replica.write(batch)
        self.syncs += 1
        self.replica.sync(self.syncs)
        if self.heard.numbers[-1:] != [self.syncs]:
            return False
        self.acknowledged = int(self.replica.end)
        return True

    def cut(self, end: int) -> None:
        self.acknowledged = min(self.acknowledged, end)
        self.replica.cut(end)


def promoted(replica: Replica, epoch: int) -> tuple[Log, Recovered]:
    """What a node leads with that followed, which is what a scan of its folder finds."""
    committed = int(replica.committed)
    log, recovered = replica.promote(epoch)
    cold = Recovery(log.folder, log.files)
    cold.limit = committed
    cold.use_marker = False
    cold.run()
    warm, scanned = tables(log, recovered), tables_of(cold)
    for name in scanned:
        assert warm[name] == scanned[name], (name, warm[name], scanned[name])
    return log, recovered


Tables = dict[str, object]


def tables(log: Log, recovered: Recovered) -> Tables:
    segments = {number: one for number, one in log.segments.items() if one is not log.active}
    return {
        **common_tables(recovered, segments, log.chunked, log.maintenance.state),
        "turn": int(log.batch) - 1,
        "place": (int(log.tail.segment), int(log.tail.part), int(log.tail.end)),
        "checkpoint": int(log.maintenance.manifest.checkpoint),
    }


def tables_of(found: Recovery) -> Tables:
    return {
        **common_tables(found.recovered, found.segments, found.chunked, found.absorbed),
        "turn": int(found.state.batch),
        "place": (int(found.last_segment), int(found.last_part), int(found.last_end)),
        "checkpoint": int(found.manifest.checkpoint),
    }


def common_tables(
    recovered: Recovered, segments: dict[int, Segment], chunked: dict[int, vec[i64]], state: LogState
) -> Tables:
    queues = {
        queue: list(zip(index.positions, index.addresses, index.expiries, index.flags, strict=True))
        for queue, index in recovered.queues.items()
    }
    return {
        "definitions": list(recovered.definitions.items()),
        "delivered": recovered.delivered_up_to,
        "next message": int(recovered.next_message_id),
        "queues": queues,
        "segments": {int(number): table_of(segment) for number, segment in segments.items()},
        "chunks": {int(address): list(chunks) for address, chunks in chunked.items()},
        "absorbed": (int(state.segment), int(state.offset), int(state.batch), int(state.next_message_id)),
        "absorbed definitions": list(state.definitions.items()),
        "absorbed delivered": state.delivered,
        # what settled records of a segment that is gone concerns nobody
        "to ledgers": {
            number: one.value() for number, one in state.pending.items() if number in segments and one.value()
        },
    }


def table_of(segment: Segment) -> Tables:
    return {
        "files": [(int(part.part), int(part.base)) for part in segment.parts],
        "numbers": (int(segment.generation), int(segment.end), int(segment.ledger), int(segment.live)),
        "octets": (int(segment.record_bytes), int(segment.live_bytes)),
        "holders": list(segment.references),
        "many": segment.many,
        "places": list(zip(segment.offsets, segment.sizes, strict=True)),
        "records": (segment.sparse, list(segment.numbers)),
    }


def led(replica: Replica, epoch: int, before: World | None = None) -> Leading:
    """The broker on what was a follower's log; the epoch has begun. ``before``: the leader's before."""
    world = Leading(replica.files, small(), promoted(replica, epoch))
    world.take_up({} if before is None else dict(before.positions))
    if before is not None:
        world.passing = before.passing + 1
        world.message_id = max(world.message_id, before.message_id)
    world.log.begin_epoch()
    return world
