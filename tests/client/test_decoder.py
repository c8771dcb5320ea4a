"""What the socket gave becomes messages, events and replies, however it was cut."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warrenmq.client.decoder import Decoder, Inbox
from warrenmq.client.messages import Acked, Cancelled, Message, Nacked, Returned
from warrenmq.wire.content import Properties, content_frames, encode_header, frame
from warrenmq.wire.methods import Method, method_frame
from warrenmq.wire.replies import AmqpError

pytestmark = pytest.mark.pure


def delivery(tag: int, body: bytes, channel: int = 1, key: str = "key", frame_max: int = 4096) -> bytes:
    deliver = method_frame(
        channel,
        "basic.deliver",
        consumer_tag="ctag",
        delivery_tag=tag,
        redelivered=tag % 2 == 1,
        exchange="é",
        routing_key=key,
    )
    return deliver + content_frames(channel, encode_header(Properties(message_id=str(tag)), len(body)), body, frame_max)


def content(channel: int, name: str, body: bytes, **values: object) -> bytes:
    header = encode_header(Properties(), len(body))
    return method_frame(channel, name, **values) + content_frames(channel, header, body, 4096)


def decoder(*channels: int) -> tuple[Decoder, list[Inbox]]:
    made = Decoder()
    return made, [made.open(number) for number in channels]


def facts(message: Message) -> tuple[object, ...]:
    return (
        message.delivery_tag,
        message.redelivered,
        message.exchange,
        message.routing_key,
        message.consumer_tag,
        message.body,
        message.properties.message_id,
    )


@given(st.lists(st.tuples(st.binary(max_size=30), st.sampled_from(["a", "b"])), max_size=5), st.integers(1, 60))
def test_deliveries_are_the_same_whole_and_in_pieces(given: list[tuple[bytes, str]], step: int) -> None:
    stream = b"".join([delivery(tag, body, 1, key, 20) for tag, (body, key) in enumerate(given)])
    expected = [(tag, tag % 2 == 1, "é", key, "ctag", body, str(tag)) for tag, (body, key) in enumerate(given)]
    for size in (len(stream) + 1, step, 1):
        some, (inbox,) = decoder(1)
        for at in range(0, len(stream), size):
            some.feed(stream[at : at + size])
        assert [facts(message) for message in inbox.messages] == expected


def test_garbage_behind_a_delivery_does_not_spoil_it() -> None:
    some, (inbox,) = decoder(1)
    with pytest.raises(AmqpError):
        some.feed(delivery(1, b"body") + frame(7, 1, b"garbage"))
    assert [message.body for message in inbox.messages] == [b"body"]


def test_channels_may_interleave_their_frames() -> None:
    first, second = delivery(1, b"x" * 30, 1, frame_max=18), delivery(2, b"y" * 30, 2, frame_max=18)
    some, (one, two) = decoder(1, 2)
    cut = len(method_frame(1, "basic.deliver", consumer_tag="ctag", exchange="é", routing_key="key"))
    for at in (0, cut):
        stop = cut if at == 0 else len(first)
        some.feed(first[at:stop] + second[at:stop])
    assert [message.body for message in one.messages] == [b"x" * 30]
    assert [message.body for message in two.messages] == [b"y" * 30]


def test_confirms_returns_and_cancellations_are_events_in_the_order_they_came() -> None:
    some, (inbox,) = decoder(1)
    inbox.unconfirmed.published = 9
    some.feed(
        content(1, "basic.return", b"body", reply_code=312, reply_text="NO_ROUTE", exchange="e", routing_key="k")
        + method_frame(1, "basic.ack", delivery_tag=1)
        + method_frame(1, "basic.nack", delivery_tag=4, multiple=True)
        + method_frame(1, "basic.cancel", consumer_tag="c")
    )
    returned, *others = inbox.events
    assert isinstance(returned, Returned)
    assert (returned.reply_code, returned.reply_text, returned.exchange, returned.routing_key, returned.body) == (
        312,
        "NO_ROUTE",
        "e",
        "k",
        b"body",
    )
    assert others == [Acked(1, False), Nacked(4, True), Cancelled("c")]
    assert inbox.unconfirmed.nacked == [2, 3, 4]
    assert inbox.unconfirmed.count == 5


def test_answers_notices_and_channel_zero_are_kept_apart() -> None:
    some, (inbox,) = decoder(1)
    some.feed(
        method_frame(1, "queue.declare-ok", queue="q", message_count=3)
        + content(1, "basic.get-ok", b"got", delivery_tag=8, message_count=2, exchange="e", routing_key="k")
        + method_frame(1, "channel.close", reply_code=404)
        + method_frame(0, "connection.blocked", reason="low on memory")
        + frame(8, 0, b"")
    )
    declared, got = inbox.replies
    assert isinstance(declared, Method) and declared.int("message_count") == 3
    assert isinstance(got, Message) and (got.delivery_tag, got.body, got.message_count) == (8, b"got", 2)
    assert [method.name for method in inbox.notices] == ["channel.close"]
    assert [method.name for method in some.control] == ["connection.blocked"]
    assert some.noticed


def test_what_comes_on_a_channel_nobody_listens_on_is_dropped() -> None:
    some, (inbox,) = decoder(1)
    some.feed(delivery(1, b"mine", 1) + delivery(2, b"not mine", 2) + delivery(3, b"mine", 1))
    some.close(1)
    some.feed(delivery(4, b"late", 1))
    assert [message.body for message in inbox.messages] == [b"mine", b"mine"]


@pytest.mark.parametrize(
    ("octets", "code"),
    [
        (frame(3, 1, b"body without a method"), 505),
        (method_frame(1, "basic.deliver") + method_frame(1, "basic.ack"), 505),
        (method_frame(1, "basic.deliver")[:-1] + b"\x00", 501),
        (frame(1, 1, b"\x00\x3c\x00\x3c\x05ctag"), 501),
        (frame(1, 1, b"\x00\x3c\x00\x3c\x01c" + b"\x00" * 9 + b"\x01"), 501),
        (frame(1, 1, b"\x00"), 501),
        (content(1, "basic.publish", b""), 503),
        (method_frame(1, "basic.deliver") + frame(2, 1, b"\x00" * 12), 541),
        (method_frame(1, "basic.deliver") + content_frames(1, encode_header(Properties(), 2), b"longer", 0), 501),
        (b"\x03\x00\x01\x00\x00\x20\x00", 501),
    ],
)
def test_octets_that_make_no_sense_are_refused(octets: bytes, code: int) -> None:
    some, _ = decoder(1)
    some.frame_max = 4096
    with pytest.raises(AmqpError) as caught:
        some.feed(octets)
    assert caught.value.code == code
