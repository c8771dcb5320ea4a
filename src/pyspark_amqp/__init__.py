"""Lets Spark find format("amqp") by itself: it looks for packages named pyspark_* with a DefaultSource."""

from warren.spark.source import AmqpDataSource as DefaultSource

__all__ = ["DefaultSource"]
