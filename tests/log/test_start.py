"""What a start finds: after a clean stop, after a crash, after damage, and what it refuses."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from tests.log.disk import SimulatedFiles
from tests.log.world import World, found_state, same
from warrenmq.log.damage import RecordDamaged
from warrenmq.log.files import Files
from warrenmq.log.format import LogCorrupt, LogError, LogVersion
from warrenmq.log.layout import FILE_HEADER, VERSION
from warrenmq.log.log import Log
from warrenmq.log.manifest import decode
from warrenmq.log.segment import file_name
from warrenmq.log.settings import LogSettings


def small() -> LogSettings:
    return LogSettings(segment_bytes=3000, checkpoint_bytes=500, zero_ahead=False)


def filled(disk: Files, folder: str = "/data") -> World:
    world = World(disk, small(), folder)
    world.define("one", b"1")
    for n in range(60):
        world.publish(b"%d" % n * 40, 1 + n % 3)
        if n % 2:
            world.settle(1 + n % 3)
        if n % 7 == 0:
            world.move(1, 2)
        world.deliver(1)
        world.end_turn()
        world.maintain()
    return world


class CountedFiles(SimulatedFiles):
    def __init__(self, image: dict[str, bytes]) -> None:
        super().__init__(image)
        self.bytes_read: dict[str, int] = {}

    def read(self, descriptor: int, length: int, offset: int) -> bytes:
        data = super().read(descriptor, length, offset)
        name = self.descriptors[descriptor][1]
        self.bytes_read[name] = self.bytes_read.get(name, 0) + len(data)
        return data


def test_after_a_clean_stop_no_segment_is_scanned() -> None:
    disk = SimulatedFiles()
    world = filled(disk)
    assert world.log.close(world.indexes())
    again = CountedFiles(disk.synced_image())
    log, recovered = Log.open("/data", again, small())
    assert recovered.clean
    segments = {name: count for name, count in again.bytes_read.items() if name.startswith("segment-")}
    assert len(segments) > 3 and all(count <= 2 * FILE_HEADER for count in segments.values())
    assert same(found_state(log, recovered), world.state, set())
    assert recovered.next_message_id == world.message_id + 1


def test_a_clean_stop_without_indexes_syncs_all_and_the_start_scans() -> None:
    disk = SimulatedFiles()
    world = filled(disk)
    world.publish(b"last", 1)
    world.end_turn(False)
    assert world.log.close()
    log, recovered = Log.open("/data", SimulatedFiles(disk.synced_image()), small())
    assert not recovered.clean
    assert same(found_state(log, recovered), world.state, set())


def test_the_marker_of_a_clean_stop_counts_for_nothing_once_the_log_went_on() -> None:
    disk = SimulatedFiles()
    world = filled(disk)
    world.log.close(world.indexes())
    image = disk.synced_image()
    second = World(SimulatedFiles(image), small())
    address = second.log.append(10_000, b"header", b"new", "exchange", b"key", flags=2, holders=1)
    second.log.hold(address, 9, 1, 0, 0)
    second.log.end_turn(True)
    crashed = second.files.kept_image()  # type: ignore[attr-defined]
    crashed["clean"] = image["clean"]  # its removal never reached the disk
    log, recovered = Log.open("/data", SimulatedFiles(crashed), small())
    assert not recovered.clean and len(recovered.queues[9]) == 1
    assert recovered.next_message_id == 10_001


@pytest.mark.parametrize("at", range(0, 400, 17))
def test_a_damaged_marker_means_a_scan_and_nothing_worse(at: int) -> None:
    disk = SimulatedFiles()
    world = filled(disk)
    world.log.close(world.indexes())
    image = disk.synced_image()
    damaged = bytearray(image["clean"])
    damaged[at % len(damaged)] ^= 4
    log, recovered = Log.open("/data", SimulatedFiles({**image, "clean": bytes(damaged)}), small())
    assert not recovered.clean
    assert same(found_state(log, recovered), world.state, set())


def test_every_start_has_an_epoch_of_its_own() -> None:
    disk = SimulatedFiles()
    epochs = []
    for _ in range(4):
        world = World(disk, small())
        epochs.append(int(world.recovered.epoch))
        world.publish(b"x", 1)
        world.end_turn()
        disk = SimulatedFiles(disk.kept_image())
    assert epochs == [1, 2, 3, 4]


def test_a_torn_tail_is_cut_and_said() -> None:
    disk = SimulatedFiles()
    world = World(disk, small())
    world.publish(b"kept", 1)
    world.end_turn()
    world.publish(b"torn", 1)
    world.end_turn()
    image = disk.synced_image()
    name = "segment-0000000001.log"
    image[name] = image[name][:-3]
    log, recovered = Log.open("/data", SimulatedFiles(image), small())
    assert found_state(log, recovered).queues == {1: {1: b"kept"}}
    assert name in recovered.cut and "cut at offset" in recovered.cut


def test_what_stands_behind_a_torn_batch_is_cut_even_if_it_checks() -> None:
    """Two unsynced batches, the first torn: the second must not come back alone."""
    from tests.log.test_turns import Held

    disk = SimulatedFiles()
    world = World(disk, small())
    held = Held()
    world.log.committer = held
    world.publish(b"a", 1)
    world.end_turn()
    held.finish(world.log)
    disk.fault = lambda kind, name: 5 if kind in ("sync", "truncate") else 0
    world.publish(b"torn", 1)
    world.end_turn()
    held.finish(world.log)  # written, not synced; a second attempt waits in vain
    image = disk.kept_image()
    name = "segment-0000000001.log"
    whole = image[name]
    at = whole.index(b"torn")
    # what the same process would have written next, had it not waited: the same batch again further on
    batch = whole[whole.rindex(b"WBA%d" % VERSION) :]
    damaged = whole[:at] + b"TORN" + whole[at + 4 :] + batch
    log, recovered = Log.open("/data", SimulatedFiles({**image, name: damaged}), small())
    assert found_state(log, recovered).queues == {1: {1: b"a"}}


def test_damage_before_the_synced_end_is_refused_with_file_offset_and_cure() -> None:
    disk = SimulatedFiles()
    world = World(disk, small())
    for body in (b"first", b"second", b"third"):
        world.publish(body, 1)
        world.end_turn()
    image = disk.synced_image()
    name = "segment-0000000001.log"
    at = image[name].index(b"exchange")
    image[name] = image[name][:at] + b"EXCHANGE" + image[name][at + 8 :]
    with pytest.raises(LogCorrupt) as refused:
        Log.open("/data", SimulatedFiles(image), small())
    assert f"/data/{name}: offset 128:" in str(refused.value) and "warren log salvage" in str(refused.value)


@pytest.mark.parametrize("body", [b"first", b"second", b"third"])
def test_a_damaged_body_before_the_synced_end_is_that_message_s_alone(body: bytes) -> None:
    """Of the last commit nobody can tell whether it was synced: there it is the torn tail, and cut."""
    disk = SimulatedFiles()
    world = World(disk, small())
    for each in (b"first", b"second", b"third"):
        world.publish(each, 1, 2)
        world.end_turn()
    image = disk.synced_image()
    name = "segment-0000000001.log"
    image[name] = image[name].replace(body, body.upper())
    log, recovered = Log.open("/data", SimulatedFiles(image), small())
    bodies: list[bytes] = []
    for address in recovered.queues[2].addresses:
        try:
            bodies.append(log.read(address).body)
        except RecordDamaged as damaged:
            bodies.append(str(damaged).encode())
    number = [b"first", b"second", b"third"].index(body)
    expected = [b"first", b"second", b"third"]
    expected[number] = b"segment 1, record %d is damaged on disk: its checksum does not match" % number
    assert bodies == (expected if number < 2 else expected[:2])
    addresses = [int(address) for address in recovered.queues[1].addresses]
    assert [None if one is None else one.body for one in log.read_many(addresses)] == [
        None if text.startswith(b"segment") else text for text in bodies
    ]


def test_a_damaged_body_is_refused_after_a_clean_stop_which_reads_no_segment() -> None:
    disk = SimulatedFiles()
    world = World(disk, small())
    for each in (b"first", b"second", b"third"):
        world.publish(each, 1)
        world.end_turn()
    assert world.log.close(world.indexes())
    image = disk.synced_image()
    name = "segment-0000000001.log"
    for part, told in ((b"second", "its checksum"), (b"exchange", "its checksum"), (b"header", "its checksum")):
        damaged = {**image, name: image[name].replace(part, part.swapcase())}
        log, recovered = Log.open("/data", SimulatedFiles(damaged), small())
        assert recovered.clean
        with pytest.raises(RecordDamaged, match=told):
            log.read(recovered.queues[1].addresses[1])
        assert (1 << 32 | 1) in log.damage.known
        log.settle(1, 1 << 32 | 1)
        assert (1 << 32 | 1) not in log.damage.known, "nobody holds it any more"


@pytest.mark.parametrize("length", [0, 1, 100, 2047, 2048, 5000])
def test_every_turned_bit_of_a_record_is_noticed_when_it_is_read_by_itself(length: int) -> None:
    disk = SimulatedFiles()
    world = World(disk, LogSettings(zero_ahead=False))
    world.publish(b"before", 1)
    world.publish(b"x" * length, 1, 2)
    world.publish(b"behind", 1)
    world.end_turn()
    assert world.log.close(world.indexes())
    image = disk.synced_image()
    name = "segment-0000000001.log"
    whole = image[name]
    log, recovered = Log.open("/data", SimulatedFiles(image), small())
    segment = log.find(1)
    begin = FILE_HEADER + int(segment.offset(1))
    end = FILE_HEADER + int(segment.offset(2))
    step = 1 if length <= 100 else 41
    for at in range(begin, end, step):
        damaged = bytearray(whole)
        damaged[at] ^= 1 << at % 8
        log, recovered = Log.open("/data", SimulatedFiles({**image, name: bytes(damaged)}), small())
        found = log.read_many([1 << 32, 1 << 32 | 1, 1 << 32 | 2])
        assert found[0] is not None and found[2] is not None, "its neighbours are whole"
        assert found[1] is None, f"octet {at - begin} of the record"


def test_damage_at_the_end_of_a_segment_is_refused_once_a_later_one_closed_it() -> None:
    disk = SimulatedFiles()
    world = World(disk, small())
    while world.log.active.number < 3:
        world.publish(b"x" * 500, 1)
        world.end_turn()
    world.publish(b"y", 1)
    world.end_turn()
    image = disk.synced_image()
    for name in ("segment-0000000001.log", "segment-0000000002.log"):
        damaged = {**image, name: image[name][:-1] + bytes([image[name][-1] ^ 1])}
        with pytest.raises(LogCorrupt, match=f"{name}: offset"):
            Log.open("/data", SimulatedFiles(damaged), small())
        with pytest.raises(LogCorrupt, match=f"{name}: offset"):
            Log.open("/data", SimulatedFiles({**image, name: image[name][:-700]}), small())


def test_a_missing_segment_or_manifest_is_refused_by_name() -> None:
    disk = SimulatedFiles()
    filled(disk)
    image = disk.synced_image()
    known = decode(image["manifest"], "manifest").segments  # what is older is dead, and about to be removed
    for name in [*(file_name(segment.number, 0) for segment in known), "manifest"]:
        rest = {other: data for other, data in image.items() if other != name}
        with pytest.raises(LogCorrupt) as refused:
            Log.open("/data", SimulatedFiles(rest), small())
        assert name in str(refused.value)


def test_another_version_is_refused_by_name() -> None:
    import zlib

    disk = SimulatedFiles()
    filled(disk)
    image = disk.synced_image()
    name = sorted(name for name in image if name.endswith(".log"))[-1]
    data = image[name]
    later = data[:8] + (7).to_bytes(4, "little") + zlib.crc32(data[16:FILE_HEADER], 7).to_bytes(4, "little") + data[16:]
    with pytest.raises(LogVersion, match="format 7, this Warren reads formats 1 to 3"):
        Log.open("/data", SimulatedFiles({**image, name: later}), small())
    data = image["manifest"]
    later = data[:8] + (9).to_bytes(4, "little") + zlib.crc32(data[24:], 9).to_bytes(4, "little") + data[16:]
    with pytest.raises(LogVersion, match="format 9, this Warren reads formats 1 to 3"):
        Log.open("/data", SimulatedFiles({**image, "manifest": later}), small())


def test_a_second_broker_on_the_same_folder_is_refused(tmp_path: Path) -> None:
    log, _ = Log.open(str(tmp_path), Files(), small())
    with pytest.raises(LogError, match="in use by another broker"):
        Log.open(str(tmp_path), Files(), small())
    log.close()
    Log.open(str(tmp_path), Files(), small())[0].close()


def test_a_start_knows_its_definitions_at_once_and_its_messages_step_by_step() -> None:
    disk = SimulatedFiles()
    world = World(disk, LogSettings())
    world.log.define("queue", "q", b"{}")
    for number in range(40):
        world.publish(b"x" * 200_000, 1)
        if number % 4 == 0:
            world.end_turn()
    world.end_turn()
    log, opening = Log.begin("/data", SimulatedFiles(disk.synced_image()), LogSettings())
    found = opening.found
    assert ("queue", "q") in found.recovered.definitions and not found.recovered.queues
    seen = [int(found.read_bytes())]
    while opening.step():
        seen.append(int(found.read_bytes()))
    log.opened(opening)
    assert len(seen) > 5 and seen[0] == 0 and seen[-1] == found.total_bytes and seen == sorted(seen)
    assert [len(index) for index in found.recovered.queues.values()] == [40]


def test_a_start_that_is_given_up_leaves_the_folder_as_it_was(tmp_path: Path) -> None:
    world = World(Files(), small(), folder=str(tmp_path))
    world.publish(b"one", 1)
    world.end_turn()
    world.log.close()
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    log, opening = Log.begin(str(tmp_path), Files(), small())
    opening.step()
    log.give_up(opening)
    assert log.close()
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    again, recovered = Log.open(str(tmp_path), Files(), small())
    assert [len(index) for index in recovered.queues.values()] == [1]
    again.close()


def test_recovery_reads_only() -> None:
    disk = SimulatedFiles()
    filled(disk)
    image = disk.kept_image()
    image["segment-0000000099.log"] = b"being made"
    changed: list[str] = []
    again = SimulatedFiles(image)
    again.observe = lambda kind, name: changed.append(kind)
    Log.open("/data", again, small())
    made_durable = ["create", "write", "sync", "rename", "sync_folder"]
    assert changed == [*made_durable, "truncate", "unlink"], "what was read is made durable, then garbage is removed"


def test_a_page_that_the_kernel_drops_during_a_start_is_not_copied_for_a_commit() -> None:
    """It was read, but never got to the disk, and is read again as the disk has it: that start fails, the next cuts."""
    disk = SimulatedFiles()
    world = World(disk, small())
    world.publish(b"kept", 1)
    world.end_turn()
    disk.fault = lambda kind, name: errno.EIO if kind != "write" else 0
    world.publish(b"only in the page cache", 1)
    world.end_turn()
    disk.fault = lambda kind, name: 0
    assert b"page cache" in disk.kept_image()["segment-0000000001.log"]

    log, opening = Log.begin("/data", disk, small())
    while opening.step():
        pass
    for inode in disk.names_now.values():
        inode.current = bytearray(inode.durable)
    with pytest.raises(LogError, match="segment-0000000001.log: offset .* start again"):
        log.opened(opening)
    assert found_state(*Log.open("/data", disk, small())).queues == {1: {1: b"kept"}}


def test_a_start_after_a_kill_copies_the_last_commit_only_and_no_second_time() -> None:
    disk = SimulatedFiles()
    world = World(disk, LogSettings(zero_ahead=False))
    for n in range(20):
        world.publish(b"%d" % n * 1000, 1)
        world.end_turn()
    sizes = []
    for _ in range(3):
        log, recovered = Log.open("/data", disk, small())
        assert same(found_state(log, recovered), world.state, set())
        sizes.append({name: len(data) for name, data in disk.kept_image().items() if name.endswith(".log")})
    assert sizes[0] == sizes[1] == sizes[2] and list(sizes[0]) == ["segment-0000000001.log", "segment-0000000001.1.log"]
    assert sizes[0]["segment-0000000001.1.log"] < 3000 < 30_000 < sizes[0]["segment-0000000001.log"]


def test_a_start_on_a_failing_disk_names_the_folder_and_the_next_one_succeeds() -> None:
    disk = SimulatedFiles()
    world = filled(disk)
    failing = SimulatedFiles(disk.kept_image())
    failing.fault = lambda kind, name: errno.EIO if kind == "sync" else 0
    with pytest.raises(LogError, match="/data: cannot sync"):
        Log.open("/data", failing, small())
    failing.fault = lambda kind, name: 0
    assert same(found_state(*Log.open("/data", failing, small())), world.state, set())


def test_zeros_written_ahead_by_a_killed_process_are_given_back(tmp_path: Path) -> None:
    import os

    world = World(Files(), LogSettings(), str(tmp_path))
    world.publish(b"x", 1)
    world.end_turn()
    path = tmp_path / "segment-0000000001.log"
    assert path.stat().st_size > 1 << 20
    os.close(world.log._lock)  # as after a kill
    again = World(Files(), LogSettings(), str(tmp_path))
    again.publish(b"y", 1)
    again.end_turn()
    assert path.stat().st_size < 1000
    again.log.close()
    log, recovered = Log.open(str(tmp_path), Files(), LogSettings())
    assert len(recovered.queues[1]) == 2
    log.close()
