"""What a day of the pipeline comes up against beside its cores, each measured by itself.

Duty: seconds of the driver for one more file of a journal; octets that one task of what-if has in memory for one
message of a queue whose bounds change. Not here: what a day makes of them (``day``), what cores do (``pipeline``).
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from bench.planted import plant
from warrenmq.journal.files import file_name
from warrenmq.spark.auditing.listing import counted
from warrenmq.spark.auditing.reading import check, find
from warrenmq.spark.routing.definitions import Plan
from warrenmq.spark.supposing.fates import queue_fates
from warrenmq.supposing.queues import Bounds

FILES = 4000
MESSAGES = 1_000_000  # of one queue
SIZE = 1024  # octets of each


def seconds_a_file(spark: SparkSession, files: int) -> float:
    """Of names that are listed and footers that are opened, by the driver alone."""
    with tempfile.TemporaryDirectory(prefix="warren-bench-") as made:
        folder = Path(made) / "journal"
        first = plant(folder, 10, 10, 0)
        (one, *_) = sorted(first.folder.glob("*.parquet"))
        log = int(one.name.split("-")[1], 16)
        for number in range(len(list(folder.glob("*.parquet"))) + 1, files + 1):
            (folder / file_name(log, number, 0, 1000)).hardlink_to(one)
        began = time.perf_counter()
        check(spark, counted(find(spark, [str(folder)])))
        return (time.perf_counter() - began) / files


def octets_a_message(messages: int) -> float:
    """Of the largest that a process of its own becomes while it plays one queue through."""

    def largest(count: int) -> int:
        said = [sys.executable, "-m", "bench.bounds", str(count)]
        return int(subprocess.run(said, capture_output=True, text=True, check=True).stdout)

    few = messages // 100
    return (largest(messages) - largest(few)) / (messages - few)


def play_one_queue(messages: int) -> None:
    """As Spark hands them to a task: all messages of a queue that gets a limit, and neither gives nor gets letters."""
    names = [f"{number:016x}" for number in range(messages)]
    none = pa.nulls(messages, pa.int64())
    rows = pa.table(
        {
            "message": pa.array(names),
            "number": pa.array(range(messages), pa.int64()),
            "at": pa.array(range(messages), pa.int64()),
            "was_place": pa.repeat(1, messages),
            "is_place": pa.repeat(1, messages),
            "body_size": pa.repeat(SIZE, messages),
            "expiration": pa.nulls(messages, pa.string()),
            "priority": pa.nulls(messages, pa.int32()),
            "taken": none,
        }
    )
    del names
    place = ("/", "work")
    plan = Plan.of({"queues": []}, "/", None, SIZE, ())
    before, after = ((plan, {place: Bounds(max_length=limit)}) for limit in (-1, 1000))
    play = queue_fates(before, after, {place: None}, messages)
    told = play((pa.scalar("/"), pa.scalar(None, pa.string()), pa.scalar("work")), rows)
    assert told.num_rows == messages


if __name__ == "__main__":
    play_one_queue(int(sys.argv[1]))
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
