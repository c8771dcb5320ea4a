"""A client that does not read what it is sent: the broker keeps a bounded part of it, and forgets nothing."""

from __future__ import annotations

import pytest

from tests.limits.gate import connect
from warrenmq.broker.channel.output import OUTPUT_LIMIT
from warrenmq.broker.channel.sink import Sink
from warrenmq.testing.core import Core
from warrenmq.testing.core_client import CoreClient
from warrenmq.wire.constants import FRAME_METHOD
from warrenmq.wire.content import Properties, content_frames, encode_header
from warrenmq.wire.frames import FrameReader
from warrenmq.wire.methods import decode_method, method_frame

pytestmark = pytest.mark.pure

HIGH_WATER = 1 << 20


class Reluctant(Sink):
    """A transport whose client reads only when told to: it complains above its high-water mark, as asyncio's does."""

    def __init__(self) -> None:
        self.client: CoreClient | None = None
        self.waiting: list[bytes] = []
        self.size = 0
        self.most = 0
        self.full = False
        self.paused = False
        self.methods: list[str] = []
        self._reader = FrameReader()

    def write(self, data: bytes) -> None:
        self.waiting.append(data)
        self.size += len(data)
        self.most = max(self.most, self.size)
        if self.size > HIGH_WATER and not self.full and self.client is not None:
            self.full = True
            self.client.connection.pause_writing()

    def close(self) -> None:
        pass

    def pause_reading(self) -> None:
        self.paused = True

    def resume_reading(self) -> None:
        self.paused = False

    def read(self) -> None:
        """The client takes what waits, until nothing does."""
        assert self.client is not None
        broker = self.client.core.broker
        while self.waiting:
            for data in self.waiting:
                self._reader.feed(data)
            self.waiting = []
            self.size = 0
            while (frame := self._reader.next()) is not None:
                if frame.type == FRAME_METHOD:
                    self.methods.append(decode_method(frame.payload).name)
            if self.full:
                self.full = False
                broker.begin_turn()
                self.client.connection.resume_writing()
                broker.end_turn()


def reluctant(core: Core) -> tuple[CoreClient, Reluctant]:
    """A client, opened as usual, that stops reading behind the handshake."""
    client = CoreClient(core)
    sink = Reluctant()
    core.broker.begin_turn()
    client.connection.lost("replaced")
    client.connection = core.broker.connect(sink, "127.0.0.1", 50001, "127.0.0.1", 5672)
    sink.client = client
    client._collect = lambda: None  # type: ignore[method-assign]
    client.handshake("guest", "guest", "/", {})
    sink.read()
    sink.methods.clear()
    return client, sink


def unroutable(size: int) -> bytes:
    header = encode_header(Properties(), size)
    return method_frame(1, "basic.publish", routing_key="nowhere", mandatory=True) + content_frames(
        1, header, b"x" * size, 131072
    )


@pytest.mark.parametrize("at_once", [True, False])
def test_a_client_that_asks_for_more_than_it_reads_is_no_longer_heard(core: Core, at_once: bool) -> None:
    client, sink = reluctant(core)
    one = unroutable(30_000)
    if at_once:
        client.feed(one * 1000)
    else:
        for _ in range(1000):
            if sink.paused:
                break
            client.feed(one)
    assert sink.paused, "30 MB of answers wait, and the client is still read"
    assert sink.most < HIGH_WATER + OUTPUT_LIMIT + 1_000_000
    sent = 1000 if at_once else sink.most // 30_000
    sink.read()
    assert not sink.paused
    assert abs(len(sink.methods) - sent) <= 1 and set(sink.methods) == {"basic.return"}
    if at_once:
        assert len(sink.methods) == 1000


def test_while_it_does_not_read_others_work_and_its_own_order_is_kept(core: Core) -> None:
    client, sink = reluctant(core)
    client.feed(unroutable(30_000) * 500 + method_frame(1, "queue.declare", queue="behind"))
    assert "behind" not in core.broker.vhosts["/"].queues
    other = core.client()
    other.call("queue.declare", queue="q")
    other.publish("", "q", b"x")
    assert other.call("basic.get", queue="q").body == b"x"
    sink.read()
    assert sink.methods == ["basic.return"] * 500 + ["queue.declare-ok"]


def test_a_consumer_that_does_not_read_gets_no_more_than_the_transport_buffers(core: Core) -> None:
    client, sink = reluctant(core)
    client.feed(method_frame(1, "queue.declare", queue="q"))
    client.feed(method_frame(1, "basic.consume", queue="q", no_ack=True))
    sink.read()
    sink.methods.clear()
    publisher = core.client()
    for _ in range(200):
        publisher.publish("", "q", b"x" * 50_000)
    queue = core.broker.vhosts["/"].queues["q"]
    assert sink.most < HIGH_WATER + 600_000
    assert queue.ready > 170
    assert not sink.paused, "its acknowledgements must still be read"
    sink.read()
    assert sink.methods == ["basic.deliver"] * 200 and queue.ready == 0


def test_a_slow_consumer_does_not_hold_up_the_fast_one_beside_it(core: Core) -> None:
    client, sink = reluctant(core)
    client.feed(method_frame(1, "queue.declare", queue="q"))
    client.feed(method_frame(1, "basic.consume", queue="q", no_ack=True))
    fast = core.client()
    fast.call("basic.consume", queue="q", no_ack=True)
    fast.take()
    publisher = core.client()
    for n in range(200):
        publisher.publish("", "q", b"%d" % n + b"x" * 50_000)
    got = len(fast.take())
    fast._collect()
    got += len(fast.take())
    assert core.broker.vhosts["/"].queues["q"].ready == 0
    sink.read()
    slow = sink.methods.count("basic.deliver")
    assert 20 <= slow <= 35 and got == 200 - slow


def test_a_client_gone_while_it_was_not_heard_leaves_nothing(core: Core) -> None:
    client, sink = reluctant(core)
    client.feed(unroutable(30_000) * 1000)
    core.broker.begin_turn()
    client.connection.lost("gone")
    core.broker.end_turn()
    assert len(core.broker.connections) == 0
    connect(core)
