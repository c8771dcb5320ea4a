"""The whole broker over a disk that forgets: what a power cut leaves keeps every promise, whatever it leaves.

Random clients (confirms, acks, requeues, dead letters, transactions, declarations, large bodies), commits that hang,
failing disks, compaction, and cuts at any moment: of the folders the cut may leave (``tests/log/disk.py``: any subset
of what was not synced, torn or with bits turned) several are judged, and the history goes on from one of them, or from
the disk of a process that was only killed, behind which the kernel could not write what was not synced.
"""

from __future__ import annotations

import errno
import itertools
import os
import random
from collections import Counter
from pathlib import Path

import pytest

from tests.log.disk import SimulatedFiles
from warrenmq.log.format import LogError
from warrenmq.log.settings import LogSettings
from warrenmq.testing.core import Core, HeldRunner
from warrenmq.testing.core_client import CoreClient, Got

FOLDER = Path("/data")  # of the simulated disk
ROUTES = (("", "q", ("q",)), ("amq.fanout", "", ("f1", "f2")), ("", "src", ("src",)))
PLAIN = ("q", "f1", "f2")


def settings(rng: random.Random) -> LogSettings:
    return LogSettings(
        segment_bytes=rng.choice((2_000, 20_000)),
        checkpoint_bytes=500,
        retry_ms=50,
        zero_ahead=rng.random() < 0.3,
        chunk_bytes=256 << 10,
        slack_bytes=1000,
        reserve_bytes=rng.choice((0, 4096)),
    )


class Interrupted(BaseException):
    """The process ends in the middle of a commit."""


class Copy:
    def __init__(self) -> None:
        self.sure = False  # confirmed, or found after a cut: it must be there
        self.seen = False  # delivered while the disk worked: if it comes back, flagged
        self.leaving = False  # acknowledged or rejected, who knows whether on disk
        self.left = False  # known to be on disk: it must not come back


class World:
    """One broker at a time, its clients, and what they know."""

    def __init__(self, seed: int, disk: type[SimulatedFiles] = SimulatedFiles) -> None:
        self.rng = random.Random(seed)
        self.kind = disk
        self.settings = settings(self.rng)
        self.copies: dict[tuple[str, bytes], Copy] = {}
        self.transactions: dict[int, tuple[list[bytes], bytes, str]] = {}  # number -> messages, token, state
        self.definitions: dict[str, str] = {}  # name -> there, gone, or doubtful
        self.number = 0
        self.counts: Counter[str] = Counter()
        self.start(disk())

    # --- lives

    def start(self, disk: SimulatedFiles) -> None:
        fresh = not disk.names_now
        self.disk = disk
        self.core = Core(FOLDER, self.disk, held=True, settings=self.settings)
        self.client = self.core.client(persistent=True)
        self.unconfirmed: dict[int, list[tuple[str, bytes]]] = {}
        self.marks: dict[int, list[tuple[str, bytes]]] = {}
        self.unmarked: list[tuple[str, bytes]] = []
        self.held: list[tuple[int, str, bytes]] = []  # deliveries to channel 2
        self.published = {1: 0, 2: 0}
        self.committing: list[int] = []
        self.asked: list[tuple[str, str]] = []
        self.got: Got | None = None
        for channel, mode in ((1, "confirm.select"), (2, "confirm.select"), (3, "tx.select"), (4, "")):
            self.client.open(channel, mode)
        if fresh:
            for queue in (*PLAIN, "dead", "ta", "tb", "tin", "marks"):
                self.client.declare(queue)
            self.client.declare("src", arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"})
            for queue in ("f1", "f2"):
                self.client.send("queue.bind", queue=queue, exchange="amq.fanout", routing_key="")
                self.core.commit()
        self.client.send("basic.qos", 2, prefetch_count=6)
        for queue in ("q", "f1", "src"):
            self.client.send("basic.consume", 2, queue=queue, consumer_tag=queue)
        self.listen()

    def cut(self) -> None:
        """The power goes: judge some of the folders it may leave, and go on from one."""
        if self.rng.random() < 0.5:
            self.interrupt()
        images = list(itertools.islice(self.disk.images(4, self.rng), 6))
        killed = self.disk.kept_image()  # only the process died
        images.append(killed)
        for image in images:
            self.judge(Core(FOLDER, SimulatedFiles(image), settings=self.settings))
        image = self.rng.choice(images)
        found = self.judge(Core(FOLDER, SimulatedFiles(image), settings=self.settings))
        self.take_up(found)
        if image is killed:
            self.disk.fault = lambda kind, name: 0
            self.disk.lose_writeback()
            self.start(self.disk)
            self.counts["kills"] += 1
        else:
            self.start(self.kind(image))
        self.counts["cuts"] += 1

    def interrupt(self) -> None:
        """The commit under way, if there is one, is written and not synced."""

        def stop(kind: str, name: str) -> None:
            if kind == "sync":
                raise Interrupted

        self.disk.observe = stop
        try:
            self.commit()
        except Interrupted:
            self.counts["interrupted"] += 1
        self.disk.observe = lambda kind, name: None

    # --- what clients do

    def step(self) -> None:
        name = self.rng.choices(
            ("publish", "settle", "transact", "define", "commit", "tick", "maintain", "fault"),
            (8, 8, 2, 1, 8, 3, 2, 0.6),
        )[0]
        getattr(self, name)()
        self.listen()

    def body(self, name: bytes) -> bytes:
        self.number += 1
        size = 300_000 if self.number % 37 == 0 else self.rng.choice((0, 30, 300))
        return b"%s:%d:" % (name, self.number) + b"." * size

    def publish(self) -> None:
        if not self.client.reading:
            return
        frames = b""
        for _ in range(self.rng.randint(1, 4)):
            exchange, key, queues = self.rng.choice(ROUTES)
            body = self.body(b"p")
            self.published[1] += 1
            self.unconfirmed[self.published[1]] = [(queue, body) for queue in queues]
            for queue in queues:
                self.copies[(queue, body)] = Copy()
            frames += self.client.published(exchange, key, body)
        self.client.feed(frames)

    def settle(self) -> None:
        if not self.held or not self.client.reading:
            return
        for _ in range(self.rng.randint(1, len(self.held))):
            tag, queue, body = self.held.pop(self.rng.randrange(len(self.held)))
            if self.rng.random() < 0.25:
                self.client.send("basic.nack", 2, delivery_tag=tag, requeue=True)
                continue
            copy = self.copies[(queue, body)]
            copy.leaving = True
            self.unmarked.append((queue, body))
            if queue == "src":
                self.copies[("dead", body)] = Copy()
                self.client.send("basic.reject", 2, delivery_tag=tag, requeue=False)
            else:
                self.client.send("basic.ack", 2, delivery_tag=tag)
        self.published[2] += 1
        self.marks[self.published[2]] = self.unmarked
        self.unmarked = []
        self.client.publish("", "marks", b"mark", channel=2)

    def transact(self) -> None:
        if not self.client.reading or self.committing or self.core.log.failing:
            return
        self.number += 1
        token = b"t:%d:" % self.number
        self.copies[("tin", token)] = Copy()
        self.client.publish("", "tin", token, channel=4)  # no confirms there: it must be found, or not, later
        self.client.send("basic.get", 3, queue="tin")
        self.core.commit()
        self.listen()
        if self.got is None:
            return
        got = self.got
        self.got = None
        bodies = [b"x:%d:%d" % (self.number, part) for part in range(self.rng.randint(1, 3))]
        self.transactions[self.number] = (bodies, got.body, "doubtful")
        frames = b""
        for body, queue in itertools.product(bodies, ("ta", "tb")):
            frames += self.client.published("", queue, body, channel=3)
        self.client.feed(frames)
        self.client.send("basic.ack", 3, delivery_tag=got.method.int("delivery_tag"))
        self.committing.append(self.number)
        self.client.send("tx.commit", 3)

    def define(self) -> None:
        if not self.client.reading:
            return
        there = [name for name, state in self.definitions.items() if state == "there"]
        if there and self.rng.random() < 0.4:
            name = self.rng.choice(there)
            self.asked.append(("gone", name))
            self.definitions[name] = "doubtful"
            self.client.send("queue.delete", 4, queue=name)
        else:
            self.number += 1
            name = f"d{self.number}"
            self.asked.append(("there", name))
            self.definitions[name] = "doubtful"
            self.client.send("queue.declare", 4, queue=name, durable=True)

    def commit(self) -> None:
        committer = self.core.committer
        assert isinstance(committer, HeldRunner)
        if committer.held:
            task = committer.held.pop(0)
            task.run()
            self.core.broker.begin_turn()
            self.core.log.done(task.number)
            self.core.broker.end_turn()

    def tick(self) -> None:
        self.core.clock.set_ms(self.core.clock.now_ms() + self.rng.choice((1, 30, 60)))
        self.core.broker.begin_turn()
        self.core.log.tick(self.core.clock.now_ms())
        self.core.broker.end_turn()

    def maintain(self) -> None:
        self.core.log.maintain(self.rng.choice((0, 1, 50)))

    def fault(self) -> None:
        rng, disk = self.rng, self.disk
        if rng.random() < 0.6:
            disk.fault = lambda kind, name: 0
        else:
            kind, share = rng.choice(("write", "sync", "create", "rename")), rng.choice((0.3, 1.0))
            disk.fault = lambda k, name: errno.EIO if k == kind and rng.random() < share else 0

    # --- what they are told

    def listen(self) -> None:
        for told in self.client.take():
            if told.name in ("basic.ack", "basic.nack"):
                self.confirmed(told)
            elif told.name == "basic.deliver":
                self.delivered(told)
            elif told.name == "basic.get-ok":
                self.got = told
            elif told.name == "tx.commit-ok":
                number = self.committing.pop(0)
                bodies, token, _ = self.transactions[number]
                self.transactions[number] = (bodies, token, "committed")
                self.counts["transactions"] += 1
            elif told.name in ("queue.declare-ok", "queue.delete-ok") and told.channel == 4:
                state, name = self.asked.pop(0)
                self.definitions[name] = state
            elif told.name == "channel.close":  # a commit refused while the disk fails
                assert told.channel == 3 and told.method.int("reply_code") == 406, told
                number = self.committing.pop(0)
                bodies, token, _ = self.transactions[number]
                self.transactions[number] = (bodies, token, "refused")
                self.client.send("channel.close-ok", 3)
                self.client.open(3, "tx.select")

    def confirmed(self, told: Got) -> None:
        owed = self.unconfirmed if told.channel == 1 else self.marks
        tag = told.method.int("delivery_tag")
        tags = [t for t in owed if t <= tag] if told.method.bit("multiple") else [tag]
        for each in tags:
            for queue, body in owed.pop(each):
                copy = self.copies[(queue, body)]
                if told.channel == 1:
                    copy.sure = copy.sure or told.name == "basic.ack"
                elif told.name == "basic.ack":
                    copy.left = True
                    if queue == "src":
                        self.copies[("dead", body)].sure = copy.sure
                else:
                    self.unmarked.append((queue, body))
            self.counts["acked" if told.name == "basic.ack" else "nacked"] += 1

    def delivered(self, told: Got) -> None:
        queue = told.method.str("consumer_tag")
        copy = self.copies[(queue, told.body)]
        assert not copy.left, f"{queue} delivered {told.body[:20]!r} although its ack is on disk"
        assert told.method.bit("redelivered") or not copy.seen, f"{queue}: {told.body[:20]!r} without its flag"
        copy.seen = copy.seen or not self.core.log.failing
        self.held.append((told.method.int("delivery_tag"), queue, told.body))

    # --- after a cut

    def judge(self, core: Core) -> dict[str, list[bytes]]:
        """Read everything a broker finds, and hold it against what clients know."""
        reader: CoreClient = core.client(persistent=True)
        found: dict[str, list[bytes]] = {}
        for number, queue in enumerate((*PLAIN, "src", "dead", "ta", "tb", "tin"), 1):
            reader.open(number)
            reader.send("basic.consume", number, queue=queue, consumer_tag=queue)
            told = [t for t in reader.take() if t.name == "basic.deliver"]
            found[queue] = bodies = [t.body for t in told]
            assert len(set(bodies)) == len(bodies), f"{queue} holds something twice"
            numbers = [int(body.split(b":")[1]) for body in bodies]
            assert numbers == sorted(numbers) or queue == "dead", f"{queue} lost its order"
            for t in told:
                copy = self.copies.get((queue, t.body))
                if copy is not None:
                    assert not copy.left, f"{t.body[:20]!r} is back in {queue} although its ack was on disk"
                    assert t.method.bit("redelivered") or not copy.seen, f"{queue}: {t.body[:20]!r} without its flag"
        for (queue, body), copy in self.copies.items():
            if queue in PLAIN and copy.sure and not copy.leaving:
                assert body in found[queue], f"{queue} lost {body[:20]!r}"
            if queue == "src" and copy.sure:
                places = [name for name in ("src", "dead") if body in found[name]]
                assert len(places) == 1, f"{body[:20]!r} is in {places}"
        for bodies, token, state in self.transactions.values():
            there = {queue: [body for body in bodies if body in found[queue]] for queue in ("ta", "tb")}
            whole = there["ta"] == there["tb"] == bodies
            assert whole or there == {"ta": [], "tb": []}, f"half a transaction: {there} of {bodies}"
            assert whole or state != "committed", f"a committed transaction is gone: {bodies}"
            assert not whole or state != "refused", f"a refused transaction is there: {bodies}"
            assert not whole or token not in found["tin"], f"{bodies} without the ack in it"
        for name, state in self.definitions.items():
            known = name in core.broker.vhosts["/"].queues
            assert known or state != "there", f"queue {name} is gone"
            assert not known or state != "gone", f"queue {name} is back"
        return found

    def take_up(self, found: dict[str, list[bytes]]) -> None:
        """From now on what was found is sure, and what was not is gone for good."""
        for (queue, body), copy in self.copies.items():
            if queue not in found:
                continue
            copy.leaving = False
            if body in found[queue]:
                copy.sure = True
            else:
                copy.left = True
                copy.sure = copy.sure and queue == "src" and body in found["dead"]
        for name, state in self.definitions.items():
            if state == "doubtful":
                self.definitions[name] = "unknown"
        for number, (bodies, token, _) in list(self.transactions.items()):
            state = "committed" if bodies[0] in found["ta"] else "refused"
            self.transactions[number] = (bodies, token, state)


class Unsynced(SimulatedFiles):
    """Says that it has synced a segment, and has not."""

    def sync(self, descriptor: int) -> None:
        if not self.descriptors[descriptor][1].startswith("segment-"):
            super().sync(descriptor)


def history(seed: int, steps: int, disk: type[SimulatedFiles] = SimulatedFiles) -> Counter[str]:
    world = World(seed, disk)
    try:
        for _ in range(steps):
            world.step()
            if world.rng.random() < 0.02:
                world.cut()
        world.cut()
    except AssertionError as error:
        raise AssertionError(f"seed {seed} after {world.counts}: {error}") from error
    return world.counts


def test_random_histories_survive_power_cuts() -> None:
    total: Counter[str] = Counter()
    for seed in range(10):
        total += history(seed, 150)
    print(f"\n{dict(total)}")
    assert total["cuts"] > 20 and total["kills"] > 3 and total["interrupted"] > 3
    assert total["acked"] > 300 and total["transactions"] > 10 and total["nacked"] > 5


def test_a_disk_that_does_not_sync_is_noticed() -> None:
    """Were the broker not to wait for the sync, it would be as with this disk: promises break at the first cut."""
    noticed = 0
    for seed in range(3):
        try:
            history(seed, 60, Unsynced)
        except (AssertionError, LogError):
            noticed += 1
    assert noticed == 3


@pytest.mark.soak
def test_many_random_histories_survive_power_cuts() -> None:
    first = int(os.environ.get("WARREN_TEST_SEED", "1000"))
    for seed in range(first, first + int(os.environ.get("WARREN_TEST_HISTORIES", "3000"))):
        history(seed, 300)
