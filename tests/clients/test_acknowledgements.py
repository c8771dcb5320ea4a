"""The acknowledgement guide's statements and examples, with pika; each on Warren and on RabbitMQ."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel
from pika.exceptions import ChannelClosedByBroker

from tests.support.brokers import RunningBroker
from tests.support.rawclient import RawClient

Connect = Callable[[], pika.BlockingConnection]
QUEUE = "acknowledgements"


@pytest.fixture
def connect(broker: RunningBroker) -> Iterator[Connect]:
    opened: list[pika.BlockingConnection] = []

    def another() -> pika.BlockingConnection:
        opened.append(pika.BlockingConnection(pika.URLParameters(broker.url)))
        return opened[-1]

    yield another
    for connection in opened:
        if connection.is_open:
            connection.close()


@pytest.fixture
def watcher(connect: Connect) -> Iterator[BlockingChannel]:
    """A channel beside the scene that counts what waits in the queue."""
    channel = connect().channel()
    channel.queue_delete(QUEUE)
    channel.queue_declare(QUEUE)
    channel.confirm_delivery()
    yield channel
    channel.queue_delete(QUEUE)


def fill(channel: BlockingChannel, count: int) -> None:
    for number in range(count):
        channel.basic_publish("", QUEUE, str(number + 1).encode())


def waiting(channel: BlockingChannel) -> int:
    return int(channel.queue_declare(QUEUE, passive=True).method.message_count)


def becomes(channel: BlockingChannel, count: int) -> None:
    """Soon `count` messages wait (what a closed channel held comes back a moment later)."""
    deadline = time.monotonic() + 60
    while waiting(channel) != count and time.monotonic() < deadline:
        time.sleep(0.02)
    assert waiting(channel) == count


def holding_5_to_8(connection: pika.BlockingConnection, watcher: BlockingChannel) -> BlockingChannel:
    """A channel that has eight deliveries, of which 5, 6, 7 and 8 are unacknowledged."""
    fill(watcher, 8)
    channel = connection.channel()
    for tag in range(1, 9):
        method, _, body = channel.basic_get(QUEUE)
        assert (method.delivery_tag, body) == (tag, str(tag).encode())
    channel.basic_ack(4, multiple=True)
    return channel


def test_acking_8_with_multiple_settles_5_to_8(connect: Connect, watcher: BlockingChannel) -> None:
    channel = holding_5_to_8(connect(), watcher)
    channel.basic_ack(8, multiple=True)
    channel.close()
    assert waiting(watcher) == 0


def test_acking_8_alone_leaves_5_6_and_7(connect: Connect, watcher: BlockingChannel) -> None:
    channel = holding_5_to_8(connect(), watcher)
    channel.basic_ack(8, multiple=False)
    channel.close()
    becomes(watcher, 3)
    left = [watcher.basic_get(QUEUE, auto_ack=True) for _ in range(3)]
    assert [(body, method.redelivered) for method, _, body in left] == [(b"5", True), (b"6", True), (b"7", True)]


def test_delivery_tags_grow_from_1_and_are_scoped_per_channel(connect: Connect, watcher: BlockingChannel) -> None:
    fill(watcher, 6)
    connection = connect()
    first, second = connection.channel(), connection.channel()
    tags = [(channel.basic_get(QUEUE)[0].delivery_tag) for channel in (first, first, second, first, second, second)]
    assert tags == [1, 2, 1, 3, 2, 3]


def test_a_tag_of_channel_a_acked_on_b_closes_b_only_and_stays_outstanding_on_a(
    connect: Connect, watcher: BlockingChannel
) -> None:
    fill(watcher, 1)
    connection = connect()
    a, b = connection.channel(), connection.channel()
    method, _, _ = a.basic_get(QUEUE)
    b.basic_ack(method.delivery_tag)
    with pytest.raises(ChannelClosedByBroker) as closed:
        b.queue_declare(QUEUE, passive=True)
    assert (closed.value.reply_code, closed.value.reply_text) == (406, "PRECONDITION_FAILED - unknown delivery tag 1")
    assert a.is_open and connection.is_open
    assert waiting(a) == 0, "still outstanding, so not back in the queue"
    a.basic_ack(method.delivery_tag)
    a.close()
    assert waiting(watcher) == 0


def test_a_positively_acknowledged_message_is_discarded(connect: Connect, watcher: BlockingChannel) -> None:
    fill(watcher, 1)
    connection = connect()
    channel = connection.channel()
    done: list[int] = []

    def on_delivery(at: BlockingChannel, method: pika.spec.Basic.Deliver, _: object, __: bytes) -> None:
        at.basic_ack(method.delivery_tag, multiple=False)
        done.append(method.delivery_tag)

    channel.basic_consume(QUEUE, on_delivery, auto_ack=False, consumer_tag="a-consumer-tag")
    while not done:
        connection.process_data_events(time_limit=5)
    connection.close()
    assert (done, waiting(watcher)) == ([1], 0)


@pytest.mark.parametrize("how", ["reject", "nack"])
def test_a_rejected_message_is_discarded_too(connect: Connect, watcher: BlockingChannel, how: str) -> None:
    fill(watcher, 1)
    channel = connect().channel()
    method, _, _ = channel.basic_get(QUEUE)
    getattr(channel, f"basic_{how}")(method.delivery_tag, requeue=False)
    channel.close()
    assert waiting(watcher) == 0


@pytest.mark.parametrize("how", ["reject", "nack"])
def test_a_message_rejected_with_requeue_comes_back_redelivered(
    connect: Connect, watcher: BlockingChannel, how: str
) -> None:
    fill(watcher, 2)
    channel = connect().channel()
    method, _, _ = channel.basic_get(QUEUE)
    getattr(channel, f"basic_{how}")(method.delivery_tag, requeue=True)
    again, _, body = channel.basic_get(QUEUE)
    assert (again.delivery_tag, again.redelivered, body) == (2, True, b"1")


def test_nack_settles_several_at_once_where_reject_cannot(connect: Connect, watcher: BlockingChannel) -> None:
    channel = holding_5_to_8(connect(), watcher)
    channel.basic_nack(7, multiple=True, requeue=True)
    becomes(watcher, 3)
    channel.basic_nack(8, requeue=False)
    assert [watcher.basic_get(QUEUE, auto_ack=True)[2] for _ in range(3)] == [b"5", b"6", b"7"]


def test_acknowledgement_modes_are_chosen_at_consume_and_at_get(connect: Connect, watcher: BlockingChannel) -> None:
    fill(watcher, 2)
    channel = connect().channel()
    channel.basic_get(QUEUE, auto_ack=True)
    channel.basic_get(QUEUE, auto_ack=False)
    channel.close()
    becomes(watcher, 1)
    assert watcher.basic_get(QUEUE, auto_ack=True)[2] == b"2"


def cut_off(broker: RunningBroker, count: int, no_ack: bool) -> None:
    """A consumer that receives `count` messages and whose connection then breaks."""
    with RawClient(broker.port).handshake().open(1) as client:
        client.send_method(1, "basic.consume", queue=QUEUE, consumer_tag="t", no_ack=no_ack)
        for _ in range(count):
            client.wait_message("basic.deliver")
        client.socket.close()


def test_with_manual_acknowledgement_a_cut_connection_loses_nothing(
    broker: RunningBroker, watcher: BlockingChannel
) -> None:
    fill(watcher, 3)
    cut_off(broker, 3, no_ack=False)
    becomes(watcher, 3)
    left = [watcher.basic_get(QUEUE, auto_ack=True) for _ in range(3)]
    assert [(body, method.redelivered) for method, _, body in left] == [(b"1", True), (b"2", True), (b"3", True)]


def test_with_automatic_acknowledgement_a_message_sent_is_a_message_gone(
    broker: RunningBroker, watcher: BlockingChannel
) -> None:
    fill(watcher, 3)
    cut_off(broker, 3, no_ack=True)
    watcher.connection.sleep(0.2)  # that nothing comes back takes time to see
    assert waiting(watcher) == 0


def test_prefetch_bounds_what_is_outstanding_with_manual_acknowledgement(
    broker: RunningBroker, watcher: BlockingChannel
) -> None:
    fill(watcher, 10)
    with RawClient(broker.port).handshake().open(1) as client:
        client.call(1, "basic.qos", prefetch_count=3)
        client.call(1, "basic.consume", queue=QUEUE, consumer_tag="t")
        client.quiet(0.3)
        assert sum(frame.name == "basic.deliver" for frame in client.frames) == 3
        client.send_method(1, "basic.ack", delivery_tag=2, multiple=True)
        for _ in range(2):
            client.wait_message("basic.deliver")
        client.finish()
    becomes(watcher, 8)


def test_automatic_acknowledgement_ignores_prefetch(broker: RunningBroker, watcher: BlockingChannel) -> None:
    fill(watcher, 50)
    with RawClient(broker.port).handshake().open(1) as client:
        client.call(1, "basic.qos", prefetch_count=1)
        client.send_method(1, "basic.consume", queue=QUEUE, consumer_tag="t", no_ack=True)
        tags = [client.wait_message("basic.deliver")[0].number("delivery_tag") for _ in range(50)]
    assert tags == list(range(1, 51))


def test_a_published_message_is_confirmed_exactly_once(broker: RunningBroker, watcher: BlockingChannel) -> None:
    with RawClient(broker.port).handshake().open(1) as client:
        client.call(1, "confirm.select")
        for number in range(20):
            client.publish(1, "", QUEUE if number % 2 else "nowhere-at-all", b"x", delivery_mode=1 + number % 2)
        pending = set(range(1, 21))
        while pending:
            ack = client.wait("basic.ack", "basic.nack")
            assert ack.name == "basic.ack"
            tag = ack.number("delivery_tag")
            settled = {each for each in pending if each <= tag} if ack.values["multiple"] else {tag}
            assert settled and settled <= pending
            pending -= settled
        client.frames.clear()
        client.quiet(0.2)
        assert client.frames == [], "no second confirm"
    assert waiting(watcher) == 10
