"""What one request of the HTTP API asks of very many objects is done some at a time."""

from __future__ import annotations

import asyncio
import contextlib
from types import SimpleNamespace
from typing import Any

import pytest

from tests.http.conftest import Api
from tests.support.turns import before_each_end
from warrenmq.broker.channel.consumer import subscriptions
from warrenmq.broker.channel.states import RUNNING
from warrenmq.broker.definitions import parameters as of_broker
from warrenmq.client import Connection
from warrenmq.http.objects import bindings, connections, parameters
from warrenmq.http.pacer import SLICE_ITEMS, Pacer
from warrenmq.http.views import channel_name
from warrenmq.server import app

MANY = 5 * SLICE_ITEMS


class Together:
    """How many were looked at between two moments in which the loop serves everybody else."""

    def __init__(self) -> None:
        self.counts = [0]

    def one(self) -> None:
        if self.counts[-1] == 0:
            asyncio.get_running_loop().call_soon(self.counts.append, 0)
        self.counts[-1] += 1


def define(api: Api, **document: Any) -> None:
    assert api.ask("POST", "/definitions", document).status_code == 204


def test_parameters_are_made_some_at_a_time(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    many = [{"component": "shovel", "vhost": "/", "name": f"p{n:05}", "value": {"n": n}} for n in range(MANY)]
    define(api, parameters=many)
    together = Together()

    def shown(item: of_broker.Item) -> dict[str, object]:
        together.one()
        return of_broker.shown(item)

    counting = SimpleNamespace(listing=of_broker.listing, order=of_broker.order, shown=shown, find=of_broker.find)
    monkeypatch.setattr(parameters, "parameters", counting)
    assert api.get("/parameters/shovel/%2F?columns=name") == [{"name": one["name"]} for one in many]
    assert sum(together.counts) == MANY and max(together.counts) <= SLICE_ITEMS
    assert api.get("/parameters/shovel/%2F/p00007")["value"] == {"n": 7}
    assert api.ask("GET", "/parameters/shovel/%2F/none").status_code == 404
    assert sum(together.counts) == MANY  # one of them is found by its name


def test_one_parameter_is_shown_as_it_is_listed(api: Api) -> None:
    api.put("/operator-policies/%2F/op", {"pattern": "^a", "definition": {"max-length": 1}})
    api.put("/vhost-limits/%2F/max-queues", {"value": 100_000})
    for component, name in (("operator_policy", "op"), ("vhost-limits", "limits")):
        [listed] = api.get(f"/parameters/{component}/%2F")
        assert api.get(f"/parameters/{component}/%2F/{name}") == listed


def test_the_queues_are_looked_through_for_consumers_some_at_a_time(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    define(api, queues=[{"name": f"c{n:05}", "vhost": "/", "durable": False} for n in range(MANY)])
    together = Together()

    def counted(queue: Any) -> Any:
        together.one()
        return subscriptions(queue)

    monkeypatch.setattr(connections, "subscriptions", counted)
    assert api.get("/consumers") == []
    assert sum(together.counts) >= MANY and max(together.counts) <= SLICE_ITEMS


def test_bindings_between_two_are_looked_for_some_at_a_time(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    ends = {"source": "amq.direct", "destination": "b", "vhost": "/", "destination_type": "queue", "arguments": {}}
    queue = {"name": "b", "vhost": "/", "durable": True}
    define(api, queues=[queue], bindings=[{**ends, "routing_key": f"k{n}"} for n in range(MANY)])
    gave_way = 0

    class Counting(Pacer):
        async def breathe(self) -> None:
            nonlocal gave_way
            gave_way += 1
            await super().breathe()

    monkeypatch.setattr(bindings, "Pacer", Counting)
    assert len(api.get("/bindings/%2F/e/amq.direct/q/b")) == MANY
    assert gave_way >= MANY


def test_one_channel_is_looked_for_in_its_connection_only(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(Connection(api.broker.url)) for _ in range(3)]
        for client in clients:
            client.channel()
            client.channel()
        names = [one["name"] for one in api.get("/channels?columns=name")]
        looked: list[str] = []

        def counted(channel: Any) -> str:
            looked.append(channel_name(channel))
            return looked[-1]

        monkeypatch.setattr(connections, "channel_name", counted)
        for name in names:
            looked.clear()
            assert api.get(f"/channels/{name}")["name"] == name
            assert len(looked) <= 2


def test_the_connections_of_a_user_are_closed_some_a_turn(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "STEPS", 1)
    server = api.broker.server
    running: list[int] = []

    def counted() -> None:
        running.append(sum(one.state == RUNNING for one in server.broker.connections))

    clients = [Connection(api.broker.url) for _ in range(5)]
    api.broker.call(lambda: before_each_end(server, monkeypatch, counted))
    assert api.ask("DELETE", "/connections/username/guest").status_code == 204
    assert running[-1] == 0
    closed = [before - after for before, after in zip([5, *running], running, strict=False)]
    assert sum(closed) == 5 and max(closed) == 1
    for client in clients:
        client.abort()


def test_very_many_tags_are_refused_before_anybody_looks_at_each(api: Api) -> None:
    for path in ("/users/tagged", "/vhosts/tagged"):
        for tags in ("a," * 5000, ["a"] * 5000):
            answer = api.ask("PUT", path, {"password": "x", "tags": tags})
            assert answer.status_code == 400 and "at most 1000" in answer.json()["reason"]
    document = {"users": [{"name": "tagged", "password_hash": "", "tags": "a," * 5000}]}
    assert api.ask("POST", "/definitions", document).status_code == 400
    api.put("/users/tagged", {"password": "x", "tags": ",".join(f"t{number}" for number in range(1000))})
    assert len(api.get("/users/tagged")["tags"]) == 1000
    assert api.ask("DELETE", "/users/tagged").status_code == 204
