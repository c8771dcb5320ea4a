"""What only Warren has to tell: families that begin with ``warren_``, for the broker as a whole."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from warrenmq.broker.ledger import Ledger
from warrenmq.http.bridge import Bridge
from warrenmq.http.metrics import cluster
from warrenmq.http.metrics.histograms import histogram

if TYPE_CHECKING:
    from prometheus_client.core import Metric

    from warrenmq.server.watchdog import Watchdog


def ledger(found: Ledger) -> Iterator[Metric]:
    """As of the last look at everything, which takes a few seconds with very many queues."""
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

    off = GaugeMetricFamily("warren_ledger_difference", "What does not add up: must be 0", labels=["sum"])
    parts = GaugeMetricFamily("warren_ledger_messages", "What adds up, by sum and part", labels=["sum", "side", "part"])
    for sum in found.sums:
        off.add_metric([sum.name], sum.difference())
        for side, some in (("came", sum.came), ("left", sum.left), ("here", sum.here)):
            for part, count in some.items():
                parts.add_metric([sum.name, side, part], count)
    yield off
    yield GaugeMetricFamily("warren_ledger_queues_off", "Queues that do not add up: must be 0", value=len(found.wrong))
    yield CounterMetricFamily("warren_ledger_passes", "Total looks at everything", value=found.passes)
    yield parts


def stalls(watchdog: Watchdog) -> Iterator[Metric]:
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


def families(bridge: Bridge) -> Iterator[Metric]:
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

    broker = bridge.broker
    connections = bridge.open_connections()
    delay = broker.delay

    def gauge(name: str, text: str, value: float) -> Metric:
        return GaugeMetricFamily(name, text, value=value)

    def counter(name: str, text: str, value: float) -> Metric:
        return CounterMetricFamily(name, text, value=value)

    yield gauge("warren_delayed_messages", "Messages waiting at delayed exchanges", int(delay.total()))
    yield counter("warren_delayed_scheduled", "Total messages scheduled", int(delay.scheduled))
    yield counter("warren_delayed_delivered", "Total delayed messages that a queue took when due", int(delay.delivered))
    yield counter("warren_delayed_cancelled", "Total delayed messages cancelled", int(delay.cancelled))
    yield counter("warren_delayed_undeliverable", "Total delayed messages no queue took", int(delay.undeliverable))
    yield counter("warren_receipts_sent", "Total receipts that a queue or a channel took", int(broker.receipts.sent))
    yield counter("warren_receipts_lost", "Total receipts that nobody took", int(broker.receipts.lost))
    lost = int(broker.dead_letters.lost)
    yield counter("warren_dead_letters_lost", "Total dead letters that no queue took", lost)
    remembered = broker.deduplication
    yield gauge("warren_deduplication_ids", "Message ids that exchanges remember", int(remembered.ids()))
    duplicates = int(broker.services.tally.duplicates)
    yield counter("warren_deduplication_duplicates", "Total publishes of a message id taken before", duplicates)
    early = int(remembered.all_evicted_early())
    yield counter("warren_deduplication_evicted_early", "Total ids forgotten before their window was over", early)
    missed = int(broker.services.deadlines.missed)
    yield counter("warren_ack_deadlines_missed", "Total deliveries given back because their ack was late", missed)
    yield from ledger(bridge.server.ledger)
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
    tally = broker.services.tally
    yield histogram(
        "warren_confirm_seconds", "From a publish to its confirm, of those that wait for the disk", tally.confirm_times
    )
    yield histogram("warren_log_sync_seconds", "How long syncs of the log took", log.commits.disk.syncs)
    yield gauge("warren_log_synced_batch", "Number of the last batch of the log on disk", int(log.synced))
    yield gauge("warren_log_failing", "is 1 while the log cannot be written", broker.services.pressure.log_failing)
    yield from stalls(bridge.server.watchdog)
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
    standing = bridge.standing()
    if standing is not None:
        yield from cluster.families(standing)
    yield gauge("warren_data_folder_gone", "is 1 when the data folder was removed or replaced", gone)
