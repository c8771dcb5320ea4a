"""State by key over a source of ours, which Spark keeps with protobuf: the extra `[spark]` brings all it needs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.spark.support import channel, finished, publish, reading, runs
from tests.support.brokers import RunningBroker

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytest.importorskip("pyspark", reason="PySpark is not installed")

STORE = "spark.sql.streaming.stateStore.providerClass"
ROCKS = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def counting() -> Any:
    """How many messages of each kind there have been, over all batches."""
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
    from pyspark.sql.types import LongType, StructField, StructType

    class Counting(StatefulProcessor):
        def init(self, handle: StatefulProcessorHandle) -> None:
            self.count = handle.getValueState("count", StructType([StructField("n", LongType())]))

        def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:
            import pandas as pd

            known = self.count.get()
            number = (known[0] if known else 0) + sum(len(part) for part in rows)
            self.count.update((number,))
            yield pd.DataFrame({"kind": [key[0]], "n": [number]})

        def close(self) -> None:
            pass

    return Counting()


def test_what_was_counted_by_key_goes_on_with_the_next_run(
    spark: SparkSession, warren: RunningBroker, name: str, tmp_path: Path
) -> None:
    with channel(warren) as declaring:
        declaring.queue_declare(name, durable=True, arguments={"x-queue-type": "stream"})
    counts: dict[str, int] = {}

    def keep(batch: DataFrame, number: int) -> None:
        counts.update({row.kind: row.n for row in batch.collect()})

    def run() -> None:
        df = spark.readStream.format("amqp").options(**reading(warren), stream=name).load()
        grouped = df.selectExpr("cast(body as string) as kind").groupBy("kind")
        counted = grouped.transformWithStateInPandas(counting(), "kind string, n bigint", "Update", "None")
        writing = counted.writeStream.outputMode("update").foreachBatch(keep)
        finished(writing.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start())

    usual = spark.conf.get(STORE)
    spark.conf.set(STORE, ROCKS)
    try:
        for _ in range(2):
            publish(warren, name, [b"a", b"b", b"a"] * 5)
            for _ in range(runs()):
                run()
    finally:
        spark.conf.set(STORE, str(usual))
    assert counts == {"a": 20, "b": 10}
