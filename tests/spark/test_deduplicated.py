"""The sink with ``deduplicate``, in a real Spark: what is repeated is not there twice, or the write fails.

Every step at which something may die is in ``test_sink_crash_points.py``.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.spark.support import channel, drain, finished, reading
from tests.support import web
from tests.support.brokers import RunningBroker
from warrenmq.spark.options import OptionError, parse

pytest.importorskip("pyspark", reason="PySpark is not installed")

from warrenmq.spark.jobs.publish import publish

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = 100


def prepare(broker: RunningBroker, name: str, window: int = 3_600_000) -> None:
    with channel(broker) as declaring:
        declaring.queue_declare(name, durable=True)
        declaring.exchange_declare(name, "fanout", durable=True)
        declaring.queue_bind(name, name, "")
    value = {"pattern": f"^{name}$", "definition": {"deduplication-window": window}, "apply-to": "exchanges"}
    url = f"http://{broker.host}:{broker.http_port}/api/policies/%2F/{name}"
    answer = web.put(url, json=value, auth=("guest", "guest"))
    assert answer.status_code in (201, 204), answer.text


def bodies(broker: RunningBroker, name: str) -> list[int]:
    return sorted(int(message.body) for message in drain(broker, name))


def test_a_batch_that_a_restarted_query_repeats_is_not_there_twice(
    spark: SparkSession, warren: RunningBroker, name: str, tmp_path: Path
) -> None:
    prepare(warren, name)
    source, checkpoint = tmp_path / "in", tmp_path / "checkpoint"
    spark.range(ROWS).selectExpr("cast(id as string) as body").write.json(str(source))

    def run() -> None:
        query = (
            spark.readStream.schema("body string")
            .json(str(source))
            .writeStream.format("amqp")
            .options(**reading(warren), exchange=name, routingKey="k", deduplicate="true")
            .option("checkpointLocation", str(checkpoint))
            .trigger(availableNow=True)
            .start()
        )
        finished(query)

    run()
    assert bodies(warren, name) == list(range(ROWS))
    for file in (checkpoint / "commits").glob("*0*"):  # as if the driver had died before it was noted
        file.unlink()
    run()
    assert bodies(warren, name) == []
    for file in (checkpoint / "commits").glob("*0*"):
        file.unlink()
    noted = checkpoint / "offsets" / "0"
    version, metadata, *rest = noted.read_text().splitlines()
    older = {**json.loads(metadata), "batchTimestampMs": int((time.time() - 3550) * 1000)}
    noted.write_text("\n".join([version, json.dumps(older), *rest]))
    (checkpoint / "offsets" / ".0.crc").unlink(missing_ok=True)
    with pytest.raises(Exception, match="cannot be told any more"):
        run()
    assert bodies(warren, name) == []


def test_a_job_that_is_submitted_again_is_not_there_twice(
    spark: SparkSession, warren: RunningBroker, name: str
) -> None:
    prepare(warren, name)
    began = str(int(time.time() * 1000))

    def write(**more: str) -> None:
        df = spark.range(ROWS).selectExpr("cast(id as string) as body")
        options = {**reading(warren), "exchange": name, "routingKey": "k", "deduplicate": "true", **more}
        df.write.format("amqp").options(**options).mode("append").save()

    for _ in range(2):
        write(batchKey="job", batchBegan=began)
    assert bodies(warren, name) == list(range(ROWS))
    write()  # a job of its own
    assert bodies(warren, name) == list(range(ROWS))
    with pytest.raises(Exception, match="'batchKey' and 'batchBegan' go together"):
        write(batchKey="job")
    with pytest.raises(Exception, match="cannot be told any more"):
        write(batchKey="old", batchBegan="2020-01-01T00:00:00Z")
    assert bodies(warren, name) == []


def test_the_job_publish_sends_nothing_twice_either(
    spark: SparkSession, warren: RunningBroker, name: str, tmp_path: Path
) -> None:
    prepare(warren, name)
    df = spark.range(ROWS).selectExpr("cast(id as string) as body")
    options = {**reading(warren), "exchange": name, "routingKey": "k", "deduplicate": "true", "batchKey": "job"}
    began = {"batchBegan": str(int(time.time() * 1000))}
    for _ in range(2):
        assert publish(df, {**options, **began}, str(tmp_path / "outcomes")) == {"confirmed": ROWS}
    assert bodies(warren, name) == list(range(ROWS))
    with pytest.raises(OptionError, match="'batchKey' and 'batchBegan' go together"):
        publish(df, options, str(tmp_path / "outcomes"))
    with pytest.raises(Exception, match="cannot be told any more"):
        publish(df, {**options, "batchBegan": "2020-01-01T00:00:00Z"}, str(tmp_path / "outcomes"))


def test_rabbitmq_is_not_taken_for_a_broker_that_deduplicates(
    spark: SparkSession, rabbitmq: RunningBroker, name: str
) -> None:
    with channel(rabbitmq) as declaring:
        declaring.exchange_declare(name, "fanout", durable=True)
    df = spark.range(1).selectExpr("cast(id as string) as body")
    options: dict[str, Any] = {**reading(rabbitmq), "exchange": name, "routingKey": "k", "deduplicate": "true"}
    with pytest.raises(Exception, match="on RabbitMQ nothing does and rows are written at least once"):
        df.write.format("amqp").options(**options).mode("append").save()


@pytest.mark.parametrize(("given", "milliseconds"), [("1714557600000", 1714557600000), ("2024-05-01T10:00:00Z", None)])
def test_the_time_of_the_first_submission_is_a_time(given: str, milliseconds: int | None) -> None:
    options = parse({"exchange": "x", "batchBegan": given}, writing=True)
    assert options.batch_began == (milliseconds or 1714557600000)


def test_what_is_no_time_is_refused() -> None:
    with pytest.raises(OptionError, match="option 'batchBegan' is 'yesterday'; expected a time such as"):
        parse({"exchange": "x", "batchBegan": "yesterday"}, writing=True)
