"""Verbs of ``warren ctl`` that list what there is and do something with it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from warren.cli._api import SOFTWARE, UNAVAILABLE, USAGE, Failure, segment
from warren.cli._ctl_call import Call, Result, columns_of, expect
from warren.cli._ctl_output import Table

QUEUE = """name durable auto_delete arguments policy operator_policy effective_policy_definition pid exclusive
    exclusive_consumer_tag single_active_consumer_tag messages_ready messages_unacknowledged messages
    messages_ready_ram messages_unacknowledged_ram messages_ram messages_persistent message_bytes message_bytes_ready
    message_bytes_unacknowledged message_bytes_ram message_bytes_persistent head_message_timestamp consumers
    consumer_utilisation consumer_capacity memory state type vhost""".split()


def list_queues(call: Call) -> Result:
    columns = columns_of(call, ["name", "messages"], QUEUE)
    call.known_vhost()
    rows = call.api.get(f"/queues/{call.at}")
    for row in rows:
        row["pid"] = f"<{row['node']}.{row['name']}>"
    return Table(columns, rows, f"Listing queues for vhost {call.vhost} ...")


def list_exchanges(call: Call) -> Result:
    known = ["name", "type", "durable", "auto_delete", "internal", "arguments", "policy", "vhost"]
    columns = columns_of(call, ["name", "type"], known)
    call.known_vhost()
    return Table(columns, call.api.get(f"/exchanges/{call.at}"), f"Listing exchanges for vhost {call.vhost} ...")


BINDING = ["source_name", "source_kind", "destination_name", "destination_kind", "routing_key", "arguments"]


def list_bindings(call: Call) -> Result:
    columns = columns_of(call, BINDING, [*BINDING, "vhost"])
    call.known_vhost()
    rows = [
        {
            "source_name": one["source"],
            "source_kind": "exchange",
            "destination_name": one["destination"],
            "destination_kind": one["destination_type"],
            "routing_key": one["routing_key"],
            "arguments": one["arguments"],
            "vhost": one["vhost"],
        }
        for one in call.api.get(f"/bindings/{call.at}")
    ]
    return Table(columns, rows, f"Listing bindings for vhost {call.vhost}...")


CONNECTION = """pid name port host peer_port peer_host ssl ssl_protocol ssl_key_exchange ssl_cipher ssl_hash
    peer_cert_subject peer_cert_issuer peer_cert_validity state channels protocol auth_mechanism user vhost timeout
    frame_max channel_max client_properties recv_oct recv_cnt send_oct send_cnt send_pend connected_at
    user_provided_name""".split()


def list_connections(call: Call) -> Result:
    columns = columns_of(call, ["user", "peer_host", "peer_port", "state"], CONNECTION)
    rows = call.api.get("/connections")
    for row in rows:
        row["pid"] = row["name"]  # what close_connection takes
    return Table(columns, rows, "Listing connections ...")


CHANNEL = """pid connection name number user vhost transactional confirm consumer_count messages_unacknowledged
    messages_uncommitted acks_uncommitted messages_unconfirmed prefetch_count global_prefetch_count state""".split()


def list_channels(call: Call) -> Result:
    columns = columns_of(call, ["pid", "user", "consumer_count", "messages_unacknowledged"], CHANNEL)
    rows = call.api.get("/channels")
    for row in rows:
        row["pid"] = row["name"]
        row["connection"] = row["connection_details"]["name"]
    return Table(columns, rows, "Listing channels ...")


CONSUMER = ["queue_name", "channel_pid", "consumer_tag", "ack_required", "prefetch_count", "active", "arguments"]


def list_consumers(call: Call) -> Result:
    columns = columns_of(call, CONSUMER, [*CONSUMER, "exclusive", "activity_status"])
    call.known_vhost()
    rows = call.api.get(f"/consumers/{call.at}")
    for row in rows:
        row["queue_name"] = row["queue"]["name"]
        row["channel_pid"] = row["channel_details"]["name"]
    return Table(columns, rows, f"Listing consumers in vhost {call.vhost} ...")


# -- doing something


def purge_queue(call: Call) -> Result:
    answer = call.api.ask("DELETE", f"/queues/{call.at}/{segment(call.arguments[0])}/contents")
    expect(answer, Failure("not_found", UNAVAILABLE))
    return None


def delete_queue(call: Call) -> Result:
    path = f"/queues/{call.at}/{segment(call.arguments[0])}"
    found = call.api.ask("GET", path + "?columns=messages_ready")
    expect(found, Failure("Queue not found", USAGE))
    conditions = "&".join(f"{name}=true" for name in ("if-empty", "if-unused") if name in call.options)
    expect(call.api.ask("DELETE", f"{path}?{conditions}"), Failure("Queue not found", USAGE))
    return f"Queue was successfully deleted with {found.body.get('messages_ready', 0)} ready messages"


def _trace(call: Call, on: bool) -> Result:
    call.known_vhost()
    expect(call.api.ask("PUT", f"/vhosts/{call.at}", {"tracing": on}))
    return f"Trace {'enabled' if on else 'disabled'} for vhost {call.vhost}"


def trace_on(call: Call) -> Result:
    return _trace(call, True)


def trace_off(call: Call) -> Result:
    return _trace(call, False)


def close_connection(call: Call) -> Result:
    name, reason = call.arguments
    answer = call.api.ask("DELETE", call.path("connections", name), headers={"x-reason": reason})
    expect(answer, Failure(f"no connection {name}", UNAVAILABLE))
    return None


def close_all_connections(call: Call) -> Result:
    found = call.api.get("/connections")
    if "vhost" in call.options and "global" not in call.options:
        found = [one for one in found if one["vhost"] == call.vhost]
    if "limit" in call.options and call.options["limit"].isdigit() and int(call.options["limit"]) > 0:
        found = found[: int(call.options["limit"])]
    for one in found:
        call.api.ask("DELETE", call.path("connections", one["name"]), headers={"x-reason": call.arguments[0]})
    return f"Closed {len(found)} connections"


def _node(call: Call) -> dict[str, Any]:
    found: dict[str, Any] = call.api.get("/nodes")[0]
    return found


def _limits(call: Call, body: dict[str, Any]) -> Result:
    expect(call.api.ask("PUT", call.path("nodes", _node(call)["name"]) + "/limits", body))
    return None


def set_vm_memory_high_watermark(call: Call) -> Result:
    if call.arguments[0] == "absolute" and len(call.arguments) == 2:
        return _limits(call, {"memory_limit": call.arguments[1]})
    try:
        return _limits(call, {"memory_high_watermark": float(call.arguments[0])})
    except ValueError:
        raise Failure("Bad argument.", USAGE) from None


def set_disk_free_limit(call: Call) -> Result:
    if call.arguments[0] == "mem_relative":
        raise Failure("mem_relative is not supported: give bytes, such as 50MB", USAGE)
    return _limits(call, {"disk_free_limit": call.arguments[0]})


def stop_app(call: Call) -> Result:
    expect(call.api.ask("POST", call.path("nodes", _node(call)["name"]) + "/stop_app"))
    return None


def start_app(call: Call) -> Result:
    expect(call.api.ask("POST", call.path("nodes", _node(call)["name"]) + "/start_app"))
    return None


def ping(call: Call) -> Result:
    call.api.get("/whoami")
    return "Ping succeeded"


def status(call: Call) -> Result:
    node, overview = _node(call), call.api.get("/overview")
    alarms = [name for name, on in (("memory", node["mem_alarm"]), ("disk", node["disk_free_alarm"])) if on]
    totals = overview["object_totals"]
    lines = ["Runtime", ""]
    lines += [f"OS PID: {node['os_pid']}", f"Uptime (seconds): {node['uptime'] // 1000}"]
    lines += [f"Warren version: {overview['product_version']}", f"RabbitMQ version: {overview['rabbitmq_version']}"]
    lines += [f"Node name: {node['name']}", f"Runtime: {overview['erlang_full_version']}"]
    lines += ["", "Data directory", "", f"Node data directory: {node['db_dir']}"]
    lines += ["", "Alarms", "", ", ".join(alarms) or "(none)", "", "Memory", ""]
    lines += [f"Total memory used: {node['mem_used'] / 1e9:.4f} gb"]
    lines += [f"Memory high watermark, computed to: {node['mem_limit'] / 1e9:.4f} gb"]
    lines += ["", "File Descriptors", "", f"Total: {node['fd_used']}, limit: {node['fd_total']}"]
    lines += ["", "Free Disk Space", "", f"Low free disk space watermark: {node['disk_free_limit'] / 1e9:.4f} gb"]
    lines += [f"Free disk space: {node['disk_free'] / 1e9:.4f} gb", "", "Totals", ""]
    lines += [f"Connection count: {totals['connections']}", f"Queue count: {totals['queues']}"]
    lines += [f"Virtual host count: {len(call.api.get('/vhosts'))}", "", "Listeners", ""]
    lines += [
        f"Interface: {one['ip_address']}, port: {one['port']}, protocol: {one['protocol']}"
        for one in overview["listeners"]
    ]
    return "\n".join(lines)


def export_definitions(call: Call) -> Result:
    text = json.dumps(call.api.get("/definitions"))
    if not call.arguments or call.arguments[0] == "-":
        return text
    try:
        Path(call.arguments[0]).write_text(text)
    except OSError as error:
        raise Failure(f"cannot write {call.arguments[0]}: {error.strerror}", SOFTWARE) from None
    return None


def import_definitions(call: Call) -> Result:
    try:
        data = sys.stdin.buffer.read() if not call.arguments or call.arguments[0] == "-" else (
            Path(call.arguments[0]).read_bytes())  # fmt: skip
    except OSError as error:
        raise Failure(f"cannot read {call.arguments[0]}: {error.strerror}", SOFTWARE) from None
    expect(call.api.ask("POST", "/definitions", data))
    return None
