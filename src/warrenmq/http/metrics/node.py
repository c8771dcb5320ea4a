"""What RabbitMQ's metrics tell of the node: who it is, what came and went, what the process takes of its machine."""

from __future__ import annotations

import resource
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from warrenmq.broker.broker import Broker
from warrenmq.http.bridge import Bridge
from warrenmq.http.figures.machine import free_disk, open_files, resident_memory
from warrenmq.http.metrics.text import Row, labels

if TYPE_CHECKING:
    from prometheus_client.core import Metric

CHURN = {
    "rabbitmq_connections_opened_total": "Total number of connections opened",
    "rabbitmq_connections_closed_total": "Total number of connections closed or terminated",
    "rabbitmq_channels_opened_total": "Total number of channels opened",
    "rabbitmq_channels_closed_total": "Total number of channels closed",
    "rabbitmq_queues_declared_total": "Total number of queues declared",
    "rabbitmq_queues_created_total": "Total number of queues created",
    "rabbitmq_queues_deleted_total": "Total number of queues deleted",
}
LIMITS = {
    "rabbitmq_process_max_fds": "Open file descriptors limit",
    "rabbitmq_process_max_tcp_sockets": "Open TCP sockets limit",
    "rabbitmq_resident_memory_limit_bytes": "Memory high watermark in bytes",
    "rabbitmq_disk_space_available_limit_bytes": "Free disk space low watermark in bytes",
}
USED = {
    "rabbitmq_process_open_fds": "Open file descriptors",
    "rabbitmq_process_open_tcp_sockets": "Open TCP sockets",
    "rabbitmq_process_resident_memory_bytes": "Memory used in bytes",
    "rabbitmq_disk_space_available_bytes": "Disk space available in bytes",
}
DISK = {
    "rabbitmq_io_write_ops_total": "Total number of writes of the log",
    "rabbitmq_io_write_bytes_total": "Total number of bytes written to the log",
    "rabbitmq_io_write_time_seconds_total": "Total time of these writes",
    "rabbitmq_io_sync_ops_total": "Total number of syncs of the log",
    "rabbitmq_io_sync_time_seconds_total": "Total time of these syncs",
}
LOGINS = {
    "rabbitmq_auth_attempts_total": "Total number of authorization attempts",
    "rabbitmq_auth_attempts_succeeded_total": "Total number of successful authentication attempts",
    "rabbitmq_auth_attempts_failed_total": "Total number of failed authentication attempts",
}
ALARMS = {
    "rabbitmq_alarms_memory_used_watermark": "is 1 if the memory alarm is in effect",
    "rabbitmq_alarms_free_disk_space_watermark": "is 1 if the disk alarm is in effect",
}


def infos(bridge: Bridge, endpoint: str) -> Iterator[Metric]:
    """Who it is, with the page that says so: RabbitMQ 3.10 has no such label, later ones do, and dashboards want it."""
    from prometheus_client.core import InfoMetricFamily

    broker = bridge.broker
    versions = {
        "rabbitmq_version": broker.node.rabbitmq_version,
        "product_name": "Warren",
        "product_version": broker.node.version,
    }
    yield InfoMetricFamily("rabbitmq_build", "Version of the RabbitMQ it behaves like, and of Warren", value=versions)
    identity = {
        "rabbitmq_node": bridge.node,
        "rabbitmq_cluster": broker.node.cluster_name,
        "rabbitmq_cluster_permanent_id": broker.node.cluster_name,
        "rabbitmq_endpoint": endpoint,
    }
    yield InfoMetricFamily("rabbitmq_identity", "Node and cluster identity", value=identity)


def churn(broker: Broker) -> list[int]:
    totals = broker.registry.totals
    opened = [int(totals.connections_opened), int(totals.connections_closed)]
    opened += [int(totals.channels_opened), int(totals.channels_closed)]
    return [*opened, int(totals.queues_declared), int(totals.queues_created), int(totals.queues_deleted)]


def limits(bridge: Bridge) -> list[int]:
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    alarms = bridge.alarms
    return [
        files,
        files,
        0 if alarms is None else int(alarms.memory_limit),
        0 if alarms is None else int(alarms.disk_limit),
    ]


def used(bridge: Bridge) -> list[int]:
    return [open_files(), len(bridge.broker.connections), resident_memory(), free_disk(bridge.server)]


def disk(bridge: Bridge) -> list[float]:
    """Of the log, which is all that is written here."""
    found = bridge.broker.services.log.commits.disk
    syncs = sum(int(count) for count in found.syncs.counts)
    return [
        *(int(found.writes), int(found.octets), int(found.write_us) / 1_000_000),
        *(syncs, int(found.syncs.total) / 1_000_000),
    ]


def logins(bridge: Bridge) -> list[Row]:
    found = bridge.broker.registry.totals.logins.items()
    return [(labels(protocol=protocol), login_counts(values)) for protocol, values in found]


def login_counts(values: Sequence[int]) -> list[int]:
    """In the order of LOGINS, of those that were right and those that were wrong."""
    right, wrong = values
    return [int(right) + int(wrong), int(right), int(wrong)]


def alarms(bridge: Bridge) -> list[bool]:
    found = bridge.alarms
    return [found is not None and found.memory, found is not None and found.disk]
