"""A worker of Spark that has read or written once is not searched for garbage whole after every task."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytest.importorskip("pyarrow", reason="pyarrow is not installed")
pytest.importorskip("pyspark", reason="PySpark is not installed")


def counts(batches: Iterator[Any]) -> Iterator[Any]:
    """In a task: how many objects are left alone after reading has begun, and after it has begun again."""
    import gc

    import pyarrow as pa
    from pyspark.sql.types import BinaryType, StructField, StructType

    from warrenmq.spark.columns import Columns

    schema = StructType([StructField("body", BinaryType())])
    for _ in batches:
        Columns(schema, "q")
        first = gc.get_freeze_count()
        Columns(schema, "q")
        yield pa.record_batch({"first": [first], "second": [gc.get_freeze_count()]})


def test_what_a_worker_has_imported_is_left_alone_by_the_collector_and_only_that(spark: SparkSession) -> None:
    found = spark.range(1).mapInArrow(counts, "first bigint, second bigint").collect()
    assert [row.first > 10_000 and row.first == row.second for row in found] == [True]


def test_a_process_that_is_no_worker_is_left_as_it_is() -> None:
    before = gc.get_freeze_count()
    assert len(list(counts(iter([None])))) == 1
    assert gc.get_freeze_count() == before
