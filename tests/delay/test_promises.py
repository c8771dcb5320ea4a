"""What a publisher and an operator may count on: confirms, returns, transactions, deletion, what is undeliverable."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.delay.session import DELAYED, Session
from tests.support import web
from warrenmq.broker.delay.delays import LONG_ONE, SLICE, SLICE_BYTES
from warrenmq.client import Acked, ChannelClosed, Connection, Nacked, Properties, Returned
from warrenmq.testing import Broker, FaultyDisk
from warrenmq.wire.fields import from_python

pytestmark = pytest.mark.pure


# --- confirms and mandatory


def events(session: Session) -> list[str]:
    session.broker.settle()
    session.connection.read(0)
    return [type(event).__name__ for event in session.channel.take_events()]


def test_a_delayed_message_is_confirmed_when_the_log_has_it_not_when_it_is_due(session: Session) -> None:
    session.exchange()
    session.channel.confirm_select()
    session.publish("x", 60_000)
    assert events(session) == ["Acked"]


def test_a_mandatory_delayed_message_is_returned_at_once_then_confirmed_and_still_delivered(session: Session) -> None:
    """The plugin's behaviour, which clients are built around."""
    session.exchange()
    session.queue()
    session.channel.confirm_select()
    session.publish("x", 1000, mandatory=True)
    assert events(session) == ["Returned", "Acked"]
    session.advance(1000)
    assert session.take() == ["x"]


@pytest.mark.parametrize("how", ["argument", "policy"])
def test_an_honest_exchange_returns_only_what_it_would_not_route_now(session: Session, how: str) -> None:
    if how == "argument":
        session.exchange(x_delayed_mandatory="honest")
    else:
        session.exchange()
        policy = {"pattern": "^d$", "definition": {"delayed-mandatory": "honest"}, "apply-to": "exchanges"}
        url = f"{session.broker.http_url}/api/policies/%2F/honest"
        assert web.put(url, json=policy, auth=("guest", "guest")).status_code == 201
    session.queue()
    session.channel.confirm_select()
    session.publish("routable", 1000, mandatory=True)
    assert events(session) == ["Acked"]
    session.publish("unroutable", 1000, key="nobody", mandatory=True)
    assert events(session) == ["Returned", "Acked"]
    session.advance(1000)
    assert session.take() == ["routable"]


def test_a_message_without_delay_is_returned_and_confirmed_as_by_the_inner_type(session: Session) -> None:
    session.exchange()
    session.queue()
    session.channel.confirm_select()
    session.publish("routable", mandatory=True)
    assert events(session) == ["Acked"]
    session.publish("unroutable", key="nobody", mandatory=True)
    assert events(session) == ["Returned", "Acked"]


def test_a_message_that_also_went_to_a_queue_at_once_is_not_returned(session: Session) -> None:
    session.exchange()
    session.channel.exchange_declare("front", "fanout")
    session.channel.exchange_bind("d", "front", "")
    session.queue("at once", "front")
    session.queue()
    session.channel.confirm_select()
    for persistent in (True, False):
        session.publish("x", 1000, exchange="front", mandatory=True, persistent=persistent)
        assert events(session) == ["Acked"]
    session.advance(1000)
    assert session.take("at once") == session.take() == ["x", "x"]


@pytest.mark.parametrize("argument", ["x-delayed-mandatory", "x-delayed-header", "x-delayed-missed"])
def test_an_argument_that_makes_no_sense_is_refused_by_name(session: Session, argument: str) -> None:
    with pytest.raises(ChannelClosed) as error:
        session.channel.exchange_declare("d", DELAYED, arguments={"x-delayed-type": "direct", argument: "perhaps"})
    assert error.value.code == 406 and argument in error.value.text and "'perhaps'" in error.value.text


# --- transactions


def test_a_transaction_schedules_at_commit(session: Session) -> None:
    session.exchange()
    session.queue()
    session.channel.tx_select()
    session.publish("x", 1000)
    assert session.waiting() == 0
    session.advance(500)
    session.channel.tx_commit()
    assert session.waiting() == 1
    session.advance(999)
    assert session.take() == []
    session.advance(1)
    assert session.take() == ["x"]


def test_a_rolled_back_message_is_never_scheduled(session: Session) -> None:
    session.exchange()
    session.queue()
    session.channel.tx_select()
    session.publish("x", 1000)
    session.channel.tx_rollback()
    assert session.waiting() == 0
    session.advance(2000)
    assert session.take() == []


def test_a_mandatory_message_of_a_transaction_is_returned_at_commit(session: Session) -> None:
    session.exchange()
    session.channel.tx_select()
    session.publish("x", 1000, mandatory=True)
    assert session.returned() == []
    session.channel.tx_commit()
    assert session.returned() == ["x"]


def test_an_exchange_deleted_before_the_commit_keeps_nothing(session: Session) -> None:
    session.exchange()
    session.channel.tx_select()
    session.publish("x", 1000, mandatory=True)
    other = session.connection.channel()
    other.exchange_delete("d")
    session.channel.tx_commit()
    assert session.returned() == ["x"]


# --- deleting


@pytest.mark.parametrize("durable", [True, False], ids=["durable", "transient"])
def test_deleting_the_exchange_cancels_what_waits_there(session: Session, durable: bool) -> None:
    session.exchange(durable=durable)
    session.queue()
    for _ in range(3):
        session.publish("x", 1000)
    assert session.waiting() == 3
    session.channel.exchange_delete("d")
    session.exchange(durable=durable)
    session.channel.queue_bind("q", "d", "k")
    assert session.waiting() == 0
    session.restart()
    if durable:
        assert session.waiting() == 0
    session.advance(5000)
    assert session.take() == []
    assert session.broker.call(lambda: session.broker.server.broker.services.log.maintenance.live_bytes()) < 10_000


# --- at the due time


def test_bindings_are_those_of_the_due_time(session: Session) -> None:
    session.exchange()
    session.queue("early")
    session.publish("x", 1000)
    session.channel.queue_unbind("early", "d", "k")
    session.queue("late")
    session.advance(1000)
    assert session.take("early") == [] and session.take("late") == ["x"]


def test_the_alternate_exchange_gets_what_is_unroutable_when_due_and_nothing_before(session: Session) -> None:
    session.exchange(alternate_exchange="amq.fanout")
    session.queue("lost", "amq.fanout")
    session.publish("x", 1000)
    assert session.take("lost") == []
    session.advance(1000)
    assert session.take("lost") == ["x"]


def test_what_is_unroutable_when_due_is_counted_and_gone(session: Session) -> None:
    session.exchange()
    session.publish("x", 1000)
    session.advance(1000)
    assert session.waiting() == 0
    delay = session.broker.server.broker.delay
    assert session.broker.call(lambda: (int(delay.undeliverable), int(delay.delivered))) == (1, 0)


def test_what_is_unroutable_when_due_goes_to_the_exchanges_dead_letter_exchange(session: Session) -> None:
    session.exchange(x_dead_letter_exchange="amq.direct", x_dead_letter_routing_key="dead")
    session.queue("dead", "amq.direct", "dead")
    session.publish("x", 1000)
    session.advance(1000)
    message = session.channel.basic_get("dead", no_ack=True)
    assert message is not None and bytes(message.body) == b"x"
    headers = message.properties.headers
    assert headers is not None
    death = headers["x-death"].value[0].value  # type: ignore[index]
    assert (death["reason"].value, death["exchange"].value, death["count"].value) == ("unroutable", "d", 1)


def test_a_full_queue_that_rejects_counts_as_undeliverable(session: Session) -> None:
    session.exchange(x_dead_letter_exchange="amq.fanout")
    session.queue("q", x_max_length=1, x_overflow="reject-publish")
    session.queue("dead", "amq.fanout")
    session.publish("first", 1000)
    session.publish("second", 1000)
    session.advance(1000)
    assert session.take() == ["first"] and session.take("dead") == ["second"]


def test_time_to_live_begins_when_the_message_arrives_in_its_queue(session: Session) -> None:
    session.exchange()
    session.queue("q", x_message_ttl=500)
    session.publish("by message", 10_000, expiration="200")
    session.publish("by queue", 10_000)
    session.advance(10_199)
    assert session.channel.queue_declare("q", passive=True).int("message_count") == 2
    session.advance(300)
    assert session.channel.queue_declare("q", passive=True).int("message_count") == 1
    session.advance(1)
    assert session.take() == []


def test_a_priority_queue_orders_what_fires_together(session: Session) -> None:
    session.exchange()
    session.queue("q", x_max_priority=10)
    for priority in (1, 9, 5):
        properties = Properties(headers=from_python({"x-delay": 100}), priority=priority, delivery_mode=2)
        session.channel.basic_publish("d", "k", str(priority).encode(), properties)
    session.advance(100)
    assert session.take() == ["9", "5", "1"]


def test_a_transient_message_is_transient_in_its_queue(session: Session) -> None:
    session.exchange()
    session.queue()
    session.publish("transient", 1000, persistent=False)
    session.publish("persistent", 1000)
    session.restart()
    session.advance(1000)
    assert session.channel.queue_declare("q", passive=True).int("message_count") == 2
    session.restart()
    assert session.take() == ["persistent"]


def test_a_dead_letter_with_a_delay_waits_at_a_delayed_dead_letter_exchange(session: Session) -> None:
    """The retry pattern: rejected messages come back after their delay."""
    session.exchange()
    session.queue("work", "", x_dead_letter_exchange="d", x_dead_letter_routing_key="k")
    session.queue()
    session.publish("x", 1000, exchange="", key="work")
    message = session.channel.basic_get("work")
    assert message is not None
    session.channel.basic_reject(message.delivery_tag, requeue=False)
    assert session.waiting() == 1
    session.advance(1000)
    assert session.take() == ["x"]


def test_a_dead_letter_with_a_senseless_delay_does_not_wait(session: Session) -> None:
    session.exchange()
    session.queue("work", "", x_dead_letter_exchange="d", x_dead_letter_routing_key="k")
    session.queue()
    session.publish("x", "soon", exchange="", key="work")
    message = session.channel.basic_get("work")
    assert message is not None
    session.channel.basic_reject(message.delivery_tag, requeue=False)
    assert session.take() == ["x"]


def test_a_stream_takes_what_fires_whether_persistent_or_not(session: Session) -> None:
    session.exchange()
    session.queue("s", x_queue_type="stream")
    session.publish("persistent", 1000)
    session.publish("transient", 1000, persistent=False)
    session.advance(1000)
    for _ in range(2):
        channel = session.connection.channel()
        channel.basic_qos(10)
        channel.basic_consume("s", arguments={"x-stream-offset": "first"})
        messages = [channel.next_message(timeout=60) for _ in range(2)]
        assert [bytes(one.body) for one in messages if one is not None] == [b"persistent", b"transient"]
        assert [one.routing_key for one in messages if one is not None] == ["k", "k"]
        session.restart()


# --- the log


def test_the_body_is_not_written_again_when_the_message_fires(session: Session) -> None:
    session.exchange()
    for name in "abc":
        session.queue(name)
    session.publish("x" * 100_000, 1000)
    session.waiting()
    log = session.broker.server.log
    before = session.broker.call(lambda: int(log.maintenance.live_bytes()))
    session.advance(1000)
    assert session.broker.call(lambda: int(log.maintenance.live_bytes())) - before < 10_000
    session.restart()
    assert [len(body) for name in "abc" for body in session.take(name)] == [100_000] * 3


def test_a_message_of_two_megabytes_waits_and_arrives_whole(session: Session) -> None:
    session.exchange()
    session.queue()
    body = "0123456789abcdef" * (1 << 17)
    session.publish(body, 1000)
    session.restart()
    session.advance(1000)
    assert session.take() == [body]


def test_the_keys_of_cc_are_used_when_due_and_those_of_bcc_stay_secret(session: Session) -> None:
    session.exchange()
    for key in "abc":
        session.queue(key, key=key)
    session.publish("x", 1000, key="a", CC=["b"], BCC=["c"])
    session.restart()
    session.advance(1000)
    for key in "abc":
        message = session.channel.basic_get(key, no_ack=True)
        assert message is not None and message.routing_key == "a"
        assert message.properties.headers is not None and "BCC" not in message.properties.headers


def test_what_the_disk_refused_is_nacked_and_does_not_wait(tmp_path: Path) -> None:
    disk = FaultyDisk()
    with Broker(clock="virtual", data_dir=tmp_path, disk=disk) as broker, Connection(broker.url, timeout=60) as c:
        channel = c.channel()
        channel.exchange_declare("d", DELAYED, durable=True, arguments={"x-delayed-type": "direct"})
        channel.queue_declare("q", durable=True)
        channel.queue_bind("q", "d", "k")
        channel.confirm_select()
        headers = from_python({"x-delay": 1000})
        channel.basic_publish("d", "k", b"kept", Properties(headers=headers, delivery_mode=2))
        assert channel.wait_for_confirms(60) == []
        channel.take_events()
        disk.fail("sync")
        channel.basic_publish("d", "k", b"refused", Properties(headers=headers, delivery_mode=2), mandatory=True)
        c.flush()
        broker.settle()
        c.read(5)
        kinds = [type(event) for event in channel.take_events()]
        assert kinds == [Returned, Nacked] or kinds == [Returned]
        while Nacked not in kinds:
            c.read(5)
            kinds += [type(event) for event in channel.take_events()]
        assert Acked not in kinds
        disk.repair()
        delay = broker.server.broker.delay
        assert broker.call(lambda: int(delay.total())) == 1


def test_an_honest_exchange_returns_a_mandatory_message_that_the_disk_refused(tmp_path: Path) -> None:
    disk = FaultyDisk()
    with Broker(clock="virtual", data_dir=tmp_path, disk=disk) as broker, Connection(broker.url, timeout=60) as c:
        channel = c.channel()
        arguments = {"x-delayed-type": "fanout", "x-delayed-mandatory": "honest"}
        channel.exchange_declare("d", DELAYED, durable=True, arguments=arguments)
        channel.queue_declare("q", durable=True)
        channel.queue_bind("q", "d", "")
        channel.confirm_select()
        disk.fail("sync")
        properties = Properties(headers=from_python({"x-delay": 1000}), delivery_mode=2)
        channel.basic_publish("d", "k", b"refused", properties, mandatory=True)
        kinds: list[type] = []
        while len(kinds) < 2:
            c.flush()
            c.read(5)
            kinds += [type(event) for event in channel.take_events()]
        assert kinds == [Returned, Nacked]
        disk.repair()


def test_large_messages_make_smaller_slices(session: Session) -> None:
    session.exchange()
    session.queue()
    body = "x" * (1 << 20)
    for _ in range(70):
        session.publish(body, 1000)
    session.waiting()
    server = session.broker.server

    def first_slice() -> int:
        session.broker._clock.set_ms(session.broker._clock.now_ms() + 5000)  # type: ignore[attr-defined]
        server.begin()
        server.broker.begin_turn()
        server.broker.run_timers()
        server.end_turn()
        return int(server.broker.delay.total())

    assert session.broker.call(first_slice) == 70 - SLICE_BYTES // LONG_ONE
    session.advance(0)
    assert len(session.take()) == 70


# --- time


def test_the_timer_follows_the_earliest_message(session: Session) -> None:
    """A sooner arrival replaces it, a later one does not, cancelling the earliest arms it for the next."""
    session.exchange()
    session.exchange("e")
    broker = session.broker.server.broker

    def due() -> int:
        session.broker.settle()
        return session.broker.call(lambda: int(broker.delay._timer.due))

    now = session.broker.now_ms
    assert due() == -1
    session.publish("x", 5000)
    assert due() == now + 5000
    session.publish("x", 9000, exchange="e")
    assert due() == now + 5000
    session.publish("x", 1000, exchange="e", x_delay_id="soon")
    assert due() == now + 1000
    session.publish("", exchange="e", x_delay_cancel="soon")
    assert due() == now + 5000
    session.channel.exchange_delete("d")
    assert due() == now + 9000
    session.channel.exchange_delete("e")
    assert due() == -1


def test_messages_of_several_exchanges_leave_in_order_of_due_time(session: Session) -> None:
    for name in "abc":
        session.exchange(name)
    session.queue("q", "a")
    for name in "bc":
        session.channel.queue_bind("q", name, "k")
    wanted = []
    for number in range(60):
        delay = (number * 37) % 5
        session.publish(f"{delay} {number}", 1000 + delay, exchange="abc"[number % 3])
        wanted.append((delay, number))
    session.advance(2000)
    assert session.take() == [f"{delay} {number}" for delay, number in sorted(wanted)]


def test_a_backlog_is_fired_in_slices_that_leave_room_for_others(session: Session) -> None:
    session.exchange()
    session.queue()
    count = 3 * SLICE + 10
    for number in range(count):
        session.publish(str(number), 1000)
    session.waiting()
    server = session.broker.server

    def slices() -> list[int]:
        sizes = []
        session.broker._clock.set_ms(session.broker._clock.now_ms() + 5000)  # type: ignore[attr-defined]
        while server.broker.delay.total():
            before = server.broker.delay.total()
            server.begin()
            server.broker.begin_turn()
            server.broker.run_timers()
            server.end_turn()
            sizes.append(int(before - server.broker.delay.total()))
        return sizes

    assert session.broker.call(slices) == [SLICE, SLICE, SLICE, 10]
    assert len(session.take()) == count


def test_hundreds_of_secret_keys_stay_secret(session: Session) -> None:
    """Also when the message, read back from the log, is dead-lettered and tells where it was sent."""
    session.exchange()
    session.queue("q", key="k299", x_dead_letter_exchange="amq.fanout")
    session.queue("dead", "amq.fanout")
    session.publish("x", 1000, key="a", BCC=[f"k{number}" for number in range(300)])
    session.restart()
    session.advance(1000)
    session.restart()
    message = session.channel.basic_get("q")
    assert message is not None
    session.channel.basic_reject(message.delivery_tag, requeue=False)
    dead = session.channel.basic_get("dead", no_ack=True)
    assert dead is not None and dead.properties.headers is not None
    death = dead.properties.headers["x-death"].value[0].value  # type: ignore[index]
    assert [key.value for key in death["routing-keys"].value] == ["a"]
