"""The examples run, as they stand, and say what their first lines promise."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from tests.spark.support import channel, drain, publish
from tests.support.brokers import RunningBroker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXAMPLES = Path(__file__).parents[2] / "examples" / "spark"


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_what_if_tells_what_a_narrower_binding_would_do(spark: SparkSession) -> None:
    assert example("what_if").main(spark) == [("order.sent.abroad", "confirmed", "returned", 200)]


def test_stream_to_lake_takes_what_is_new_each_time(
    spark: SparkSession, rabbitmq: RunningBroker, name: str, tmp_path: Path
) -> None:
    with channel(rabbitmq) as declaring:
        declaring.queue_declare(name, durable=True, arguments={"x-queue-type": "stream"})
    run = example("stream_to_lake").main
    readings = [json.dumps({"sensor": f"s{n % 3}", "celsius": n / 10}).encode() for n in range(30)]
    publish(rabbitmq, name, readings)
    lake = str(tmp_path / "lake")
    assert run(rabbitmq.host, rabbitmq.port, lake, name, spark) == 30
    publish(rabbitmq, name, readings[:5])
    assert run(rabbitmq.host, rabbitmq.port, lake, name, spark) == 5
    assert spark.read.parquet(lake).count() == 35


def test_replay_publishes_the_slice_and_counts_what_became_of_it(
    spark: SparkSession, broker: RunningBroker, name: str, tmp_path: Path
) -> None:
    with channel(broker) as declaring:
        declaring.queue_declare(name, durable=True)
    lake = str(tmp_path / "lake")
    spark.range(10).selectExpr(
        "'' as exchange",
        f"if(id < 8, '{name}', '{name}-nobody') as routing_key",
        "concat('id-', id) as message_id",
        "cast(cast(id as string) as binary) as body",
        "id",
    ).write.parquet(lake)
    counts = example("replay").main(broker.host, broker.port, lake, str(tmp_path / "outcomes"), "id >= 4", spark)
    assert counts == {"confirmed": 4, "returned": 2}
    assert {message.properties.message_id for message in drain(broker, name)} == {f"id-{n}" for n in range(4, 8)}
