"""Queues, streams and exchanges as tables of SQL, as far as Spark lets a Python source be one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.spark.support import channel, drain, finished, publish, reading
from tests.support.brokers import RunningBroker
from warrenmq.spark.errors import one_line
from warrenmq.spark.options import OptionError, parse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def table(spark: SparkSession, name: str) -> Iterator[str]:
    table = name.replace("-", "_")
    yield table
    spark.sql(f"DROP TABLE IF EXISTS {table}")


def said(options: dict[str, str]) -> str:
    return ", ".join(f"{key} '{value}'" for key, value in options.items())


@pytest.mark.parametrize("columns", ["", "(offset BIGINT, body BINARY)"], ids=["without columns", "with columns"])
def test_a_stream_is_a_table(spark: SparkSession, warren: RunningBroker, name: str, table: str, columns: str) -> None:
    with channel(warren) as declaring:
        declaring.queue_declare(name, durable=True, arguments={"x-queue-type": "stream"})
    publish(warren, name, [b"a", b"b"])
    options = {**reading(warren), "stream": name}
    spark.sql(f"CREATE TABLE {table} {columns} USING amqp OPTIONS ({said(options)})")
    rows = spark.sql(f"SELECT offset, body FROM {table} WITH ({said(options)})").collect()
    assert sorted((row.offset, bytes(row.body)) for row in rows) == [(0, b"a"), (1, b"b")]
    stream = spark.readStream.options(**options).table(table)
    query = finished(stream.writeStream.format("memory").queryName(f"{table}_m").trigger(availableNow=True).start())
    assert sum(step["numInputRows"] for step in query.recentProgress) == 2
    with pytest.raises(Exception) as raised:
        spark.sql(f"SELECT * FROM {table}").collect()
    assert "give them with the statement, as in SELECT" in one_line(raised.value)


@pytest.mark.parametrize("columns", ["", "(body BINARY)"], ids=["without columns", "with columns"])
def test_an_exchange_is_a_table_to_insert_into(
    spark: SparkSession, warren: RunningBroker, name: str, table: str, columns: str
) -> None:
    with channel(warren) as declaring:
        declaring.queue_declare(name, durable=True)
    options = said({**reading(warren), "exchange": "", "routingKey": name})
    spark.sql(f"CREATE TABLE {table} {columns} USING amqp OPTIONS ({options})")
    spark.sql(f"INSERT INTO {table} WITH ({options}) (body) VALUES (cast('x' AS BINARY))")
    assert [message.body for message in drain(warren, name)] == [b"x"]
    with pytest.raises(Exception) as raised:
        spark.sql(f"INSERT INTO {table} (body) VALUES (cast('x' AS BINARY))")
    assert "give them with the statement" in one_line(raised.value)


def test_a_temporary_view_keeps_its_options(spark: SparkSession, warren: RunningBroker, name: str, table: str) -> None:
    with channel(warren) as declaring:
        declaring.queue_declare(name, durable=True)
    publish(warren, name, [b"a"] * 3)
    spark.sql(f"CREATE TEMPORARY VIEW {table}_v USING amqp OPTIONS ({said({**reading(warren), 'queue': name})})")
    assert spark.sql(f"SELECT count(*) AS n FROM {table}_v").collect()[0].n == 3


def test_what_spark_says_of_a_table_is_no_option_and_a_wrong_one_is_still_named() -> None:
    table = {"provider": "amqp", "owner": "me", "option.host": "h", "option.queue": "q", "location": "x"}
    assert parse(table).address == "h:5672" and parse({**table, "host": "other"}).address == "other:5672"
    with pytest.raises(OptionError, match="unknown option 'colour'"):
        parse({**table, "option.colour": "red"})
