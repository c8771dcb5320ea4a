"""A broker that is away is asked again with growing pauses; one that comes back is read on from where it was lost."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from tests.spark.support import address, channel, publish, reading
from tests.support.brokers import RunningBroker, free_ports
from warrenmq.spark.connect import BrokerLost, connect
from warrenmq.spark.httpapi import HttpApi
from warrenmq.spark.options import OptionError, parse
from warrenmq.spark.patience import Patience

pytest.importorskip("pyspark", reason="PySpark is not installed")
pytest.importorskip("pyarrow", reason="pyarrow is not installed")


@contextmanager
def cutting_proxy(
    target: int, after: int | None = None, at: bytes | None = None, stall: bool = False
) -> Iterator[tuple[int, list[int]]]:
    """A port that leads to the broker; one connection is cut, or goes silent.

    That is the first one, after so many octets from the broker, or the first that says ``at``. Yields the port and a
    list that grows by one with each connection.
    """
    listener = socket.create_server(("127.0.0.1", 0))
    seen: list[int] = []
    armed = [] if at is None else [at]
    open_sockets: list[socket.socket] = [listener]

    def pump(source: socket.socket, sink: socket.socket, budget: int | None = None) -> None:
        with suppress(OSError):
            while data := source.recv(4096):
                if armed and armed[0] in data:
                    armed.clear()
                    while stall and source.recv(4096):
                        pass
                    break
                sink.sendall(data)
                if budget is not None and (budget := budget - len(data)) <= 0:
                    break
        for each in (source, sink):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def accept() -> None:
        with suppress(OSError):
            while True:
                client, _ = listener.accept()
                server = socket.create_connection(("127.0.0.1", target))
                open_sockets.extend((client, server))
                seen.append(len(seen))
                for way in ((client, server), (server, client, after if len(seen) == 1 else None)):
                    threading.Thread(target=pump, args=way, daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield listener.getsockname()[1], seen
    finally:
        for each in open_sockets:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()


@contextmanager
def recording_proxy(target: int) -> Iterator[tuple[int, list[bytes]]]:
    """A port that leads to the broker, and what the client said on each of its connections."""
    said: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def pump(source: socket.socket, sink: socket.socket, number: int | None) -> None:
            with suppress(OSError):
                while data := source.recv(65536):
                    if number is not None:
                        said[number] += data
                    sink.sendall(data)
            with suppress(OSError):
                sink.shutdown(socket.SHUT_RDWR)

        def accept() -> None:
            with suppress(OSError):
                while True:
                    client, _ = listener.accept()
                    server = socket.create_connection(("127.0.0.1", target))
                    said.append(b"")
                    for way in ((client, server, len(said) - 1), (server, client, None)):
                        threading.Thread(target=pump, args=way, daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield listener.getsockname()[1], said
        listener.shutdown(socket.SHUT_RDWR)


def test_pauses_between_attempts_grow_and_the_last_failure_names_the_broker() -> None:
    (nobody,) = free_ports(1)
    pauses: list[float] = []
    options = parse({"stream": "s", "host": "127.0.0.1", "port": str(nobody), "retries": "7"})
    with pytest.raises(BrokerLost, match=rf"no connection to the broker at 127.0.0.1:{nobody} after 8 attempts"):
        connect(options, "test", Patience(options, pauses.append))
    assert pauses == [0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10.0]


def test_a_refused_login_is_not_tried_again(broker: RunningBroker) -> None:
    pauses: list[float] = []
    options = parse({**address(broker), "stream": "s", "username": "nobody", "password": "wrong"})
    with pytest.raises(BrokerLost, match="refused the connection"):
        connect(options, "test", Patience(options, pauses.append))
    assert pauses == []


def test_a_broker_is_asked_for_two_minutes_and_anew_after_it_has_answered() -> None:
    now = [0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    patience = Patience(parse({"stream": "s"}), sleep, lambda: now[0])
    while patience.again():
        pass
    assert now[0] == 120.0 and patience.failures > 10
    patience.progressed()
    assert patience.again() and now[0] == 120.2
    short = Patience(parse({"stream": "s", "patience": "500ms"}), sleep, lambda: now[0])
    assert [short.again() for _ in range(4)] == [True, True, False, False]
    with pytest.raises(OptionError, match="either option 'patience' or 'retries'"):
        parse({"stream": "s", "patience": "1s", "retries": "1"})


@pytest.mark.parametrize("kind", ["stream", "queue"])
def test_a_connection_cut_in_the_middle_of_a_read_loses_and_repeats_nothing(
    warren: RunningBroker, name: str, kind: str
) -> None:
    from pyspark.sql.types import BinaryType, StructField, StructType

    from warrenmq.spark.lease_reading import LeasePartition, read_lease
    from warrenmq.spark.stream_reading import StreamPartition, read_range

    with channel(warren) as declaring:
        declaring.queue_declare(name, durable=True, arguments={"x-queue-type": "stream"} if kind == "stream" else {})
    publish(warren, name, [b"%100d" % number for number in range(5000)])
    schema = StructType([StructField("body", BinaryType())])
    with cutting_proxy(warren.port, 200_000) as (port, connections):
        options = parse({**reading(warren), "port": str(port), kind: name})
        if kind == "stream":
            tables = list(read_range(options, schema, StreamPartition(name, 0, 5000)))
        else:
            _, lease = warren.http("POST", f"/api/queues/%2F/{name}/leases", {"count": 5000})
            assert isinstance(lease, dict)
            tables = list(read_lease(options, schema, LeasePartition(name, str(lease["id"]), 5000)))
    assert len(connections) == 2
    assert [int(row["body"]) for table in tables for row in table.to_pylist()] == list(range(5000))


def read_all(options: dict[str, str], streaming: bool) -> int:
    """Plan and read as Spark would, without Spark; how many rows there were."""
    from pyspark.sql.types import BinaryType, StructField, StructType

    from warrenmq.spark.source import AmqpDataSource

    source, schema = AmqpDataSource(options), StructType([StructField("body", BinaryType())])
    reader: Any = source.streamReader(schema) if streaming else source.reader(schema)
    if streaming:
        at = reader.initialOffset()
        reader.prepareForTriggerAvailableNow()
        partitions: Any = []
        while not partitions:  # the first batch of a leased queue only makes its owner known
            at, before = reader.latestOffset(at, reader.getDefaultReadLimit()), at
            partitions = reader.partitions(before, at)
    else:
        partitions = reader.partitions()
    return sum(table.num_rows for partition in partitions for table in reader.read(partition))


STEPS = {"channel.open": b"\0\x14\0\x0a", "queue.declare": b"\0\x32\0\x0a", "basic.consume": b"\0\x3c\0\x14"}


@pytest.mark.parametrize("stall", [False, True], ids=["cut", "silent"])
@pytest.mark.parametrize("streaming", [False, True], ids=["batch", "streaming"])
@pytest.mark.parametrize("kind", ["stream", "leased queue", "plain queue"])
def test_a_broker_lost_at_any_step_of_a_read_is_named_and_asked_again(
    warren: RunningBroker, name: str, kind: str, streaming: bool, stall: bool
) -> None:
    def lose(step: str, retries: int) -> int:
        """A new source with 10 messages, lost once at this step of reading it."""
        queue = f"{name}-{step}-{retries}"
        arguments = {"x-queue-type": "stream"} if kind == "stream" else {}
        with channel(warren) as declaring:
            declaring.queue_declare(queue, durable=True, arguments=arguments)
        publish(warren, queue, [b"x"] * 10)
        where = {"stream": queue} if kind == "stream" else {"queue": queue, "leases": str("leased" in kind).lower()}
        with cutting_proxy(warren.port, at=STEPS[step], stall=stall) as (port, _):
            options = {**reading(warren), **where, "port": str(port), "connectTimeout": "200ms"}
            try:
                return read_all({**options, "retries": str(retries)}, streaming)
            except BrokerLost as lost:
                assert f"127.0.0.1:{port}" in str(lost)
                return 0

    for step in STEPS if kind != "stream" else ("channel.open", "basic.consume"):
        assert lose(step, retries=0) == 0
        if kind != "plain queue":  # what was taken from it went back with the connection: Spark begins anew
            assert lose(step, retries=1) == 10


def test_a_broker_that_goes_silent_under_a_write_is_named(warren: RunningBroker, name: str) -> None:
    import pyarrow

    from warrenmq.spark.publisher import Publisher

    rows = [pyarrow.record_batch({"body": [b"x"]})]
    with cutting_proxy(warren.port, at=STEPS["channel.open"], stall=True) as (port, _):
        options = {"port": str(port), "connectTimeout": "200ms", "exchange": "", "routingKey": name}
        with pytest.raises(BrokerLost, match=f"the broker at 127.0.0.1:{port} does not answer"):
            list(Publisher(parse({**options, "host": "127.0.0.1"}, writing=True), "").run(rows))


def test_an_http_api_in_trouble_is_not_taken_for_a_broker_without_leases(monkeypatch: pytest.MonkeyPatch) -> None:
    api = HttpApi(parse({"queue": "q"}))
    for status, expected in ((200, True), (404, False)):
        monkeypatch.setattr(api, "call", lambda *_, status=status: (status, []))
        assert api.has_leases() is expected
    monkeypatch.setattr(api, "call", lambda *_: (503, {"reason": "starting"}))
    with pytest.raises(BrokerLost, match="the leases of queue 'q' cannot be listed: 503 starting"):
        api.has_leases()
