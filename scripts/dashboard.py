"""Writes the Grafana dashboard of packaging/grafana from the table below: `python scripts/dashboard.py > FILE`.

A row of the table is a panel: title, what it tells, unit, and its queries, each with its legend. `$instance` is the
broker that is looked at, `$__rate_interval` what Grafana thinks is enough for a rate.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from typing import Any

WIDTH = 24  # of a dashboard, in Grafana's columns
ACROSS = 3  # panels beside each other
HEIGHT = 8
SMALL = 4
BROKER = '{instance=~"$instance"}'


@dataclass(frozen=True)
class Panel:
    title: str
    help: str
    unit: str
    queries: dict[str, str]  # legend: query
    stat: bool = False  # one number, not a curve


def rate(name: str, labels: str = "") -> str:
    return f'rate({name}{{instance=~"$instance"{"," + labels if labels else ""}}}[$__rate_interval])'


def rates(**named: str) -> dict[str, str]:
    """The sum of the rates of each family, under its legend."""
    return {legend.replace("_", " "): f"sum({rate(name)})" for legend, name in named.items()}


def quantiles(family: str) -> dict[str, str]:
    bucket = rate(f"{family}_bucket")
    return {f"{part:.0%}": f"histogram_quantile({part}, sum by (le) ({bucket}))" for part in (0.5, 0.95, 0.99)}


def total(name: str) -> str:
    return f"sum({name}{BROKER})"


GLOBAL = "rabbitmq_global_messages_"
OUT = " + ".join(
    f"sum({rate(f'{GLOBAL}delivered_{how}_total')})"
    for how in ("consume_auto_ack", "consume_manual_ack", "get_auto_ack", "get_manual_ack")
)
ALARMS = " + ".join(
    f"sum({name}{BROKER})"
    for name in (
        *("rabbitmq_alarms_memory_used_watermark", "rabbitmq_alarms_free_disk_space_watermark"),
        *("warren_log_failing", "warren_data_folder_gone", "warren_journal_failing"),
    )
)
WRONG = f"sum(abs(warren_ledger_difference{BROKER})) + sum(warren_ledger_queues_off{BROKER})"

ROWS: dict[str, list[Panel]] = {
    "Now": [
        Panel("Alarms", "Memory, disk, log, data folder, journal: must be 0", "short", {"": ALARMS}, True),
        Panel("Does not add up", "Of the ledger: must be 0", "short", {"": WRONG}, True),
        Panel("Ready", "Messages that wait in queues", "short", {"": total("rabbitmq_queue_messages_ready")}, True),
        Panel("Unacknowledged", "With consumers", "short", {"": total("rabbitmq_queue_messages_unacked")}, True),
        Panel("In a second", "Published", "short", {"": f"sum({rate(f'{GLOBAL}received_total')})"}, True),
        Panel("Out a second", "Delivered and fetched", "short", {"": OUT}, True),
        Panel("Connections", "Open over AMQP", "short", {"": total("rabbitmq_connections")}, True),
        Panel("Queues", "In all vhosts", "short", {"": total("rabbitmq_queues")}, True),
        Panel("Consumers", "On all channels", "short", {"": total("rabbitmq_consumers")}, True),
        Panel(
            "Oldest message",
            "The age of the oldest that waits in any queue",
            "s",
            {"": f"max(warren_queue_oldest_waiting_seconds{BROKER})"},
            True,
        ),
        Panel("Delayed", "Waiting at delayed exchanges", "short", {"": total("warren_delayed_messages")}, True),
        Panel("Damaged", "Messages that do not check on disk", "short", {"": total("warren_damaged_messages")}, True),
    ],
    "Messages": [
        Panel(
            "Waiting and held",
            "Ready, and delivered but not yet acknowledged",
            "short",
            {
                "ready": total("rabbitmq_queue_messages_ready"),
                "unacknowledged": total("rabbitmq_queue_messages_unacked"),
            },
        ),
        Panel(
            "Published",
            "A second",
            "short",
            rates(
                received=f"{GLOBAL}received_total",
                routed_to_queues=f"{GLOBAL}routed_total",
                confirmed=f"{GLOBAL}confirmed_total",
            ),
        ),
        Panel(
            "Handed out",
            "A second",
            "short",
            rates(
                consumers_that_acknowledge=f"{GLOBAL}delivered_consume_manual_ack_total",
                consumers_that_do_not=f"{GLOBAL}delivered_consume_auto_ack_total",
                fetched=f"{GLOBAL}delivered_get_manual_ack_total",
                fetched_without_ack=f"{GLOBAL}delivered_get_auto_ack_total",
                acknowledged=f"{GLOBAL}acknowledged_total",
                once_more=f"{GLOBAL}redelivered_total",
                found_nothing=f"{GLOBAL}get_empty_total",
            ),
        ),
        Panel(
            "Reached no queue",
            "A second",
            "short",
            rates(dropped=f"{GLOBAL}unroutable_dropped_total", returned=f"{GLOBAL}unroutable_returned_total"),
        ),
        Panel(
            "Dead-lettered",
            "A second, by why",
            "short",
            rates(
                rejected=f"{GLOBAL}dead_lettered_rejected_total",
                expired=f"{GLOBAL}dead_lettered_expired_total",
                over_a_limit=f"{GLOBAL}dead_lettered_maxlen_total",
                delivered_too_often=f"{GLOBAL}dead_lettered_delivery_limit_total",
            ),
        ),
        Panel("Sizes", "Of the bodies of published messages", "decbytes", quantiles("rabbitmq_message_size_bytes")),
    ],
    "How long it takes": [
        Panel("In the queue", "Until a message is handed out", "s", quantiles("warren_queue_wait_seconds")),
        Panel("Confirms", "From a publish to its confirm, where it waits", "s", quantiles("warren_confirm_seconds")),
        Panel("Syncs of the log", "Each", "s", quantiles("warren_log_sync_seconds")),
        Panel(
            "Oldest",
            "The oldest message that waits, and the one that a client has held for longest",
            "s",
            {
                "waits": f"max(warren_queue_oldest_waiting_seconds{BROKER})",
                "held": f"max(warren_queue_oldest_held_seconds{BROKER})",
            },
        ),
        Panel(
            "Event loop held",
            "Seconds in a second in passes over 0.1 s",
            "percentunit",
            {"{{spent}}": f"sum by (spent) ({rate('warren_loop_stall_seconds_sum')})"},
        ),
        Panel(
            "Garbage collection",
            "Seconds in a second",
            "percentunit",
            {"generation {{generation}}": f"sum by (generation) ({rate('warren_garbage_collection_seconds_sum')})"},
        ),
    ],
    "Machine": [
        Panel(
            "Memory",
            "Publishers are blocked above the limit",
            "bytes",
            {
                "used": total("rabbitmq_process_resident_memory_bytes"),
                "limit": total("rabbitmq_resident_memory_limit_bytes"),
            },
        ),
        Panel(
            "Disk",
            "Publishers are blocked below the limit",
            "bytes",
            {
                "free": total("rabbitmq_disk_space_available_bytes"),
                "limit": total("rabbitmq_disk_space_available_limit_bytes"),
                "journal": total("warren_journal_bytes"),
            },
        ),
        Panel("Written", "To the log, a second", "Bps", rates(log="rabbitmq_io_write_bytes_total")),
        Panel(
            "Files and sockets",
            "Open, and how many there may be",
            "short",
            {
                "files": total("rabbitmq_process_open_fds"),
                "sockets": total("rabbitmq_process_open_tcp_sockets"),
                "limit": total("rabbitmq_process_max_fds"),
            },
        ),
        Panel(
            "Network",
            "A second, of connections that are open",
            "Bps",
            {
                "in": f"sum({rate('rabbitmq_connection_incoming_bytes_total')})",
                "out": f"sum({rate('rabbitmq_connection_outgoing_bytes_total')})",
            },
        ),
        Panel("Journal behind", "What is synced and not in it yet", "s", {"": total("warren_journal_lag_seconds")}),
    ],
    "Clients": [
        Panel(
            "Connections",
            "A second",
            "short",
            rates(opened="rabbitmq_connections_opened_total", closed="rabbitmq_connections_closed_total"),
        ),
        Panel(
            "Channels",
            "A second",
            "short",
            rates(opened="rabbitmq_channels_opened_total", closed="rabbitmq_channels_closed_total"),
        ),
        Panel(
            "Logins",
            "A second",
            "short",
            rates(
                right="rabbitmq_auth_attempts_succeeded_total",
                wrong="rabbitmq_auth_attempts_failed_total",
            ),
        ),
    ],
}


def dashboard() -> dict[str, Any]:
    panels: list[dict[str, Any]] = []
    top = 0
    for title, row in ROWS.items():
        place = {"x": 0, "y": top, "w": WIDTH, "h": 1}
        panels.append({"type": "row", "id": len(panels) + 1, "title": title, "collapsed": False, "gridPos": place})
        top += 1
        across = WIDTH // 4 if row[0].stat else ACROSS
        height = SMALL if row[0].stat else HEIGHT
        for number, panel in enumerate(row):
            width = WIDTH // across
            place = {"x": number % across * width, "y": top + number // across * height, "w": width, "h": height}
            panels.append(drawn(panel, len(panels) + 1, place))
        top += -(-len(row) // across) * height
    return {
        "uid": "warren",
        "title": "Warren",
        "tags": ["warren", "rabbitmq"],
        "schemaVersion": 38,
        "editable": True,
        "refresh": "15s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {
            "list": [
                {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Prometheus"},
                {
                    "name": "instance",
                    "label": "Broker",
                    "type": "query",
                    "datasource": {"type": "prometheus", "uid": "${datasource}"},
                    "query": 'label_values(rabbitmq_build_info{product_name="Warren"}, instance)',
                    "refresh": 2,
                    "multi": True,
                    "includeAll": True,
                    "current": {"text": "All", "value": "$__all"},
                },
            ]
        },
        "panels": panels,
    }


def drawn(panel: Panel, number: int, place: dict[str, int]) -> dict[str, Any]:
    source = {"type": "prometheus", "uid": "${datasource}"}
    targets = [
        {"refId": chr(ord("A") + one), "datasource": source, "expr": query, "legendFormat": legend or panel.title}
        for one, (legend, query) in enumerate(panel.queries.items())
    ]
    return {
        "type": "stat" if panel.stat else "timeseries",
        "id": number,
        "title": panel.title,
        "description": panel.help,
        "datasource": source,
        "gridPos": place,
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "targets": targets,
    }


if __name__ == "__main__":
    json.dump(dashboard(), sys.stdout, indent=1)
    print()
