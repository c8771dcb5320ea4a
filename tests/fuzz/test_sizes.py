"""What one client can make the broker hold: its frames and the bodies it declared, no more."""

from __future__ import annotations

import gc
import struct
import sys

import pytest

from tests.fuzz.conversations import method_with_table, nested
from tests.support.lines import lines
from warrenmq.broker.channel.channel import Channel
from warrenmq.broker.connection.connection import Connection
from warrenmq.server.config import Settings, SettingsError
from warrenmq.testing.core import Core
from warrenmq.testing.core_client import CoreClient
from warrenmq.wire.content import Properties, content_frames, encode_header
from warrenmq.wire.methods import method_frame

pytestmark = pytest.mark.pure

GIB = 1 << 30


@pytest.fixture
def client(core: Core) -> CoreClient:
    client = core.client()
    client.call("queue.declare", queue="q")
    client.take()
    return client


def frame(kind: int, payload: bytes, channel: int = 1) -> bytes:
    return struct.pack(">BHI", kind, channel, len(payload)) + payload + b"\xce"


def declared(size: int, weight: int = 0, class_id: int = 60) -> bytes:
    """A publish up to its content header."""
    header = struct.pack(">HHQH", class_id, weight, size, 0)
    return method_frame(1, "basic.publish", routing_key="q") + frame(2, header)


def held(client: CoreClient) -> int:
    """Bytes the broker keeps for this connection's input."""
    connection = client.connection
    rest = int(connection.input.kept())
    return rest + sum(sum(map(len, channel.assembly.chunks)) for channel in connection.channels.values())


@pytest.mark.parametrize("limit", [1, 100, 70_000, 300_000])
def test_a_message_at_the_limit_is_taken_and_one_above_is_refused(core: Core, client: CoreClient, limit: int) -> None:
    core.broker.services.limits.max_message_size = limit
    client.publish("", "q", b"x" * limit)
    assert client.story() == []
    assert client.call("basic.get", queue="q", no_ack=True).body == b"x" * limit
    client.take()
    client.publish("", "q", b"x" * (limit + 1))
    closed = client.take()[0]
    assert closed["reply_code"] == 406
    text = f"PRECONDITION_FAILED - message size {limit + 1} is larger than configured max size {limit}"
    assert closed["reply_text"] == text
    assert core.broker.vhosts["/"].queues["q"].ready == 0


@pytest.mark.parametrize("size", [101, 2 * GIB + 1, 2**63, 2**64 - 1])
def test_a_message_too_large_is_refused_from_its_header_before_any_body_comes(
    core: Core, client: CoreClient, size: int
) -> None:
    core.broker.services.limits.max_message_size = 100
    client.feed(declared(size))
    assert client.story() == ["channel.close 406"]
    for _ in range(50):  # what the client sends on regardless is thrown away
        client.feed(frame(3, b"x" * 100_000))
    assert held(client) == 0
    assert client.story() == []


def test_with_a_limit_of_2_gib_one_byte_more_is_refused_and_2_gib_are_waited_for(
    core: Core, client: CoreClient
) -> None:
    core.broker.services.limits.max_message_size = 2 * GIB
    client.feed(declared(2 * GIB + 1))
    closed = client.take()[0]
    assert closed["reply_text"] == (
        "PRECONDITION_FAILED - message size 2147483649 is larger than configured max size 2147483648"
    )
    other = core.client()
    other.feed(declared(2 * GIB))
    other.feed(frame(3, b"x" * 1000))
    assert other.story() == []
    assert held(other) == 1000, "the declared size is not reserved"


def test_a_frame_too_large_is_refused_from_its_first_octets(client: CoreClient) -> None:
    client.feed(struct.pack(">BHI", 3, 1, 131073) + b"x")
    closed = client.take()[0]
    assert closed["reply_text"] == "FRAME_ERROR - type 3, all octets = <<>>: {frame_too_large,131073,131064}"
    for _ in range(20):
        client.feed(b"x" * 100_000)
    assert held(client) == 0


def test_a_frame_of_the_negotiated_size_and_eight_octets_is_still_taken(client: CoreClient) -> None:
    client.feed(declared(131072))
    client.feed(frame(3, b"x" * 131072))
    assert client.call("basic.get", queue="q").body == b"x" * 131072


def test_before_tuning_a_frame_may_have_no_more_than_4096_octets(core: Core) -> None:
    client = CoreClient(core)
    client.feed(b"AMQP\0\0\x09\x01" + struct.pack(">BHI", 1, 0, 4097) + b"x")
    assert client.story() == ["connection.start", "connection.close 501"]


def test_a_frame_that_trickles_in_is_held_once(client: CoreClient) -> None:
    whole = declared(60_000) + frame(3, b"x" * 60_000)
    for at in range(0, len(whole), 97):
        client.feed(whole[at : at + 97])
        assert held(client) <= len(whole)
    assert client.call("basic.get", queue="q").body == b"x" * 60_000


def test_empty_body_frames_are_not_collected(client: CoreClient) -> None:
    client.feed(declared(10))
    client.feed(frame(3, b"") * 10_000)
    assert len(client.connection.channels[1].assembly.chunks) == 0
    client.feed(frame(3, b"0123456789"))
    assert client.call("basic.get", queue="q").body == b"0123456789"


@pytest.mark.parametrize("piece", [1, 2, 100])
def test_a_body_in_tiny_frames_costs_little_more_than_the_body(client: CoreClient, piece: int) -> None:
    size = piece * 40_000
    client.feed(declared(size))
    client.feed(frame(3, b"y" * piece) * 39_999)
    chunks = client.connection.channels[1].assembly.chunks
    cost = sys.getsizeof(chunks) + sum(map(sys.getsizeof, chunks))
    assert cost < 1.3 * size + 20_000, cost
    client.feed(frame(3, b"z" * piece))
    body = client.call("basic.get", queue="q").body
    assert body == b"y" * (size - piece) + b"z" * piece


def test_a_body_longer_than_declared_ends_the_connection(client: CoreClient) -> None:
    client.feed(declared(70_000))
    client.feed(frame(3, b"x" * 70_001))
    assert client.story() == ["connection.close 505"]


def test_a_content_header_with_a_weight_is_no_content_header(core: Core) -> None:
    for size in (0, 5, 100_000):
        other = core.client()
        other.feed(declared(size, weight=1) + frame(3, b"12345"))
        closed = other.take()[0]
        assert closed["reply_text"] == (
            "UNEXPECTED_FRAME - expected content header for class 60, got non content header frame instead"
        )


def test_a_content_header_of_another_class_is_named_in_the_answer(client: CoreClient) -> None:
    client.feed(declared(5, class_id=65535))
    closed = client.take()[0]
    text = "UNEXPECTED_FRAME - expected content header for class 60, got one for class 65535 instead"
    assert closed["reply_text"] == text


@pytest.mark.parametrize("letter", ["F", "A"])
@pytest.mark.parametrize("depth", [70, 1_000, 20_000])
def test_tables_nested_too_deep_are_refused_and_exhaust_no_stack(client: CoreClient, letter: str, depth: int) -> None:
    client.feed(method_with_table(1, nested(depth, letter)))
    assert client.story() == ["connection.close 501"]


@pytest.mark.parametrize("letter", ["F", "A"])
def test_headers_nested_too_deep_are_refused_and_exhaust_no_stack(client: CoreClient, letter: str) -> None:
    table = nested(20_000, letter)
    header = struct.pack(">HHQH", 60, 0, 5, 0x2000) + table
    client.feed(method_frame(1, "basic.publish", routing_key="q") + frame(2, header) + frame(3, b"12345"))
    story = client.story()
    assert len(story) == 1 and story[0].startswith("connection.close 5"), story


def test_a_publisher_with_ever_new_routing_keys_leaves_nothing_behind(core: Core, client: CoreClient) -> None:
    vhost = core.broker.vhosts["/"]
    for exchange, names in (("", vhost.queue_routes), ("amq.topic", vhost.exchange_routes)):
        for at in range(0, 12_000, 500):
            data = b""
            for n in range(at, at + 500):
                data += method_frame(1, "basic.publish", exchange=exchange, routing_key=f"key-{n}")
                data += content_frames(1, encode_header(Properties(), 1), b"x", 131072)
            client.feed(data)
        remembered = sum(len(routes) for routes in names._routes.values())
        assert remembered < 6_000, (exchange, remembered)


def test_timers_that_are_moved_on_and_on_leave_nothing_behind(core: Core, client: CoreClient) -> None:
    client.call("queue.declare", queue="e", arguments={"x-expires": 3_600_000, "x-message-ttl": 86_400_000})
    for n in range(2_000):
        core.clock.set_ms(core.clock.now_ms() + 1)
        client.publish("", "e", b"x")
        client.send("basic.get", queue="e", no_ack=True)
        if n % 100 == 0:
            client.take()
    assert len(core.broker.services.timers._heap) < 500


def test_connections_that_are_over_are_freed_without_the_garbage_collector(core: Core) -> None:
    def kept() -> int:
        return sum(type(each) in (Connection, Channel) for each in gc.get_objects())

    gc.collect()
    before = kept()
    gc.disable()
    try:
        for mode in ("confirm.select", "tx.select", "basic.qos"):
            client = core.client()
            client.call("queue.declare", queue="q")
            client.call(mode)
            client.call("basic.consume", queue="q", consumer_tag="c")
            client.call("basic.consume", queue="amq.rabbitmq.reply-to", no_ack=True)
            client.publish("", "nowhere", b"x", Properties(delivery_mode=2), mandatory=True)
            client.send("connection.close", 0, reply_code=200)
            del client
        assert kept() - before == 0
    finally:
        gc.enable()


def test_connections_that_came_and_went_leave_no_timers_behind(core: Core) -> None:
    for _ in range(1_000):
        client = core.client()
        client.send("connection.close", 0, reply_code=200)
    assert len(core.broker.connections) == 0
    assert len(core.broker.services.io_timers._heap) < 200


@pytest.mark.uncompiled
def test_a_persistent_body_in_tiny_frames_takes_time_in_proportion(client: CoreClient) -> None:
    """Each frame is looked at once, however many came before it."""
    client.call("queue.declare", queue="d", durable=True)
    client.take()
    size = 300_000
    header = struct.pack(">HHQH", 60, 0, size, 0x1000) + b"\x02"
    client.feed(method_frame(1, "basic.publish", routing_key="d") + frame(2, header))
    spent = [lines(lambda: client.feed(frame(3, b"x" * 5) * 10_000)) for _ in range(6)]
    assert client.call("basic.get", queue="d").body == b"x" * size
    assert max(spent) < 1.5 * min(spent), spent


def test_the_largest_message_may_be_set_from_1_byte_to_2_gib() -> None:
    for size in (1, 2 * GIB):
        assert Settings(max_message_size=size).max_message_size == size
    for size in (0, 2 * GIB + 1):
        with pytest.raises(SettingsError, match=f"max_message_size: {size} is not allowed"):
            Settings(max_message_size=size)
