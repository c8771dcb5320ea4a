"""`advance` moves the broker's time; what clients sent before is seen before, effects are there when it returns."""

from __future__ import annotations

import select
import socket
import time

import pika
import pytest

from warrenmq.testing import Broker

pytestmark = pytest.mark.pure
MONTH = 30 * 24 * 3600


def connect(broker: Broker, **parameters: object) -> pika.BlockingConnection:
    wanted = pika.URLParameters(broker.url)
    for name, value in parameters.items():
        setattr(wanted, name, value)
    return pika.BlockingConnection(wanted)


def socket_of(connection: pika.BlockingConnection) -> socket.socket:
    found: socket.socket = connection._impl._transport._sock
    return found


def test_no_time_passes_by_itself() -> None:
    with Broker(clock="virtual") as broker:
        before = broker.now_ms
        time.sleep(0.02)
        assert broker.now_ms == before


def test_a_message_expires_exactly_when_due() -> None:
    with Broker(clock="virtual") as broker, connect(broker) as connection:
        channel = connection.channel()
        channel.queue_declare("q", arguments={"x-message-ttl": 60_000})
        channel.basic_publish("", "q", b"x")
        broker.advance(59.999)
        assert channel.queue_declare("q", passive=True).method.message_count == 1
        broker.advance(0.001)
        assert channel.queue_declare("q", passive=True).method.message_count == 0


def test_what_was_sent_before_the_call_is_seen_before_time_moves() -> None:
    """The publish is only in the socket's buffer when `advance` is called, and its TTL starts before the hour."""
    with Broker(clock="virtual") as broker, connect(broker) as connection:
        channel = connection.channel()
        channel.queue_declare("dead")
        arguments = {"x-message-ttl": 1000, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
        channel.queue_declare("q", arguments=arguments)
        for number in range(50):
            channel.basic_publish("", "q", b"%d" % number)
        broker.advance(3600)
        assert channel.queue_declare("dead", passive=True).method.message_count == 50


def readable(client: socket.socket) -> bool:
    """poll, not select: descriptors of a long test run pass 1,023."""
    waiting = select.poll()
    waiting.register(client, select.POLLIN)
    return bool(waiting.poll(0))


def test_the_effects_are_in_the_clients_socket_when_it_returns() -> None:
    with Broker(clock="virtual") as broker, connect(broker) as connection:
        channel = connection.channel()
        channel.queue_declare("dead")
        arguments = {"x-message-ttl": 1000, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
        channel.queue_declare("q", arguments=arguments)
        channel.basic_consume("dead", lambda *_: None, auto_ack=True)
        channel.basic_publish("", "q", b"arrives dead")
        broker.settle()
        client = socket_of(connection)
        client.setblocking(False)
        while readable(client):
            client.recv(65536)
        broker.advance(1)
        assert readable(client), "nothing was delivered"
        assert b"arrives dead" in client.recv(65536)


def test_timers_fire_in_due_order_however_far_time_jumps() -> None:
    """Queues that feed one another: each step is only due because the one before it happened at its own time."""
    with Broker(clock="virtual") as broker, connect(broker) as connection:
        channel = connection.channel()
        channel.queue_declare("end")
        for step in range(10):
            onward = "end" if step == 9 else f"step {step + 1}"
            arguments = {
                "x-message-ttl": 1000,
                "x-expires": 12_000,
                "x-dead-letter-exchange": "",
                "x-dead-letter-routing-key": onward,
            }
            channel.queue_declare(f"step {step}", arguments=arguments)
        channel.basic_publish("", "step 0", b"x")
        broker.advance(9.999)
        assert channel.queue_declare("end", passive=True).method.message_count == 0
        broker.advance(MONTH)
        assert channel.queue_declare("end", passive=True).method.message_count == 1


def test_a_month_passes_without_costing_a_client_its_connection() -> None:
    with Broker(clock="virtual") as broker, connect(broker, heartbeat=30) as connection:
        broker.advance(MONTH)
        assert connection.channel().queue_declare("").method.queue


def test_heartbeats_follow_virtual_time_when_asked_to() -> None:
    with Broker(clock="virtual", heartbeats="virtual") as broker:
        connection = connect(broker, heartbeat=30)
        broker.advance(120)
        with pytest.raises(pika.exceptions.AMQPConnectionError):
            while True:
                connection.process_data_events(1)


def test_pending_commits_are_waited_for() -> None:
    with Broker(clock="virtual") as broker, connect(broker) as connection:
        channel = connection.channel()
        channel.queue_declare("q", durable=True)
        channel.confirm_delivery()
        channel.basic_publish("", "q", b"x", pika.BasicProperties(delivery_mode=2))
        broker.settle()
        assert broker.call(lambda: broker.server.broker.services.log.in_flight is None)


def test_real_time_cannot_be_moved_nor_time_turned_back() -> None:
    with Broker() as broker, pytest.raises(RuntimeError, match="clock='virtual'"):
        broker.advance(1)
    with Broker(clock="virtual") as broker, pytest.raises(ValueError, match="seconds: -1"):
        broker.advance(-1)
    with pytest.raises(ValueError, match="allowed: real, virtual"):
        Broker(clock="sundial")
