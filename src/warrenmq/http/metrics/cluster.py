"""``warren_cluster_…``: how a cluster stands, from each of its nodes.

Every node says its role and what it reads in etcd; only the leader knows how far the others are, and how long commits
wait for them. The page of a node that follows has these and what its process takes of its machine.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING

from starlette.responses import Response

from warrenmq.http.figures.machine import open_files, resident_memory
from warrenmq.http.metrics.histograms import histogram
from warrenmq.server.config import Settings
from warrenmq.server.standing import ROLES, Standing

if TYPE_CHECKING:
    from prometheus_client.core import Metric


def families(standing: Standing) -> Iterator[Metric]:
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

    def gauge(name: str, text: str, value: float) -> Metric:
        return GaugeMetricFamily(name, text, value=value)

    role = GaugeMetricFamily("warren_cluster_role", "is 1 for the role that this node has", labels=["role"])
    for one in ROLES:
        role.add_metric([one], one == standing.role)
    yield role
    yield gauge("warren_cluster_epoch", "Number of the epoch: it rises with every change of the leader", standing.epoch)
    yield CounterMetricFamily(
        "warren_cluster_takeovers", "Total epochs that began while this process looked on", value=standing.takeovers
    )
    yield gauge("warren_cluster_nodes", "Nodes that are known", len(standing.nodes))
    yield gauge("warren_cluster_nodes_in_sync", "Nodes that have everything confirmed, by etcd", standing.in_sync)
    yield gauge("warren_cluster_min_in_sync", "As many have it before it is confirmed", standing.min_in_sync)
    in_sync = GaugeMetricFamily("warren_cluster_in_sync", "is 1 for a node in sync", labels=["node"])
    alive = GaugeMetricFamily("warren_cluster_alive", "is 1 while the node's lease in etcd lasts", labels=["node"])
    octets = GaugeMetricFamily("warren_cluster_lag_bytes", "What a node lacks of the leader's log", labels=["node"])
    batches = GaugeMetricFamily(
        "warren_cluster_lag_batches", "The same in batches, where the leader remembers them", labels=["node"]
    )
    skews = GaugeMetricFamily(
        "warren_cluster_clock_skew_seconds", "How far a node's clock is ahead of the leader's", labels=["node"]
    )
    outs = GaugeMetricFamily(
        "warren_cluster_stays_out_seconds",
        "For how long a node that was late too often does not count",
        labels=["node"],
    )
    for node in standing.nodes:
        if node.stays_out is not None:
            outs.add_metric([node.name], node.stays_out)
        if node.clock_skew is not None:
            skews.add_metric([node.name], node.clock_skew)
        in_sync.add_metric([node.name], node.in_sync)
        alive.add_metric([node.name], node.alive)
        if node.lag_bytes is not None:
            octets.add_metric([node.name], node.lag_bytes)
        if node.lag_batches is not None:
            batches.add_metric([node.name], node.lag_batches)
    yield from (in_sync, alive, octets, batches, skews, outs)
    yield gauge("warren_cluster_has_leader", "is 1 while this node knows of a leader", standing.leader is not None)
    yield gauge("warren_cluster_paused", "is 1 while nobody takes over by himself", standing.paused)
    yield gauge("warren_cluster_etcd_reachable", "is 1 while etcd answers this node", standing.etcd_reachable)
    yield CounterMetricFamily(
        "warren_cluster_etcd_errors", "Total calls of etcd without an answer", value=standing.etcd_errors
    )
    if standing.commit_waits is not None:
        yield histogram(
            "warren_cluster_commit_wait_seconds",
            "From a batch's place in the log until every node that counts has it",
            standing.commit_waits,
        )
    if standing.ack_waits is not None:
        yield histogram(
            "warren_cluster_ack_seconds",
            "From a batch's way to a node until that one has it on its disk",
            standing.ack_waits,
        )


def page(standing: Standing, settings: Settings) -> Response:
    """All metrics of a node that has no broker: it follows."""
    from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

    return Response(generate_latest(_Page(standing, settings)), media_type=CONTENT_TYPE_LATEST)


class _Page:
    """What ``generate_latest`` asks of a registry."""

    def __init__(self, standing: Standing, settings: Settings) -> None:
        self._standing = standing
        self._settings = settings

    def collect(self) -> Iterator[Metric]:
        from prometheus_client.core import GaugeMetricFamily

        yield from families(self._standing)
        free = shutil.disk_usage(self._settings.data_dir).free
        for name, text, value in (
            ("rabbitmq_process_open_fds", "Open file descriptors", open_files()),
            ("rabbitmq_process_resident_memory_bytes", "Memory used in bytes", resident_memory()),
            ("rabbitmq_disk_space_available_bytes", "Disk space available in bytes", free),
        ):
            yield GaugeMetricFamily(name, text, value=value)
