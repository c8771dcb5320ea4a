"""Is the other side still there: heartbeats both ways, closing both ways, all on the virtual clock."""

from __future__ import annotations

import pytest

from tests.limits.gate import advance, connect, refusal
from warrenmq.testing.core import Core
from warrenmq.testing.core_client import Buffer, CoreClient
from warrenmq.wire.methods import method_frame

pytestmark = pytest.mark.pure

HEARTBEAT = b"\x08\x00\x00\x00\x00\x00\x00\xce"


def beating(core: Core, seconds: int) -> CoreClient:
    client = connect(core, heartbeat=seconds)
    client.take()
    client.sink.data.clear()
    return client


def silence_until_dropped(core: Core, client: CoreClient) -> int:
    """Milliseconds until the broker gives up on a client that says nothing any more."""
    start = core.clock.now_ms()
    while not client.sink.closed:
        assert core.clock.now_ms() - start < 100_000
        advance(core, 100)
    return core.clock.now_ms() - start


@pytest.mark.parametrize("seconds", [1, 10])
@pytest.mark.parametrize("quiet_tenths", range(0, 10, 3))
def test_a_silent_client_is_dropped_after_two_to_three_timeouts(core: Core, seconds: int, quiet_tenths: int) -> None:
    client = beating(core, seconds)
    advance(core, 1000 * seconds + 100 * seconds * quiet_tenths)
    client.feed(HEARTBEAT)
    waited = silence_until_dropped(core, client)
    assert 2000 * seconds <= waited <= 3000 * seconds, waited
    assert "missed_heartbeats" in [name for name, _ in core.notes.seen]
    [closed] = core.notes.named("connection_closed")
    assert closed["reason"] == f"missed heartbeats from client, timeout: {seconds}s"
    assert len(core.broker.connections) == 0


def test_the_log_says_why_a_connection_ended(core: Core) -> None:
    core.client().send("connection.close", 0, reply_code=200, reply_text="", class_id=0, method_id=0)
    gone = core.client()
    gone.connection.lost("the client went away")
    assert [fields["reason"] for fields in core.notes.named("connection_closed")] == ["closed", "the client went away"]


def test_any_octet_counts_as_a_sign_of_life(core: Core) -> None:
    client = beating(core, 2)
    slow = method_frame(1, "channel.open")
    for octet in slow:
        advance(core, 3_500)
        assert not client.sink.closed
        client.feed(bytes([octet]))
    assert client.story() == ["channel.open-ok"]


def test_the_broker_sends_a_heartbeat_when_it_sent_nothing_for_half_the_timeout(core: Core) -> None:
    client = beating(core, 10)
    advance(core, 5_000)  # in which the handshake was said
    for _ in range(20):
        advance(core, 5_000)
        assert bytes(client.sink.data) == HEARTBEAT
        client.sink.data.clear()
        client.connection.feed(HEARTBEAT)


def test_the_broker_sends_no_heartbeat_while_it_talks(core: Core) -> None:
    client = beating(core, 10)
    client.open(1)
    client.call("queue.declare", queue="q")
    for _ in range(30):
        advance(core, 2_400)
        assert HEARTBEAT not in bytes(client.sink.data)
        client.sink.data.clear()
        client.call("queue.declare", queue="q", passive=True)


def test_without_heartbeats_nobody_is_dropped_and_nothing_is_sent(core: Core) -> None:
    client = beating(core, 0)
    advance(core, 3_600_000)
    assert bytes(client.sink.data) == b"" and not client.sink.closed


def test_a_client_that_is_not_read_because_of_an_alarm_misses_no_heartbeats(core: Core) -> None:
    client = beating(core, 10)
    client.open(1)
    core.broker.services.pressure.reason = "low on memory"
    client.publish("", "nowhere", b"x")
    assert client.sink.paused
    advance(core, 300_000)
    assert not client.sink.closed


# -- closing -----------------------------------------------------------------------------------------------------


def test_the_client_closes_and_is_answered_after_its_exclusive_queues_are_gone(core: Core) -> None:
    client = core.client()
    client.call("queue.declare", queue="mine", exclusive=True)
    assert client.call("connection.close", 0, reply_code=200).name == "connection.close-ok"
    assert client.sink.closed
    assert "mine" not in core.broker.vhosts["/"].queues


def test_the_broker_closes_and_waits_for_the_answer(core: Core) -> None:
    client = core.client()
    core.broker.begin_turn()
    client.connection.shut(320, "by hand")
    core.broker.end_turn()
    client._collect()
    assert refusal(client) == "320 CONNECTION_FORCED - by hand"
    assert not client.sink.closed
    client.send("connection.close-ok", 0)
    assert client.sink.closed


def test_after_the_brokers_close_nothing_but_its_answer_is_processed(core: Core) -> None:
    client = core.client()
    client.call("queue.declare", queue="q")
    core.broker.begin_turn()
    client.connection.shut(320, "by hand")
    core.broker.end_turn()
    client.take()
    client.publish("", "q", b"late")
    client.send("queue.declare", queue="late")
    assert core.broker.vhosts["/"].queues["q"].ready == 0
    assert "late" not in core.broker.vhosts["/"].queues


def test_closes_that_cross_are_answered(core: Core) -> None:
    client = core.client()
    core.broker.begin_turn()
    client.connection.shut(320, "by hand")
    core.broker.end_turn()
    client.take()
    client.send("connection.close", 0, reply_code=200)
    assert client.story()[-1] == "connection.close-ok"
    assert client.sink.closed


def test_a_client_that_never_answers_the_close_is_dropped_after_half_a_minute(core: Core) -> None:
    client = core.client()
    core.broker.begin_turn()
    client.connection.shut(320, "by hand")
    core.broker.end_turn()
    advance(core, 29_999)
    assert not client.sink.closed
    advance(core, 1)
    assert client.sink.closed


def test_or_after_its_heartbeat_timeout_if_that_is_shorter(core: Core) -> None:
    client = beating(core, 7)
    core.broker.begin_turn()
    client.connection.shut(320, "by hand")
    core.broker.end_turn()
    advance(core, 6_999)
    assert not client.sink.closed
    advance(core, 1)
    assert client.sink.closed


def test_after_a_lost_frame_boundary_the_socket_goes_after_three_seconds(core: Core) -> None:
    client = core.client()
    client.feed(b"\x01\x00\x01\x00\x00\x00\x01xX")
    assert "invalid_frame_end_marker" in refusal(client)
    advance(core, 2_999)
    assert not client.sink.closed
    advance(core, 1)
    assert client.sink.closed


def test_when_the_broker_stops_every_client_gets_320(core: Core) -> None:
    clients = [core.client() for _ in range(3)]
    core.broker.begin_turn()
    core.broker.shut_down("broker shut down")
    for client in clients:
        client._collect()
        assert refusal(client) == "320 CONNECTION_FORCED - broker shut down"


def test_what_a_lost_client_had_not_acknowledged_goes_to_the_next(core: Core) -> None:
    first, second = core.client(), core.client()
    first.call("queue.declare", queue="q")
    first.call("basic.consume", queue="q")
    first.publish("", "q", b"job")
    core.broker.begin_turn()
    first.connection.lost("cable cut")
    core.broker.end_turn()
    got = second.call("basic.get", queue="q")
    assert got.body == b"job" and got["redelivered"] is True


def test_nothing_is_written_to_a_client_that_is_gone(core: Core) -> None:
    client = core.client()
    client.call("queue.declare", queue="q")
    client.call("basic.consume", queue="q", no_ack=True)
    sink = client.sink
    assert isinstance(sink, Buffer)
    core.broker.begin_turn()
    client.connection.lost("cable cut")
    core.broker.end_turn()
    sink.data.clear()
    core.client().publish("", "q", b"x")
    assert bytes(sink.data) == b""
