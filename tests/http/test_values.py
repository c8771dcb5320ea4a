"""The numbers of the HTTP API: after one and the same history RabbitMQ and Warren show the same values.

Shapes are compared elsewhere (``test_parity.py``). Here every number, text and list that the history determines is
compared as it is. RabbitMQ gathers its statistics every five seconds: it is asked until it has caught up.
"""

from __future__ import annotations

import json
import time
from typing import Any

import pika
import pytest

from tests.http.beside import ALL
from tests.support.brokers import RunningBroker, rabbitmq, warren  # noqa: F401 (fixtures)

USER, VHOST = "v-values", "v-values"
PATIENCE = 240  # seconds that RabbitMQ may take to gather its statistics on a busy machine
QUEUE = (
    "name vhost type durable auto_delete exclusive arguments state policy consumers exclusive_consumer_tag "
    "single_active_consumer_tag messages messages_ready messages_unacknowledged message_bytes message_bytes_ready "
    "message_bytes_unacknowledged message_stats"
).split()
EXCHANGE = "name vhost type durable auto_delete internal arguments user_who_performed_action message_stats".split()
CHANNEL = (
    "number user vhost confirm transactional consumer_count prefetch_count global_prefetch_count state "
    "messages_unacknowledged messages_unconfirmed messages_uncommitted acks_uncommitted message_stats"
).split()
CONNECTION = "user vhost channels channel_max frame_max timeout protocol ssl state type auth_mechanism".split()
CONSUMER = "consumer_tag ack_required active activity_status exclusive prefetch_count arguments queue".split()
VHOST_KEYS = "name tracing messages messages_ready messages_unacknowledged message_stats".split()
NOT_COUNTED = {"confirm", "return_unroutable", "drop_unroutable"}  # by a vhost; its channels do


def prepared(broker: RunningBroker) -> None:
    broker.http("DELETE", f"/api/vhosts/{VHOST}")
    broker.http("PUT", f"/api/vhosts/{VHOST}")
    broker.http("PUT", f"/api/users/{USER}", {"password": "secret", "tags": "management"})
    broker.http("PUT", f"/api/permissions/{VHOST}/{USER}", ALL)
    broker.http("PUT", f"/api/permissions/{VHOST}/guest", ALL)


def connected(broker: RunningBroker) -> pika.BlockingConnection:
    return pika.BlockingConnection(
        pika.ConnectionParameters(
            port=broker.port, virtual_host=VHOST, credentials=pika.PlainCredentials(USER, "secret"), heartbeat=0
        )
    )


def consume(channel: Any, queue: str, count: int, tag: str, **more: Any) -> list[int]:
    """Delivery tags of as many messages; the consumer stays."""
    tags: list[int] = []
    channel.basic_consume(queue, lambda _, got, *__: tags.append(got.delivery_tag), consumer_tag=tag, **more)
    while len(tags) < count:
        channel.connection.process_data_events(1)
    return tags


def lived(broker: RunningBroker) -> pika.BlockingConnection:
    """The history. Its connection stays, so that channels and consumers can be looked at."""
    connection = connected(broker)
    publisher, getter, manual, automatic, committing = (connection.channel() for _ in range(5))
    publisher.exchange_declare("v.topic", "topic", durable=True, arguments={"alternate-exchange": "v.other"})
    publisher.exchange_declare("v.other", "fanout", auto_delete=False)
    publisher.queue_declare("v.get", durable=True, arguments={"x-max-length": 100})
    publisher.queue_declare("v.manual", arguments={"x-message-ttl": 3_600_000})
    publisher.queue_declare("v.automatic", auto_delete=True)
    publisher.queue_declare("v.idle", durable=True)
    publisher.queue_bind("v.manual", "v.topic", "a.*")
    publisher.queue_bind("v.get", "v.topic", "a.b")
    publisher.queue_bind("v.idle", "v.other")
    publisher.confirm_delivery()
    persistent = pika.BasicProperties(delivery_mode=2)
    for number in range(6):
        publisher.basic_publish("v.topic", "a.b", b"x" * number, persistent if number % 2 else None)
    for _ in range(4):
        publisher.basic_publish("", "v.automatic", b"12345")
    for _ in range(3):
        publisher.basic_publish("amq.direct", "nobody", b"dropped")
    publisher.basic_publish("v.topic", "elsewhere", b"by the alternate exchange")
    with pytest.raises(pika.exceptions.UnroutableError):
        publisher.basic_publish("amq.direct", "nobody", b"returned", mandatory=True)
    for requeue in (True, False):
        getter.basic_nack(getter.basic_get("v.get")[0].delivery_tag, requeue=requeue)
    getter.basic_ack(getter.basic_get("v.get")[0].delivery_tag)
    getter.basic_get("v.get", auto_ack=True)
    getter.basic_get("v.get")  # stays outstanding
    for _ in range(2):
        getter.basic_get("v.idle", auto_ack=True)  # one, and then none
    manual.basic_qos(prefetch_count=4)
    tags = consume(manual, "v.manual", 4, "by hand", arguments={"x-priority": 3})
    manual.basic_reject(tags[1], requeue=True)  # comes again at once
    manual.basic_ack(tags[0])
    while manual.connection.process_data_events(0) or len(tags) < 6:
        manual.connection.process_data_events(1)
    consume(automatic, "v.automatic", 4, "automatic", auto_ack=True)
    committing.tx_select()
    for _ in range(3):
        committing.basic_publish("", "v.idle", b"committed")
    committing.tx_commit()
    committing.basic_publish("", "v.idle", b"not yet")
    return connection


def counted(value: Any) -> Any:
    """Without rates, which depend on when one asks."""
    if isinstance(value, dict):
        return {key: counted(one) for key, one in value.items() if not key.endswith("_details")}
    return [counted(one) for one in value] if isinstance(value, list) else value


def told(broker: RunningBroker, path: str, keys: list[str], user: str = "guest:guest") -> Any:
    status, found = broker.http("GET", f"/api{path}", user=user)
    assert status == 200, (path, found)
    objects: list[Any] = found if isinstance(found, list) else [found]
    rows = [{key: counted(one.get(key)) for key in keys} for one in objects]
    for row in rows:
        row["message_stats"] = {
            key: value
            for key, value in (row.get("message_stats") or {}).items()
            if not (path.startswith("/vhosts") and key in NOT_COUNTED)
        }
    return sorted(rows, key=json.dumps)


def seen(broker: RunningBroker) -> dict[str, Any]:
    return {
        "queues": told(broker, f"/queues/{VHOST}", QUEUE),
        "exchanges": [
            one for one in told(broker, f"/exchanges/{VHOST}", EXCHANGE) if one["name"]
        ],  # RabbitMQ counts as routed by the default exchange what has no queue there
        "channels": told(broker, f"/vhosts/{VHOST}/channels", CHANNEL),
        "connections": told(broker, f"/vhosts/{VHOST}/connections", CONNECTION),
        "consumers": told(broker, f"/consumers/{VHOST}", CONSUMER),
        "bindings": told(broker, f"/bindings/{VHOST}", "source destination routing_key arguments".split()),
        "vhost": told(broker, f"/vhosts/{VHOST}", VHOST_KEYS),
        "totals": told(broker, "/overview", ["queue_totals"], f"{USER}:secret"),
    }


def test_the_same_history_gives_the_same_numbers(
    rabbitmq: RunningBroker,  # noqa: F811
    warren: RunningBroker,  # noqa: F811
) -> None:
    connections = []
    try:
        for broker in (rabbitmq, warren):
            prepared(broker)
            connections.append(lived(broker))
        deadline = time.monotonic() + PATIENCE
        while (theirs := seen(rabbitmq)) != (ours := seen(warren)) and time.monotonic() < deadline:
            time.sleep(1)
        for name in theirs:
            assert ours[name] == theirs[name]
    finally:
        for connection in connections:
            connection.close()
        for broker in (rabbitmq, warren):
            broker.http("DELETE", f"/api/vhosts/{VHOST}")
            broker.http("DELETE", f"/api/users/{USER}")
