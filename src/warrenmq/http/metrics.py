"""/metrics for Prometheus, under RabbitMQ's names where they mean the same; what is Warren's own begins with warren_.

As RabbitMQ's: ``/metrics`` sums over objects, ``/metrics/per-object`` says it for each queue. No login (numbers and,
per object, names of queues). The client library is imported at the first scrape: an idle broker does not pay for it.
"""

from __future__ import annotations

import resource
from typing import TYPE_CHECKING

from starlette.responses import Response

from warrenmq.broker.ledger import Ledger
from warrenmq.http.ages import ages, cumulative, handed_out, held_since
from warrenmq.http.bridge import Bridge
from warrenmq.http.machine import free_disk, open_files, resident_memory
from warrenmq.http.metrics_clients import CHANNEL_FAMILIES, CONNECTION_FAMILIES, Clients, clients, escaped, lines
from warrenmq.http.metrics_global import Handed, families
from warrenmq.http.pacer import Pacer
from warrenmq.log.causes import CAUSE_NAMES, DAMAGED, DELIVERY_LIMIT, EXPIRED, LETTERED, LIMIT, MOVED, PURGED, REJECTED

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from prometheus_client.core import Metric

    from warrenmq.broker.queue.waits import Waits
    from warrenmq.server.watchdog import Watchdog

QUEUE_FAMILIES = {
    "rabbitmq_queue_messages_ready": "Messages ready to be delivered to consumers",
    "rabbitmq_queue_messages_unacked": "Messages delivered to consumers but not yet acknowledged",
    "rabbitmq_queue_messages": "Sum of ready and unacknowledged messages - total queue depth",
    "rabbitmq_queue_consumers": "Consumers on a queue",
    "rabbitmq_queue_messages_ready_bytes": "Size in bytes of ready messages",
    "rabbitmq_queue_messages_unacked_bytes": "Size in bytes of all unacknowledged messages",
    "rabbitmq_queue_messages_bytes": "Size in bytes of ready and unacknowledged messages",
    "rabbitmq_queue_messages_published_total": "Total number of messages published to queues",
}
QUEUE_AGES = {
    "warren_queue_oldest_waiting_seconds": "Age of the oldest message that waits, 0 where there is none",
    "warren_queue_oldest_held_seconds": "How long the longest held message has been held, 0 where there is none",
}
WAITS = "warren_queue_wait_seconds"
WAITS_HELP = "How long messages had waited when they were handed out"
CAUSES = "warren_queue_messages_gone_total"
CAUSES_HELP = "Total messages that no client took for good, by cause"
UNROUTABLE = "warren_exchange_messages_unroutable_total"
UNROUTABLE_HELP = "Total messages from an exchange that no queue took, dropped or returned"
GIVEN_UP = {
    cause: CAUSE_NAMES[cause] for one in (EXPIRED, LIMIT, REJECTED, DELIVERY_LIMIT) for cause in (one, one | LETTERED)
} | {cause: CAUSE_NAMES[cause] for cause in (PURGED, MOVED, DAMAGED)}


async def render(bridge: Bridge, per_object: bool) -> Response:
    from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

    queues = await _queues(bridge, per_object)
    found = await clients(bridge)
    parts = [generate_latest(Collected(list(_metrics(bridge, queues, found, per_object))))]
    if per_object:
        parts += await _each_queue(queues)
        parts += await _each_cause(queues)
        parts += await _each_exchange(bridge)
        parts += await lines(CONNECTION_FAMILIES, "connection", found.connections)
        parts += await lines(CHANNEL_FAMILIES, "channel", found.channels)
    return Response(b"".join(parts), media_type=CONTENT_TYPE_LATEST)


class Collected:
    """What ``generate_latest`` asks of a registry."""

    def __init__(self, metrics: list[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> Iterable[Metric]:
        return self._metrics


class Queues:
    """What is told of queues: sums in the order of QUEUE_FAMILIES, and the same for each by its labels, if wanted."""

    def __init__(self, handed: Handed) -> None:
        self.handed = handed
        self.causes: list[tuple[str, str, int]] = []  # labels, why, how many left
        self.count = 0
        self.sums = [0] * len(QUEUE_FAMILIES)
        self.labels: list[str] = []
        self.values: list[list[float]] = []
        self.ages = [0.0] * len(QUEUE_AGES)  # the oldest of all
        self.waits: list[Waits] = []


async def _queues(bridge: Bridge, per_object: bool) -> Queues:
    """Gathered in slices."""
    held = await held_since(bridge)
    found = Queues(Handed(bridge.broker.registry.totals))
    # those that are there now: what one of them handed out counts also when it goes meanwhile
    there = [(vhost, list(vhost.queues.values())) for vhost in bridge.broker.vhosts.values()]
    pacer = Pacer()
    for vhost, some in there:
        for queue in some:
            found.handed.count(queue)
            if queue.gone:
                continue
            ready, unacked = int(queue.ready), int(queue.unacked)
            ready_bytes, unacked_bytes = int(queue.ready_bytes), int(queue.unacked_bytes)
            letters, letter_bytes = queue.letters_waiting()
            values = [ready, unacked, ready + unacked + letters, queue.consumer_count()]
            values += [ready_bytes, unacked_bytes, ready_bytes + unacked_bytes + letter_bytes, int(queue.routed())]
            found.count += 1
            found.sums = [one + other for one, other in zip(found.sums, values, strict=True)]
            shown = ages(bridge, queue, held, False)
            seconds = [(shown.oldest_waiting_ms or 0) / 1000, (shown.oldest_held_ms or 0) / 1000]
            found.ages = [max(one, other) for one, other in zip(found.ages, seconds, strict=True)]
            if per_object:
                found.waits.append(queue.waits)
                found.labels.append(f'{{vhost="{escaped(vhost.name)}",queue="{escaped(queue.name.name)}"}}')
                found.values.append([*values, *seconds])
                account = queue.account()
                left = [(name, int(account.left_for(cause))) for cause, name in GIVEN_UP.items()]
                left.append(("refused", int(queue.turned_away)))
                found.causes += [(found.labels[-1], name, count) for name, count in left if count]
            await pacer.breathe()
    return found


async def _each_queue(queues: Queues) -> list[bytes]:
    """The lines that the client library would write, in slices: with many queues it would hold the loop for long."""
    parts: list[bytes] = []
    pacer = Pacer()
    for number, (name, text) in enumerate([*QUEUE_FAMILIES.items(), *QUEUE_AGES.items()]):
        parts.append(f"# HELP {name} {text}\n# TYPE {name} {kind_of(name)}\n".encode())
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


def kind_of(name: str) -> str:
    return "counter" if name.endswith("_total") else "gauge"


async def _each_cause(queues: Queues) -> list[bytes]:
    """Why messages left queues without a client that wanted them, or never came into them."""
    parts = [f"# HELP {CAUSES} {CAUSES_HELP}\n# TYPE {CAUSES} counter\n".encode()]
    pacer = Pacer()
    for labels, cause, count in queues.causes:
        parts.append(f'{CAUSES}{labels[:-1]},cause="{cause}"}} {float(count)!r}\n'.encode())
        await pacer.breathe()
    return parts


async def _each_exchange(bridge: Bridge) -> list[bytes]:
    """Of those from which something reached no queue."""
    parts = [f"# HELP {UNROUTABLE} {UNROUTABLE_HELP}\n# TYPE {UNROUTABLE} counter\n".encode()]
    pacer = Pacer()
    for vhost in list(bridge.broker.vhosts.values()):
        for exchange in list(vhost.exchanges.values()):
            count = int(exchange.messages_unroutable)
            if count:
                labels = f'vhost="{escaped(vhost.name)}",exchange="{escaped(exchange.name.name)}"'
                parts.append(f"{UNROUTABLE}{{{labels}}} {float(count)!r}\n".encode())
            await pacer.breathe()
    return parts


def _ledger(ledger: Ledger) -> Iterator[Metric]:
    """As of the last look at everything, which takes a few seconds with very many queues."""
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

    off = GaugeMetricFamily("warren_ledger_difference", "What does not add up: must be 0", labels=["sum"])
    parts = GaugeMetricFamily("warren_ledger_messages", "What adds up, by sum and part", labels=["sum", "side", "part"])
    for sum in ledger.sums:
        off.add_metric([sum.name], sum.difference())
        for side, some in (("came", sum.came), ("left", sum.left), ("here", sum.here)):
            for part, count in some.items():
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


def _metrics(bridge: Bridge, queues: Queues, found: Clients, per_object: bool) -> Iterator[Metric]:
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

    def gauge(name: str, text: str, value: float) -> Metric:
        return GaugeMetricFamily(name, text, value=value)

    def counter(name: str, text: str, value: float) -> Metric:
        return CounterMetricFamily(name, text, value=value)

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
        value={
            "rabbitmq_node": bridge.node,
            "rabbitmq_cluster": broker.node.cluster_name,
            "rabbitmq_cluster_permanent_id": broker.node.cluster_name,
            "rabbitmq_endpoint": "per-object" if per_object else "aggregated",
        },
    )
    yield gauge("rabbitmq_connections", "Connections currently open", len(connections))
    yield gauge("rabbitmq_channels", "Channels currently open", sum(len(one.channels) for one in connections))
    yield gauge("rabbitmq_consumers", "Consumers currently connected", found.consumers)
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
        for some, sums in (
            (CONNECTION_FAMILIES, found.connection_sums),
            (CHANNEL_FAMILIES, found.channel_sums),
        ):
            for (name, text), total in zip(some.items(), sums, strict=True):
                yield (counter if name.endswith("_total") else gauge)(name.removesuffix("_total"), text, total)
        queues.sums[-1] = queues.handed.routed  # a counter does not fall because a queue is deleted
        for (name, text), value in zip(QUEUE_FAMILIES.items(), queues.sums, strict=True):
            yield (counter if name.endswith("_total") else gauge)(name.removesuffix("_total"), text, value)
        for (name, text), age in zip(QUEUE_AGES.items(), queues.ages, strict=True):
            yield gauge(name, text, age)
        waits = totals.waits(queue for vhost in broker.vhosts.values() for queue in vhost.queues.values())
        buckets = [
            *((bound, float(some)) for bound, some in cumulative(waits).items()),
            ("+Inf", float(handed_out(waits))),
        ]
        yield HistogramMetricFamily(WAITS, WAITS_HELP, buckets=buckets, sum_value=waits.total_ms / 1000)
    yield from families(broker, queues.handed, found)
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield gauge("rabbitmq_process_open_fds", "Open file descriptors", open_files())
    yield gauge("rabbitmq_process_open_tcp_sockets", "Open TCP sockets", len(broker.connections))
    yield gauge("rabbitmq_process_max_tcp_sockets", "Open TCP sockets limit", files)
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
