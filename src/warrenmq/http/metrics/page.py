"""/metrics and /metrics/per-object, for Prometheus.

As RabbitMQ's: ``/metrics`` sums over objects, ``/metrics/per-object`` says it for each queue, connection and channel;
``detailed.py`` says what is asked for. No login (numbers and, per object, names). The client library is imported at the
first scrape: an idle broker does not pay for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from starlette.responses import Response

from warrenmq.broker.queue.waits import Waits
from warrenmq.http.bridge import Bridge
from warrenmq.http.figures.ages import cumulative, handed_out
from warrenmq.http.listing import let_go
from warrenmq.http.metrics import node, own, whole
from warrenmq.http.metrics.clients import (
    ALL_CHANNEL_FAMILIES,
    CHANNEL_EXCHANGE_FAMILIES,
    CHANNEL_FAMILIES,
    CHANNEL_QUEUE_FAMILIES,
    CONNECTION_FAMILIES,
    Clients,
    clients,
)
from warrenmq.http.metrics.queues import (
    OVER_LIMIT_HELP,
    QUEUE_AGES,
    QUEUE_FAMILIES,
    WAITS,
    WAITS_HELP,
    Queues,
    each_cause,
    each_exchange,
    each_queue,
    gather,
)
from warrenmq.http.metrics.text import kind_of, lines
from warrenmq.http.pacer import Pacer
from warrenmq.http.pieces import Pieces

if TYPE_CHECKING:
    from prometheus_client.core import Metric


async def render(bridge: Bridge, per_object: bool) -> Response:
    from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

    queues = await gather(bridge, per_object)
    found = await clients(bridge, per_object)
    page = Pieces(generate_latest(Collected(_metrics(bridge, queues, found, per_object))))
    await lines(page, node.LOGINS, node.logins(bridge))
    if per_object:
        await each_queue(page, queues)
        await each_cause(page, queues)
        await each_exchange(page, bridge)
        await lines(page, CONNECTION_FAMILIES, found.connections)
        await lines(page, CHANNEL_FAMILIES, found.channels)
        await lines(page, CHANNEL_EXCHANGE_FAMILIES, found.channel_exchanges)
        await lines(page, CHANNEL_QUEUE_FAMILIES, found.channel_queues)
        pacer = Pacer()
        of_channels = found.channels, found.channel_exchanges, found.channel_queues
        for rows in (queues.values, queues.labels, found.connections, *of_channels):
            await let_go(rows, pacer)
    return page.answer(CONTENT_TYPE_LATEST)


async def families(bridge: Bridge) -> list[Metric]:
    """All of ``/metrics``, for whoever writes it in another way."""
    from prometheus_client.core import CounterMetricFamily

    queues = await gather(bridge, False)
    found = list(_metrics(bridge, queues, await clients(bridge), False))
    for number, (name, text) in enumerate(node.LOGINS.items()):
        family = CounterMetricFamily(name.removesuffix("_total"), text, labels=["protocol"])
        for protocol, values in bridge.broker.registry.totals.logins.items():
            family.add_metric([protocol], node.login_counts(values)[number])
        found.append(family)
    return found


class Collected:
    """A registry, as far as ``generate_latest`` asks one."""

    def __init__(self, metrics: Iterable[Metric]) -> None:
        self._metrics = list(metrics)

    def collect(self) -> Iterable[Metric]:
        return self._metrics


def each(families: Mapping[str, str], values: Sequence[float]) -> Iterator[Metric]:
    """Families with one sample."""
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

    for (name, text), value in zip(families.items(), values, strict=True):
        if kind_of(name) == "counter":
            yield CounterMetricFamily(name.removesuffix("_total"), text, value=value)
        else:
            yield GaugeMetricFamily(name, text, value=value)


def _metrics(bridge: Bridge, queues: Queues, found: Clients, per_object: bool) -> Iterator[Metric]:
    yield from node.infos(bridge, "per-object" if per_object else "aggregated")
    yield from each(THERE, _there(bridge, queues, found))
    yield from each(node.CHURN, node.churn(bridge.broker))
    if not per_object:
        yield from each(CONNECTION_FAMILIES, found.connection_sums)
        yield from each(ALL_CHANNEL_FAMILIES, found.channel_sums)
        queues.sums[-1] = queues.handed.routed  # a counter does not fall because a queue is deleted
        yield from each(QUEUE_FAMILIES, queues.sums)
        yield from each(QUEUE_AGES, queues.ages)
        yield _waits(queues.waited)
    yield _over_limit(queues.over)
    yield from whole.families(bridge.broker, queues.handed, found)
    yield from each(node.USED, node.used(bridge))
    yield from each(node.LIMITS, node.limits(bridge))
    yield from each(node.ALARMS, node.alarms(bridge))
    yield from each(node.DISK, node.disk(bridge))
    yield from own.families(bridge)


THERE = {
    "rabbitmq_connections": "Connections currently open",
    "rabbitmq_channels": "Channels currently open",
    "rabbitmq_consumers": "Consumers currently connected",
    "rabbitmq_queues": "Queues available",
    "rabbitmq_exchanges": "Exchanges available",
}


def _there(bridge: Bridge, queues: Queues, found: Clients) -> list[int]:
    connections = bridge.open_connections()
    channels = sum(len(one.channels) for one in connections)
    exchanges = sum(len(vhost.exchanges) for vhost in bridge.broker.vhosts.values())
    return [len(connections), channels, found.consumers, queues.count, exchanges]


def _over_limit(over: dict[str, int]) -> Metric:
    """Of all queues, those that are gone too."""
    from prometheus_client.core import CounterMetricFamily

    family = CounterMetricFamily("warren_messages_over_limit", OVER_LIMIT_HELP, labels=["limit"])
    for limit, count in over.items():
        family.add_metric([limit], count)
    return family


def _waits(waits: Waits) -> Metric:
    from prometheus_client.core import HistogramMetricFamily

    buckets = [(bound, float(some)) for bound, some in cumulative(waits).items()]
    buckets.append(("+Inf", float(handed_out(waits))))
    return HistogramMetricFamily(WAITS, WAITS_HELP, buckets=buckets, sum_value=waits.total_ms / 1000)
