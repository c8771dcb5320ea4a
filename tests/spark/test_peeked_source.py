"""A batch read of a queue only looks, where the broker lets it: no consumer notices. One test runs Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.spark.support import channel, depth, drain, publish, reading
from tests.spark.test_connection import cutting_proxy
from tests.support.brokers import RunningBroker
from warrenmq.spark.addresses import Address

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytest.importorskip("pyspark", reason="PySpark is not installed")
pytest.importorskip("pyarrow", reason="pyarrow is not installed")


@pytest.fixture
def queue(warren: RunningBroker, name: str) -> str:
    with channel(warren) as declaring:
        declaring.queue_declare(name, durable=True)
    return name


def reader(options: dict[str, str]) -> Any:
    from pyspark.sql.types import BinaryType, StringType, StructField, StructType

    from warrenmq.spark.source import AmqpDataSource

    schema = StructType([StructField("body", BinaryType()), StructField("routing_key", StringType())])
    return AmqpDataSource(options).reader(schema)


def bodies(reader: Any, partitions: list[Any]) -> list[bytes]:
    return [row["body"] for each in partitions for table in reader.read(each) for row in table.to_pylist()]


def held(broker: RunningBroker, queue: str) -> int:
    _, leases = broker.http("GET", f"/api/queues/%2F/{queue}/leases")
    assert isinstance(leases, list)
    return len(leases)


def test_a_look_at_one_row_leaves_the_queue_to_its_consumers(
    spark: SparkSession, warren: RunningBroker, queue: str
) -> None:
    publish(warren, queue, [b"%d" % number for number in range(50)])
    df = spark.read.format("amqp").options(**reading(warren), queue=queue).load()
    assert df.limit(1).count() == 1
    assert df.count() == 50 and df.select("routing_key").distinct().collect()[0].routing_key == queue
    assert depth(warren, queue) == 50 and held(warren, queue) == 0
    messages = drain(warren, queue)
    assert [int(message.body) for message in messages] == list(range(50))
    assert not any(message.redelivered for message in messages)


def test_the_range_is_fixed_when_it_is_planned(warren: RunningBroker, queue: str) -> None:
    publish(warren, queue, [b"%d" % number for number in range(100)])
    look = reader({**reading(warren), "queue": queue, "minPartitions": "4"})
    partitions = look.partitions()
    assert len(partitions) == 4
    publish(warren, queue, [b"later"] * 10)
    assert [int(body) for body in bodies(look, partitions)] == list(range(100))
    with channel(warren) as taking:
        taking.basic_get(queue, no_ack=True)
    assert [int(body) for body in bodies(look, partitions)] == list(range(1, 100))
    assert bodies(look, look.partitions())[-1] == b"later"


def test_an_empty_queue_and_one_that_is_not_there(warren: RunningBroker, queue: str) -> None:
    look = reader({**reading(warren), "queue": queue})
    assert bodies(look, look.partitions()) == []
    with pytest.raises(Exception, match=f"no queue '{queue}-none' in vhost '/'"):
        reader({**reading(warren), "queue": f"{queue}-none"}).partitions()


def test_an_answer_that_is_cut_off_is_taken_up_where_it_ended(warren: RunningBroker, queue: str) -> None:
    publish(warren, queue, [b"%1000d" % number for number in range(2000)])
    (partition, *_) = partitions = reader({**reading(warren), "queue": queue}).partitions()
    assert len(partitions) == 2
    with cutting_proxy(warren.http_port, 700_000) as (port, connections):
        look = reader({**reading(warren), "queue": queue})
        from dataclasses import replace

        look.options = replace(look.options, http_hosts=(Address("127.0.0.1", port),))
        assert [int(body) for body in bodies(look, [partition])] == list(range(1000))
    assert len(connections) == 2


def test_what_was_leased_for_a_batch_read_is_held_for_minutes(warren: RunningBroker, queue: str) -> None:
    publish(warren, queue, [b"x"] * 10)
    look = reader({**reading(warren), "queue": queue, "leases": "true"})
    assert len(bodies(look, look.partitions())) == 10
    _, leases = warren.http("GET", f"/api/queues/%2F/{queue}/leases")
    assert isinstance(leases, list) and {lease["ttl_ms"] for lease in leases} == {600_000}
