"""The queries that dashboards and alerts ask: our own files', and what the public RabbitMQ-Overview (10991) needs."""

from __future__ import annotations

import json
import re
from pathlib import Path

import yaml

PACKAGING = Path(__file__).parents[2] / "packaging"
DASHBOARD = PACKAGING / "grafana" / "warren.json"
RULES = PACKAGING / "prometheus" / "warren.rules.yml"
_OPERATOR = re.compile(r" (?:and|or|unless|[<>]=?|[=!]=) ")
#: functions and words of the query language, and labels that stand in parentheses
_NAME = re.compile(r"\b(?:rabbitmq|warren)_\w+")
_IN_PARENTHESES = re.compile(r"(?:by|on|group_left) ?\([^)]*\)")
_IN_BRACES = re.compile(r"\{[^}]*\}")


def own_queries() -> dict[str, str]:
    """Of the panels of our dashboard, as Grafana sends them."""
    panels = [panel for panel in json.loads(DASHBOARD.read_text())["panels"] if "targets" in panel]
    return {
        f"{panel['title']}: {target['legendFormat']}": target["expr"]
        .replace("$__rate_interval", "1m")
        .replace("$instance", ".*")
        for panel in panels
        for target in panel["targets"]
    }


def rules() -> dict[str, str]:
    """Our alerts, by name."""
    document = yaml.safe_load(RULES.read_text())
    return {rule["alert"]: rule["expr"] for group in document["groups"] for rule in group["rules"]}


def operands(expression: str) -> list[str]:
    """What an alert compares: each has to be there for it to fire one day."""
    found = [one.strip() for one in _OPERATOR.split(expression)]
    return [one for one in found if not re.fullmatch(r"[\d.]+", one)]


def metrics_in(expression: str) -> set[str]:
    return set(_NAME.findall(_IN_BRACES.sub("", _IN_PARENTHESES.sub("", expression))))


def of_the_overview() -> dict[str, str]:
    """What the panels of RabbitMQ-Overview ask for: names of metrics joined with who the node is, as they join them."""
    who = 'rabbitmq_identity_info{rabbitmq_cluster="$cluster", rabbitmq_endpoint="aggregated"}'
    join = f"* on(instance, job) group_left(rabbitmq_cluster, rabbitmq_node) {who}"
    queries = {name: f"sum by(rabbitmq_node) ({name} {join})" for name in _GAUGES.split()}
    queries |= {name: f"sum by(rabbitmq_node) (rate({name}[60s]) {join})" for name in _COUNTERS.split()}
    for most, used in _ROOM:
        queries[f"{most} left"] = f"({most} {join}) - ({used} {join})"
    received, confirmed = (f"rabbitmq_global_messages_{name}_total" for name in ("received_confirm", "confirmed"))
    queries["unconfirmed"] = f"sum by(rabbitmq_node) ((rate({received}[60s]) - rate({confirmed}[60s])) {join})"
    queries["nodes"] = f"rabbitmq_build_info {join}"
    queries["outgoing"] = " + ".join(
        f"sum(rate({name}[60s]) {join})" for name in _COUNTERS.split() if "deliver" in name
    )
    return queries


_GAUGES = """
rabbitmq_queue_messages_ready rabbitmq_queue_messages_unacked rabbitmq_global_publishers rabbitmq_global_consumers
rabbitmq_connections rabbitmq_channels rabbitmq_consumers rabbitmq_queues rabbitmq_channel_consumers
rabbitmq_disk_space_available_bytes rabbitmq_process_resident_memory_bytes rabbitmq_resident_memory_limit_bytes
"""
_COUNTERS = """
rabbitmq_global_messages_received_total rabbitmq_global_messages_confirmed_total rabbitmq_global_messages_routed_total
rabbitmq_global_messages_unroutable_dropped_total rabbitmq_global_messages_unroutable_returned_total
rabbitmq_global_messages_delivered_consume_auto_ack_total rabbitmq_global_messages_delivered_consume_manual_ack_total
rabbitmq_global_messages_delivered_get_auto_ack_total rabbitmq_global_messages_delivered_get_manual_ack_total
rabbitmq_global_messages_redelivered_total rabbitmq_global_messages_acknowledged_total
rabbitmq_global_messages_get_empty_total rabbitmq_queues_declared_total rabbitmq_queues_created_total
rabbitmq_queues_deleted_total rabbitmq_channels_opened_total rabbitmq_channels_closed_total
rabbitmq_connections_opened_total rabbitmq_connections_closed_total
"""
_ROOM = (
    ("rabbitmq_resident_memory_limit_bytes", "rabbitmq_process_resident_memory_bytes"),
    ("rabbitmq_process_max_fds", "rabbitmq_process_open_fds"),
    ("rabbitmq_process_max_tcp_sockets", "rabbitmq_process_open_tcp_sockets"),
)
