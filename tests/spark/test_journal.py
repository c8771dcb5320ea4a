"""The journal is an ordinary table for Spark, its folder as the broker writes it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pika
import pytest

from warrenmq.testing import Broker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytest.importorskip("pyspark", reason="PySpark is not installed")


def test_spark_reads_the_folder_as_it_is(spark: SparkSession, tmp_path: Path) -> None:
    from warrenmq.journal.export import export

    data, journal = tmp_path / "data", tmp_path / "journal"
    with Broker(data_dir=str(data)) as broker, pika.BlockingConnection(pika.URLParameters(broker.url)) as connection:
        channel = connection.channel()
        channel.queue_declare("q", durable=True)
        for n in range(5):
            channel.basic_publish("", "q", b"x", pika.BasicProperties(delivery_mode=2, message_id=f"m{n}"))
        channel.queue_purge("q")
    assert sum(rows for _, rows in export(data, journal)) == 15
    assert any(path.name.endswith(".index") for path in journal.iterdir())
    found = spark.read.parquet(str(journal)).groupBy("event").count().collect()
    assert {row["event"]: row["count"] for row in found} == {"published": 5, "enqueued": 5, "purged": 5}
