"""Space: what is dead gives its room back, addresses stay, and the bound holds without stopping publishers."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

from tests.log.disk import SimulatedFiles
from tests.log.world import World, found_state, same
from warrenmq.log.log import Log
from warrenmq.log.settings import LogSettings

SEGMENT = 20_000


def settings() -> LogSettings:
    return LogSettings(segment_bytes=SEGMENT, checkpoint_bytes=5000, zero_ahead=False)


def disk_bytes(disk: SimulatedFiles) -> int:
    return sum(len(inode.current) for name, inode in disk.names_now.items() if name.startswith("segment-"))


def test_the_files_stay_within_twice_the_live_data_and_four_segments() -> None:
    """Publishing, settling at random places and in every order; maintenance gets a few slices every turn."""
    rng = random.Random(1)
    disk = SimulatedFiles()
    world = World(disk, settings())
    target = 300
    for turn in range(1200):
        if turn % 150 == 0:
            target = rng.choice([5, 100, 600])
        for _ in range(3):
            world.publish(b"%d" % turn * rng.randrange(5, 60), 1 + turn % 2)
        held = sorted(world.addresses)
        while len(held) > target:
            queue, position = held.pop(rng.randrange(len(held)))
            world.settle(queue, position)
        world.end_turn()
        slices = 0
        while world.log.maintain(1) and slices < 30:
            slices += 1
        live = int(world.log.maintenance.live_bytes())
        assert disk_bytes(disk) <= 2 * live + 4 * SEGMENT, f"turn {turn}"
    assert world.log.maintenance.compactions > 3 and world.log.maintenance.removed > 3
    world.check_reads()
    log, recovered = Log.open("/data", SimulatedFiles(disk.synced_image()), settings())
    assert same(found_state(log, recovered), world.state, set())


def test_addresses_stay_through_compaction_and_restart() -> None:
    disk = SimulatedFiles()
    world = World(disk, LogSettings(segment_bytes=SEGMENT, checkpoint_bytes=1, slack_bytes=0))
    for n in range(300):
        world.publish(b"%d" % n * 20, 1)
        if n % 10 == 0:
            world.end_turn()
    world.end_turn()
    for position in range(1, 300):
        if position % 5:
            world.settle(1, position)
    world.end_turn()
    world.maintain()
    assert world.log.maintenance.compactions >= 2
    world.check_reads()
    log, recovered = Log.open("/data", SimulatedFiles(disk.synced_image()), settings())
    found = dict(zip(map(int, recovered.queues[1].positions), map(int, recovered.queues[1].addresses), strict=True))
    assert found == {position: address for (_, position), address in world.addresses.items()}
    # settled, moved and shared again afterwards: the compacted segment goes on like any other
    for (queue, position), address in world.addresses.items():
        assert log.read(address).body == world.state.queues[queue][position]


def test_definitions_outlive_the_segment_they_were_made_in() -> None:
    disk = SimulatedFiles()
    world = World(disk, settings())
    world.define("old", b"value")
    world.define("gone", b"value")
    world.undefine("gone")
    world.end_turn()
    for _ in range(400):
        world.publish(b"x" * 200, 1)
        world.settle(1)
        world.end_turn()
        world.log.maintain(1)
    assert 1 not in world.log.segments
    _, recovered = Log.open("/data", SimulatedFiles(disk.synced_image()), settings())
    assert recovered.definitions == {("queue", "old"): b"value"}


def test_a_queue_dropped_before_a_checkpoint_does_not_come_back() -> None:
    disk = SimulatedFiles()
    world = World(disk, settings())
    for n in range(200):
        world.publish(b"x" * 200, 1 + n % 2)
        world.publish(b"y" * 100, 1, 2)
        world.end_turn()
    world.drop(2)
    world.end_turn()
    for _ in range(200):
        world.publish(b"z" * 200, 3)
        world.settle(3)
        world.end_turn()
        world.maintain()
    log, recovered = Log.open("/data", SimulatedFiles(disk.synced_image()), settings())
    assert set(recovered.queues) == {1}
    assert same(found_state(log, recovered), world.state, set())


def test_maintenance_does_its_work_in_slices() -> None:
    world = World(SimulatedFiles(), LogSettings(segment_bytes=4 << 20, checkpoint_bytes=1, slack_bytes=0))
    for n in range(400):
        world.publish(bytes(30_000), 1 + n % 2)
        if n % 20 == 0:
            world.end_turn()
    for position in sorted(world.state.queues[1]):
        world.settle(1, position)
    world.end_turn()
    slices = 0
    while world.log.maintain(1):
        slices += 1
        world.check_reads() if slices % 10 == 0 else None
    assert slices > 10 and world.log.maintenance.compactions >= 1
    world.check_reads()


MEMORY = """
import sys
from warrenmq.log.files import Files
from warrenmq.log.log import Log
from warrenmq.log.settings import LogSettings
def rss():
    return int(open("/proc/self/statm").read().split()[1]) * 4096
log, _ = Log.open(sys.argv[1], Files(), LogSettings(segment_bytes=4 << 20))
count = 100_000
for n in range(2000):
    log.hold(log.append(n, b"h", b"x" * 20, "", b"k", flags=0, holders=1), 1, n, 0, 0)
log.end_turn(True)
before = rss()
for n in range(count):
    log.hold(log.append(n, b"h", b"x" * 20, "", b"k", flags=0, holders=1), 1, n, 0, 0)
    if n % 2000 == 0:
        log.end_turn(True)
        log.maintain(10)
log.end_turn(True)
print((rss() - before) / count)
"""


@pytest.mark.soak
def test_a_waiting_message_costs_the_log_a_few_bytes_of_memory(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", MEMORY, str(tmp_path)], capture_output=True, text=True, check=True)
    assert float(done.stdout) < 16
