"""A shop in a broker of its own, and a browser that looks at it: one of each for a file of tests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pika
import pytest

from tests.console.chromium import Watched, chromium
from tests.http.conftest import Api
from tests.support import web
from warrenmq.testing import Broker


def plant(api: Api) -> None:
    """A small shop: orders that go by topic, dead letters, reminders for later."""
    api.put("/queues/%2F/orders", {"durable": True, "arguments": {"x-dead-letter-exchange": "dead"}})
    api.put("/queues/%2F/shipping", {"durable": True})
    api.put("/queues/%2F/dead-letters", {"durable": True})
    api.put("/queues/%2F/audit", {"durable": True, "arguments": {"x-queue-type": "stream"}})
    api.put("/exchanges/%2F/shop", {"type": "topic", "durable": True})
    api.put("/exchanges/%2F/dead", {"type": "fanout", "durable": True})
    api.put("/exchanges/%2F/later", {"type": "x-delayed-message", "arguments": {"x-delayed-type": "direct"}})
    for source, queue, key in (
        ("shop", "orders", "order.#"),
        ("shop", "shipping", "order.paid"),
        ("dead", "dead-letters", ""),
        ("later", "shipping", "shipping"),
    ):
        api.ask("POST", f"/bindings/%2F/e/{source}/q/{queue}", {"routing_key": key})
    api.put("/policies/%2F/short", {"pattern": "^orders$", "definition": {"max-length": 1000}, "apply-to": "queues"})


@pytest.fixture(scope="module")
def api() -> Iterator[Api]:
    with Broker(journal="on", journal_interval=1) as broker, web.Client() as client:
        api = Api(broker, client)
        plant(api)
        yield api


@pytest.fixture(scope="module")
def channel(api: Api) -> Iterator[Any]:
    connection = pika.BlockingConnection(pika.ConnectionParameters(port=api.broker.port, heartbeat=0))
    channel = connection.channel()
    channel.confirm_delivery()
    yield channel
    connection.close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def cookies(browser: Any, api: Api) -> Any:
    """Those of an administrator who has logged in."""
    context = browser.new_context()
    seen = Watched(context.new_page(), api.broker.http_url)
    seen.log_in()
    seen.sees("Overview")
    found = context.storage_state()
    context.close()
    return found


@pytest.fixture
def stranger(browser: Any, api: Api) -> Iterator[Watched]:
    context = browser.new_context()
    yield Watched(context.new_page(), api.broker.http_url)
    context.close()


@pytest.fixture
def seen(browser: Any, api: Api, cookies: Any) -> Iterator[Watched]:
    """A page of the administrator. Whatever it does: no error, no other host, no box of the browser's."""
    context = browser.new_context(storage_state=cookies, viewport={"width": 1400, "height": 900})
    watched = Watched(context.new_page(), api.broker.http_url)
    yield watched
    context.close()
    assert (watched.errors, watched.elsewhere, watched.dialogs) == ([], [], [])
