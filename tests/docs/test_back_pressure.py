"""What the guides say of publishers that are too fast and of consumers that do not keep up."""

from __future__ import annotations

import time

from tests.support.rawclient import RawClient, publish
from warrenmq.testing import Broker, FaultyDisk

CHUNK = b"x" * 32 * 1024
MEBIBYTE = 1024 * 1024


def send_until_stuck(client: RawClient, data: bytes, limit: int) -> int:
    """Sends `data` again and again until the socket takes no more for half a second; how much it took."""
    client.socket.settimeout(0.5)
    taken = 0
    try:
        while taken < limit:
            taken += client.socket.send(data[taken % len(data) :])
    except TimeoutError:
        pass
    return taken


def test_a_publisher_faster_than_the_log_is_no_longer_read_while_others_are_served() -> None:
    disk = FaultyDisk()
    with (
        Broker(disk=disk) as broker,
        RawClient(broker.port).handshake().open(1) as publisher,
        RawClient(broker.port).handshake().open(1) as other,
    ):
        publisher.call(1, "queue.declare", queue="q", durable=True)
        publisher.call(1, "confirm.select")
        mine = other.call(1, "queue.declare", exclusive=True).text("queue")
        disk.hold()
        try:
            message = publish(1, "", "q", CHUNK, delivery_mode=2)
            taken = send_until_stuck(publisher, message, 200 * MEBIBYTE)
            assert taken < 100 * MEBIBYTE, "the broker read on although nothing could be written"
            other.publish(1, "", mine, b"transient")
            assert other.call(1, "basic.get", queue=mine).name == "basic.get-ok"
        finally:
            disk.release()
        publisher.socket.settimeout(60)
        publisher.send(message[taken % len(message) :])
        last = -(-taken // len(message))
        acked = 0
        while acked < last:
            acked = max(acked, publisher.wait("basic.ack").number("delivery_tag"))


def test_a_consumer_that_does_not_read_is_held_back_by_tcp_and_not_by_the_brokers_memory() -> None:
    with Broker() as broker, RawClient(broker.port).handshake().open(1) as publisher:
        publisher.call(1, "queue.declare", queue="q")
        publisher.call(1, "confirm.select")
        for _ in range(2000):
            publisher.publish(1, "", "q", CHUNK)
        acked = 0
        while acked < 2000:
            acked = publisher.wait("basic.ack").number("delivery_tag")
        with RawClient(broker.port).handshake().open(1) as consumer:
            consumer.send_method(1, "basic.consume", queue="q", consumer_tag="t", no_ack=True)
            left, before, deadline = 2000, -1, time.monotonic() + 60
            while left != before and time.monotonic() < deadline:  # until it has sent all it will
                time.sleep(0.2)
                before, left = left, publisher.call(1, "queue.declare", queue="q", passive=True).number("message_count")
            assert left > 1000, f"{2000 - left} messages of 32 KiB are buffered for somebody who does not read"
