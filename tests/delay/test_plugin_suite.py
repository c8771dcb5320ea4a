"""Everything the original plugin's own suite asserts, on the virtual clock; once in real time at the end."""

from __future__ import annotations

import time

import pytest

from tests.delay.session import DELAYED, Session
from warrenmq.client import ChannelClosed, Connection, ConnectionClosed, Properties
from warrenmq.testing import Broker
from warrenmq.wire.fields import Field, from_python

pytestmark = pytest.mark.pure

DELAYS = [500, 100, 300, 200, 100, 400]
IN_ORDER = ["100", "100", "200", "300", "400", "500"]


@pytest.mark.parametrize("durable", [True, False], ids=["durable", "transient"])
@pytest.mark.parametrize("inner", ["direct", "topic", "fanout"])
def test_messages_arrive_in_order_of_their_delays(session: Session, inner: str, durable: bool) -> None:
    session.exchange(inner=inner, durable=durable)
    session.queue()
    for delay in DELAYS:
        session.publish(str(delay), delay)
    session.advance(99)
    assert session.take() == []
    session.advance(1)
    assert session.take() == IN_ORDER[:2]
    session.advance(400)
    assert session.take() == IN_ORDER[2:]


def test_messages_with_the_same_due_time_arrive_in_order_of_arrival(session: Session) -> None:
    session.exchange()
    session.queue()
    for number in range(600):
        session.publish(str(number), 1000)
    session.advance(1000)
    assert session.take() == [str(number) for number in range(600)]


def test_a_message_without_the_header_is_routed_at_once(session: Session) -> None:
    session.exchange()
    session.queue()
    session.publish("now")
    session.publish("zero", 0)
    session.publish("negative", -1000)
    assert session.take() == ["now", "zero", "negative"]


def test_a_delay_may_be_a_string(session: Session) -> None:
    session.exchange()
    session.queue()
    session.publish("later", "1000")
    session.advance(999)
    assert session.take() == []
    session.advance(1)
    assert session.take() == ["later"]


@pytest.mark.parametrize("kind", list("bBsuIil"))
def test_a_delay_may_have_any_integer_type(session: Session, kind: str) -> None:
    session.exchange()
    session.queue()
    session.publish("later", Field(kind, 100))
    session.advance(99)
    assert session.take() == []
    session.advance(1)
    assert session.take() == ["later"]


def test_delays_have_no_cap(session: Session) -> None:
    """The plugin's is 2^32-1 milliseconds, 49.7 days."""
    session.exchange()
    session.queue()
    session.publish("in fifty days", 50 * 86_400_000)
    session.advance(50 * 86_400_000 - 1)
    assert session.take() == []
    session.advance(1)
    assert session.take() == ["in fifty days"]


def test_a_delay_that_is_no_number_is_a_channel_error_that_names_it(session: Session) -> None:
    session.exchange()
    session.publish("x", "soon")
    with pytest.raises(ChannelClosed) as error:
        session.channel.queue_declare("any")
    assert error.value.code == 406 and "'soon'" in error.value.text


def test_an_absolute_time_in_seconds_or_milliseconds(session: Session) -> None:
    session.exchange()
    session.queue()
    now = session.broker.now_ms
    assert now % 1000 == 0
    session.publish("second", x_deliver_at=Field("T", now // 1000 + 2))
    session.publish("first", x_deliver_at=Field("l", now + 1500))
    session.publish("past", x_deliver_at=Field("l", now - 1))
    assert session.take() == ["past"]
    session.advance(1499)
    assert session.take() == []
    session.advance(501)
    assert session.take() == ["first", "second"]


def test_the_header_arrives_as_it_was_sent(session: Session) -> None:
    session.exchange()
    session.queue()
    session.publish("x", Field("I", 5000))
    session.advance(5000)
    message = session.channel.basic_get("q", no_ack=True)
    assert message is not None and message.properties.headers == {"x-delay": Field("I", 5000)}
    assert (message.exchange, message.routing_key) == ("d", "k")


def test_the_header_arrives_negated_where_that_is_asked_for(session: Session) -> None:
    session.exchange(x_delayed_header="negate")
    session.queue()
    session.publish("x", Field("I", 5000))
    session.advance(5000)
    message = session.channel.basic_get("q", no_ack=True)
    assert message is not None and message.properties.headers == {"x-delay": Field("l", -5000)}
    assert bytes(message.body) == b"x"


def test_exchange_to_exchange_before_and_behind_the_delayed_one(session: Session) -> None:
    session.exchange()
    session.channel.exchange_declare("front", "fanout")
    session.channel.exchange_declare("behind", "fanout")
    session.channel.exchange_bind("d", "front", "")
    session.channel.exchange_bind("behind", "d", "k")
    session.queue("q", "behind")
    session.queue("at once", "front")
    session.publish("x", 1000, exchange="front")
    assert session.take("at once") == ["x"]
    session.advance(999)
    assert session.take() == []
    session.advance(1)
    message = session.channel.basic_get("q", no_ack=True)
    assert message is not None and message.exchange == "front"


@pytest.mark.parametrize(
    "inner, text",
    [
        (None, "Invalid argument, 'x-delayed-type' must be an existing exchange type"),
        (DELAYED, "Invalid argument, 'x-delayed-message' can't be used for 'x-delayed-type'"),
    ],
)
def test_a_missing_inner_type_or_its_own_is_refused(session: Session, inner: str | None, text: str) -> None:
    with pytest.raises(ChannelClosed) as error:
        session.channel.exchange_declare("d", DELAYED, arguments={} if inner is None else {"x-delayed-type": inner})
    assert (error.value.code, error.value.text) == (406, f"PRECONDITION_FAILED - {text}")


@pytest.mark.parametrize(
    "inner, text",
    [("no-such-type", "unknown exchange type 'no-such-type'"), ("queue", "invalid exchange type 'queue'")],
)
def test_an_unknown_inner_type_ends_the_connection_as_any_unknown_type(session: Session, inner: str, text: str) -> None:
    with pytest.raises(ConnectionClosed) as error:
        session.channel.exchange_declare("d", DELAYED, arguments={"x-delayed-type": inner})
    assert (error.value.code, error.value.text) == (503, f"COMMAND_INVALID - {text}")


def test_the_common_misspelling_of_the_inner_type_is_accepted(session: Session) -> None:
    session.channel.exchange_declare("d", DELAYED, arguments={"x-delay-type": "fanout"})
    session.queue()
    session.publish("x", 10)
    session.advance(10)
    assert session.take() == ["x"]


@pytest.mark.parametrize("persistent", [True, False], ids=["persistent", "transient"])
def test_what_waits_survives_a_restart_before_it_is_due(session: Session, persistent: bool) -> None:
    session.exchange()
    session.queue()
    session.channel.confirm_select()
    session.publish("x", 60_000, persistent=persistent)
    assert session.channel.wait_for_confirms(60) == []
    session.restart()
    assert session.waiting() == 1
    session.advance(59_999)
    assert session.take() == []
    session.advance(1)
    assert session.take() == ["x"]


def test_what_became_due_during_a_restart_is_delivered_afterwards_in_order(session: Session) -> None:
    session.exchange()
    session.queue()
    for number in range(700):
        session.publish(str(number), 1000 + number)
    assert session.waiting() == 700
    clock = session.broker._clock
    session.connection.abort()
    session.broker.stop()
    clock.set_ms(clock.now_ms() + 3_600_000)  # type: ignore[attr-defined]
    session.broker.start()
    session._connect()
    session.advance(0)
    assert session.take() == [str(number) for number in range(700)]


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
