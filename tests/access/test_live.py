"""Access and alarms as clients meet them: on live connections, changed while they are open."""

from __future__ import annotations

from collections.abc import Iterator

import pika
import pytest

from tests.http.conftest import Api
from tests.support import web
from warrenmq.testing import Broker

EVERYTHING = {"configure": ".*", "write": ".*", "read": ".*"}


@pytest.fixture
def api() -> Iterator[Api]:
    with Broker() as broker, web.Client() as client:
        yield Api(broker, client)


def connect(api: Api, name: str = "guest", vhost: str = "/", **more: object) -> pika.BlockingConnection:
    credentials = pika.PlainCredentials(name, "guest" if name == "guest" else "secret")
    return pika.BlockingConnection(
        pika.ConnectionParameters(port=api.broker.port, virtual_host=vhost, credentials=credentials, **more)
    )


def add(api: Api, name: str, permissions: dict[str, str], tags: str = "") -> None:
    api.put(f"/users/{name}", {"password": "secret", "tags": tags})
    api.put(f"/permissions/%2F/{name}", permissions)


def closed_with(channel: pika.adapters.blocking_connection.BlockingChannel) -> tuple[int, str]:
    """How the broker closed the channel, after a round trip."""
    with pytest.raises(pika.exceptions.ChannelClosedByBroker) as closed:
        channel.queue_declare("anything", passive=True)
    return closed.value.reply_code, closed.value.reply_text


def test_a_revoked_permission_takes_effect_on_a_live_channel(api: Api) -> None:
    add(api, "alice", EVERYTHING)
    api.put("/queues/%2F/inbox", {})
    connection = connect(api, "alice")
    channel = connection.channel()
    channel.confirm_delivery()
    channel.basic_publish("", "inbox", b"fine")
    api.put("/permissions/%2F/alice", {"configure": ".*", "write": "^nothing$", "read": ".*"})
    with pytest.raises(pika.exceptions.ChannelClosedByBroker) as closed:
        channel.basic_publish("", "inbox", b"too late")
    text = "ACCESS_REFUSED - access to exchange 'amq.default' in vhost '/' refused for user 'alice'"
    assert closed.value.reply_text == text
    assert api.get("/queues/%2F/inbox")["messages"] == 1
    connection.close()


def test_topic_permissions_guard_publishing_and_binding(api: Api) -> None:
    add(api, "alice", EVERYTHING)
    api.put("/topic-permissions/%2F/alice", {"exchange": "amq.topic", "write": "^{username}\\.", "read": "^news\\."})
    api.put("/queues/%2F/inbox", {})
    connection = connect(api, "alice")
    channel = connection.channel()
    channel.queue_bind("inbox", "amq.topic", "news.*")
    channel.basic_publish("amq.topic", "alice.says", b"")
    channel.basic_publish("amq.topic", "bob.says", b"")
    code, text = closed_with(channel)
    assert (code, text) == (
        403,
        "ACCESS_REFUSED - access to topic 'bob.says' in exchange 'amq.topic' in vhost '/' refused for user 'alice'",
    )
    channel = connection.channel()
    with pytest.raises(pika.exceptions.ChannelClosedByBroker, match="access to topic 'secrets.x'"):
        channel.queue_bind("inbox", "amq.topic", "secrets.x")
    connection.channel().basic_publish("amq.direct", "bob.says", b"")  # only topic exchanges are looked at
    connection.close()


def test_limits_of_users_and_vhosts_hold(api: Api) -> None:
    add(api, "alice", EVERYTHING)
    api.put("/user-limits/alice/max-connections", {"value": 1})
    api.put("/user-limits/alice/max-channels", {"value": 2})
    connection = connect(api, "alice")
    with pytest.raises(pika.exceptions.AMQPConnectionError, match="user connection limit \\(1\\) is reached"):
        connect(api, "alice")
    connection.channel()
    connection.channel()
    with pytest.raises(pika.exceptions.ConnectionClosedByBroker, match="maximum allowed user limit"):
        connection.channel()
    api.put("/vhost-limits/%2F/max-queues", {"value": 1})
    api.put("/vhost-limits/%2F/max-connections", {"value": 0})
    with pytest.raises(pika.exceptions.AMQPConnectionError, match="connection limit \\(0\\) is reached"):
        connect(api)
    assert api.ask("DELETE", "/vhost-limits/%2F/max-connections").status_code == 204
    connection = connect(api)
    channel = connection.channel()
    channel.queue_declare("one")
    with pytest.raises(pika.exceptions.ChannelClosedByBroker, match="queue limit"):
        channel.queue_declare("two")
    connection.close()


def test_only_an_impersonator_may_say_to_be_somebody_else(api: Api) -> None:
    add(api, "alice", EVERYTHING)
    add(api, "agent", EVERYTHING, "impersonator")
    api.put("/queues/%2F/inbox", {})
    properties = pika.BasicProperties(user_id="guest")
    honest, agent = connect(api, "alice"), connect(api, "agent")
    agent.channel().basic_publish("", "inbox", b"", properties)
    channel = honest.channel()
    channel.basic_publish("", "inbox", b"", pika.BasicProperties(user_id="alice"))
    channel.basic_publish("", "inbox", b"", properties)
    code, text = closed_with(channel)
    assert code == 406 and "user_id property set to 'guest' but authenticated user was 'alice'" in text
    assert api.get("/queues/%2F/inbox")["messages"] == 2
    honest.close()
    agent.close()


def test_a_hanging_permission_pattern_leaves_the_broker_answering(api: Api) -> None:
    add(api, "eve", {"configure": "(a+)+$", "write": ".*", "read": ".*"})
    connection = connect(api, "eve")
    for number in range(20):
        with pytest.raises(pika.exceptions.ChannelClosedByBroker, match="ACCESS_REFUSED - access to queue"):
            connection.channel().queue_declare("a" * 240 + f"!{number}")
    assert api.get("/whoami")["name"] == "guest"
    connection.close()


def test_an_alarm_blocks_publishers_once_they_publish_and_consumers_drain_on(api: Api) -> None:
    """Fill, alarm, drain, clear: the publisher sees blocked and unblocked, the consumer nothing."""
    told: list[str] = []
    publisher = connect(api, blocked_connection_timeout=30)
    publisher.add_on_connection_blocked_callback(lambda _, frame: told.append(frame.method.reason))
    publisher.add_on_connection_unblocked_callback(lambda _, frame: told.append("unblocked"))
    quiet_told: list[str] = []
    quiet = connect(api)
    quiet.add_on_connection_blocked_callback(lambda _, frame: quiet_told.append(frame.method.reason))
    channel = publisher.channel()
    channel.queue_declare("filling")
    for _ in range(50):
        channel.basic_publish("", "filling", b"x" * 1000)
    publisher.process_data_events(0.05)
    node = api.get("/nodes")[0]["name"]
    api.put(f"/nodes/{node}/limits", {"memory_high_watermark": 0})
    health = api.ask("GET", "/health/checks/alarms")
    assert health.status_code == 503
    assert health.json()["alarms"] == [{"node": node, "resource": "memory"}]
    publisher.process_data_events(0.05)
    assert told == []  # nothing is said to a connection that does not publish
    channel.basic_publish("", "filling", b"held")
    while not told:
        publisher.process_data_events(1)
    assert told == ["low on memory"]
    consumer = quiet.channel()
    drained = [consumer.basic_get("filling", auto_ack=True)[2] for _ in range(50)]
    assert None not in drained
    api.put(f"/nodes/{node}/limits", {"memory_high_watermark": 0.4})
    while len(told) < 2:
        publisher.process_data_events(1)
    assert told == ["low on memory", "unblocked"] and quiet_told == []
    assert api.ask("GET", "/health/checks/alarms").status_code == 200
    channel.queue_declare("filling", passive=True)
    publisher.close()
    quiet.close()
