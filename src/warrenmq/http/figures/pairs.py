"""Who publishes where, and who takes what from where: RabbitMQ's "detailed" statistics of one queue, exchange, channel.

Duty: the counters of each pair of exchange and queue, channel and exchange, channel and queue, under RabbitMQ's names,
for whoever asks for one object. A pair is told while both are there. Counting is the broker's (``HandedOut``,
``ByExchange``, ``QueueCounters.by_exchange``); what a pair was is in ``history.py``, unless it is all there is of the
object that counts it: then that one's past is its own.
"""

from __future__ import annotations

from collections.abc import Iterator

from warrenmq.broker.channel.channel import Channel
from warrenmq.broker.publish.by_exchange import Share
from warrenmq.broker.queue.queue import Queue
from warrenmq.broker.records import Exchange
from warrenmq.broker.services.deliveries import Deliveries
from warrenmq.broker.vhost.vhost import VHost
from warrenmq.http.bridge import Bridge
from warrenmq.http.figures.history import pair
from warrenmq.http.figures.rates import Range, Rates
from warrenmq.http.figures.stats import (
    Counters,
    deliveries,
    is_all,
    publishing,
    share_counters,
)
from warrenmq.http.models import ByChannel, ByExchange, ByQueue, ExchangeName, QueueName
from warrenmq.http.pacer import Pacer
from warrenmq.http.views import channel_details, channel_name

# -- exchange and queue


def into(bridge: Bridge, queue: Queue, wanted: Range | None) -> Iterator[ByExchange]:
    """What came into a queue, by the exchanges it was published to."""
    found = queue.counters.by_exchange()
    for exchange in sorted(found, key=_name):
        if found[exchange]:
            stats = _routed(bridge, exchange, queue, found, wanted)
            yield ByExchange(ExchangeName(exchange.name.name, exchange.name.virtual_host), stats)


async def out_of(bridge: Bridge, vhost: VHost, exchange: Exchange, wanted: Range | None) -> Iterator[ByQueue]:
    """What was published to an exchange, by the queues it reached."""
    pacer = Pacer()
    reached: list[Queue] = []
    for queue in list(vhost.queues.values()):
        if queue.counters.by_exchange().get(exchange):
            reached.append(queue)
        await pacer.breathe()
    return (
        ByQueue(
            QueueName(queue.name.name, queue.name.virtual_host),
            _routed(bridge, exchange, queue, queue.counters.by_exchange(), wanted),
        )
        for queue in sorted(reached, key=_name)
    )


def _routed(
    bridge: Bridge, exchange: Exchange, queue: Queue, known: dict[Exchange, int], wanted: Range | None
) -> dict[str, object]:
    vhost, name = queue.name.virtual_host, queue.name.name
    count = known.get(exchange, 0)
    if is_all(known, count, int(queue.counters.routed())):
        rates = bridge.rates("queue", vhost, name)
    else:
        rates = bridge.rates("exchange and queue", vhost, pair(exchange.name.name, name))
    return rates.stats({"publish": count}, wanted)


# -- channel and exchange


def publishes(bridge: Bridge, channel: Channel, wanted: Range | None) -> Iterator[ByExchange]:
    """What a channel published, by exchange."""
    shares = channel.publishing.shares()
    for exchange in sorted(shares, key=_name):
        counted = share_counters(shares[exchange])
        if any(counted.values()):
            stats = _published(bridge, channel, exchange, shares, counted).stats(counted, wanted)
            yield ByExchange(ExchangeName(exchange.name.name, exchange.name.virtual_host), stats)


async def publishers(bridge: Bridge, exchange: Exchange, wanted: Range | None) -> Iterator[ByChannel]:
    """What was published to an exchange, by channel."""
    channels = [one for one in await _channels(bridge, exchange.name.virtual_host) if one.publishing.published]
    return _publishers(bridge, channels, exchange, wanted)


def _publishers(
    bridge: Bridge, channels: list[Channel], exchange: Exchange, wanted: Range | None
) -> Iterator[ByChannel]:
    for channel in channels:
        shares = channel.publishing.shares()
        share = shares.get(exchange)
        counted = {} if share is None else share_counters(share)
        if any(counted.values()):
            stats = _published(bridge, channel, exchange, shares, counted).stats(counted, wanted)
            yield ByChannel(channel_details(bridge, channel), stats)


def _published(
    bridge: Bridge, channel: Channel, exchange: Exchange, shares: dict[Exchange, Share], counted: Counters
) -> Rates:
    if is_all(shares, counted, publishing(channel)):
        return bridge.rates("channel", "", channel_name(channel))
    return bridge.rates("channel and exchange", "", pair(channel_name(channel), exchange.name.name))


# -- channel and queue


def takes(bridge: Bridge, channel: Channel, wanted: Range | None) -> Iterator[ByQueue]:
    """What a channel was given, by queue."""
    known = channel.handed_out.by_queue()
    for queue in sorted(known, key=_name):
        if known[queue].any():
            stats = _taken(bridge, channel, queue, known, wanted)
            yield ByQueue(QueueName(queue.name.name, queue.name.virtual_host), stats)


async def takers(bridge: Bridge, queue: Queue, wanted: Range | None) -> Iterator[ByChannel]:
    """What came out of a queue, by channel."""
    channels = await _channels(bridge, queue.name.virtual_host)
    return _takers(bridge, channels, queue, wanted)


def _takers(bridge: Bridge, channels: list[Channel], queue: Queue, wanted: Range | None) -> Iterator[ByChannel]:
    for channel in channels:
        known = channel.handed_out.by_queue()
        counted = known.get(queue)
        if counted is not None and counted.any():
            yield ByChannel(channel_details(bridge, channel), _taken(bridge, channel, queue, known, wanted))


def _taken(
    bridge: Bridge, channel: Channel, queue: Queue, known: dict[Queue, Deliveries], wanted: Range | None
) -> dict[str, object]:
    counted = deliveries(known[queue])
    if is_all(known, counted, deliveries(channel.handed_out.all())):
        rates = bridge.rates("channel", "", channel_name(channel))
    else:
        rates = bridge.rates("channel and queue", "", pair(channel_name(channel), queue.name.name))
    return rates.stats(counted, wanted)


def _name(one: Queue | Exchange) -> str:
    return one.name.name


async def _channels(bridge: Bridge, vhost: str) -> list[Channel]:
    """Those of a vhost, some at a time."""
    pacer = Pacer()
    found: list[Channel] = []
    for connection in bridge.open_connections():
        if connection.vhost is not None and connection.vhost.name == vhost:
            found += [connection.channels[number] for number in sorted(connection.channels)]
        await pacer.breathe()
    return found
