"""Listings: pages, filters, columns, and that a long one does not hold anybody up."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from tests.http.conftest import Api
from warrenmq.broker.records import Binding
from warrenmq.client import Connection
from warrenmq.http import views
from warrenmq.http.description import openapi
from warrenmq.http.endpoint import Call
from warrenmq.http.listing import listing, plain_list
from warrenmq.http.models import BindingInfo
from warrenmq.http.objects import bindings, exchanges, queues
from warrenmq.http.pacer import QUICK, SLICE_ITEMS
from warrenmq.http.views import binding_info


@pytest.fixture(scope="module")
def many(api: Api) -> Api:
    document = {"queues": [{"name": f"q{number:05}", "vhost": "/", "durable": False} for number in range(3000)]}
    assert api.ask("POST", "/definitions", document).status_code == 204
    return api


def names(page: dict[str, Any]) -> list[str]:
    return [item["name"] for item in page["items"]]


def test_pages_partition_the_list(many: Api) -> None:
    seen: list[str] = []
    for number in range(1, 7):
        page = many.get(f"/queues?page={number}&page_size=500&columns=name")
        assert (page["total_count"], page["filtered_count"], page["item_count"]) == (3000, 3000, 500)
        assert (page["page"], page["page_size"], page["page_count"]) == (number, 500, 6)
        seen += names(page)
    assert seen == [f"q{number:05}" for number in range(3000)]


def test_names_are_filtered_by_part_or_by_pattern(many: Api) -> None:
    page = many.get("/queues?page=1&name=Q0010&columns=name")
    assert (page["filtered_count"], names(page)) == (10, [f"q0010{digit}" for digit in range(10)])
    page = many.get("/queues?page=1&name=^q0[01]00[05]$&use_regex=true&columns=name")
    assert names(page) == ["q00000", "q00005", "q01000", "q01005"]


def test_an_explosive_filter_is_answered(many: Api) -> None:
    page = many.get("/queues?page=1&name=(%5Eq(0%2B)%2B)%2Bx$&use_regex=true&columns=name")
    assert page["items"] == []


def test_sorting_is_by_any_field_and_either_way(many: Api) -> None:
    many.put("/queues/%2F/zz-with-messages", {})
    message = {"routing_key": "zz-with-messages", "properties": {}, "payload": "x", "payload_encoding": "string"}
    assert many.ask("POST", "/exchanges/%2F/amq.default/publish", message).json() == {"routed": True}
    page = many.get("/queues?page=1&page_size=2&sort=messages&sort_reverse=true&columns=name,messages")
    assert page["items"][0] == {"name": "zz-with-messages", "messages": 1}
    page = many.get("/queues?page=1&page_size=1&sort=name&sort_reverse=true&columns=name")
    assert names(page) == ["zz-with-messages"]
    page = many.get("/queues?page=1&page_size=1&sort=messages_details.rate&columns=messages_details.rate")
    assert page["items"] == [{"messages_details": {"rate": 0.0}}]
    assert many.ask("DELETE", "/queues/%2F/zz-with-messages").status_code == 204


class Row(msgspec.Struct):
    name: str


def slices(query: dict[str, str]) -> list[int]:
    """How many of 3,000 items are looked at between two moments in which the loop serves everybody else."""
    found: list[int] = []
    looked = 0

    def name(item: int) -> str:
        nonlocal looked
        looked += 1
        return f"q{item:05}"

    call = cast(Call, SimpleNamespace(query=query, bridge=SimpleNamespace(patience=None)))
    work = listing(call, range(3000), name, lambda item: Row(name(item)), {"known": name})
    with contextlib.suppress(StopIteration):
        while True:
            work.send(None)
            found.append(looked)
            looked = 0
    return [*found, looked]


@pytest.mark.parametrize(
    "query",
    [
        {},
        {"columns": "name"},
        {"sort": "name", "sort_reverse": "true"},
        {"sort": "messages"},
        {"page": "1", "page_size": "500"},
        {"page": "1", "name": "^q0", "use_regex": "true"},
    ],
    ids=str,
)
def test_a_long_listing_lets_everybody_else_through_after_every_few_items(query: dict[str, str]) -> None:
    found = slices(query)
    assert sum(found) >= (500 if query.get("page_size") else 3000)
    assert max(found) <= SLICE_ITEMS


@pytest.mark.parametrize("query", [{"page": "1", "name": "q0"}, {"page": "1", "sort": "known"}], ids=str)
def test_what_is_known_of_items_without_their_json_is_looked_at_more_at_a_time(query: dict[str, str]) -> None:
    found = slices(query)
    assert 3000 <= sum(found) <= 3100  # of JSON no more than the page is made
    assert max(found) <= QUICK


def test_a_list_without_pages_is_made_in_slices_too(api: Api) -> None:
    """While the rows are made one by one, others get their turn after at most so many of them."""
    made: list[int] = []
    passes = 0

    def rows() -> Iterator[dict[str, int]]:
        for number in range(5 * SLICE_ITEMS):
            made.append(passes)
            yield {"number": number}

    async def alongside() -> bytes:
        nonlocal passes
        listed = asyncio.ensure_future(plain_list({}, rows()))
        while not listed.done():
            passes += 1
            await asyncio.sleep(0)
        return bytes(listed.result().body)

    assert [row["number"] for row in json.loads(api.broker.run(alongside()))] == list(range(5 * SLICE_ITEMS))
    assert max(made.count(one) for one in set(made)) <= SLICE_ITEMS


def test_every_list_of_permissions_and_policies_takes_columns_and_sort(api: Api) -> None:
    for name in ("zoe", "yan"):
        api.put(f"/users/{name}", {"password": "x", "tags": ""})
        api.put(f"/permissions/%2F/{name}", {"configure": "", "write": "", "read": ""})
        api.put(f"/topic-permissions/%2F/{name}", {"exchange": "amq.topic", "write": "", "read": ""})
        api.put(f"/policies/%2F/{name}", {"pattern": "", "definition": {"max-length": 1}})
    for path in ("/permissions", "/vhosts/%2F/permissions", "/topic-permissions", "/vhosts/%2F/topic-permissions"):
        users = [row["user"] for row in api.get(f"{path}?sort=user&sort_reverse=true&columns=user")]
        assert users[:2] == ["zoe", "yan"]
    assert api.get("/users/zoe/permissions?columns=user") == [{"user": "zoe"}]
    assert api.get("/users/zoe/topic-permissions?columns=user") == [{"user": "zoe"}]
    for path in ("/policies", "/policies/%2F"):
        assert api.get(f"{path}?sort=name&sort_reverse=true&columns=name") == [{"name": "zoe"}, {"name": "yan"}]


BOUND = 1000


@pytest.fixture(scope="module")
def bound(api: Api) -> Api:
    keys = [f"k{number}" for number in range(BOUND)]
    ends = {"source": "e", "destination": "b", "vhost": "/", "destination_type": "queue", "arguments": {}}
    document = {
        "queues": [{"name": "b", "vhost": "/", "durable": False, "auto_delete": False, "arguments": {}}],
        "exchanges": [
            {"name": "e", "vhost": "/", "type": "direct", "durable": False, "auto_delete": False, "internal": False}
        ],
        "bindings": [{**ends, "routing_key": key} for key in keys],
    }
    assert api.ask("POST", "/definitions", document).status_code == 204
    return api


@pytest.mark.parametrize(
    "path",
    [
        "/bindings",
        "/bindings/%2F",
        "/bindings/%2F/e/e/q/b",
        "/exchanges/%2F/e/bindings/source",
        "/queues/%2F/b/bindings",
    ],
)
def test_bindings_are_told_some_at_a_time(bound: Api, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    together: list[int] = []  # how many between two moments in which the loop serves everybody else

    def counted(binding: Binding) -> BindingInfo:
        if not together or together[-1] == 0:
            asyncio.get_running_loop().call_soon(together.append, 0)
            together.append(0)
        together[-1] += 1
        return binding_info(binding)

    for module in (bindings, exchanges, queues):
        monkeypatch.setattr(module, "binding_info", counted)
    assert len([one for one in bound.get(path) if one["source"] == "e"]) == BOUND
    assert sum(together) == BOUND
    assert max(together) <= SLICE_ITEMS


def test_one_binding_of_very_many_is_found(bound: Api) -> None:
    found = bound.get("/bindings/%2F/e/e/q/b/k999")
    assert (found["routing_key"], found["properties_key"]) == ("k999", "k999")
    assert bound.ask("GET", "/bindings/%2F/e/e/q/b/none").status_code == 404


def test_a_queue_with_very_many_consumers_is_told_with_all_of_them(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    api.put("/queues/%2F/many", {})
    told: list[int] = []
    passes = 0
    real = views.consumer_info

    def counted(*arguments: Any) -> Any:
        told.append(passes)
        return real(*arguments)

    monkeypatch.setattr("warrenmq.http.objects.queues.consumer_info", counted)
    monkeypatch.setattr("warrenmq.http.objects.connections.consumer_info", counted)

    async def ticking() -> None:
        nonlocal passes
        while True:
            passes += 1
            await asyncio.sleep(0)

    async def start() -> asyncio.Task[None]:
        return asyncio.ensure_future(ticking())

    with Connection(api.broker.url) as connection:
        channel = connection.channel()
        for number in range(3 * SLICE_ITEMS):
            channel.basic_consume("many", consumer_tag=f"c{number:04}")
        ticker = api.broker.run(start())
        try:
            shown = api.get("/queues/%2F/many")
            assert [one["consumer_tag"] for one in shown["consumer_details"]] == [f"c{n:04}" for n in range(300)]
            assert shown["consumers"] == 300 and shown["name"] == "many"
            only = api.get("/queues/%2F/many?columns=name,consumer_details")
            assert set(only) == {"name", "consumer_details"} and len(only["consumer_details"]) == 300
            assert api.get("/queues/%2F/many?columns=name") == {"name": "many"}
            assert set(api.get("/queues/%2F/many?columns=consumer_details")) == {"consumer_details"}
            (name,) = [one["name"] for one in api.get("/channels?columns=name,consumer_count") if one["consumer_count"]]
            assert len(api.get(f"/channels/{name}")["consumer_details"]) == 300
        finally:
            api.broker.run(stop(ticker))
    assert max(told.count(one) for one in set(told)) <= SLICE_ITEMS
    assert api.ask("DELETE", "/queues/%2F/many").status_code == 204


async def stop(task: asyncio.Task[None]) -> None:
    task.cancel()


def test_the_description_is_made_once(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    first = api.ask("GET", "/openapi.json").json()
    monkeypatch.setattr(openapi, "description", None)
    assert api.ask("GET", "/openapi.json").json() == first
