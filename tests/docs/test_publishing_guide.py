"""The publishing guide: records under their own names, interceptors first, the size, the sequence number, tx."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.rawclient import HEADER, RawClient, frame, header, method
from warrenmq.broker.records import BasicMessage, Content, Delivery, Exchange, ExchangeType, Resource
from warrenmq.testing import Broker
from warrenmq.wire.methods import Method
from warrenmq.wire.replies import AmqpError

HERE = __name__


class Refuser:
    """An interceptor that sees publishes, notes them, and refuses some, before any other stage."""

    name = "refuser"
    applies_to = ("basic.publish",)

    def intercept(self, method: Method, channel: object) -> Method:
        if method.str("exchange") == "forbidden-by-interceptor":
            raise AmqpError(403, "the interceptor says no", 60, 40)
        if method.str("routing_key") == "rewrite-me":
            method.set("routing_key", "guide")
        return method


refuser = Refuser()


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(max_message_size=1000, interceptors=[f"{HERE}:refuser"]) as started:
        yield started


@pytest.fixture
def client(broker: Broker) -> Iterator[RawClient]:
    with RawClient(broker.port).handshake().open(1) as opened:
        yield opened


def test_a_resource_is_virtual_host_kind_and_name_and_names_things_in_texts() -> None:
    resource = Resource("/", "exchange", "my_exchange")
    assert (resource.virtual_host, resource.kind, resource.name) == ("/", "exchange", "my_exchange")
    assert str(resource) == "exchange 'my_exchange' in vhost '/'"
    assert resource == Resource("/", "exchange", "my_exchange") != Resource("/", "queue", "my_exchange")


def test_the_records_have_the_fields_of_the_guide() -> None:
    content = Content(header(1, delivery_mode=2), b"x")
    name = Resource(virtual_host="/", kind="exchange", name="x")
    message = BasicMessage(exchange_name=name, routing_keys=["k", "cc"], content=content, id=7, is_persistent=True)
    delivery = Delivery(mandatory=True, confirm=False, sender=None, message=message, msg_seq_no=1, flow=True)
    assert (delivery.mandatory, delivery.confirm, delivery.sender, delivery.msg_seq_no, delivery.flow) == (
        True,
        False,
        None,
        1,
        True,
    )
    assert (message.exchange_name, message.routing_keys, message.id, message.is_persistent) == (
        name,
        ["k", "cc"],
        7,
        True,
    )
    assert delivery.message.content.properties.delivery_mode == 2
    exchange = Exchange(
        name=name, type="direct", durable=True, auto_delete=False, internal=False, arguments={}, matcher=ExchangeType()
    )
    assert (exchange.scratches, exchange.policy.name, exchange.decorators) == ({}, None, [])


def test_the_first_six_fields_of_an_exchange_never_change() -> None:
    source = (Path(__file__).parents[2] / "src" / "warrenmq" / "broker" / "records.py").read_text()
    final = {
        ast.unparse(node.target)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.annotation).startswith("Final")
    }
    assert {f"self.{name}" for name in ("name", "type", "durable", "auto_delete", "internal", "arguments")} <= final


def test_a_message_id_is_unique_across_restarts(tmp_path: Path) -> None:
    broker = Broker(data_dir=tmp_path)
    broker.start()
    try:
        before = [broker.call(broker.server.broker.services.ids.message) for _ in range(100)]
        with RawClient(broker.port).handshake().open(1) as client:
            client.call(1, "queue.declare", queue="q", durable=True)
            client.call(1, "confirm.select")
            client.publish(1, "", "q", b"x", delivery_mode=2)
            client.wait("basic.ack")
        last = broker.call(broker.server.broker.services.ids.message)
        broker.restart()
        after = broker.call(broker.server.broker.services.ids.message)
    finally:
        broker.stop()
    assert len(set(before)) == 100 and after > last > max(before)


def test_scratches_are_durable_and_decorators_are_recalculated_on_recovery(tmp_path: Path) -> None:
    broker = Broker(data_dir=tmp_path)
    broker.start()
    try:
        with RawClient(broker.port).handshake().open(1) as client:
            client.call(
                1,
                "exchange.declare",
                exchange="x",
                type="direct",
                durable=True,
                arguments={"x-extra-destinations": ["extra"]},
            )

        def scratch() -> None:
            broker.server.begin()
            vhost = broker.server.broker.vhosts["/"]
            vhost.update_scratch(vhost.exchanges["x"], "seen", 3)

        broker.call(scratch)
        broker.restart()
        exchange = broker.call(lambda: broker.server.broker.vhosts["/"].exchanges["x"])
        assert exchange.scratches == {"seen": 3}
        assert len(exchange.decorators) == 1
    finally:
        broker.stop()


def test_an_interceptor_sees_the_method_first_and_may_refuse_or_rewrite_it(client: RawClient) -> None:
    client.call(1, "queue.declare", queue="guide", exclusive=True)
    client.publish(1, "", "rewrite-me", b"rewritten")
    client.send_method(1, "basic.get", queue="guide", no_ack=True)
    got, _, body = client.wait_message("basic.get-ok")
    assert (got.text("routing_key"), body) == ("guide", b"rewritten")
    # this exchange does not exist, and immediate would be 540: the interceptor comes before both
    client.publish(1, "forbidden-by-interceptor", "k", b"x", immediate=True)
    closed = client.wait("channel.close")
    assert (closed.name, closed.text("reply_text")) == ("channel.close", "ACCESS_REFUSED - the interceptor says no")


def test_the_size_is_checked_before_permission_and_existence_and_before_a_body_is_read(client: RawClient) -> None:
    client.send(method(1, "basic.publish", exchange="does-not-exist") + frame(HEADER, 1, header(1001)))
    closed = client.wait("channel.close")
    assert closed.text("reply_text") == (
        "PRECONDITION_FAILED - message size 1001 is larger than configured max size 1000"
    )
    client.open(1)
    client.publish(1, "", "nowhere", b"x" * 1000, mandatory=True)
    assert len(client.wait_message("basic.return")[2]) == 1000


def test_two_gigabytes_and_one_byte_are_refused_from_the_header() -> None:
    with Broker(max_message_size=2 * 1024**3) as broker, RawClient(broker.port).handshake().open(1) as client:
        client.send(method(1, "basic.publish", routing_key="q") + frame(HEADER, 1, header(2 * 1024**3 + 1)))
        assert client.wait("channel.close").name in ("channel.close", "connection.close")


def test_a_transactions_publishes_are_kept_until_commit_and_gone_after_rollback(client: RawClient) -> None:
    queue = client.call(1, "queue.declare", exclusive=True).text("queue")
    client.open(2)
    client.call(2, "tx.select")
    for _ in range(2):
        client.publish(2, "", queue, b"x")
    client.call(2, "basic.qos")
    assert client.call(1, "basic.get", queue=queue).name == "basic.get-empty"
    client.call(2, "tx.rollback")
    assert client.call(1, "basic.get", queue=queue).name == "basic.get-empty"
    client.publish(2, "", queue, b"y")
    client.call(2, "tx.commit")
    assert client.call(1, "basic.get", queue=queue).name == "basic.get-ok"


def test_a_confirm_number_counts_from_the_select_and_a_mandatory_publish_before_it_does_not_show(
    client: RawClient,
) -> None:
    for _ in range(3):
        client.publish(1, "", "nowhere", b"x", mandatory=True)
        client.wait_message("basic.return")
    client.call(1, "confirm.select")
    client.publish(1, "", "nowhere", b"x")
    assert client.wait("basic.ack").number("delivery_tag") == 1
