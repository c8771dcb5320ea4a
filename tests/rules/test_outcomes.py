"""What becomes of a publish on every way it can take: when it is confirmed, what is counted, and what it uses up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from warrenmq.broker.extensions.interceptor import amended, load_interceptors
from warrenmq.broker.publish.publishing import Publishing
from warrenmq.broker.records import BasicMessage
from warrenmq.testing.core import Core
from warrenmq.testing.core_client import CoreClient
from warrenmq.testing.faults import FaultyDisk
from warrenmq.wire.fields import from_python

pytestmark = pytest.mark.pure


@pytest.fixture
def disk() -> FaultyDisk:
    return FaultyDisk()


@pytest.fixture
def core(tmp_path: Path, disk: FaultyDisk) -> Core:
    """Its commits end when the test says so."""
    return Core(tmp_path, files=disk, held=True)


@pytest.fixture
def client(core: Core) -> CoreClient:
    """Its messages are persistent. There are durable queues a and b and one in memory, bound to amq.fanout; and a
    delayed exchange, bound to it too, that has queue a behind it."""
    client = core.client(persistent=True)
    for queue in ("a", "b", "memory"):
        client.declare(queue, durable=queue != "memory")
        client.send("queue.bind", queue=queue, exchange="amq.fanout")
    delayed(client, "later", durable=True)
    core.commit()
    client.take()
    return client


def delayed(client: CoreClient, name: str, durable: bool, **more: object) -> None:
    client.send(
        "exchange.declare",
        exchange=name,
        type="x-delayed-message",
        durable=durable,
        arguments={"x-delayed-type": "fanout", **{f"x-delayed-{key}": value for key, value in more.items()}},
    )
    client.send("queue.bind", queue="a", exchange=name)


def after(milliseconds: int, **more: object) -> dict[str, Any]:
    """Properties."""
    return {"headers": from_python({"x-delay": milliseconds, **more})}


def confirming(client: CoreClient) -> CoreClient:
    client.send("confirm.select")
    client.take()
    return client


def publishing(client: CoreClient) -> Publishing:
    return client.connection.channels[1].publishing


# -- counted -------------------------------------------------------------------------------------------------------


def test_a_channel_counts_its_publishes_once_whatever_became_of_them(core: Core, client: CoreClient) -> None:
    counts = publishing(client)
    client.publish("", "memory", b"x")
    client.publish("later", "", b"x", **after(1000))
    client.publish("later", "", b"x", **after(1000, note="a header that others look at"), priority=1)
    assert (counts.published, counts.returned, counts.dropped, core.broker.services.unroutable) == (3, 0, 0, 0)
    client.publish("", "nowhere", b"x")
    client.publish("", "nowhere", b"x")
    client.publish("", "nowhere", b"x", mandatory=True)
    assert (counts.published, counts.returned, counts.dropped, core.broker.services.unroutable) == (6, 1, 2, 3)


def test_what_is_published_counts_once_by_its_size_whatever_became_of_it(core: Core, client: CoreClient) -> None:
    sizes = core.broker.services.tally.sizes
    client.publish("", "memory", b"x" * 100)
    client.publish("", "nowhere", b"x" * 101)
    client.publish("later", "", b"", **after(1000))
    assert (sizes.counts[0], sizes.counts[1], sum(sizes.counts), sizes.total) == (2, 1, 3, 201)


# -- delayed -------------------------------------------------------------------------------------------------------


def test_a_delayed_message_that_is_kept_in_memory_is_confirmed_at_once(core: Core, client: CoreClient) -> None:
    delayed(client, "brief", durable=False)
    core.commit()
    confirming(client)
    client.publish("brief", "", b"x", **after(1000))
    assert client.story() == ["ack 1"]


@pytest.mark.parametrize("more", [{}, {"priority": 1}], ids=["alone", "with a priority"])
def test_a_delayed_message_is_confirmed_when_the_disk_has_it(
    core: Core, client: CoreClient, more: dict[str, Any]
) -> None:
    confirming(client)
    client.publish("later", "", b"x", **after(1000), **more)
    assert client.story() == []
    core.commit()
    assert client.story() == ["ack 1"] and core.ready("a") == 0
    core.advance(1000)
    assert core.ready("a") == 1


@pytest.mark.parametrize("header", ["x-delay-cancel", "x-delay-id"])
@pytest.mark.parametrize("may", [False, True])
def test_what_another_has_scheduled_is_replaced_or_cancelled_by_who_may_configure_the_exchange(
    core: Core, client: CoreClient, header: str, may: bool
) -> None:
    core.broker.begin_turn()
    access = core.broker.registry.access
    access.add_user("eve", "eve", [])
    access.set_permissions("eve", "/", "^later$" if may else "", ".*", ".*")
    core.end_turn()
    core.commit()
    client.publish("later", "", b"mine", headers=from_python({"x-delay": 1000, "x-delay-id": "order"}))
    eve = core.client("eve", "eve")
    eve.publish("later", "", b"hers", headers=from_python({"x-delay": 2000, header: "order"}))
    assert may or eve.closing().startswith("403 ACCESS_REFUSED - access to exchange 'later' in vhost '/' refused")
    core.commit()
    client.consume("a", no_ack=True)
    core.advance(2000)
    core.commit()
    replaced = [b"hers"] if header == "x-delay-id" else []
    assert client.bodies() == (replaced if may else [b"mine"])


def test_a_delay_of_nothing_is_none(core: Core, client: CoreClient) -> None:
    client.publish("later", "", b"x", **after(0))
    assert core.ready("a") == 1


def test_a_message_that_a_queue_has_and_that_also_waits_is_confirmed_when_the_disk_has_both(
    core: Core, client: CoreClient
) -> None:
    for exchange in ("later", "amq.direct"):
        client.send("exchange.bind", destination=exchange, source="amq.topic", routing_key="k")
    client.send("queue.bind", queue="memory", exchange="amq.direct", routing_key="k")
    core.commit()
    confirming(client)
    client.publish("amq.topic", "k", b"x", **after(1000))
    assert core.ready("memory") == 1 and client.story() == []
    core.commit()
    assert client.story() == ["ack 1"]


def test_a_message_that_is_in_a_queue_and_waits_is_there_twice_also_after_a_restart(
    core: Core, client: CoreClient
) -> None:
    client.send("exchange.bind", destination="later", source="amq.fanout")
    core.commit()
    client.publish("amq.fanout", "", b"x", **after(1000))
    core.commit()
    assert (core.ready("a"), core.ready("b")) == (1, 1)
    core.restart(clean=False)
    core.commit()
    assert (core.ready("a"), core.ready("b")) == (1, 1)
    core.advance(1000)
    assert (core.ready("a"), core.ready("b")) == (2, 1)


def test_what_is_settled_in_a_queue_is_settled_there_alone_when_the_message_also_waits(
    core: Core, client: CoreClient
) -> None:
    client.send("exchange.bind", destination="later", source="amq.fanout")
    core.commit()
    client.publish("amq.fanout", "", b"x", **after(1000))
    for queue in ("a", "b"):
        client.consume(queue, tag=queue, no_ack=True)
        core.commit()
    assert client.delivered() == ["x", "x"]
    core.restart(clean=False)
    core.commit()
    assert (core.ready("a"), core.ready("b")) == (0, 0)
    core.advance(1000)
    assert (core.ready("a"), core.ready("b")) == (1, 0)


def test_a_message_that_a_full_queue_refuses_is_nacked_though_it_also_waits(core: Core, client: CoreClient) -> None:
    client.declare("full", arguments={"x-max-length": 0, "x-overflow": "reject-publish"})
    client.send("queue.bind", queue="full", exchange="amq.direct", routing_key="k")
    client.send("exchange.bind", destination="later", source="amq.direct", routing_key="k")
    core.commit()
    confirming(client)
    client.publish("amq.direct", "k", b"x", **after(1000))
    assert client.story() == ["nack 1+"]
    core.commit()
    assert client.story() == []


@pytest.mark.parametrize("more", [{}, {"priority": 1}], ids=["alone", "with a priority"])
def test_a_mandatory_delayed_message_is_returned_at_once_and_kept_as_the_plugin_does_it(
    core: Core, client: CoreClient, more: dict[str, Any]
) -> None:
    confirming(client)
    client.publish("later", "", b"x", mandatory=True, **after(1000), **more)
    assert client.story() == ["return 312 x"]
    core.commit()
    assert client.story() == ["ack 1"]
    core.advance(1000)
    assert core.ready("a") == 1


def test_a_mandatory_delayed_message_that_cannot_be_written_is_returned_before_its_nack(
    core: Core, client: CoreClient, disk: FaultyDisk
) -> None:
    delayed(client, "honest", durable=True, mandatory="honest")
    core.commit()
    confirming(client)
    client.publish("honest", "", b"written", mandatory=True, **after(1000))
    core.commit()
    assert client.story() == ["ack 1"]
    client.feed(
        client.published("honest", "", b"optional", **after(1000))
        + client.published("honest", "", b"lost", mandatory=True, **after(1000))
    )
    disk.fail()
    core.commit()
    assert [word for word in client.story() if word != "connection.blocked"][:2] == ["return 312 lost", "nack 3+"]


# -- credit --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["queue", "delayed", "transient"])
def test_a_publisher_of_what_is_on_its_way_to_the_disk_is_not_read_until_it_is_there(
    core: Core, client: CoreClient, way: str
) -> None:
    confirming(client)
    sent = 0
    while client.reading and sent < 100:
        sent += 1
        if way == "delayed":
            client.publish("later", "", bytes(100_000), **after(1000))
        else:
            client.publish("", "a", bytes(100_000), delivery_mode=1 if way == "transient" else 2)
    assert (sent < 100) == (way != "transient")
    core.commit()
    assert client.reading


# -- mandatory -----------------------------------------------------------------------------------------------------


def fail(core: Core, *queues: str) -> None:
    for queue in queues:
        core.broker.fail_queue(core.queue(queue))
    core.turn()


def test_a_mandatory_message_that_a_queue_in_memory_has_is_not_returned_whatever_fails(
    core: Core, client: CoreClient
) -> None:
    confirming(client)
    client.publish("amq.fanout", "", b"x", mandatory=True)
    fail(core, "a", "b", "memory")
    assert client.story() == ["nack 1+"]


def test_a_mandatory_message_that_the_disk_has_is_not_returned_when_its_queue_fails_later(
    core: Core, client: CoreClient
) -> None:
    confirming(client)
    client.publish("", "a", b"x", mandatory=True)
    core.commit()
    client.publish("", "b", b"waits")
    client.take()
    fail(core, "a")
    assert client.story() == []


def test_mandatory_publishes_before_confirm_select_are_returned_and_not_nacked_when_their_queue_fails(
    core: Core, client: CoreClient
) -> None:
    client.publish("", "a", b"1", mandatory=True)
    client.publish("", "a", b"2", mandatory=True)
    confirming(client)
    client.publish("", "b", b"3")
    fail(core, "a")
    assert client.story() == ["return 312 1", "return 312 2"]
    fail(core, "b")
    assert client.story() == ["nack 1+"]


@pytest.mark.parametrize("mode", ["before confirm.select", "no confirms"])
def test_mandatory_publishes_that_are_not_confirmed_are_returned_and_not_nacked_when_the_disk_fails(
    core: Core, client: CoreClient, disk: FaultyDisk, mode: str
) -> None:
    client.publish("", "a", b"1", mandatory=True)
    if mode != "no confirms":
        client.send("confirm.select")
    client.take()
    disk.fail()
    core.commit()
    assert [word for word in client.story() if word != "connection.blocked"] == ["return 312 1"]


# -- a queue that is lost ------------------------------------------------------------------------------------------


def test_a_message_for_two_queues_of_which_one_fails_is_nacked_at_once(core: Core, client: CoreClient) -> None:
    client.send("queue.unbind", queue="memory", exchange="amq.fanout")
    confirming(client)
    client.publish("amq.fanout", "", b"x")
    fail(core, "a")
    assert client.story() == ["nack 1+"]
    core.commit()
    assert client.story() == []


def test_every_message_that_waits_for_a_lost_queue_is_settled(core: Core, client: CoreClient) -> None:
    confirming(client)
    client.feed(b"".join(client.published("", "a", b"x") for _ in range(4)))
    core.client().send("queue.delete", queue="a")
    assert client.story() == ["ack 4+"]
    client.feed(b"".join(client.published("", "b", b"x") for _ in range(4)))
    fail(core, "b")
    assert client.story() == ["nack 8+"]


# -- properties ----------------------------------------------------------------------------------------------------


def test_a_priority_of_1_is_more_than_none(core: Core, client: CoreClient) -> None:
    client.declare("p", arguments={"x-max-priority": 2})
    for priority, body in enumerate(["none", "one", "two"]):
        client.fill("p", body, priority=priority)
        core.commit()
    client.consume("p", no_ack=True)
    core.commit()
    assert client.delivered() == ["two", "one", "none"]


@pytest.mark.parametrize("way", ["plain", "general", "delayed"])
def test_every_message_has_an_id_of_its_own(core: Core, client: CoreClient, way: str) -> None:
    more: dict[str, Any] = {"priority": 1} if way == "general" else {}
    for _ in range(3):
        if way == "delayed":
            client.publish("later", "", b"x", **after(1000))
        else:
            client.publish("", "a", b"x", **more)
    core.commit()
    core.advance(1000)
    client.consume("a")
    core.commit()
    outstanding = client.connection.channels[1].outstanding.unacked.tagged()
    ids = {int(entry.message.id) for _, entry in outstanding}
    assert len(ids) == 3 and 0 not in ids


class Renames:
    """Another routing key, for a message that asks for it; the others are left as they are."""

    name = "renames"

    def amend(self, message: BasicMessage) -> BasicMessage:
        properties = message.content.properties
        if not properties.app_id:
            return message
        return amended(message, properties.copy(), [properties.app_id])


renames = Renames()


def test_an_amended_message_goes_where_it_says_now_and_keeps_its_priority_and_its_expiration(tmp_path: Path) -> None:
    core = Core(tmp_path)
    core.broker.interceptors = load_interceptors([f"{__name__}:renames"], "node", core.clock)
    client = core.client()
    for queue in ("p", "q"):
        client.call("queue.declare", queue=queue, arguments={"x-max-priority": 2})
    client.fill("q", "low", priority=1)
    client.fill("p", "brief", app_id="q", priority=1, expiration="1000")
    client.fill("p", "high", app_id="q", priority=2)
    client.fill("p", "stays", priority=2)
    assert (core.ready("p"), core.ready("q")) == (1, 3)
    core.advance(2000)
    assert client.drain("q") == ["high", "low"] and client.drain("p") == ["stays"]


def test_what_a_vhost_has_counted_of_publishes_does_not_fall_when_channels_end(core: Core) -> None:
    client = core.client()
    client.declare("q")
    for channel, mode in ((2, "confirm.select"), (3, "")):
        client.open(channel, mode)
        client.publish("", "q", b"x", channel=channel)
        client.publish("", "nowhere", b"x", channel=channel)
        client.publish("", "nowhere", b"x", channel=channel, mandatory=True)
    past = core.broker.vhosts["/"].past
    assert (past.published, past.confirmed, past.returned, past.dropped) == (0, 0, 0, 0)
    client.call("channel.close", channel=2)
    assert (past.published, past.confirmed, past.returned, past.dropped) == (3, 3, 1, 1)
    client.connection.lost("gone")
    assert (past.published, past.confirmed, past.returned, past.dropped) == (6, 3, 2, 2)
