"""How far a job is while Spark works: rows, rate, and how long it will take.

Duty: ask Spark how many of the tasks at hand are done, by its status or, over Spark Connect, by what the server
reports, and tell it in one line every few seconds. Rows are an estimate: the share of tasks that are done, of all rows.
Not here: how far behind a stream is (``progress.py``).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from warrenmq.spark.sessions import is_connected

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

INTERVAL = 5.0  # seconds


class Tasks:
    """The tasks of the stages that run now: how many tasks are done, and how many there are."""

    def __init__(self, spark: SparkSession) -> None:
        self._reported = (0, 0)
        self._spark: Any = spark
        self._connected = is_connected(spark)
        if self._connected:
            register: Any = spark.registerProgressHandler
            register(self._report)

    def done(self) -> tuple[int, int]:
        if self._connected:
            return self._reported
        tracker = self._spark.sparkContext.statusTracker()
        found = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        stages = [stage for stage in found if stage is not None]
        return sum(stage.numCompletedTasks for stage in stages), sum(stage.numTasks for stage in stages)

    def close(self) -> None:
        if self._connected:
            self._spark.removeProgressHandler(self._report)

    def _report(self, stages: Any = (), **_more: Any) -> None:
        running = [stage for stage in stages or () if not stage.done]
        self._reported = sum(stage.num_completed_tasks for stage in running), sum(stage.num_tasks for stage in running)


def line(word: str, rows: int, share: float, seconds: float) -> str:
    """What is told."""
    filled = round(20 * share)
    bar = f"[{'█' * filled}{'·' * (20 - filled)}] {share:4.0%}"
    if share <= 0 or seconds <= 0:
        return f"{word} {bar} {seconds:.0f} s"
    left = seconds * (1 - share) / share
    done = rows * share
    told = f"{done:,.0f} of {rows:,} rows, {done / seconds:,.0f} rows/s, " if rows else ""
    return f"{word} {bar} {told}{seconds:.0f} s, about {left:.0f} s left"


@contextmanager
def following(
    spark: SparkSession, word: str, rows: int, tell: Callable[[str], None], interval: float | None = None
) -> Iterator[None]:
    """Tell how far the jobs are that are started inside, until they are done."""
    interval = INTERVAL if interval is None else interval
    tasks = Tasks(spark)
    over = threading.Event()
    begun = time.monotonic()

    def watch() -> None:
        while not over.wait(interval):
            try:
                done, of = tasks.done()
            except Exception:  # the session ends: what was started inside says why
                return
            tell(line(word, rows, done / of if of else 0.0, time.monotonic() - begun))

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        tasks.close()
