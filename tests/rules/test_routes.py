"""A publisher that repeats itself: what its last publish found out holds until something it depends on changes."""

from __future__ import annotations

from typing import Any

import pytest

from warrenmq.broker.publish.routes import CACHE_LIMIT
from warrenmq.testing.core import Core
from warrenmq.testing.core_client import CoreClient
from warrenmq.wire.constants import FRAME_HEADER, FRAME_METHOD
from warrenmq.wire.content import Properties, encode_header, frame
from warrenmq.wire.fields import from_python
from warrenmq.wire.methods import method_frame

pytestmark = pytest.mark.pure


class Publisher:
    """Publishes the same frame again and again, and says which queues it reached."""

    def __init__(self, core: Core, exchange: str, key: str, **properties: Any) -> None:
        self.core = core
        self.exchange = exchange
        self.key = key
        self.properties = properties
        self.client = core.client()

    def reaches(self) -> list[str]:
        before = self.counts()
        for _ in range(2):  # the second finds what the first found out
            self.client.publish(self.exchange, self.key, b"x", **self.properties)
        after = self.counts()
        assert all(after[queue] - before.get(queue, 0) in (0, 2) for queue in after), "not twice the same"
        return sorted(queue for queue in after if after[queue] > before.get(queue, 0))

    def counts(self) -> dict[str, int]:
        return {name: int(queue.ready) for name, queue in self.core.broker.vhosts["/"].queues.items()}


PROPERTIES = [{}, {"priority": 1}, {"headers": from_python({"a": 1})}]
BY_PROPERTIES = pytest.mark.parametrize("properties", PROPERTIES, ids=["plain", "a priority", "a header"])


@BY_PROPERTIES
def test_a_queue_that_is_declared_later_is_found_and_one_that_is_deleted_is_not(
    core: Core, client: CoreClient, properties: dict[str, Any]
) -> None:
    publisher = Publisher(core, "", "q", **properties)
    assert publisher.reaches() == []
    client.call("queue.declare", queue="q")
    assert publisher.reaches() == ["q"]
    client.call("queue.delete", queue="q")
    assert publisher.reaches() == []
    client.call("queue.declare", queue="q")
    assert publisher.reaches() == ["q"]


@BY_PROPERTIES
@pytest.mark.parametrize("exchange", ["amq.direct", "amq.topic", "amq.fanout"])
def test_bindings_hold_as_soon_as_they_are_there_and_no_longer(
    core: Core, client: CoreClient, exchange: str, properties: dict[str, Any]
) -> None:
    publisher = Publisher(core, exchange, "k", **properties)
    for queue in ("a", "b"):
        client.call("queue.declare", queue=queue)
    assert publisher.reaches() == []
    client.call("queue.bind", queue="a", exchange=exchange, routing_key="k")
    assert publisher.reaches() == ["a"]
    client.call("queue.bind", queue="b", exchange=exchange, routing_key="k")
    assert publisher.reaches() == ["a", "b"]
    client.call("queue.unbind", queue="a", exchange=exchange, routing_key="k")
    assert publisher.reaches() == ["b"]


@BY_PROPERTIES
def test_exchanges_behind_exchanges_and_alternate_ones_count_too_also_such_as_are_not_there_yet(
    core: Core, client: CoreClient, properties: dict[str, Any]
) -> None:
    client.call("exchange.declare", exchange="x", type="direct", arguments={"alternate-exchange": "other"})
    client.call("queue.declare", queue="q")
    publisher = Publisher(core, "x", "k", **properties)
    assert publisher.reaches() == []
    client.call("exchange.declare", exchange="other", type="fanout")
    client.call("queue.bind", queue="q", exchange="other")
    assert publisher.reaches() == ["q"]
    client.call("exchange.bind", destination="amq.fanout", source="x", routing_key="k")
    assert publisher.reaches() == []
    client.call("queue.declare", queue="p")
    client.call("queue.bind", queue="p", exchange="amq.fanout")
    assert publisher.reaches() == ["p"]
    client.call("exchange.unbind", destination="amq.fanout", source="x", routing_key="k")
    client.call("exchange.delete", exchange="other")
    assert publisher.reaches() == []


def test_what_headers_decide_is_asked_of_every_message(core: Core, client: CoreClient) -> None:
    for queue in ("one", "two"):
        client.call("queue.declare", queue=queue)
        client.call("queue.bind", queue=queue, exchange="amq.headers", arguments={"to": queue})
    publisher = Publisher(core, "amq.headers", "")
    for wanted in (["one"], ["two"], [], ["one"]):
        publisher.properties = {"headers": from_python({"to": wanted[0]})} if wanted else {}
        assert publisher.reaches() == wanted


def test_many_routes_are_remembered_and_each_is_its_own(core: Core, client: CoreClient) -> None:
    client.call("queue.declare", queue="q")
    for number in range(3):
        client.call("queue.declare", queue=f"q{number}")
    publishers = [Publisher(core, "", f"q{number}") for number in range(3)]
    sender = publishers[0].client
    for publisher in publishers:
        publisher.client = sender
    for _ in range(3):
        for number, publisher in enumerate(publishers):
            assert publisher.reaches() == [f"q{number}"]
    for number in range(3000):  # more than are remembered
        sender.publish("", f"unknown{number}", b"x")
    for number, publisher in enumerate(publishers):
        assert publisher.reaches() == [f"q{number}"]


def test_a_connection_remembers_so_many_routes_and_with_one_more_begins_anew(client: CoreClient) -> None:
    memo = client.connection.memo

    def arguments(number: int) -> bytes:
        return method_frame(1, "basic.publish", exchange="", routing_key=f"k{number}")[11:-1]

    for number in range(CACHE_LIMIT):
        client.publish("", f"k{number}", b"x")
    assert all(memo.knows(arguments(number)) for number in range(CACHE_LIMIT))
    client.publish("", f"k{CACHE_LIMIT}", b"x")
    assert [memo.knows(arguments(number)) for number in (0, CACHE_LIMIT - 1, CACHE_LIMIT)] == [False, False, True]


def test_a_publish_that_is_malformed_is_refused_before_its_content_comes(client: CoreClient) -> None:
    whole = method_frame(1, "basic.publish", exchange="amq.direct", routing_key="k")
    client.feed(whole)
    assert client.story() == []
    client.feed(client.published("amq.direct", "k", b"x")[len(whole) :])
    client.feed(frame(FRAME_METHOD, 1, whole[7:-3]))
    assert client.story() == ["connection.close 501"]


@pytest.mark.parametrize("octets", [b"\x80\x00", b"\x00\x00x", b""], ids=["less than they say", "more", "none"])
@pytest.mark.parametrize("pieces", [1, 2])
def test_properties_that_are_not_what_they_say_are_an_error_in_one_piece_or_in_two(
    core: Core, client: CoreClient, octets: bytes, pieces: int
) -> None:
    """As RabbitMQ, which fails at them."""
    client.call("queue.declare", queue="q")
    client.take()
    method = method_frame(1, "basic.publish", exchange="", routing_key="q")
    header = frame(FRAME_HEADER, 1, encode_header(Properties(), 0)[:-2] + octets)
    for part in [method + header] if pieces == 1 else [method, header]:
        client.feed(part)
    assert client.story() == ["connection.close 541"] and core.ready("q") == 0


def test_a_delay_is_none_at_an_exchange_that_knows_none_whether_the_vhost_is_traced_or_not(
    core: Core, client: CoreClient
) -> None:
    client.call("queue.declare", queue="q")
    client.call("queue.bind", queue="q", exchange="amq.direct", routing_key="k")
    for traced in (True, False):
        core.broker.vhosts["/"].set_tracing(traced)
        for _ in range(2):
            client.publish("amq.direct", "k", b"x", headers=from_python({"x-delay": 1000}))
        assert client.drain("q") == ["x", "x"]


def test_a_reply_is_not_taken_for_a_queue_and_reaches_who_listens_now(core: Core) -> None:
    asking, answering = core.client(), core.client()
    asking.call("queue.declare", queue="q")
    for body in (b"1", b"2"):
        asking.call("basic.consume", queue="amq.rabbitmq.reply-to", consumer_tag="c", no_ack=True)
        asking.publish("", "q", b"question", reply_to="amq.rabbitmq.reply-to")
        question = answering.call("basic.get", queue="q", no_ack=True)
        assert question.properties is not None and question.properties.reply_to
        asking.take()
        for _ in range(2):
            answering.publish("", question.properties.reply_to, body)
        assert asking.bodies() == [body, body]
        asking.call("basic.cancel", consumer_tag="c")


@BY_PROPERTIES
def test_who_listens_for_replies_may_ask_for_them_elsewhere(core: Core, properties: dict[str, Any]) -> None:
    client = core.client()
    client.call("queue.declare", queue="q")
    client.call("basic.consume", queue="amq.rabbitmq.reply-to", no_ack=True)
    client.publish("", "q", b"question", reply_to="mine", **properties)
    got = client.call("basic.get", queue="q", no_ack=True)
    assert got.properties is not None and got.properties.reply_to == "mine"


def test_a_size_that_is_allowed_does_not_depend_on_what_came_before(core: Core, client: CoreClient) -> None:
    core.broker.services.limits.max_message_size = 10
    client.call("queue.declare", queue="q")
    client.take()
    for size, wanted in ((10, 1), (10, 2)):
        client.publish("", "q", bytes(size))
        assert core.ready("q") == wanted
    client.publish("", "q", bytes(11))
    assert client.closing() == "406 PRECONDITION_FAILED - message size 11 is larger than configured max size 10"


def test_a_blind_copy_is_hidden_from_whoever_gets_the_message_and_nothing_else_is(
    core: Core, client: CoreClient
) -> None:
    for queue in ("q", "copied", "hidden"):
        client.call("queue.declare", queue=queue)
    headers = from_python({"BCC": ["hidden"], "CC": ["copied"], "a": 1})
    client.publish("", "q", b"x", headers=headers, message_id="m", expiration="60000")
    for queue in ("q", "copied", "hidden"):
        got = client.call("basic.get", queue=queue, no_ack=True)
        assert got.headers == {"CC": ["copied"], "a": 1}
        assert got.properties is not None
        assert (got.properties.message_id, got.properties.expiration) == ("m", "60000")


def test_a_copy_for_one_other_queue_goes_there_whether_it_shows_or_not(core: Core, client: CoreClient) -> None:
    for queue in ("q", "other"):
        client.call("queue.declare", queue=queue)
    for header in ("CC", "BCC"):
        client.publish("", "q", header.encode(), headers=from_python({header: ["other"]}))
    assert client.drain("q") == client.drain("other") == ["CC", "BCC"]
