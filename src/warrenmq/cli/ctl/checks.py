"""Verbs of ``warren ctl`` that say whether the broker is well: rabbitmq-diagnostics' checks.

Words and exit statuses are those of RabbitMQ 3.10's tools: 0 when well, 69 with the reason on standard error if not.
"""

from __future__ import annotations

import socket
from typing import Any

from warrenmq.cli._api import UNAVAILABLE, Failure
from warrenmq.cli.ctl.call import Call, Misuse, Result, bad_argument
from warrenmq.cli.ctl.output import Facts
from warrenmq.cli.ctl.report import alarms_of, listener_line, listeners_of, node_of

OK = {"result": "ok"}
UNITS = ("days", "weeks", "months", "years")


def ping(call: Call) -> Result:
    call.api.get("/whoami")
    return "Ping succeeded"


def check_running(call: Call) -> Result:
    running, text = _running(call)
    if not running:
        raise Failure(text, UNAVAILABLE)
    return text


def _running(call: Call) -> tuple[bool, str]:
    if call.api.ask("GET", "/health/checks/is-in-service").status == 200:
        return True, f"RabbitMQ on node {call.node} is fully booted and running"
    return False, f"RabbitMQ on node {call.node} is not running or has not fully booted yet (check with is_booting)"


def is_running(call: Call) -> Result:
    running, text = _running(call)
    return Facts(text, {"message": text, "result": running})


def is_booting(call: Call) -> Result:
    """Whoever answers has booted: the API is served after recovery."""
    state = "is fully booted (check with is_running), stopped or has not started booting yet"
    text = f"RabbitMQ on node {call.node} {state}"
    return Facts(text, {"message": text, "result": False})


def check_alarms(call: Call) -> Result:
    found = alarms_of(node_of(call))
    if found:
        raise Failure("\n".join(found), UNAVAILABLE, plain=True)
    return Facts(f"Node {call.node} reported no alarms, local or clusterwide", OK)


def check_local_alarms(call: Call) -> Result:
    found = alarms_of(node_of(call))
    if found:
        raise Failure("\n".join(found), UNAVAILABLE)
    return Facts(f"Node {call.node} reported no local alarms", OK)


def check_virtual_hosts(call: Call) -> Result:
    if call.api.ask("GET", "/health/checks/virtual-hosts").status != 200:
        raise Failure(f"Some virtual hosts on node {call.node} are down", UNAVAILABLE)
    return Facts(f"Node {call.node} reported all vhosts as running", OK)


def check_certificate_expiration(call: Call) -> Result:
    unit, within = call.options.get("unit", "weeks").lower(), call.options.get("within", "4")
    if unit not in UNITS:
        raise Misuse(f"\"unit '{unit}' is not supported. Please use one of: days, weeks, months, years\"")
    if not within.isdigit():
        raise Misuse("within must be a positive integer")
    answer = call.api.ask("GET", call.path("health/checks/certificate-expiration", within, unit))
    if answer.status != 200:
        dates = ", ".join(str(one["cert_expires_on"]) for one in answer.body.get("expired", []))
        raise Failure(f"Certificates of node {call.node} expire within {within} {unit}: {dates}", UNAVAILABLE)
    return Facts(f"No certificates are expiring within {within} {unit[:-1] if within == '1' else unit}.", OK)


def check_port_connectivity(call: Call) -> Result:
    """A TCP connection from here to every listener; one on all addresses is tried where the API was found."""
    here = call.api.address.host
    reached: list[int] = []
    missed: list[dict[str, Any]] = []
    for one in listeners_of(call):
        host = one["interface"].strip("[]")
        try:
            socket.create_connection((here if host in ("0.0.0.0", "::", "") else host, one["port"]), timeout=10).close()
            reached.append(one["port"])
        except OSError:
            missed.append(one)
    if missed:
        lines = [f"Connection to ports of the following listeners on node {call.node} failed:"]
        raise Failure("\n".join(lines + [listener_line(one) for one in missed]), UNAVAILABLE)
    ports = ", ".join(str(port) for port in sorted(set(reached)))
    return Facts(f"Successfully connected to ports {ports} on node {call.node}.", OK)


def check_port_listener(call: Call) -> Result:
    port = call.arguments[0]
    if not port.isdigit():
        raise bad_argument("Argument must be a positive integer")
    ports = sorted({one["port"] for one in listeners_of(call)})
    if int(port) not in ports:
        raise Failure(
            f"No listener for port {port} is active on node {call.node}. Found listeners that use the following "
            f"ports: {', '.join(str(one) for one in ports)}",
            UNAVAILABLE,
            plain=True,
        )
    return Facts(f"A listener for port {port} is running on node {call.node}.", OK)


def check_protocol_listener(call: Call) -> Result:
    protocol = call.arguments[0]
    if call.api.ask("GET", call.path("health/checks/protocol-listener", protocol)).status != 200:
        protocols = ", ".join(sorted({one["protocol"] for one in listeners_of(call)}))
        raise Failure(
            f"No listener for protocol {protocol} is active on node {call.node}. Found listeners for the following "
            f"protocols: {protocols}",
            UNAVAILABLE,
        )
    return Facts(f"A listener for protocol {protocol} is running on node {call.node}.", OK)


def _alone(call: Call) -> Result:
    return Facts(f"Node {call.node} seems to be the only one in a single node cluster, the check does not apply", OK)


def check_if_node_is_quorum_critical(call: Call) -> Result:
    return _alone(call)


def check_if_node_is_mirror_sync_critical(call: Call) -> Result:
    return _alone(call)


def node_health_check(call: Call) -> Result:
    found = alarms_of(node_of(call))
    if not _running(call)[0] or found:
        raise Failure("\n".join(["Health check failed", *found]), UNAVAILABLE)
    return "Health check passed"
