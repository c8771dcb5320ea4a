"""Acting on rows from foreachBatch: each message once, whoever dies when, and what is wrong is said."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.spark.protocol import Checkpoint, Died, Fate, run
from tests.spark.support import PATIENCE, channel, depth, drain, finished, publish, reading, runs
from tests.spark.test_crash_points import bury
from tests.support.brokers import RunningBroker, free_ports
from warrenmq.broker.queue.classic import emptied
from warrenmq.client import Connection, Properties
from warrenmq.spark.httpapi import HttpApi, LeaseExpired
from warrenmq.spark.options import OptionError, parse
from warrenmq.testing import Broker

pytest.importorskip("pyspark", reason="PySpark is not installed")
pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")

from warrenmq.spark import settle  # noqa: E402  (needs pyspark)
from warrenmq.spark.acting import requests, settle_table  # noqa: E402
from warrenmq.spark.routing.definitions import InputError  # noqa: E402

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DEAD = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
COUNT = 10
A_BATCH = 6  # in two leases


class World:
    """A queue whose rows a query judges by their number, through however many deaths."""

    def __init__(self, folder: Path) -> None:
        port, http_port = free_ports(2)
        self.broker = Broker(data_dir=folder, port=port, http_port=http_port).start()
        self.options = {
            "host": "127.0.0.1",
            "port": str(port),
            "httpPort": str(http_port),
            "maxOffsetsPerTrigger": str(A_BATCH),
            "leases": "true",
        }
        self.number = 0

    def begin(self) -> None:
        self.number += 1
        self.name = f"q{self.number}"
        self.checkpoint = Checkpoint()
        self.first: dict[int, int] = {}  # in which batch a message was first seen: verdicts must not change
        self.dead: list[int] = []
        with Connection(self.broker.url) as connection:
            declaring = connection.channel()
            declaring.queue_declare(self.name, durable=True, arguments=DEAD)
            declaring.queue_declare("dead", durable=True)
        self.publish(list(range(COUNT)))

    def publish(self, numbers: list[int], mode: int = 2) -> None:
        with Connection(self.broker.url) as connection:
            publishing = connection.channel()
            publishing.confirm_select()
            publishing.publish_many("", self.name, [b"%d" % n for n in numbers], Properties(delivery_mode=mode))
            publishing.wait_for_confirms(30)

    def reader(self, **more: str) -> Any:
        from pyspark.sql.types import BinaryType, IntegerType, StringType, StructField, StructType

        from warrenmq.spark.source import AmqpDataSource

        columns = (("queue", StringType()), ("body", BinaryType()), ("lease", StringType()), ("slot", IntegerType()))
        schema = StructType([StructField(name, kind) for name, kind in columns])
        return AmqpDataSource({**self.options, "queue": self.name, **more}).streamReader(schema)

    def act(self, batch: int, partitions: list[list[Any]]) -> None:
        """As a foreachBatch does it: the good rows to the lake (once a batch), then every row as it deserves."""
        good: list[bytes] = []
        rows: list[dict[str, object]] = []
        for row in (row for tables in partitions for table in tables for row in table.to_pylist()):
            number = int(row["body"])
            fresh = self.first.setdefault(number, batch) == batch
            action = {1: "reject", 2: "requeue", 3: "delay", 4: "ack"}.get(number % 5)
            if action in ("requeue", "delay") and not fresh:
                action = None
            if action in (None, "ack"):
                good.append(row["body"])
            if action is not None:
                judged = {"queue": row["queue"], "lease": row["lease"], "slot": row["slot"], "action": action}
                rows.append({**judged, "delay_ms": 1 if action == "delay" else None})
        self.checkpoint.write(batch, good)
        if rows:
            settle_table(pa.Table.from_pylist(rows), self.options)

    def live(self, at: int) -> list[str]:
        reader = self.reader()
        fate = Fate(at)
        with suppress(Died):
            run(self.checkpoint, reader, fate, True, self.act)
        bury(reader)
        return fate.passed

    def finish(self) -> None:
        """Run until nothing is left to do and no delay is to come."""
        deadline = time.monotonic() + PATIENCE
        while True:
            self.live(0)
            if not any(lease["delayed"] for lease in self.leases()) and self.counts() == (0, 0):
                return
            assert time.monotonic() < deadline, (self.leases(), self.counts())

    def leases(self) -> list[dict[str, Any]]:
        _, answer = HttpApi(parse({**self.options, "queue": "x"})).call("GET", f"/api/queues/%2F/{self.name}/leases")
        return list(answer)

    def counts(self) -> tuple[int, int]:
        queue = self.broker.server.broker.vhosts["/"].queues[self.name]
        counts = self.broker.call(lambda: (int(queue.ready), int(queue.unacked)))
        assert isinstance(counts, tuple)
        return counts

    def check(self, story: str) -> None:
        with Connection(self.broker.url) as connection:
            taking = connection.channel()
            while (message := taking.basic_get("dead", no_ack=True)) is not None:
                self.dead.append(int(message.body))
        assert sorted(self.dead) == [n for n in range(COUNT) if n % 5 == 1], story
        assert sorted(int(row) for row in self.checkpoint.rows()) == [n for n in range(COUNT) if n % 5 != 1], story
        assert self.leases() == [] and self.counts() == (0, 0), story


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path / "data")
    yield world
    world.broker.stop()


def test_every_row_is_acted_upon_once(world: World) -> None:
    world.begin()
    world.finish()
    world.check("nobody dies")


def test_a_death_at_any_step_changes_nothing(world: World) -> None:
    world.begin()
    points = world.live(0)
    assert sum("settle answered" in point for point in points) >= 3
    for at in range(1, len(points) + 1):
        world.broker.call(lambda: emptied(world.broker.server.broker.vhosts["/"].queues["dead"], "purge").purge())
        world.begin()
        story = world.live(at)
        if at % 3 == 0:
            world.broker.restart()
        world.finish()
        world.check(f"died after {story[-1]} ({at})")


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_deaths_at_any_two_steps_change_nothing(world: World) -> None:
    world.begin()
    for first in range(1, len(world.live(0)) + 1):
        second = 0
        while True:
            second += 1
            world.broker.call(lambda: emptied(world.broker.server.broker.vhosts["/"].queues["dead"], "purge").purge())
            world.begin()
            before = world.live(first)
            if (first + second) % 8 == 0:
                world.broker.restart()
            after = world.live(second)
            if len(after) < second:
                break
            if (first + second) % 8 == 4:
                world.broker.restart()
            world.finish()
            world.check(f"died after {before[-1]} ({first}), then after {after[-1]} ({second})")


def planned(world: World) -> tuple[Any, Any, Any, list[Any]]:
    """A reader with one batch: three persistent messages under one lease and three transient ones under another."""
    world.begin()
    with Connection(world.broker.url) as connection:
        connection.channel().queue_purge(world.name)
    world.publish([0, 1, 2])
    world.publish([3, 4, 5], mode=1)
    reader = world.reader()
    start = reader.latestOffset(reader.initialOffset(), reader.getDefaultReadLimit())
    end = reader.latestOffset(start, reader.getDefaultReadLimit())
    return reader, start, end, list(reader.partitions(start, end))


def rows_of(reader: Any, partitions: list[Any]) -> list[tuple[int, int]]:
    rows = [row for each in partitions for table in reader.read(each) for row in table.to_pylist()]
    return [(int(row["body"]), row["slot"]) for row in rows]


def settled(world: World, partition: Any, *slots: int, action: str = "ack") -> int:
    rows = [
        {"queue": world.name, "lease": partition.lease, "slot": slot, "action": action, "delay_ms": None}
        for slot in slots
    ]
    return settle_table(pa.Table.from_pylist(rows, pa.schema(SCHEMA)), world.options)


SCHEMA = [
    ("queue", pa.string()),
    ("lease", pa.string()),
    ("slot", pa.int32()),
    ("action", pa.string()),
    ("delay_ms", pa.int64()),
]


def test_what_is_left_is_read_with_its_slots_and_what_was_settled_is_no_loss(world: World) -> None:
    reader, start, end, partitions = planned(world)
    assert rows_of(reader, partitions) == [(0, 0), (1, 1), (2, 2), (3, 0), (4, 1), (5, 2)]
    assert settled(world, partitions[0], 1) == 1
    assert settled(world, partitions[0], 1, action="reject") == 0
    assert settled(world, partitions[1], 0, 1, 2) == 3
    assert rows_of(reader, partitions) == [(0, 0), (2, 2)]
    world.broker.restart()  # the transient ones were settled before it
    again = world.reader()
    assert rows_of(again, list(again.partitions(start, end))) == [(0, 0), (2, 2)]
    again.commit(end)
    assert world.leases() == [] and world.counts() == (0, 0)


def test_only_what_was_lost_asks_about_data_loss(world: World) -> None:
    reader, start, end, partitions = planned(world)
    settled(world, partitions[1], 1)
    world.broker.restart()
    with pytest.raises(LeaseExpired, match="has only 1 of the 3 messages that were planned"):
        world.reader().partitions(start, end)
    with pytest.raises(LeaseExpired, match="has only 1 of the 3 messages that were planned"):
        rows_of(reader, partitions)
    lenient = world.reader(failOnDataLoss="false")
    assert rows_of(lenient, list(lenient.partitions(start, end))) == [(0, 0), (1, 1), (2, 2)]
    assert rows_of(lenient, partitions) == [(0, 0), (1, 1), (2, 2)]


def test_rows_of_a_batch_that_is_over_cannot_be_acted_upon(world: World) -> None:
    reader, _, end, partitions = planned(world)
    reader.commit(end)
    with pytest.raises(LeaseExpired, match="cannot be acted upon any more: no lease .* settled already"):
        settled(world, partitions[0], 0, action="reject")
    lenient = {**world.options, "failOnDataLoss": "false"}
    row = {"queue": world.name, "lease": partitions[0].lease, "slot": 0, "action": "ack", "delay_ms": None}
    assert settle_table(pa.Table.from_pylist([row], pa.schema(SCHEMA)), lenient) == 0


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([("q", "7", 0, "drop", None)], "slot 0 of lease 7 on queue 'q' has action 'drop'; there are ack, requeue"),
        ([("q", "7", 0, None, None)], "has action 'None'"),
        ([("q", None, 0, "ack", None)], "queue, lease and slot must not be null"),
        ([("q", "7", 0, "delay", None)], "is to be delayed by delay_ms None; expected 1 to"),
        ([("q", "7", 0, "delay", 0)], "is to be delayed by delay_ms 0"),
        ([("q", "7", 0, "ack", None), ("q", "7", 0, "reject", None)], "twice, to be settled by ack and by reject"),
    ],
)
def test_a_row_that_makes_no_sense_is_named_and_nothing_is_done(rows: list[tuple[object, ...]], said: str) -> None:
    table = pa.Table.from_arrays(
        [pa.array(values, kind) for values, (_, kind) in zip(zip(*rows, strict=True), SCHEMA, strict=True)],
        schema=pa.schema(SCHEMA),
    )
    with pytest.raises(InputError, match=said):
        settle_table(table, {"port": "1", "patience": "1ms"})  # nobody is asked


def test_requests_are_bounded_and_name_every_slot_once() -> None:
    verdicts = {slot: ("reject" if slot % 2 else "ack", 0) for slot in range(50_000)}
    verdicts.update(dict.fromkeys(range(50_000, 90_000), ("requeue", 0)))
    verdicts.update({slot: ("delay", 1000 + slot % 3) for slot in range(90_000, 99_000)})
    named: list[tuple[str, int]] = []
    for request in requests(verdicts):
        lists = {name: runs for name, runs in request.items() if name != "delay"}
        waiting = [(f"delay {one['delay_ms']}", one["slots"]) for one in request.get("delay", [])]
        flat = [(name, first, last) for name, each in [*lists.items(), *waiting] for first, last in each]
        assert len(flat) <= 20_000
        assert sum(last - first + 1 for name, first, last in flat if name in ("reject", "requeue")) <= 20_000
        named += [(name, slot) for name, first, last in flat for slot in range(first, last + 1)]
    said = {slot: f"delay {delay}" if action == "delay" else action for slot, (action, delay) in verdicts.items()}
    assert sorted(named) == sorted((action, slot) for slot, action in said.items())


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"stream": "s"}, "'leaseColumns' is for queues; a stream has no leases"),
        ({"queue": "q", "leases": "false"}, "'leaseColumns' is for leased queues, and option 'leases' is false"),
    ],
)
def test_lease_columns_are_for_leased_queues(more: dict[str, str], said: str) -> None:
    with pytest.raises(OptionError, match=said):
        parse({"leaseColumns": "true", **more})


def test_rabbitmq_has_no_such_columns(rabbitmq: RunningBroker, name: str) -> None:
    from pyspark.sql.types import StringType, StructField, StructType

    from warrenmq.spark.source import AmqpDataSource

    source = AmqpDataSource({**reading(rabbitmq), "queue": name, "leaseColumns": "true"})
    assert source.schema().endswith("`lease` string, `slot` int")
    schema = StructType([StructField("lease", StringType())])
    for make in (source.reader, source.streamReader):
        with pytest.raises(OptionError, match="columns lease and slot are for queues of Warren that are read by lease"):
            make(schema)


def test_foreach_batch_sends_bad_rows_to_their_dead_letter_queue(
    spark: SparkSession, warren: RunningBroker, name: str, tmp_path: Path
) -> None:
    """The example of docs/spark.md, with a foreachBatch that fails once after it has settled."""
    with channel(warren) as declaring:
        declaring.queue_declare(
            name, durable=True, arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": f"{name}.dead"}
        )
        declaring.queue_declare(f"{name}.dead", durable=True)
    bodies = [b'{"total": %d}' % n if n % 10 else b"nonsense %d" % n for n in range(1000)]
    publish(warren, name, bodies)
    options = {**reading(warren), "queue": name, "leaseColumns": "true", "maxOffsetsPerTrigger": "400"}
    failures = [True]

    def act(batch: DataFrame, number: int) -> None:
        text = "try_parse_json(cast(body as string)) is null"
        judged = batch.selectExpr("*", f"if({text}, 'reject', null) as action")
        good = judged.filter("action is null").select("body")
        good.write.mode("overwrite").parquet(str(tmp_path / "lake" / f"batch={number}"))
        settle(judged.filter("action is not null"), options)
        if failures and not batch.isEmpty():
            failures.pop()
            raise RuntimeError("after settling")

    def start() -> Any:
        df = spark.readStream.format("amqp").options(**options).load()
        writing = df.writeStream.foreachBatch(act).option("checkpointLocation", str(tmp_path / "checkpoint"))
        return writing.trigger(availableNow=True).start()

    with pytest.raises(Exception, match="after settling"):
        finished(start())
    for _ in range(runs()):
        finished(start())
    lake = spark.read.parquet(str(tmp_path / "lake"))
    assert lake.count() == 900 and lake.select("body").distinct().count() == 900
    assert sorted(message.body for message in drain(warren, f"{name}.dead")) == sorted(
        body for body in bodies if body.startswith(b"nonsense")
    )
    assert depth(warren, name) == 0
