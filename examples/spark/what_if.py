"""Try a change of topology on yesterday's traffic before it is made: no broker needed.

    python examples/spark/what_if.py

A table of messages is routed twice: with the definitions as they are, and with one binding changed. What differs is
what the change would have done.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import warrenmq.spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# What `warren definitions export` or RabbitMQ's management API gives.
TODAY: dict[str, Any] = {
    "vhosts": [{"name": "/"}],
    "exchanges": [{"name": "shop", "vhost": "/", "type": "topic", "arguments": {}}],
    "queues": [{"name": "orders", "vhost": "/"}, {"name": "billing", "vhost": "/"}],
    "bindings": [
        {
            "source": "shop",
            "vhost": "/",
            "destination": "orders",
            "destination_type": "queue",
            "routing_key": "order.#",
            "arguments": {},
        },
        {
            "source": "shop",
            "vhost": "/",
            "destination": "billing",
            "destination_type": "queue",
            "routing_key": "*.paid",
            "arguments": {},
        },
    ],
}


def tomorrow() -> dict[str, Any]:
    """Somebody wants to narrow a binding. What would that do?"""
    changed = copy.deepcopy(TODAY)
    changed["bindings"][0]["routing_key"] = "order.*"
    return changed


def main(spark: SparkSession | None = None) -> list[tuple[str, str, str, int]]:
    """(routing key, outcome today, outcome tomorrow, messages), where the two differ."""
    spark = spark or warrenmq.spark.session()
    keys = ["order.new", "order.paid", "order.sent.abroad", "invoice.paid", "complaint"]
    messages = spark.createDataFrame(
        [("shop", keys[n % 5]) for n in range(1000)], "exchange string, routing_key string"
    )

    before = warrenmq.spark.route(messages, TODAY).withColumnsRenamed({"outcome": "today", "queues": "queues_today"})
    before = before.drop("reply_code", "reply_text", "scheduled_until")
    both = warrenmq.spark.route(before, tomorrow())
    differ = (
        both.where("queues_today <> queues")
        .groupBy("routing_key", "today", "outcome", "queues_today", "queues")
        .count()
        .orderBy("routing_key")
    )
    differ.show(truncate=False)
    return [(row.routing_key, row.today, row.outcome, row["count"]) for row in differ.collect()]


if __name__ == "__main__":
    main()
