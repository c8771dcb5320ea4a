"""What moves along each step of the topology: counted by the way that each message took, not guessed from its ends."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pika
import pytest

from tests.http.conftest import Api
from tests.support import web
from warrenmq.testing import Broker


@pytest.fixture(scope="module")
def api() -> Iterator[Api]:
    with Broker(clock="virtual") as broker, web.Client() as client:
        yield Api(broker, client)


@pytest.fixture
def channel(api: Api) -> Iterator[Any]:
    connection = pika.BlockingConnection(pika.ConnectionParameters(port=api.broker.port, heartbeat=0))
    channel = connection.channel()
    channel.confirm_delivery()
    yield channel
    connection.close()


def steps(api: Api) -> dict[tuple[str, str, str], tuple[int, float | None]]:
    found = api.get("/flow/%2F")
    assert found["whole"]
    return {(one["source"], one["how"], one["destination"]): (one["messages"], one["rate"]) for one in found["steps"]}


def test_each_step_counts_the_messages_that_took_it_and_their_rate(api: Api, channel: Any) -> None:
    """Two exchanges lead to one queue, one of them also by way of another; a third has an alternate."""
    for name, arguments in (("front", {}), ("side", {}), ("middle", {}), ("strict", {"alternate-exchange": "side"})):
        api.put(f"/exchanges/%2F/{name}", {"type": "fanout" if name != "strict" else "direct", "arguments": arguments})
    api.put("/exchanges/%2F/dead", {"type": "fanout"})
    letters = {"x-dead-letter-exchange": "dead"}
    for name, arguments in (("one", letters), ("two", {}), ("graves", {})):
        api.put(f"/queues/%2F/{name}", {"durable": True, "arguments": arguments})
    for source, kind, to in (
        ("front", "e", "middle"),
        ("front", "q", "one"),
        ("middle", "q", "two"),
        ("side", "q", "two"),
        ("dead", "q", "graves"),
    ):
        api.ask("POST", f"/bindings/%2F/e/{source}/{kind}/{to}", {"routing_key": ""})
    for exchange, key, count in (("front", "", 3), ("side", "", 5), ("strict", "lost", 2), ("", "two", 4)):
        for _ in range(count):
            channel.basic_publish(exchange, key, b"x", pika.BasicProperties(delivery_mode=2))
    method, _, _ = channel.basic_get("one")
    channel.basic_nack(method.delivery_tag, requeue=False)
    channel.queue_declare("one", passive=True)
    expected = {
        ("front", "binding", "middle"): 3,
        ("front", "binding", "one"): 3,
        ("middle", "binding", "two"): 3,
        ("side", "binding", "two"): 7,
        ("strict", "alternate", "side"): 2,
        ("", "default", "two"): 4,
        ("one", "dead_letter", ""): 1,
        ("dead", "binding", "graves"): 1,
    }
    found = steps(api)
    assert found == {step: (count, None) for step, count in expected.items()}
    api.broker.advance(10)
    for _ in range(20):
        channel.basic_publish("side", "", b"x")
    found = steps(api)
    assert found.pop(("side", "binding", "two")) == (27, 2.0)
    assert {rate for _, rate in found.values()} == {0.0}
    api.broker.advance(10)
    assert {rate for _, rate in steps(api).values()} == {0.0}, "and what no longer moves is told to stand still"


def test_who_may_not_enter_a_vhost_sees_nothing_move_in_it(api: Api) -> None:
    api.put("/users/outside", {"password": "x", "tags": "management"})
    assert api.ask("GET", "/flow/%2F", user=("outside", "x")).status_code == 401
    assert api.ask("GET", "/flow/none").status_code == 404
    api.ask("DELETE", "/users/outside")
