"""stop_app and start_app: a stop of everything but the process, so what is not durable is gone, as in RabbitMQ.

Each test has a broker of its own, and asks both the same.
"""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterator
from urllib.parse import quote

import pytest

from tests.support.brokers import BrokerUnavailable, RunningBroker, start_rabbitmq, start_warren
from tests.support.rawclient import RawClient

QUEUES = ("durable", "transient", "durable, auto-delete", "quorum", "stream", "transient, auto-delete", "prioritised")
EXCHANGES = ("durable", "transient", "durable, auto-delete", "transient, auto-delete", "from durable to transient")


@pytest.fixture(scope="module", params=["warren", "rabbitmq"])
def broker(request: pytest.FixtureRequest) -> Iterator[RunningBroker]:
    with contextlib.ExitStack() as stack:
        if request.param == "warren":
            yield stack.enter_context(start_warren())
            return
        try:
            private = stack.enter_context(start_rabbitmq(("rabbitmq_management",)))
        except BrokerUnavailable as reason:
            pytest.skip(str(reason))
        yield private


def stop_and_start(broker: RunningBroker) -> None:
    if broker.is_warren:
        for verb in ("stop_app", "start_app"):
            order(broker, verb)
    else:
        broker.ctl("eval", "rabbit:stop(), rabbit:start().")  # what the two verbs do, without a program for each


def order(broker: RunningBroker, verb: str) -> None:
    status, nodes = broker.http("GET", "/api/nodes")
    assert status == 200 and isinstance(nodes, list)
    assert broker.http("POST", f"/api/nodes/{quote(nodes[0]['name'])}/{verb}")[0] == 204


def connect(broker: RunningBroker) -> RawClient:
    return RawClient(broker.port, timeout=30).handshake().open(1)


def declare_queue(client: RawClient, name: str) -> None:
    kind = name if name in ("quorum", "stream") else "classic"
    arguments: dict[str, object] = {"x-queue-type": kind}
    if name == "prioritised":
        arguments["x-max-priority"] = 3
    answer = client.call(
        1,
        "queue.declare",
        queue=name,
        durable="transient" not in name,
        arguments=arguments,
        auto_delete="auto-delete" in name,
    )
    assert answer.name == "queue.declare-ok"


def declare_exchange(client: RawClient, name: str) -> None:
    answer = client.call(
        1,
        "exchange.declare",
        exchange=name,
        type="direct",
        durable=not name.startswith("transient"),
        auto_delete="auto-delete" in name,
    )
    assert answer.name == "exchange.declare-ok"


def names(broker: RunningBroker, what: str) -> set[str]:
    """What there is, as soon as the API answers again."""
    deadline = time.monotonic() + 60
    while True:
        with contextlib.suppress(OSError):
            status, found = broker.http("GET", f"/api/{what}/%2F?columns=name")
            if status == 200 and isinstance(found, list):
                return {each["name"] for each in found}
        assert time.monotonic() < deadline, f"no {what} were listed"
        time.sleep(0.1)


def publish(client: RawClient, exchange: str, key: str, *bodies: bytes, persistent: bool = True) -> None:
    """Confirmed."""
    for body in bodies:
        client.publish(1, exchange, key, body, delivery_mode=2 if persistent else 1)
        assert client.wait("basic.ack").name == "basic.ack"


def drained(broker: RunningBroker, queue: str) -> list[tuple[bytes, bool]]:
    """What basic.get finds: body and redelivered."""
    found = []
    with connect(broker) as client:
        while client.call(1, "basic.get", queue=queue, no_ack=True).name == "basic.get-ok":
            method = client.frames[-1]
            client.read()
            body = client.read()
            assert body is not None
            found.append((body.data, bool(method.values["redelivered"])))
    return found


def test_nobody_else_gets_the_port_between_stop_app_and_start_app() -> None:
    with start_warren() as broker:
        order(broker, "stop_app")
        with pytest.raises(OSError, match="in use"), socket.socket() as other:
            other.bind(("127.0.0.1", broker.port))
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", broker.port), timeout=30)
        order(broker, "start_app")
        with connect(broker):
            pass


def test_what_is_not_durable_is_gone(broker: RunningBroker) -> None:
    with connect(broker) as client:
        for name in QUEUES:
            declare_queue(client, name)
        for name in EXCHANGES:
            declare_exchange(client, name)
            bound = "transient" if name == "durable, auto-delete" else "durable"
            client.call(1, "queue.bind", queue=bound, exchange=name, routing_key="k")
        client.call(1, "exchange.bind", source="from durable to transient", destination="transient", routing_key="k")
        client.call(1, "queue.bind", exchange="durable", queue="transient", routing_key="t")
        stop_and_start(broker)
    assert names(broker, "queues") == {"durable", "durable, auto-delete", "quorum", "stream", "prioritised"}
    assert names(broker, "exchanges") & set(EXCHANGES) == {
        "durable",
        "durable, auto-delete",
        "from durable to transient",
    }


def test_transient_messages_are_gone_and_persistent_ones_are_in_order(broker: RunningBroker) -> None:
    queues = ("durable", "prioritised", "quorum")
    with connect(broker) as client:
        client.call(1, "confirm.select")
        for queue in queues:
            declare_queue(client, queue)
            for number in range(20):
                publish(client, "", queue, b"%d" % number, persistent=number % 2 == 0)
            for _ in range(3):
                client.send_method(1, "basic.get", queue=queue)
                client.wait_message("basic.get-ok")
        stop_and_start(broker)
    for queue in queues:
        kept = range(20) if queue == "quorum" else range(0, 20, 2)
        assert drained(broker, queue) == [(b"%d" % number, number < 3) for number in kept], queue


def test_it_makes_no_difference_whether_a_queue_is_in_memory(broker: RunningBroker) -> None:
    many = 9000  # more than is kept in memory
    with connect(broker) as client:
        declare_queue(client, "durable")
        for number in range(many):
            client.publish(1, "", "durable", b"%d" % number, delivery_mode=1 if number % 3 == 0 else 2)
        client.call(1, "queue.declare", queue="durable", passive=True)  # all have been taken
        stop_and_start(broker)
    left = [int(body) for body, _ in drained(broker, "durable")]
    assert left == [number for number in range(many) if number % 3]
