"""A follower's log: what it takes, what it refuses, where it can be cut, and what it is when its node leads."""

from __future__ import annotations

import copy
import errno
from collections.abc import Callable

import pytest

from tests.log.crash_points import Images, Violation, small
from tests.log.cuts import Image, whole
from tests.log.disk import SimulatedFiles
from tests.log.replicas import PARTS, Following, Leading, NumberedFiles, all_batches, content, led, promoted
from tests.log.test_disk_model import BATCHES, whole_and_damaged
from tests.log.world import State, World, found_state, same
from warrenmq.log.epochs import KEY, KIND
from warrenmq.log.files import Files
from warrenmq.log.format import BatchHeader, LogError, batch_header, read_batch_header, seed
from warrenmq.log.layout import BATCH_HEADER, BATCH_MAGIC
from warrenmq.log.log import Log
from warrenmq.log.manifest import decode
from warrenmq.log.recovery import Recovered
from warrenmq.log.replica.replica import Replica
from warrenmq.log.shipping import ShippedBatch

pytestmark = pytest.mark.pure


class History:
    """What a first leader wrote, what a second one did that went on in the middle of it, and the states between."""

    def __init__(self, common: int = 3) -> None:
        first = Leading(NumberedFiles(), small())
        self.log_id = int(first.log.maintenance.manifest.log_id)
        self.states: dict[tuple[int, int], State] = {}  # by epoch and end
        first.log.begin_epoch()
        self.run(first, 1, BATCHES)
        self.first = first.others.submitted
        follower = Following(NumberedFiles())
        follower.replica.adopt(self.log_id)
        follower.take(self.first[:common])
        self.common = self.first[common - 1].end()
        second = led(follower.replica, 2, first)
        self.run(second, 2, BATCHES[::-1])
        self.second = self.first[:common] + second.others.submitted

    def run(self, world: Leading, epoch: int, batches: list[Callable[[World], None]]) -> None:
        self.states[(epoch, int(world.log.end_position()))] = copy.deepcopy(world.state)
        for batch in batches:
            batch(world)
            world.end_turn()
            self.states[(epoch, int(world.log.end_position()))] = copy.deepcopy(world.state)


HISTORY = History()


def follower_of(history: History, files: SimulatedFiles | None = None) -> Following:
    following = Following(NumberedFiles() if files is None else files)
    following.replica.adopt(history.log_id)
    return following


def state_of(log: Log, recovered: Recovered) -> State:
    state = found_state(log, recovered)
    state.definitions.pop((KIND, KEY), None)
    return state


def changed(batch: ShippedBatch, **fields: object) -> ShippedBatch:
    return ShippedBatch(*[fields.get(name, getattr(batch, name)) for name in PARTS])  # type: ignore[arg-type]


def test_what_a_leader_wrote_is_on_the_followers_disk_and_is_the_same_log_when_it_leads() -> None:
    following = follower_of(HISTORY)
    for batch in HISTORY.first:
        assert following.take([batch])
    end = following.replica.end
    assert end == HISTORY.first[-1].end()
    assert following.replica.epochs.numbers == [1]
    log, recovered = promoted(following.replica, 2)
    assert same(state_of(log, recovered), HISTORY.states[(1, end)], set())
    assert not recovered.clean
    assert recovered.epoch == 2


def test_a_follower_has_each_batch_as_the_leader_has_it_but_knows_only_of_its_own_syncs() -> None:
    following = follower_of(HISTORY)
    assert following.take(HISTORY.first)
    world = led(following.replica, 2)
    assert [content(batch) for batch in all_batches(world.log)[: len(HISTORY.first)]] == [
        content(batch) for batch in HISTORY.first
    ]


def test_a_batch_is_taken_at_the_end_of_the_log_only() -> None:
    following = follower_of(HISTORY)
    with pytest.raises(LogError, match="does not follow"):
        following.take(HISTORY.first[1:2])
    assert following.take(HISTORY.first[:3])
    for batch in HISTORY.first[:3] + HISTORY.first[4:5]:
        with pytest.raises(LogError, match="does not follow"):
            following.replica.write(batch)
    with pytest.raises(LogError, match="does not follow"):
        following.replica.write(changed(HISTORY.first[3], offset=HISTORY.first[3].offset + 8))
    with pytest.raises(LogError, match="does not follow"):
        following.replica.write(changed(HISTORY.first[3], epoch=0))
    assert following.take(HISTORY.first[3:4])


def test_no_changed_octet_of_a_batch_is_taken() -> None:
    following = follower_of(HISTORY)
    assert following.take(HISTORY.first[:1])
    batch = HISTORY.first[1]
    for name in ("messages", "changes"):
        data = getattr(batch, name)
        assert data
        for at in range(0, len(data), 7):
            turned = bytearray(data)
            turned[at] ^= 4
            with pytest.raises(LogError, match="does not check"):
                following.replica.write(changed(batch, **{name: bytes(turned)}))
        with pytest.raises(LogError, match="does not check"):
            following.replica.write(changed(batch, **{name: data[:-1]}))
    with pytest.raises(LogError, match="does not check"):
        following.replica.write(changed(batch, records=batch.records + 1))
    assert following.take([batch])


def test_a_log_with_batches_takes_no_other_identity() -> None:
    following = follower_of(HISTORY)
    assert following.take(HISTORY.first[:1])
    following.replica.adopt(HISTORY.log_id)
    with pytest.raises(LogError, match="another log"):
        following.replica.adopt(HISTORY.log_id + 1)


@pytest.mark.parametrize("common", range(1, len(BATCHES)))
def test_a_log_that_was_cut_goes_on_as_the_new_leader_wrote_it(common: int) -> None:
    history = History(common)
    following = follower_of(history)
    assert following.take(history.first)
    following.cut(history.common)
    assert following.replica.end == history.common
    following.replica.close()
    following = Following(following.files)
    assert following.replica.end == history.common
    assert following.replica.epochs.numbers == [1]
    assert following.take(history.second[common:])
    assert following.replica.epochs.numbers == [1, 2]
    assert following.replica.epochs.firsts == [0, history.common]
    end = following.replica.end
    log, recovered = promoted(following.replica, 3)
    assert same(state_of(log, recovered), history.states[(2, end)], set())


def test_a_log_is_cut_where_a_batch_ends_and_nowhere_else() -> None:
    following = follower_of(HISTORY)
    assert following.take(HISTORY.first)
    with pytest.raises(LogError, match="where no batch ends"):
        following.cut(HISTORY.first[2].end() - 1)
    with pytest.raises(LogError, match="cannot be cut"):
        following.cut(HISTORY.first[-1].end() + 1)
    following.cut(0)
    assert following.replica.end == 0
    assert following.take(HISTORY.first)


def test_everything_that_was_found_at_a_start_can_be_cut_again() -> None:
    for batch in [None, *HISTORY.first]:
        following = follower_of(HISTORY)
        assert following.take(HISTORY.first)
        following.replica.close()
        following = Following(following.files)
        end = 0 if batch is None else int(batch.end())
        following.cut(end)
        left = [other for other in HISTORY.first if other.end() > end]
        assert following.take(left)
        log, recovered = promoted(following.replica, 2)
        assert same(state_of(log, recovered), HISTORY.states[(1, HISTORY.first[-1].end())], set())


def test_a_node_keeps_its_number_and_gets_another_before_it_gives_up_anything() -> None:
    following = follower_of(HISTORY)
    assert following.take(HISTORY.first)
    node = following.replica.node
    assert node > 0
    following.replica.close()
    following = Following(following.files)
    assert following.replica.node == node
    following.replica.renew(HISTORY.first[2].end())
    following = Following(following.files)
    assert following.replica.node not in (0, node)
    assert following.replica.end == HISTORY.first[2].end()
    following.replica.renew(0)
    following = Following(following.files)
    assert following.replica.end == 0
    assert follower_of(HISTORY, following.files).take(HISTORY.first)


def test_a_folder_of_a_cluster_is_not_opened_as_a_single_nodes() -> None:
    following = follower_of(HISTORY)
    assert following.take(HISTORY.first)
    following.replica.close()
    with pytest.raises(LogError, match="is a cluster's"):
        Log.open("/data", following.files, small())
    following.files.unlink("/data/node")
    log, recovered = Log.open("/data", following.files, small())
    assert same(state_of(log, recovered), HISTORY.states[(1, HISTORY.first[-1].end())], set())


def test_a_folder_of_a_single_node_becomes_the_first_of_a_cluster() -> None:
    files = NumberedFiles()
    for _ in range(3):
        log, _recovered = Log.open("/data", files, small())
        log.define("queue", "a", b"1")
        log.end_turn(True)
        assert log.close()
    following = Following(files)
    assert following.replica.last_epoch == 3
    world = led(following.replica, following.replica.last_epoch + 1)
    assert world.log.commits.others().epochs.numbers == [3, 4]


# --- crashes


class Judged:
    """Every folder that a crash may leave of a follower that took one leader's batches, was cut, and took another's."""

    def __init__(self, history: History, images: Images = whole) -> None:
        self.history = history
        self.images = images
        self.following: Following | None = None
        self.seen: dict[int, int] = {}  # folder -> the end that was found
        self.points = 0

    def look(self, files: SimulatedFiles, where: str) -> None:
        self.points += 1
        for image in self.images(files):
            key = hash(frozenset(image.items()))
            if key not in self.seen:
                self.seen[key] = self.recovered(image, where)
            if self.following is not None and self.seen[key] < self.following.acknowledged:
                raise Violation(f"{where}: acknowledged and gone")

    def recovered(self, image: Image, where: str) -> int:
        try:
            replica = Replica.open("/data", NumberedFiles(image), small())
            end = int(replica.end)
            epoch = replica.epochs.last()
            log, recovered = replica.promote(9)
        except LogError as error:
            raise Violation(f"{where}: {error}") from error
        if end:
            expected = self.history.states.get((epoch, end))
            if expected is None or not same(state_of(log, recovered), expected, set()):
                raise Violation(f"{where}: what ends at {end:#x} in epoch {epoch} is none of the two logs")
        return end


def watch(judged: Judged, files: SimulatedFiles, what: str) -> Callable[[str, str], None]:
    return lambda kind, name: judged.look(files, f"{what}, before {kind} {name} ({files.operations})")


class FailingFiles(NumberedFiles):
    """These operations fail."""

    def __init__(self, failing: range) -> None:
        super().__init__()
        self.fault = lambda kind, name: errno.EIO if self.operations - 1 in failing else 0


def run_through(files: SimulatedFiles, judged: Judged, together: int) -> None:
    """A follower's life, so many batches a sync. It begins anew after each failure of the disk."""
    history = judged.history
    judged.following = None  # of the run before
    following = Following(files)
    judged.following = following
    following.replica.adopt(history.log_id)
    for batches in (history.first, history.second):
        left = [batch for batch in batches if batch.end() > following.replica.end]
        while left:
            if not following.take(left[:together]):
                following.cut(following.acknowledged)
                left = [batch for batch in batches if batch.end() > following.replica.end]
                continue
            left = left[together:]
        if batches is history.first:
            following.cut(history.common)
    judged.look(files, "the end")
    assert following.replica.end == history.second[-1].end()


@pytest.mark.parametrize("together", [1, 3])
def test_every_crash_leaves_what_was_acknowledged_and_one_log_or_the_other(together: int) -> None:
    judged = Judged(HISTORY, whole_and_damaged(64))
    files = NumberedFiles()
    files.observe = watch(judged, files, "sound")
    run_through(files, judged, together)
    assert judged.points > 50 and len(judged.seen) > 25


@pytest.mark.parametrize("length", [1, 2, 3])
def test_every_failing_operation_leaves_what_was_acknowledged_and_one_log_or_the_other(length: int) -> None:
    judged = Judged(HISTORY)
    plain = NumberedFiles()
    run_through(plain, Judged(HISTORY), 2)
    begun = Following(NumberedFiles()).files.operations + 8
    for at in range(begun, plain.operations):
        files = FailingFiles(range(at, at + length))
        files.observe = watch(judged, files, f"operation {at} fails")
        run_through(files, judged, 2)
    assert judged.points > 1000


# --- planted faults


HEADER_PARTS = (
    "segment",
    "offset",
    "epoch",
    "synced_segment",
    "synced_offset",
    "number",
    "first_record",
    "records",
    "messages",
    "changes",
    "crc",
    "time",
    "version",
)


class VerbatimFiles(NumberedFiles):
    """A planted fault: batches are written with the header that another node wrote, to whom all before was synced."""

    def write(self, descriptor: int, parts: list[bytes], offset: int) -> None:
        found: list[bytes] = []
        for part in parts:
            if len(part) == BATCH_HEADER and part.startswith(BATCH_MAGIC):
                for log_id in self.log_ids():
                    header = read_batch_header(seed(log_id), part, 0)
                    if header is not None and header.offset > 0:
                        fields = {name: getattr(header, name) for name in HEADER_PARTS}
                        fields.update(synced_segment=header.segment, synced_offset=header.offset)
                        part = batch_header(seed(log_id), BatchHeader(**fields))
            found.append(part)
        super().write(descriptor, found, offset)

    def log_ids(self) -> list[int]:
        manifest = self.names_now.get("manifest")
        return [] if manifest is None else [int(decode(bytes(manifest.current), "").log_id)]


class ForgetfulFiles(NumberedFiles):
    """A planted fault: nobody waits until the name of a removed file is gone from the disk."""

    def __init__(self, image: dict[str, bytes] | None = None) -> None:
        super().__init__(image)
        self.removed = False

    def unlink(self, path: str) -> None:
        super().unlink(path)
        self.removed = path.endswith(".log")

    def step(self, kind: str, name: str) -> int:
        self.removed = self.removed and kind in ("unlink", "sync_folder")
        return super().step(kind, name)

    def sync_folder(self, folder: str) -> None:
        if not self.removed:
            super().sync_folder(folder)
        self.removed = False


@pytest.mark.parametrize("faulty", [VerbatimFiles, ForgetfulFiles])
def test_a_planted_fault_is_found(faulty: type[NumberedFiles]) -> None:
    files = faulty()
    judged = Judged(History(1), whole_and_damaged(64))
    files.observe = watch(judged, files, faulty.__name__)
    with pytest.raises(Violation):
        run_through(files, judged, 3)


def on_disk(files: Files) -> int:
    assert isinstance(files, SimulatedFiles)
    return sum(len(data) for data in files.kept_image().values())


def kept_house(rounds: int, restart_at: int = -1) -> tuple[Following, Leading]:
    """A leader at work, and a follower that has everything committed, checkpoints, and rewrites what is half dead."""
    first = Leading(NumberedFiles(), small())
    following = Following(NumberedFiles())
    following.replica.adopt(int(first.log.maintenance.manifest.log_id))
    first.log.begin_epoch()
    sent = 0
    for number in range(rounds):
        for batch in BATCHES:
            batch(first)
            first.end_turn()
            new = first.others.submitted[sent:]
            sent += len(new)
            assert following.take(new)
            first.promise()
            first.maintain()
            following.replica.committed_to(following.acknowledged)
            for _ in range(8):
                following.replica.maintain(number * 1000, 100)
        if number == restart_at:
            following.replica.close()
            following = Following(following.files)
            following.acknowledged = int(following.replica.end)
    return following, first


@pytest.mark.parametrize("restart_at", [-1, 3, 9])
def test_a_follower_keeps_house_as_a_leader_does_and_leads_without_a_scan(restart_at: int) -> None:
    following, first = kept_house(12, restart_at)
    replica = following.replica
    maintenance = replica.warm.maintenance
    assert maintenance.checkpoints > 3 and maintenance.removed > 0 and maintenance.compactions > 0
    assert replica.kept > 0
    with pytest.raises(LogError, match="cannot be cut"):
        replica.cut(int(replica.kept) - 1)
    log, recovered = promoted(replica, 2)
    assert not replica.scanned
    found = found_state(log, recovered)
    found.definitions.pop((KIND, KEY), None)
    assert same(found, first.state, set())


def test_a_followers_files_stay_within_what_the_live_messages_warrant() -> None:
    """What a leader removes a follower removes: else its disk is full one day."""
    following, first = kept_house(40)
    octets, leaders = on_disk(following.files), on_disk(first.files)
    written = sum(batch.size() for batch in first.others.submitted)
    assert octets < 1.3 * leaders
    assert octets < written / 2


def test_what_a_start_found_and_had_to_cut_is_not_in_what_its_node_leads_with() -> None:
    following = follower_of(HISTORY)
    assert following.take(HISTORY.first)
    following.replica.close()
    following = Following(following.files)
    following.cut(HISTORY.common)
    assert following.take([batch for batch in HISTORY.second if batch.follows >= HISTORY.common])
    promoted(following.replica, 3)
    assert not following.replica.scanned


def test_a_follower_whose_checkpoint_is_in_doubt_reads_its_log_before_it_leads() -> None:
    following, first = kept_house(3)
    renamed = False

    def fault(kind: str, name: str) -> int:
        nonlocal renamed
        renamed = renamed or (kind == "rename" and name.startswith("manifest"))
        return errno.EIO if renamed and kind == "sync_folder" else 0

    following.files.fault = fault
    for batch in BATCHES * 3:
        batch(first)
        first.end_turn()
    assert following.take([batch for batch in first.others.submitted if batch.follows >= following.replica.end])
    first.promise()
    following.replica.committed_to(following.acknowledged)
    for now in range(100):
        following.replica.maintain(10_000 * now, 100)
    assert following.replica.warm.maintenance.doubtful is not None
    following.files.fault = lambda kind, name: 0
    log, recovered = promoted(following.replica, 2)
    assert following.replica.scanned
    found = found_state(log, recovered)
    found.definitions.pop((KIND, KEY), None)
    assert same(found, first.state, set())
