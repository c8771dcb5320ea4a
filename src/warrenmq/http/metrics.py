"""/metrics for Prometheus, under RabbitMQ's names where they mean the same; what is Warren's own begins with warren_.

As RabbitMQ's: ``/metrics`` sums over objects, ``/metrics/per-object`` says it for each queue. No login (numbers and,
per object, names of queues). The client library is imported at the first scrape: an idle broker does not pay for it.
"""

from __future__ import annotations

import resource
from typing import TYPE_CHECKING

from starlette.responses import Response

from warrenmq.broker.dead_letter import AT_LEAST_ONCE
from warrenmq.broker.ledger import Ledger
from warrenmq.broker.queue.holder import REASONS
from warrenmq.broker.queue.office import DeadLetterOffice
from warrenmq.http.ages import ages, cumulative, handed_out, held_since
from warrenmq.http.bridge import Bridge
from warrenmq.http.machine import free_disk, open_files, resident_memory
from warrenmq.http.pacer import Pacer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from prometheus_client.core import Metric

    from warrenmq.broker.queue.waits import Waits
    from warrenmq.server.watchdog import Watchdog

QUEUE_GAUGES = {
    "rabbitmq_queue_messages_ready": "Messages ready to be delivered to consumers",
    "rabbitmq_queue_messages_unacked": "Messages delivered to consumers but not yet acknowledged",
    "rabbitmq_queue_messages": "Sum of ready and unacknowledged messages - total queue depth",
    "rabbitmq_queue_consumers": "Consumers on a queue",
    "rabbitmq_queue_messages_ready_bytes": "Size in bytes of ready messages",
    "rabbitmq_queue_messages_unacked_bytes": "Size in bytes of all unacknowledged messages",
    "rabbitmq_queue_messages_bytes": "Size in bytes of ready and unacknowledged messages",
}
QUEUE_AGES = {
    "warren_queue_oldest_waiting_seconds": "Age of the oldest message that waits, 0 where there is none",
    "warren_queue_oldest_held_seconds": "How long the longest held message has been held, 0 where there is none",
}
WAITS = "warren_queue_wait_seconds"
WAITS_HELP = "How long messages had waited when they were handed out"
PROTOCOL = {"protocol": "amqp091"}


async def render(bridge: Bridge, per_object: bool) -> Response:
    from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

    queues = await _queues(bridge, per_object)
    parts = [generate_latest(Collected(list(_metrics(bridge, queues, per_object))))]
    if per_object:
        parts += await _each_queue(queues)
    return Response(b"".join(parts), media_type=CONTENT_TYPE_LATEST)


class Collected:
    """What ``generate_latest`` asks of a registry."""

    def __init__(self, metrics: list[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> Iterable[Metric]:
        return self._metrics


class Queues:
    """What is told of queues: sums in the order of QUEUE_GAUGES, and the same for each by its labels, if wanted."""

    def __init__(self) -> None:
        self.count = 0
        self.sums = [0] * len(QUEUE_GAUGES)
        self.labels: list[str] = []
        self.values: list[list[float]] = []
        self.ages = [0.0] * len(QUEUE_AGES)  # the oldest of all
        self.waits: list[Waits] = []


async def _queues(bridge: Bridge, per_object: bool) -> Queues:
    """Gathered in slices."""
    found = Queues()
    held = await held_since(bridge)
    pacer = Pacer()
    for vhost in list(bridge.broker.vhosts.values()):
        for queue in list(vhost.queues.values()):
            ready, unacked = int(queue.ready), int(queue.unacked)
            ready_bytes, unacked_bytes = int(queue.ready_bytes), int(queue.unacked_bytes)
            letters, letter_bytes = queue.letters_waiting()
            values = [ready, unacked, ready + unacked + letters, queue.consumer_count()]
            values += [ready_bytes, unacked_bytes, ready_bytes + unacked_bytes + letter_bytes]
            found.count += 1
            found.sums = [one + other for one, other in zip(found.sums, values, strict=True)]
            shown = ages(bridge, queue, held, False)
            seconds = [(shown.oldest_waiting_ms or 0) / 1000, (shown.oldest_held_ms or 0) / 1000]
            found.ages = [max(one, other) for one, other in zip(found.ages, seconds, strict=True)]
            if per_object:
                found.waits.append(queue.waits)
                found.labels.append(f'{{vhost="{_escaped(vhost.name)}",queue="{_escaped(queue.name.name)}"}}')
                found.values.append([*values, *seconds])
            await pacer.breathe()
    return found


async def _each_queue(queues: Queues) -> list[bytes]:
    """The lines that the client library would write, in slices: with many queues it would hold the loop for long."""
    parts: list[bytes] = []
    pacer = Pacer()
    for number, (name, text) in enumerate([*QUEUE_GAUGES.items(), *QUEUE_AGES.items()]):
        parts.append(f"# HELP {name} {text}\n# TYPE {name} gauge\n".encode())
        for labels, values in zip(queues.labels, queues.values, strict=True):
            parts.append(f"{name}{labels} {float(values[number])!r}\n".encode())
            await pacer.breathe()
    parts.append(f"# HELP {WAITS} {WAITS_HELP}\n# TYPE {WAITS} histogram\n".encode())
    for labels, waits in zip(queues.labels, queues.waits, strict=True):
        total = handed_out(waits)
        if total:
            for bound, some in (*cumulative(waits).items(), ("+Inf", total)):
                parts.append(f'{WAITS}_bucket{labels[:-1]},le="{bound}"}} {float(some)!r}\n'.encode())
            parts.append(f"{WAITS}_count{labels} {float(total)!r}\n".encode())
            parts.append(f"{WAITS}_sum{labels} {waits.total_ms / 1000!r}\n".encode())
        await pacer.breathe()
    return parts


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _dead_letters(letters: DeadLetterOffice) -> Iterator[Metric]:
    """Counted when they die, by reason; and when the last target of an at-least-once letter has it."""
    from prometheus_client.core import CounterMetricFamily

    labels = ["queue_type", "dead_letter_strategy"]
    for reason in REASONS:
        family = CounterMetricFamily(
            f"rabbitmq_global_messages_dead_lettered_{reason}", f"Total messages dead-lettered: {reason}", labels=labels
        )
        for (kind, strategy, why), count in sorted(letters.counts.items()):
            if why == reason:
                family.add_metric([f"rabbit_{kind}_queue", strategy], count)
        yield family
    confirmed = CounterMetricFamily(
        "rabbitmq_global_messages_dead_lettered_confirmed",
        "Total messages dead-lettered and confirmed by target queues",
        labels=labels,
    )
    confirmed.add_metric(["rabbit_quorum_queue", AT_LEAST_ONCE], int(letters.confirmed))
    yield confirmed


def _ledger(ledger: Ledger) -> Iterator[Metric]:
    """As of the last look at everything, which takes a few seconds with very many queues."""
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

    off = GaugeMetricFamily("warren_ledger_difference", "What does not add up: must be 0", labels=["sum"])
    parts = GaugeMetricFamily("warren_ledger_messages", "What adds up, by sum and part", labels=["sum", "side", "part"])
    for sum in ledger.sums:
        off.add_metric([sum.name], sum.difference())
        for side, lines in (("came", sum.came), ("left", sum.left), ("here", sum.here)):
            for part, count in lines.items():
                parts.add_metric([sum.name, side, part], count)
    yield off
    yield GaugeMetricFamily("warren_ledger_queues_off", "Queues that do not add up: must be 0", value=len(ledger.wrong))
    yield CounterMetricFamily("warren_ledger_passes", "Total looks at everything", value=ledger.passes)
    yield parts


def _stalls(watchdog: Watchdog) -> Iterator[Metric]:
    """What held the event loop."""
    from prometheus_client.core import GaugeMetricFamily, SummaryMetricFamily

    stalled = SummaryMetricFamily("warren_loop_stall_seconds", "Passes of the event loop over 0.1 s", labels=["spent"])
    longest = GaugeMetricFamily("warren_loop_stall_longest_seconds", "The longest of them", labels=["spent"])
    for spent, stalls in watchdog.stalls.items():
        stalled.add_metric([spent], stalls.count, stalls.seconds)
        longest.add_metric([spent], stalls.longest)
    yield stalled
    yield longest
    name = "warren_garbage_collection"
    collected = SummaryMetricFamily(f"{name}_seconds", "Garbage collections of the process", labels=["generation"])
    longest = GaugeMetricFamily(f"{name}_longest_seconds", "The longest of them", labels=["generation"])
    for generation, collections in enumerate(watchdog.collections.of):
        collected.add_metric([str(generation)], collections.count, collections.seconds)
        longest.add_metric([str(generation)], collections.longest)
    yield collected
    yield longest


def _metrics(bridge: Bridge, queues: Queues, per_object: bool) -> Iterator[Metric]:
    from prometheus_client.core import (
        CounterMetricFamily,
        GaugeMetricFamily,
        HistogramMetricFamily,
        InfoMetricFamily,
    )

    broker = bridge.broker
    alarms = bridge.alarms
    connections = bridge.open_connections()
    totals = broker.registry.totals
    delay = broker.delay
    consumers = sum(len(channel.consumers) for one in connections for channel in one.channels.values())
    routed, delivered, acknowledged, redelivered = totals.messages(
        queue for vhost in broker.vhosts.values() for queue in vhost.queues.values()
    )

    def gauge(name: str, text: str, value: float) -> Metric:
        return GaugeMetricFamily(name, text, value=value)

    def counter(name: str, text: str, value: float) -> Metric:
        return CounterMetricFamily(name, text, value=value)

    def by_protocol(name: str, text: str, value: float) -> Metric:
        family = CounterMetricFamily(name, text, labels=list(PROTOCOL))
        family.add_metric(list(PROTOCOL.values()), value)
        return family

    yield InfoMetricFamily(
        "rabbitmq_build",
        "Version of the RabbitMQ it behaves like, and of Warren",
        value={
            "rabbitmq_version": broker.node.rabbitmq_version,
            "product_name": "Warren",
            "product_version": broker.node.version,
        },
    )
    yield InfoMetricFamily(
        "rabbitmq_identity",
        "Node and cluster identity",
        value={"rabbitmq_node": bridge.node, "rabbitmq_cluster": broker.node.cluster_name},
    )
    yield gauge("rabbitmq_connections", "Connections currently open", len(connections))
    yield gauge("rabbitmq_channels", "Channels currently open", sum(len(one.channels) for one in connections))
    yield gauge("rabbitmq_consumers", "Consumers currently connected", consumers)
    yield gauge("rabbitmq_queues", "Queues available", queues.count)
    yield gauge("rabbitmq_exchanges", "Exchanges", sum(len(vhost.exchanges) for vhost in broker.vhosts.values()))
    yield counter("rabbitmq_connections_opened", "Total connections opened", int(totals.connections_opened))
    yield counter("rabbitmq_connections_closed", "Total connections closed", int(totals.connections_closed))
    yield counter("rabbitmq_channels_opened", "Total channels opened", int(totals.channels_opened))
    yield counter("rabbitmq_channels_closed", "Total channels closed", int(totals.channels_closed))
    yield counter("rabbitmq_queues_declared", "Total queues declared", int(totals.queues_declared))
    yield counter("rabbitmq_queues_created", "Total queues created", int(totals.queues_created))
    yield counter("rabbitmq_queues_deleted", "Total queues deleted", int(totals.queues_deleted))
    if not per_object:
        for (name, text), value in zip(QUEUE_GAUGES.items(), queues.sums, strict=True):
            yield gauge(name, text, value)
        for (name, text), age in zip(QUEUE_AGES.items(), queues.ages, strict=True):
            yield gauge(name, text, age)
        waits = totals.waits(queue for vhost in broker.vhosts.values() for queue in vhost.queues.values())
        buckets = [
            *((bound, float(some)) for bound, some in cumulative(waits).items()),
            ("+Inf", float(handed_out(waits))),
        ]
        yield HistogramMetricFamily(WAITS, WAITS_HELP, buckets=buckets, sum_value=waits.total_ms / 1000)
    yield by_protocol("rabbitmq_global_messages_routed", "Total messages routed to queues", routed)
    yield by_protocol("rabbitmq_global_messages_delivered", "Total messages delivered to consumers", delivered)
    yield by_protocol("rabbitmq_global_messages_acknowledged", "Total messages acknowledged by consumers", acknowledged)
    yield by_protocol("rabbitmq_global_messages_redelivered", "Total messages given back by consumers", redelivered)
    unroutable = int(broker.services.unroutable)
    yield by_protocol("rabbitmq_global_messages_unroutable", "Total messages no queue took", unroutable)
    yield from _dead_letters(broker.dead_letters)
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield gauge("rabbitmq_process_open_fds", "Open file descriptors", open_files())
    yield gauge("rabbitmq_process_max_fds", "Open file descriptors limit", files)
    yield gauge("rabbitmq_process_resident_memory_bytes", "Memory used in bytes", resident_memory())
    yield gauge("rabbitmq_disk_space_available_bytes", "Disk space available in bytes", free_disk(bridge.server))
    if alarms is not None:
        yield gauge("rabbitmq_resident_memory_limit_bytes", "Memory high watermark in bytes", int(alarms.memory_limit))
        yield gauge("rabbitmq_disk_space_available_limit_bytes", "Free disk low watermark", int(alarms.disk_limit))
        yield gauge("rabbitmq_alarms_memory_used_watermark", "is 1 if the memory alarm is in effect", alarms.memory)
        yield gauge("rabbitmq_alarms_free_disk_space_watermark", "is 1 if the disk alarm is in effect", alarms.disk)
    yield gauge("warren_delayed_messages", "Messages waiting at delayed exchanges", int(delay.total()))
    yield counter("warren_delayed_scheduled", "Total messages scheduled", int(delay.scheduled))
    yield counter("warren_delayed_delivered", "Total delayed messages that a queue took when due", int(delay.delivered))
    yield counter("warren_delayed_cancelled", "Total delayed messages cancelled", int(delay.cancelled))
    yield counter("warren_delayed_undeliverable", "Total delayed messages no queue took", int(delay.undeliverable))
    yield counter("warren_receipts_sent", "Total receipts that a queue or a channel took", int(broker.receipts.sent))
    yield counter("warren_receipts_lost", "Total receipts that nobody took", int(broker.receipts.lost))
    remembered = broker.deduplication
    yield gauge("warren_deduplication_ids", "Message ids that exchanges remember", int(remembered.ids()))
    duplicates = int(broker.services.tally.duplicates)
    yield counter("warren_deduplication_duplicates", "Total publishes of a message id taken before", duplicates)
    early = int(remembered.all_evicted_early())
    yield counter("warren_deduplication_evicted_early", "Total ids forgotten before their window was over", early)
    missed = int(broker.services.deadlines.missed)
    yield counter("warren_ack_deadlines_missed", "Total deliveries given back because their ack was late", missed)
    yield from _ledger(bridge.server.ledger)
    sent = CounterMetricFamily(
        "warren_transferred_messages", "Total messages moved, copied, redriven and taken back", labels=["kind"]
    )
    for kind, messages in bridge.transfers.sent.items():
        sent.add_metric([kind], messages)
    yield sent
    http_connections = bridge.http_connections
    dropped = CounterMetricFamily(
        "warren_http_connections_dropped", "Total HTTP connections dropped, by reason", labels=["reason"]
    )
    for reason, count in http_connections.dropped.items():
        dropped.add_metric([reason], count)
    yield gauge("warren_http_connections", "HTTP connections currently open", len(http_connections))
    yield gauge("warren_http_connections_max", "HTTP connections that there may be", http_connections.most())
    yield dropped
    in_flow = sum(1 for one in connections if one.reading.in_flow)
    yield gauge("warren_connections_in_flow", "Connections not read until the log has caught up", in_flow)
    allowed = int(broker.durability.allowance.limit)
    yield gauge("warren_credit_bytes", "Bytes that a connection may have on the way to the disk", allowed)
    log = broker.services.log
    yield gauge("warren_log_synced_batch", "Number of the last batch of the log on disk", int(log.synced))
    yield gauge("warren_log_failing", "is 1 while the log cannot be written", broker.services.pressure.log_failing)
    yield from _stalls(bridge.server.watchdog)
    damage = broker.services.log.damage
    yield gauge("warren_damaged_messages", "Messages that do not check on disk", int(broker.services.damaged.count()))
    yield counter("warren_damaged_found", "Total records of the log found damaged", int(damage.found))
    yield gauge("warren_damaged_segments", "Segments in which more than bodies is damaged", len(damage.segments))
    yield counter("warren_scrub_read_bytes", "Total bytes of the log read by the scrub", int(log.scrub.bytes))
    yield counter("warren_scrub_passes", "Total times the scrub has read all of it", int(log.scrub.passes))
    journal = bridge.server.journal
    yield gauge("warren_journal_lag_seconds", "How long the journal has lacked what is synced", journal.seconds_behind)
    yield gauge("warren_journal_bytes", "Bytes that the journal's files take", journal.bytes)
    yield gauge("warren_journal_failing", "is 1 when the journal should be written and is not", journal.problem != "")
    yield counter("warren_journal_events", "Total events written to the journal", journal.events)
    yield counter("warren_journal_gaps", "Total gaps recorded in the journal", journal.gaps)
    yield counter("warren_journal_removed_events", "Total events removed by its retention", journal.removed)
    gone = bridge.server.folder.problem != ""
    yield gauge("warren_data_folder_gone", "is 1 when the data folder was removed or replaced", gone)
