"""Lets Spark find format("amqp") by itself: it looks for packages named pyspark_* with a DefaultSource."""

from warrenmq.spark.source import AmqpDataSource as DefaultSource

__all__ = ["DefaultSource"]
