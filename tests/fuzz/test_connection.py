"""Whatever bytes a client sends: the broker does not crash, nobody else notices, memory stays bounded, and the end is a
reply code for it."""

from __future__ import annotations

import random
import re
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fuzz.conversations import broken, conversation, handshake, pieces
from warrenmq.broker.queue.classic import ClassicQueue
from warrenmq.testing.core import Core
from warrenmq.testing.core_client import Buffer, CoreClient
from warrenmq.wire.constants import FRAME_METHOD, PROTOCOL_HEADER
from warrenmq.wire.frames import FrameReader
from warrenmq.wire.replies import REPLIES

CASES = 1200
CLOSE, CLOSE_OK, CHANNEL_CLOSE = (10, 50), (10, 51), (20, 40)
GENERATED = re.compile(rb"amq\.(gen-|ctag-|rabbitmq\.reply-to\.)[A-Za-z0-9_-]{22}")


class World:
    """A broker with a bystander who works in a vhost of his own, and a fuzzer who may touch only "/"."""

    def __init__(self, folder: Path) -> None:
        self.core = Core(folder)
        broker = self.core.broker
        broker.add_vhost("quiet").save()
        broker.registry.access.set_permissions("guest", "quiet", ".*", ".*", ".*")
        broker.registry.access.add_user("fuzzer", "fuzzer", [])
        broker.registry.access.set_permissions("fuzzer", "/", ".*", ".*", ".*")
        broker.services.limits.max_message_size = 100_000
        self.bystander: CoreClient = self.core.client(vhost="quiet")
        self.bystander.call("queue.declare", queue="mine", durable=True)
        self.bystander.call("queue.declare", queue="kept", durable=True)
        self.bystander.publish("", "kept", b"kept")
        self.bystander.call("confirm.select")
        self.sent = 0

    def run(self, parts: list[bytes]) -> bytes:
        """One client sends this within one turn and goes away; what it was told."""
        broker = self.core.broker
        sink = Buffer()
        broker.begin_turn()
        connection = broker.connect(sink, "10.0.0.9", 1, "127.0.0.1", 5672)
        for part in parts:
            connection.feed(part)
            assert_bounded(connection, len(part))
        broker.end_turn()
        broker.begin_turn()
        connection.lost("the client went away")
        broker.end_turn()
        self.core.advance(10)
        assert list(broker.connections) == [self.bystander.connection]
        self.assert_nothing_is_left_of_it()
        return GENERATED.sub(lambda found: b"amq." + found.group(1) + b"x" * 22, bytes(sink.data))

    def assert_nothing_is_left_of_it(self) -> None:
        """What a client held goes back with it: the books of every queue are balanced."""
        broker = self.core.broker
        turn = broker.services.turn
        assert not broker.replies and not turn.dirty and not turn.owing and not broker.services.jobs.busy()
        for queue in broker.vhosts["/"].queues.values():
            assert queue.consumers == []
            assert queue.declared.exclusive_owner is None, "an exclusive queue outlived its connection"
            if queue.kind == "stream":
                continue
            assert isinstance(queue, ClassicQueue)
            assert (queue.unacked, queue.unacked_bytes) == (0, 0)
            assert queue.ready == sum(fifo.length for fifo in queue._order.fifos)
            assert queue.ready >= 0 and queue.ready_bytes >= 0
            assert queue.ready > 0 or queue.ready_bytes == 0

    def assert_bystander_works(self) -> None:
        self.sent += 1
        self.bystander.take()
        self.bystander.publish("", "mine", b"%d" % self.sent)
        assert self.bystander.story() == [f"ack {self.sent}"]
        got = self.bystander.call("basic.get", queue="mine", no_ack=True)
        assert got.name == "basic.get-ok" and got.body == b"%d" % self.sent
        queues = self.core.broker.vhosts["quiet"].queues
        assert sorted(queues) == ["kept", "mine"] and queues["kept"].ready == 1


def assert_bounded(connection: object, last: int) -> None:
    """Besides the piece just read: the frames of a publish that waits for its body, and the bodies declared."""
    held = connection.input.kept()  # type: ignore[attr-defined]
    limit = connection.input.frame_limit  # type: ignore[attr-defined]
    assert held <= 2 * (limit + 8) + 65536 + last, (held, limit)
    for channel in connection.channels.values():  # type: ignore[attr-defined]
        buffered = sum(len(chunk) for chunk in channel.assembly.chunks)
        assert buffered + channel.assembly.left <= connection.broker.services.limits.max_message_size  # type: ignore[attr-defined]
        assert buffered <= channel.assembly.size


def ending(output: bytes) -> str:
    """How a connection ended: ``running``, ``goodbye``, ``header`` or the code of connection.close."""
    if output.startswith(PROTOCOL_HEADER):
        assert output == PROTOCOL_HEADER
        return "header"
    reader = FrameReader()
    reader.feed(output)
    end = "running"
    while (frame := reader.next()) is not None:
        ids = (frame.payload[1], frame.payload[3]) if frame.type == FRAME_METHOD else (0, 0)
        if end != "running":  # behind our close only the answer to one that crossed it
            assert end != "goodbye" and ids == CLOSE_OK, frame
        elif ids == CLOSE_OK:
            end = "goodbye"
        elif ids in (CLOSE, CHANNEL_CLOSE):
            code = int.from_bytes(frame.payload[4:6], "big")
            text = frame.payload[7 : 7 + frame.payload[6]].decode("latin-1")  # Erlang shows octets as they are
            assert code in REPLIES, code
            assert text == REPLIES[code].name or text.startswith(REPLIES[code].name + " - "), text
            assert code != 541 or text == "INTERNAL_ERROR", text  # 3.10, for content headers it cannot read
            if ids == CLOSE:
                end = str(code)
            else:
                assert not REPLIES[code].hard
    assert reader.buffered == 0
    return end


def fuzz(worlds: tuple[World, World], seeds: range) -> Counter[str]:
    """Each conversation whole to one broker, in pieces to its twin: both must say the same."""
    endings: Counter[str] = Counter()
    whole, cut = worlds
    for seed in seeds:
        chance = random.Random(seed)
        data = broken(chance, conversation(chance, chance.randint(1, 25)))
        said = whole.run([data])
        endings[ending(said)] += 1
        assert cut.run(pieces(chance, data)) == said, f"seed {seed}"
        if seed % 50 == 0:
            whole.assert_bystander_works()
            cut.assert_bystander_works()
    whole.assert_bystander_works()
    return endings


def test_broken_conversations_end_in_a_reply_code_and_hurt_nobody_else(tmp_path: Path) -> None:
    worlds = World(tmp_path / "whole"), World(tmp_path / "pieces")
    endings = fuzz(worlds, range(CASES))
    print("\nendings:", dict(endings.most_common()))
    assert {"running", "goodbye", "501", "504", "505"} <= set(endings), endings


@pytest.mark.soak
def test_many_broken_conversations_end_in_a_reply_code_and_hurt_nobody_else(tmp_path: Path) -> None:
    for start in range(1_000_000, 1_050_000, 1000):
        worlds = World(tmp_path / f"whole{start}"), World(tmp_path / f"pieces{start}")
        fuzz(worlds, range(start, start + 1000))


def test_valid_conversations_never_end_in_a_frame_error(tmp_path: Path) -> None:
    world = World(tmp_path)
    for seed in range(300):
        chance = random.Random(seed)
        end = ending(world.run([b"".join(conversation(chance, 25))]))
        assert end in ("running", "goodbye", "503", "504", "530", "540"), f"seed {seed}: {end}"


def test_random_bytes_after_the_handshake_end_in_a_frame_error(tmp_path: Path) -> None:
    world = World(tmp_path)
    chance = random.Random(1)
    opening = b"".join(handshake())
    endings: Counter[str] = Counter()
    for _ in range(500):
        endings[ending(world.run([opening + chance.randbytes(chance.randint(8, 200))]))] += 1
    assert set(endings) <= {"501", "running"}, endings  # running: a plausible size was named and the rest never came
    assert endings["501"] > 400
    world.assert_bystander_works()


def test_random_bytes_instead_of_the_handshake_are_answered_with_the_protocol_header(tmp_path: Path) -> None:
    world = World(tmp_path)
    chance = random.Random(2)
    for _ in range(300):
        assert ending(world.run(pieces(chance, chance.randbytes(100)))) == "header"
    world.assert_bystander_works()


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(tmp_path_factory.mktemp("fuzz"))


@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(st.lists(st.binary(max_size=60), max_size=6), st.integers(0, 6))
def test_any_bytes_at_any_point_of_the_handshake_are_refused_or_waited_for(
    world: World, parts: list[bytes], point: int
) -> None:
    end = ending(world.run([*handshake()[:point], *parts]))
    assert end in ("running", "header", "goodbye", "403", "501", "502", "503", "504", "505", "530")
    world.assert_bystander_works()
