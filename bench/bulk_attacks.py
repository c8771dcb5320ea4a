"""More attacks: on what is remembered, delayed, retried, moved or looked through in bulk. How they are measured is
``stalls.py``'s."""

from __future__ import annotations

import time
from typing import Any

from bench.stalls import ATTACKS as ATTACKS  # all there are, these among them
from bench.stalls import Attack, Target, attack, queues, taken
from warrenmq.client import Properties
from warrenmq.wire.fields import from_python

AN_HOUR = 3_600_000
A_MEGABYTE = bytes(1 << 20)


def remember(target: Target, milliseconds: int) -> None:
    """The exchange e takes no id twice within so long."""
    definition = {"deduplication-window": milliseconds, "deduplication-max": 2_000_000}
    wanted = {"pattern": "^e$", "definition": definition, "apply-to": "exchanges"}
    target.api.checked("PUT", "/policies/%2F/once", wanted)


def remembered(target: Target, count: int) -> Any:
    """A channel that has published so many ids to an exchange that remembers them."""
    remember(target, AN_HOUR)
    channel = target.connect().channel()
    channel.exchange_declare("e", "fanout", durable=True)
    channel.queue_declare("q", durable=True)
    channel.queue_bind("q", "e")
    channel.confirm_select()
    for start in range(0, count, 5_000):
        for number in range(start, min(count, start + 5_000)):
            channel.basic_publish("e", "", b"x", Properties(message_id=f"id-{number}", delivery_mode=2))
        channel.wait_for_confirms(600)
        channel.take_events()
    return channel


@attack("1,000,000 ids that an exchange remembers are over at once")
def window_over(target: Target) -> Attack:
    channel = remembered(target, target.count(1_000_000))

    def strike() -> None:
        remember(target, 1)
        for number in range(3):
            channel.basic_publish("e", "", b"x", Properties(message_id=f"again-{number}"))
            channel.wait_for_confirms(600)
            time.sleep(0.5)

    return strike


@attack("an exchange that remembers 1,000,000 ids loses its window")
def window_lost(target: Target) -> Attack:
    remembered(target, target.count(1_000_000))
    return lambda: target.api.checked("DELETE", "/policies/%2F/once")


def waiting(target: Target, count: int, durable: bool) -> Any:
    """A channel with a delayed exchange at which so many messages wait."""
    channel = target.connect().channel()
    arguments = {"x-delayed-type": "direct"}
    channel.exchange_declare("d", "x-delayed-message", durable=durable, arguments=arguments)
    channel.confirm_select()
    properties = Properties(delivery_mode=2, headers=from_python({"x-delay": AN_HOUR}))
    for start in range(0, count, 10_000):
        channel.publish_many("d", "q", [b"x"] * min(10_000, count - start), properties)
        channel.wait_for_confirms(600)
        channel.take_events()
    return channel


@attack("a delayed exchange at which 1,000,000 messages wait is deleted")
def delayed_deleted(target: Target) -> Attack:
    channel = waiting(target, target.count(1_000_000), True)
    return lambda: channel.exchange_delete("d")


@attack("the same, not durable")
def delayed_transient_deleted(target: Target) -> Attack:
    channel = waiting(target, target.count(1_000_000), False)
    return lambda: channel.exchange_delete("d")


def large_ones(target: Target, count: int) -> Any:
    """A channel with a queue of so many bodies of a megabyte in memory."""
    channel = target.connect().channel()
    channel.queue_declare("q")
    channel.confirm_select()
    for _ in range(0, count, 50):
        channel.publish_many("", "q", [A_MEGABYTE] * 50)
        channel.wait_for_confirms(600)
        channel.take_events()
    return channel


@attack("2,000 transient messages of 1 MB are purged")
def large_purged(target: Target) -> Attack:
    channel = large_ones(target, target.count(2_000))
    return lambda: channel.queue_purge("q")


@attack("300,000 messages are given back and tried again at the same time")
def retried(target: Target) -> Attack:
    count = target.count(300_000)
    target.api.checked("PUT", "/policies/%2F/again", {"pattern": "^q$", "definition": {"retry-delay": 2_000}})
    channel = taken(target, count)
    (tag,) = channel.consumers

    def strike() -> None:
        channel.basic_cancel(tag)
        channel.basic_nack(0, multiple=True, requeue=True)
        channel.basic_qos(1)
        target.until("q", count)

    return strike


@attack("300,000 messages are moved to another queue")
def moved(target: Target) -> Attack:
    count = target.count(300_000)
    target.connect().channel().queue_declare("to", durable=True)
    target.fill("q", count, durable=True, delivery_mode=2)

    def strike() -> None:
        target.api.checked("POST", "/queues/%2F/q/move", {"target": "to"})
        target.until("to", count)

    return strike


@attack("a page of 1,000,000 messages is asked for of which none is chosen")
def peeked(target: Target) -> Attack:
    target.connect()
    target.fill("q", target.count(1_000_000), durable=True, delivery_mode=2)
    return lambda: target.api.get("/queues/%2F/q/peek?count=1000&text=nothing-like-it")


@attack("the ledger of 80,000 queues")
def ledger(target: Target) -> Attack:
    target.import_definitions(queues=queues(target.count(80_000)))
    return lambda: target.api.get("/ledger")


@attack("a channel with 30 consumers of a quorum queue and 1,000,000 messages is closed")
def close_quorum(target: Target) -> Attack:
    count = target.count(1_000_000)
    target.connect().channel().queue_declare("q", durable=True, arguments={"x-queue-type": "quorum"})
    target.fill("q", count, declared=True, delivery_mode=2)
    channel = target.connect().channel()
    channel.basic_qos(40_000)
    for number in range(30):
        channel.basic_consume("q", consumer_tag=f"c{number}")
    got = 0
    while got < count:
        got += len(channel.receive(600))
    return lambda: channel.close()
