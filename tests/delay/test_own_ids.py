"""A publisher's own ids: replacing, cancelling, and who may; repetition."""

from __future__ import annotations

import pytest

from tests.delay.desk import Desk
from warrenmq.client import Channel, ChannelClosed, Connection, Properties
from warrenmq.wire.fields import Field, from_python

pytestmark = pytest.mark.pure


@pytest.fixture(autouse=True)
def topology(desk: Desk) -> None:
    desk.exchange()
    desk.queue()


def refusal(channel: Channel) -> tuple[int, str]:
    with pytest.raises(ChannelClosed) as error:
        channel.queue_declare("any")
    return error.value.code, error.value.text


# --- ids


@pytest.mark.parametrize("restarted", [False, True])
def test_a_second_message_with_a_live_id_replaces_the_first(desk: Desk, restarted: bool) -> None:
    desk.publish("first", 1000, x_delay_id="order 7")
    if restarted:
        desk.restart()
    desk.publish("second", 2000, x_delay_id="order 7")
    assert desk.waiting() == 1
    desk.advance(2000)
    assert desk.take() == ["second"]


def test_an_id_is_free_again_once_its_message_was_delivered(desk: Desk) -> None:
    desk.publish("first", 1000, x_delay_id="order 7")
    desk.advance(1000)
    desk.publish("second", 1000, x_delay_id="order 7")
    desk.advance(1000)
    assert desk.take() == ["first", "second"]


def test_ids_belong_to_their_exchange(desk: Desk) -> None:
    desk.exchange("e")
    desk.channel.queue_bind("q", "e", "k")
    desk.publish("one", 1000, x_delay_id="7")
    desk.publish("other", 1000, exchange="e", x_delay_id="7")
    desk.advance(1000)
    assert desk.take() == ["one", "other"]


@pytest.mark.parametrize("restarted", [False, True])
def test_a_message_is_cancelled_by_publishing_its_id(desk: Desk, restarted: bool) -> None:
    desk.publish("x", 1000, x_delay_id="order 7")
    desk.publish("y", 1000, x_delay_id="order 8")
    if restarted:
        desk.restart()
    desk.channel.confirm_select()
    desk.publish("", x_delay_cancel="order 7", mandatory=True)
    assert desk.channel.wait_for_confirms(60) == []
    assert desk.returned() == [] and desk.waiting() == 1
    desk.restart()
    desk.advance(1000)
    assert desk.take() == ["y"]


def test_cancelling_an_unknown_id_is_returned_if_mandatory_and_routed_nowhere(desk: Desk) -> None:
    desk.publish("nothing", x_delay_cancel="order 9")
    assert desk.returned() == []
    desk.publish("nothing", x_delay_cancel="order 9", mandatory=True)
    assert desk.returned() == ["nothing"]
    assert desk.take() == []


def test_a_cancellation_in_a_transaction_counts_at_commit(desk: Desk) -> None:
    desk.publish("x", 1000, x_delay_id="order 7")
    desk.channel.tx_select()
    desk.publish("", x_delay_cancel="order 7")
    assert desk.waiting() == 1
    desk.channel.tx_commit()
    assert desk.waiting() == 0


def stranger(desk: Desk, configure: str) -> Connection:
    access = desk.broker.server.broker.access

    def add() -> None:
        access.add_user("stranger", "secret", [])
        access.set_permissions("stranger", "/", configure, ".*", ".*")

    desk.broker.call(add)
    return Connection(desk.broker.url.replace("guest:guest", "stranger:secret"), timeout=60)


@pytest.mark.parametrize("header", ["x-delay-cancel", "x-delay-id"])
def test_others_need_configure_to_cancel_or_replace(desk: Desk, header: str) -> None:
    desk.publish("x", 1000, x_delay_id="order 7")
    desk.waiting()
    with stranger(desk, "") as connection:
        channel = connection.channel()
        headers = from_python({header: "order 7", "x-delay": 5})
        channel.basic_publish("d", "k", b"", Properties(headers=headers))
        code, text = refusal(channel)
        assert code == 403 and "exchange 'd'" in text
    desk.advance(1000)
    assert desk.take() == ["x"]


def test_others_with_configure_may_cancel(desk: Desk) -> None:
    desk.publish("x", 1000, x_delay_id="order 7")
    desk.waiting()
    with stranger(desk, "^d$") as connection:
        channel = connection.channel()
        channel.basic_publish("d", "k", b"", Properties(headers=from_python({"x-delay-cancel": "order 7"})))
        connection.flush()
        assert desk.waiting() == 0


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
    desk: Desk, headers: dict[str, object], shown: str
) -> None:
    desk.publish("x", 1000, **headers)  # type: ignore[arg-type]
    code, text = refusal(desk.channel)
    assert code == 406 and shown in text
    desk.new_channel()
    assert desk.waiting() == 0


@pytest.mark.parametrize("delay", [None, 0])
@pytest.mark.parametrize("header, shown", [
    ({"x_delay_count": 3}, "x-delay-count needs x-delay-every or x-delay-cron"),
    ({"x_delay_timezone": "UTC"}, "x-delay-timezone needs x-delay-cron"),
])
def test_half_of_a_repetition_is_refused_also_when_nothing_has_to_wait(
    desk: Desk, delay: int | None, header: dict[str, object], shown: str
) -> None:
    desk.publish("x", delay, **header)  # type: ignore[arg-type]
    assert refusal(desk.channel) == (406, f"PRECONDITION_FAILED - {shown}")


def test_at_an_ordinary_exchange_the_headers_mean_nothing(desk: Desk) -> None:
    desk.queue("direct", "amq.direct")
    desk.publish("x", "soon", exchange="amq.direct", x_delay_every="often", x_delay_cancel=5)
    assert desk.take("direct") == ["x"]


# --- repetition


def test_a_message_repeats_until_its_count_is_reached(desk: Desk) -> None:
    desk.publish("tick", x_delay_every=1000, x_delay_count=3)
    for _ in range(3):
        desk.advance(999)
        assert desk.take() == []
        desk.advance(1)
        assert desk.take() == ["tick"]
    assert desk.waiting() == 0
    desk.advance(5000)
    assert desk.take() == []


def test_the_first_time_may_be_asked_for(desk: Desk) -> None:
    desk.publish("tick", 100, x_delay_every=1000, x_delay_count=2)
    desk.advance(100)
    assert desk.take() == ["tick"]
    desk.advance(1000)
    assert desk.take() == ["tick"]


def test_repetition_survives_restarts_with_its_count(desk: Desk) -> None:
    desk.publish("tick", x_delay_every=1000, x_delay_count=4, x_delay_id="clock")
    seen = []
    for _ in range(4):
        desk.advance(1000)
        seen += desk.take()
        desk.restart()
    desk.advance(10_000)
    assert seen + desk.take() == ["tick"] * 4


@pytest.mark.parametrize("by", ["header", "argument"])
@pytest.mark.parametrize("missed, delivered", [("skip", 1), ("catch-up", 6)])
def test_what_was_missed_is_skipped_or_caught_up(desk: Desk, by: str, missed: str, delivered: int) -> None:
    """Skipping delivers the one that was waiting, late, and goes on at the next regular time."""
    if by == "argument":
        desk.exchange("e", x_delayed_missed=missed)
        desk.channel.queue_bind("q", "e", "k")
        desk.publish("tick", x_delay_every=1000, exchange="e")
    else:
        desk.publish("tick", x_delay_every=1000, x_delay_missed=missed)
    desk.waiting("e" if by == "argument" else "d")
    desk.connection.abort()
    desk.broker.stop()
    clock = desk.broker._clock
    clock.set_ms(clock.now_ms() + 6500)  # type: ignore[attr-defined]
    desk.broker.start()
    desk._connect()
    desk.advance(0)
    assert len(desk.take()) == delivered
    desk.advance(499)
    assert desk.take() == []
    desk.advance(1)
    assert desk.take() == ["tick"]


def test_a_repeating_message_is_cancelled_by_its_id(desk: Desk) -> None:
    desk.publish("tick", x_delay_every=1000, x_delay_id="clock")
    desk.advance(2500)
    desk.publish("", x_delay_cancel="clock")
    assert desk.waiting() == 0
    desk.advance(10_000)
    assert desk.take() == ["tick", "tick"]


def test_a_cron_expression_repeats_in_its_time_zone(desk: Desk) -> None:
    """The virtual clock begins on 2023-11-14 22:13:20 UTC, a Tuesday, 23:13:20 in Berlin."""
    desk.publish("tick", x_delay_cron="30 9 * * mon-fri", x_delay_timezone="Europe/Berlin")
    until = (9 * 60 + 30 + 46) * 60_000 + 40_000  # 00:46:40 to midnight there, then 09:30
    desk.advance(until - 1)
    assert desk.take() == []
    desk.advance(1)
    assert desk.take() == ["tick"]
    desk.advance(2 * 86_400_000)
    assert desk.take() == ["tick", "tick"]
    desk.advance(2 * 86_400_000)
    assert desk.take() == [], "the weekend"


def test_a_dead_lettered_repetition_does_not_begin_a_second_one(desk: Desk) -> None:
    desk.queue("work", key="w", x_dead_letter_exchange="d", x_dead_letter_routing_key="k")
    desk.publish("tick", x_delay_every=1000, key="w")
    desk.advance(1000)
    message = desk.channel.basic_get("work")
    assert message is not None
    desk.channel.basic_reject(message.delivery_tag, requeue=False)
    desk.advance(0)
    assert desk.waiting() == 1
    assert desk.take() == ["tick"]
