"""The client against real brokers: what AMQP promises, through its methods."""

from __future__ import annotations

import pytest

from tests.support.brokers import RunningBroker
from warrenmq.client import (
    Acked,
    Cancelled,
    Channel,
    ChannelClosed,
    ConnectError,
    Connection,
    ConnectionClosed,
    Field,
    Properties,
    Returned,
    Timeout,
)
from warrenmq.wire.content import encode_header
from warrenmq.wire.fields import from_python


def test_a_message_comes_back_as_it_was_sent(channel: Channel, queue: str) -> None:
    properties = Properties(
        content_type="text/plain",
        content_encoding="utf-8",
        headers={"n": Field("u", 5), "t": Field("F", {})},
        delivery_mode=2,
        priority=3,
        correlation_id="c",
        reply_to="r",
        expiration="60000",
        message_id="m",
        timestamp=1234567890,
        type="t",
        app_id="a",
        cluster_id="x",
    )
    channel.confirm_select()
    assert channel.basic_publish("", queue, b"body", properties) == 1
    assert channel.wait_for_confirms(60) == []
    message = channel.basic_get(queue)
    assert message is not None
    assert message.properties == properties
    assert (message.body, message.exchange, message.routing_key) == (b"body", "", queue)
    assert (message.redelivered, message.message_count, message.consumer_tag) == (False, 0, "")
    assert message.headers == {"n": 5, "t": {}}
    channel.basic_ack(message.delivery_tag)
    assert channel.basic_get(queue) is None


@pytest.mark.parametrize("size", [0, 1, 131064, 131065, 1_000_000])
def test_bodies_of_every_size_come_through(channel: Channel, queue: str, size: int) -> None:
    body = bytes(range(256)) * (size // 256 + 1)
    channel.confirm_select()
    channel.basic_publish("", queue, body[:size])
    channel.wait_for_confirms(60)
    message = channel.basic_get(queue, no_ack=True)
    assert message is not None and message.body == body[:size]


def test_a_mandatory_message_is_returned_before_it_is_confirmed(channel: Channel) -> None:
    channel.confirm_select()
    channel.basic_publish("", "nobody-listens-here", b"lost", Properties(message_id="m"), mandatory=True)
    channel.wait_for_confirms(60)
    returned, acked = channel.take_events()
    assert isinstance(returned, Returned)
    assert (returned.reply_code, returned.reply_text) == (312, "NO_ROUTE")
    assert (returned.exchange, returned.routing_key, returned.body) == ("", "nobody-listens-here", b"lost")
    assert returned.properties == Properties(message_id="m")
    assert acked == Acked(1, False)
    assert channel.events == []


def test_many_messages_are_published_and_consumed_in_order(channel: Channel, queue: str) -> None:
    bodies = [str(number).encode() for number in range(5000)]
    channel.confirm_select()
    assert channel.publish_many("", queue, bodies, Properties(delivery_mode=1)) == range(1, 5001)
    assert channel.wait_for_confirms(60) == []
    assert channel.unconfirmed == 0
    channel.basic_qos(500)
    tag = channel.basic_consume(queue)
    seen: list[bytes] = []
    while len(seen) < len(bodies):
        batch = channel.receive(20)
        assert batch, "the broker stopped delivering"
        assert {message.consumer_tag for message in batch} == {tag}
        seen += [message.body for message in batch]
        channel.basic_ack(batch[-1].delivery_tag, multiple=True)
    assert seen == bodies
    assert channel.receive(0) == []


def test_keys_and_properties_may_differ_by_message(channel: Channel, queue: str) -> None:
    other = channel.queue_declare(exclusive=True).str("queue")
    header = encode_header(Properties(message_id="two"), 0)
    channel.confirm_select()
    channel.publish_many("", [queue, other, queue], [b"1", b"22", b"333"], [Properties(message_id="one"), header, None])
    channel.wait_for_confirms(60)
    got = [channel.basic_get(name, no_ack=True) for name in (queue, queue, other)]
    assert [(m.body, m.properties.message_id) for m in got if m] == [(b"1", "one"), (b"333", None), (b"22", "two")]
    with pytest.raises(ValueError):
        channel.publish_many("", [queue], [b"1", b"2"])


def test_acknowledging_each_message_leaves_none_behind(channel: Channel, queue: str) -> None:
    channel.confirm_select()
    channel.publish_many("", queue, [b"x"] * 100)
    channel.wait_for_confirms(60)
    tag = channel.basic_consume(queue)
    taken = 0
    for message in channel.messages(20):
        channel.basic_ack(message.delivery_tag)
        taken += 1
        if taken == 100:
            break
    channel.basic_cancel(tag)
    assert channel.queue_declare(queue, passive=True).int("message_count") == 0
    channel.basic_recover()
    assert channel.basic_get(queue) is None


def test_leaving_an_iteration_keeps_the_messages_it_did_not_take(channel: Channel, queue: str) -> None:
    channel.confirm_select()
    channel.publish_many("", queue, [b"1", b"2", b"3"])
    channel.wait_for_confirms(60)
    channel.basic_consume(queue, no_ack=True)
    taken = []
    for _ in range(2):
        for message in channel.messages(10):
            taken.append(message.body)
            break
    while len(taken) < 3:
        taken += [message.body for message in channel.receive(10)]
    assert taken == [b"1", b"2", b"3"]


def test_rejected_and_nacked_messages_come_back_redelivered(channel: Channel, queue: str) -> None:
    channel.confirm_select()
    channel.basic_publish("", queue, b"x")
    channel.wait_for_confirms(60)
    for settle in (channel.basic_reject, channel.basic_nack):
        message = channel.basic_get(queue)
        assert message is not None
        settle(message.delivery_tag, requeue=True)
    message = channel.basic_get(queue)
    assert message is not None and message.redelivered
    channel.basic_reject(message.delivery_tag, requeue=False)
    assert channel.basic_get(queue) is None


def test_exchanges_are_declared_bound_and_unbound(channel: Channel, queue: str) -> None:
    channel.exchange_declare("client-a", "topic", auto_delete=True)
    channel.exchange_declare("client-b", "fanout")
    channel.exchange_bind("client-b", "client-a", "k.#", {"note": "x"})
    channel.queue_bind(queue, "client-b")
    channel.confirm_select()
    channel.basic_publish("client-a", "k.1", b"routed")
    channel.wait_for_confirms(60)
    message = channel.basic_get(queue, no_ack=True)
    assert message is not None and message.exchange == "client-a"
    channel.queue_unbind(queue, "client-b")
    channel.exchange_unbind("client-b", "client-a", "k.#", {"note": "x"})
    channel.exchange_delete("client-b")
    with pytest.raises(ChannelClosed) as caught:
        channel.exchange_declare("client-a", passive=True)
    assert caught.value.code == 404
    assert caught.value.text == "NOT_FOUND - no exchange 'client-a' in vhost '/'"


def test_queues_are_purged_and_deleted_with_their_counts(channel: Channel) -> None:
    queue = channel.queue_declare(arguments={"x-max-length": 10, "x-own": from_python({"k": [1]})}).str("queue")
    channel.confirm_select()
    channel.publish_many("", queue, [b"x"] * 3)
    channel.wait_for_confirms(60)
    assert channel.queue_purge(queue) == 3
    assert channel.queue_delete(queue) == 0


def test_a_transaction_shows_its_messages_at_commit(channel: Channel, queue: str) -> None:
    channel.tx_select()
    channel.basic_publish("", queue, b"rolled back")
    channel.tx_rollback()
    channel.basic_publish("", queue, b"committed")
    assert channel.basic_get(queue, no_ack=True) is None
    channel.tx_commit()
    message = channel.basic_get(queue, no_ack=True)
    assert message is not None and message.body == b"committed"


def test_a_refused_channel_says_why_again_and_its_connection_lives_on(connection: Connection) -> None:
    channel = connection.channel()
    with pytest.raises(ChannelClosed) as caught:
        channel.queue_declare("no-such-queue", passive=True)
    assert (caught.value.code, caught.value.class_id, caught.value.method_id) == (404, 50, 10)
    assert caught.value.text == "NOT_FOUND - no queue 'no-such-queue' in vhost '/'"
    for again in (lambda: channel.basic_publish("", "q", b""), lambda: channel.basic_ack(1), channel.confirm_select):
        with pytest.raises(ChannelClosed):
            again()
    channel.close()
    fresh = connection.channel()
    assert fresh.number == channel.number
    fresh.queue_declare(exclusive=True)


def test_publishing_to_no_exchange_closes_the_channel_and_waiting_for_confirms_says_so(channel: Channel) -> None:
    channel.confirm_select()
    channel.basic_publish("no-such-exchange", "k", b"x")
    with pytest.raises(ChannelClosed, match="404 NOT_FOUND - no exchange 'no-such-exchange' in vhost '/'"):
        channel.wait_for_confirms(60)


def test_a_hard_error_closes_the_connection_for_every_channel(connection: Connection) -> None:
    first, second = connection.channel(), connection.channel()
    with pytest.raises(ConnectionClosed) as caught:
        first.exchange_declare("x", "no-such-type")
    assert caught.value.code == 503
    with pytest.raises(ConnectionClosed) as again:
        second.queue_declare(exclusive=True)
    assert again.value.text == caught.value.text
    assert connection.closed is not None


def test_a_consumer_whose_queue_goes_away_is_told(connection: Connection, channel: Channel, queue: str) -> None:
    tag = channel.basic_consume(queue)
    connection.channel().queue_delete(queue)
    for _ in range(2):
        assert list(channel.messages()) == []  # without a time limit: it ends because nobody is left to deliver to
    assert channel.take_events() == [Cancelled(tag)]
    again = channel.queue_declare(exclusive=True).str("queue")
    channel.basic_consume(again, no_ack=True)
    channel.basic_publish("", again, b"back in business")
    assert [message.body for message in channel.receive(20)] == [b"back in business"]


def test_waiting_ends_in_time_when_nothing_comes(channel: Channel, queue: str) -> None:
    channel.basic_consume(queue)
    assert list(channel.messages(0.05)) == []
    assert channel.receive(0) == []


def test_channels_are_numbered_and_closed_like_rooms(connection: Connection) -> None:
    first, second, chosen = connection.channel(), connection.channel(), connection.channel(77)
    assert (first.number, second.number, chosen.number) == (1, 2, 77)
    first.close()
    with pytest.raises(ChannelClosed):
        first.basic_publish("", "q", b"x")
    with connection.channel() as again:
        assert again.number == 1
    with pytest.raises(ValueError):
        connection.channel(77)
    with pytest.raises(ValueError):
        connection.channel(60000)


def test_small_frames_are_respected(broker: RunningBroker) -> None:
    with Connection(broker.url, frame_max=4096, timeout=60) as connection:
        assert connection.frame_max == 4096
        channel = connection.channel()
        queue = channel.queue_declare(exclusive=True).str("queue")
        channel.confirm_select()
        channel.basic_publish("", queue, b"x" * 10_000)
        channel.wait_for_confirms(60)
        message = channel.basic_get(queue)
        assert message is not None and message.body == b"x" * 10_000


@pytest.mark.parametrize("mechanism", ["PLAIN", "AMQPLAIN"])
def test_both_ways_to_log_in_work(broker: RunningBroker, mechanism: str) -> None:
    with Connection(broker.url, mechanism=mechanism, connection_name="from a test") as connection:
        assert connection.server_properties["product"].kind == "S"


@pytest.mark.parametrize(
    ("user", "vhost", "code"), [(("guest", "wrong"), "/", 403), (("guest", "guest"), "no-such-vhost", 530)]
)
def test_a_refused_login_says_why(broker: RunningBroker, user: tuple[str, str], vhost: str, code: int) -> None:
    with pytest.raises(ConnectError) as caught:
        Connection(broker.url_of(*user, vhost), timeout=60)
    assert caught.value.code == code


def test_heartbeats_keep_a_waiting_connection_alive(broker: RunningBroker) -> None:
    with Connection(broker.url, heartbeat=1) as connection:
        channel = connection.channel()
        channel.basic_consume(channel.queue_declare(exclusive=True).str("queue"))
        before = connection.decoder.frames
        assert channel.receive(3.5) == []
        assert connection.decoder.frames > before
        channel.queue_declare(exclusive=True)


def test_a_secret_is_updated_on_a_live_connection(connection: Connection) -> None:
    connection.update_secret("guest", "because")
    connection.channel()


def test_confirms_that_do_not_come_are_a_timeout(channel: Channel) -> None:
    channel.confirm_select()
    channel._inbox.unconfirmed.published += 1  # as if one had been published that the broker never saw
    with pytest.raises(Timeout):
        channel.wait_for_confirms(0.05)
