"""Columns by which very many objects are put in order without the JSON of each.

Duty: for one kind of object, what stands in a column of its listing, by the column's name. A column that is not here
is looked up in the JSON (``listing.py``), which takes ten times as long; what is here must be what is there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from warrenmq.broker.channel.channel import Channel
from warrenmq.broker.connection.connection import Connection
from warrenmq.broker.queue.queue import Queue
from warrenmq.broker.records import Exchange
from warrenmq.http.bridge import Bridge
from warrenmq.http.figures.history import DELIVERIES, MESSAGES, PUBLISHING
from warrenmq.http.figures.rates import Ranges, rising
from warrenmq.http.figures.stats import Counters, deliveries, publishing
from warrenmq.http.views import channel_name, connection_state

Columns = dict[str, Callable[[Any], object]]


def _messages(queue: Queue) -> int:
    return queue.ready + queue.unacked + queue.letters_waiting()[0]


def _message_bytes(queue: Queue) -> int:
    return queue.ready_bytes + queue.unacked_bytes + queue.letters_waiting()[1]


QUEUE: Columns = {
    "name": lambda queue: queue.name.name,
    "vhost": lambda queue: queue.name.virtual_host,
    "type": lambda queue: queue.kind,
    "durable": lambda queue: queue.durable,
    "policy": lambda queue: queue.policy.name,
    "state": lambda queue: "paused" if queue.paused else "running",
    "consumers": lambda queue: queue.consumer_count(),
    "messages": _messages,
    "messages_ready": lambda queue: queue.ready,
    "messages_unacknowledged": lambda queue: queue.unacked,
    "message_bytes": _message_bytes,
    "message_bytes_ready": lambda queue: queue.ready_bytes,
    "message_bytes_unacknowledged": lambda queue: queue.unacked_bytes,
}
EXCHANGE: Columns = {
    "name": lambda exchange: exchange.name.name,
    "vhost": lambda exchange: exchange.name.virtual_host,
    "type": lambda exchange: exchange.type,
    "durable": lambda exchange: exchange.durable,
    "policy": lambda exchange: exchange.policy.name or 0,  # no member, which counts as 0
}
CONNECTION: Columns = {
    "name": lambda connection: connection.name,
    "vhost": lambda connection: "" if connection.vhost is None else connection.vhost.name,
    "user": lambda connection: connection.username,
    "state": lambda connection: connection_state(connection),
    "peer_host": lambda connection: connection.peer.host,
    "channels": lambda connection: len(connection.channels),
    "connected_at": lambda connection: connection.connected_at,
    "recv_oct": lambda connection: connection.input.received,
    "send_oct": lambda connection: connection.output.sent,
}
CHANNEL: Columns = {
    "name": channel_name,
    "vhost": lambda channel: "" if channel.connection.vhost is None else channel.connection.vhost.name,
    "user": lambda channel: channel.connection.username,
    "consumer_count": lambda channel: len(channel.consumers),
    "prefetch_count": lambda channel: channel.consumers.prefetch,
    "messages_unacknowledged": lambda channel: channel.outstanding.unacked.count,
}


def of_queues(bridge: Bridge, wanted: Ranges) -> Columns:
    def place(queue: Queue) -> tuple[str, str]:
        return queue.name.virtual_host, queue.name.name

    def published(queue: Queue) -> Counters:
        return {"publish": queue.counters.routed()}

    def delivered(queue: Queue) -> Counters:
        return deliveries(queue.deliveries) if queue.deliveries.any() else {}

    found = QUEUE | _counted(bridge, wanted, "queue", ("publish",), published, place)
    found |= _counted(bridge, wanted, "queue", DELIVERIES, delivered, place)
    if wanted.lengths is None:
        for name in MESSAGES:
            found[f"{name}_details.rate"] = _rate(bridge, "queue", name, place)
    return found


def of_exchanges(bridge: Bridge, wanted: Ranges) -> Columns:
    def place(exchange: Exchange) -> tuple[str, str]:
        return exchange.name.virtual_host, exchange.name.name

    def counted(exchange: Exchange) -> Counters:
        return {"publish_in": exchange.messages_in, "publish_out": exchange.messages_out}

    return EXCHANGE | _counted(bridge, wanted, "exchange", ("publish_in", "publish_out"), counted, place, alone=True)


def of_connections(bridge: Bridge, wanted: Ranges) -> Columns:
    def place(connection: Connection) -> tuple[str, str]:
        return "", connection.name

    if wanted.data_rates is not None:
        return CONNECTION
    octets = ("recv_oct", "send_oct")
    return CONNECTION | {f"{name}_details.rate": _rate(bridge, "connection", name, place) for name in octets}


def of_channels(bridge: Bridge, wanted: Ranges) -> Columns:
    def place(channel: Channel) -> tuple[str, str]:
        return "", channel_name(channel)

    def delivered(channel: Channel) -> Counters:
        counted = channel.handed_out.all()
        return deliveries(counted) if counted.any() else {}

    found = CHANNEL | _counted(bridge, wanted, "channel", PUBLISHING, publishing, place)
    return found | _counted(bridge, wanted, "channel", DELIVERIES, delivered, place)


def _counted(
    bridge: Bridge,
    wanted: Ranges,
    kind: str,
    names: Iterable[str],
    group: Callable[[Any], Counters],
    place: Callable[[Any], tuple[str, str]],
    alone: bool = False,
) -> Columns:
    """Those of ``message_stats``: of a group that counted nothing no member is there, nor, ``alone``, of a counter."""
    found: Columns = {}
    for name in names:
        found[f"message_stats.{name}"] = lambda one, name=name: group(one).get(name, 0)  # type: ignore[misc]
        if wanted.msg_rates is None:
            rate = _rate(bridge, kind, name, place)

            def shown(one: Any, name: str = name, rate: Callable[[Any], float] = rate) -> float:
                counters = group(one)
                return rate(one) if (counters[name] if alone else any(counters.values())) else 0.0

            found[f"message_stats.{name}_details.rate"] = shown
    return found


def _rate(bridge: Bridge, kind: str, counter: str, place: Callable[[Any], tuple[str, str]]) -> Callable[[Any], float]:
    rate = rising(bridge.history, kind, counter)
    return lambda one: rate(*place(one))
