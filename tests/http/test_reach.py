"""What belongs to somebody else stays out of reach over HTTP, by the checks that AMQP makes.

``CALLS`` has a row for every call that does something with a queue or its messages; a test sees to it that no such
endpoint is missing from it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.http.conftest import Api
from warrenmq.client import Connection
from warrenmq.http.table import ENDPOINTS

GET = {"count": 1, "ackmode": "ack_requeue_false", "encoding": "auto"}
LOCKED = (
    "cannot obtain exclusive access to locked queue 'theirs' in vhost '/'. It could be originally declared on another "
    "connection or the exclusive property value does not match that of the original declaration."
)
REFUSED = "access to queue 'theirs' in vhost '/' refused for user 'stranger'"


@dataclass(frozen=True)
class Reach:
    """A call, what it is told about another connection's exclusive queue, and what a user without rights is told."""

    method: str
    path: str
    body: Any = None
    locked: str | None = LOCKED
    refused: str | None = "Access refused."
    query: str = ""


QUEUE = "/queues/{vhost}/{name}"
LEASES = QUEUE + "/leases"
LEASE = LEASES + "/{id}"
BIND = "/bindings/{vhost}/e/{source}/{type}/{destination}"
CALLS = [
    Reach("PUT", QUEUE, {}),
    Reach("DELETE", QUEUE),
    Reach("DELETE", QUEUE + "/contents"),
    Reach("PUT", QUEUE + "/pause", None, LOCKED, REFUSED),
    Reach("PUT", QUEUE + "/resume", None, LOCKED, REFUSED),
    Reach("POST", QUEUE + "/get", GET, "405 RESOURCE_LOCKED - " + LOCKED, "ACCESS_REFUSED - " + REFUSED),
    Reach("POST", QUEUE + "/actions", {"action": "sync"}, None, "Not administrator user"),  # does nothing
    Reach("POST", BIND, {"routing_key": "new"}),
    Reach("DELETE", BIND + "/{props}"),
    Reach("GET", QUEUE + "/stream", None, LOCKED, REFUSED),
    Reach("GET", QUEUE + "/ledger", None, LOCKED, REFUSED),
    Reach("GET", QUEUE + "/peek", None, LOCKED, REFUSED),
    Reach("GET", QUEUE + "/body", None, LOCKED, REFUSED, "?position=0"),
    Reach("GET", QUEUE + "/deaths", None, LOCKED, REFUSED),
    Reach("POST", QUEUE + "/move", {"target": "elsewhere"}, LOCKED, REFUSED),
    Reach("POST", QUEUE + "/copy", {"target": "elsewhere"}, LOCKED, REFUSED),
    Reach("POST", QUEUE + "/redrive", {"exchange": "", "routing_key": "elsewhere"}, LOCKED, REFUSED),
    Reach("POST", LEASES, {"count": 10}, LOCKED, REFUSED),
    Reach("GET", LEASES, None, LOCKED, REFUSED),
    Reach("GET", LEASE, None, LOCKED, REFUSED),
    Reach("DELETE", LEASE, None, LOCKED, REFUSED),
    Reach("POST", LEASE + "/ack", {}, LOCKED, REFUSED),
    Reach("POST", LEASE + "/nack", {"requeue": False}, LOCKED, REFUSED),
    Reach("POST", LEASE + "/settle", {"reject": [[0, 0]]}, LOCKED, REFUSED),
    Reach("POST", LEASE + "/renew", {}, LOCKED, REFUSED),
]
READING = {("GET", QUEUE), ("GET", QUEUE + "/bindings"), ("GET", BIND), ("GET", BIND + "/{props}")}  # no messages
STRANGER = ("stranger", "x")


def filled(path: str) -> str:
    for name, value in {
        "vhost": "%2F",
        "name": "theirs",
        "source": "amq.direct",
        "type": "q",
        "destination": "theirs",
        "props": "key",
        "id": "some-lease",
    }.items():
        path = path.replace("{" + name + "}", value)
    return path


@pytest.fixture
def owner(api: Api) -> Iterator[Connection]:
    with Connection(api.broker.url) as connection:
        yield connection


def declare(owner: Connection, exclusive: bool) -> None:
    channel = owner.channel()
    channel.queue_declare("theirs", exclusive=exclusive)
    channel.queue_bind("theirs", "amq.direct", "key")
    channel.confirm_select()
    channel.basic_publish("", "theirs", b"private")
    channel.wait_for_confirms(60)


def untouched(owner: Connection) -> None:
    """The message is there for its owner, never delivered before, and still comes by its only binding."""
    channel = owner.channel()
    message = channel.basic_get("theirs", no_ack=True)
    assert message is not None and (message.body, message.redelivered) == (b"private", False)
    assert channel.queue_declare("theirs", passive=True).int("message_count") == 0
    channel.queue_delete("theirs")


def test_every_call_about_a_queue_is_in_the_table() -> None:
    about = {(one.method, one.path) for one in ENDPOINTS if one.path.startswith((QUEUE, BIND))}
    assert about == {(one.method, one.path) for one in CALLS} | READING


@pytest.mark.parametrize("call", CALLS, ids=lambda call: f"{call.method} {call.path}")
def test_an_exclusive_queue_is_its_connections_alone(api: Api, owner: Connection, call: Reach) -> None:
    declare(owner, exclusive=True)
    answer = api.ask(call.method, filled(call.path) + call.query, call.body)
    if call.locked is None:
        assert answer.status_code == 204
    else:
        assert (answer.status_code, answer.json()) == (400, {"error": "bad_request", "reason": call.locked})
    untouched(owner)


@pytest.mark.parametrize("call", CALLS, ids=lambda call: f"{call.method} {call.path}")
def test_a_queue_without_permission_is_out_of_reach(api: Api, owner: Connection, call: Reach) -> None:
    api.put("/users/stranger", {"password": "x", "tags": "management"})
    api.put("/permissions/%2F/stranger", {"configure": "^own", "write": "^own", "read": "^own"})
    declare(owner, exclusive=False)
    answer = api.ask(call.method, filled(call.path) + call.query, call.body, user=STRANGER)
    if call.refused is None:
        assert answer.status_code == 204
    else:
        assert (answer.status_code, answer.json()) == (401, {"error": "not_authorised", "reason": call.refused})
    untouched(owner)
