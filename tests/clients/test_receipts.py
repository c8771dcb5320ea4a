"""Receipts through pika, and the vhost's setting through everything that sets it; beside RabbitMQ."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pika
import pytest

from tests.support.brokers import RunningBroker
from warrenmq.cli.ctl import command as ctl

DIRECT = "amq.rabbitmq.reply-to"


@pytest.fixture
def connection(warren: RunningBroker) -> Iterator[pika.BlockingConnection]:
    connection = pika.BlockingConnection(pika.URLParameters(warren.url))
    yield connection
    if connection.is_open:
        connection.close()


def test_a_pika_client_gets_its_receipt_on_the_channel_it_published_on(connection: pika.BlockingConnection) -> None:
    channel = connection.channel()
    queue = channel.queue_declare("", exclusive=True).method.queue
    said: list[dict[str, Any]] = []
    channel.basic_consume(DIRECT, lambda *got: said.append(json.loads(got[3])), auto_ack=True)
    channel.confirm_delivery()
    properties = pika.BasicProperties(message_id="4711", headers={"x-receipt": DIRECT})
    channel.basic_publish("", queue, b"order", properties)
    while not said:
        connection.process_data_events(1)
    assert (said[0]["message_id"], said[0]["sequence"], said[0]["outcome"]) == ("4711", 1, "taken")
    assert said[0]["queues"] == [{"queue": queue, "position": 1, "durable": False}]


def test_a_pika_client_gets_the_cause_of_a_nack_in_a_queue(connection: pika.BlockingConnection) -> None:
    channel = connection.channel()
    arguments = {"x-max-length": 0, "x-overflow": "reject-publish"}
    full = channel.queue_declare("", exclusive=True, arguments=arguments).method.queue
    audit = channel.queue_declare("", exclusive=True).method.queue
    channel.confirm_delivery()
    with pytest.raises(pika.exceptions.NackError):
        channel.basic_publish("", full, b"order", pika.BasicProperties(headers={"x-receipt": audit}))
    _, properties, body = channel.basic_get(audit, auto_ack=True)
    assert properties is not None and body is not None
    assert properties.headers["x-receipt-cause"] == f"queue '{full}': max-length 0"
    assert json.loads(body)["confirm"] == "nack"


def test_whoever_does_not_ask_sees_the_same_of_both_brokers_even_with_headers_of_these_names(
    broker: RunningBroker,
) -> None:
    """For RabbitMQ they are headers like any other; the message reaches its consumer with them from both."""
    with pika.BlockingConnection(pika.URLParameters(broker.url)) as connection:
        channel = connection.channel()
        queue = channel.queue_declare("", exclusive=True).method.queue
        channel.confirm_delivery()
        wanted = {"x-receipt": queue, "x-confirm-min-queues": 2 if not broker.is_warren else 1}
        channel.basic_publish("", queue, b"order", pika.BasicProperties(headers=wanted))
        _, properties, body = channel.basic_get(queue, auto_ack=True)
        assert properties is not None
        assert (body, properties.headers) == (b"order", wanted)


def test_an_unroutable_publish_is_acked_by_both_brokers_and_nacked_where_a_warren_vhost_says_so(
    broker: RunningBroker,
) -> None:
    vhost = "nacking"
    body = {"nack_unroutable": True} if broker.is_warren else {}
    assert broker.http("PUT", f"/api/vhosts/{vhost}", body)[0] == 201
    for name, nacked in (("/", False), (vhost, broker.is_warren)):
        with pika.BlockingConnection(pika.URLParameters(broker.url_of("guest", "guest", name))) as connection:
            channel = connection.channel()
            channel.confirm_delivery()
            if nacked:
                with pytest.raises(pika.exceptions.NackError):
                    channel.basic_publish("", "nowhere", b"lost")
            else:
                channel.basic_publish("", "nowhere", b"lost")
            with pytest.raises(pika.exceptions.NackError if nacked else pika.exceptions.UnroutableError) as told:
                channel.basic_publish("", "nowhere", b"lost", mandatory=True)
            assert [returned.body for returned in told.value.messages] == [b"lost"]
    status, answer = broker.http(
        "POST",
        f"/api/exchanges/{vhost}/amq.default/publish",
        {"routing_key": "nowhere", "payload": "x", "payload_encoding": "string", "properties": {}},
    )
    assert (status, answer) == (200, {"routed": False})
    assert broker.http("DELETE", f"/api/vhosts/{vhost}")[0] == 204


def test_the_setting_is_shown_exported_imported_and_set_by_ctl(
    warren: RunningBroker, capsys: pytest.CaptureFixture[str]
) -> None:
    url = warren.http_url.replace("http://", "http://guest:guest@")

    def metadata() -> dict[str, Any]:
        status, shown = warren.http("GET", "/api/vhosts/receipts")
        assert status == 200 and isinstance(shown, dict)
        found: dict[str, Any] = shown["metadata"]
        return found

    def run(*arguments: str) -> tuple[int, str]:
        status = ctl.main(["-q", *arguments, "--url", url])
        return status, capsys.readouterr().err

    assert run("add_vhost", "receipts", "--description", "d") == (0, "")
    assert metadata() == {"description": "d", "tags": []}
    assert run("update_vhost_metadata", "receipts", "--nack-unroutable", "true") == (0, "")
    assert metadata() == {"description": "d", "tags": [], "nack_unroutable": True}
    status, exported = warren.http("GET", "/api/definitions")
    assert status == 200 and isinstance(exported, dict)
    (vhost,) = [one for one in exported["vhosts"] if one["name"] == "receipts"]
    assert vhost["metadata"] == {"description": "d", "tags": [], "nack_unroutable": True}
    assert run("update_vhost_metadata", "receipts", "--nack-unroutable", "false") == (0, "")
    assert "nack_unroutable" not in metadata()
    assert warren.http("POST", "/api/definitions", {"vhosts": [vhost]})[0] == 204
    assert metadata()["nack_unroutable"] is True
    assert run("update_vhost_metadata", "receipts", "--nack-unroutable", "perhaps")[0] == 64
    assert run("update_vhost_metadata", "receipts")[0] == 64
    assert run("update_vhost_metadata", "no-such", "--tags", "a")[0] == 65
    assert warren.http("PUT", "/api/vhosts/receipts", {"nack_unroutable": "yes"})[0] == 400
    assert warren.http("DELETE", "/api/vhosts/receipts")[0] == 204
