"""Limits that keep one client from hurting others: connections in total, per user, per vhost; channels; tuning."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.limits.gate import arrive, connect, log_in, refusal, tune
from tests.support.rawclient import RawClient
from warrenmq.testing import Broker
from warrenmq.testing.core import Core
from warrenmq.testing.core_client import CoreClient

pytestmark = pytest.mark.pure


@pytest.fixture
def core(tmp_path: Path) -> Core:
    core = Core(tmp_path)
    access = core.broker.registry.access
    for user in ("amy", "bob"):
        access.add_user(user, user, [])
        access.set_permissions(user, "/", ".*", ".*", ".*")
    return core


def leave(client: CoreClient) -> None:
    client.send("connection.close", 0, reply_code=200)


def test_connections_in_total_are_limited_and_a_free_place_is_given_again(core: Core) -> None:
    core.broker.services.limits.connection_max = 2
    first, second = connect(core), connect(core)
    third = connect(core)
    assert refusal(third) == "530 NOT_ALLOWED - connection refused: node connection limit (2) is reached"
    third.send("connection.close-ok", 0)
    leave(first)
    assert refusal(connect(core)) == ""
    assert second.connection in core.broker.connections


def test_connections_of_a_user_are_limited_and_others_come_in(core: Core) -> None:
    core.broker.registry.access.set_user_limit("amy", "max-connections", 1)
    first = connect(core, "amy", "amy")
    assert refusal(connect(core, "amy", "amy")) == (
        "530 NOT_ALLOWED - connection refused for user 'amy': user connection limit (1) is reached"
    )
    assert refusal(connect(core, "bob", "bob")) == ""
    leave(first)
    assert refusal(connect(core, "amy", "amy")) == ""


def test_connections_to_a_vhost_are_limited(core: Core) -> None:
    core.broker.registry.access.set_vhost_limits("/", {"max-connections": 1})
    first = connect(core, "amy", "amy")
    assert refusal(connect(core, "bob", "bob")) == (
        "530 NOT_ALLOWED - access to vhost '/' refused for user 'bob': connection limit (1) is reached"
    )
    leave(first)
    assert refusal(connect(core, "bob", "bob")) == ""


def test_a_limit_of_none_keeps_everybody_out(core: Core) -> None:
    core.broker.registry.access.set_user_limit("amy", "max-connections", 0)
    assert "user connection limit (0) is reached" in refusal(connect(core, "amy", "amy"))


def test_the_total_is_looked_at_before_the_vhost_and_the_vhost_before_the_user(core: Core) -> None:
    core.broker.services.limits.connection_max = 1
    core.broker.registry.access.set_user_limit("amy", "max-connections", 0)
    core.broker.registry.access.set_vhost_limits("/", {"max-connections": 0})
    connect(core)
    assert "node connection limit" in refusal(connect(core, "amy", "amy", "nowhere"))
    core.broker.services.limits.connection_max = 0
    assert "vhost nowhere not found" in refusal(connect(core, "amy", "amy", "nowhere"))
    assert "connection limit (0)" in refusal(connect(core, "amy", "amy"))
    core.broker.registry.access.set_vhost_limits("/", {})
    assert "user connection limit (0)" in refusal(connect(core, "amy", "amy"))


def test_a_vhost_that_is_not_allowed_is_refused(core: Core) -> None:
    core.broker.add_vhost("other").save()
    assert refusal(connect(core, "amy", "amy", "other")) == (
        "530 NOT_ALLOWED - access to vhost 'other' refused for user 'amy'"
    )


def test_a_connection_refused_at_the_gate_takes_no_place(core: Core) -> None:
    core.broker.registry.access.set_user_limit("amy", "max-connections", 1)
    for _ in range(5):
        refusal(connect(core, "amy", "amy", "nowhere"))
    assert refusal(connect(core, "amy", "amy")) == ""


def test_channels_of_a_connection_are_limited_by_their_number_open(core: Core) -> None:
    client = connect(core, channel_max=2)
    for number in (700, 3):  # it is the count that matters, not the number
        assert client.call("channel.open", number).name == "channel.open-ok"
    client.take()
    client.send("channel.open", 4)
    assert refusal(client) == (
        "530 NOT_ALLOWED - number of channels opened (2) has reached the negotiated channel_max (2)"
    )


def test_a_closed_channel_makes_room(core: Core) -> None:
    client = connect(core, channel_max=1)
    for number in range(1, 50):
        assert client.call("channel.open", number).name == "channel.open-ok"
        assert client.call("channel.close", number).name == "channel.close-ok"


def test_channels_of_a_user_are_limited_over_all_connections(core: Core) -> None:
    core.broker.registry.access.set_user_limit("amy", "max-channels", 3)
    first, second = connect(core, "amy", "amy"), connect(core, "amy", "amy")
    for number in (1, 2):
        first.open(number)
    second.open(1)
    second.take()
    second.send("channel.open", 2)
    closing = second.take()[-1]
    assert (closing["class_id"], closing["method_id"]) == (0, 0), "as RabbitMQ's 3.10"
    assert f"{closing['reply_code']} {closing['reply_text']}" == (
        "530 NOT_ALLOWED - number of channels opened for user 'amy' has reached the maximum allowed user limit of (3)"
    )
    assert first.call("channel.close", 1).name == "channel.close-ok"
    assert first.call("channel.open", 5).name == "channel.open-ok"


@pytest.mark.parametrize(
    ("tuning", "text"),
    [
        ({"frame_max": 4095}, "negotiated frame_max = 4095 is lower than the minimum allowed value (4096)"),
        ({"frame_max": 131073}, "negotiated frame_max = 131073 is higher than the maximum allowed value (131072)"),
        ({"frame_max": 0}, "negotiated frame_max = 0 (no limit) is higher than the maximum allowed value (131072)"),
        ({"channel_max": 2048}, "negotiated channel_max = 2048 is higher than the maximum allowed value (2047)"),
        ({"channel_max": 0}, "negotiated channel_max = 0 (no limit) is higher than the maximum allowed value (2047)"),
    ],
)
def test_tuning_outside_of_what_is_offered_is_refused(core: Core, tuning: dict[str, int], text: str) -> None:
    assert refusal(tune(log_in(arrive(core)), **tuning)) == f"530 NOT_ALLOWED - {text}"


def test_the_smallest_tuning_works(core: Core) -> None:
    client = connect(core, channel_max=1, frame_max=4096, heartbeat=65535)
    client.open(1)
    client.call("queue.declare", queue="q")
    client.publish("", "q", b"x" * 4088)
    assert client.call("basic.get", queue="q").body == b"x" * 4088


def test_queues_of_a_vhost_are_limited(core: Core) -> None:
    core.broker.registry.access.set_vhost_limits("/", {"max-queues": 1})
    client = core.client()
    client.call("queue.declare", queue="one")
    closed = client.call("queue.declare", queue="two")
    assert closed["reply_code"] == 406
    assert "queue limit in vhost '/' (1) is reached" in str(closed["reply_text"])
    client = core.client()
    assert client.call("queue.declare", queue="one").name == "queue.declare-ok"


def test_a_channel_max_of_0_is_no_limit_and_is_offered_as_such() -> None:
    with Broker(channel_max=0) as broker, RawClient(broker.port) as client:
        client.handshake(channel_max=0)
        [tune] = [frame for frame in client.frames if frame.name == "connection.tune"]
        assert tune.number("channel_max") == 0
        for number in (1, 2048, 65535):
            assert client.call(number, "channel.open").name == "channel.open-ok"
    with Broker(channel_max=0) as broker, RawClient(broker.port) as client:
        client.handshake(channel_max=1).open(9)
        assert client.call(2, "channel.open").text("reply_text").endswith("has reached the negotiated channel_max (1)")
