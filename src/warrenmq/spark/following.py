"""How far a job is while Spark works: rows, rate, and how long it will take.

Duty: ask Spark how many of the tasks at hand are done, by its status or, over Spark Connect, by what the server
reports, and tell it in one line every few seconds. Rows are an estimate: the share that is done, of all rows.
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
    """The tasks of the stages that were seen to run: how many tasks are done, and how many there are."""

    def __init__(self, spark: SparkSession) -> None:
        self._seen: dict[int, tuple[int, int]] = {}  # by stage
        self._spark: Any = spark
        self._connected = is_connected(spark)
        if self._connected:
            register: Any = spark.registerProgressHandler
            register(self._report)

    def done(self) -> tuple[int, int]:
        if not self._connected:
            tracker = self._spark.sparkContext.statusTracker()
            found = {stage: tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()}
            over = {stage: (of, of) for stage, (_, of) in self._seen.items() if stage not in found}
            running = {stage: (one.numCompletedTasks, one.numTasks) for stage, one in found.items() if one is not None}
            self._seen = over | running
        seen = list(self._seen.values())
        return sum(done for done, _ in seen), sum(of for _, of in seen)

    def forget(self) -> None:
        self._seen = {}

    def close(self) -> None:
        if self._connected:
            self._spark.removeProgressHandler(self._report)

    def _report(self, stages: Any = (), **_more: Any) -> None:
        for stage in stages or ():
            done = stage.num_tasks if stage.done else stage.num_completed_tasks
            self._seen[stage.stage_id] = (done, stage.num_tasks)


class JobProgress:
    """The share that is done: of so many steps these, and of the one at hand a share of its tasks. Which stages are to
    come Spark says only when they begin; so a share never falls, and is never all before the step is over."""

    def __init__(self, tasks: Tasks, steps: int = 1) -> None:
        self._tasks = tasks
        self._steps = max(1, steps)
        self._finished = 0
        self._most = 0.0

    def step(self) -> None:
        """One of the steps is over."""
        self._finished += 1
        self._tasks.forget()

    def share(self) -> float:
        done, of = self._tasks.done()
        inside = min(done / of, 0.99) if of else 0.0
        self._most = max(self._most, min(1.0, (self._finished + inside) / self._steps))
        return self._most


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
    spark: SparkSession,
    word: str,
    rows: int,
    tell: Callable[[str], None],
    interval: float | None = None,
    steps: int = 1,
) -> Iterator[JobProgress]:
    """Tell how far the jobs are that are started inside, until they are done; ``steps``: so many times whoever works
    there says that a ``step`` is over."""
    interval = INTERVAL if interval is None else interval
    tasks = Tasks(spark)
    progress = JobProgress(tasks, steps)
    over = threading.Event()
    begun = time.monotonic()

    def watch() -> None:
        while not over.wait(interval):
            try:
                share = progress.share()
            except Exception:  # the session ends: what was started inside says why
                return
            tell(line(word, rows, share, time.monotonic() - begun))

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield progress
    finally:
        over.set()
        thread.join()
        tasks.close()
