"""Filters on offset, queue and timestamp end in the offsets that are read, and never leave out a row."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.spark.support import publish, reading
from tests.spark.test_limits import declare, options
from tests.support.brokers import RunningBroker
from warrenmq.client import Properties
from warrenmq.spark.options import OptionError, parse

datasource = pytest.importorskip("pyspark.sql.datasource", reason="PySpark is not installed")
pytest.importorskip("pyarrow", reason="pyarrow is not installed")
if not hasattr(datasource, "EqualTo"):
    pytest.skip("Spark before 4.1 pushes no filters to Python sources", allow_module_level=True)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SETTING = "spark.sql.python.filterPushdown.enabled"
OFFSET, QUEUE, TIME = ("offset",), ("queue",), ("timestamp",)


def ranges(given: dict[str, str], *filters: Any) -> list[tuple[str, int, int]]:
    """Which offsets of which streams a batch read of these options and filters reads."""
    from pyspark.sql.types import BinaryType, StructField, StructType

    from warrenmq.spark.source import AmqpDataSource

    reader = AmqpDataSource(given).reader(StructType([StructField("body", BinaryType())]))
    assert list(reader.pushFilters(list(filters))) == list(filters)  # Spark evaluates them all again
    found: list[Any] = [part for part in reader.partitions() if part.start < part.end]  # type: ignore[attr-defined]
    return [(part.stream, part.start, part.end) for part in found]


def test_filters_on_offset_bound_what_is_read(warren: RunningBroker, name: str) -> None:
    from pyspark.sql.datasource import (
        EqualNullSafe,
        EqualTo,
        GreaterThan,
        GreaterThanOrEqual,
        In,
        IsNotNull,
        LessThan,
        LessThanOrEqual,
        Not,
    )

    declare(warren, "stream", name)
    publish(warren, name, [b"x"] * 100)
    given = options(warren, "stream", name)
    for filters, expected in (
        ([], (0, 100)),
        ([EqualTo(OFFSET, 7)], (7, 8)),
        ([EqualNullSafe(OFFSET, 7)], (7, 8)),
        ([GreaterThan(OFFSET, 7)], (8, 100)),
        ([GreaterThanOrEqual(OFFSET, 7)], (7, 100)),
        ([LessThan(OFFSET, 7)], (0, 7)),
        ([LessThanOrEqual(OFFSET, 7)], (0, 8)),
        ([In(OFFSET, (9, 7, 30))], (7, 31)),
        ([GreaterThan(OFFSET, 20), LessThan(OFFSET, 50), GreaterThan(OFFSET, 30), IsNotNull(OFFSET)], (31, 50)),
        ([LessThan(OFFSET, 5_000)], (0, 100)),
        # What is not known leaves all there is.
        ([Not(EqualTo(OFFSET, 7))], (0, 100)),
        ([EqualNullSafe(OFFSET, None)], (0, 100)),
        ([In(OFFSET, (7, None))], (0, 100)),
        ([LessThan(("body",), b"x"), EqualTo(("headers", "offset"), 7)], (0, 100)),
        ([EqualTo(TIME, datetime(2020, 1, 1, tzinfo=UTC))], (0, 100)),
    ):
        assert ranges(given, *filters) == [(name, *expected)], filters
    for filters in ([GreaterThan(OFFSET, 5_000)], [LessThan(OFFSET, -1)], [EqualTo(OFFSET, 7), EqualTo(OFFSET, 8)]):
        assert ranges(given, *filters) == [], filters
    bounded = {**given, "startingOffsets": "10", "endingOffsets": "20"}
    assert ranges(bounded, GreaterThan(OFFSET, 15)) == [(name, 16, 20)]
    assert ranges(bounded, GreaterThan(OFFSET, 5)) == [(name, 10, 20)]


def test_filters_on_queue_choose_among_streams(warren: RunningBroker, name: str) -> None:
    from pyspark.sql.datasource import EqualTo, In, LessThan, Not

    names = [f"{name}-{letter}" for letter in "abc"]
    declare(warren, "stream", *names)
    for each in names:
        publish(warren, each, [b"x"] * 3)
    given = options(warren, "stream", f"{name}-*")
    assert ranges(given, EqualTo(QUEUE, names[1])) == [(names[1], 0, 3)]
    assert ranges(given, In(QUEUE, (names[2], "nobody", None)), LessThan(OFFSET, 2)) == [(names[2], 0, 2)]
    assert ranges(given, EqualTo(QUEUE, names[1]), EqualTo(QUEUE, names[2])) == []
    assert len(ranges(given, Not(EqualTo(QUEUE, names[1])))) == 3


def test_filters_on_timestamp_bound_offsets_only_within_the_tolerance_that_was_given(
    broker: RunningBroker, name: str
) -> None:
    from pyspark.sql.datasource import GreaterThan, GreaterThanOrEqual, LessThan

    declare(broker, "stream", name)
    publish(broker, name, [b"x"] * 5)
    time.sleep(6)  # more than the tolerance and what is added to it; longer does no harm
    middle = datetime.now(UTC)
    publish(broker, name, [b"x"] * 5, Properties(delivery_mode=2, timestamp=int(middle.timestamp())))
    given = options(broker, "stream", name)
    tolerant = {**given, "timestampTolerance": "1s"}
    year = timedelta(days=365)
    assert ranges(given, GreaterThan(TIME, middle)) == [(name, 0, 10)]
    assert ranges(tolerant, GreaterThanOrEqual(TIME, middle)) == [(name, 5, 10)]
    assert ranges(tolerant, GreaterThan(TIME, middle - year)) == [(name, 0, 10)]
    assert ranges(tolerant, LessThan(TIME, middle - timedelta(seconds=4))) == [(name, 0, 5)]
    assert ranges(tolerant, LessThan(TIME, middle + year)) == [(name, 0, 10)]
    assert ranges(tolerant, LessThan(TIME, middle - year)) == []
    assert ranges(tolerant, GreaterThan(TIME, datetime(1, 1, 1, tzinfo=UTC))) == [(name, 0, 10)]
    # What was written so long before or after it arrived may still be wanted.
    very = {**given, "timestampTolerance": "30d"}
    assert ranges(very, GreaterThan(TIME, middle)) == [(name, 0, 10)]
    assert ranges(very, LessThan(TIME, middle - timedelta(days=20))) == [(name, 0, 10)]


def test_a_tolerance_that_is_none_is_refused() -> None:
    with pytest.raises(OptionError, match="'timestampTolerance' is 'some'; expected a duration"):
        parse({"stream": "s", "timestampTolerance": "some"})
    with pytest.raises(OptionError, match="'timestampTolerance' is for streams"):
        parse({"queue": "q", "timestampTolerance": "5s"})


@contextmanager
def setting(spark: SparkSession, value: str) -> Iterator[None]:
    before = spark.conf.get(SETTING)
    spark.conf.set(SETTING, value)
    try:
        yield
    finally:
        spark.conf.set(SETTING, str(before))


def test_spark_pushes_filters_and_has_the_same_rows_where_it_does_not(
    spark: SparkSession, warren: RunningBroker, name: str
) -> None:
    declare(warren, "stream", name)
    publish(warren, name, [b"%d" % number for number in range(100)], Properties(timestamp=1_767_268_800))

    def read(where: str) -> DataFrame:
        given = {**reading(warren), "stream": name, "minPartitions": "10"}
        return spark.read.format("amqp").options(**given).load().where(where).select("offset", "body")

    for where, expected, parts in (
        ("offset >= 90 and offset < 95", range(90, 95), 5),
        ("offset in (3, 5)", [3, 5], 3),
        ("offset > 1000", [], 1),
        ("offset = 3 or offset = 7", [3, 7], 10),
        ("offset > 97 and timestamp > '2026-01-01 11:00:00'", [98, 99], 2),
        ("offset > 97 and timestamp < '2026-01-01 11:00:00'", [], 2),
        (f"queue = '{name}' and offset % 50 = 1", [1, 51], 10),
        ("queue = 'another'", [], 1),
    ):
        for value in ("true", "false"):
            with setting(spark, value):
                df = read(where)
                assert sorted(row.offset for row in df.collect()) == list(expected), (where, value)
                assert df.rdd.getNumPartitions() == (parts if value == "true" else 10), (where, value)
