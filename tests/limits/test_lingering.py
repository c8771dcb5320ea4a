"""A client that stops reading and is closed does not keep its socket."""

from __future__ import annotations

import socket
import time

import pytest

from tests.limits.crowd import GREETING
from tests.support import rawclient
from warrenmq.testing import Broker

MIB = 1 << 20


@pytest.mark.parametrize("reads", [False, True])
def test_a_closed_client_has_a_moment_to_take_what_was_written_and_no_more(reads: bool) -> None:
    with Broker() as broker, socket.create_connection(("127.0.0.1", broker.port), timeout=60) as client:
        client.sendall(GREETING + rawclient.method(1, "channel.open"))
        client.sendall(rawclient.publish(1, "", "nowhere", b"x" * MIB, mandatory=True) * 6)  # 6 MiB come back
        broker.settle()
        server = broker.server

        def close() -> int:
            server.begin()
            [connection] = server.broker.connections
            connection.lost("by hand")
            return len(server.transports)

        assert broker.call(close) == 1
        got = 0
        if reads:
            while chunk := client.recv(MIB):
                got += len(chunk)
            assert got > MIB, "what was written before the close still comes"
        deadline = time.monotonic() + 60
        while broker.call(lambda: len(server.transports)):
            assert time.monotonic() < deadline, "its socket is kept for ever"
            time.sleep(0.05)


def test_a_long_body_that_was_under_way_still_comes_whole_behind_the_close(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warrenmq.server.transport.LINGER", 600.0)  # however slowly this machine reads
    size = 24 * MIB
    with Broker() as broker, socket.create_connection(("127.0.0.1", broker.port), timeout=60) as client:
        client.sendall(GREETING + rawclient.method(1, "channel.open"))
        client.sendall(rawclient.publish(1, "", "nowhere", b"x" * size, mandatory=True))
        broker.settle()
        server = broker.server

        def close() -> int:
            server.begin()
            [connection] = server.broker.connections
            connection.lost("by hand")
            [transport] = server.transports
            return len(transport._waiting)

        assert broker.call(close) == 1
        got = 0
        while chunk := client.recv(MIB):
            got += chunk.count(b"x")
        assert got >= size
