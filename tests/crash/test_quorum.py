"""What a quorum queue knows of its messages is on disk before anything that was confirmed later."""

from __future__ import annotations

from pathlib import Path

import pika

from tests.support.brokers import RunningBroker, start_warren


def channel_to(broker: RunningBroker) -> pika.adapters.blocking_connection.BlockingChannel:
    channel = pika.BlockingConnection(pika.URLParameters(broker.url + "?heartbeat=0")).channel()
    channel.confirm_delivery()
    channel.queue_declare("q", durable=True, arguments={"x-queue-type": "quorum"})
    return channel


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
            channel.queue_declare("other", durable=True)
            channel.basic_publish("", "other", b"later", pika.BasicProperties(delivery_mode=2))
            broker.process.kill()
            broker.process.wait()
