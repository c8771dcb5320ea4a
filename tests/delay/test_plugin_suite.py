"""Everything the original plugin's own suite asserts, on the virtual clock; once in real time at the end."""

from __future__ import annotations

import time

import pytest

from tests.delay.desk import DELAYED, Desk
from warrenmq.client import ChannelClosed, Connection, ConnectionClosed, Properties
from warrenmq.testing import Broker
from warrenmq.wire.fields import Field, from_python

pytestmark = pytest.mark.pure

DELAYS = [500, 100, 300, 200, 100, 400]
IN_ORDER = ["100", "100", "200", "300", "400", "500"]


@pytest.mark.parametrize("durable", [True, False], ids=["durable", "transient"])
@pytest.mark.parametrize("inner", ["direct", "topic", "fanout"])
def test_messages_arrive_in_order_of_their_delays(desk: Desk, inner: str, durable: bool) -> None:
    desk.exchange(inner=inner, durable=durable)
    desk.queue()
    for delay in DELAYS:
        desk.publish(str(delay), delay)
    desk.advance(99)
    assert desk.take() == []
    desk.advance(1)
    assert desk.take() == IN_ORDER[:2]
    desk.advance(400)
    assert desk.take() == IN_ORDER[2:]


def test_messages_with_the_same_due_time_arrive_in_order_of_arrival(desk: Desk) -> None:
    desk.exchange()
    desk.queue()
    for number in range(600):
        desk.publish(str(number), 1000)
    desk.advance(1000)
    assert desk.take() == [str(number) for number in range(600)]


def test_a_message_without_the_header_is_routed_at_once(desk: Desk) -> None:
    desk.exchange()
    desk.queue()
    desk.publish("now")
    desk.publish("zero", 0)
    desk.publish("negative", -1000)
    assert desk.take() == ["now", "zero", "negative"]


def test_a_delay_may_be_a_string(desk: Desk) -> None:
    desk.exchange()
    desk.queue()
    desk.publish("later", "1000")
    desk.advance(999)
    assert desk.take() == []
    desk.advance(1)
    assert desk.take() == ["later"]


@pytest.mark.parametrize("kind", list("bBsuIil"))
def test_a_delay_may_have_any_integer_type(desk: Desk, kind: str) -> None:
    desk.exchange()
    desk.queue()
    desk.publish("later", Field(kind, 100))
    desk.advance(99)
    assert desk.take() == []
    desk.advance(1)
    assert desk.take() == ["later"]


def test_delays_have_no_cap(desk: Desk) -> None:
    """The plugin's is 2^32-1 milliseconds, 49.7 days."""
    desk.exchange()
    desk.queue()
    desk.publish("in a hundred days", 100 * 86_400_000)
    desk.advance(100 * 86_400_000 - 1)
    assert desk.take() == []
    desk.advance(1)
    assert desk.take() == ["in a hundred days"]


def test_a_delay_that_is_no_number_is_a_channel_error_that_names_it(desk: Desk) -> None:
    desk.exchange()
    desk.publish("x", "soon")
    with pytest.raises(ChannelClosed) as error:
        desk.channel.queue_declare("any")
    assert error.value.code == 406 and "'soon'" in error.value.text


def test_an_absolute_time_in_seconds_or_milliseconds(desk: Desk) -> None:
    desk.exchange()
    desk.queue()
    now = desk.broker.now_ms
    assert now % 1000 == 0
    desk.publish("second", x_deliver_at=Field("T", now // 1000 + 2))
    desk.publish("first", x_deliver_at=Field("l", now + 1500))
    desk.publish("past", x_deliver_at=Field("l", now - 1))
    assert desk.take() == ["past"]
    desk.advance(1499)
    assert desk.take() == []
    desk.advance(501)
    assert desk.take() == ["first", "second"]


def test_the_header_arrives_as_it_was_sent(desk: Desk) -> None:
    desk.exchange()
    desk.queue()
    desk.publish("x", Field("I", 5000))
    desk.advance(5000)
    message = desk.channel.basic_get("q", no_ack=True)
    assert message is not None and message.properties.headers == {"x-delay": Field("I", 5000)}
    assert (message.exchange, message.routing_key) == ("d", "k")


def test_the_header_arrives_negated_where_that_is_asked_for(desk: Desk) -> None:
    desk.exchange(x_delayed_header="negate")
    desk.queue()
    desk.publish("x", Field("I", 5000))
    desk.advance(5000)
    message = desk.channel.basic_get("q", no_ack=True)
    assert message is not None and message.properties.headers == {"x-delay": Field("l", -5000)}
    assert bytes(message.body) == b"x"


def test_exchange_to_exchange_before_and_behind_the_delayed_one(desk: Desk) -> None:
    desk.exchange()
    desk.channel.exchange_declare("front", "fanout")
    desk.channel.exchange_declare("behind", "fanout")
    desk.channel.exchange_bind("d", "front", "")
    desk.channel.exchange_bind("behind", "d", "k")
    desk.queue("q", "behind")
    desk.queue("at once", "front")
    desk.publish("x", 1000, exchange="front")
    assert desk.take("at once") == ["x"]
    desk.advance(999)
    assert desk.take() == []
    desk.advance(1)
    message = desk.channel.basic_get("q", no_ack=True)
    assert message is not None and message.exchange == "front"


@pytest.mark.parametrize(
    "inner, text",
    [
        (None, "Invalid argument, 'x-delayed-type' must be an existing exchange type"),
        (DELAYED, "Invalid argument, 'x-delayed-message' can't be used for 'x-delayed-type'"),
    ],
)
def test_a_missing_inner_type_or_its_own_is_refused(desk: Desk, inner: str | None, text: str) -> None:
    with pytest.raises(ChannelClosed) as error:
        desk.channel.exchange_declare("d", DELAYED, arguments={} if inner is None else {"x-delayed-type": inner})
    assert (error.value.code, error.value.text) == (406, f"PRECONDITION_FAILED - {text}")


@pytest.mark.parametrize("inner, text", [("no-such-type", "unknown exchange type 'no-such-type'"),
                                         ("queue", "invalid exchange type 'queue'")])
def test_an_unknown_inner_type_ends_the_connection_as_any_unknown_type(desk: Desk, inner: str, text: str) -> None:
    with pytest.raises(ConnectionClosed) as error:
        desk.channel.exchange_declare("d", DELAYED, arguments={"x-delayed-type": inner})
    assert (error.value.code, error.value.text) == (503, f"COMMAND_INVALID - {text}")


def test_the_common_misspelling_of_the_inner_type_is_accepted(desk: Desk) -> None:
    desk.channel.exchange_declare("d", DELAYED, arguments={"x-delay-type": "fanout"})
    desk.queue()
    desk.publish("x", 10)
    desk.advance(10)
    assert desk.take() == ["x"]


@pytest.mark.parametrize("persistent", [True, False], ids=["persistent", "transient"])
def test_what_waits_survives_a_restart_before_it_is_due(desk: Desk, persistent: bool) -> None:
    desk.exchange()
    desk.queue()
    desk.channel.confirm_select()
    desk.publish("x", 60_000, persistent=persistent)
    assert desk.channel.wait_for_confirms(60) == []
    desk.restart()
    assert desk.waiting() == 1
    desk.advance(59_999)
    assert desk.take() == []
    desk.advance(1)
    assert desk.take() == ["x"]


def test_what_became_due_during_a_restart_is_delivered_afterwards_in_order(desk: Desk) -> None:
    desk.exchange()
    desk.queue()
    for number in range(700):
        desk.publish(str(number), 1000 + number)
    assert desk.waiting() == 700
    clock = desk.broker._clock
    desk.connection.abort()
    desk.broker.stop()
    clock.set_ms(clock.now_ms() + 3_600_000)  # type: ignore[attr-defined]
    desk.broker.start()
    desk._connect()
    desk.advance(0)
    assert desk.take() == [str(number) for number in range(700)]


def test_in_real_time() -> None:
    """Once: a timer of the real loop is never early. (The order is a matter of the virtual clock: a busy machine may
    take so long over one publish that the next is due behind it.)"""
    with Broker() as broker, Connection(broker.url, timeout=60) as connection:
        channel = connection.channel()
        channel.exchange_declare("d", DELAYED, arguments={"x-delayed-type": "direct"})
        channel.queue_declare("q")
        channel.queue_bind("q", "d", "k")
        channel.basic_consume("q", no_ack=True)
        start = time.monotonic()
        for delay in DELAYS:
            headers = from_python({"x-delay": delay})
            channel.basic_publish("d", "k", str(delay).encode(), Properties(headers=headers))
        connection.flush()
        arrived: list[tuple[str, float]] = []
        while len(arrived) < len(DELAYS):
            message = channel.next_message(timeout=60)
            assert message is not None
            arrived.append((bytes(message.body).decode(), (time.monotonic() - start) * 1000))
        assert sorted(body for body, _ in arrived) == IN_ORDER
        for body, after in arrived:
            assert after >= int(body) - 1, "never early"
