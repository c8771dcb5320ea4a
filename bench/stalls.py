"""Attacks: how long one request or one event can hold up everybody else.

Each attack has a broker of its own. A process beside it, the honest client, asks the broker one small question after
the other and remembers its longest round trip; the broker's own watchdog says how long the event loop was held, and
how much of that was work. `measure` says what happened and judges nothing. The goal is 100 ms.
"""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from warrenmq.broker.records import BasicMessage, Content
from warrenmq.cli._api import Api
from warrenmq.client import Connection, Properties
from warrenmq.wire.content import encode_header
from warrenmq.wire.fields import from_python

CONTEXT = multiprocessing.get_context("spawn")
LARGEST = 1 << 30
QUIET = 1.0  # seconds that the honest client is watched on when an attack is over, and when its clients have gone
STALL = re.compile(r'^warren_loop_stall_seconds_(count|sum)\{spent="cpu"\} (\S+)$', re.MULTILINE)


@dataclass
class Target:
    """A broker to attack."""

    url: str
    http: str
    scale: float
    held: list[Connection] = field(default_factory=list)

    @property
    def api(self) -> Api:
        return Api(self.http.replace("http://", "http://guest:guest@"), 600)

    def connect(self) -> Connection:
        connection = Connection(self.url, timeout=600)
        self.held.append(connection)
        return connection

    def count(self, number: int) -> int:
        return max(1, int(number * self.scale))

    def fill(self, queue: str, count: int, durable: bool = False, **properties: Any) -> None:
        channel = self.connect().channel()
        if not properties.pop("declared", False):
            channel.queue_declare(queue, durable=durable)
        channel.confirm_select()
        for start in range(0, count, 10_000):
            channel.publish_many("", queue, [b"x" * 20] * min(10_000, count - start), Properties(**properties))
            channel.wait_for_confirms(600)
            channel.take_events()

    def depth(self, queue: str) -> int:
        channel = self.held[0].channel()
        count = channel.queue_declare(queue, passive=True).int("message_count")
        channel.close()
        return count

    def until(self, queue: str, count: int) -> None:
        while self.depth(queue) != count:
            time.sleep(0.05)

    def import_definitions(self, **document: Any) -> None:
        self.api.checked("POST", "/definitions", document)

    def leave(self) -> None:
        """All clients go, with whatever they hold."""
        for connection in self.held:
            with contextlib.suppress(Exception):
                connection.close()
        self.held.clear()

    def read(self, path: str) -> str:
        with urllib.request.urlopen(self.http + path, timeout=600) as answer:
            return str(answer.read().decode())


Attack = Callable[[], object]
ATTACKS: dict[str, tuple[str, Callable[[Target], Attack]]] = {}
OPTIONS: dict[str, tuple[str, ...]] = {}  # of `warren serve`, for attacks that need a broker with some


def attack(what: str, *options: str) -> Callable[[Callable[[Target], Attack]], Callable[[Target], Attack]]:
    """What prepares an attack, not measured, and returns the attack itself."""

    def add(prepare: Callable[[Target], Attack]) -> Callable[[Target], Attack]:
        ATTACKS[prepare.__name__] = (what, prepare)
        OPTIONS[prepare.__name__] = options
        return prepare

    return add


def queues(count: int, **more: Any) -> list[dict[str, Any]]:
    return [{"name": f"q{n:06}", "vhost": "/", "durable": False, **more} for n in range(count)]


def policies(count: int) -> list[dict[str, Any]]:
    return [
        {"vhost": "/", "name": f"p{n}", "pattern": f"^q{n:03}", "definition": {"max-length": 1000 + n}, "priority": n}
        for n in range(count)
    ]


# --- definitions and policies


@attack("import of 20,000 queues and 500 policies")
def policies_by_import(target: Target) -> Attack:
    return lambda: target.import_definitions(queues=queues(target.count(20_000)), policies=policies(500))


@attack("one policy over 5,000 queues beside 50 others")
def one_policy(target: Target) -> Attack:
    target.import_definitions(queues=queues(target.count(5_000)), policies=policies(50))
    wanted = {"pattern": "", "definition": {"max-length": 5}, "priority": 1000}
    return lambda: target.api.checked("PUT", "/policies/%2F/all", wanted)


@attack("import of 100,000 permissions")
def permissions(target: Target) -> Attack:
    names = [f"u{n}" for n in range(target.count(100_000))]
    users = [{"name": name, "password_hash": "", "tags": ""} for name in names]
    rights = [{"user": name, "vhost": "/", "configure": ".*", "write": ".*", "read": ".*"} for name in names]
    return lambda: target.import_definitions(users=users, permissions=rights)


@attack("import of 80,000 queues")
def many_queues(target: Target) -> Attack:
    return lambda: target.import_definitions(queues=queues(target.count(80_000)))


@attack("ten policies with a pattern that explodes")
def slow_patterns(target: Target) -> Attack:
    target.import_definitions(queues=queues(target.count(5_000)))

    def strike() -> None:
        for number in range(10):
            wanted = {"pattern": r"^(q+)+(0+)+x$", "definition": {"max-length": 5}}
            target.api.checked("PUT", f"/policies/%2F/slow{number}", wanted)

    return strike


@attack("`/metrics/per-object` with 20,000 queues, ten times")
def metrics(target: Target) -> Attack:
    target.import_definitions(queues=queues(target.count(20_000)))
    target.read("/metrics/per-object")  # the client library is loaded by its first use
    return lambda: [target.read("/metrics/per-object") for _ in range(10)]


@attack("a listing of 20,000 queues sorted by a column")
def listing(target: Target) -> Attack:
    target.import_definitions(queues=queues(target.count(20_000)))
    return lambda: target.api.get("/queues?sort=messages_ready")


# --- many messages at once


def wait_ms(count: int) -> int:
    """How long until all of these are to happen at once: longer than it takes to publish them."""
    return max(5_000, count // 20)


@attack("200,000 messages expire at once")
def expire(target: Target) -> Attack:
    count = target.count(200_000)
    target.connect()
    started = time.time()
    target.fill("q", count, expiration=str(wait_ms(count)))

    def strike() -> None:
        time.sleep(max(0.0, started + wait_ms(count) / 1000 - time.time() - 0.5))
        target.until("q", 0)

    return strike


@attack("the same, each becomes a dead letter")
def expire_to_dead_letters(target: Target) -> Attack:
    count = target.count(200_000)
    channel = target.connect().channel()
    channel.queue_declare("dead")
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    channel.queue_declare("q", arguments=arguments)
    started = time.time()
    target.fill("q", count, declared=True, expiration=str(wait_ms(count)))

    def strike() -> None:
        time.sleep(max(0.0, started + wait_ms(count) / 1000 - time.time() - 0.5))
        target.until("dead", count)

    return strike


@attack("200,000 delayed messages are due at once")
def delayed(target: Target) -> Attack:
    count = target.count(200_000)
    channel = target.connect().channel()
    channel.exchange_declare("d", "x-delayed-message", arguments={"x-delayed-type": "direct"})
    channel.queue_declare("q")
    channel.queue_bind("q", "d", "q")
    due = time.time() + wait_ms(count) / 1000
    channel.confirm_select()
    for start in range(0, count, 10_000):
        wait = int((due - time.time()) * 1000)
        properties = Properties(headers=from_python({"x-delay": wait}))
        channel.publish_many("d", "q", [b"x"] * min(10_000, count - start), properties)
        channel.wait_for_confirms(600)
        channel.take_events()
    return lambda: target.until("q", count)


@attack("a queue of 1,000,000 persistent messages is purged")
def purge(target: Target) -> Attack:
    channel = target.connect().channel()
    target.fill("q", target.count(1_000_000), durable=True, delivery_mode=2)
    return lambda: channel.queue_purge("q")


@attack("the same, transient")
def purge_transient(target: Target) -> Attack:
    channel = target.connect().channel()
    target.fill("q", target.count(1_000_000))
    return lambda: channel.queue_purge("q")


@attack("a queue of 1,000,000 persistent messages is deleted")
def delete(target: Target) -> Attack:
    channel = target.connect().channel()
    target.fill("q", target.count(1_000_000), durable=True, delivery_mode=2)
    return lambda: channel.queue_delete("q")


@attack("the same, all of them with a consumer")
def delete_unacked(target: Target) -> Attack:
    taken(target, target.count(1_000_000), durable=True, delivery_mode=2)
    channel = target.connect().channel()
    return lambda: channel.queue_delete("q")


@attack("a limit of 5 comes over 200,000 messages")
def lowered_limit(target: Target) -> Attack:
    target.connect()
    target.fill("q", target.count(200_000))
    wanted = {"pattern": "^q$", "definition": {"max-length": 5}}

    def strike() -> None:
        target.api.checked("PUT", "/policies/%2F/limit", wanted)
        target.until("q", 5)

    return strike


def taken(target: Target, count: int, durable: bool = False, **properties: Any) -> Any:
    """A channel that holds so many unacknowledged messages."""
    target.connect()
    target.fill("q", count, durable, **properties)
    channel = target.connect().channel()
    channel.basic_consume("q")
    got = 0
    while got < count:
        got += len(channel.receive(600))
    return channel


@attack("1,000,000 messages are acknowledged by one ack")
def ack(target: Target) -> Attack:
    channel = taken(target, target.count(1_000_000))

    def strike() -> None:
        channel.basic_ack(0, multiple=True)
        channel.basic_qos(1)

    return strike


@attack("1,000,000 messages are given back by one nack")
def nack(target: Target) -> Attack:
    channel = taken(target, target.count(1_000_000))

    def strike() -> None:
        channel.basic_qos(1)
        channel.basic_nack(0, multiple=True, requeue=True)
        channel.basic_qos(1)

    return strike


@attack("1,000,000 messages are discarded by one nack")
def discard(target: Target) -> Attack:
    channel = taken(target, target.count(1_000_000))

    def strike() -> None:
        channel.basic_nack(0, multiple=True, requeue=False)
        channel.basic_qos(1)

    return strike


@attack("300,000 messages are given back, each by a nack of its own")
def single_nacks(target: Target) -> Attack:
    count = target.count(300_000)
    channel = taken(target, count)

    def strike() -> None:
        channel.basic_qos(1)
        for tag in range(1, count + 1):
            channel.basic_nack(tag, requeue=True)
        channel.basic_qos(1)

    return strike


@attack("1,000,000 messages are recovered by `basic.recover`")
def recover(target: Target) -> Attack:
    channel = taken(target, target.count(1_000_000))

    def strike() -> None:
        channel.basic_qos(1)
        channel.basic_recover()
        channel.basic_qos(1)

    return strike


@attack("a channel that holds 1,000,000 messages is closed")
def close_channel(target: Target) -> Attack:
    channel = taken(target, target.count(1_000_000))
    return lambda: channel.close()


@attack("a transaction of 300,000 persistent messages is committed")
def commit(target: Target) -> Attack:
    count = target.count(300_000)
    channel = target.connect().channel()
    channel.queue_declare("q", durable=True)
    channel.tx_select()
    for start in range(0, count, 10_000):
        channel.publish_many("", "q", [b"x"] * min(10_000, count - start), Properties(delivery_mode=2))
    channel.connection.flush()
    return lambda: channel.tx_commit()


@attack("a transaction of 1,000,000 acknowledgements is committed")
def commit_acks(target: Target) -> Attack:
    channel = taken(target, target.count(1_000_000))
    channel.tx_select()

    def strike() -> None:
        channel.basic_ack(0, multiple=True)
        channel.tx_commit()

    return strike


@attack("a transaction of 300,000 acknowledgements, each of one message, is committed")
def commit_single_acks(target: Target) -> Attack:
    count = target.count(300_000)
    channel = taken(target, count)
    channel.tx_select()
    for tag in range(1, count + 1):
        channel.basic_ack(tag)
    channel.connection.flush()
    return lambda: channel.tx_commit()


@attack("a transaction of 1,000,000 acknowledgements is rolled back")
def rollback_acks(target: Target) -> Attack:
    channel = taken(target, target.count(1_000_000))
    channel.tx_select()

    def strike() -> None:
        channel.basic_ack(0, multiple=True)
        channel.tx_rollback()

    return strike


# --- leases


def leased(target: Target, count: int, ttl_ms: int) -> Any:
    return target.api.checked("POST", "/queues/%2F/q/leases", {"count": count, "ttl_ms": ttl_ms})


@attack("1,000,000 messages are leased in one call")
def lease(target: Target) -> Attack:
    count = target.count(1_000_000)
    target.connect()
    target.fill("q", count, durable=True, delivery_mode=2)
    return lambda: leased(target, count, 600_000)


@attack("the same, transient")
def lease_transient(target: Target) -> Attack:
    count = target.count(1_000_000)
    target.connect()
    target.fill("q", count)
    return lambda: leased(target, count, 600_000)


@attack("1,000,000 leased messages are acknowledged in one call")
def lease_ack(target: Target) -> Attack:
    count = target.count(1_000_000)
    target.connect()
    target.fill("q", count, durable=True, delivery_mode=2)
    id = leased(target, count, 600_000)["id"]
    return lambda: target.api.checked("POST", f"/queues/%2F/q/leases/{id}/ack", {})


@attack("a lease of 200,000 messages expires")
def lease_expiry(target: Target) -> Attack:
    count = target.count(200_000)
    target.connect()
    target.fill("q", count, durable=True, delivery_mode=2)
    leased(target, count, 6_000)
    return lambda: target.until("q", count)


# --- many things at once


def bound(target: Target, count: int) -> Any:
    """A durable queue with so many bindings to a durable exchange."""
    channel = target.connect().channel()
    channel.queue_declare("q", durable=True)
    channel.exchange_declare("e", "topic", durable=True)
    for number in range(count):
        channel.send("queue.bind", queue="q", exchange="e", routing_key=f"a.{number}.#", arguments={}, nowait=True)
    channel.basic_qos(1)
    return channel


@attack("a queue with 100,000 bindings is deleted")
def bindings(target: Target) -> Attack:
    channel = bound(target, target.count(100_000))
    return lambda: channel.queue_delete("q")


@attack("an exchange with 100,000 bindings is deleted")
def exchange_bindings(target: Target) -> Attack:
    channel = bound(target, target.count(100_000))
    return lambda: channel.exchange_delete("e")


@attack("100,000 pipelined `queue.bind` on one connection")
def pipelined(target: Target) -> Attack:
    channel = target.connect().channel()
    channel.queue_declare("q")

    def strike() -> None:
        for number in range(target.count(100_000)):
            channel.send(
                "queue.bind", queue="q", exchange="amq.topic", routing_key=f"a.{number}.#", arguments={}, nowait=True
            )
        channel.basic_qos(1)

    return strike


@attack("2,000 pipelined messages for 1,000 queues each")
def copies(target: Target) -> Attack:
    channel = target.connect().channel()
    for number in range(1_000):
        channel.send("queue.declare", queue=f"c{number}", nowait=True)
        channel.send("queue.bind", queue=f"c{number}", exchange="amq.fanout", arguments={}, nowait=True)
    channel.basic_qos(1)

    def strike() -> None:
        channel.publish_many("amq.fanout", "", [b"x" * 20] * target.count(2_000))
        channel.basic_qos(1)

    return strike


@attack("an alarm clears that 200 publishers with full buffers waited for")
def alarm(target: Target) -> Attack:
    target.connect().channel().queue_declare("q")
    limits = f"/nodes/{target.api.get('/nodes')[0]['name']}/limits"
    target.api.checked("PUT", limits, {"memory_limit": 1})
    time.sleep(1.5)  # longer than the broker takes between two looks
    for _ in range(target.count(200)):
        channel = target.connect().channel()
        channel.publish_many("", "q", [b"x" * 20] * 2_000)
        channel.connection.flush()

    def strike() -> None:
        target.api.checked("PUT", limits, {"memory_limit": "64GB"})
        target.until("q", target.count(200) * 2_000)

    return strike


@attack("a vhost with 20,000 queues is deleted")
def vhost(target: Target) -> Attack:
    target.api.checked("PUT", "/vhosts/v")
    target.import_definitions(queues=queues(target.count(20_000), vhost="v"))
    return lambda: target.api.checked("DELETE", "/vhosts/v")


@attack("a connection with 5,000 exclusive queues is closed")
def exclusive(target: Target) -> Attack:
    connection = target.connect()
    channel = connection.channel()
    for number in range(target.count(5_000)):
        channel.send("queue.declare", queue=f"x{number}", exclusive=True, nowait=True)
    channel.basic_qos(1)
    return lambda: connection.close()


# --- one large thing


@attack("a body of 512 MB is published, and delivered to somebody who reads")
def body(target: Target) -> Attack:
    channel = target.connect().channel()
    channel.queue_declare("q")
    channel.confirm_select()
    content = bytes(target.count(512 << 20))

    def strike() -> None:
        channel.basic_publish("", "q", content)
        channel.wait_for_confirms(600)
        channel.basic_consume("q", no_ack=True)
        channel.receive(600)

    return strike


@attack("the same, persistent")
def persistent_body(target: Target) -> Attack:
    channel = target.connect().channel()
    channel.queue_declare("q", durable=True)
    channel.confirm_select()
    content = bytes(target.count(512 << 20))

    def strike() -> None:
        channel.basic_publish("", "q", content, Properties(delivery_mode=2))
        channel.wait_for_confirms(600)
        channel.basic_consume("q", no_ack=True)
        channel.receive(600)

    return strike


@attack("a persistent body of 512 MB is committed in a transaction")
def committed_body(target: Target) -> Attack:
    channel = target.connect().channel()
    channel.queue_declare("q", durable=True)
    channel.tx_select()
    content = bytes(target.count(512 << 20))

    def strike() -> None:
        channel.basic_publish("", "q", content, Properties(delivery_mode=2))
        channel.tx_commit()

    return strike


class Lengthens:
    """An interceptor that makes a body of as many octets as the message says."""

    name = "lengthens"

    @staticmethod
    def amend(message: BasicMessage) -> BasicMessage:
        body = bytes(int(message.content.body))
        content = Content(encode_header(message.content.properties, len(body)), body)
        return BasicMessage(message.exchange_name, message.routing_keys, content, message.id, message.is_persistent)


@attack("an interceptor makes a persistent body of 512 MB", "--interceptors", f"{__name__}:{Lengthens.__name__}")
def lengthened_body(target: Target) -> Attack:
    channel = target.connect().channel()
    channel.queue_declare("q", durable=True)
    channel.confirm_select()

    def strike() -> None:
        channel.basic_publish("", "q", b"%d" % target.count(512 << 20), Properties(delivery_mode=2))
        channel.wait_for_confirms(600)

    return strike


@attack("a body of 512 MB that no queue takes is returned")
def returned_body(target: Target) -> Attack:
    channel = target.connect().channel()
    channel.confirm_select()
    content = bytes(target.count(512 << 20))

    def strike() -> None:
        channel.basic_publish("", "nowhere", content, mandatory=True)
        channel.wait_for_confirms(600)

    return strike


def buried(target: Target, durable: bool) -> Attack:
    """A long body waits in a queue that loses it to a durable one when its limit comes."""
    channel = target.connect().channel()
    channel.queue_declare("dead", durable=True)
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    channel.queue_declare("q", durable=durable, arguments=arguments)
    channel.confirm_select()
    channel.basic_publish("", "q", bytes(target.count(512 << 20)), Properties(delivery_mode=2))
    channel.wait_for_confirms(600)
    wanted = {"pattern": "^q$", "definition": {"max-length": 0}}

    def strike() -> None:
        target.api.checked("PUT", "/policies/%2F/limit", wanted)
        target.until("dead", 1)

    return strike


@attack("a persistent body of 512 MB becomes a dead letter in a durable queue")
def buried_body(target: Target) -> Attack:
    return buried(target, True)


@attack("the same, from a queue that is not durable")
def buried_transient_body(target: Target) -> Attack:
    return buried(target, False)


@attack("a delayed body of 512 MB is due, for a queue that is not durable")
def delayed_body(target: Target) -> Attack:
    channel = target.connect().channel()
    channel.exchange_declare("d", "x-delayed-message", durable=True, arguments={"x-delayed-type": "fanout"})
    channel.queue_declare("q")
    channel.queue_bind("q", "d")
    channel.confirm_select()
    headers = from_python({"x-delay": max(5_000, int(30_000 * target.scale))})
    channel.basic_publish("d", "", bytes(target.count(512 << 20)), Properties(delivery_mode=2, headers=headers))
    channel.wait_for_confirms(600)
    return lambda: target.until("q", 1)


@attack("a transient body of 256 MB has to leave memory, and is delivered to somebody who reads")
def spilled_body(target: Target) -> Attack:
    channel = target.connect().channel()
    channel.queue_declare("q")
    channel.confirm_select()
    content = bytes(target.count(256 << 20))
    channel.basic_publish("", "q", content)
    channel.wait_for_confirms(600)
    limits = f"/nodes/{target.api.get('/nodes')[0]['name']}/limits"
    target.api.checked("PUT", limits, {"memory_limit": 2 * len(content) + (100 << 20)})  # which is half full now
    time.sleep(1.5)  # longer than the broker takes between two looks

    def strike() -> None:
        channel.basic_publish("", "q", content)
        channel.wait_for_confirms(600)
        channel.basic_consume("q", no_ack=True)
        got = 0
        while got < 2:
            got += len(channel.receive(600))

    return strike


def stored_in(target: Target, body: bytes, kind: str, **properties: Any) -> Any:
    """A long message in the durable queue q of this kind; its channel."""
    channel = target.connect().channel()
    channel.queue_declare("q", durable=True, arguments={"x-queue-type": kind})
    channel.confirm_select()
    channel.basic_publish("", "q", body, Properties(**properties))
    channel.wait_for_confirms(600)
    return channel


@attack("a stream message of 512 MB is read by four consumers")
def stream_body(target: Target) -> Attack:
    stored_in(target, bytes(target.count(512 << 20)), "stream")
    readers = [target.connect().channel() for _ in range(4)]

    def strike() -> None:
        for reader in readers:
            reader.basic_qos(1)
            reader.basic_consume("q", arguments={"x-stream-offset": "first"})
        for reader in readers:
            reader.receive(600)

    return strike


@attack("a body of 512 MB is traced into a quorum queue")
def traced_body(target: Target) -> Attack:
    channel = target.connect().channel()
    channel.queue_declare("q")
    channel.queue_declare("copies", durable=True, arguments={"x-queue-type": "quorum"})
    channel.queue_bind("copies", "amq.rabbitmq.trace", "publish.#")
    channel.confirm_select()
    target.api.checked("PUT", "/vhosts/%2F", {"tracing": True})
    content = bytes(target.count(512 << 20))

    def strike() -> None:
        channel.basic_publish("", "q", content)
        channel.wait_for_confirms(600)
        target.until("copies", 1)

    return strike


def lease_of_body(target: Target, mode: int) -> Attack:
    stored_in(target, bytes(target.count(512 << 20)), "classic", delivery_mode=mode)
    reader = target.connect().channel()

    def strike() -> None:
        id = leased(target, 1, 600_000)["id"]
        reader.basic_qos(1)
        reader.basic_consume("q", arguments={"x-lease": id})
        reader.receive(600)
        target.api.checked("DELETE", f"/queues/%2F/q/leases/{id}")
        target.until("q", 1)

    return strike


@attack("a persistent body of 512 MB is leased, read and given back")
def leased_body(target: Target) -> Attack:
    return lease_of_body(target, 2)


@attack("the same, transient")
def leased_transient_body(target: Target) -> Attack:
    return lease_of_body(target, 1)


@attack("a transient body of 512 MB waits at a transient delayed exchange, and is due for a durable queue")
def delayed_transient_body(target: Target) -> Attack:
    channel = target.connect().channel()
    channel.exchange_declare("d", "x-delayed-message", arguments={"x-delayed-type": "fanout"})
    channel.queue_declare("q", durable=True)
    channel.queue_bind("q", "d")
    channel.confirm_select()
    content = bytes(target.count(512 << 20))
    headers = from_python({"x-delay": max(3_000, int(10_000 * target.scale))})

    def strike() -> None:
        channel.basic_publish("d", "", content, Properties(delivery_mode=2, headers=headers))
        channel.wait_for_confirms(600)
        target.until("q", 1)

    return strike


@attack("the beginning of a body of 512 MB is got over HTTP, and all of it asked for")
def got_over_http(target: Target) -> Attack:
    stored_in(target, bytes(target.count(512 << 20)), "classic", delivery_mode=2)
    wanted = {"count": 1, "ackmode": "ack_requeue_true", "encoding": "base64"}

    def strike() -> None:
        target.api.checked("POST", "/queues/%2F/q/get", {**wanted, "truncate": 1000})
        target.api.ask("POST", "/queues/%2F/q/get", wanted)  # refused, as it should be
        target.until("q", 1)

    return strike


@attack("a client with 1,000,000 unacknowledged deliveries goes, ten times: what a collection would look at")
def tear_down(target: Target) -> Attack:
    count = target.count(1_000_000)
    target.connect()
    target.fill("q", count)

    def strike() -> None:
        for _ in range(10):
            connection = target.connect()
            channel = connection.channel()
            channel.basic_consume("q")
            got = 0
            while got < count:
                got += len(channel.receive(600))
            connection.close()
            target.until("q", count)

    return strike


# --- measuring


def honest(url: str, stop: Any, trips: Any, longest: Any) -> None:
    """Asks one small question after the other."""
    with Connection(url, timeout=600) as connection:
        channel = connection.channel()
        channel.queue_declare("honest", exclusive=True)
        while not stop.is_set():
            began = time.perf_counter()
            channel.queue_declare("honest", passive=True)
            longest.value = max(longest.value, time.perf_counter() - began)
            trips.value += 1
            time.sleep(0.001)


@contextlib.contextmanager
def broker(scale: float, options: tuple[str, ...] = ()) -> Iterator[Target]:
    with tempfile.TemporaryDirectory(prefix="warren-stalls-") as folder:
        ready = Path(folder) / "ready"
        command = [
            sys.executable,
            "-m",
            "warrenmq",
            "serve",
            "--port",
            "0",
            "--http-port",
            "0",
            "--data-dir",
            f"{folder}/data",
            "--ready-file",
            str(ready),
            "--log-level",
            "warning",
            "--max-message-size",
            str(LARGEST),
            *options,
        ]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        try:
            while not ready.exists():
                if process.poll() is not None:
                    raise RuntimeError("warren serve did not start")
                time.sleep(0.005)
            said = json.loads(ready.read_text())
            target = Target(f"amqp://guest:guest@{said['amqp']}/", f"http://{said['http']}", scale)
            target.read("/metrics")  # loads the HTTP side
            yield target
            target.leave()
        finally:
            process.terminate()
            process.wait(60)


def stalls(target: Target) -> dict[str, float]:
    """Passes of the event loop over the watchdog's limit in which it worked, so far: how many, and their seconds."""
    return {name: float(value) for name, value in STALL.findall(target.read("/metrics"))}


def one(name: str, scale: float) -> dict[str, Any]:
    """One attack on a broker of its own."""
    what, prepare = ATTACKS[name]
    with broker(scale, OPTIONS[name]) as target:
        strike = prepare(target)
        before = stalls(target)
        stop, trips, longest = CONTEXT.Event(), CONTEXT.Value("q"), CONTEXT.Value("d")
        client = CONTEXT.Process(target=honest, args=(target.url, stop, trips, longest), daemon=True)
        client.start()
        while trips.value < 100:
            time.sleep(0.01)
        trips.value, longest.value = 0, 0.0
        began = time.perf_counter()
        strike()
        seconds = time.perf_counter() - began
        time.sleep(QUIET)
        target.leave()
        time.sleep(QUIET)
        stop.set()
        client.join(60)
        after = stalls(target)
    return {
        "what": what,
        "seconds": seconds,
        "round_trips": trips.value,
        "longest_round_trip_ms": longest.value * 1000,
        "stalls": after["count"] - before["count"],
        "stalled_ms": (after["sum"] - before["sum"]) * 1000,
    }


def measure(only: list[str] | None = None, scale: float = 1.0) -> dict[str, Any]:
    found = {}
    for name in only or list(ATTACKS):
        found[name] = one(name, scale)
        print(
            f"{name}: longest round trip {found[name]['longest_round_trip_ms']:.0f} ms, "
            f"{found[name]['stalls']:.0f} passes of the loop over 100 ms",
            flush=True,
        )
    return found
