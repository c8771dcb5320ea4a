"""A large body leaves in pieces: the loop gets a bounded amount before it has looked at everybody else."""

from __future__ import annotations

import os
import time
from collections import Counter
from typing import Any

import pytest

from tests.support import web
from tests.support.rawclient import RawClient
from warrenmq.broker.channel.output import FLUSH_AT
from warrenmq.client import Connection, Properties
from warrenmq.server import transport as module
from warrenmq.server.transport import GIVEN, PASS, ClientTransport
from warrenmq.testing import Broker

SIZE = 40 << 20
FRAME = 131072


@pytest.mark.parametrize("persistent", [False, True])
def test_a_large_body_is_handed_to_the_loop_a_few_megabytes_at_a_time(
    monkeypatch: pytest.MonkeyPatch, persistent: bool
) -> None:
    given: list[int] = []  # by each pass of the loop
    passes: list[int] = [0]

    class Counting(ClientTransport):
        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            real = transport.writelines

            def writelines(parts: list[bytes]) -> None:
                while len(given) <= passes[0]:
                    given.append(0)
                given[passes[0]] += sum(map(len, parts))
                real(parts)

            self._transport = _With(transport, writelines)

        def _free(self) -> None:
            passes[0] += 1
            super()._free()

        def resume_writing(self) -> None:
            passes[0] += 1
            super().resume_writing()

    monkeypatch.setattr("warrenmq.server.app.ClientTransport", Counting)
    body = os.urandom(1 << 20) * (SIZE >> 20)
    with Broker() as broker, Connection(broker.url, timeout=60) as connection:
        channel = connection.channel()
        channel.queue_declare("q", durable=True)
        channel.confirm_select()
        channel.basic_publish("", "q", body, Properties(delivery_mode=2 if persistent else 1))
        assert channel.wait_for_confirms(60) == []
        channel.basic_consume("q", no_ack=True)
        [message] = channel.receive(60)
        assert message.body == body
        channel.basic_publish("", "q", b"and what comes behind it")
        [message] = channel.receive(60)
        assert message.body == b"and what comes behind it"
    assert sum(given) >= SIZE
    assert max(given) <= GIVEN + (module.AT_ONCE + 1) * 4 * FRAME


def test_a_backlog_of_small_messages_is_handed_over_two_megabytes_a_turn_however_fast_it_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given: Counter[int] = Counter()  # octets by turn

    class Counting(ClientTransport):
        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            real = transport.write

            def write(data: bytes) -> None:
                given[self._turns.number] += len(data)
                real(data)

            self._transport = _With(transport, transport.writelines, write)

    monkeypatch.setattr("warrenmq.server.app.ClientTransport", Counting)
    count = 200_000
    with Broker() as broker, Connection(broker.url, timeout=60) as connection:
        channel = connection.channel()
        channel.queue_declare("q")
        for _ in range(count):
            channel.basic_publish("", "q", b"sixteen octets .")
        connection.flush()
        channel.basic_consume("q", no_ack=True)
        got = 0
        while got < count:
            got += len(channel.receive(60))
        assert channel.queue_declare("q", passive=True).int("message_count") == 0
    assert given.total() > 4 * PASS
    assert max(given.values()) <= PASS + FLUSH_AT + FRAME


class _With:
    """A transport with another ``writelines`` and perhaps another ``write``."""

    def __init__(self, transport: Any, writelines: Any, write: Any = None) -> None:
        self._of = transport
        self.writelines = writelines
        self.write = write or transport.write

    def __getattr__(self, name: str) -> Any:
        return getattr(self._of, name)


@pytest.mark.parametrize("sizes", [[40 << 20], [200_000] * 200], ids=["one large body", "many smaller ones"])
def test_what_a_client_has_not_taken_yet_is_told_of_its_connection(sizes: list[int]) -> None:
    with Broker() as broker, web.Client() as asking, RawClient(broker.port) as slow:
        slow.handshake().open(1)
        slow.call(1, "queue.declare", queue="q")
        with Connection(broker.url, timeout=60) as connection:
            channel = connection.channel()
            channel.confirm_select()
            for size in sizes:
                channel.basic_publish("", "q", b"x" * size)
            assert channel.wait_for_confirms(60) == []
        slow.send_method(1, "basic.consume", queue="q", no_ack=True)  # and reads nothing of it

        def told() -> tuple[int, float]:
            (row,) = asking.get(f"{broker.http_url}/api/connections", auth=("guest", "guest")).json()
            page = asking.get(f"{broker.http_url}/metrics").text
            (line,) = (one for one in page.splitlines() if one.startswith("rabbitmq_connection_pending_packets "))
            return row["send_pend"], float(line.split()[1])

        until = time.monotonic() + 60
        while (said := told())[0] < 100_000 and time.monotonic() < until:
            time.sleep(0.05)
        assert 100_000 < said[0] == said[1] <= sum(sizes) * 1.01
        taken = 0
        while taken < sum(sizes):
            taken += len(slow.socket.recv(1 << 20))
        while told() != (0, 0.0):
            assert time.monotonic() < until + 60
            time.sleep(0.05)
