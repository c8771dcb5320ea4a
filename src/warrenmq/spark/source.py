"""format("amqp"): the data source Spark asks for readers and writers.

Duty: options in, the right reader or writer out: streams by offset, queues of Warren by lease, queues of RabbitMQ over
an open connection. Not here: reading and writing themselves.
"""

from __future__ import annotations

import uuid
from collections.abc import MutableMapping

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, DataSourceWriter
from pyspark.sql.types import StructType

from warrenmq.spark.connect import connect, is_warren
from warrenmq.spark.httpapi import HttpApi
from warrenmq.spark.leased import LeasedBatchReader, LeasedStreamReader
from warrenmq.spark.options import OptionError, Options, is_sink, parse
from warrenmq.spark.peeked import PeekedBatchReader
from warrenmq.spark.plain import PlainBatchReader, PlainStreamReader
from warrenmq.spark.schema import check_read_schema, names_a_lease, read_ddl, write_ddl
from warrenmq.spark.sink import AmqpStreamWriter, AmqpWriter
from warrenmq.spark.stream import StreamBatchReader, StreamStreamReader


class AmqpDataSource(DataSource):
    """Queues and streams to read, exchanges to write to."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        # Made once for each load() and kept in the plan: every action on that DataFrame reads the same leases.
        self.owner = f"batch-{uuid.uuid4().hex}"

    @classmethod
    def name(cls) -> str:
        return "amqp"

    def schema(self) -> str:
        if is_sink(self.options):  # CREATE TABLE without columns
            parse(self.options, writing=True)
            return write_ddl()
        options = parse(self.options)
        return read_ddl(bad_record=options.bad_records == "column", lease=options.lease_columns)

    def reader(self, schema: StructType) -> DataSourceReader:
        options = parse(self.options)
        check_read_schema(schema)
        if names_a_lease(schema):
            check_leased(options)
            return LeasedBatchReader(options, schema, self.owner)
        if options.stream:
            return StreamBatchReader(options, schema)
        if options.leases == "auto" and on_warren(options) and HttpApi(options).can_peek():
            return PeekedBatchReader(options, schema)
        if leases(options):
            return LeasedBatchReader(options, schema, self.owner)
        return PlainBatchReader(options, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        options = parse(self.options)
        check_read_schema(schema)
        if options.ending is not None:
            raise OptionError(f"option '{options.ending.option}' is for batch reads; a streaming query goes on")
        if names_a_lease(schema):
            check_leased(options)
        if options.stream:
            return StreamStreamReader(options, schema)
        if leases(options):
            return LeasedStreamReader(options, schema)
        return PlainStreamReader(options, schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        if overwrite:
            raise OptionError('format amqp cannot overwrite: what was published stays published; use mode("append")')
        return AmqpWriter(parse(self.options, writing=True), schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> AmqpStreamWriter:
        return AmqpStreamWriter(parse(self.options, writing=True), schema)


def check_leased(options: Options) -> None:
    """Whether there can be columns that tell of leases."""
    if options.stream or not leases(options):
        raise OptionError("the columns lease and slot are for queues of Warren that are read by lease, not for others")


def leases(options: Options) -> bool:
    """Whether queues are read by lease: as the option says, else when the broker is a Warren that has leases."""
    if options.leases != "auto":
        return options.leases == "true"
    return on_warren(options) and HttpApi(options).has_leases()


def on_warren(options: Options) -> bool:
    connection = connect(options, "broker check")
    try:
        return is_warren(connection)
    finally:
        connection.close()
