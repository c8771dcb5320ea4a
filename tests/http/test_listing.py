"""Listings: pages, filters, columns, and that a long one does not hold anybody up."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from tests.http.conftest import Api
from warrenmq.client import Connection


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


def test_an_explosive_filter_costs_a_bounded_time(many: Api) -> None:
    started = time.monotonic()
    page = many.get("/queues?page=1&name=(%5Eq(0%2B)%2B)%2Bx$&use_regex=true&columns=name")
    assert page["items"] == []
    assert time.monotonic() - started < 5


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


def test_a_long_listing_lets_other_clients_through(many: Api) -> None:
    """While all 3,000 queues are listed over and over, a client's round trips stay far below the time of a listing."""
    done = threading.Event()
    listings: list[float] = []

    def keep_listing() -> None:
        while not done.is_set():
            started = time.monotonic()
            assert len(many.get("/queues")) == 3000
            listings.append(time.monotonic() - started)

    thread = threading.Thread(target=keep_listing)
    with_client = Connection(url=many.broker.url)
    channel = with_client.channel()
    thread.start()
    try:
        trips = []
        while len(listings) < 2:
            started = time.monotonic()
            channel.queue_declare("q00001", passive=True)
            trips.append(time.monotonic() - started)
    finally:
        done.set()
        thread.join()
        with_client.close()
    trips.sort()
    assert len(trips) > 20, "the client was held up by the listing"
    assert trips[len(trips) // 2] < max(listings) / 4
