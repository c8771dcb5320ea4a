"""A broker that is lost fails the task, and Spark's own retry of the task reads and writes what was to be.

The connector gives up here before the broker is back (few ``retries``), so that it is Spark which begins again. Going
on within a task is in ``test_connection.py``, a lost broker under a running query in ``test_kills.py``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.spark.support import (
    PATIENCE,
    QUICK_JVM,
    ROOT,
    address,
    channel,
    depth,
    drain,
    kill,
    publish,
    reading,
    restartable,
)
from tests.support.brokers import RunningBroker
from warrenmq.spark.requirements import RequirementMissing, check

pytestmark = [pytest.mark.spark, pytest.mark.slow]

# Spark tries a task once in local[2], up to four times in local[2,4]. In each step the first attempt stops after a few
# batches of rows until the broker is dead; files tell the test how far it is, and the program that the broker is gone.
PROGRAM = """
import json, pathlib, sys, threading, time
from warrenmq.spark import session
from warrenmq.spark.errors import one_line
folder, steps = pathlib.Path(sys.argv[1]), json.loads(sys.argv[2])
spark = session("local[2,4]", settings={"spark.driver.extraJavaOptions": sys.argv[3],
                                        "spark.python.daemon.module": "tests.spark.daemon"})
current = ""

def holding(step):
    def held(batches):
        from pyspark import TaskContext
        first = TaskContext.get().attemptNumber() == 0
        for number, batch in enumerate(batches):
            yield batch
            if first and number == 2:
                (folder / (step["name"] + ".under-way")).touch()
                while not (folder / (step["name"] + ".killed")).exists():
                    time.sleep(0.02)
    return held

def watch():
    tracker = spark.sparkContext.statusTracker()
    while True:
        for stage in tracker.getActiveStageIds():
            info = tracker.getStageInfo(stage)
            if info is not None and info.numFailedTasks:
                (folder / (current + ".failed")).touch()
        time.sleep(0.05)

threading.Thread(target=watch, daemon=True).start()
for step in steps:
    current, options, held = step["name"], step["options"], holding(step)
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", step["rows"])
    try:
        if "exchange" in options:
            rows = spark.range(0, 3000, 1, 1).selectExpr("lpad(cast(id as string), 500) as body")
            rows.mapInArrow(held, rows.schema).write.format("amqp").options(**options).mode("append").save()
            result = "written"
        else:
            rows = spark.read.format("amqp").options(**options).load().select("body").mapInArrow(held, "body binary")
            result = [int(row.number) for row in rows.selectExpr("string(substring(body, 1, 8)) as number").collect()]
    except Exception as error:
        result = one_line(error)
    (folder / (current + ".result")).write_text(json.dumps(result))
spark.stop()
"""
MEGABYTE = 1 << 20
# Of a megabyte each: more than the batches that Spark's two workers and its JVM hold at once, and all the sockets
# between them and the broker, which is about 80.
LARGE = 200


def declare(broker: RunningBroker, name: str, **arguments: object) -> str:
    with channel(broker) as declaring:
        declaring.queue_declare(name, durable=True, arguments={k.replace("_", "-"): v for k, v in arguments.items()})
    return name


def until(program: subprocess.Popen[bytes], done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not done():
        assert program.poll() is None and time.monotonic() < deadline, program.poll()
        time.sleep(0.02)


@contextmanager
def running(program: str, folder: Path, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """The program as a driver of its own; what it says is shown when the test fails."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")])}
    with open(folder / "said", "w+b") as said:
        driver = subprocess.Popen(
            [sys.executable, "-c", program, *arguments], env=environment, cwd=folder, stdout=said, stderr=said
        )
        try:
            yield driver
        except BaseException:
            said.seek(0)
            print(said.read().decode(errors="replace")[-3000:])
            raise
        finally:
            driver.kill()
            driver.wait()


def test_spark_repeats_the_task_that_lost_its_broker_and_every_row_arrives(name: str, tmp_path: Path) -> None:
    try:
        check()
    except RequirementMissing as missing:
        pytest.skip(str(missing))
    with restartable(tmp_path) as (broker, start):
        stream = declare(broker, f"{name}-stream", x_queue_type="stream")
        queue, target = declare(broker, f"{name}-queue"), declare(broker, f"{name}-target")
        # So large that the reader cannot have all of it when its first record batch is held up.
        publish(broker, stream, [(b"%8d" % number).ljust(MEGABYTE) for number in range(LARGE)])
        publish(broker, queue, [b"%8d" % number for number in range(400)])
        few = {"retries": "3"}
        steps: list[dict[str, Any]] = [
            {"name": "stream", "rows": 4, "options": {**reading(broker), **few, "stream": stream}},
            # Four leases, two tasks at a time: two are still to be read when the broker is gone.
            {
                "name": "lease",
                "rows": 10,
                "options": {**reading(broker), **few, "queue": queue, "minPartitions": "4", "leases": "true"},
            },
            # Enough in three batches to fill what Spark buffers between its workers and the sink.
            {
                "name": "write",
                "rows": 400,
                "options": {**address(broker), **few, "exchange": "", "routingKey": target, "batchKey": "job"},
            },
            {"name": "gone", "rows": 4, "options": {**reading(broker), "retries": "0", "stream": stream}},
        ]
        with running(PROGRAM, tmp_path, str(tmp_path), json.dumps(steps), QUICK_JVM) as program:
            for step in steps:
                path = tmp_path / str(step["name"])
                until(program, path.with_suffix(".under-way").exists)
                if step["name"] == "write":
                    until(program, lambda: depth(broker, target) > 0)  # noqa: B023  called at once
                kill(broker)
                path.with_suffix(".killed").touch()
                if step["name"] != "gone":  # there Spark may have given up before anybody looks
                    until(program, path.with_suffix(".failed").exists)
                    broker = start()
                until(program, path.with_suffix(".result").exists)
            assert program.wait(60) == 0
        results = {step["name"]: json.loads((tmp_path / f"{step['name']}.result").read_text()) for step in steps}
        broker = start()
        written = drain(broker, target)
    assert sorted(results["stream"]) == list(range(LARGE))
    assert sorted(results["lease"]) == list(range(400))
    # At least once, and who reads can tell: what came twice has the same id.
    assert results["write"] == "written" and len(written) > 3000
    bodies = {message.properties.message_id: int(message.body) for message in written}
    assert sorted(bodies.values()) == list(range(3000))
    assert set(bodies) == {f"job-0-{number}" for number in range(3000)}
    assert results["gone"].startswith(f"no connection to the broker at 127.0.0.1:{broker.port}")
    assert "\n" not in results["gone"]
