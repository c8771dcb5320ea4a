"""Receipts: whoever asks is told what became of a publish, once that is true, and nobody else notices."""

from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import Any

import pytest

from warrenmq.broker.definitions import importing
from warrenmq.broker.definitions.definitions import Reader
from warrenmq.testing.core import Core
from warrenmq.testing.core_client import CoreClient
from warrenmq.testing.faults import FaultyDisk
from warrenmq.wire.content import Properties
from warrenmq.wire.fields import Field, Table, from_python

pytestmark = pytest.mark.pure

DIRECT = "amq.rabbitmq.reply-to"


@pytest.fixture
def client(core: Core) -> CoreClient:
    """In confirm mode, with a durable queue q for its messages and r for its receipts."""
    return publisher(core)


def publisher(core: Core, mode: str = "confirm.select") -> CoreClient:
    client = core.client(persistent=True)
    client.open(1, mode)
    client.declare("q")
    client.declare("r")
    client.take()
    return client


def declare_later(client: CoreClient) -> None:
    """A delayed exchange."""
    arguments = {"x-delayed-type": "direct"}
    client.call("exchange.declare", exchange="later", type="x-delayed-message", durable=True, arguments=arguments)


def nack_unroutable(core: Core) -> None:
    """As definitions that are imported say it."""
    broker = core.broker
    reader = Reader(None, importing.existing(broker), broker.services.randomness)
    list(reader.read({"vhosts": [{"name": "/", "metadata": {"nack_unroutable": True}}]}))
    broker.begin_turn()
    list(importing.apply(broker, reader.finished(), "guest"))
    broker.end_turn()


def publish(
    client: CoreClient, exchange: str, key: str, to: str = "r", mandatory: bool = False, **properties: Any
) -> None:
    headers: dict[str, object] = {"x-receipt": to} if to else {}
    headers |= properties.pop("headers", {})
    table: Table = from_python(headers)
    wanted: dict[str, Any] = {"delivery_mode": 2, "message_id": "order-1"} | properties
    client.publish(exchange, key, b"order", Properties(headers=table, **wanted), mandatory=mandatory)


def receipts(core: Core, queue: str = "r") -> list[dict[str, Any]]:
    """What the receipts that have come say, taken out."""
    reader = core.client()
    said = []
    while core.ready(queue):
        reader.send("basic.get", queue=queue, no_ack=True)
        core.commit()
        said.extend([json.loads(body) for body in reader.bodies()])
    return said


def receipt(core: Core, queue: str = "r") -> dict[str, Any]:
    (one,) = receipts(core, queue)
    return one


# -- what it says ------------------------------------------------------------------------------------------------


def test_a_receipt_names_the_publish_and_each_queue_that_took_it_with_its_position(
    core: Core, client: CoreClient
) -> None:
    client.send("queue.declare", queue="brief")
    for queue in ("q", "brief"):
        client.send("queue.bind", queue=queue, exchange="amq.fanout")
    client.fill("q", "earlier", "still earlier")
    client.take()
    publish(client, "amq.fanout", "k", correlation_id="c-9")
    assert client.story() == ["ack 3"]
    assert receipt(core) == {
        "outcome": "taken",
        "confirm": "ack",
        "cause": "",
        "exchange": "amq.fanout",
        "routing_key": "k",
        "message_id": "order-1",
        "correlation_id": "c-9",
        "sequence": 3,
        "took": 2,
        "refused": 0,
        "queues": [
            {"queue": "q", "position": 3, "durable": True},
            {"queue": "brief", "position": 1, "durable": False},
        ],
        "delayed": [],
    }


def test_its_properties_say_the_most_of_it_without_the_body(core: Core, client: CoreClient) -> None:
    publish(client, "", "nowhere", correlation_id="c-9")
    got = client.call("basic.get", queue="r")
    properties = got.properties
    assert properties is not None
    assert (properties.content_type, properties.type) == ("application/json", "receipt")
    assert (properties.correlation_id, properties.delivery_mode) == ("c-9", 2)
    assert got.headers == {
        "x-receipt-outcome": "unroutable",
        "x-receipt-confirm": "ack",
        "x-receipt-cause": "no queue for routing key 'nowhere' of the default exchange",
        "x-receipt-sequence": 1,
        "x-receipt-message-id": "order-1",
    }


def test_a_mandatory_message_is_returned_and_its_receipt_says_unroutable(core: Core, client: CoreClient) -> None:
    publish(client, "", "nowhere", mandatory=True)
    assert client.story() == ["return 312 order", "ack 1"]
    assert receipt(core)["outcome"] == "unroutable"


@pytest.mark.parametrize(
    ("arguments", "cause"),
    [({"x-max-length": 1}, "max-length 1"), ({"x-max-length-bytes": 7}, "max-length-bytes 7")],
)
@pytest.mark.parametrize("kind", ["classic", "quorum"])
def test_a_refusal_names_the_queue_and_its_limit(
    core: Core, client: CoreClient, arguments: dict[str, object], cause: str, kind: str
) -> None:
    client.declare("full", arguments={"x-overflow": "reject-publish", "x-queue-type": kind, **arguments})
    for queue in ("q", "full"):
        client.send("queue.bind", queue=queue, exchange="amq.fanout")
    client.fill("full", "first")
    client.take()
    publish(client, "amq.fanout", "")
    assert client.story() == ["nack 2+"]
    said = receipt(core)
    assert (said["outcome"], said["confirm"], said["took"], said["refused"]) == ("refused", "nack", 1, 1)
    assert said["cause"] == f"queue 'full': {cause}"
    assert {"queue": "full", "cause": cause} in said["queues"]
    assert {"queue": "q", "position": 1, "durable": True} in said["queues"]


def test_a_stream_says_the_offset(core: Core, client: CoreClient) -> None:
    client.declare("s", arguments={"x-queue-type": "stream"})
    client.fill("s", "0", "1")
    client.take()
    publish(client, "", "s")
    assert receipt(core)["queues"] == [{"queue": "s", "position": 2, "durable": True}]


def test_a_delayed_message_says_until_when(core: Core, client: CoreClient) -> None:
    declare_later(client)
    client.take()
    now = core.clock.now_ms()
    publish(client, "later", "q", headers={"x-delay": 60_000, "x-delay-id": "mine"})
    said = receipt(core)
    assert (said["outcome"], said["confirm"], said["queues"]) == ("delayed", "ack", [])
    assert said["delayed"] == [{"exchange": "later", "until": now + 60_000, "durable": True}]
    publish(client, "later", "q", headers={"x-delay-cancel": "mine"})
    said = receipt(core)
    assert (said["outcome"], said["delayed"]) == ("cancelled", [{"exchange": "later", "cancelled": "mine"}])
    publish(client, "later", "q", headers={"x-delay-cancel": "mine"})
    assert receipt(core)["outcome"] == "unroutable"


def test_a_reply_that_reached_its_channel_is_not_unroutable(core: Core, client: CoreClient) -> None:
    asking = core.client()
    asking.call("basic.consume", queue=DIRECT, no_ack=True)
    asking.publish("", "q", b"question", reply_to=DIRECT)
    question = client.call("basic.get", queue="q")
    assert question.properties is not None and question.properties.reply_to is not None
    client.take()
    nack_unroutable(core)
    publish(client, "", question.properties.reply_to)
    assert client.story() == ["ack 1"]
    assert (receipt(core)["outcome"], asking.bodies()) == ("replied", [b"order"])


def test_many_queues_are_counted_and_some_of_them_named_those_that_refused_first(
    core: Core, client: CoreClient
) -> None:
    for number in range(120):
        name = f"q{number}"
        arguments: dict[str, object] = {"x-max-length": 0, "x-overflow": "reject-publish"} if number == 110 else {}
        client.send("queue.declare", queue=name, arguments=arguments)
        client.send("queue.bind", queue=name, exchange="amq.fanout")
    publish(client, "amq.fanout", "")
    said = receipt(core)
    assert (said["took"], said["refused"], len(said["queues"])) == (119, 1, 100)
    assert said["queues"][0] == {"queue": "q110", "cause": "max-length 0"}


def test_without_confirm_mode_there_is_neither_a_confirm_nor_a_number(core: Core) -> None:
    client = publisher(core, "")
    publish(client, "", "q", mandatory=True)
    said = receipt(core)
    assert (said["outcome"], said["confirm"], said["sequence"]) == ("taken", None, None)


# -- where it goes -----------------------------------------------------------------------------------------------


def test_a_receipt_comes_straight_to_the_channel_that_listens_for_replies(core: Core, client: CoreClient) -> None:
    client.call("basic.consume", queue=DIRECT, no_ack=True, consumer_tag="replies")
    client.take()
    publish(client, "", "q", DIRECT)
    told = client.take()
    assert [got.name for got in told] == ["basic.deliver", "basic.ack"]
    assert told[0]["consumer_tag"] == "replies"
    assert json.loads(told[0].body)["queues"] == [{"queue": "q", "position": 1, "durable": True}]
    assert core.broker.receipts.sent == 1


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Field("S", ""), "406 PRECONDITION_FAILED - invalid x-receipt '': expected amq.rabbitmq.reply-to or the name"),
        (Field("l", 5), "406 PRECONDITION_FAILED - invalid x-receipt '5': expected amq.rabbitmq.reply-to or the name"),
        (Field("t", True), "406 PRECONDITION_FAILED - invalid x-receipt 'True'"),
        (Field("S", "x" * 256), "406 PRECONDITION_FAILED - invalid x-receipt 'xxx"),
        (Field("S", DIRECT), "406 PRECONDITION_FAILED - x-receipt is amq.rabbitmq.reply-to, from which this channel"),
        (Field("S", "gone"), "404 NOT_FOUND - no queue 'gone' in vhost '/' for the receipt (x-receipt)"),
    ],
)
def test_a_receipt_that_cannot_be_had_is_refused_and_nothing_is_published(
    core: Core, client: CoreClient, value: Field, text: str
) -> None:
    client.publish("", "q", b"x", Properties(headers={"x-receipt": value}))
    assert client.closing().startswith(text)
    assert core.ready("q") == 0


@pytest.mark.parametrize("header", ["x-receipt", "x-confirm-min-queues"])
def test_a_long_value_that_is_refused_is_shown_in_part(client: CoreClient, header: str) -> None:
    client.publish("", "q", b"x", headers=from_python({header: "x" * 300}))
    assert f"invalid {header} '{'x' * 80}': expected" in client.closing()


@pytest.mark.parametrize(("least", "said"), [("9" * 11, "nack 1+"), ("9" * 12, "channel.close 406")])
def test_a_number_of_queues_may_be_a_string_of_up_to_eleven_digits(client: CoreClient, least: str, said: str) -> None:
    client.publish("", "q", b"x", headers=from_python({"x-confirm-min-queues": least}))
    assert client.story() == [said]


def test_a_named_queue_needs_the_right_to_publish_there(core: Core, client: CoreClient) -> None:
    access = core.broker.registry.access
    access.add_user("eve", "eve", [])
    access.set_permissions("eve", "/", "", "^amq\\.fanout$", ".*")
    eve = core.client("eve", "eve")
    for name in ("r", "gone"):  # nor does she learn which queues there are
        eve.open()
        publish(eve, "amq.fanout", "", name)
        assert "403 ACCESS_REFUSED - access to exchange 'amq.default' in vhost '/' refused" in eve.closing()
        eve.send("channel.close-ok")
    assert receipts(core) == []


def test_a_receipt_that_nobody_takes_is_counted(core: Core, client: CoreClient) -> None:
    client.declare("none", arguments={"x-max-length": 0, "x-overflow": "reject-publish"})
    client.take()
    publish(client, "", "q", "none")
    assert client.story() == ["ack 1"]
    assert (core.broker.receipts.sent, core.broker.receipts.lost) == (0, 1)


# -- when --------------------------------------------------------------------------------------------------------


def test_a_receipt_never_comes_before_what_it_says_is_on_disk(tmp_path: Path) -> None:
    core = Core(tmp_path, held=True)
    client = publisher(core)
    client.send("basic.consume", queue="r", no_ack=True)
    core.commit()
    client.take()
    publish(client, "", "q")
    core.turn()
    assert client.take() == []
    core.commit()
    assert [got.name for got in client.take()] == ["basic.deliver", "basic.ack"]


def test_what_is_not_on_disk_waits_for_no_disk(tmp_path: Path) -> None:
    core = Core(tmp_path, held=True)
    client = publisher(core)
    publish(client, "", "q", delivery_mode=1)
    assert core.ready("r") == 1


def test_one_queue_refused_and_another_is_written_so_the_receipt_waits_for_that(tmp_path: Path) -> None:
    core = Core(tmp_path, held=True)
    client = publisher(core)
    client.declare("full", arguments={"x-max-length": 0, "x-overflow": "reject-publish"})
    for queue in ("q", "full"):
        client.send("queue.bind", queue=queue, exchange="amq.fanout")
        core.commit()
    client.take()
    publish(client, "amq.fanout", "")
    assert client.story() == ["nack 1+"]
    assert core.ready("r") == 0
    core.commit()
    assert core.ready("r") == 1


def test_a_channel_that_closes_meanwhile_does_not_keep_the_receipt_from_its_queue(tmp_path: Path) -> None:
    core = Core(tmp_path, held=True)
    client = publisher(core)
    publish(client, "", "q")
    client.send("channel.close", reply_code=200, reply_text="", class_id=0, method_id=0)
    core.commit()
    assert core.ready("r") == 1


def test_a_queue_that_was_deleted_meanwhile_is_said_to_be(tmp_path: Path) -> None:
    core = Core(tmp_path, held=True)
    client = publisher(core)
    publish(client, "", "q")
    other = core.client()
    other.send("queue.delete", queue="q")
    core.commit()
    core.settle()
    said = receipt(core)
    assert said["queues"] == [{"queue": "q", "position": 1, "durable": True, "deleted": True}]
    assert said["confirm"] == "ack"


def test_a_failed_disk_is_the_cause_of_a_nack(tmp_path: Path) -> None:
    disk = FaultyDisk()
    core = Core(tmp_path, disk)
    client = publisher(core)
    client.send("queue.declare", queue="brief")
    client.take()
    disk.fail("write", errno.ENOSPC)
    publish(client, "", "q", "brief")
    assert client.story() == ["nack 1+"]
    said = receipt(core, "brief")
    assert (said["outcome"], said["confirm"], said["took"]) == ("failed", "nack", 0)
    assert "not written" in said["cause"] and "No space left on device" in said["cause"]
    assert core.ready("q") == 0


def test_a_queue_that_fails_meanwhile_is_the_cause_of_a_nack(tmp_path: Path) -> None:
    core = Core(tmp_path, held=True)
    client = publisher(core)
    publish(client, "", "q")
    core.broker.fail_queue(core.queue("q"))
    core.turn()
    assert client.story() == ["nack 1+"]
    core.commit()
    said = receipt(core)
    assert (said["outcome"], said["confirm"]) == ("failed", "nack")
    assert said["queues"] == [{"queue": "q", "cause": "the queue failed"}]


# -- transactions ------------------------------------------------------------------------------------------------


def test_a_transactions_receipts_come_when_it_is_committed(tmp_path: Path) -> None:
    core = Core(tmp_path, held=True)
    client = publisher(core, "tx.select")
    core.commit()
    publish(client, "", "q")
    publish(client, "", "q", delivery_mode=1)
    core.turn()
    assert core.ready("r") == 0
    client.send("tx.commit")
    assert core.ready("r") == 0
    core.commit()
    assert "tx.commit-ok" in client.names()
    said = receipts(core)
    assert [(one["sequence"], one["outcome"], one["confirm"]) for one in said] == [
        (1, "taken", None),
        (2, "taken", None),
    ]
    assert [one["queues"][0]["position"] for one in said] == [1, 2]


@pytest.mark.parametrize("mode", ["confirm.select", "tx.select"])
def test_a_receipt_counts_publishes_from_the_select_on(core: Core, mode: str) -> None:
    client = publisher(core, "")
    for _ in range(2):
        client.publish("", "q", b"earlier", mandatory=True)
    client.call(mode)
    publish(client, "", "q")
    if mode == "tx.select":
        client.call("tx.commit")
    assert receipt(core)["sequence"] == 1


def test_what_is_rolled_back_has_no_receipt(core: Core) -> None:
    client = publisher(core, "tx.select")
    publish(client, "", "q")
    client.send("tx.rollback")
    publish(client, "", "q", message_id="second")
    client.send("tx.commit")
    assert [one["message_id"] for one in receipts(core)] == ["second"]


def test_a_transaction_on_a_failing_disk_has_its_receipt_when_the_disk_is_back(tmp_path: Path) -> None:
    disk = FaultyDisk()
    core = Core(tmp_path, disk, held=True)
    client = publisher(core, "tx.select")
    core.commit()
    publish(client, "", "q")
    disk.fail("sync")
    client.send("tx.commit")
    core.commit()
    assert "tx.commit-ok" not in client.names() and core.ready("r") == 0
    disk.repair()
    core.retry()
    assert "tx.commit-ok" in client.names()
    assert core.ready("r") == 1


# -- who has none ------------------------------------------------------------------------------------------------


def test_only_a_clients_own_publish_has_a_receipt(core: Core, client: CoreClient) -> None:
    """Not a dead letter, nor a message that became due, nor a receipt that became either."""
    declare_later(client)
    letters = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "q"}
    client.declare("dying", arguments={"x-message-ttl": 10, **letters})
    client.send("queue.bind", queue="dying", exchange="later", routing_key="dying")
    client.take()
    publish(client, "later", "dying", headers={"x-delay": 1000})
    assert receipt(core)["outcome"] == "delayed"
    core.advance(1000)
    assert core.ready("dying") == 1
    core.advance(10)
    assert core.ready("q") == 1 and core.ready("r") == 0
    letter = client.call("basic.get", queue="q")
    assert letter.headers["x-receipt"] == "r"


def test_a_message_without_the_header_has_no_receipt(core: Core, client: CoreClient) -> None:
    publish(client, "", "q", "", headers={"x-receipts": "r", "x-receip": "r", "x-confirm-min-queue": 5})
    assert client.story() == ["ack 1"]
    assert core.ready("r") == 0


def test_a_flood_of_receipts_takes_several_turns_and_loses_none(core: Core, client: CoreClient) -> None:
    table = from_python({"x-receipt": "r"})
    one = client.published("", "q", b"x", Properties(headers=table, delivery_mode=2))
    client.feed(one * 3000)
    assert core.ready("q") == 3000
    core.settle()
    assert core.ready("r") == 3000 and core.broker.receipts.sent == 3000


# -- x-confirm-min-queues ----------------------------------------------------------------------------------------


def test_a_publish_that_fewer_queues_took_than_it_asks_for_is_nacked_with_the_cause(
    core: Core, client: CoreClient
) -> None:
    publish(client, "", "q", headers={"x-confirm-min-queues": 2})
    assert client.story() == ["nack 1+"]
    said = receipt(core)
    assert (said["outcome"], said["confirm"]) == ("taken", "nack")
    assert said["cause"] == "1 of at least 2 queues took it (x-confirm-min-queues)"
    assert core.ready("q") == 1  # those that took it keep it


def test_as_many_queues_as_asked_for_are_an_ack(core: Core, client: CoreClient) -> None:
    client.send("queue.declare", queue="brief")
    for queue in ("q", "brief"):
        client.send("queue.bind", queue=queue, exchange="amq.fanout")
    client.take()
    for wanted in (1, 2, "2"):
        publish(client, "amq.fanout", "", "", headers={"x-confirm-min-queues": wanted})
    publish(client, "amq.fanout", "", "", headers={"x-confirm-min-queues": 3})
    assert client.story() == ["ack 1", "ack 2", "ack 3", "nack 4+"]


def test_a_queue_that_refuses_does_not_count(core: Core, client: CoreClient) -> None:
    client.declare("full", arguments={"x-max-length": 0, "x-overflow": "reject-publish"})
    for queue in ("q", "full"):
        client.send("queue.bind", queue=queue, exchange="amq.fanout")
    client.take()
    publish(client, "amq.fanout", "", headers={"x-confirm-min-queues": 2})
    assert client.story() == ["nack 1+"]
    assert receipt(core)["cause"] == (
        "queue 'full': max-length 0; 1 of at least 2 queues took it (x-confirm-min-queues)"
    )


def test_a_mandatory_message_without_a_queue_is_returned_before_its_nack(core: Core, client: CoreClient) -> None:
    publish(client, "", "nowhere", "", mandatory=True, headers={"x-confirm-min-queues": 1})
    assert client.story() == ["return 312 order", "nack 1+"]


@pytest.mark.parametrize("value", [0, -1, "two", 1.5, True, ""])
def test_a_least_number_that_is_none_is_refused(core: Core, client: CoreClient, value: object) -> None:
    publish(client, "", "q", "", headers={"x-confirm-min-queues": value})
    assert client.closing().startswith("406 PRECONDITION_FAILED - invalid x-confirm-min-queues '")
    assert core.ready("q") == 0


@pytest.mark.parametrize("mode", ["", "tx.select"])
def test_a_least_number_needs_confirm_mode(core: Core, mode: str) -> None:
    client = publisher(core, mode)
    publish(client, "", "q", "", headers={"x-confirm-min-queues": 1})
    assert "x-confirm-min-queues needs a channel in confirm mode" in client.closing()


def test_a_least_number_for_a_message_that_has_to_wait_is_refused(core: Core, client: CoreClient) -> None:
    declare_later(client)
    client.take()
    publish(client, "later", "q", "", headers={"x-confirm-min-queues": 1, "x-delay": 1000})
    assert "the message has to wait at exchange 'later' in vhost '/'" in client.closing()
    assert core.broker.delay.total() == 0


# -- unroutable as a nack ----------------------------------------------------------------------------------------


def test_where_the_vhost_says_so_an_unroutable_publish_is_nacked_behind_its_return(
    core: Core, client: CoreClient
) -> None:
    nack_unroutable(core)
    client.publish("", "nowhere", b"lost")
    client.publish("", "nowhere", b"lost", mandatory=True)
    client.publish("", "q", b"kept")
    assert client.story() == ["nack 1+", "return 312 lost", "nack 2+", "ack 3"]
    publish(client, "", "nowhere")
    said = receipt(core)
    assert (said["outcome"], said["confirm"], client.story()) == ("unroutable", "nack", ["nack 4+"])


def test_the_setting_of_a_vhost_survives_a_restart(core: Core) -> None:
    nack_unroutable(core)
    core.restart(clean=False)
    client = publisher(core)
    client.publish("", "nowhere", b"lost")
    assert client.story() == ["nack 1+"]
