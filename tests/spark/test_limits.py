"""A batch is bounded in messages and in bytes, over one queue or several, whatever kind of source it comes from.

The readers are asked as Spark asks them, without Spark: what it makes of their answers is in the sources' own tests.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.spark.support import channel, publish, reading
from tests.support.brokers import RunningBroker

pytest.importorskip("pyspark", reason="PySpark is not installed")
pytest.importorskip("pyarrow", reason="pyarrow is not installed")

KINDS = ["stream", pytest.param("leased queue", marks=pytest.mark.warren_only), "plain queue"]


def options(broker: RunningBroker, kind: str, names: str, **more: str) -> dict[str, str]:
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


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_waits_for_enough_messages_but_no_longer_than_the_delay(
    broker: RunningBroker, name: str, kind: str
) -> None:
    from pyspark.sql.types import BinaryType, StructField, StructType

    from warrenmq.spark.gathering import Gathering
    from warrenmq.spark.options import parse
    from warrenmq.spark.source import AmqpDataSource

    declare(broker, kind, name)
    given = options(broker, kind, name, minOffsetsPerTrigger="10", maxTriggerDelay="5m")
    reader: Any = AmqpDataSource(given).streamReader(StructType([StructField("body", BinaryType())]))
    now = [0.0]
    reader._gathering = Gathering(parse(given), lambda: now[0])
    at = reader.initialOffset()

    def batch() -> int:
        """The rows of the next batch, after those that only settle the one before."""
        nonlocal at
        for _ in range(3):
            end = json.loads(json.dumps(reader.latestOffset(at, reader.getDefaultReadLimit())))
            tables = [table for part in reader.partitions(at, end) for table in reader.read(part)]
            reader.commit(end)
            at = end
            if tables:
                return sum(table.num_rows for table in tables)
        return 0

    publish(broker, name, [b"x"] * 3)
    assert batch() == 3  # the first batch of a run waits for nothing
    publish(broker, name, [b"x"] * 9)
    now[0] = 299.0
    assert batch() == 0
    publish(broker, name, [b"x"])
    assert batch() == 10
    publish(broker, name, [b"x"] * 2)
    assert batch() == 0
    now[0] = 599.0
    assert batch() == 2


@pytest.mark.parametrize("kind", KINDS)
def test_available_now_waits_for_no_more_messages_than_there_are(broker: RunningBroker, name: str, kind: str) -> None:
    declare(broker, kind, name)
    publish(broker, name, [b"%d" % number for number in range(25)])
    taken = batches(options(broker, kind, name, minOffsetsPerTrigger="10", maxOffsetsPerTrigger="10"))
    assert [len(batch) for batch in taken] == [10, 10, 5]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"minOffsetsPerTrigger": "0"}, "option 'minOffsetsPerTrigger' is 0; expected 1 or more"),
        ({"minOffsetsPerTrigger": "9", "maxOffsetsPerTrigger": "8"}, "'minOffsetsPerTrigger' is 9, more than"),
        ({"maxTriggerDelay": "5m"}, "option 'maxTriggerDelay' needs option 'minOffsetsPerTrigger'"),
        ({"minOffsetsPerTrigger": "9", "maxTriggerDelay": "soon"}, "expected a duration such as"),
    ],
)
def test_limits_that_make_no_sense_are_refused_in_one_line(given: dict[str, str], said: str) -> None:
    from warrenmq.spark.options import OptionError, parse

    with pytest.raises(OptionError, match=said):
        parse({"stream": "s", **given})
