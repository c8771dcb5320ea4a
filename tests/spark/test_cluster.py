"""The connector on a real standalone cluster: found by itself, read and written by executors in other processes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.spark.support import channel, drain, publish
from tests.support.brokers import RunningBroker
from warren.spark.requirements import RequirementMissing, check

pytestmark = [pytest.mark.spark, pytest.mark.slow]

PROGRAM = """
import json, sys
from pyspark.sql import SparkSession
host, port, stream, queue, out = sys.argv[1:]
spark = SparkSession.builder.appName("cluster test").getOrCreate()
where = dict(host=host, port=port)
read = spark.read.format("amqp").options(**where, stream=stream, minPartitions="4").load()
read.selectExpr("body").write.format("amqp").options(**where, exchange="", routingKey=queue).mode("append").save()
from warren.spark import route
definitions = {"vhosts": [{"name": "/"}], "queues": [{"name": stream, "vhost": "/"}], "exchanges": [], "bindings": []}
routed = route(read.select("exchange", "routing_key"), definitions)
hosts = spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() - 1
confirmed = routed.where("outcome = 'confirmed'").count()
with open(out, "w") as file:
    json.dump({"read": read.count(), "confirmed": confirmed, "executors": hosts}, file)
spark.stop()
"""


def test_a_real_cluster_reads_writes_and_routes(rabbitmq: RunningBroker, name: str, tmp_path: Path) -> None:
    try:
        check()
    except RequirementMissing as missing:
        pytest.skip(str(missing))
    from tests.spark.cluster import start_cluster

    stream, queue = f"{name}-stream", f"{name}-queue"
    with channel(rabbitmq) as declaring:
        declaring.queue_declare(stream, durable=True, arguments={"x-queue-type": "stream"})
        declaring.queue_declare(queue, durable=True)
    publish(rabbitmq, stream, [b"%d" % number for number in range(2000)])
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    with start_cluster(tmp_path) as cluster:
        out = tmp_path / "out.json"
        done = cluster.submit(program, rabbitmq.host, str(rabbitmq.port), stream, queue, str(out))
        assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(out.read_text())
    assert found == {"read": 2000, "confirmed": 2000, "executors": 2}
    assert sorted(int(message.body) for message in drain(rabbitmq, queue)) == list(range(2000))
