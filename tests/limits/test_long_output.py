"""A very long body is cut into frames when its client takes them, not when it is delivered or returned."""

from __future__ import annotations

import pytest

from tests.limits.gate import advance
from warrenmq.broker.channel.body_frames import BodyFrames
from warrenmq.broker.channel.output import FLUSH_AT, LONG_BODY
from warrenmq.testing.core import Core
from warrenmq.testing.core_client import Buffer, CoreClient

pytestmark = pytest.mark.pure

BODY = b"".join(b"%07d " % number for number in range(LONG_BODY // 8 + 500_000))  # some 8 MB
CUT = 1 << 20
FRAME = 131072


class Patient(Buffer):
    """Takes a long body when it is told to, so much at a time."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting: list[bytes | BodyFrames] = []
        self.most = 0

    def write(self, data: bytes) -> None:
        if self.waiting:
            self.waiting.append(data)
        else:
            super().write(data)

    def write_body(self, frames: BodyFrames) -> None:
        self.waiting.append(frames)

    def read(self) -> None:
        for one in self.waiting:
            while isinstance(one, BodyFrames) and one.left:
                parts = one.next(CUT)
                self.most = max(self.most, sum(map(len, parts)))
                self.data += b"".join(parts)
            if isinstance(one, bytes):
                self.data += one
        self.waiting = []


def patient(core: Core) -> tuple[CoreClient, Patient]:
    client = CoreClient(core)
    sink = Patient()
    core.broker.begin_turn()
    client.connection.lost("replaced")
    client.connection = core.broker.connect(sink, "127.0.0.1", 50001, "127.0.0.1", 5672)
    client.sink = sink
    client.handshake("guest", "guest", "/", {})
    return client, sink


def test_what_a_consumer_gets_is_cut_as_it_goes(core: Core) -> None:
    publisher = core.client()
    publisher.call("queue.declare", queue="q", durable=True)
    publisher.publish("", "q", BODY, delivery_mode=2)
    publisher.publish("", "q", b"behind", delivery_mode=2)
    client, sink = patient(core)
    client.send("basic.consume", queue="q", no_ack=True)
    assert len(sink.data) < FLUSH_AT and sink.waiting
    sink.read()
    assert client.bodies() == [BODY, b"behind"]
    assert 0 < sink.most <= CUT + 2 * FRAME


def test_what_is_fetched_is_cut_as_it_goes(core: Core) -> None:
    publisher = core.client()
    publisher.call("queue.declare", queue="q")
    publisher.publish("", "q", BODY)
    client, sink = patient(core)
    client.send("basic.get", queue="q", no_ack=True)
    assert len(sink.data) < FLUSH_AT and sink.waiting
    sink.read()
    assert client.bodies() == [BODY]


@pytest.mark.parametrize("held", [False, True], ids=["at once", "behind an answer that waits for the log"])
def test_what_is_returned_is_cut_as_it_goes(tmp_path_factory: pytest.TempPathFactory, held: bool) -> None:
    core = Core(tmp_path_factory.mktemp("core"), held=held)
    client, sink = patient(core)
    client.send("queue.declare", queue="d", durable=True)
    client.publish("", "nowhere", BODY, mandatory=True)
    advance(core, 1)
    core.commit()
    assert len(sink.data) < FLUSH_AT and sink.waiting
    sink.read()
    declared, returned = client.take()
    assert (declared.name, returned.name, returned.body) == ("queue.declare-ok", "basic.return", BODY)
    assert 0 < sink.most <= CUT + 2 * FRAME


@pytest.mark.parametrize("room", [4088, 65536, 131064, 1 << 30])
@pytest.mark.parametrize("piece", [1000, 131064, 256 << 10, len(BODY)])
def test_the_frames_are_as_large_as_may_be_however_the_body_came(room: int, piece: int) -> None:
    chunks = [BODY[at : at + piece] for at in range(0, len(BODY), piece)]
    frames = BodyFrames(513, chunks, len(BODY), room)
    wanted = b"".join(
        b"\x03\x02\x01" + len(payload).to_bytes(4, "big") + payload + b"\xce"
        for payload in (BODY[at : at + room] for at in range(0, len(BODY), room))
    )
    got = []
    while frames.left:
        got += frames.next(CUT)
    assert b"".join(got) == wanted and frames.octets == len(wanted) and frames.next(CUT) == []
