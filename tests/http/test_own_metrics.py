"""What RabbitMQ 3.10 does not tell: sizes, times of confirms and syncs, which limit was reached."""

from __future__ import annotations

from collections.abc import Iterator

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel
from prometheus_client.parser import text_string_to_metric_families

from tests.http.conftest import Api

Samples = list[tuple[dict[str, str], float]]


def metrics(api: Api, name: str, path: str = "/metrics") -> Samples:
    text = api.client.get(f"{api.broker.http_url}{path}").text
    families = list(text_string_to_metric_families(text))
    return [(dict(one.labels), one.value) for family in families for one in family.samples if one.name == name]


def total(api: Api, name: str) -> float:
    return totals(api, name)[0]


def totals(api: Api, *names: str) -> list[float]:
    """Of one answer, so that nothing happens between them."""
    families = list(text_string_to_metric_families(api.client.get(f"{api.broker.http_url}/metrics").text))
    found = [[one.value for family in families for one in family.samples if one.name == name] for name in names]
    assert all(found), names
    return [sum(values) for values in found]


@pytest.fixture
def channel(api: Api) -> Iterator[BlockingChannel]:
    with pika.BlockingConnection(pika.URLParameters(api.broker.url)) as connection:
        yield connection.channel()


def test_what_is_published_is_counted_by_size(api: Api, channel: BlockingChannel) -> None:
    for size in (0, 100, 101, 20_000_000):
        channel.basic_publish("", "nowhere", b"x" * size)
    channel.queue_declare("", exclusive=True)  # all has come
    found = metrics(api, "rabbitmq_message_size_bytes_bucket")
    assert {labels["protocol"] for labels, _ in found} == {"amqp091"}
    assert {labels["le"]: value for labels, value in found} == {
        "100": 2,
        **dict.fromkeys(("1000", "10000", "100000", "1000000", "10000000"), 3),
        **dict.fromkeys(("50000000", "100000000", "+Inf"), 4),
    }
    assert total(api, "rabbitmq_message_size_bytes_sum") == 20_000_201
    assert total(api, "rabbitmq_message_size_bytes_count") == 4


def test_a_confirm_that_waited_for_the_disk_and_the_sync_it_waited_for_are_timed(
    api: Api, channel: BlockingChannel
) -> None:
    names = ("warren_confirm_seconds_count", "warren_log_sync_seconds_count", "rabbitmq_io_sync_ops_total")
    before = totals(api, *names)
    written = total(api, "rabbitmq_io_write_bytes_total")
    channel.queue_declare("timed", durable=True)
    channel.confirm_delivery()
    for _ in range(3):
        channel.basic_publish("", "timed", b"x" * 1000, pika.BasicProperties(delivery_mode=2))
    channel.basic_publish("", "timed", b"transient")  # waits for nothing
    confirmed, synced, operations = (now - then for now, then in zip(totals(api, *names), before, strict=True))
    assert confirmed == 3 and synced == operations >= 3
    assert total(api, "rabbitmq_io_write_bytes_total") - written > 3000
    took = total(api, "warren_log_sync_seconds_sum")
    assert 0 < took == total(api, "rabbitmq_io_sync_time_seconds_total")
    assert total(api, "warren_confirm_seconds_sum") > 0


def test_what_a_limit_dropped_or_refused_is_told_by_which_limit(api: Api, channel: BlockingChannel) -> None:
    limits = {"long": {"x-max-length": 2}, "heavy": {"x-max-length-bytes": 25}}
    limits["both"] = limits["long"] | limits["heavy"]
    for name, arguments in limits.items():
        for overflow in ("drop-head", "reject-publish"):
            queue = f"{name}-{overflow}"
            channel.queue_declare(queue, arguments={**arguments, "x-overflow": overflow})
            for size in (10, 10, 10, 20):
                channel.basic_publish("", queue, b"x" * size)
            channel.queue_declare(queue, passive=True)
    found = metrics(api, "warren_queue_messages_over_limit_total", "/metrics/per-object")
    assert {(labels["queue"], labels["limit"]): value for labels, value in found} == {
        ("long-drop-head", "max-length"): 2,
        ("long-reject-publish", "max-length"): 2,
        ("heavy-drop-head", "max-length-bytes"): 3,
        ("heavy-reject-publish", "max-length-bytes"): 2,
        ("both-drop-head", "max-length"): 2,
        ("both-drop-head", "max-length-bytes"): 1,
        ("both-reject-publish", "max-length"): 2,
    }


def test_a_letter_that_nobody_takes_is_counted_once_at_the_queue_that_gave_it_up(
    api: Api, channel: BlockingChannel
) -> None:
    """There is no such exchange; it has no binding; its only queue is full."""
    before = total(api, "warren_dead_letters_lost_total")
    channel.exchange_declare("unbound", "fanout")
    channel.queue_declare("full", arguments={"x-max-length": 0, "x-overflow": "reject-publish"})
    for name, exchange, key in (("to-none", "none", ""), ("to-unbound", "unbound", ""), ("to-full", "", "full")):
        letters = {"x-dead-letter-exchange": exchange, "x-dead-letter-routing-key": key}
        channel.queue_declare(name, arguments={"x-max-length": 1, **letters})
        for _ in range(4):
            channel.basic_publish("", name, b"x")
        channel.queue_declare(name, passive=True)
    channel.queue_declare("kept", arguments={"x-max-length": 1, "x-dead-letter-exchange": "amq.fanout"})
    channel.queue_declare("taker")
    channel.queue_bind("taker", "amq.fanout")
    for _ in range(4):
        channel.basic_publish("", "kept", b"x")
    assert channel.queue_declare("kept", passive=True).method.message_count == 1
    found = metrics(api, "warren_queue_dead_letters_lost_total", "/metrics/per-object")
    assert channel.queue_declare("full", passive=True).method.message_count == 0
    lost = {"to-none": 3, "to-unbound": 3, "to-full": 3}
    assert {labels["queue"]: value for labels, value in found} == lost
    assert total(api, "warren_dead_letters_lost_total") == before + sum(lost.values())
