"""``message_stats`` of queues, exchanges, channels and vhosts: what RabbitMQ 3.10 counts, under its names.

Duty: the counters as they are now, grouped as RabbitMQ groups them: what was published where something was published,
what was handed out where something was handed out or asked for. Their rates are ``rates.py``.

A vhost's are the sum over its channels (publishing) and its queues (deliveries), and over those that were; so a message
for three queues is published once, and nothing falls when a channel is closed or a queue deleted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sized
from typing import TypeVar

from warrenmq.broker.channel.channel import Channel
from warrenmq.broker.channel.states import GONE
from warrenmq.broker.connection.connection import Connection
from warrenmq.broker.publish.by_exchange import Share
from warrenmq.broker.queue.queue import Queue
from warrenmq.broker.records import Exchange
from warrenmq.broker.services.deliveries import Deliveries
from warrenmq.broker.vhost.past import Past
from warrenmq.broker.vhost.vhost import VHost
from warrenmq.http.pacer import Pacer

Counters = dict[str, int]
Part = TypeVar("Part", int, Counters)


def queue_counters(queue: Queue) -> Counters:
    return some({"publish": int(queue.counters.routed())}) | some(deliveries(queue.deliveries))


def exchange_counters(exchange: Exchange) -> Counters:
    counters = {"publish_in": int(exchange.messages_in), "publish_out": int(exchange.messages_out)}
    return {name: count for name, count in counters.items() if count}


def share_counters(share: Share) -> Counters:
    return {
        "publish": int(share.published),
        "confirm": int(share.confirmed),
        "return_unroutable": int(share.returned),
        "drop_unroutable": int(share.dropped),
    }


def is_all(parts: Sized, part: Part, whole: Part) -> bool:
    """Is this part the only one, and all that was counted?"""
    return len(parts) == 1 and part == whole


def channel_counters(channel: Channel) -> Counters:
    return some(publishing(channel)) | some(deliveries(channel.handed_out.all()))


class Sums:
    """The sums over all queues, connections and channels of a vhost."""

    def __init__(self, past: Past) -> None:
        self.ready = 0
        self.unacked = 0
        self.consumers = 0
        self.delivered = deliveries(past.deliveries)
        self.published = past_publishing(past)
        self.received = int(past.received)
        self.sent = int(past.sent)


async def sums_of(vhosts: Iterable[VHost], connections: Iterable[Connection]) -> dict[VHost, Sums]:
    """Some queues, connections and channels at a time: there may be a hundred thousand. What one of them counted counts
    also when it goes meanwhile, and once: what is past already when a vhost's turn comes is not looked at again."""
    pacer = Pacer()
    found: dict[VHost, Sums] = {}
    by_vhost = _by_vhost(connections)
    for vhost in vhosts:
        sums = found[vhost] = Sums(vhost.past)
        queues = list(vhost.queues.values())
        open_there = [one for one in by_vhost.get(vhost, []) if one.state < GONE]
        channels = [channel for one in open_there for channel in one.channels.values() if not channel.publishing.over]
        await pacer.breathe()
        for queue in queues:
            if queue.deliveries.any():
                add(sums.delivered, deliveries(queue.deliveries))
            if not queue.gone:
                sums.ready += int(queue.ready)
                sums.unacked += int(queue.unacked)
                sums.consumers += len(queue.consumers)
            await pacer.breathe()
        for connection in open_there:
            sums.received += int(connection.input.received)
            sums.sent += int(connection.output.sent)
            await pacer.breathe()
        for channel in channels:
            add(sums.published, publishing(channel))
            await pacer.breathe()
    return found


def _by_vhost(connections: Iterable[Connection]) -> dict[VHost, list[Connection]]:
    """Once for all vhosts: there may be a thousand of them, and ten thousand connections."""
    found: dict[VHost, list[Connection]] = {}
    for one in connections:
        if one.vhost is not None:
            found.setdefault(one.vhost, []).append(one)
    return found


def vhost_counters(sums: Sums) -> Counters:
    return some(sums.published) | some(sums.delivered)


def past_publishing(past: Past) -> Counters:
    return {
        "publish": int(past.published),
        "confirm": int(past.confirmed),
        "return_unroutable": int(past.returned),
        "drop_unroutable": int(past.dropped),
    }


def past_counters(past: Past) -> Counters:
    """All that is past in a vhost."""
    octets = {"recv_oct": int(past.received), "send_oct": int(past.sent)}
    return past_publishing(past) | deliveries(past.deliveries) | octets


def publishing(channel: Channel) -> Counters:
    found = channel.publishing
    return {
        "publish": int(found.published),
        "confirm": int(found.confirms.acked),
        "return_unroutable": int(found.returned),
        "drop_unroutable": int(found.dropped),
    }


def deliveries(counted: Deliveries) -> Counters:
    """What left for clients, by the way it took."""
    ways = {
        "deliver": int(counted.delivered),
        "deliver_no_ack": int(counted.delivered_no_ack),
        "get": int(counted.fetched),
        "get_no_ack": int(counted.fetched_no_ack),
    }
    others = {
        "redeliver": int(counted.redelivered),
        "get_empty": int(counted.fetched_nothing),
        "ack": int(counted.acked),
    }
    return {**ways, "deliver_get": sum(ways.values()), **others}


def some(group: Counters) -> Counters:
    """All of a group, or nothing of what never happened."""
    return group if any(group.values()) else {}


def add(total: Counters, other: Counters) -> None:
    for name, count in other.items():
        total[name] = total.get(name, 0) + count
