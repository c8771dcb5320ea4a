"""A real Spark, its driver killed at a named call to the broker, and run again: every message is in the lake once, and
every row of a query that writes to the broker has arrived under one id.

The exhaustive forms are ``test_crash_points.py`` and ``test_sink_crash_points.py``, without Spark; here a few of their
points show that Spark's protocol is as assumed there. A proxy stands between Spark and the broker and kills the driver,
with its JVM, when the call passes: before the broker gets it, or when its answer would come.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.spark.support import QUICK_JVM, ROOT, address, channel, drain, publish, reading
from tests.support.brokers import RunningBroker
from warrenmq.spark.requirements import RequirementMissing, check

pytestmark = [pytest.mark.spark, pytest.mark.soak, pytest.mark.timeout(1200)]

DRIVER = """
import json, sys
from warrenmq.spark import session
options, folder = json.loads(sys.argv[1]), sys.argv[2]
spark = session("local[2]", settings={"spark.driver.extraJavaOptions": sys.argv[3],
                                      "spark.python.daemon.module": "tests.spark.daemon"})

def write(df, batch):
    df.select("body").write.mode("overwrite").parquet(f"{folder}/lake/batch={batch}")

df = spark.readStream.format("amqp").options(**options).load()
query = (df.writeStream.foreachBatch(write).option("checkpointLocation", f"{folder}/checkpoint")
         .trigger(availableNow=True).start())
query.awaitTermination()
spark.stop()
"""

# From one broker to another, which is the same one behind a proxy.
WRITER = """
import json, sys
from warrenmq.spark import session
options, folder = json.loads(sys.argv[1]), sys.argv[2]
spark = session("local[2]", settings={"spark.driver.extraJavaOptions": sys.argv[3],
                                      "spark.python.daemon.module": "tests.spark.daemon"})
df = spark.readStream.format("amqp").options(**options["read"]).load().select("body")
query = (df.writeStream.format("amqp").options(**options["write"]).option("checkpointLocation", f"{folder}/checkpoint")
         .trigger(availableNow=True).start())
query.awaitTermination()
spark.stop()
"""

BASIC_CONSUME = b"\0\x3c\0\x14"
BASIC_PUBLISH = b"\0\x3c\0\x28"
CONNECTION_CLOSE = b"\0\x0a\0\x32"


@contextmanager
def deadly_proxy(target: int, call: bytes, time: int, answered: bool, kill: Callable[[], None]) -> Iterator[int]:
    """A port that leads to the broker until ``call`` has passed it for the ``time``th time."""
    listener = socket.create_server(("127.0.0.1", 0))
    open_sockets: list[socket.socket] = [listener]
    seen: list[bytes] = []
    lock = threading.Lock()

    def die() -> None:
        kill()
        for each in open_sockets:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def pump(source: socket.socket, sink: socket.socket, asking: bool) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                if asking and call in data:
                    with lock:
                        seen.append(data)
                        deadly = len(seen) == time
                    if deadly:
                        if answered:
                            sink.sendall(data)
                            sink.settimeout(30)
                            sink.recv(65536)  # what nobody will be told
                        die()
                        return
                sink.sendall(data)
        for each in (source, sink):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def watch(client: socket.socket, server: socket.socket) -> None:
        # The answers are read by the asking side when they are not to arrive, so both ways share one rule.
        threading.Thread(target=pump, args=(client, server, True), daemon=True).start()
        if not answered:
            pump(server, client, False)
            return
        with suppress(OSError):
            while True:
                data = server.recv(65536, socket.MSG_PEEK)
                if len(seen) >= time:
                    return
                if not data:
                    break
                client.sendall(server.recv(len(data)))
        with suppress(OSError):
            client.shutdown(socket.SHUT_RDWR)

    def accept() -> None:
        with suppress(OSError):
            while True:
                client, _ = listener.accept()
                server = socket.create_connection(("127.0.0.1", target))
                open_sockets.extend((client, server))
                threading.Thread(target=watch, args=(client, server), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield int(listener.getsockname()[1])
    finally:
        for each in open_sockets:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()


def drive(folder: Path, options: dict[str, Any], program: str = DRIVER) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")])}
    with open(folder / "said", "ab") as said:
        return subprocess.Popen(
            [sys.executable, "-c", program, json.dumps(options), str(folder), QUICK_JVM],
            env=environment,
            cwd=folder,
            stdout=said,
            stderr=said,
            start_new_session=True,
        )


def in_the_lake(folder: Path) -> list[int]:
    from pyarrow import parquet

    files = (folder / "lake").glob("batch=*/*.parquet")
    return sorted(int(row["body"]) for file in files for row in parquet.ParquetFile(file).read().to_pylist())


@contextmanager
def killing(
    folder: Path, port: int, call: bytes, time: int, answered: bool
) -> Iterator[tuple[int, list[subprocess.Popen[bytes]]]]:
    """The way to the broker for the program that is put into the list; it has been killed when this ends."""
    running: list[subprocess.Popen[bytes]] = []
    killed = threading.Event()

    def kill() -> None:
        os.killpg(running[0].pid, signal.SIGKILL)
        killed.set()

    with deadly_proxy(port, call, time, answered, kill) as proxy:
        yield proxy, running
        status = running[0].wait(400)
    assert killed.is_set() and status == -signal.SIGKILL, (folder / "said").read_text()[-2000:]


def finish(folder: Path, program: subprocess.Popen[bytes]) -> None:
    try:
        assert program.wait(400) == 0, (folder / "said").read_text()[-2000:]
    finally:
        with suppress(ProcessLookupError):
            os.killpg(program.pid, signal.SIGKILL)


POINTS = {
    "the first lease is made and nobody is told": ("queue", "httpPort", b"/leases HTTP", 2, True),
    "an offset is logged and the batch before it is not settled": ("queue", "httpPort", b"/ack HTTP", 1, False),
    "a lease is about to be read": ("queue", "port", BASIC_CONSUME, 2, False),
    "a range of a stream is about to be read": ("stream", "port", BASIC_CONSUME, 6, False),
}


@pytest.mark.parametrize("point", POINTS)
def test_a_driver_killed_when(warren: RunningBroker, name: str, tmp_path: Path, point: str) -> None:
    try:
        check()
    except RequirementMissing as missing:
        pytest.skip(str(missing))
    kind, port, call, time, answered = POINTS[point]
    with channel(warren) as declaring:
        declaring.queue_declare(name, durable=True, arguments={"x-queue-type": "stream"} if kind == "stream" else {})
    publish(warren, name, [b"%d" % number for number in range(50)])
    options = {**reading(warren), kind: name, "maxOffsetsPerTrigger": "20"}
    with killing(tmp_path, int(options[port]), call, time, answered) as (proxy, running):
        running.append(drive(tmp_path, {**options, port: str(proxy)}))
    publish(warren, name, [b"%d" % number for number in range(50, 60)])
    finish(tmp_path, drive(tmp_path, options))
    assert in_the_lake(tmp_path) == list(range(60))
    if kind == "queue":
        _, leases = warren.http("GET", f"/api/queues/%2F/{name}/leases")
        assert leases == []


WRITING = {
    "a task is about to send rows": (BASIC_PUBLISH, 2, False),
    "rows were sent and nobody was told": (BASIC_PUBLISH, 2, True),
    "a task is done and its batch is not": (CONNECTION_CLOSE, 3, False),
}


@pytest.mark.parametrize("point", WRITING)
def test_a_driver_of_a_query_that_writes_is_killed_when(
    warren: RunningBroker, name: str, tmp_path: Path, point: str
) -> None:
    try:
        check()
    except RequirementMissing as missing:
        pytest.skip(str(missing))
    call, time, answered = WRITING[point]
    target = f"{name}-target"
    with channel(warren) as declaring:
        declaring.queue_declare(name, durable=True, arguments={"x-queue-type": "stream"})
        declaring.queue_declare(target, durable=True)
    publish(warren, name, [b"%d" % number for number in range(50)])
    read = {**reading(warren), "stream": name, "maxOffsetsPerTrigger": "20", "minPartitions": "2"}
    write = {**address(warren), "exchange": "", "routingKey": target}
    with killing(tmp_path, warren.port, call, time, answered) as (proxy, running):
        running.append(drive(tmp_path, {"read": read, "write": {**write, "port": str(proxy)}}, WRITER))
    publish(warren, name, [b"%d" % number for number in range(50, 60)])
    finish(tmp_path, drive(tmp_path, {"read": read, "write": write}, WRITER))
    arrived = {(message.properties.message_id, int(message.body)) for message in drain(warren, target)}
    assert sorted(body for _, body in arrived) == list(range(60))
    assert len({id for id, _ in arrived}) == 60
