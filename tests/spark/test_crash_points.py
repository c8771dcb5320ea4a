"""A driver that dies at any step of Spark's protocol, or at any two, and a broker that restarts in between: exact.

Random kills rarely meet the moments between two steps; here each of them is met. The driver is ``protocol.py``, so that
hundreds of deaths take seconds. A few of these points in a real Spark are in ``test_killed_at_a_call.py``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.spark.protocol import Checkpoint, Died, Fate, run
from tests.support.brokers import free_ports
from warrenmq.client import Connection, Properties
from warrenmq.spark.httpapi import HttpApi, LeaseExpired
from warrenmq.testing import Broker

pytest.importorskip("pyspark", reason="PySpark is not installed")
pytest.importorskip("pyarrow", reason="pyarrow is not installed")

from warrenmq.spark import consuming  # noqa: E402
from warrenmq.spark.lease_reading import LeasePartition  # noqa: E402  (needs pyspark)

KINDS = ["stream", "leased queue", "plain queue"]
TRIGGERS = ["available now", "continuing"]
FIRST = 3  # messages there from the start: a full batch and one that is not
MORE = 1  # messages that come after each death
MOST_RUNS = 50  # a busy machine may take a few to find a queue empty; nothing depends on how many


class World:
    """A broker with a queue that is read by one query, through however many deaths."""

    def __init__(self, folder: Path, kind: str, trigger: str) -> None:
        self.kind = kind
        self.available_now = trigger == "available now"
        port, http_port = free_ports(2)
        self.broker = Broker(data_dir=folder, port=port, http_port=http_port).start()
        self.options = {"host": "127.0.0.1", "port": str(port), "httpPort": str(http_port), "maxOffsetsPerTrigger": "2"}
        self.number = 0
        self.published = 0

    def begin(self) -> None:
        """A queue of its own for each story: the broker is shared, because starting one takes longest."""
        self.number += 1
        self.published = 0
        self.name = f"q{self.number}"
        self.checkpoint = Checkpoint()
        with Connection(self.broker.url) as connection:
            arguments = {"x-queue-type": "stream"} if self.kind == "stream" else {}
            connection.channel().queue_declare(self.name, durable=True, arguments=arguments)
        self.publish(FIRST)

    def publish(self, count: int, mode: int = 2) -> None:
        with Connection(self.broker.url) as connection:
            channel = connection.channel()
            channel.confirm_select()
            bodies = [b"%d" % number for number in range(self.published, self.published + count)]
            channel.publish_many("", self.name, bodies, Properties(delivery_mode=mode))
            channel.wait_for_confirms(30)
        self.published += count

    def reader(self, **more: str) -> Any:
        from pyspark.sql.types import BinaryType, StructField, StructType

        from warrenmq.spark.source import AmqpDataSource

        where = {"stream": self.name} if self.kind == "stream" else {"queue": self.name}
        if self.kind != "stream":
            where["leases"] = str(self.kind == "leased queue").lower()
        schema = StructType([StructField("body", BinaryType())])
        return AmqpDataSource({**self.options, **where, **more}).streamReader(schema)

    def live(self, at: int) -> list[str]:
        """One run of the query, to its end or to the point ``at``; the points it passed."""
        reader = self.reader()
        fate = Fate(at)
        with suppress(Died):
            run(self.checkpoint, reader, fate, self.available_now)
        bury(reader)
        return fate.passed

    def finish(self) -> None:
        """Run until nothing is left to do. A queue that is consumed over a channel gives back what the dead held."""
        for _ in range(MOST_RUNS):
            self.live(0)
            if self.is_done():
                return

    def is_done(self) -> bool:
        """All was read, and of a queue nothing waits or is held."""
        return len(set(self.checkpoint.rows())) == self.published and self.left() == (0, 0)

    def left(self) -> tuple[int, int]:
        """Messages of the queue that are ready, and that somebody holds."""
        if self.kind == "stream":
            return 0, 0
        queue = self.broker.call(lambda: self.broker.server.broker.vhosts["/"].queues[self.name])
        return self.broker.call(lambda: (int(queue.ready), int(queue.unacked)))

    def check(self, story: str) -> None:
        rows = sorted(int(row) for row in self.checkpoint.rows())
        wanted = list(range(self.published))
        if self.kind == "plain queue":  # at least once
            assert sorted(set(rows)) == wanted, story
        else:
            assert rows == wanted, story
            for batch, repeats in self.checkpoint.again.items():
                for rows_again in repeats:
                    assert sorted(rows_again) == sorted(self.checkpoint.sink[batch]), (story, batch)
        assert self.left() == (0, 0), story


def bury(reader: Any) -> None:
    """What the operating system does for a dead driver: its sockets are closed, its threads stop."""
    connection = getattr(reader, "_connection", None) or getattr(getattr(reader, "_streams", None), "_connection", None)
    if connection is not None:
        connection.abort()
    stop = getattr(reader, "stop", None)
    if stop is not None:
        stop()


@pytest.fixture
def world(tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setattr(consuming, "FIRST", 0.05)  # nothing is lost by giving up on a batch too soon
    kind, trigger = request.param
    world = World(tmp_path / "data", kind, trigger)
    yield world
    world.broker.stop()


PAIRS = [(kind, trigger) for kind in KINDS for trigger in TRIGGERS]
every_kind = pytest.mark.parametrize("world", PAIRS, indirect=True, ids=lambda pair: ", ".join(pair))
leased_only = pytest.mark.parametrize("world", [("leased queue", "available now")], indirect=True, ids=["leased"])


@every_kind
def test_a_run_without_any_death_takes_everything_once(world: World) -> None:
    world.begin()
    world.finish()
    world.check("nobody dies")


@every_kind
def test_a_death_at_any_step_changes_nothing(world: World) -> None:
    world.begin()
    for at in range(1, len(world.live(0)) + 1):
        world.begin()
        story = world.live(at)
        world.publish(MORE)
        if at % 4 == 0:
            world.broker.restart()
        world.finish()
        world.check(f"died after {story[-1]} ({at})")


@pytest.mark.soak
@pytest.mark.timeout(1800)
@every_kind
def test_deaths_at_any_two_steps_change_nothing(world: World) -> None:
    world.begin()
    for first in range(1, len(world.live(0)) + 1):
        second = 0
        while True:
            second += 1
            world.begin()
            before = world.live(first)
            world.publish(MORE)
            if (first + second) % 8 == 0:
                world.broker.restart()
            after = world.live(second)
            if len(after) < second:
                break  # it came to its end before that point
            world.publish(MORE)
            if (first + second) % 8 == 4:
                world.broker.restart()
            world.finish()
            world.check(f"died after {before[-1]} ({first}), then after {after[-1]} ({second})")


def rows_of(reader: Any, partitions: list[Any]) -> list[int]:
    return sorted(
        int(row) for each in partitions for table in reader.read(each) for row in table.column("body").to_pylist()
    )


def planned(world: World) -> tuple[Any, Any, Any]:
    """A reader that has leased a batch of one persistent and one transient message, with the offsets around it."""
    world.begin()
    with Connection(world.broker.url) as connection:
        connection.channel().queue_purge(world.name)
    world.publish(1, mode=2)
    world.publish(1, mode=1)
    reader = world.reader()
    owner = reader.latestOffset(reader.initialOffset(), reader.getDefaultReadLimit())
    return reader, owner, reader.latestOffset(owner, reader.getDefaultReadLimit())


@leased_only
def test_transient_messages_that_a_crash_took_are_named_and_can_be_gone_on_without(world: World) -> None:
    _, start, end = planned(world)
    world.broker.restart()
    with pytest.raises(LeaseExpired, match="has none of the 1 messages.*option failOnDataLoss=false goes on"):
        world.reader().partitions(start, end)
    lenient = world.reader(failOnDataLoss="false")
    assert rows_of(lenient, lenient.partitions(start, end)) == [FIRST]
    assert lenient.latestOffset(end, lenient.getDefaultReadLimit())["leases"] == {}
    lenient.commit(end)


@leased_only
def test_a_task_asks_the_same_when_the_crash_comes_after_planning(world: World) -> None:
    reader, start, end = planned(world)
    partitions = reader.partitions(start, end)
    world.broker.restart()
    with pytest.raises(LeaseExpired, match="has none of the 1 messages"):
        rows_of(reader, partitions)
    assert rows_of(world.reader(failOnDataLoss="false"), partitions) == [FIRST]


@leased_only
def test_a_task_tells_which_part_of_its_lease_is_left(world: World) -> None:
    reader, _, end = planned(world)
    reader.commit(end)
    world.publish(2, mode=1)
    world.publish(1, mode=2)
    lease = HttpApi(reader.options).lease(world.name, 3, "somebody", "0/0")
    assert lease is not None and lease.count == 3
    partition = LeasePartition(world.name, lease.id, lease.count)
    world.broker.restart()
    with pytest.raises(LeaseExpired, match="has only 1 of the 3 messages"):
        rows_of(reader, [partition])
    assert rows_of(world.reader(failOnDataLoss="false"), [partition]) == [world.published - 1]


@leased_only
def test_a_lease_that_ran_out_before_it_was_settled_is_gone_on_without_when_asked(world: World) -> None:
    reader, _, end = planned(world)
    for lease in HttpApi(reader.options).leases(world.name, end["owner"]):
        HttpApi(reader.options).release(world.name, lease.id)
    with pytest.raises(LeaseExpired, match="expired before it was settled"):
        world.reader().commit(end)
    world.reader(failOnDataLoss="false").commit(end)
