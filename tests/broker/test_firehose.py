"""The firehose: copies of what is published and delivered, while a vhost is traced, and not a moment longer."""

from __future__ import annotations

from pathlib import Path

import pytest

from warrenmq.testing.core import Core
from warrenmq.testing.core_client import CoreClient
from warrenmq.wire.content import Properties

pytestmark = pytest.mark.pure


def traced(tmp_path: Path) -> tuple[Core, CoreClient]:
    core = Core(tmp_path)
    client = core.client()
    client.call("queue.declare", queue="trace")
    client.call("queue.bind", queue="trace", exchange="amq.rabbitmq.trace", routing_key="#")
    client.call("queue.declare", queue="q")
    client.publish("", "q", b"before")  # its route is remembered from here on
    core.broker.vhosts["/"].set_tracing(True)
    return core, client


def copies(client: CoreClient) -> list[tuple[str, bytes]]:
    found = []
    while (got := client.call("basic.get", queue="trace", no_ack=True)).name == "basic.get-ok":
        if not str(got["routing_key"]).endswith(".trace"):
            found.append((str(got["routing_key"]), got.body))
    return found


def test_publishes_and_deliveries_are_copied_from_the_moment_tracing_is_on(tmp_path: Path) -> None:
    core, client = traced(tmp_path)
    client.publish("", "q", b"seen", Properties(message_id="7"))
    client.call("basic.consume", queue="q", no_ack=True)
    assert [got.body for got in client.received if got.name == "basic.deliver"] == [b"before", b"seen"]
    core.broker.vhosts["/"].set_tracing(False)
    assert copies(client) == [("publish.", b"seen"), ("deliver.q", b"before"), ("deliver.q", b"seen")]
    client.publish("", "q", b"unseen")
    assert copies(client) == []


def test_a_copy_carries_the_facts_of_the_message(tmp_path: Path) -> None:
    core, client = traced(tmp_path)
    client.publish("", "q", b"x", Properties(message_id="7"))
    core.broker.vhosts["/"].set_tracing(False)
    got = client.call("basic.get", queue="trace", no_ack=True)
    assert got.properties is not None and got.properties.headers is not None
    headers = got.properties.headers
    assert headers["exchange_name"].value == ""
    assert [field.value for field in headers["routing_keys"].value] == ["q"]  # type: ignore[attr-defined]
    assert [field.value for field in headers["routed_queues"].value] == ["q"]  # type: ignore[attr-defined]
    assert headers["user"].value == "guest"
    assert headers["properties"].value["message_id"].value == "7"  # type: ignore[index]
