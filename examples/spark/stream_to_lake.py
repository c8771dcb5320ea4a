"""A stream into a Parquet lake, exactly once, and some SQL over it.

    python examples/spark/stream_to_lake.py localhost 5672 /tmp/lake

Works with Warren and with RabbitMQ. Run it again and again: each run takes what is new.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import warrenmq.spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def main(host: str, port: int, lake: str, stream: str = "readings", spark: SparkSession | None = None) -> int:
    """How many messages this run brought in."""
    spark = spark or warrenmq.spark.session()
    readings = spark.readStream.format("amqp").options(host=host, port=port, stream=stream).load()
    query = (
        readings.selectExpr("offset", "routing_key", "timestamp", "cast(body as string) as json")
        .selectExpr("*", "from_json(json, 'sensor string, celsius double') as reading")
        .select("offset", "timestamp", "reading.sensor", "reading.celsius")
        .writeStream.format("parquet")
        .option("path", lake)
        .option("checkpointLocation", f"{lake}/_checkpoint")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    new = sum(step["numInputRows"] for step in query.recentProgress)
    spark.read.parquet(lake).groupBy("sensor").agg({"celsius": "avg", "*": "count"}).orderBy("sensor").show()
    return int(new)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
