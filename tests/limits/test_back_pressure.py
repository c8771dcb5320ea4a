"""A consumer that does not read, over real sockets: TCP holds it, the broker's memory does not grow, others go on."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

import pytest

from tests.limits.crowd import Member, resident
from tests.support import rawclient
from tests.support.brokers import start_warren
from warrenmq.client import Connection, Properties

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")]

MIB = 1 << 20
SIZE = 100_000
COUNT = 2_000  # 200 MB


def fill(url: str, queue: str, count: int) -> None:
    with Connection(url) as connection:
        channel = connection.channel()
        channel.queue_declare(queue, durable=True)
        channel.confirm_select()
        for start in range(0, count, 100):
            for n in range(start, start + 100):
                body = b"%08d" % n + b"x" * (SIZE - 8)
                channel.basic_publish("", queue, body, Properties(delivery_mode=2))
            connection.flush()
            channel.wait_for_confirms(60)


MEASURED = pytest.mark.parametrize("measured", [False, pytest.param(True, marks=pytest.mark.soak, id="and its memory")])


@MEASURED
def test_a_consumer_that_does_not_read_is_held_by_tcp_and_gets_everything_when_it_reads_again(
    tmp_path: Path, measured: bool
) -> None:
    with start_warren(data_dir=tmp_path) as broker:
        fill(broker.url, "backlog", COUNT)
    with start_warren(data_dir=tmp_path) as broker:  # a fresh process, whose memory nobody has stretched
        broker.http("GET", "/api/overview")
        with Connection(broker.url, timeout=60) as lazy, Connection(broker.url, timeout=60) as busy:
            before = resident(broker)
            channel = lazy.channel()
            channel.basic_consume("backlog", no_ack=True)  # 200 MB are his, and he does not read
            other = busy.channel()
            other.queue_declare("other")
            other.basic_consume("other", no_ack=True)
            for n in range(500):  # those beside him are served all the while
                other.basic_publish("", "other", b"%d" % n)
                busy.flush()
                assert next(iter(other.messages(timeout=60))).body == b"%d" % n
            status, found = broker.http("GET", "/api/queues/%2F/backlog")
            assert status == 200 and isinstance(found, dict) and found["messages_ready"] > COUNT // 2
            if measured:
                grown = resident(broker) - before
                print(f"\na reader that does not read cost {grown / MIB:.1f} MiB, of 200 MB that wait for him")
                assert grown < 40 * MIB
            bodies = (message.body for message in channel.messages(timeout=60))
            for number, body in enumerate(itertools.islice(bodies, COUNT)):
                assert body[:8] == b"%08d" % number and len(body) == SIZE
            assert number == COUNT - 1


@MEASURED
def test_a_client_that_publishes_and_never_reads_its_returns_is_stopped(measured: bool) -> None:
    with start_warren() as broker:
        broker.http("GET", "/api/overview")
        before = resident(broker)
        client = Member(broker.port)
        client.greet(1)
        client.socket.settimeout(2)
        one = rawclient.publish(1, "", "nowhere", b"x" * MIB, mandatory=True)
        sent = 0
        with pytest.raises(TimeoutError):
            while sent < 400:  # 400 MB of returns if nobody stopped it
                client.socket.sendall(one)
                sent += 1
        if measured:
            grown = resident(broker) - before
            print(f"\nstopped after {sent} MiB, {grown / MIB:.1f} MiB of memory")
            assert grown < 60 * MIB
        with Connection(broker.url) as other:
            other.channel().queue_declare("alive")
        client.close()
