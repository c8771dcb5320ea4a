"""The body of one message as a file: whole, however long, nothing taken, and never opened by a browser."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from typing import Any

import pika
import pytest

from tests.http.conftest import Api
from tests.support import web
from warrenmq.testing import Broker

EVIL = b"<script>alert(1)</script>"


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


@pytest.mark.parametrize("durable", [True, False])
def test_the_whole_body_of_what_waits_or_is_held_comes_as_an_attachment(api: Api, channel: Any, durable: bool) -> None:
    api.put("/queues/%2F/bodies", {"durable": durable})
    sent = [EVIL, os.urandom(5_000_000), b""]
    for body in sent:
        channel.basic_publish("", "bodies", body, pika.BasicProperties(delivery_mode=2 if durable else 1))
    channel.basic_get("bodies")
    items = api.get("/queues/%2F/bodies/peek?truncate=10")["items"]
    assert [item["state"] for item in items] == ["unacked", "waiting", "waiting"]
    for item, body in zip(items, sent, strict=True):
        answer = api.ask("GET", f"/queues/%2F/bodies/body?position={item['position']}")
        assert answer.status_code == 200 and answer.content == body
        assert answer.headers["content-type"] == "application/octet-stream"
        assert answer.headers["content-disposition"].startswith("attachment")
        assert answer.headers["x-content-type-options"] == "nosniff"
    assert api.get("/queues/%2F/bodies")["messages"] == 3
    api.ask("DELETE", "/queues/%2F/bodies")


def test_a_body_that_is_not_there_or_may_not_be_read_is_refused(api: Api, channel: Any) -> None:
    api.put("/queues/%2F/bodies", {"durable": True})
    channel.basic_publish("", "bodies", b"secret")
    for query, status in (("", 400), ("?position=x", 400), ("?position=99", 404)):
        assert api.ask("GET", f"/queues/%2F/bodies/body{query}").status_code == status
    assert api.ask("GET", "/queues/%2F/none/body?position=1").status_code == 404
    api.put("/users/blind", {"password": "x", "tags": "management"})
    api.put("/permissions/%2F/blind", {"configure": "", "write": "", "read": ""})
    position = api.get("/queues/%2F/bodies/peek")["items"][0]["position"]
    url = f"{api.broker.http_url}/api/queues/%2F/bodies/body?position={position}"
    assert api.client.get(url, auth=("blind", "x")).status_code == 401
    assert api.client.get(url, auth=("guest", "guest")).content == b"secret"
    api.ask("DELETE", "/queues/%2F/bodies")
    api.ask("DELETE", "/users/blind")


def test_a_body_that_leaves_while_it_is_sent_ends_its_connection_and_is_no_fault(
    api: Api, channel: Any, caplog: pytest.LogCaptureFixture
) -> None:
    api.put("/queues/%2F/bodies", {"durable": True})
    sizes = [20_000_000, 64_000_000]  # the second is on disk only, and more than fits between the broker and a client
    for size in sizes:
        channel.basic_publish("", "bodies", bytes(size), pika.BasicProperties(delivery_mode=2))
    position = api.get("/queues/%2F/bodies/peek?truncate=10")["items"][1]["position"]
    with socket.create_connection(("127.0.0.1", api.broker.http_port), timeout=web.PATIENCE) as reader:
        path = f"/api/queues/%2F/bodies/body?position={position}"
        reader.sendall(f"GET {path} HTTP/1.1\r\nhost: x\r\nauthorization: Basic Z3Vlc3Q6Z3Vlc3Q=\r\n\r\n".encode())
        begun = reader.recv(64)
        assert begun.startswith(b"HTTP/1.1 200 ")
        assert api.ask("DELETE", "/queues/%2F/bodies").status_code == 204
        log = api.broker.server.log
        with_it = api.broker.call(lambda: set(log.segments))
        while len(with_it & api.broker.call(lambda: set(log.segments))) > 1:  # the log lets go of all but the newest
            api.broker.advance(1)
        got = len(begun)
        while data := reader.recv(1 << 20):  # no reset: what had been sent arrives
            got += len(data)
    assert got < sizes[1]
    assert [record.getMessage() for record in caplog.records if record.levelname in ("ERROR", "CRITICAL")] == []
    assert api.get("/whoami")["name"] == "guest"
