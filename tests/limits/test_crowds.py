"""A real broker process and many clients: a thousand at once, five thousand one after the other."""

from __future__ import annotations

import contextlib
import resource
import sys
import time
from collections.abc import Callable, Iterator

import pytest

from tests.limits.crowd import Member, come_and_go, resident, sockets
from tests.support import rawclient
from tests.support.brokers import RunningBroker, start_warren

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")]

CONNECTIONS = 1000
CHANNELS = 10


@pytest.fixture
def broker() -> Iterator[RunningBroker]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < 2 * CONNECTIONS:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(4 * CONNECTIONS, hard), hard))
    with start_warren() as broker:
        broker.http("GET", "/api/overview")  # the HTTP side is loaded by its first use
        yield broker


def until(said: Callable[[], bool], what: str) -> None:
    """Sockets close a moment later."""
    deadline = time.monotonic() + 60
    while not said():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def test_a_thousand_connections_with_ten_channels_each_all_work(broker: RunningBroker) -> None:
    before = sockets(broker)
    with contextlib.ExitStack() as stack:
        crowd = []
        for _ in range(CONNECTIONS):
            member = Member(broker.port)
            stack.callback(member.close)
            member.greet(CHANNELS)
            crowd.append(member)
        last_ok = rawclient.method(CHANNELS, "channel.open-ok")
        for member in crowd:
            member.read_until(last_ok)
        assert sockets(broker) >= CONNECTIONS
        status, overview = broker.http("GET", "/api/overview")
        assert status == 200 and isinstance(overview, dict)
        assert overview["object_totals"]["connections"] == CONNECTIONS
        assert overview["object_totals"]["channels"] == CONNECTIONS * CHANNELS
        for number in range(0, CONNECTIONS, 40):
            queue, body = f"q{number}", b"body of %d" % number
            for channel in (1, CHANNELS):
                crowd[number].socket.sendall(
                    rawclient.method(channel, "queue.declare", queue=queue, exclusive=True)
                    + rawclient.publish(channel, "", queue, body)
                    + rawclient.method(channel, "basic.get", queue=queue, no_ack=True)
                )
                crowd[number].read_until(rawclient.frame(rawclient.BODY, channel, body))
    until(lambda: sockets(broker) <= before, "sockets are left")


def test_five_thousand_connects_and_closes_leave_nothing_behind(broker: RunningBroker) -> None:
    for _ in range(500):  # the first ones fill caches
        come_and_go(broker.port)
    before = sockets(broker)
    for _ in range(5000):
        come_and_go(broker.port)
    until(lambda: sockets(broker) <= before, "sockets are left")


@pytest.mark.soak
def test_and_no_memory(broker: RunningBroker) -> None:
    for _ in range(500):
        come_and_go(broker.port)
    before = resident(broker)
    for _ in range(5000):
        come_and_go(broker.port)
    print(f"\n5,000 connections: memory {before >> 20} MiB before, {resident(broker) >> 20} MiB after")
    assert resident(broker) < 1.1 * before


def test_connections_cut_without_a_word_leave_nothing_behind(broker: RunningBroker) -> None:
    before = sockets(broker)
    crowd = [Member(broker.port) for _ in range(300)]
    for member in crowd:
        member.greet(1)
    for member in crowd:
        member.read_until(rawclient.method(1, "channel.open-ok"))
        member.socket.sendall(rawclient.method(1, "queue.declare", queue="", exclusive=True))
    for member in crowd:
        member.close()
    until(lambda: sockets(broker) <= before, "sockets are left")
    assert broker.http("GET", "/api/queues") == (200, [])
