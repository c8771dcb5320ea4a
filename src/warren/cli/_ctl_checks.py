"""Verbs of ``warren ctl`` that say whether the broker is well: rabbitmq-diagnostics' checks, and waiting for a start.

Words and exit statuses are those of RabbitMQ 3.10's tools: 0 when well, 69 with the reason on standard error if not.
"""

from __future__ import annotations

import socket
import time
from typing import Any
from urllib.parse import urlsplit

from warren.cli._api import UNAVAILABLE, USAGE, Failure
from warren.cli._ctl_call import Call, Result

TIMED_OUT = 75
PATIENCE = 300.0  # seconds await_startup waits unless told otherwise
POLL = 0.2
PURPOSES = {"amqp": "AMQP 0-9-1", "amqp/ssl": "AMQP 0-9-1 over TLS", "http": "HTTP API"}
INSTEAD_OF_EVAL = (
    "there is no Erlang here to evaluate. What people use eval for:\n"
    "  delayed messages                warren delayed list, GET /api/delayed/VHOST\n"
    "  settings and limits             PUT /api/nodes/NODE/limits, SIGHUP after a change of the configuration file\n"
    "  closing connections             close_connection, close_all_connections\n"
    "  deleting or purging queues      delete_queue, purge_queue\n"
    "  counting connections, queues    GET /api/overview, status\n"
    "  alarms                          alarms, set_vm_memory_high_watermark, set_disk_free_limit\n"
    "  anything else                   GET /api/openapi.json lists the API"
)


def _node(call: Call) -> str:
    return str(call.api.get("/overview")["node"])


def said(call: Call, banner: str, text: str) -> str:
    """The answer, behind the line that rabbitmq-diagnostics prints first unless it is to be quiet."""
    return text if "quiet" in call.options or "silent" in call.options else f"{banner} ...\n{text}"


def _alarms(call: Call) -> list[str]:
    node = call.api.get("/nodes")[0]
    kinds = (("mem_alarm", "Memory"), ("disk_free_alarm", "Free disk space"))
    return [f"{name} alarm on node {node['name']}" for key, name in kinds if node[key]]


def await_startup(call: Call) -> Result:
    """Until clients are served; a broker that is not there yet is waited for."""
    given = call.options.get("timeout", "")
    until = time.monotonic() + (float(given) if given.replace(".", "", 1).isdigit() else PATIENCE)
    while True:
        try:
            if call.api.ask("GET", "/health/checks/ready-to-serve-clients").status == 200:
                return None
            problem = "the broker answers but takes no clients"
        except Failure as failure:
            problem = failure.text
        if time.monotonic() >= until:
            raise Failure(f"timed out waiting for the broker to start: {problem}", TIMED_OUT)
        time.sleep(POLL)


def check_running(call: Call) -> Result:
    node = _node(call)
    running, text = _running(call, node)
    if not running:
        raise Failure(text, UNAVAILABLE)
    return said(call, f"Checking if RabbitMQ is running on node {node}", text)


def _running(call: Call, node: str) -> tuple[bool, str]:
    if call.api.ask("GET", "/health/checks/is-in-service").status == 200:
        return True, f"RabbitMQ on node {node} is fully booted and running"
    return False, f"RabbitMQ on node {node} is not running or has not fully booted yet (check with is_booting)"


def is_running(call: Call) -> Result:
    node = _node(call)
    return said(call, f"Asking node {node} for its status", _running(call, node)[1])


def is_booting(call: Call) -> Result:
    """Whoever answers has booted: the API is served after recovery."""
    node = _node(call)
    text = f"RabbitMQ on node {node} is fully booted (check with is_running), stopped or has not started booting yet"
    return said(call, f"Asking node {node} for its boot status", text)


def alarms(call: Call) -> Result:
    node = _node(call)
    text = "\n".join(_alarms(call)) or f"Node {node} reported no alarms, local or clusterwide"
    return said(call, f"Asking node {node} to report any known resource alarms", text)


def check_alarms(call: Call) -> Result:
    node, found = _node(call), _alarms(call)
    if found:
        raise Failure("\n".join(found), UNAVAILABLE, plain=True)
    text = f"Node {node} reported no alarms, local or clusterwide"
    return said(call, f"Asking node {node} to report any local resource alarms", text)


def check_local_alarms(call: Call) -> Result:
    node, found = _node(call), _alarms(call)
    if found:
        raise Failure("\n".join(found), UNAVAILABLE)
    text = f"Node {node} reported no local alarms"
    return said(call, f"Asking node {node} to report any local resource alarms", text)


def check_virtual_hosts(call: Call) -> Result:
    node = _node(call)
    if call.api.ask("GET", "/health/checks/virtual-hosts").status != 200:
        raise Failure(f"Some virtual hosts on node {node} are down", UNAVAILABLE)
    text = f"Node {node} reported all vhosts as running"
    return said(call, f"Checking if all vhosts are running on node {node}", text)


def _listeners(call: Call) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = call.api.get("/overview")["listeners"]
    return found


def listeners(call: Call) -> Result:
    node = _node(call)
    lines = []
    for one in _listeners(call):
        host = f"[{one['ip_address']}]" if ":" in one["ip_address"] else one["ip_address"]
        purpose = PURPOSES.get(one["protocol"], one["protocol"])
        lines.append(f"Interface: {host}, port: {one['port']}, protocol: {one['protocol']}, purpose: {purpose}")
    return said(call, f"Asking node {node} to report its protocol listeners", "\n".join(lines))


def check_port_connectivity(call: Call) -> Result:
    """A TCP connection from here to every listener; one on all addresses is tried where the API was found."""
    node = _node(call)
    here = urlsplit(call.api.address).hostname or "127.0.0.1"
    reached, missed = [], []
    for one in _listeners(call):
        host = here if one["ip_address"] in ("0.0.0.0", "::", "") else one["ip_address"]
        try:
            socket.create_connection((host, one["port"]), timeout=10).close()
            reached.append(one["port"])
        except OSError:
            missed.append(one)
    if missed:
        lines = [f"Connection to ports of the following listeners on node {node} failed:"]
        lines += [f"Interface: {one['ip_address']}, port: {one['port']}, protocol: {one['protocol']}" for one in missed]
        raise Failure("\n".join(lines), UNAVAILABLE)
    ports = ", ".join(str(port) for port in sorted(reached))
    text = f"Successfully connected to ports {ports} on node {node}."
    return said(call, f"Testing TCP connections to all active listeners on node {node}", text)


def check_port_listener(call: Call) -> Result:
    node, port = _node(call), call.arguments[0]
    if not port.isdigit():
        raise Failure(f"port must be a number, not {port}", USAGE)
    ports = sorted(one["port"] for one in _listeners(call))
    if int(port) not in ports:
        raise Failure(
            f"No listener for port {port} is active on node {node}. Found listeners that use the following ports: "
            + ", ".join(str(one) for one in ports), UNAVAILABLE, plain=True,
        )  # fmt: skip
    text = f"A listener for port {port} is running on node {node}."
    return said(call, f"Asking node {node} if there's an active listener on port {port}", text)


def check_protocol_listener(call: Call) -> Result:
    node, protocol = _node(call), call.arguments[0]
    answer = call.api.ask("GET", call.path("health/checks/protocol-listener", protocol))
    if answer.status != 200:
        protocols = ", ".join(sorted({one["protocol"] for one in _listeners(call)}))
        raise Failure(
            f"No listener for protocol {protocol} is active on node {node}. Found listeners for the following "
            f"protocols: {protocols}", UNAVAILABLE,
        )  # fmt: skip
    text = f"A listener for protocol {protocol} is running on node {node}."
    return said(call, f"Asking node {node} if there's an active listener for protocol {protocol}", text)


def check_if_node_is_quorum_critical(call: Call) -> Result:
    node = _node(call)
    text = f"Node {node} seems to be the only one in a single node cluster, the check does not apply"
    return said(call, f"Checking if node {node} is critical for quorum of any quorum queues", text)


def check_if_node_is_mirror_sync_critical(call: Call) -> Result:
    node = _node(call)
    text = f"Node {node} seems to be the only one in a single node cluster, the check does not apply"
    return said(call, f"Checking if node {node} is critical for data safety of any classic mirrored queues", text)


def node_health_check(call: Call) -> Result:
    node = _node(call)
    if not _running(call, node)[0] or _alarms(call):
        raise Failure("\n".join(["Health check failed", *_alarms(call)]), UNAVAILABLE)
    return said(call, f"Timeout: 70 seconds ...\nChecking health of node {node}", "Health check passed")


def server_version(call: Call) -> Result:
    text = str(call.api.get("/overview")["rabbitmq_version"])
    return said(call, f"Asking node {_node(call)} for its RabbitMQ version", text)


def eval(call: Call) -> Result:  # noqa: A001 (the verb's name)
    raise Failure(INSTEAD_OF_EVAL, USAGE)
