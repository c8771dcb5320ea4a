"""RabbitMQ's ``rabbitmq_global_*``: what became of all messages since the start, whoever is still there.

Duty: these families, with RabbitMQ's labels, also where the number is 0: a panel of a dashboard is not empty for that.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from warrenmq.broker.broker import Broker
from warrenmq.broker.dead_letter import AT_LEAST_ONCE, AT_MOST_ONCE
from warrenmq.broker.queue.holder import REASONS
from warrenmq.broker.queue.queue import Queue
from warrenmq.broker.vhost.totals import Totals
from warrenmq.http.figures.stats import Counters, add, deliveries
from warrenmq.http.metrics.clients import Clients
from warrenmq.http.metrics.histograms import buckets
from warrenmq.log.histogram import Histogram

if TYPE_CHECKING:
    from prometheus_client.core import Metric

PROTOCOL = "amqp091"
KINDS = ("classic", "quorum", "stream")
BY_KIND = {
    "messages_acknowledged": ("ack", "Total number of messages acknowledged by consumers"),
    "messages_delivered": ("deliver_get", "Total number of messages delivered to consumers"),
    "messages_delivered_consume_auto_ack": ("deliver_no_ack", "Total number of messages delivered, not to be acked"),
    "messages_delivered_consume_manual_ack": ("deliver", "Total number of messages delivered, to be acked"),
    "messages_delivered_get_auto_ack": ("get_no_ack", "Total number of messages fetched, not to be acked"),
    "messages_delivered_get_manual_ack": ("get", "Total number of messages fetched, to be acked"),
    "messages_get_empty": ("get_empty", "Total number of times basic.get found nothing"),
    "messages_redelivered": ("redeliver", "Total number of messages delivered once more"),
}
#: how letters leave; what dies where nothing is dead-lettered is in the ledger, by cause
STRATEGIES = {"classic": (AT_MOST_ONCE,), "quorum": (AT_LEAST_ONCE, AT_MOST_ONCE)}


class Handed:
    """The numbers of what queues handed out, by kind, and of how many copies were routed to them."""

    def __init__(self, totals: Totals) -> None:
        """Begins with those that are gone."""
        self.routed = int(totals.routed)
        self.by_kind: dict[str, Counters] = {kind: deliveries(totals.gone(kind)) for kind in KINDS}

    def count(self, queue: Queue) -> None:
        self.routed += int(queue.counters.routed())
        if queue.deliveries.any():
            add(self.by_kind[queue.kind], deliveries(queue.deliveries))


def families(broker: Broker, handed: Handed, clients: Clients) -> Iterator[Metric]:
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

    tally = broker.services.tally
    received = int(tally.published) - int(tally.refused)
    confirmable = int(tally.numbered) - int(tally.refused_numbered) + int(tally.transacted) + clients.numbered
    for name, text, value in (
        ("messages_received", "Total number of messages received from publishers", received),
        ("messages_received_confirm", "Total number of messages received that expect a confirm", confirmable),
        ("messages_confirmed", "Total number of messages confirmed to publishers", tally.acked + clients.confirmed),
        ("messages_routed", "Total number of messages routed to queues or streams", handed.routed),
        ("messages_unroutable_dropped", "Total number of messages dropped that no queue took", tally.dropped),
        ("messages_unroutable_returned", "Total number of messages returned that no queue took", tally.returned),
    ):
        family = CounterMetricFamily(f"rabbitmq_global_{name}", text, labels=["protocol"])
        family.add_metric([PROTOCOL], int(value))
        yield family
    for name, text, there in (
        ("publishers", "Publishers currently connected", clients.publishers),
        ("consumers", "Consumers currently connected", clients.consumers),
    ):
        gauge = GaugeMetricFamily(f"rabbitmq_global_{name}", text, labels=["protocol"])
        gauge.add_metric([PROTOCOL], there)
        yield gauge
    for name, (counter, text) in BY_KIND.items():
        family = CounterMetricFamily(f"rabbitmq_global_{name}", text, labels=["protocol", "queue_type"])
        for kind in KINDS:
            family.add_metric([PROTOCOL, f"rabbit_{kind}_queue"], handed.by_kind[kind][counter])
        yield family
    yield _sizes(tally.sizes)
    yield from _dead_letters(broker)


def _sizes(found: Histogram) -> Metric:
    """RabbitMQ 3.10 has none; newer ones do, under this name and with these bounds."""
    from prometheus_client.core import HistogramMetricFamily

    family = HistogramMetricFamily(
        "rabbitmq_message_size_bytes", "Size of messages received from publishers", labels=["protocol"]
    )
    family.add_metric([PROTOCOL], buckets(found, 1), int(found.total))
    return family


def _dead_letters(broker: Broker) -> Iterator[Metric]:
    """Counted when they die, by reason; and when the last target of an at-least-once letter has it."""
    from prometheus_client.core import CounterMetricFamily

    letters = broker.dead_letters
    labels = ["queue_type", "dead_letter_strategy"]
    for reason in REASONS:
        family = CounterMetricFamily(
            f"rabbitmq_global_messages_dead_lettered_{reason}", f"Total messages dead-lettered: {reason}", labels=labels
        )
        for kind, strategies in STRATEGIES.items():
            for strategy in strategies:
                if (kind, reason) == ("classic", "delivery_limit") or (strategy, reason) == (AT_LEAST_ONCE, "maxlen"):
                    continue  # which does not exist
                family.add_metric([f"rabbit_{kind}_queue", strategy], letters.counts.get((kind, strategy, reason), 0))
        yield family
    confirmed = CounterMetricFamily(
        "rabbitmq_global_messages_dead_lettered_confirmed",
        "Total messages dead-lettered and confirmed by target queues",
        labels=labels,
    )
    confirmed.add_metric(["rabbit_quorum_queue", AT_LEAST_ONCE], int(letters.confirmed))
    yield confirmed
