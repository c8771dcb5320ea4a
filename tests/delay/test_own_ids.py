"""A publisher's own ids: replacing, cancelling, and who may; repetition."""

from __future__ import annotations

import pytest

from tests.delay.session import Session
from warrenmq.client import Channel, ChannelClosed, Connection, Properties
from warrenmq.wire.fields import Field, from_python

pytestmark = pytest.mark.pure


@pytest.fixture(autouse=True)
def topology(session: Session) -> None:
    session.exchange()
    session.queue()


def refusal(channel: Channel) -> tuple[int, str]:
    with pytest.raises(ChannelClosed) as error:
        channel.queue_declare("any")
    return error.value.code, error.value.text


# --- ids


@pytest.mark.parametrize("restarted", [False, True])
def test_a_second_message_with_a_live_id_replaces_the_first(session: Session, restarted: bool) -> None:
    session.publish("first", 1000, x_delay_id="order 7")
    if restarted:
        session.restart()
    session.publish("second", 2000, x_delay_id="order 7")
    assert session.waiting() == 1
    session.advance(2000)
    assert session.take() == ["second"]


def test_an_id_is_free_again_once_its_message_was_delivered(session: Session) -> None:
    session.publish("first", 1000, x_delay_id="order 7")
    session.advance(1000)
    session.publish("second", 1000, x_delay_id="order 7")
    session.advance(1000)
    assert session.take() == ["first", "second"]


def test_ids_belong_to_their_exchange(session: Session) -> None:
    session.exchange("e")
    session.channel.queue_bind("q", "e", "k")
    session.publish("one", 1000, x_delay_id="7")
    session.publish("other", 1000, exchange="e", x_delay_id="7")
    session.advance(1000)
    assert session.take() == ["one", "other"]


@pytest.mark.parametrize("restarted", [False, True])
def test_a_message_is_cancelled_by_publishing_its_id(session: Session, restarted: bool) -> None:
    session.publish("x", 1000, x_delay_id="order 7")
    session.publish("y", 1000, x_delay_id="order 8")
    if restarted:
        session.restart()
    session.channel.confirm_select()
    session.publish("", x_delay_cancel="order 7", mandatory=True)
    assert session.channel.wait_for_confirms(60) == []
    assert session.returned() == [] and session.waiting() == 1
    session.restart()
    session.advance(1000)
    assert session.take() == ["y"]


def test_cancelling_an_unknown_id_is_returned_if_mandatory_and_routed_nowhere(session: Session) -> None:
    session.publish("nothing", x_delay_cancel="order 9")
    assert session.returned() == []
    session.publish("nothing", x_delay_cancel="order 9", mandatory=True)
    assert session.returned() == ["nothing"]
    assert session.take() == []


def test_a_cancellation_in_a_transaction_counts_at_commit(session: Session) -> None:
    session.publish("x", 1000, x_delay_id="order 7")
    session.channel.tx_select()
    session.publish("", x_delay_cancel="order 7")
    assert session.waiting() == 1
    session.channel.tx_commit()
    assert session.waiting() == 0


def stranger(session: Session, configure: str) -> Connection:
    access = session.broker.server.broker.registry.access

    def add() -> None:
        access.add_user("stranger", "secret", [])
        access.set_permissions("stranger", "/", configure, ".*", ".*")

    session.broker.call(add)
    return Connection(session.broker.url.replace("guest:guest", "stranger:secret"), timeout=60)


@pytest.mark.parametrize("header", ["x-delay-cancel", "x-delay-id"])
def test_others_need_configure_to_cancel_or_replace(session: Session, header: str) -> None:
    session.publish("x", 1000, x_delay_id="order 7")
    session.waiting()
    with stranger(session, "") as connection:
        channel = connection.channel()
        headers = from_python({header: "order 7", "x-delay": 5})
        channel.basic_publish("d", "k", b"", Properties(headers=headers))
        code, text = refusal(channel)
        assert code == 403 and "exchange 'd'" in text
    session.advance(1000)
    assert session.take() == ["x"]


def test_others_with_configure_may_cancel(session: Session) -> None:
    session.publish("x", 1000, x_delay_id="order 7")
    session.waiting()
    with stranger(session, "^d$") as connection:
        channel = connection.channel()
        channel.basic_publish("d", "k", b"", Properties(headers=from_python({"x-delay-cancel": "order 7"})))
        connection.flush()
        assert session.waiting() == 0


@pytest.mark.parametrize(
    "headers, shown",
    [
        ({"x_delay_id": ""}, "x-delay-id"),
        ({"x_delay_id": 7}, "x-delay-id '7'"),
        ({"x_delay_id": "x" * 256}, "x-delay-id"),
        ({"x_delay_cancel": Field("A", [])}, "x-delay-cancel"),
        ({"x_delay_every": 0}, "x-delay-every '0'"),
        ({"x_delay_every": "often"}, "x-delay-every 'often'"),
        ({"x_delay_every": 1000, "x_delay_count": -1}, "x-delay-count '-1'"),
        ({"x_delay_count": 3}, "x-delay-count"),
        ({"x_delay_cron": "* * *"}, "x-delay-cron '* * *'"),
        ({"x_delay_cron": "0 0 30 2 *"}, "never matches"),
        ({"x_delay_cron": "0 0 * * *", "x_delay_timezone": "Mars/Olympus"}, "Mars/Olympus"),
        ({"x_delay_cron": "0 0 * * *", "x_delay_every": 5}, "exclude"),
        ({"x_delay_every": 1000, "x_delay_missed": "both"}, "x-delay-missed 'both'"),
    ],
)
def test_what_makes_no_sense_is_a_channel_error_that_names_it(
    session: Session, headers: dict[str, object], shown: str
) -> None:
    session.publish("x", 1000, **headers)  # type: ignore[arg-type]
    code, text = refusal(session.channel)
    assert code == 406 and shown in text
    session.new_channel()
    assert session.waiting() == 0


@pytest.mark.parametrize("delay", [None, 0])
@pytest.mark.parametrize(
    "header, shown",
    [
        ({"x_delay_count": 3}, "x-delay-count needs x-delay-every or x-delay-cron"),
        ({"x_delay_timezone": "UTC"}, "x-delay-timezone needs x-delay-cron"),
    ],
)
def test_half_of_a_repetition_is_refused_also_when_nothing_has_to_wait(
    session: Session, delay: int | None, header: dict[str, object], shown: str
) -> None:
    session.publish("x", delay, **header)  # type: ignore[arg-type]
    assert refusal(session.channel) == (406, f"PRECONDITION_FAILED - {shown}")


def test_at_an_ordinary_exchange_the_headers_mean_nothing(session: Session) -> None:
    session.queue("direct", "amq.direct")
    session.publish("x", "soon", exchange="amq.direct", x_delay_every="often", x_delay_cancel=5)
    assert session.take("direct") == ["x"]


# --- repetition


def test_a_message_repeats_until_its_count_is_reached(session: Session) -> None:
    session.publish("tick", x_delay_every=1000, x_delay_count=3)
    for _ in range(3):
        session.advance(999)
        assert session.take() == []
        session.advance(1)
        assert session.take() == ["tick"]
    assert session.waiting() == 0
    session.advance(5000)
    assert session.take() == []


def test_the_first_time_may_be_asked_for(session: Session) -> None:
    session.publish("tick", 100, x_delay_every=1000, x_delay_count=2)
    session.advance(100)
    assert session.take() == ["tick"]
    session.advance(1000)
    assert session.take() == ["tick"]


def test_repetition_survives_restarts_with_its_count(session: Session) -> None:
    session.publish("tick", x_delay_every=1000, x_delay_count=4, x_delay_id="clock")
    seen = []
    for _ in range(4):
        session.advance(1000)
        seen += session.take()
        session.restart()
    session.advance(10_000)
    assert seen + session.take() == ["tick"] * 4


@pytest.mark.parametrize("by", ["header", "argument"])
@pytest.mark.parametrize("missed, delivered", [("skip", 1), ("catch-up", 6)])
def test_what_was_missed_is_skipped_or_caught_up(session: Session, by: str, missed: str, delivered: int) -> None:
    """Skipping delivers the one that was waiting, late, and goes on at the next regular time."""
    if by == "argument":
        session.exchange("e", x_delayed_missed=missed)
        session.channel.queue_bind("q", "e", "k")
        session.publish("tick", x_delay_every=1000, exchange="e")
    else:
        session.publish("tick", x_delay_every=1000, x_delay_missed=missed)
    session.waiting("e" if by == "argument" else "d")
    session.connection.abort()
    session.broker.stop()
    clock = session.broker._clock
    clock.set_ms(clock.now_ms() + 6500)  # type: ignore[attr-defined]
    session.broker.start()
    session._connect()
    session.advance(0)
    assert len(session.take()) == delivered
    session.advance(499)
    assert session.take() == []
    session.advance(1)
    assert session.take() == ["tick"]


def test_a_repeating_message_is_cancelled_by_its_id(session: Session) -> None:
    session.publish("tick", x_delay_every=1000, x_delay_id="clock")
    session.advance(2500)
    session.publish("", x_delay_cancel="clock")
    assert session.waiting() == 0
    session.advance(10_000)
    assert session.take() == ["tick", "tick"]


def test_a_cron_expression_repeats_in_its_time_zone(session: Session) -> None:
    """The virtual clock begins on 2023-11-14 22:13:20 UTC, a Tuesday, 23:13:20 in Berlin."""
    session.publish("tick", x_delay_cron="30 9 * * mon-fri", x_delay_timezone="Europe/Berlin")
    until = (9 * 60 + 30 + 46) * 60_000 + 40_000  # 00:46:40 to midnight there, then 09:30
    session.advance(until - 1)
    assert session.take() == []
    session.advance(1)
    assert session.take() == ["tick"]
    session.advance(2 * 86_400_000)
    assert session.take() == ["tick", "tick"]
    session.advance(2 * 86_400_000)
    assert session.take() == [], "the weekend"


def test_a_dead_lettered_repetition_does_not_begin_a_second_one(session: Session) -> None:
    session.queue("work", key="w", x_dead_letter_exchange="d", x_dead_letter_routing_key="k")
    session.publish("tick", x_delay_every=1000, key="w")
    session.advance(1000)
    message = session.channel.basic_get("work")
    assert message is not None
    session.channel.basic_reject(message.delivery_tag, requeue=False)
    session.advance(0)
    assert session.waiting() == 1
    assert session.take() == ["tick"]
