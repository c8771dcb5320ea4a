"""The connector on a real standalone cluster: found by itself, read and written by executors in other processes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from bench.planted import plant

from tests.spark.jobs_anywhere import FOUND, SOURCE
from tests.spark.support import channel, drain, publish
from tests.support.brokers import RunningBroker
from warrenmq.spark.requirements import RequirementMissing, check

pytestmark = [pytest.mark.spark, pytest.mark.slow]

PROGRAM = """
import json, sys
from pyspark.sql import SparkSession
host, port, stream, queue, journal, out = sys.argv[1:]
spark = SparkSession.builder.appName("cluster test").getOrCreate()
where = dict(host=host, port=port)
read = spark.read.format("amqp").options(**where, stream=stream, minPartitions="4").load()
read.selectExpr("body").write.format("amqp").options(**where, exchange="", routingKey=queue).mode("append").save()
from warrenmq.spark import route
definitions = {"vhosts": [{"name": "/"}], "queues": [{"name": stream, "vhost": "/"}], "exchanges": [], "bindings": []}
routed = route(read.select("exchange", "routing_key"), definitions)
hosts = spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() - 1
confirmed = routed.where("outcome = 'confirmed'").count()
found = jobs(spark, journal, where, queue)
from warrenmq.spark import lake, watch
laked = lake(spark, journal, journal + "-lake")
watched = watch(spark, journal, journal + "-watched", once=True)
found |= {"laked": laked.rows, "watched": sorted([*of, count] for of, count in watched.counts().items())}
with open(out, "w") as file:
    json.dump({"read": read.count(), "confirmed": confirmed, "executors": hosts, **found}, file)
spark.stop()
"""


# Where each worker found the package comes back.
SHIPPED_PROGRAM = """
import json, sys
from pyspark.sql import SparkSession
host, port, stream, queue, out, registering = sys.argv[1:]
spark = SparkSession.builder.appName("shipped").getOrCreate()
if registering == "true":
    from warrenmq.spark import register
    register(spark)
where = dict(host=host, port=port)
read = spark.read.format("amqp").options(**where, stream=stream, minPartitions="2").load()
read.selectExpr("body").write.format("amqp").options(**where, exchange="", routingKey=queue).mode("append").save()
def home(_):
    import os, warrenmq
    return [os.path.abspath(warrenmq.__file__)]
homes = spark.sparkContext.parallelize(range(2), 2).mapPartitions(home).collect()
with open(out, "w") as file:
    json.dump(homes, file)
spark.stop()
"""


@pytest.fixture(autouse=True)
def needed() -> None:
    try:
        check()
    except RequirementMissing as missing:
        pytest.skip(str(missing))


def filled(broker: RunningBroker, name: str) -> tuple[str, str]:
    """A stream with 2000 messages, and an empty queue."""
    stream, queue = f"{name}-stream", f"{name}-queue"
    with channel(broker) as declaring:
        declaring.queue_declare(stream, durable=True, arguments={"x-queue-type": "stream"})
        declaring.queue_declare(queue, durable=True)
    publish(broker, stream, [b"%d" % number for number in range(2000)])
    return stream, queue


def test_a_real_cluster_reads_writes_routes_and_runs_every_job(
    rabbitmq: RunningBroker, name: str, tmp_path: Path
) -> None:
    from tests.spark.cluster import start_cluster

    stream, queue = filled(rabbitmq, name)
    program = tmp_path / "program.py"
    program.write_text(SOURCE + PROGRAM)
    out, journal = tmp_path / "out.json", tmp_path / "journal"
    plant(journal, 200, 100, 2)
    with start_cluster(tmp_path) as cluster:
        done = cluster.submit(program, rabbitmq.host, str(rabbitmq.port), stream, queue, str(journal), str(out))
        assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(out.read_text())
    assert found.pop("laked") > 0 and found.pop("watched") == [["unacked", "found", 2], ["unconfirmed", "found", 2]]
    assert found == {"read": 2000, "confirmed": 2000, "executors": 2, **FOUND}
    bodies = sorted(message.body for message in drain(rabbitmq, queue))
    assert bodies == sorted([*(b"%d" % number for number in range(2000)), b"again", b"again"])


@pytest.mark.parametrize("way", ["--archives", "--py-files"])
def test_workers_that_have_nothing_get_it_with_the_job(
    rabbitmq: RunningBroker, name: str, tmp_path: Path, way: str
) -> None:
    from tests.spark.cluster import NEEDED, OURS, make_environment, pack, start_cluster, zip_source

    stream, queue = filled(rabbitmq, name)
    program = tmp_path / "program.py"
    program.write_text(SHIPPED_PROGRAM)
    if way == "--archives":  # all of it; the driver finds it unpacked beside itself
        make_environment(tmp_path / "environment", (*OURS, *NEEDED))
        pack(tmp_path / "environment", tmp_path / "packed.tar.gz")
        python, place = "./environment/bin/python", "/environment/lib/"
        shipped = f"{tmp_path}/packed.tar.gz#environment"
    else:  # only this package: what it needs is installed on the workers
        make_environment(tmp_path / "installed", NEEDED)
        zip_source(tmp_path / "warrenmq.zip")
        python, place = f"{tmp_path}/installed/bin/python", "/warrenmq.zip/"
        shipped = f"{tmp_path}/warrenmq.zip"
    out = tmp_path / "homes.json"
    with start_cluster(tmp_path, workers=1, python=python) as cluster:
        registering = str(way == "--py-files").lower()
        done = cluster.submit(
            program, rabbitmq.host, str(rabbitmq.port), stream, queue, str(out), registering, options=(way, shipped)
        )
        assert done.returncode == 0, done.stderr[-3000:]
    homes = json.loads(out.read_text())
    assert homes and all(str(tmp_path / "work") in home and place in home for home in homes), homes
    assert sorted(int(message.body) for message in drain(rabbitmq, queue)) == list(range(2000))
