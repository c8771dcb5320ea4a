"""A row keeps its id when Spark repeats its task, its batch or its job, so that who receives it can tell a repeat.

A task that is repeated because its broker was lost is in ``test_task_retries.py``.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.spark.support import ROOT, address, channel, drain, finished, publish, reading
from tests.support.brokers import RunningBroker
from warrenmq.spark.options import OptionError, parse

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
pytest.importorskip("pyspark", reason="PySpark is not installed")

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMA = pa.schema(
    [
        ("body", pa.binary()),
        ("routing_key", pa.string()),
        ("priority", pa.int32()),
        ("headers", pa.map_(pa.string(), pa.string())),
        ("timestamp", pa.timestamp("us", "UTC")),
    ]
)
Rows = list[dict[str, Any]]


def rows() -> Rows:
    """Each unlike the others in one column, and some that are the same in all."""
    base: dict[str, Any] = {"body": b"b", "routing_key": "k", "priority": 1, "headers": [("a", "1")], "timestamp": 5}
    unlike: Rows = [{"body": b"k"}, {"routing_key": "b"}, {"priority": None}, {"headers": [("a", "2")]}]
    unlike.append({"timestamp": 6})
    numbered = [{**base, "body": b"%d" % number} for number in range(50)]
    return [base, *({**base, **one} for one in unlike), base, base, *numbered]


def ids(rows: Rows, size: int) -> list[tuple[str, str]]:
    """Id and row, as a task gives them to rows that come in record batches of this size."""
    from warrenmq.spark.message_ids import ContentIds

    making = ContentIds("job-0-")
    found = []
    for start in range(0, len(rows), size):
        part = rows[start : start + size]
        found += list(zip(making.of(pa.RecordBatch.from_pylist(part, SCHEMA)), map(str, part), strict=True))
    return found


def test_ids_by_content_do_not_depend_on_the_order_or_on_how_rows_are_batched() -> None:
    first = ids(rows(), 1000)
    assert len({id for id, _ in first}) == len(first) == 58
    for seed in range(5):
        again = rows()
        random.Random(seed).shuffle(again)
        assert sorted(ids(again, 7)) == sorted(first)
    columns = pa.RecordBatch.from_pylist(rows(), SCHEMA)
    from warrenmq.spark.message_ids import content_numbers

    turned = columns.select(list(reversed(SCHEMA.names)))
    assert content_numbers(turned) == content_numbers(columns)


def test_ids_by_content_are_the_same_in_every_process() -> None:
    program = "from tests.spark.test_message_ids import ids, rows; print(ids(rows(), 1000))"
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'src'}"}
        run = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
        assert run.stdout.strip() == str(ids(rows(), 1000)), run.stderr


def test_another_way_to_make_ids_is_refused() -> None:
    with pytest.raises(OptionError, match="option 'messageIds' is 'random'; expected row or content"):
        parse({"exchange": "", "messageIds": "random"}, writing=True)


def declare(broker: RunningBroker, name: str, **arguments: object) -> None:
    with channel(broker) as declaring:
        declaring.queue_declare(name, durable=True, arguments={k.replace("_", "-"): v for k, v in arguments.items()})


def arrived(broker: RunningBroker, queue: str) -> list[tuple[str | None, bytes]]:
    return sorted((message.properties.message_id, message.body) for message in drain(broker, queue))


def test_a_job_that_is_submitted_again_after_a_repartition_gives_each_row_its_id(
    spark: SparkSession, warren: RunningBroker, name: str
) -> None:
    declare(warren, name)
    # Some rows are the same, and their copies lie in one partition.
    df = spark.range(300).selectExpr("string(id % 250) as body").repartition(3, "body")

    def written(df: DataFrame, **more: str) -> list[tuple[str | None, bytes]]:
        given = {**address(warren), "exchange": "", "routingKey": name, "batchKey": "job", **more}
        df.write.format("amqp").options(**given).mode("append").save()
        return arrived(warren, name)

    first = written(df, messageIds="content")
    assert len({id for id, _ in first}) == len(first) == 300
    # The same rows in the same partitions in another order, which is what a shuffle may give.
    assert written(df.sortWithinPartitions("body"), messageIds="content") == first
    assert written(df.sortWithinPartitions(df.body.desc()), messageIds="content") == first
    # Counted, they are the same as long as the order is.
    counted = written(df.sortWithinPartitions("body"))
    assert written(df.sortWithinPartitions("body")) == counted
    assert written(df.sortWithinPartitions(df.body.desc())) != counted


@pytest.mark.parametrize("repartitioned", [False, True])
def test_a_batch_that_is_repeated_gives_each_row_its_id(
    spark: SparkSession, warren: RunningBroker, name: str, repartitioned: bool, tmp_path: Path
) -> None:
    """The driver dies when the sink has all and Spark's log of commits has not: the next run repeats the batch."""
    target = f"{name}-target"
    declare(warren, name, x_queue_type="stream")
    declare(warren, target)
    publish(warren, name, [b"%d" % (number % 90) for number in range(100)])

    def run() -> list[tuple[str | None, bytes]]:
        given = {**reading(warren), "stream": name, "minPartitions": "2"}
        df = spark.readStream.format("amqp").options(**given).load().select("body")
        if repartitioned:
            df = df.repartition(3)
        writing = df.writeStream.format("amqp").option("checkpointLocation", str(tmp_path))
        if repartitioned:
            writing = writing.option("messageIds", "content")
        writing = writing.options(**address(warren), exchange="", routingKey=target)
        finished(writing.trigger(availableNow=True).start())
        return arrived(warren, target)

    first = run()
    assert len({id for id, _ in first}) == len(first) == 100
    assert sorted(int(body) for _, body in first) == sorted(number % 90 for number in range(100))
    assert run() == []
    for commit in (tmp_path / "commits").iterdir():
        commit.unlink()
    assert run() == first
