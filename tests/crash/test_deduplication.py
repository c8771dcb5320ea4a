"""A power cut keeps a message and the memory of its id, or neither: nothing is lost to a duplicate, nothing doubled.

Random publishes to an exchange with a window, many of ids that were published before, in transactions and out of them,
commits that hang, a failing disk, compaction, and cuts at any moment. Whatever a cut leaves, an id whose message is
there is remembered, and one whose message is not there, and that nobody took out, is taken when it comes again.
"""

from __future__ import annotations

import errno
import itertools
import random
from collections import Counter
from pathlib import Path

import pytest

from tests.log.disk import SimulatedFiles
from warrenmq.log.settings import LogSettings
from warrenmq.testing.core import Core
from warrenmq.testing.core_client import CoreClient

FOLDER = Path("/data")  # of the simulated disk
STEPS = 120
DAY = 86_400_000


class World:
    """One broker at a time on a disk that forgets, and what its publishers know."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.settings = LogSettings(
            segment_bytes=self.rng.choice((3_000, 20_000)), checkpoint_bytes=500, retry_ms=50, slack_bytes=1000
        )
        self.sure: set[str] = set()  # confirmed
        self.out: set[str] = set()  # taken out by a consumer
        self.number = 0
        self.counts: Counter[str] = Counter()
        self.start(SimulatedFiles(), True)

    def start(self, disk: SimulatedFiles, fresh: bool = False) -> None:
        self.disk = disk
        self.core = Core(FOLDER, disk, held=True, settings=self.settings)
        if fresh:
            prepare(self.core)
        self.client = self.core.client(persistent=True)
        self.client.open(1, "confirm.select")
        self.client.open(2, "tx.select")
        self.client.take()
        self.published: list[str] = []  # by delivery tag, from 1
        self.failing = False

    # --- what happens

    def step(self) -> None:
        act = self.rng.choice(
            (self.publish, self.publish, self.publish, self.brief, self.transact, self.commit, self.commit)
            + ((self.consume, self.maintain, self.maintain, self.fail, self.cut) if self.rng.random() < 0.5 else ())
        )
        act()
        self.listen()

    def some_id(self) -> str:
        if self.number and self.rng.random() < 0.4:
            return f"id-{self.rng.randrange(max(0, self.number - 10), self.number)}"
        self.number += 1
        return f"id-{self.number - 1}"

    def publish(self) -> None:
        frames = b""
        for _ in range(self.rng.randrange(1, 5)):
            id = self.some_id()
            self.published.append(id)
            body = id.encode() + b" " * self.rng.choice((0, 500))
            frames += self.client.published("once", "k", body, message_id=id, delivery_mode=2)
        self.client.feed(frames)

    def brief(self) -> None:
        """Elsewhere, and soon forgotten: something for compaction to do."""
        self.client.publish("brief", "k", b"x" * 300, message_id=f"brief-{self.rng.random()}", channel=2)
        self.client.send("tx.commit", 2)
        self.core.advance(self.rng.choice((1, 2000)))

    def transact(self) -> None:
        for _ in range(self.rng.randrange(1, 4)):
            id = self.some_id()
            self.client.publish("once", "k", id.encode(), message_id=id, delivery_mode=2, channel=2)
        self.client.send(self.rng.choice(("tx.commit", "tx.commit", "tx.rollback")), 2)

    def commit(self) -> None:
        self.core.commit()

    def consume(self) -> None:
        """Takes out what is confirmed, and is sure that the disk knows."""
        if self.failing:
            return
        self.core.commit()
        self.listen()
        reader = self.core.client()
        while self.core.ready("q"):
            reader.send("basic.get", queue="q", no_ack=True)
            self.core.commit()
            self.out.update(body.decode().strip() for body in reader.bodies())
        self.core.advance(100)
        self.core.commit()
        self.counts["consumed"] += 1

    def maintain(self) -> None:
        self.core.broker.begin_turn()
        for _ in range(10):
            self.core.log.maintain(10)
        self.core.end_turn()

    def fail(self) -> None:
        """The disk fails, or is well again."""
        self.failing = not self.failing
        failing = self.failing
        self.disk.fault = lambda kind, name: errno.EIO if failing and kind in ("write", "sync") else 0  # noqa: ARG005
        if not failing:
            self.core.retry()
            self.core.commit()
        self.counts["failures"] += 1

    def listen(self) -> None:
        for got in self.client.take():
            if got.name == "basic.ack":
                last = int(str(got["delivery_tag"]))
                first = 1 if got["multiple"] else last
                for tag in range(first, last + 1):
                    if self.published[tag - 1] not in ("", "nacked"):
                        self.sure.add(self.published[tag - 1])
                        self.published[tag - 1] = ""
            elif got.name == "basic.nack":
                last = int(str(got["delivery_tag"]))
                first = 1 if got["multiple"] else last
                for tag in range(first, last + 1):
                    if self.published[tag - 1]:
                        self.published[tag - 1] = "nacked"

    # --- what is left

    def cut(self) -> None:
        self.listen()
        images = [*itertools.islice(self.disk.images(4, self.rng), 6), self.disk.kept_image()]
        for image in images:
            self.judge(Core(FOLDER, SimulatedFiles(image), settings=self.settings))
        self.start(SimulatedFiles(self.rng.choice(images)))
        self.counts["cuts"] += 1

    def judge(self, core: Core) -> None:
        before = there(core)
        assert max(before.values(), default=0) <= 1, before
        missing = self.sure - self.out - set(before)
        assert not missing, f"confirmed, and gone: {missing}"
        client = core.client(persistent=True)
        everything = [f"id-{number}" for number in range(self.number)]
        for id in everything:
            client.publish("once", "k", id.encode(), message_id=id)
        after = there(core)
        for id in everything:
            if before[id]:
                assert after[id] == 1, f"{id} is doubled"
            elif id in self.out:
                assert after[id] == 0, f"{id} was taken, and is taken again"
            else:
                assert after[id] == 1, f"{id} is lost to the memory of a message that is not there"
        self.counts["judged"] += len(everything)
        core.crash()


def prepare(core: Core) -> None:
    core.policy("^once$", "exchanges", deduplication_window=DAY)
    client: CoreClient = core.client()
    for exchange, queue in (("once", "q"), ("brief", "b")):
        client.send("exchange.declare", exchange=exchange, type="fanout", durable=True)
        client.declare(queue, arguments={} if queue == "q" else {"x-max-length": 1})
        client.send("queue.bind", queue=queue, exchange=exchange)
    core.broker.begin_turn()
    core.end_turn()
    core.commit()
    core.log.flush()


def there(core: Core) -> Counter[str]:
    """How often each id stands in the queue, which stays as it is."""
    client = core.client()
    found: Counter[str] = Counter()
    while body := client.get("q"):
        found[body.strip()] += 1
    client.call("channel.close")
    core.settle()
    return found


@pytest.mark.parametrize("seed", range(12))
def test_a_power_cut_keeps_a_message_and_the_memory_of_its_id_or_neither(seed: int) -> None:
    world = World(seed)
    for _ in range(STEPS):
        world.step()
    world.cut()
    assert world.counts["judged"] > 50, world.counts
