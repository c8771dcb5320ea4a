"""A broker with several addresses: asked in turn, and read on at the next when one is lost.

The broker here is a pair: one process serves, and when it is killed another one takes over its data at other ports.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.spark.protocol import Checkpoint, Fate, run
from tests.spark.support import available_now, channel, drain, kill, publish, serving
from tests.spark.test_connection import STEPS, cutting_proxy
from tests.support.brokers import RunningBroker, free_ports
from warrenmq.spark.addresses import Address, in_turn
from warrenmq.spark.connect import BrokerLost, connect
from warrenmq.spark.httpapi import HttpApi
from warrenmq.spark.options import OptionError, parse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytest.importorskip("pyspark", reason="PySpark is not installed")
pytest.importorskip("pyarrow", reason="pyarrow is not installed")


class Pair:
    """Two places for one broker, which runs in the first until it is taken over in the second."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ports = [(first, second) for first, second in zip(*[iter(free_ports(4))] * 2, strict=True)]
        self._serving = serving(folder, *self.ports[0])
        self.broker = self._serving.__enter__()

    def take_over(self) -> None:
        kill(self.broker)
        self.stop()
        self._serving = serving(self.folder, *self.ports[1])
        self.broker = self._serving.__enter__()

    def stop(self) -> None:
        self._serving.__exit__(None, None, None)

    def options(self) -> dict[str, str]:
        amqp = ",".join(f"127.0.0.1:{port}" for port, _ in self.ports)
        return {"host": amqp, "httpHost": ",".join(f"127.0.0.1:{port}" for _, port in self.ports)}


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    pair = Pair(tmp_path)
    yield pair
    pair.stop()


def bodies(count: int) -> list[bytes]:
    return [b"%06d" % number for number in range(count)]


def source(pair: Pair, kind: str, name: str, count: int) -> dict[str, str]:
    """A stream or queue with so many messages, and the options that read it."""
    with channel(pair.broker) as declaring:
        arguments = {"x-queue-type": "stream"} if kind == "stream" else {}
        declaring.queue_declare(name, durable=True, arguments=arguments)
    publish(pair.broker, name, bodies(count))
    if kind == "stream":
        return {**pair.options(), "stream": name}
    return {**pair.options(), "queue": name, "leases": str(kind == "leased queue").lower()}


# --- what can be said


@pytest.mark.parametrize(
    ("given", "amqp", "http"),
    [
        ({"host": "a, b:1 ,[::1]:2", "port": "7", "httpPort": "8"}, "a:7, b:1, [::1]:2", "a:8, b:8, [::1]:8"),
        ({"host": "::1", "tls": "true"}, "[::1]:5671", "[::1]:15672"),
        ({"host": "a,b", "httpHost": "c:1,d"}, "a:5672, b:5672", "c:1, d:15672"),
        ({"url": "amqp://u:p%40@a,b:1/v"}, "a:5672, b:1", "a:15672, b:15672"),
        ({"url": "amqps://[::1]:3,a"}, "[::1]:3, a:5671", "[::1]:15672, a:15672"),
        ({"host": "a:1,a:2"}, "a:1, a:2", "a:15672"),
    ],
)
def test_hosts_are_lists(given: dict[str, str], amqp: str, http: str) -> None:
    options = parse({"stream": "s", **given})
    assert (options.address, options.http_address) == (amqp, http)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"host": " , "}, "option 'host' names no host"),
        ({"host": "a:b"}, "option 'host' has 'a:b'; expected host, host:port"),
        ({"host": "a:"}, "option 'host' has 'a:'; expected"),
        ({"host": "a,:5"}, "option 'host' has ':5'; expected"),
        ({"host": "[::1"}, r"option 'host' has '\[::1'; expected"),
        ({"host": "[::1]5"}, r"option 'host' has '\[::1\]5'; expected"),
        ({"httpHost": "a:70000"}, "option 'httpHost' has port 70000; a port is 1 to 65535"),
        ({"url": "amqp://u:geheim@a:0,b"}, "option 'url' has port 0"),
        ({"url": "http://u:geheim@a"}, "option 'url' must look like"),
        ({"url": "amqp://u:geheim@[x"}, "option 'url' must look like"),
        ({"port": "70000"}, "option 'port' is 70000; a port is at most 65535"),
    ],
)
def test_a_host_that_is_none_is_named_and_the_password_beside_it_is_not(given: dict[str, str], text: str) -> None:
    with pytest.raises(OptionError, match=text) as error:
        parse({"stream": "s", **given})
    assert "geheim" not in str(error.value)


# --- who is asked


def test_when_none_answers_one_line_names_all_that_were_tried() -> None:
    first, second = free_ports(2)
    both = f"127.0.0.1:{first}, 127.0.0.1:{second}"
    options = parse({"queue": "q-*", "host": both, "httpHost": both, "retries": "1"})
    with pytest.raises(BrokerLost, match=f"no connection to the broker at {both} after 2 attempts: ") as lost:
        connect(options, "test")
    assert all(f"127.0.0.1:{port}: [Errno 111]" in str(lost.value) for port in (first, second))
    assert "\n" not in str(lost.value)
    with pytest.raises(BrokerLost, match=f"no answer from the HTTP API at {both} .* after 2 attempts: ") as unheard:
        HttpApi(options).names(stream=False)
    assert f"127.0.0.1:{first}: [Errno" in str(unheard.value) and f"127.0.0.1:{second}: [Errno" in str(unheard.value)


def test_a_host_that_says_nothing_is_passed_over_and_asked_last_from_then_on(broker: RunningBroker) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # takes connections, and never answers
        dumb = Address("127.0.0.1", silent.getsockname()[1])
        options = parse({"stream": "s", "host": f"{dumb},127.0.0.1:{broker.port}", "connectTimeout": "300ms"})
        assert in_turn(options.hosts)[0] == dumb
        connect(options, "test").close()
        assert in_turn(options.hosts) == (Address("127.0.0.1", broker.port), dumb)


def test_a_login_that_every_host_refuses_is_not_tried_again(broker: RunningBroker) -> None:
    (nobody,) = free_ports(1)
    options = parse(
        {
            "stream": "s",
            "host": f"127.0.0.1:{nobody},127.0.0.1:{broker.port}",
            "username": "no",
            "password": "no",
        }
    )
    with pytest.raises(BrokerLost, match=f"127.0.0.1:{broker.port} refused the connection: 127.0.0.1:{nobody}: "):
        connect(options, "test")


@pytest.mark.parametrize("way", ["read", "write"])
def test_a_host_that_falls_silent_after_the_login_is_left_for_the_next(
    warren: RunningBroker, name: str, way: str
) -> None:
    import pyarrow

    from warrenmq.spark.publisher import Publisher
    from warrenmq.spark.waiting import waiting

    with channel(warren) as declaring:
        declaring.queue_declare(name)
    with cutting_proxy(warren.port, at=STEPS["channel.open"], stall=True) as (port, connections):
        where = {"host": f"127.0.0.1:{port},127.0.0.1:{warren.port}", "connectTimeout": "300ms"}
        if way == "read":
            assert waiting(parse({**where, "queue": name}), [name]) == {name: 0}
        else:
            rows = [pyarrow.record_batch({"body": [b"x"]})]
            publisher = Publisher(parse({**where, "exchange": "", "routingKey": name}, writing=True), "")
            assert [chunk.outcomes for chunk in publisher.run(rows)] == [["confirmed"]]
        assert len(connections) == 1


# --- one is lost in the middle


class Takeover(Fate):
    """Nobody dies but the broker, once, at this point."""

    def __init__(self, pair: Pair, point: str) -> None:
        super().__init__()
        self.pair = pair
        self.point = point

    def passes(self, point: str) -> None:
        super().passes(point)
        if point == self.point:
            self.pair.take_over()


@pytest.mark.parametrize("point", ["batch 2 planned", "offset 2 logged", "batch 2 partitioned", "batch 2 written"])
@pytest.mark.parametrize("kind", ["stream", "leased queue", "plain queue"])
def test_a_query_goes_on_with_the_next_host(pair: Pair, name: str, kind: str, point: str) -> None:
    from pyspark.sql.types import BinaryType, StructField, StructType

    from warrenmq.spark.source import AmqpDataSource

    options = {**source(pair, kind, name, 100), "maxOffsetsPerTrigger": "20"}
    reader: Any = AmqpDataSource(options).streamReader(StructType([StructField("body", BinaryType())]))
    checkpoint, fate = Checkpoint(), Takeover(pair, point)
    run(checkpoint, reader, fate, available_now=True)
    reader.stop()
    assert point in fate.passed
    rows = checkpoint.rows()
    if kind == "plain queue":  # at least once
        assert sorted(set(rows)) == bodies(100)
    else:
        assert rows == bodies(100)
    if kind != "stream":
        assert drain(pair.broker, name) == []


@pytest.mark.parametrize("kind", ["stream", "leased queue", "peeked queue"])
def test_a_task_reads_on_at_the_next_host(pair: Pair, name: str, kind: str) -> None:
    from pyspark.sql.types import BinaryType, StructField, StructType

    from warrenmq.spark.lease_reading import LeasePartition, read_lease
    from warrenmq.spark.peeked import PeekPartition, look
    from warrenmq.spark.stream_reading import StreamPartition, read_range

    count = 12_000  # more than one record batch
    options = parse(source(pair, kind, name, count))
    schema = StructType([StructField("body", BinaryType())])
    if kind == "stream":
        tables: Iterator[Any] = read_range(options, schema, StreamPartition(name, 0, count))
    elif kind == "leased queue":
        _, lease = pair.broker.http("POST", f"/api/queues/%2F/{name}/leases", {"count": count})
        assert isinstance(lease, dict)
        tables = read_lease(options, schema, LeasePartition(name, str(lease["id"]), count))
    else:
        tables = look(options, PeekPartition(name, 0, 1 << 40))
    rows: list[Any] = []
    for number, table in enumerate(tables):
        if number == 0:
            pair.take_over()
        rows += [message.body for message in table] if kind == "peeked queue" else table.column("body").to_pylist()
    assert rows == bodies(count)


def test_a_write_goes_on_at_the_next_host(pair: Pair, name: str) -> None:
    import pyarrow

    from warrenmq.spark.publisher import Publisher

    source(pair, "plain queue", name, 0)

    def batches() -> Iterator[pyarrow.RecordBatch]:
        for start in range(0, 6000, 2000):
            yield pyarrow.record_batch({"body": bodies(6000)[start : start + 2000]})
            if start == 2000:
                pair.take_over()

    options = parse({**pair.options(), "exchange": "", "routingKey": name}, writing=True)
    outcomes = [outcome for chunk in Publisher(options, "id-").run(batches()) for outcome in chunk.outcomes]
    assert outcomes == ["confirmed"] * 6000
    found = {message.properties.message_id: message.body for message in drain(pair.broker, name)}
    assert sorted(found.values()) == bodies(6000)  # a message that came twice has the same id


def test_spark_reads_and_writes_on_with_the_next_host(spark: SparkSession, pair: Pair, name: str) -> None:
    options = source(pair, "stream", name, 50)
    into = f"{name}-copy"
    with channel(pair.broker) as declaring:
        declaring.queue_declare(into, durable=True)
    lake, checkpoint = pair.folder / "lake", pair.folder / "checkpoint"
    assert sum(available_now(spark, options, lake, checkpoint)) == 50
    pair.take_over()
    publish(pair.broker, name, bodies(50))
    assert sum(available_now(spark, options, lake, checkpoint)) == 50
    rows = spark.read.parquet(str(lake))
    assert rows.count() == 100
    rows.select("body").write.format("amqp").options(**pair.options(), exchange="", routingKey=into).mode(
        "append"
    ).save()
    assert len(drain(pair.broker, into)) == 100
