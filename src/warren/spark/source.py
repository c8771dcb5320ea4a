"""format("amqp"): the data source Spark asks for readers and writers.

Duty: options in, the right reader or writer out. Not here: reading and writing themselves.
"""

from __future__ import annotations

from pyspark.sql.datasource import DataSource, DataSourceWriter
from pyspark.sql.types import StructType

from warren.spark.options import parse
from warren.spark.sink import AmqpStreamWriter, AmqpWriter


class AmqpDataSource(DataSource):
    """Queues and streams to read, exchanges to write to."""

    @classmethod
    def name(cls) -> str:
        return "amqp"

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        return AmqpWriter(parse(self.options, writing=True), schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> AmqpStreamWriter:
        return AmqpStreamWriter(parse(self.options, writing=True), schema)
