"""The connector on a real standalone cluster: found by itself, read and written by executors in other processes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.spark.support import channel, drain, publish
from tests.support.brokers import RunningBroker
from warrenmq.spark.requirements import RequirementMissing, check

pytestmark = [pytest.mark.spark, pytest.mark.slow]

PROGRAM = """
import json, sys
from pyspark.sql import SparkSession
host, port, stream, queue, out = sys.argv[1:]
spark = SparkSession.builder.appName("cluster test").getOrCreate()
where = dict(host=host, port=port)
read = spark.read.format("amqp").options(**where, stream=stream, minPartitions="4").load()
read.selectExpr("body").write.format("amqp").options(**where, exchange="", routingKey=queue).mode("append").save()
from warrenmq.spark import route
definitions = {"vhosts": [{"name": "/"}], "queues": [{"name": stream, "vhost": "/"}], "exchanges": [], "bindings": []}
routed = route(read.select("exchange", "routing_key"), definitions)
hosts = spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() - 1
confirmed = routed.where("outcome = 'confirmed'").count()
with open(out, "w") as file:
    json.dump({"read": read.count(), "confirmed": confirmed, "executors": hosts}, file)
spark.stop()
"""


# The workers have nothing but the archive; where each of them found the package comes back.
PACKED_PROGRAM = PROGRAM.replace(
    "spark.stop()",
    """
def home(_):
    import warrenmq
    return [warrenmq.__file__]
homes = spark.sparkContext.parallelize(range(2), 2).mapPartitions(home).collect()
with open(out + ".homes", "w") as file:
    json.dump(homes, file)
spark.stop()
""",
)


@pytest.fixture(params=["installed", pytest.param("packed", marks=pytest.mark.soak)])
def packed(request: pytest.FixtureRequest) -> bool:
    """Whether the workers have the package, or get all of Python with spark-submit."""
    try:
        check()
    except RequirementMissing as missing:
        pytest.skip(str(missing))
    return bool(request.param == "packed")


def test_a_real_cluster_reads_writes_and_routes(
    rabbitmq: RunningBroker, name: str, tmp_path: Path, packed: bool
) -> None:
    from tests.spark.cluster import PACKED, pack, start_cluster

    stream, queue = f"{name}-stream", f"{name}-queue"
    with channel(rabbitmq) as declaring:
        declaring.queue_declare(stream, durable=True, arguments={"x-queue-type": "stream"})
        declaring.queue_declare(queue, durable=True)
    publish(rabbitmq, stream, [b"%d" % number for number in range(2000)])
    program = tmp_path / "program.py"
    program.write_text(PACKED_PROGRAM if packed else PROGRAM)
    shipped = ("--archives", f"{pack(tmp_path)}#{PACKED}") if packed else ()
    out = tmp_path / "out.json"
    with start_cluster(tmp_path, bare=packed) as cluster:
        arguments = (rabbitmq.host, str(rabbitmq.port), stream, queue, str(out))
        done = cluster.submit(program, *arguments, options=shipped)
        assert done.returncode == 0, done.stderr[-3000:]
    if packed:
        homes = json.loads(Path(f"{out}.homes").read_text())
        assert homes and all(str(tmp_path / "work") in home and f"/{PACKED}/lib/" in home for home in homes), homes
    found = json.loads(out.read_text())
    assert found == {"read": 2000, "confirmed": 2000, "executors": 2}
    assert sorted(int(message.body) for message in drain(rabbitmq, queue)) == list(range(2000))
