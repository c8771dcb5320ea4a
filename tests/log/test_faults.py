"""A failing and a full disk: nothing is promised that is not kept, and service returns by itself."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.log.disk import SimulatedFiles
from tests.log.world import World, found_state, same
from warrenmq.log.files import Files
from warrenmq.log.log import Log
from warrenmq.log.settings import LogSettings
from warrenmq.testing import FaultyDisk


def settings() -> LogSettings:
    return LogSettings(segment_bytes=2000, checkpoint_bytes=1, retry_ms=100, zero_ahead=False)


def failing(disk: SimulatedFiles, *kinds: str) -> None:
    disk.fault = lambda kind, name: errno.EIO if kind in kinds else 0


def well(disk: SimulatedFiles) -> None:
    disk.fault = lambda kind, name: 0


def test_one_failed_sync_is_repaired_in_a_new_file_and_nobody_hears_of_it() -> None:
    disk = SimulatedFiles()
    world = World(disk, settings())
    world.publish(b"before", 1)
    world.end_turn()
    failures = [1]
    disk.fault = lambda kind, name: errno.EIO if kind == "sync" and failures and failures.pop() else 0
    world.publish(b"twice written", 1)
    world.end_turn()
    world.publish(b"after", 1)
    world.end_turn()
    assert world.failures == [] and world.promised == 3
    assert "segment-0000000001.1.log" in disk.names_now
    world.check_reads()
    log, recovered = Log.open("/data", SimulatedFiles(disk.synced_image()), settings())
    assert same(found_state(log, recovered), world.state, set())


def test_recovery_reads_no_further_in_a_file_that_a_later_one_closed() -> None:
    """What the failed write left behind the closing offset checks, and is still not read."""
    disk = SimulatedFiles()
    world = World(disk, settings())
    world.publish(b"before", 1)
    world.end_turn()
    failing(disk, "sync", "truncate")
    world.publish(b"nacked", 1)
    world.end_turn()
    well(disk)
    world.log.retry()
    assert world.failures and not world.log.failing
    image = disk.kept_image()  # the page cache even kept the failed write whole
    assert b"nacked" in image["segment-0000000001.log"]
    log, recovered = Log.open("/data", SimulatedFiles(image), settings())
    assert found_state(log, recovered).queues == {1: {1: b"before"}}


def test_reading_neighbours_reads_no_further_in_a_file_that_a_later_one_closed() -> None:
    """The failed write, of which a power cut left something else, stands where the next part's batches stand."""
    disk = SimulatedFiles()
    world = World(disk, settings())
    world.publish(b"before", 1)
    world.end_turn()
    failures = {"sync", "truncate"}
    disk.fault = lambda kind, name: errno.EIO if kind in failures and failures.remove(kind) is None else 0  # type: ignore[func-returns-value]
    world.publish(b"good", 1)
    world.end_turn()
    image = disk.kept_image()
    assert b"good" in image["segment-0000000001.log"] and b"good" in image["segment-0000000001.1.log"]
    image["segment-0000000001.log"] = image["segment-0000000001.log"].replace(b"good", b"torn")
    log, recovered = Log.open("/data", SimulatedFiles(image), settings())
    addresses = [int(address) for address in recovered.queues[1].addresses]
    assert [message and message.body for message in log.read_many(addresses)] == [b"before", b"good"]


def test_a_disk_that_fails_twice_is_reported_and_service_returns_by_itself() -> None:
    disk = SimulatedFiles()
    world = World(disk, settings())
    world.publish(b"old", 1)
    world.publish(b"older", 2)
    world.end_turn()
    failing(disk, "write")
    world.publish(b"never promised", 1)
    world.settle(2)
    world.end_turn()
    assert world.failures == ["cannot write"] and world.log.failing and world.promised == 1
    assert world.state.queues[1] == {1: b"old"}
    # consumers go on meanwhile
    world.settle(1)
    world.end_turn()
    world.log.tick(50)
    assert world.log.failing
    world.log.tick(100)  # tried again, in vain
    assert len(world.failures) == 2
    well(disk)
    world.log.tick(199)
    assert world.log.failing
    world.log.tick(200)
    assert not world.log.failing and world.returned == 1
    world.publish(b"new", 1)
    world.end_turn()
    assert world.promised == world.log.batch - 1
    world.check_reads()
    log, recovered = Log.open("/data", SimulatedFiles(disk.synced_image()), settings())
    assert found_state(log, recovered).queues == {1: {3: b"new"}}, "settles of the failed batch were carried over"


def test_service_returns_from_an_outage_however_long_it_was(tmp_path: Path) -> None:
    """Every attempt keeps one more batch; in the end they are more pieces than a system call takes."""
    disk = FaultyDisk()
    world = World(disk, LogSettings(retry_ms=100), str(tmp_path))
    disk.fail("write")
    for n in range(600):
        world.define("name", b"%d" % n)
        world.end_turn()
        world.log.tick(100 * n)
    assert world.log.failing and world.log.reason == "Input/output error"
    disk.repair()
    world.log.tick(60_000)
    assert not world.log.failing and world.promised == world.log.batch - 1
    world.log.close()
    log, recovered = Log.open(str(tmp_path), Files(), settings())
    assert recovered.definitions == {("queue", "name"): b"599"}
    log.close()


def test_a_message_of_a_failed_batch_that_a_consumer_holds_can_be_read_and_is_stored_later() -> None:
    disk = SimulatedFiles()
    world = World(disk, settings())
    world.publish(b"old", 1)
    world.end_turn()
    failing(disk, "sync", "create")
    world.publish(b"delivered already", 1)
    world.publish(b"seen by nobody" * 10, 2)
    world.fresh.remove((1, 2))  # delivered: nacked, but not taken out
    world.end_turn()
    assert world.log.failing
    world.check_reads()
    well(disk)
    world.log.retry()
    assert not world.log.failing
    world.check_reads()
    image = disk.synced_image()
    log, recovered = Log.open("/data", SimulatedFiles(image), settings())
    assert found_state(log, recovered).queues == {1: {1: b"old", 2: b"delivered already"}}
    assert not any(b"seen by nobody" in data for data in image.values() if data.startswith(b"WARRNLOG\1")) or all(
        b"seen by nobody" not in image[name] for name in image if ".1.log" in name
    ), "what nobody holds is not written"


def test_a_failed_batch_without_messages_hides_none_that_come_after_it() -> None:
    disk = SimulatedFiles()
    world = World(disk, settings())
    world.publish(b"first", 1)
    world.end_turn()
    world.publish(b"fills the segment" * 200, 1)
    world.end_turn()
    failing(disk, "write")
    world.settle(1)  # a change only, the first thing in its segment
    world.end_turn()
    assert world.log.failing
    world.publish(b"the segment's first message", 1)
    world.check_reads()


def test_a_long_body_of_a_failed_batch_is_let_go() -> None:
    disk = SimulatedFiles()
    world = World(disk, LogSettings(chunk_bytes=100, zero_ahead=False))
    failing(disk, "sync")
    world.publish(b"long" * 1000, 1)
    world.end_turn()
    assert world.failures and not world.log.chunked
    well(disk)
    world.log.retry()
    assert sum(len(inode.current) for inode in disk.names_now.values()) < 4000
    _, recovered = Log.open("/data", SimulatedFiles(disk.synced_image()), LogSettings())
    assert recovered.queues == {}


def test_a_failed_checkpoint_or_compaction_is_tried_again_and_loses_nothing() -> None:
    for kinds in (("rename",), ("sync_folder",), ("unlink",)):
        disk = SimulatedFiles()
        world = World(disk, LogSettings(segment_bytes=2000, checkpoint_bytes=1, retry_ms=100, slack_bytes=0))
        for n in range(30):
            world.publish(b"%d" % n * 50, 1)
            if n % 3:
                world.settle(1)
            world.end_turn()
        failing(disk, *kinds)
        world.maintain()
        assert world.log.maintenance.problem, kinds
        world.log.tick(50)
        world.maintain()
        well(disk)
        world.log.tick(1000)
        world.maintain()
        world.check_reads()
        log, recovered = Log.open("/data", SimulatedFiles(disk.synced_image()), settings())
        assert same(found_state(log, recovered), world.state, set()), kinds


def test_a_start_on_a_disk_without_room_writes_the_last_commit_in_place() -> None:
    disk = SimulatedFiles()
    world = World(disk, settings())
    for body in (b"first", b"second"):
        world.publish(body, 1)
        world.end_turn()
    disk.lose_writeback()
    disk.fault = lambda kind, name: errno.ENOSPC if kind in ("create", "truncate") else 0
    log, recovered = Log.open("/data", disk, settings())
    assert same(found_state(log, recovered), world.state, set())
    assert set(disk.names_now) == {"manifest", "segment-0000000001.log"}
    well(disk)
    log, recovered = Log.open("/data", SimulatedFiles(disk.synced_image()), settings())
    assert same(found_state(log, recovered), world.state, set())


LIMITED = """
import resource, signal, sys
from tests.log.world import World
from warrenmq.log.files import Files
from warrenmq.log.settings import LogSettings
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
world = World(Files(), LogSettings(segment_bytes=1 << 20, retry_ms=1, zero_ahead=False), sys.argv[1])
for n in range(20):
    world.publish(b"%04d" % n * 250, 1)
    world.end_turn()
assert world.promised == 20 and not world.failures
_, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, hard))  # no file grows beyond this: not this one, nor a new one
world.publish(b"too much" * 3000, 1)
world.end_turn()
assert world.failures and world.log.failing, world.failures
print(world.failures[0])
world.settle(1)  # consumers go on, and so does what fits
world.end_turn()
world.log.tick(10)
assert not world.log.failing, "what is left fits into a new file"
world.publish(b"again too much" * 3000, 1)
world.end_turn()
assert world.log.failing
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
world.log.tick(1000)
assert not world.log.failing and world.returned == 2
world.publish(b"last", 1)
world.end_turn()
assert world.promised == world.log.batch - 1
world.check_reads()
print(sorted(world.state.queues[1].values())[-1].decode(), len(world.state.queues[1]))
"""


def test_a_file_size_limit_for_real_and_a_restart(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(root), *sys.path])}
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(tmp_path / "data")], capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["File too large", "last 20"]
    log, recovered = Log.open(str(tmp_path / "data"), Files(), settings())
    bodies = [log.read(address).body for address in recovered.queues[1].addresses]
    assert bodies == [*(b"%04d" % n * 250 for n in range(1, 20)), b"last"]
    log.close()


def mounted(folder: Path, size: str) -> bool:
    folder.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], capture_output=True)
    return done.returncode == 0


def test_a_start_on_a_full_disk_for_real_finds_everything(tmp_path: Path) -> None:
    small = tmp_path / "small"
    if os.geteuid() != 0 or not mounted(small, "1m"):
        pytest.skip("a small tmpfs needs root")
    try:
        world = World(Files(), LogSettings(zero_ahead=False), str(small / "data"))
        for n in range(20):
            world.publish(b"%04d" % n * 500, 1)
            world.end_turn()
        with pytest.raises(OSError, match="No space left"), open(small / "filler", "wb", buffering=0) as filler:
            while True:
                filler.write(bytes(4096))
        os.close(world.log._lock)  # as after a kill
        log, recovered = Log.open(str(small / "data"), Files(), settings())
        assert same(found_state(log, recovered), world.state, set())
        log.close()
    finally:
        subprocess.run(["umount", "-l", str(small)], check=False)


def test_a_full_disk_for_real_and_what_consumers_drain_makes_room(tmp_path: Path) -> None:
    small = tmp_path / "small"
    if os.geteuid() != 0 or not mounted(small, "1m"):
        pytest.skip("a small tmpfs needs root")
    try:
        world = World(
            Files(),
            LogSettings(segment_bytes=100_000, checkpoint_bytes=1000, retry_ms=1, reserve_bytes=64 << 10),
            str(small / "data"),
        )
        published = 0
        while not world.failures and published < 2000:
            world.publish(b"%04d" % published * 500, 1)
            world.end_turn()
            world.maintain()
            published += 1
        assert world.failures[0] == "No space left on device" and 200 < published < 1000
        now = 0
        drained = 0
        while world.log.failing or drained < 100:
            # consumers acknowledge; room comes back with the first segment that is empty
            world.settle(1)
            world.end_turn()
            now += 10
            world.log.tick(now)
            world.maintain()
            drained += 1
            assert drained < published, "drained to the end and still no room"
        assert not world.log.failing
        assert world.returned >= 1
        world.publish(b"last", 1)
        world.end_turn()
        assert world.promised == world.log.batch - 1
        world.check_reads()
        os.close(world.log._lock)  # as after a kill
        log, recovered = Log.open(str(small / "data"), Files(), settings())
        assert same(found_state(log, recovered), world.state, set())
        log.close()
    finally:
        subprocess.run(["umount", "-l", str(small)], check=False)
