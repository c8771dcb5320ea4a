"""How far a job is: what is told of it while Spark works."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed")

from warrenmq.spark.following import following, line

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_the_line_has_rows_rate_and_the_time_that_is_left() -> None:
    assert line("reading", 1000, 0.25, 5.0) == (
        "reading [█████···············]  25% 250 of 1,000 rows, 50 rows/s, 5 s, about 15 s left"
    )
    assert line("reading", 0, 0.5, 4.0) == "reading [██████████··········]  50% 4 s, about 4 s left"
    assert line("reading", 1000, 0.0, 4.0) == "reading [····················]   0% 4 s"


def test_a_running_job_is_followed_until_it_is_over(spark: SparkSession) -> None:
    told: list[str] = []
    heard = threading.Event()

    def tell(said: str) -> None:
        told.append(said)
        heard.set()

    with following(spark, "counting", 100, tell, interval=0.01):
        assert spark.range(100).count() == 100
        assert heard.wait(600)
    after = len(told)
    assert told[0].startswith("counting [")
    assert spark.range(100).count() == 100 and len(told) == after
