"""A query that writes to a broker, killed at any step of Spark's protocol, or at any two: every row arrives, as itself.

At least once is what a sink without transactions can promise, so the promise is about ids: what came is exactly the
rows' ids, each with its own row however often it came, and a row that the broker did not take is reported once. To an
exchange that deduplicates each comes once. Three
things may happen at a step: the driver dies (the next run repeats the batch), the task dies (Spark repeats the task),
the broker restarts (the task goes on). The driver is ``protocol.py``, the source a stream or a leased queue; a few of
these points in a real Spark are in ``test_killed_at_a_call.py``.
"""

from __future__ import annotations

import json
import pickle
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.spark.protocol import Checkpoint, Died, Fate, run
from tests.spark.test_crash_points import bury
from tests.support.brokers import free_ports
from warrenmq.client import Connection, Properties
from warrenmq.testing import Broker

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
pytest.importorskip("pyspark", reason="PySpark is not installed")

from warrenmq.spark.chunk import Chunk  # noqa: E402  (needs pyarrow)
from warrenmq.spark.deduplicated import Forgotten  # noqa: E402
from warrenmq.spark.httpapi import HttpApi  # noqa: E402
from warrenmq.spark.options import OptionError, parse  # noqa: E402
from warrenmq.spark.publisher import Publisher  # noqa: E402

SOURCES = ["stream", "leased queue"]
ONCE = "stream, once"  # to an exchange that deduplicates
DEEDS = ["the driver dies", "the task dies", "the broker restarts"]
FIRST = 5  # messages there from the start
MORE = 1  # messages that come after each death of the driver
A_BATCH = 4  # in two partitions
TOGETHER = 1  # rows in a record batch, so that a task is killed between its rows
ATTEMPTS = 4  # of a task, as in Spark
QUERY = "4711"


class TaskDied(BaseException):
    """The worker is gone. Its driver lives and tries the task again."""


class WriterFate(Fate):
    """As ``Fate``, with other things that can happen, and with the points of a task under way."""

    def __init__(self, at: int, deed: str, broker: Broker) -> None:
        super().__init__(at)
        self.deed = deed
        self.broker = broker
        self.in_task = False
        self.publishers: list[Publisher] = []

    def passes(self, point: str) -> None:
        self.passed.append(point)
        if len(self.passed) != self.at:
            return
        if self.deed == "the broker restarts":
            self.broker.restart()
            return
        for publisher in self.publishers:  # who is dead says no goodbye
            if publisher._connection is not None:
                publisher._connection.abort()
        if self.deed == "the task dies" and self.in_task:
            raise TaskDied(point)
        raise Died(point)


class World:
    """A broker with a queue that is read and one that is written to by one query, through however many deaths."""

    def __init__(self, folder: Path, source: str, once: bool = False) -> None:
        self.source = source
        self.once = once  # is written to an exchange that deduplicates?
        self.folder = folder
        port, http_port = free_ports(2)
        self.broker = Broker(data_dir=folder / "data", port=port, http_port=http_port).start()
        self.address = {"host": "127.0.0.1", "port": str(port)}
        self.reading = {**self.address, "httpPort": str(http_port), "maxOffsetsPerTrigger": str(A_BATCH)}
        self.http = HttpApi(parse({**self.address, "httpPort": str(http_port), "exchange": ""}, writing=True))
        self.number = 0

    def begin(self) -> None:
        self.number += 1
        self.published = 0
        self.name = f"q{self.number}"
        self.target = f"t{self.number}"
        self.report = self.folder / f"report-{self.number}"
        self.checkpoint = Checkpoint()
        with Connection(self.broker.url) as connection:
            declaring = connection.channel()
            arguments = {"x-queue-type": "stream"} if self.source == "stream" else {}
            declaring.queue_declare(self.name, durable=True, arguments=arguments)
            declaring.queue_declare(self.target, durable=True)
            if self.once:
                declaring.exchange_declare(self.target, "direct", durable=True)
                declaring.queue_bind(self.target, self.target, self.target)
        if self.once:
            self.set_window(self.target, 3_600_000)
        self.publish(FIRST)

    def set_window(self, exchange: str, milliseconds: int) -> None:
        value = {"pattern": f"^{exchange}$", "definition": {"deduplication-window": milliseconds}}
        path = f"/api/policies/%2F/{exchange}"
        status, answer = self.http.call("PUT", path, {**value, "apply-to": "exchanges"})
        assert status in (201, 204), answer

    def publish(self, count: int) -> None:
        with Connection(self.broker.url) as connection:
            publishing = connection.channel()
            publishing.confirm_select()
            bodies = [b"%d" % number for number in range(self.published, self.published + count)]
            publishing.publish_many("", self.name, bodies, Properties(delivery_mode=2))
            publishing.wait_for_confirms(30)
        self.published += count

    def reader(self) -> Any:
        from pyspark.sql.types import BinaryType, StructField, StructType

        from warrenmq.spark.source import AmqpDataSource

        where = {"stream": self.name} if self.source == "stream" else {"queue": self.name, "leases": "true"}
        schema = StructType([StructField("body", BinaryType())])
        return AmqpDataSource({**self.reading, **where, "minPartitions": "2"}).streamReader(schema)

    def writer(self, **more: str) -> Any:
        from pyspark.sql.types import BinaryType, StringType, StructField, StructType

        from warrenmq.spark.source import AmqpDataSource

        schema = StructType([StructField("body", BinaryType()), StructField("routing_key", StringType())])
        options = {"exchange": "", "unroutable": "report", "unroutablePath": str(self.report), "maxOutstanding": "1"}
        if self.once:
            options |= {
                "exchange": self.target,
                "deduplicate": "true",
                "checkpointLocation": str(self.spark_checkpoint),
            }
            options["httpPort"] = self.reading["httpPort"]
        options |= more
        return AmqpDataSource({**self.address, **options}).streamWriter(schema, False)

    @property
    def spark_checkpoint(self) -> Path:
        return self.folder / f"checkpoint-{self.number}"

    def note_begin(self, batch: int, at: float | None = None) -> None:
        """As Spark does it, before anything of a batch runs, and once."""
        file = self.spark_checkpoint / "offsets" / str(batch)
        if not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            began = int((time.time() if at is None else at) * 1000)
            file.write_text(f'v1\n{{"batchWatermarkMs":0,"batchTimestampMs":{began},"conf":{{}}}}\n{{}}')

    def live(self, at: int, deed: str = DEEDS[0]) -> list[str]:
        """One run of the query, to its end or until its driver dies; the points it passed."""
        reader, writer = self.reader(), self.writer()
        fate = WriterFate(at, deed, self.broker)
        with suppress(Died):
            run(self.checkpoint, reader, fate, True, lambda batch, parts: self.write(fate, writer, batch, parts))
        bury(reader)
        return fate.passed

    def write(self, fate: WriterFate, writer: Any, batch: int, partitions: list[list[Any]]) -> None:
        """As Spark does it: a task for each partition, tried again when it dies, and the driver's commit of them."""
        self.note_begin(batch)
        messages = []
        for partition, tables in enumerate(partitions):
            for attempt in range(ATTEMPTS):
                with suppress(TaskDied), task(partition, batch), deadly(fate, f"task {batch}/{partition}"):
                    fate.passes(f"task {batch}/{partition} begun")
                    written = pickle.loads(pickle.dumps(writer)).write(self.rows(fate, tables))
                    fate.passes(f"task {batch}/{partition} done")
                    messages.append(pickle.loads(pickle.dumps(written)))
                    break
                assert attempt < ATTEMPTS - 1
        fate.passes(f"all tasks of {batch} done")
        writer.commit(messages, batch)
        fate.passes(f"writer committed {batch}")

    def rows(self, fate: Fate, tables: list[Any]) -> Iterator[Any]:
        """What the query makes of what it read; some of it goes nowhere."""
        for table in tables:
            bodies = table.column("body").to_pylist()
            for start in range(0, len(bodies), TOGETHER):
                part = bodies[start : start + TOGETHER]
                keys = ["nowhere" if goes_nowhere(body) else self.target for body in part]
                fate.passes("some rows are asked for")
                yield pa.record_batch({"body": pa.array(part, pa.binary()), "routing_key": keys})

    def check_nothing_came(self) -> None:
        with Connection(self.broker.url) as connection:
            assert connection.channel().basic_get(self.target, no_ack=True) is None

    def finish(self) -> None:
        self.live(0)
        self.live(0)  # Spark settles the last batch of a run in the next one

    def check(self, story: str) -> None:
        wanted = [b"%d" % number for number in range(self.published)]
        arrived: dict[str | None, set[bytes]] = {}
        times = 0
        with Connection(self.broker.url) as connection:
            taking = connection.channel()
            while (message := taking.basic_get(self.target, no_ack=True)) is not None:
                arrived.setdefault(message.properties.message_id, set()).add(message.body)
                times += 1
        assert not self.once or times == len(arrived), (story, times, arrived)
        reported = self.reported()
        assert all(len(bodies) == 1 for bodies in arrived.values()), (story, arrived)
        ids = {next(iter(bodies)): id for id, bodies in arrived.items()}
        assert sorted(ids) == sorted(body for body in wanted if not goes_nowhere(body)), (story, arrived)
        assert len(ids) == len(arrived), (story, arrived)  # no row has two ids
        assert sorted(reported) == sorted(body for body in wanted if goes_nowhere(body)), (story, reported)
        assert not set(arrived).intersection(reported.values()), (story, arrived, reported)
        parts = [str(id).split("-") for id in [*arrived, *reported.values()]]
        assert {query for query, *_ in parts} == {QUERY}, story
        assert {int(batch) for _, batch, *_ in parts} <= self.checkpoint.commits, story
        assert self.counts() == {"confirmed": len(ids), "returned": len(reported)}, story

    def counts(self) -> dict[str, int]:
        counts: dict[str, int] = {}
        for file in self.report.glob("_counts-*.json"):
            for outcome, count in json.loads(file.read_text()).items():
                counts[outcome] = counts.get(outcome, 0) + count
        return counts

    def reported(self) -> dict[bytes, str]:
        """The ids of the rows that were written away, by their bodies; none is there twice."""
        from pyarrow import parquet

        rows = [row for file in self.report.glob("[!._]*.parquet") for row in parquet.read_table(file).to_pylist()]
        found = {row["body"]: row["message_id"] for row in rows}
        assert len(found) == len(rows), rows
        return found


def goes_nowhere(body: bytes) -> bool:
    return int(body) % 3 == 2


@contextmanager
def task(partition: int, batch: int) -> Iterator[None]:
    """What Spark's worker tells about the task under way."""
    from pyspark import TaskContext

    from warrenmq.spark.sink import BATCH_ID, QUERY_ID

    before = TaskContext.get()
    context: Any = object.__new__(TaskContext)
    context._partitionId = partition
    context._localProperties = {QUERY_ID: QUERY, BATCH_ID: str(batch)}
    TaskContext._setTaskContext(context)
    try:
        yield
    finally:
        TaskContext._setTaskContext(before)


@contextmanager
def deadly(fate: WriterFate, name: str) -> Iterator[None]:
    """The points of a task: rows went out and nobody knows of an answer, and all answers of some rows came."""
    read, settled = Publisher._read, Publisher._settled

    def reading(publisher: Publisher, timeout: float) -> None:
        if timeout == 0:  # right after rows were sent; other reads come as often as the machine is slow
            fate.publishers.append(publisher)
            fate.passes(f"{name}: rows sent")
        read(publisher, timeout)

    def settling(publisher: Publisher, outstanding: int) -> Iterator[Chunk]:
        for chunk in settled(publisher, outstanding):
            fate.passes(f"{name}: rows settled")
            yield chunk

    Publisher._read, Publisher._settled = reading, settling  # type: ignore[method-assign,assignment]
    fate.in_task = True
    try:
        yield
    finally:
        fate.in_task = False
        fate.publishers.clear()
        Publisher._read, Publisher._settled = read, settled  # type: ignore[method-assign]


@pytest.fixture
def world(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[World]:
    source, _, once = request.param.partition(", ")
    world = World(tmp_path, source, bool(once))
    yield world
    world.broker.stop()


every_source = pytest.mark.parametrize("world", SOURCES, indirect=True)
every_deed = pytest.mark.parametrize("deed", DEEDS)


@every_source
def test_a_query_that_nothing_happens_to_writes_every_row_once(world: World) -> None:
    world.begin()
    points = world.live(0)
    for part in ("begun", "rows sent", "rows settled", "done", "writer committed", "logged"):
        assert any(part in point for point in points), points
    world.finish()
    world.check("nobody dies")


@pytest.mark.parametrize(
    ("world", "deed"),
    [*(("stream", deed) for deed in DEEDS), ("leased queue", DEEDS[0]), *((ONCE, deed) for deed in DEEDS)],
    indirect=["world"],
)
def test_whatever_happens_at_one_step_every_row_arrives_under_its_id(world: World, deed: str) -> None:
    world.begin()
    for at, point in enumerate(world.live(0), 1):
        if deed == "the task dies" and not point.startswith("task"):
            continue  # there is none
        world.begin()
        story = world.live(at, deed)
        world.publish(MORE)
        if at % 8 == 0:
            world.broker.restart()
        world.finish()
        world.check(f"{deed} after {story[at - 1]} ({at})")


@pytest.mark.parametrize("world", ["stream"], indirect=True)
def test_a_row_that_is_published_when_its_batch_is_repeated_is_not_reported_any_more(world: World) -> None:
    world.begin()
    points = world.live(0)
    written = next(at for at, point in enumerate(points, 1) if point == "batch 0 written")
    world.begin()
    world.live(written)
    assert set(world.reported()) == {b"2"}
    with Connection(world.broker.url) as connection:
        connection.channel().queue_declare("nowhere", durable=True)
    world.finish()
    assert world.reported() == {}
    assert world.counts() == {"confirmed": FIRST}


@pytest.mark.parametrize("world", [ONCE], indirect=True)
def test_a_repeated_batch_that_may_be_older_than_the_window_fails(world: World) -> None:
    world.begin()
    world.set_window(world.target, 60_000)
    world.note_begin(0, time.time() - 55)  # within the window, but not within what clocks that differ leave of it
    with pytest.raises(Forgotten, match=r"rows of this batch may have been published from .* cannot be told any more"):
        world.live(0)
    world.check_nothing_came()
    world.set_window(world.target, 3_600_000)
    with pytest.raises(Forgotten):  # a longer window does not bring back what went before it
        world.live(0)
    world.check_nothing_came()


@pytest.mark.parametrize("world", [ONCE], indirect=True)
def test_a_task_that_outlives_what_its_exchange_remembers_fails(world: World) -> None:
    """Whatever pushed the ids out: here a maximum that is smaller than the batch."""
    world.begin()
    value = {"pattern": f"^{world.target}$", "definition": {"deduplication-window": 3_600_000, "deduplication-max": 1}}
    world.http.call("PUT", f"/api/policies/%2F/{world.target}", {**value, "apply-to": "exchanges"})
    with pytest.raises(Forgotten, match="deduplication-max 1, 1 ids evicted early"):
        world.live(0)


@pytest.mark.parametrize("world", [ONCE], indirect=True)
@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"exchange": ""}, "the default exchange never has one"),
        ({"exchange": "amq.direct"}, "exchange 'amq.direct' remembers no message ids"),
        ({"exchange": "missing"}, "there is no exchange 'missing' in vhost '/'"),
        ({"checkpointLocation": ""}, "needs its checkpoint"),
        ({"persistent": "false"}, "needs persistent messages"),
    ],
)
def test_a_query_that_cannot_be_exact_does_not_begin(world: World, change: dict[str, str], text: str) -> None:
    world.begin()
    with pytest.raises(OptionError, match=text):
        world.writer(**change)


@pytest.mark.soak
@pytest.mark.timeout(0)
@every_deed
@pytest.mark.parametrize("world", [*SOURCES, ONCE], indirect=True)
def test_whatever_happens_at_two_steps_every_row_arrives_under_its_id(world: World, deed: str) -> None:
    world.begin()
    for first in range(1, len(world.live(0)) + 1):
        second = 0
        while True:
            second += 1
            world.begin()
            before = world.live(first)
            world.publish(MORE)
            if (first + second) % 16 == 0:
                world.broker.restart()
            after = world.live(second, deed)
            if len(after) < second:
                break  # it came to its end before that point
            world.publish(MORE)
            if (first + second) % 16 == 8:
                world.broker.restart()
            world.finish()
            world.check(f"died after {before[-1]} ({first}), then {deed} after {after[second - 1]} ({second})")
