"""A worker of Spark imports what it needs, and is not searched for garbage whole after every task."""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from tests.spark.support import ROOT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytest.importorskip("pyarrow", reason="pyarrow is not installed")
pytest.importorskip("pyspark", reason="PySpark is not installed")


def counts(batches: Iterator[Any]) -> Iterator[Any]:
    """In a task: how many objects are left alone after a batch was read, and after another; how many are not."""
    import gc

    import pyarrow as pa

    from tests.spark.test_codec import schema
    from warrenmq.client import Message
    from warrenmq.spark.columns import Columns
    from warrenmq.wire.content import Properties, encode_header

    def read() -> int:
        columns = Columns(schema(), "q")
        columns.extend([Message(1, False, "x", "k", encode_header(Properties(message_id="m"), 1), b"x")])
        assert columns.take().num_rows == 1
        return gc.get_freeze_count()

    for _ in batches:
        first = read()
        yield pa.record_batch({"first": [first], "second": [read()], "looked_at": [len(gc.get_objects())]})


# A worker as Spark starts it, in a task: what it has imported by then, and nothing more.
TASK = """
import gc, pyspark.worker
from pyspark import TaskContext
from tests.spark.test_worker import counts
TaskContext._getOrCreate()
(batch,) = counts(iter([None]))
print(gc.get_freeze_count() > 10_000, batch.column("looked_at")[0].as_py())
"""


def test_what_the_first_batch_imports_is_left_alone_too() -> None:
    """Arrow brings pandas, which is half of all there is."""
    done = subprocess.run([sys.executable, "-c", TASK], cwd=ROOT, capture_output=True, text=True)
    frozen, looked_at = done.stdout.split()
    assert frozen == "True" and int(looked_at) < 10_000, done


def test_what_a_worker_has_imported_is_left_alone_by_the_collector_and_only_that(spark: SparkSession) -> None:
    """How much is looked at all the same is not asked here: the worker may have served other tests, which import."""
    found = spark.range(1).mapInArrow(counts, "first bigint, second bigint, looked_at bigint").collect()
    assert [10_000 < row.second <= row.first for row in found] == [True], found  # what was under way is gone since


def test_a_process_that_is_no_worker_is_left_as_it_is() -> None:
    before = gc.get_freeze_count()
    assert len(list(counts(iter([None])))) == 1
    assert gc.get_freeze_count() == before


def test_a_worker_that_only_plans_the_routing_of_files_does_not_import_what_judges_them() -> None:
    """Spark waits for it before the first task begins."""
    planner = "import sys, warrenmq.spark.routing.reader; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", planner], cwd=ROOT, capture_output=True, text=True, check=True)
    imported = done.stdout.split()
    assert "warrenmq.spark.routing.reader" in imported
    assert not {"pyarrow.compute", "warrenmq.spark.routing.blocks"} & set(imported)
