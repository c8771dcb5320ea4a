"""format("amqp") and the jobs over Spark Connect: a session without a JVM in this process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from bench.planted import plant

from tests.spark.jobs_anywhere import FOUND, SOURCE
from tests.spark.support import PATIENCE, QUICK_JVM, ROOT, channel, drain, publish, reading
from tests.support.brokers import RunningBroker, answers, free_ports
from warrenmq.spark.requirements import RequirementMissing, check

pytestmark = [pytest.mark.spark, pytest.mark.slow]
pytest.importorskip("grpc", reason="pyspark[connect] is not installed")
pytest.importorskip("grpc_status", reason="pyspark[connect] is not installed")


# In a process of its own: once there is a Connect session, PySpark makes nothing else of its functions.
PROGRAM = """
import json, sys
import warrenmq.spark as warren
url, options, definitions, folder = sys.argv[1], json.loads(sys.argv[2]), json.loads(sys.argv[3]), sys.argv[4]
target = options.pop("target")
spark = warren.session(url)
found = {"session": type(spark).__module__}
found["read"] = spark.read.format("amqp").options(**options).load().count()
found["ingest"] = warren.ingest(spark, options, folder + "/lake").rows
found["again"] = warren.ingest(spark, options, folder + "/lake").rows
found["lake"] = spark.read.parquet(folder + "/lake").count()
rows = [("", target), ("", "nowhere"), ("gone", "x")]
df = spark.createDataFrame(rows, "exchange string, routing_key string")
found["route"] = sorted(row.outcome for row in warren.route(df, definitions).collect())
df.write.parquet(folder + "/table")
routed = warren.route_files(spark, folder + "/table", definitions, columns=["outcome"])
found["route_files"] = sorted(row.outcome for row in routed.collect())
where = {key: options[key] for key in ("host", "port", "httpPort")}
sent = df.limit(1).selectExpr("'x' as body")
sent.write.format("amqp").options(**where, exchange="", routingKey=target).mode("append").save()
found |= jobs(spark, folder + "/journal", where, target)
laked = warren.lake(spark, folder + "/journal", folder + "/events")
found["laked"] = [laked.files, laked.complete]
watched = warren.watch(spark, folder + "/journal", folder + "/watched", once=True)
found["watched"] = sorted([*of, count] for of, count in watched.counts().items())
print(json.dumps(found))
spark.stop()
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    """A Connect server of its own; its address."""
    try:
        check()
    except RequirementMissing as missing:
        pytest.skip(str(missing))
    import pyspark

    (port,) = free_ports(1)
    home = Path(pyspark.__file__).parent
    environment = {
        **os.environ,
        **paths(),
        "SPARK_HOME": str(home),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    settings = {
        "spark.connect.grpc.binding.port": str(port),
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.extraJavaOptions": QUICK_JVM,
        "spark.python.daemon.module": "tests.spark.daemon",
    }
    with open(tmp_path / "server.log", "wb") as log:
        process = subprocess.Popen(
            [
                home / "bin" / "spark-submit",
                "--master",
                "local[2]",
                "--class",
                "org.apache.spark.sql.connect.service.SparkConnectServer",
                *[part for key, value in settings.items() for part in ("--conf", f"{key}={value}")],
                "spark-internal",
            ],
            env=environment,
            cwd=tmp_path,
            stdout=log,
            stderr=log,
        )
        try:
            deadline = time.monotonic() + PATIENCE
            while not answers(port):
                said = (tmp_path / "server.log").read_text()[-2000:]
                assert process.poll() is None and time.monotonic() < deadline, said
                time.sleep(0.2)
            yield f"sc://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(60)


def paths() -> dict[str, str]:
    return {"PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT / "src"), os.environ.get("PYTHONPATH")]))}


def test_reading_writing_and_the_jobs_work_over_spark_connect(
    server: str, warren: RunningBroker, name: str, tmp_path: Path
) -> None:
    with channel(warren) as declaring:
        declaring.queue_declare(name, durable=True, arguments={"x-queue-type": "stream"})
        declaring.queue_declare(f"{name}-target", durable=True)
    publish(warren, name, [b"%d" % number for number in range(20)])
    definitions: dict[str, Any] = {
        "vhosts": [{"name": "/"}],
        "queues": [{"name": f"{name}-target", "vhost": "/"}],
        "exchanges": [],
        "bindings": [],
    }
    plant(tmp_path / "journal", 200, 100, 2)
    options = {**reading(warren), "stream": name, "target": f"{name}-target"}
    done = subprocess.run(
        [sys.executable, "-c", SOURCE + PROGRAM, server, json.dumps(options), json.dumps(definitions), str(tmp_path)],
        env={**os.environ, **paths(), "JAVA_HOME": "/nowhere"},
        capture_output=True,
        text=True,
        timeout=800,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    outcomes = ["confirmed", "refused", "returned"]
    assert json.loads(done.stdout.splitlines()[-1]) == {
        "session": "pyspark.sql.connect.session",
        "read": 20,
        "ingest": 20,
        "again": 0,
        "lake": 20,
        "route": outcomes,
        "route_files": outcomes,
        **FOUND,
        "laked": [1, True],
        "watched": [["unacked", "found", 2], ["unconfirmed", "found", 2]],
    }
    assert sorted(message.body for message in drain(warren, f"{name}-target")) == [b"again", b"again", b"x"]


def test_a_server_that_is_not_there_is_one_line() -> None:
    from warrenmq.spark import session

    (nobody,) = free_ports(1)
    with pytest.raises(RequirementMissing, match=f"no Spark Connect server at 127.0.0.1:{nobody}: "):
        session(f"sc://127.0.0.1:{nobody}")
