"""Generated requests, asked of RabbitMQ 3.10 and of Warren: the same status, and refusals in the same words.

What differs on purpose: where RabbitMQ crashes with 500 Warren refuses, and a value of a kind that makes no sense (a
number for a name) is refused where RabbitMQ takes it for something, or says in Erlang what went wrong.
"""

from __future__ import annotations

import json
import time
from typing import Any

import pika
import pytest

from tests.http import beside
from tests.http.beside import Ask
from tests.support.brokers import RunningBroker
from warrenmq.testing import Broker


def stricter(ask: Ask, ours: tuple[int, Any]) -> bool:
    """Whether a value of a senseless kind is what we complain about."""
    return ours[0] == 400 and isinstance(ask.body, dict) and ask.odd and not ask.taken


@pytest.mark.parametrize("user", beside.USERS)
def test_every_kind_of_user_is_answered_as_by_rabbitmq(user: str, rabbitmq: RunningBroker) -> None:
    asked = beside.every(user)
    theirs = beside.answers(rabbitmq.http_url, asked, user)
    with Broker() as warren:
        ours = beside.answers(warren.http_url, asked, user)
    wrong = []
    for ask, said, answered in zip(asked, theirs, ours, strict=True):
        same = said[0] == answered[0] and (said[0] < 400 or said[1] == answered[1])
        crashed = said[0] == 500 and answered[0] < 500
        if not (same or crashed or stricter(ask, answered)):
            wrong.append(f"{ask.name}\n  RabbitMQ: {json.dumps(said)}\n  Warren:   {json.dumps(answered)}")
    assert not wrong, "\n".join(wrong)


def consumers(asked: RunningBroker, user: str, path: str) -> list[str]:
    status, found = asked.http("GET", f"/api/consumers{path}", user=user)
    assert status == 200 and isinstance(found, list)
    ours = [one for one in found if one["queue"]["vhost"].startswith("b-")]
    known = [one for one in ours if one["channel_details"]]  # an empty list, until RabbitMQ has found the channel
    return sorted(f"{one['channel_details']['user']} in {one['queue']['vhost']}" for one in known)


def test_without_monitoring_a_user_sees_its_own_consumers_only_in_whatever_vhost(
    broker: RunningBroker,
) -> None:
    """Asked of each of the two brokers in turn."""
    for vhost in ("b-foreign", "b-own"):
        broker.http("PUT", f"/api/vhosts/{vhost}")
        broker.http("PUT", f"/api/permissions/{vhost}/guest", beside.ALL)
    for name, tags in (("b-manager", "management"), ("b-monitor", "monitoring")):
        broker.http("PUT", f"/api/users/{name}", {"password": "secret", "tags": tags})
    broker.http("PUT", "/api/permissions/b-own/b-manager", beside.ALL)
    connections = []
    try:
        for user, password, vhost in (
            ("guest", "guest", "b-foreign"),
            ("guest", "guest", "b-own"),
            ("b-manager", "secret", "b-own"),
        ):
            credentials = pika.PlainCredentials(user, password)
            parameters = pika.ConnectionParameters(port=broker.port, virtual_host=vhost, credentials=credentials)
            connections.append(pika.BlockingConnection(parameters))
            channel = connections[-1].channel()
            channel.basic_consume(channel.queue_declare("").method.queue, lambda *_: None)
        everybodys = ["b-manager in b-own", "guest in b-foreign", "guest in b-own"]
        while consumers(broker, "guest:guest", "") != everybodys:
            time.sleep(0.1)  # RabbitMQ counts in the background
        assert consumers(broker, "b-monitor:secret", "") == everybodys
        assert consumers(broker, "b-monitor:secret", "/b-foreign") == ["guest in b-foreign"]
        assert consumers(broker, "b-manager:secret", "") == ["b-manager in b-own"]
        assert consumers(broker, "b-manager:secret", "/b-own") == ["b-manager in b-own"]
        assert consumers(broker, "b-manager:secret", "/b-foreign") == []
    finally:
        for connection in connections:
            connection.close()
        for path in ("/vhosts/b-foreign", "/vhosts/b-own", "/users/b-manager", "/users/b-monitor"):
            broker.http("DELETE", "/api" + path)


def test_who_made_something_and_whose_connections_are_shown(broker: RunningBroker) -> None:
    """``user_who_performed_action`` of exchanges, and what a user without monitoring sees of a vhost."""
    manager = "b-maker:secret"
    broker.http("PUT", "/api/users/b-maker", {"password": "secret", "tags": "management"})
    broker.http("PUT", "/api/vhosts/b-made")
    for user in ("guest", "b-maker"):
        broker.http("PUT", f"/api/permissions/b-made/{user}", beside.ALL)
    broker.http("PUT", "/api/exchanges/b-made/by-maker", {"type": "fanout"}, user=manager)
    connections = []
    try:
        for user, password in (("guest", "guest"), ("b-maker", "secret")):
            credentials = pika.PlainCredentials(user, password)
            parameters = pika.ConnectionParameters(port=broker.port, virtual_host="b-made", credentials=credentials)
            connections.append(pika.BlockingConnection(parameters))
            connections[-1].channel().exchange_declare(f"{user}-over-amqp", "fanout")
        status, exchanges = broker.http("GET", "/api/exchanges/b-made")
        assert isinstance(exchanges, list)
        makers = {one["name"]: one["user_who_performed_action"] for one in exchanges}
        assert makers.pop("by-maker") == makers.pop("b-maker-over-amqp") == "b-maker"
        assert len(makers) == 8 and set(makers.values()) == {"guest"}  # guest made the vhost
        status, shown = broker.http("GET", "/api/exchanges/%2F/amq.direct")
        assert isinstance(shown, dict) and shown["user_who_performed_action"] == "rmq-internal"
        for path in ("connections", "channels"):
            for user, expected in (("guest:guest", ["b-maker", "guest"]), (manager, ["b-maker"])):
                while users_of(broker, f"/api/vhosts/b-made/{path}", user) != expected:
                    time.sleep(0.1)  # RabbitMQ counts in the background
        status, overview = broker.http("GET", "/api/overview", user=manager)
        assert isinstance(overview, dict) and "consumers" not in overview["object_totals"]
    finally:
        for connection in connections:
            connection.close()
        for path in ("/vhosts/b-made", "/users/b-maker"):
            broker.http("DELETE", "/api" + path)


def users_of(asked: RunningBroker, path: str, user: str) -> list[str]:
    status, found = asked.http("GET", path, user=user)
    assert status == 200 and isinstance(found, list)
    return sorted(str(one.get("user")) for one in found)


def test_lists_are_in_the_same_order(broker: RunningBroker) -> None:
    """Of each of the two brokers in turn. What is alike in a column is by vhost and name, and reversed is all of it."""
    for vhost in ("b-order-1", "b-order-2"):
        broker.http("PUT", f"/api/vhosts/{vhost}")
        broker.http("PUT", f"/api/permissions/{vhost}/guest", beside.ALL)
    for place, arguments in (
        ("1/a", {"x-max-length": 5}),
        ("1/Z", {}),
        ("1/d", {}),
        ("1/b", {}),
        ("2/c", {}),
        ("2/a", {}),
    ):
        broker.http("PUT", f"/api/queues/b-order-{place}", {"arguments": arguments})
    message = {"properties": {}, "payload": "x", "payload_encoding": "string"}
    for name in "db":
        broker.http("POST", "/api/exchanges/b-order-1/amq.default/publish", {**message, "routing_key": name})
    policy = {"pattern": "^b$", "definition": {"max-length": 100}, "apply-to": "queues"}
    broker.http("PUT", "/api/policies/b-order-1/p", policy)
    wanted = {
        "": "1Z 1a 1b 1d 2a 2c",
        "name": "1Z 1a 2a 1b 2c 1d",
        "vhost": "1Z 1a 1b 1d 2a 2c",
        "messages": "1Z 1a 2a 2c 1b 1d",
        "message_stats.publish": "1Z 1a 2a 2c 1b 1d",
        "message_stats.publish_details.rate": "1Z 1a 1b 1d 2a 2c",
        "policy": "1Z 1a 1d 2a 2c 1b",
        "arguments": "1Z 1b 1d 2a 2c 1a",
        "arguments.x-max-length": "1Z 1b 1d 2a 2c 1a",
        "no-such-column": "1Z 1a 1b 1d 2a 2c",
    }
    deadline = time.monotonic() + 60
    while True:
        found = {column: listed(broker, "queues", column) for column in wanted}
        if found == wanted or time.monotonic() > deadline:  # RabbitMQ counts messages every five seconds
            break
        time.sleep(0.5)
    assert found == wanted
    for column, order in wanted.items():
        backwards = " ".join(reversed(order.split()))
        assert listed(broker, "queues", column, "&sort_reverse=true") == backwards
        assert listed(broker, "queues", column, "&sort_reverse=true&page=1&page_size=500") == backwards
    exchanges = listed(broker, "exchanges", "name", "&sort_reverse=true").split()
    assert exchanges[:4] == ["2amq.topic", "1amq.topic", "2amq.rabbitmq.trace", "1amq.rabbitmq.trace"]
    assert listed(broker, "exchanges", "type").split()[:4] == ["1", "1amq.direct", "2", "2amq.direct"]


def listed(broker: RunningBroker, what: str, column: str, more: str = "") -> str:
    """Number of the vhost and name of each in order, without blanks between the two."""
    found = ours(broker, f"{what}?columns=vhost,name{more}" + (f"&sort={column}" if column else ""))
    return " ".join(vhost[-1] + name for vhost, name in found)


def ours(broker: RunningBroker, what: str) -> list[tuple[str, str]]:
    status, found = broker.http("GET", f"/api/{what}")
    rows = found["items"] if isinstance(found, dict) else found
    assert status == 200 and isinstance(rows, list)
    return [(one["vhost"], one["name"]) for one in rows if one.get("vhost", "").startswith("b-order-")]


def test_connections_and_channels_are_listed_by_vhost_and_name(broker: RunningBroker) -> None:
    for vhost in ("b-order-1", "b-order-2"):
        broker.http("PUT", f"/api/vhosts/{vhost}")
        broker.http("PUT", f"/api/permissions/{vhost}/guest", beside.ALL)
    held = [
        pika.BlockingConnection(pika.ConnectionParameters(broker.host, broker.port, virtual_host=f"b-order-{number}"))
        for number in (2, 1, 2)
    ]
    try:
        for one in held:
            one.channel(2)
            one.channel(1)
        for what, count in (("connections", 3), ("channels", 6)):
            deadline = time.monotonic() + 60
            while len(places := ours(broker, what)) < count and time.monotonic() < deadline:
                time.sleep(0.5)  # until RabbitMQ has found them
            assert len(places) == count and places == sorted(places)
            assert ours(broker, f"{what}?sort=user&sort_reverse=true") == places[::-1]
    finally:
        for one in held:
            one.close()
