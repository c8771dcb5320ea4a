"""format("amqp"): the data source Spark asks for readers and writers."""

from __future__ import annotations

from pyspark.sql.datasource import DataSource


class AmqpDataSource(DataSource):
    """Queues and streams to read, exchanges to write to."""

    @classmethod
    def name(cls) -> str:
        return "amqp"
