"""One scripted history of messages, the same on either broker, whose numbers are compared in ``test_numbers.py``.

Plain and mandatory publishes, confirms and nacks, gets, consumers with and without acks, what goes back, several
queues, exchange-to-exchange bindings, an alternate exchange, dead letters of every cause, transactions, direct replies,
things that are deleted, and what the HTTP API does itself.
"""

from __future__ import annotations

import contextlib
import time
from typing import Any

import pika
from pika.adapters.blocking_connection import BlockingChannel
from pika.exceptions import NackError, UnroutableError

from tests.support.brokers import RunningBroker

VHOST = "numbers"
EXCHANGES: dict[str, tuple[str, dict[str, Any]]] = {
    "fan": ("fanout", {}),
    "inner": ("topic", {}),
    "ae": ("fanout", {}),
    "with-ae": ("direct", {"alternate-exchange": "ae"}),
    "dlx": ("fanout", {}),
    "gone": ("direct", {}),
}
QUEUES: dict[str, dict[str, Any]] = {
    "a": {},
    "b": {},
    "c": {},
    "i": {},
    "aeq": {},
    "dead": {},
    "empty": {},
    "dying": {"x-dead-letter-exchange": "dlx"},
    "brief": {"x-dead-letter-exchange": "dlx", "x-message-ttl": 0},
    "newest": {"x-dead-letter-exchange": "dlx", "x-max-length": 2},
    "short": {"x-max-length": 2, "x-overflow": "reject-publish"},
    "short-letters": {"x-max-length": 1, "x-overflow": "reject-publish-dlx", "x-dead-letter-exchange": "dlx"},
    "nowhere-letters": {"x-dead-letter-exchange": "no-such", "x-max-length": 1},
    "gone-queue": {},
}


def live(broker: RunningBroker) -> pika.BlockingConnection:
    """All of it; the connection stays open, so that its channels can be looked at."""
    assert broker.http("PUT", f"/api/vhosts/{VHOST}", {})[0] == 201
    everything = {"configure": ".*", "write": ".*", "read": ".*"}
    assert broker.http("PUT", f"/api/permissions/{VHOST}/guest", everything)[0] in (201, 204)
    connection = pika.BlockingConnection(pika.ConnectionParameters(broker.host, broker.port, virtual_host=VHOST))
    declaring = connection.channel()
    _declare(declaring)
    _publish(connection.channel())
    _publish_confirmed(connection.channel())
    _get(connection.channel())
    _consume(connection)
    _consume_again(connection)
    _forget(broker, connection, declaring)
    _commit(connection.channel())
    _reply(connection)
    _end_a_channel(connection)
    _by_http(broker)
    return connection


def _declare(channel: BlockingChannel) -> None:
    for name, (kind, arguments) in EXCHANGES.items():
        channel.exchange_declare(name, kind, arguments=arguments)
    for name, arguments in QUEUES.items():
        channel.queue_declare(name, arguments=arguments)
    for name in ("a", "b", "c"):
        channel.queue_bind(name, "fan")
    channel.exchange_bind("inner", "fan")
    channel.queue_bind("i", "inner", "#")
    channel.queue_bind("aeq", "ae")
    channel.queue_bind("dead", "dlx")
    channel.queue_bind("gone-queue", "gone", "k")
    channel.queue_declare("a")  # is there already


def _arrived(channel: BlockingChannel, queue: str) -> None:
    """Whatever was published on this channel is in the queue, where other channels find it."""
    channel.queue_declare(queue, passive=True)


def _several(channel: BlockingChannel, count: int, exchange: str, key: str, mandatory: bool = False) -> None:
    for _ in range(count):
        with contextlib.suppress(NackError, UnroutableError):
            channel.basic_publish(exchange, key, b"x" * count, mandatory=mandatory)


def _publish(channel: BlockingChannel) -> None:
    _several(channel, 10, "", "a")
    _several(channel, 10, "fan", "k")
    _several(channel, 3, "fan", "", mandatory=True)
    _several(channel, 4, "", "nowhere")
    _several(channel, 5, "", "nowhere", mandatory=True)
    _several(channel, 6, "amq.direct", "nobody", mandatory=True)
    _several(channel, 6, "with-ae", "other")
    _several(channel, 2, "inner", "other")
    _several(channel, 7, "gone", "k")
    _several(channel, 3, "", "brief")
    _several(channel, 5, "", "newest")
    _several(channel, 3, "", "nowhere-letters")
    copied = pika.BasicProperties(headers={"CC": ["b", "nowhere", "nowhere else"]})
    channel.basic_publish("", "a", b"copied", copied)
    for name in QUEUES:
        _arrived(channel, name)


def _publish_confirmed(channel: BlockingChannel) -> None:
    channel.confirm_delivery()
    _several(channel, 8, "", "b")
    _several(channel, 4, "", "short")
    _several(channel, 3, "", "short-letters")
    _several(channel, 2, "", "nowhere", mandatory=True)
    _several(channel, 1, "", "nowhere")
    _several(channel, 5, "", "dying")


def _get(channel: BlockingChannel) -> None:
    for requeue in (None, True, None):
        method, _, _ = channel.basic_get("a")
        assert method is not None
        if requeue is None:
            channel.basic_ack(method.delivery_tag)
        else:
            channel.basic_nack(method.delivery_tag, requeue=requeue)
    for queue, count in (("a", 3), ("aeq", 2), ("empty", 4)):
        for _ in range(count):
            channel.basic_get(queue, auto_ack=True)
    for _ in range(2):
        method, _, _ = channel.basic_get("dying")
        assert method is not None
        channel.basic_reject(method.delivery_tag, requeue=False)


def _taken(connection: pika.BlockingConnection, channel: BlockingChannel, queue: str, count: int, auto: bool) -> int:
    """Consume so many, and say the tag of the last."""
    tags: list[int] = []
    consumer = channel.basic_consume(queue, lambda _, method, *rest: tags.append(method.delivery_tag), auto_ack=auto)
    while len(tags) < count:
        connection.process_data_events(0.1)
    channel.basic_cancel(consumer)
    return tags[-1]


def _consume(connection: pika.BlockingConnection) -> None:
    _taken(connection, connection.channel(), "b", 22, True)
    channel = connection.channel()
    last = _taken(connection, channel, "c", 13, False)
    channel.basic_ack(last - 10, multiple=True)
    channel.basic_nack(last, multiple=True, requeue=False)


def _consume_again(connection: pika.BlockingConnection) -> None:
    channel = connection.channel()
    channel.basic_qos(prefetch_count=3)
    for settle in (channel.basic_nack, channel.basic_ack, channel.basic_ack):
        last = _taken(connection, channel, "i", 3, False)
        settle(last, multiple=True)


def _forget(broker: RunningBroker, connection: pika.BlockingConnection, declaring: BlockingChannel) -> None:
    """What a queue and an exchange counted that are gone stays in the sums, where RabbitMQ had gathered it."""
    channel = connection.channel()
    _taken(connection, channel, "gone-queue", 7, True)
    channel.basic_get("gone-queue")
    for path, name in (("queues", "gone-queue"), ("exchanges", "gone")):
        wanted = {"publish", "deliver_no_ack", "get_empty"} if path == "queues" else {"publish_in", "publish_out"}
        until = time.monotonic() + 60
        while time.monotonic() < until:
            _, shown = broker.http("GET", f"/api/{path}/{VHOST}/{name}")
            stats = shown.get("message_stats", {}) if isinstance(shown, dict) else {}
            if all(stats.get(one) for one in wanted):
                break
            connection.process_data_events(0.2)
    declaring.queue_delete("gone-queue")
    declaring.exchange_delete("gone")


def _commit(channel: BlockingChannel) -> None:
    _several(channel, 3, "", "a")
    channel.tx_select()
    _several(channel, 3, "", "a")
    _several(channel, 1, "", "nowhere")
    method, _, _ = channel.basic_get("a")
    assert method is not None
    channel.basic_ack(method.delivery_tag)
    channel.tx_commit()
    _several(channel, 2, "", "a")
    channel.tx_rollback()


def _reply(connection: pika.BlockingConnection) -> None:
    asking, answering = connection.channel(), connection.channel()
    answers: list[bytes] = []
    asking.basic_consume("amq.rabbitmq.reply-to", lambda *got: answers.append(got[3]), auto_ack=True)
    asking.basic_publish("", "empty", b"?", pika.BasicProperties(reply_to="amq.rabbitmq.reply-to"))
    _arrived(asking, "empty")
    _, properties, _ = answering.basic_get("empty", auto_ack=True)
    assert properties is not None and properties.reply_to is not None
    answering.basic_publish("", properties.reply_to, b"!")
    while not answers:
        connection.process_data_events(0.1)


def _end_a_channel(connection: pika.BlockingConnection) -> None:
    channel = connection.channel()
    channel.confirm_delivery()
    _several(channel, 3, "", "a")
    _several(channel, 2, "", "nowhere", mandatory=True)
    channel.close()


def _by_http(broker: RunningBroker) -> None:
    message = {"routing_key": "a", "properties": {}, "payload": "x", "payload_encoding": "string"}
    for key in ("a", "a", "nowhere"):
        path = f"/api/exchanges/{VHOST}/amq.default/publish"
        assert broker.http("POST", path, {**message, "routing_key": key})[0] == 200
    for ackmode in ("ack_requeue_true", "ack_requeue_false", "reject_requeue_false"):
        wanted = {"count": 1, "ackmode": ackmode, "encoding": "auto"}
        assert broker.http("POST", f"/api/queues/{VHOST}/a/get", wanted)[0] == 200
