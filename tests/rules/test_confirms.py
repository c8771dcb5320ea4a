"""Publisher confirms: exactly one ack or nack per number, when it is due, in as few frames as allowed."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warrenmq.testing.core import Core
from warrenmq.testing.core_client import CoreClient
from warrenmq.wire.content import Properties, content_frames, encode_header
from warrenmq.wire.methods import method_frame

pytestmark = pytest.mark.pure

PERSISTENT = Properties(delivery_mode=2)


@pytest.fixture
def client(tmp_path: Path) -> CoreClient:
    client = Core(tmp_path).client()
    client.call("confirm.select")
    client.call("queue.declare", queue="q")
    client.call("queue.declare", queue="full", arguments={"x-max-length": 0, "x-overflow": "reject-publish"})
    client.take()
    return client


@pytest.fixture
def held(tmp_path: Path) -> Core:
    return Core(tmp_path, held=True)


@pytest.fixture
def late(held: Core) -> CoreClient:
    """A confirming client of a broker whose disk answers when the test says so."""
    client = held.client(persistent=True)
    client.open()
    client.declare("durable")
    client.declare("other")
    client.declare("transient", durable=False)
    client.send("confirm.select")
    client.take()
    return client


def story(client: CoreClient) -> list[str]:
    words = []
    for told in client.take():
        if told.name in ("basic.ack", "basic.nack"):
            many = "+" if told.method.values["multiple"] else ""
            words.append(f"{told.name[6:]} {told.method.values['delivery_tag']}{many}")
        elif told.name == "basic.return":
            words.append("return " + told.body.decode())
        else:
            words.append(told.name)
    return words


# -- when ----------------------------------------------------------------------------------------------------------


def test_a_transient_message_is_confirmed_when_it_is_in_the_queue(late: CoreClient) -> None:
    late.publish("", "durable", b"x", delivery_mode=1)
    assert story(late) == ["ack 1"]


def test_a_message_for_a_transient_queue_is_confirmed_when_it_is_in_the_queue(late: CoreClient) -> None:
    late.publish("", "transient", b"x")
    assert story(late) == ["ack 1"]


def test_a_persistent_message_in_a_durable_queue_is_confirmed_when_the_disk_has_it(
    held: Core, late: CoreClient
) -> None:
    late.publish("", "durable", b"x")
    assert story(late) == []
    held.commit()
    assert story(late) == ["ack 1"]


def test_a_consumer_that_acks_first_does_not_bring_the_confirm_forward(held: Core, late: CoreClient) -> None:
    other = held.client(persistent=True)
    other.open()
    other.send("basic.consume", queue="durable")
    held.commit()
    other.take()
    late.publish("", "durable", b"x")
    told = other.take()
    if told:
        other.send("basic.ack", delivery_tag=1)
    assert story(late) == []
    held.commit()
    assert story(late) == ["ack 1"]


def test_an_unroutable_message_is_confirmed_at_once(client: CoreClient) -> None:
    client.publish("amq.fanout", "", b"x", PERSISTENT)
    assert client.story() == ["ack 1"]


def test_a_mandatory_message_is_returned_before_it_is_confirmed(client: CoreClient) -> None:
    client.publish("", "nowhere", b"x", mandatory=True)
    assert client.story() == ["return 312 x", "ack 1"]


def test_an_unroutable_message_does_not_wait_for_persistent_ones_before_it(held: Core, late: CoreClient) -> None:
    late.publish("", "durable", b"slow")
    late.publish("", "nowhere", b"lost", mandatory=True)
    assert story(late) == ["return lost", "ack 2"]
    held.commit()
    assert story(late) == ["ack 1"]


def test_a_full_queue_that_rejects_publishes_gives_a_nack(client: CoreClient) -> None:
    client.publish("", "full", b"x")
    assert client.story() == ["nack 1+"]


def test_one_full_queue_of_two_gives_one_nack_and_the_other_keeps_its_copy(client: CoreClient) -> None:
    for queue in ("q", "full"):
        client.call("queue.bind", queue=queue, exchange="amq.fanout")
    client.take()
    client.publish("amq.fanout", "", b"x")
    assert client.story() == ["nack 1+"]
    assert client.call("basic.get", queue="q").body == b"x"


def test_what_drop_head_or_a_ttl_of_0_throws_away_was_accepted(client: CoreClient) -> None:
    client.call("queue.declare", queue="none", arguments={"x-max-length": 0})
    client.call("queue.declare", queue="brief", arguments={"x-message-ttl": 0})
    client.take()
    client.publish("", "none", b"x")
    client.publish("", "brief", b"x")
    assert client.story() == ["ack 1", "ack 2"]


def test_a_queue_deleted_while_messages_wait_for_the_disk_confirms_them_at_once(held: Core, late: CoreClient) -> None:
    late.publish("", "durable", b"x")
    somebody = held.client(persistent=True)
    somebody.open()
    somebody.send("queue.delete", queue="durable")
    assert story(late) == ["ack 1"]
    held.commit()
    assert story(late) == []


def test_a_message_in_two_durable_queues_is_confirmed_once(held: Core, late: CoreClient) -> None:
    for queue in ("durable", "other"):
        late.send("queue.bind", queue=queue, exchange="amq.fanout")
    held.commit()
    late.take()
    late.publish("amq.fanout", "", b"x")
    held.commit()
    assert story(late) == ["ack 1"]


# -- the number ----------------------------------------------------------------------------------------------------


def test_numbers_start_at_1_with_the_first_publish_after_select(tmp_path: Path) -> None:
    client = Core(tmp_path).client()
    for _ in range(3):
        client.publish("", "nowhere", b"x", mandatory=True)
    client.call("confirm.select")
    client.take()
    client.publish("", "nowhere", b"y")
    assert client.story() == ["ack 1"]
    client.call("confirm.select")
    client.take()
    client.publish("", "nowhere", b"z")
    assert client.story() == ["ack 2"]


def test_numbers_are_counted_per_channel(client: CoreClient) -> None:
    client.open(2)
    client.call("confirm.select", 2)
    client.publish("", "q", b"x")
    client.take()
    client.publish("", "q", b"x", channel=2)
    assert client.story() == ["ack 1"]


def test_a_publish_that_closes_the_channel_is_not_confirmed(client: CoreClient) -> None:
    client.publish("missing", "", b"x")
    assert client.story() == ["channel.close 404"]


def test_what_was_confirmed_before_the_channel_closed_is_told(client: CoreClient) -> None:
    client.feed(frames(client, ["q", "q"]) + frames(client, [""], exchange="missing"))
    assert client.story() == ["ack 2+", "channel.close 404"]


# -- coalescing ----------------------------------------------------------------------------------------------------


def frames(client: CoreClient, queues: list[str], exchange: str = "", properties: Properties | None = None) -> bytes:
    """Publishes to be fed within one turn."""
    header = encode_header(properties or Properties(), 1)
    return b"".join(
        method_frame(1, "basic.publish", exchange=exchange, routing_key=queue) + content_frames(1, header, b"x", 131072)
        for queue in queues
    )


def test_a_lone_confirm_is_not_multiple(client: CoreClient) -> None:
    client.feed(frames(client, ["q"]))
    assert client.story() == ["ack 1"]


def test_confirms_of_one_turn_are_one_frame(client: CoreClient) -> None:
    client.feed(frames(client, ["q"] * 100))
    assert client.story() == ["ack 100+"]
    client.feed(frames(client, ["q"] * 3))
    assert client.story() == ["ack 103+"]


def test_acks_behind_a_nack_go_singly_and_acks_come_before_nacks(client: CoreClient) -> None:
    client.feed(frames(client, ["q", "q", "full", "q", "q"]))
    assert client.story() == ["ack 2+", "ack 4", "ack 5", "nack 3"]


def test_nacks_are_multiple_when_nothing_below_is_open(client: CoreClient) -> None:
    client.feed(frames(client, ["full", "full", "full"]))
    assert client.story() == ["nack 3+"]


def test_nacks_below_the_first_ack_are_one_frame(client: CoreClient) -> None:
    client.feed(frames(client, ["full", "full", "q", "full"]))
    assert client.story() == ["ack 3", "nack 2+", "nack 4"]


def test_what_is_still_waiting_is_not_covered_by_a_multiple_ack(held: Core, late: CoreClient) -> None:
    late.feed(
        late.published("", "transient", b"1")
        + late.published("", "transient", b"2")
        + late.published("", "durable", b"3")
        + late.published("", "transient", b"4")
        + late.published("", "transient", b"5")
    )
    assert story(late) == ["ack 2+", "ack 4", "ack 5"]
    held.commit()
    assert story(late) == ["ack 3"]


def test_a_sync_confirms_all_its_messages_in_one_frame(held: Core, late: CoreClient) -> None:
    late.feed(b"".join(late.published("", "durable", b"x") for _ in range(50)))
    held.commit()
    assert story(late) == ["ack 50+"]


TARGETS = st.sampled_from(["transient", "durable", "nowhere", "full", "both", "commit", "turn"])


@given(st.lists(TARGETS, max_size=40))
def test_every_number_is_settled_exactly_once_as_it_must_be_and_never_early(steps: list[str]) -> None:
    """A model client reads acks and nacks, multiple ones too, and knows what each message must get."""
    with tempfile.TemporaryDirectory() as folder:
        held = Core(Path(folder), held=True)
        client = held.client(persistent=True)
        client.open()
        client.declare("durable")
        client.declare("transient", durable=False)
        client.declare("full", arguments={"x-max-length": 0, "x-overflow": "reject-publish"})
        for queue in ("durable", "transient", "full"):
            client.send("queue.bind", queue=queue, exchange="amq.topic", routing_key="both")
        held.commit()
        client.send("confirm.select")
        client.take()
        expected: dict[int, str] = {}
        waiting: set[int] = set()
        settled: dict[int, str] = {}

        def look() -> None:
            for told in client.take():
                tag = told.method.int("delivery_tag")
                numbers = [tag]
                if told.method.bit("multiple"):
                    numbers = [n for n in range(1, tag + 1) if n not in settled]
                    assert tag in numbers
                for number in numbers:
                    assert number not in settled, f"{number} twice"
                    assert number not in waiting, f"{number} too early"
                    settled[number] = told.name[6:]

        buffered = b""
        for step in steps:
            if step in ("commit", "turn"):
                client.feed(buffered)
                buffered = b""
                look()
                if step == "commit":
                    held.commit()
                    waiting.clear()
                    look()
                continue
            number = len(expected) + 1
            exchange = "amq.topic" if step == "both" else ""
            buffered += client.published(exchange, step, b"x")
            expected[number] = "nack" if step in ("full", "both") else "ack"
            if step == "durable":
                waiting.add(number)
        client.feed(buffered)
        look()
        held.commit()
        waiting.clear()
        look()
        assert settled == expected
        held.crash()
