"""The six RabbitMQ tutorials with pika, as a reader of them would write them."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel
from pika.spec import Basic, BasicProperties

from tests.support.brokers import RunningBroker


@pytest.fixture
def connection(broker: RunningBroker) -> Iterator[pika.BlockingConnection]:
    with pika.BlockingConnection(pika.URLParameters(broker.url)) as opened:
        yield opened


def collect(channel: BlockingChannel, queue: str, count: int, auto_ack: bool = True) -> list[str]:
    """The next `count` bodies; a tutorial's callback, with an end."""
    found: list[str] = []
    for method, _, body in channel.consume(queue, auto_ack=auto_ack, inactivity_timeout=60):
        assert method is not None, f"only {found} came"
        found.append(body.decode())
        if not auto_ack:
            channel.basic_ack(method.delivery_tag)
        if len(found) == count:
            break
    channel.cancel()
    return found


def test_hello_world(connection: pika.BlockingConnection) -> None:
    channel = connection.channel()
    channel.queue_delete("hello")
    channel.queue_declare(queue="hello")
    channel.basic_publish(exchange="", routing_key="hello", body="Hello World!")
    assert collect(connection.channel(), "hello", 1) == ["Hello World!"]
    channel.queue_delete("hello")


def test_work_queues_share_the_work_and_lose_none_when_a_worker_dies(
    broker: RunningBroker, connection: pika.BlockingConnection
) -> None:
    channel = connection.channel()
    channel.queue_delete("task_queue")
    channel.queue_declare(queue="task_queue", durable=True)
    worker = pika.BlockingConnection(pika.URLParameters(broker.url))
    doomed = worker.channel()
    doomed.basic_qos(prefetch_count=1)
    taken: list[str] = []
    doomed.basic_consume("task_queue", lambda _, __, ___, body: taken.append(body.decode()))
    steady = connection.channel()
    steady.basic_qos(prefetch_count=1)
    done: list[tuple[str, bool]] = []

    def on_task(at: BlockingChannel, method: Basic.Deliver, _: BasicProperties, body: bytes) -> None:
        done.append((body.decode(), method.redelivered))
        at.basic_ack(delivery_tag=method.delivery_tag)

    for number in range(6):
        channel.basic_publish(
            exchange="",
            routing_key="task_queue",
            body=f"task {number}",
            properties=BasicProperties(delivery_mode=pika.DeliveryMode.Persistent.value),
        )
    while not taken:
        worker.process_data_events(time_limit=1)
    steady.basic_consume(queue="task_queue", on_message_callback=on_task)
    while len(done) < 5:
        connection.process_data_events(time_limit=1)
    assert taken == ["task 0"], "prefetch 1: it holds one task however long it takes"
    worker.close()  # without having acknowledged
    while len(done) < 6:
        connection.process_data_events(time_limit=1)
    assert done == [(f"task {number}", False) for number in range(1, 6)] + [("task 0", True)]
    channel.queue_delete("task_queue")


def test_publish_subscribe_reaches_every_subscriber(connection: pika.BlockingConnection) -> None:
    channel = connection.channel()
    channel.exchange_declare(exchange="logs", exchange_type="fanout")
    queues = []
    for _ in range(2):
        queues.append(channel.queue_declare(queue="", exclusive=True).method.queue)
        channel.queue_bind(exchange="logs", queue=queues[-1])
    channel.basic_publish(exchange="logs", routing_key="", body="info: Hello World!")
    for queue in queues:
        assert collect(channel, queue, 1) == ["info: Hello World!"]
    channel.exchange_delete("logs")


def test_routing_by_severity(connection: pika.BlockingConnection) -> None:
    channel = connection.channel()
    channel.exchange_declare(exchange="direct_logs", exchange_type="direct")
    wanted = {"disk": ["error"], "screen": ["info", "warning", "error"]}
    queues = {}
    for name, severities in wanted.items():
        queues[name] = channel.queue_declare(queue="", exclusive=True).method.queue
        for severity in severities:
            channel.queue_bind(exchange="direct_logs", queue=queues[name], routing_key=severity)
    for severity in ("info", "error", "warning", "debug"):
        channel.basic_publish(exchange="direct_logs", routing_key=severity, body=severity)
    assert collect(channel, queues["disk"], 1) == ["error"]
    assert collect(channel, queues["screen"], 3) == ["info", "error", "warning"]
    channel.exchange_delete("direct_logs")


def test_topics(connection: pika.BlockingConnection) -> None:
    channel = connection.channel()
    channel.exchange_declare(exchange="topic_logs", exchange_type="topic")
    wanted = {"all": ["#"], "kern": ["kern.*"], "critical": ["*.critical"], "both": ["kern.*", "*.critical"]}
    queues = {}
    for name, keys in wanted.items():
        queues[name] = channel.queue_declare(queue="", exclusive=True).method.queue
        for key in keys:
            channel.queue_bind(exchange="topic_logs", queue=queues[name], routing_key=key)
    for key in ("kern.critical", "kern.info", "auth.critical", "auth.info", "kern", "kern.disk.critical"):
        channel.basic_publish(exchange="topic_logs", routing_key=key, body=key)
    assert collect(channel, queues["all"], 6) == [
        "kern.critical",
        "kern.info",
        "auth.critical",
        "auth.info",
        "kern",
        "kern.disk.critical",
    ]
    assert collect(channel, queues["kern"], 2) == ["kern.critical", "kern.info"]
    assert collect(channel, queues["critical"], 2) == ["kern.critical", "auth.critical"]
    assert collect(channel, queues["both"], 3) == ["kern.critical", "kern.info", "auth.critical"]
    channel.exchange_delete("topic_logs")


def fibonacci(number: int) -> int:
    return number if number < 2 else fibonacci(number - 1) + fibonacci(number - 2)


def serve_rpc(url: str, ready: threading.Event, requests: int) -> None:
    with pika.BlockingConnection(pika.URLParameters(url)) as connection:
        channel = connection.channel()
        channel.queue_declare(queue="rpc_queue")
        channel.basic_qos(prefetch_count=1)
        left = [requests]

        def on_request(at: BlockingChannel, method: Basic.Deliver, properties: BasicProperties, body: bytes) -> None:
            at.basic_publish(
                exchange="",
                routing_key=str(properties.reply_to),
                body=str(fibonacci(int(body))),
                properties=BasicProperties(correlation_id=properties.correlation_id),
            )
            at.basic_ack(delivery_tag=method.delivery_tag)
            left[0] -= 1
            if not left[0]:
                at.stop_consuming()

        channel.basic_consume(queue="rpc_queue", on_message_callback=on_request)
        ready.set()
        channel.start_consuming()


def test_remote_procedure_call(broker: RunningBroker, connection: pika.BlockingConnection) -> None:
    channel = connection.channel()
    channel.queue_delete("rpc_queue")
    ready = threading.Event()
    server = threading.Thread(target=serve_rpc, args=(broker.url, ready, 3), daemon=True)
    server.start()
    assert ready.wait(60)
    callback_queue = channel.queue_declare(queue="", exclusive=True).method.queue
    answers: dict[str | None, bytes] = {}
    channel.basic_consume(
        queue=callback_queue,
        auto_ack=True,
        on_message_callback=lambda _, __, properties, body: answers.update({properties.correlation_id: body}),
    )
    for number, expected in ((5, b"5"), (10, b"55"), (15, b"610")):
        correlation_id = str(uuid.uuid4())
        channel.basic_publish(
            exchange="",
            routing_key="rpc_queue",
            body=str(number),
            properties=BasicProperties(reply_to=callback_queue, correlation_id=correlation_id),
        )
        while correlation_id not in answers:
            connection.process_data_events(time_limit=5)
        assert answers[correlation_id] == expected
    server.join(60)
    assert not server.is_alive()
    channel.queue_delete("rpc_queue")
