"""Verbs of ``warren ctl`` that tell about the node: status, cluster_status, memory, settings, and all of it at once.

Headings and lines are RabbitMQ's where they mean something here; ``--formatter json`` has its keys.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from warrenmq.cli.ctl import lists, settings, who
from warrenmq.cli.ctl.banners import banner
from warrenmq.cli.ctl.call import Call, Misuse, Result
from warrenmq.cli.ctl.output import Facts, show

PURPOSES = {"amqp": "AMQP 0-9-1", "amqp/ssl": "AMQP 0-9-1 over TLS", "http": "HTTP API"}
UNITS = {"bytes": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}
KINDS = (("mem_alarm", "Memory"), ("disk_free_alarm", "Free disk space"))


def node_of(call: Call) -> dict[str, Any]:
    found: dict[str, Any] = call.api.get("/nodes")[0]
    return found


def alarms_of(node: dict[str, Any]) -> list[str]:
    return [f"{name} alarm on node {node['name']}" for key, name in KINDS if node[key]]


def listeners_of(call: Call) -> list[dict[str, Any]]:
    """What listens, with the keys of rabbitmq-diagnostics."""
    found = []
    for one in call.api.get("/overview")["listeners"]:
        host = f"[{one['ip_address']}]" if ":" in one["ip_address"] else one["ip_address"]
        purpose = PURPOSES.get(one["protocol"], one["protocol"])
        found.append(
            {
                "interface": host,
                "node": one["node"],
                "port": one["port"],
                "protocol": one["protocol"],
                "purpose": purpose,
            }
        )
    return found


def listener_line(one: dict[str, Any]) -> str:
    return "Interface: {interface}, port: {port}, protocol: {protocol}, purpose: {purpose}".format(**one)


def _section(title: str, *lines: str) -> str:
    return "\n".join([title, "", *(lines or ("(none)",))])


def _unit(call: Call) -> tuple[str, int]:
    name = call.options.get("unit", "gb").lower()
    if name not in UNITS:
        raise Misuse(f"unit '{name}' is not supported. Please use one of: bytes, mb, gb")
    return name, UNITS[name]


def status(call: Call) -> Result:
    from ssl import OPENSSL_VERSION

    unit, factor = _unit(call)
    node, overview, told = node_of(call), call.api.get("/overview"), listeners_of(call)
    totals = {
        "virtual_host_count": len(call.api.get("/vhosts")),
        "connection_count": overview["object_totals"]["connections"],
        "queue_count": overview["object_totals"]["queues"],
    }
    data = {
        "active_plugins": node["enabled_plugins"],
        "alarms": alarms_of(node),
        "config_files": node["config_files"],
        "crypto_lib_version": OPENSSL_VERSION,
        "data_directory": node["db_dir"],
        "disk_free": node["disk_free"],
        "disk_free_limit": node["disk_free_limit"],
        "erlang_version": overview["erlang_full_version"],
        "file_descriptors": {
            "sockets_limit": node["sockets_total"],
            "sockets_used": node["sockets_used"],
            "total_limit": node["fd_total"],
            "total_used": node["fd_used"],
        },
        "is_under_maintenance": False,
        "listeners": told,
        "log_files": node["log_files"],
        "memory": {"strategy": "rss", "total": {"rss": node["mem_used"], "allocated": node["mem_used"]}},
        "net_ticktime": node["net_ticktime"],
        "os": os.uname().sysname,
        "pid": int(node["os_pid"]),
        "processes": {"limit": node["proc_total"], "used": node["proc_used"]},
        "product_name": overview["product_name"],
        "product_version": overview["product_version"],
        "rabbitmq_version": overview["rabbitmq_version"],
        "run_queue": node["run_queue"],
        "totals": totals,
        "uptime": node["uptime"] // 1000,
        "vm_memory_calculation_strategy": "rss",
        "vm_memory_high_watermark_limit": node["mem_limit"],
    }
    sections = [
        _section(
            "Runtime",
            f"OS PID: {node['os_pid']}",
            f"OS: {data['os']}",
            f"Uptime (seconds): {data['uptime']}",
            "Is under maintenance?: false",
            f"Warren version: {overview['product_version']}",
            f"RabbitMQ version: {overview['rabbitmq_version']}",
            f"Node name: {node['name']}",
            f"Runtime: {overview['erlang_full_version']}",
            f"Crypto library: {data['crypto_lib_version']}",
        ),
        _section("Data directory", f"Node data directory: {node['db_dir']}"),
        _section("Config files", *(f" * {file}" for file in node["config_files"])),
        _section("Log file(s)", *(f" * {file}" for file in node["log_files"])),
        _section("Alarms", *alarms_of(node)),
        _section(
            "Memory",
            f"Total memory used: {node['mem_used'] / factor:.4f} {unit}",
            "Calculation strategy: rss",
            f"Memory high watermark, computed to: {node['mem_limit'] / factor:.4f} {unit}",
        ),
        _section(
            "File Descriptors",
            f"Total: {node['fd_used']}, limit: {node['fd_total']}",
            f"Sockets: {node['sockets_used']}, limit: {node['sockets_total']}",
        ),
        _section(
            "Free Disk Space",
            f"Low free disk space watermark: {node['disk_free_limit'] / factor:.4f} {unit}",
            f"Free disk space: {node['disk_free'] / factor:.4f} {unit}",
        ),
        _section(
            "Totals",
            f"Connection count: {totals['connection_count']}",
            f"Queue count: {totals['queue_count']}",
            f"Virtual host count: {totals['virtual_host_count']}",
        ),
        _section("Listeners", *(listener_line(one) for one in told)),
    ]
    return Facts("\n\n".join(sections), data)


def cluster_status(call: Call) -> Result:
    """One node, always: it is the disk node, it runs, and there is nothing to be parted from."""
    node, overview, told = node_of(call), call.api.get("/overview"), listeners_of(call)
    name, flags = str(node["name"]), call.api.get("/feature-flags")
    version = {
        "erlang_version": overview["erlang_full_version"],
        "rabbitmq_name": overview["product_name"],
        "rabbitmq_version": overview["rabbitmq_version"],
    }
    data = {
        "alarms": alarms_of(node),
        "cluster_name": overview["cluster_name"],
        "disk_nodes": [name],
        "feature_flags": flags,
        "listeners": {name: told},
        "maintenance_status": {name: "not under maintenance"},
        "partitions": {},
        "ram_nodes": [],
        "running_nodes": [name],
        "versions": {name: version},
    }
    sections = [
        _section("Basics", f"Cluster name: {overview['cluster_name']}"),
        _section("Disk Nodes", name),
        _section("Running Nodes", name),
        _section(
            "Versions",
            f"{name}: {version['rabbitmq_name']} {version['rabbitmq_version']} on {version['erlang_version']}",
        ),
        _section("Maintenance status", f"Node: {name}, status: not under maintenance"),
        _section("Alarms", *alarms_of(node)),
        _section("Network Partitions"),
        _section("Listeners", *(f"Node: {name}, i{listener_line(one)[1:]}" for one in told)),
        _section("Feature flags", *(f"Flag: {one['name']}, state: {one['state']}" for one in flags)),
    ]
    return Facts("\n\n".join(sections), data)


def memory_breakdown(call: Call) -> Result:
    """One figure: Python does not tell what its memory is used for."""
    unit, factor = _unit(call)
    total = call.api.get(call.node_path("memory"))["memory"]["total"]["rss"]
    data = {"other_system": {"bytes": total, "percentage": 100.0}}
    return Facts(f"other_system: {round(total / factor, 4)} {unit} (100.0%)", data)


def environment(call: Call) -> Result:
    """Every setting with its value, by the names of docs/configuration.md."""
    found = call.api.get(call.node_path("environment"))
    width = max(len(name) for name in found)
    return Facts("\n".join(f"{name:{width}}  {value}" for name, value in found.items()), {"warren": found})


def listeners(call: Call) -> Result:
    told = listeners_of(call)
    data = {"listeners": told, "node": call.node, "result": "ok"}
    return Facts("\n".join(listener_line(one) for one in told), data)


def alarms(call: Call) -> Result:
    found = alarms_of(node_of(call))
    text = "\n".join(found) or f"Node {call.node} reported no alarms, local or clusterwide"
    return Facts(text, {"alarms": found, "node": call.node, "result": "ok"})


def report(call: Call) -> Result:
    """The verbs that look, one after the other, as RabbitMQ's report has them."""
    texts = [_part(verb, call) for verb in ABOUT_THE_NODE]
    for vhost in call.api.get("/vhosts"):
        inside = Call(call.api, [], vhost["name"], call.options)
        texts += [_part(verb, inside) for verb in ABOUT_A_VHOST]
    return "\n\n".join(texts)


def _part(verb: Callable[[Call], Result], call: Call) -> str:
    return (banner(verb.__name__, call) + show(verb(call), "table", True)).rstrip("\n")


ABOUT_THE_NODE = (
    status,
    cluster_status,
    environment,
    lists.list_connections,
    lists.list_channels,
    who.list_users,
    settings.list_vhosts,
)
ABOUT_A_VHOST = (
    lists.list_queues,
    lists.list_exchanges,
    lists.list_bindings,
    lists.list_consumers,
    who.list_permissions,
    settings.list_policies,
    settings.list_operator_policies,
    settings.list_parameters,
)
