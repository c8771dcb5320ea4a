"""Source and sink through a takeover: real nodes, a real etcd, a leader killed in the middle of a read and a write.

No row is lost or doubled: offsets and leases are in the log, which the node that goes on has.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.spark.protocol import Checkpoint, Fate, run
from tests.spark.support import channel, drain, publish
from tests.support.brokers import RunningBroker
from tests.support.cluster import Cluster, Member
from warrenmq.spark.options import parse

pytest.importorskip("pyspark", reason="PySpark is not installed")
pytest.importorskip("pyarrow", reason="pyarrow is not installed")

ROWS = 100


class Nodes:
    """A cluster for the whole file, with the addresses of all its nodes."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    @property
    def broker(self) -> RunningBroker:
        leader = self.cluster.need_leader()
        assert leader.process is not None
        return RunningBroker("warren", leader.port, leader.http_port, leader.folder, leader.process)

    def options(self) -> dict[str, str]:
        members = self.cluster.members
        return {
            "host": ",".join(f"127.0.0.1:{member.port}" for member in members),
            "httpHost": ",".join(f"127.0.0.1:{member.http_port}" for member in members),
            "retries": "20",
        }

    def kill_leader(self) -> Member:
        leader = self.cluster.need_leader()
        leader.kill()
        return leader


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("nodes"), 2, cluster_ack_timeout=30, cluster_ttl=20) as found:
        yield found


@pytest.fixture
def nodes(cluster: Cluster) -> Iterator[Nodes]:
    yield Nodes(cluster)
    for member in cluster.members:
        if member.process is None:
            member.start()
    cluster.wait_in_sync(2)


class Killed(Fate):
    """The leader dies once, at this point; the query does not."""

    def __init__(self, nodes: Nodes, point: str) -> None:
        super().__init__()
        self.nodes = nodes
        self.point = point

    def passes(self, point: str) -> None:
        super().passes(point)
        if point == self.point:
            self.nodes.kill_leader()


def bodies(count: int) -> list[bytes]:
    return [b"%06d" % number for number in range(count)]


@pytest.mark.parametrize(
    ("kind", "point"),
    [("stream", "batch 2 partitioned"), ("leased queue", "batch 2 planned"), ("leased queue", "batch 2 written")],
)
def test_an_ingest_loses_and_doubles_nothing_when_the_leader_is_killed_in_its_middle(
    nodes: Nodes, name: str, kind: str, point: str
) -> None:
    from pyspark.sql.types import BinaryType, StructField, StructType

    from warrenmq.spark.source import AmqpDataSource

    with channel(nodes.broker) as declaring:
        arguments = {"x-queue-type": "stream"} if kind == "stream" else {}
        declaring.queue_declare(name, durable=True, arguments=arguments)
    publish(nodes.broker, name, bodies(ROWS))
    what = {"stream": name} if kind == "stream" else {"queue": name, "leases": "true"}
    options = {**nodes.options(), **what, "maxOffsetsPerTrigger": "20"}
    reader: Any = AmqpDataSource(options).streamReader(StructType([StructField("body", BinaryType())]))
    checkpoint, fate = Checkpoint(), Killed(nodes, point)
    run(checkpoint, reader, fate, available_now=True)
    reader.stop()
    assert point in fate.passed
    assert checkpoint.rows() == bodies(ROWS)
    if kind != "stream":
        assert drain(nodes.broker, name) == []


def test_a_publish_confirms_every_row_when_the_leader_is_killed_in_its_middle(nodes: Nodes, name: str) -> None:
    """A row whose confirm was under way may come twice, with the same id: whoever reads by id gets each once."""
    import pyarrow

    from warrenmq.spark.publisher import Publisher

    with channel(nodes.broker) as declaring:
        declaring.queue_declare(name, durable=True, arguments={})

    def batches() -> Iterator[pyarrow.RecordBatch]:
        for start in range(0, 6000, 2000):
            yield pyarrow.record_batch({"body": bodies(6000)[start : start + 2000]})
            if start == 2000:
                nodes.kill_leader()

    options = parse({**nodes.options(), "exchange": "", "routingKey": name}, writing=True)
    outcomes = [outcome for chunk in Publisher(options, "id-").run(batches()) for outcome in chunk.outcomes]
    assert outcomes == ["confirmed"] * 6000
    found = {message.properties.message_id: message.body for message in drain(nodes.broker, name)}
    assert sorted(found.values()) == bodies(6000)
