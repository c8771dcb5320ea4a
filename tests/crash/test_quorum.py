"""What a quorum queue knows of its messages is on disk before anything that was confirmed later."""

from __future__ import annotations

import time
from pathlib import Path

import pika
from pika.adapters.blocking_connection import BlockingChannel

from tests.support.brokers import RunningBroker, start_warren

LETTERS = {
    "x-dead-letter-strategy": "at-least-once",
    "x-overflow": "reject-publish",
    "x-dead-letter-exchange": "",
    "x-dead-letter-routing-key": "dead",
}


def channel_to(broker: RunningBroker, **arguments: str) -> BlockingChannel:
    channel = pika.BlockingConnection(pika.URLParameters(broker.url + "?heartbeat=0")).channel()
    channel.confirm_delivery()
    channel.queue_declare("q", durable=True, arguments={"x-queue-type": "quorum", **arguments})
    return channel


def killed(broker: RunningBroker, channel: BlockingChannel) -> None:
    """Killed, once something else was confirmed."""
    channel.queue_declare("other", durable=True)
    channel.basic_publish("", "other", b"later", pika.BasicProperties(delivery_mode=2))
    broker.process.kill()
    broker.process.wait()


def test_a_delivery_count_is_on_disk_before_a_later_confirm(tmp_path: Path) -> None:
    for before in (0, 3):
        with start_warren(data_dir=tmp_path, stop_cleanly=False) as broker:
            channel = channel_to(broker)
            if not before:
                channel.basic_publish("", "q", b"first")
            for failures in range(3):
                method, properties, _ = channel.basic_get("q")
                assert method is not None and properties.headers == {"x-delivery-count": before + failures}
                channel.basic_nack(method.delivery_tag)
            killed(broker, channel)


def test_a_dead_letter_is_in_its_queue_or_in_the_target_and_in_no_third_place(tmp_path: Path) -> None:
    with start_warren(data_dir=tmp_path, stop_cleanly=False) as broker:
        channel = channel_to(broker, **LETTERS)
        for number in range(20):
            channel.basic_publish("", "q", b"%d" % number, pika.BasicProperties(delivery_mode=2))
            method, _, _ = channel.basic_get("q")
            assert method is not None
            channel.basic_reject(method.delivery_tag, requeue=False)
        killed(broker, channel)
    with start_warren(data_dir=tmp_path, stop_cleanly=False) as broker:
        channel = channel_to(broker, **LETTERS)
        assert channel.basic_get("q")[0] is None
        assert count_of(broker, "q", "messages_dlx") == 20
        channel.queue_declare("dead", durable=True)
        end = time.monotonic() + 300
        while count_of(broker, "q", "messages_dlx"):
            assert time.monotonic() < end
        killed(broker, channel)
    with start_warren(data_dir=tmp_path) as broker:
        channel = channel_to(broker, **LETTERS)
        assert count_of(broker, "q", "messages") == 0
        found = [channel.basic_get("dead", auto_ack=True)[2] for _ in range(21)]
        assert found == [*(b"%d" % number for number in range(20)), None]


def count_of(broker: RunningBroker, queue: str, name: str) -> object:
    status, found = broker.http("GET", f"/api/queues/%2F/{queue}")
    assert status == 200 and isinstance(found, dict)
    return found[name]
