"""Publish a slice of the lake again, and say row by row what became of it.

    python examples/spark/replay.py localhost 5672 /tmp/lake /tmp/outcomes "routing_key like 'order.%'"

Each row carries its old message_id, so that consumers can tell what they have seen before.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import warrenmq.spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def main(
    host: str, port: int, lake: str, outcomes: str, where: str = "true", spark: SparkSession | None = None
) -> dict[str, int]:
    """How many rows were confirmed, returned, nacked, refused."""
    spark = spark or warrenmq.spark.session()
    slice = spark.read.parquet(lake).where(where)
    counts: dict[str, int] = warrenmq.spark.publish(slice, {"host": host, "port": str(port)}, outcomes)
    told = spark.read.parquet(outcomes)
    told.where("outcome <> 'confirmed'").select("message_id", "routing_key", "outcome", "reply_text").show(10, False)
    return counts


if __name__ == "__main__":
    condition = sys.argv[5] if len(sys.argv) > 5 else "true"
    print(main(sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4], condition))
