"""What should be read and is gone is never passed over in silence: the query fails and names it, or goes on if told so.

Retention at any moment, streams that were deleted and declared anew, offsets that never were. The readers are driven
through Spark's protocol without Spark (``protocol.py``).
"""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.spark.protocol import Checkpoint, Fate, run
from tests.spark.support import channel, publish, reading
from tests.spark.test_connection import cutting_proxy
from tests.support.brokers import RunningBroker

pytest.importorskip("pyspark", reason="PySpark is not installed")
pytest.importorskip("pyarrow", reason="pyarrow is not installed")

from warrenmq.spark import stream_reading  # noqa: E402  (needs pyspark)
from warrenmq.spark.connect import connect  # noqa: E402
from warrenmq.spark.looking import DataLoss  # noqa: E402

SMALL = {"x-queue-type": "stream", "x-max-length-bytes": 20_000, "x-stream-max-segment-size-bytes": 10_000}


def declare(broker: RunningBroker, name: str, **arguments: object) -> None:
    with channel(broker) as declaring:
        declaring.queue_declare(name, durable=True, arguments={"x-queue-type": "stream", **arguments})


def declare_anew(broker: RunningBroker, name: str) -> None:
    with channel(broker) as deleting:
        deleting.queue_delete(name)
    declare(broker, name)


def bodies(first: int, count: int) -> list[bytes]:
    return [b"%d" % number for number in range(first, first + count)]


COLUMNS = ["body"]


@pytest.fixture(params=[["body"], ["exchange", "body"]], ids=["bodies alone", "columns"])
def both_ways(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bodies alone are read in another way than more: what is lost on the way is told both ways. (What planning finds
    lost has nothing to do with the columns.)"""
    monkeypatch.setitem(globals(), "COLUMNS", request.param)


def schema() -> Any:
    from pyspark.sql.types import BinaryType, StringType, StructField, StructType

    kinds = {"exchange": StringType(), "body": BinaryType()}
    return StructType([StructField(name, kinds[name]) for name in COLUMNS])


def reader(broker: RunningBroker, stream: str, **options: str) -> Any:
    from warrenmq.spark.source import AmqpDataSource

    return AmqpDataSource({**reading(broker), "stream": stream, **options}).streamReader(schema())


def batch(broker: RunningBroker, stream: str, **options: str) -> Any:
    from warrenmq.spark.source import AmqpDataSource

    return AmqpDataSource({**reading(broker), "stream": stream, **options}).reader(schema())


def rows(reader: Any, partitions: list[Any]) -> int:
    return sum(table.num_rows for partition in partitions for table in reader.read(partition))


def drained(broker: RunningBroker, stream: str, checkpoint: Checkpoint, **options: str) -> list[int]:
    run(checkpoint, reader(broker, stream, **options), Fate(), True)
    return sorted(int(row) for row in checkpoint.rows())


# --- declared anew


@pytest.mark.usefixtures("both_ways")
@pytest.mark.parametrize("count", [4, 10, 25], ids=["fewer", "as many", "more"])
def test_a_stream_declared_anew_is_data_loss_however_long_it_is(warren: RunningBroker, name: str, count: int) -> None:
    declare(warren, name)
    publish(warren, name, bodies(0, 10))
    checkpoint = Checkpoint()
    assert drained(warren, name, checkpoint) == list(range(10))
    declare_anew(warren, name)
    publish(warren, name, bodies(100, count))
    with pytest.raises(DataLoss, match=f"stream '{name}' was deleted and declared anew since offset 10"):
        drained(warren, name, checkpoint)
    taken = drained(warren, name, checkpoint, failOnDataLoss="false")
    assert taken == [*range(10), *range(100, 100 + count)]
    publish(warren, name, bodies(200, 2))
    assert drained(warren, name, checkpoint) == [*taken, 200, 201]


def test_a_stream_that_ends_before_the_checkpoint_is_data_loss_on_any_broker(broker: RunningBroker, name: str) -> None:
    declare(broker, name)
    publish(broker, name, bodies(0, 10))
    checkpoint = Checkpoint()
    assert drained(broker, name, checkpoint) == list(range(10))
    declare_anew(broker, name)
    publish(broker, name, bodies(100, 4))
    with pytest.raises(DataLoss, match=f"stream '{name}' (ends with 3, before offset 10|was deleted and declared)"):
        drained(broker, name, checkpoint)
    assert drained(broker, name, checkpoint, failOnDataLoss="false") == [*range(10), *range(100, 104)]


def test_a_stream_declared_anew_under_a_running_query_is_data_loss(broker: RunningBroker, name: str) -> None:
    declare(broker, name)
    publish(broker, name, bodies(0, 10))
    query = reader(broker, name)
    limit = query.getDefaultReadLimit()
    start = query.initialOffset()
    end = query.latestOffset(start, limit)
    assert rows(query, query.partitions(start, end)) == 10
    declare_anew(broker, name)
    publish(broker, name, bodies(0, 3))
    with pytest.raises(DataLoss, match=f"stream '{name}'"):
        query.latestOffset(end, limit)


@pytest.mark.usefixtures("both_ways")
def test_a_batch_planned_on_a_stream_that_is_declared_anew_before_it_is_read_is_data_loss(
    warren: RunningBroker, name: str
) -> None:
    declare(warren, name)
    publish(warren, name, bodies(0, 10))
    query = reader(warren, name)
    start = query.initialOffset()
    end = query.latestOffset(start, query.getDefaultReadLimit())
    partitions = query.partitions(start, end)
    declare_anew(warren, name)
    publish(warren, name, bodies(0, 20))
    for action in (lambda: rows(query, partitions), lambda: query.partitions(start, end)):
        with pytest.raises(DataLoss, match=f"stream '{name}' was deleted and declared anew"):
            action()
    lenient = reader(warren, name, failOnDataLoss="false")
    assert rows(lenient, partitions) == 0 and lenient.partitions(start, end) == []


def test_a_checkpoint_without_ids_goes_on_and_has_them_from_then_on(warren: RunningBroker, name: str) -> None:
    declare(warren, name)
    publish(warren, name, bodies(0, 10))
    checkpoint = Checkpoint()
    drained(warren, name, checkpoint)
    checkpoint.offsets = [json.dumps({"streams": json.loads(offset)["streams"]}) for offset in checkpoint.offsets]
    drained(warren, name, checkpoint)
    assert len(checkpoint.offsets) == 1, "a batch was built for nothing but the id"
    publish(warren, name, bodies(10, 5))
    assert drained(warren, name, checkpoint) == list(range(15))
    assert list(json.loads(checkpoint.offsets[-1])["ids"]) == [name]


# --- offsets that never were


def planned(made: Any, broker: RunningBroker, name: str, starting: str, **options: str) -> Any:
    query = made(broker, name, startingOffsets=starting, **options)
    return query.initialOffset() if made is reader else query.partitions()


def test_starting_offsets_beyond_the_end_are_data_loss(broker: RunningBroker, name: str) -> None:
    declare(broker, name)
    publish(broker, name, bodies(0, 10))
    lenient = {"failOnDataLoss": "false"}
    with ThreadPoolExecutor() as asking:  # at once: RabbitMQ never says that there is nothing, and each waits for it
        strict = [asking.submit(planned, made, broker, name, "11") for made in (reader, batch)]
        allowed = [
            asking.submit(planned, made, broker, name, offset, **options)
            for made in (reader, batch)
            for offset, options in (("10", {}), ("11", lenient))
        ]
        for refused in strict:
            with pytest.raises(DataLoss, match=f"option 'startingOffsets' is 11, but stream '{name}' ends with 9"):
                refused.result()
    streaming, beyond, *_ = [each.result() for each in allowed]
    assert streaming["streams"] == beyond["streams"] == {name: 10}


# --- retention


@pytest.mark.usefixtures("both_ways")
def test_retention_between_planning_and_reading_is_data_loss(broker: RunningBroker, name: str) -> None:
    declare(broker, name, **SMALL)
    for _ in range(2):
        publish(broker, name, [b"x" * 1000] * 8)
    query = batch(broker, name)
    (partition,) = query.partitions()
    assert rows(query, [partition]) > 0
    for _ in range(8):
        publish(broker, name, [b"x" * 1000] * 8)
    with pytest.raises(DataLoss, match=rf"offsets 0 to \d+ of stream '{name}' are gone \(retention\)"):
        rows(query, [partition])
    assert rows(batch(broker, name, failOnDataLoss="false"), [partition]) < 16


@pytest.mark.usefixtures("both_ways")
def test_retention_while_a_connection_is_lost_is_data_loss(
    warren: RunningBroker, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    declare(warren, name, **SMALL)
    publish(warren, name, [b"x" * 1000] * 15)
    (partition,) = batch(warren, name).partitions()
    connections: list[object] = []

    def connecting(*arguments: Any) -> Any:
        if connections:
            for _ in range(8):
                publish(warren, name, [b"x" * 1000] * 8)
        connections.append(arguments)
        return connect(*arguments)

    monkeypatch.setattr(stream_reading, "connect", connecting)
    with cutting_proxy(warren.port, 6000) as (port, _):
        options = {"port": str(port), "prefetchCount": "2"}
        with pytest.raises(DataLoss, match=rf"offsets [1-9]\d* to 14 of stream '{name}' are gone \(retention\)"):
            rows(batch(warren, name, **options), [partition])
    assert len(connections) == 2


@pytest.mark.usefixtures("both_ways")
def test_the_numbering_of_rabbitmqs_segments_is_no_data_loss(rabbitmq: RunningBroker, name: str) -> None:
    declare(rabbitmq, name, **{"x-stream-max-segment-size-bytes": 10_000})
    for _ in range(6):
        publish(rabbitmq, name, [b"x" * 1000] * 10)
    query = batch(rabbitmq, name, minPartitions="7")
    partitions = query.partitions()
    assert partitions[-1].end > 60, "this RabbitMQ leaves no gaps"
    assert rows(query, partitions) == 60
