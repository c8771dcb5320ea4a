"""A batch is bounded in messages and in bytes, over one queue or several, whatever kind of source it comes from.

The readers are asked as Spark asks them, without Spark: what it makes of their answers is in the sources' own tests.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.spark.support import channel, publish, reading
from tests.support.brokers import RunningBroker

pytest.importorskip("pyspark", reason="PySpark is not installed")
pytest.importorskip("pyarrow", reason="pyarrow is not installed")

KINDS = ["stream", "leased queue", "plain queue"]


def options(broker: RunningBroker, kind: str, names: str, **more: str) -> dict[str, str]:
    if kind == "leased queue" and not broker.is_warren:
        pytest.skip("leases are Warren's")
    leases = {} if kind == "stream" else {"leases": str(kind == "leased queue").lower()}
    return {**reading(broker), "stream" if kind == "stream" else "queue": names, **leases, **more}


def declare(broker: RunningBroker, kind: str, *names: str) -> None:
    with channel(broker) as declaring:
        for name in names:
            arguments = {"x-queue-type": "stream"} if kind == "stream" else {}
            declaring.queue_declare(name, durable=True, arguments=arguments)


def batches(options: dict[str, str]) -> list[list[tuple[str, bytes]]]:
    """Queue and body of every message, batch by batch, as an AvailableNow query takes them."""
    from pyspark.sql.types import BinaryType, StringType, StructField, StructType

    from warrenmq.spark.source import AmqpDataSource

    schema = StructType([StructField("queue", StringType()), StructField("body", BinaryType())])
    reader: Any = AmqpDataSource(options).streamReader(schema)
    at = reader.initialOffset()
    reader.prepareForTriggerAvailableNow()
    found: list[list[tuple[str, bytes]]] = []
    while (end := reader.latestOffset(at, reader.getDefaultReadLimit())) != at:
        read = [table for partition in reader.partitions(at, end) for table in reader.read(partition)]
        rows = [(row["queue"], row["body"]) for table in read for row in table.to_pylist()]
        reader.commit(end)
        at = end
        if rows:
            found.append(rows)
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_has_no_more_messages_than_allowed(broker: RunningBroker, name: str, kind: str) -> None:
    declare(broker, kind, name)
    publish(broker, name, [b"%d" % number for number in range(100)])
    taken = batches(options(broker, kind, name, maxOffsetsPerTrigger="40"))
    assert [len(batch) for batch in taken] == [40, 40, 20]
    assert sorted(int(body) for batch in taken for _, body in batch) == list(range(100))


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_has_no_more_bytes_than_allowed(broker: RunningBroker, name: str, kind: str) -> None:
    declare(broker, kind, name)
    publish(broker, name, [b"%1000d" % number for number in range(10)])
    taken = batches(options(broker, kind, name, maxBytesPerTrigger="4000"))
    assert [len(batch) for batch in taken] == [4, 4, 2]
    assert sorted(int(body) for batch in taken for _, body in batch) == list(range(10))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("names", ["{0}, {0}-other", "{0}*"])
def test_several_sources_by_list_or_pattern_share_the_limit(
    broker: RunningBroker, name: str, kind: str, names: str
) -> None:
    declare(broker, kind, name, f"{name}-other")
    for each in (name, f"{name}-other"):
        publish(broker, each, [each.encode()] * 10)
    taken = batches(options(broker, kind, names.format(name), maxOffsetsPerTrigger="10"))
    assert len(taken) == 2 and all(len(batch) == 10 for batch in taken)
    assert all({queue for queue, _ in batch} == {name, f"{name}-other"} for batch in taken)
    assert all(queue.encode() == body for batch in taken for queue, body in batch)
