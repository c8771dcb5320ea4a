"""/health/checks: is it well? 200 ``{"status": "ok"}`` or 503 ``{"status": "failed", "reason": ...}``."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from typing import Any

from warrenmq.http.endpoint import MANAGEMENT, MONITORING, VHOST, Call, Endpoint, Handler, Json
from warrenmq.http.errors import bad_request, not_authorised
from warrenmq.http.models import Status, Unwell
from warrenmq.wire.content import Properties
from warrenmq.wire.replies import ACCESS_REFUSED, AmqpError

UNITS = {"days": 1, "weeks": 7, "months": 30, "years": 365}
RESOURCES = {"disk": "disk space", "memory": "memory"}


def ok(**more: Any) -> dict[str, Any]:
    return {"status": "ok", **more}


def failed(reason: str, **more: Any) -> Json:
    return Json({"status": "failed", "reason": reason, **more}, status_code=503)


async def alarms(call: Call) -> object:
    found = call.bridge.alarms
    names = [] if found is None else found.names
    too_few = call.bridge.broker.services.pressure.too_few
    if not names and not too_few:
        return ok()
    shown = [{"node": call.bridge.node, "resource": RESOURCES[name]} for name in names]
    if too_few:
        shown.append({"node": call.bridge.node, "resource": "replicas"})
    where = "in the cluster" if call.request.url.path.endswith("/alarms") else "on the node"
    return failed(f"There are alarms in effect {where}", alarms=shown)


async def fine(call: Call) -> object:
    """Every vhost is up as long as the broker is."""
    return ok()


async def in_service(call: Call) -> object:
    return ok() if call.bridge.listening else failed("this node takes no clients (stop_app)")


async def single_node(call: Call) -> object:
    return ok(reason="single node cluster")


async def port_listener(call: Call) -> object:
    try:
        wanted = int(call.path["port"])
    except ValueError:
        raise bad_request("Invalid port") from None
    ports = list(dict.fromkeys(port for _, _, port in call.bridge.listeners()))
    if wanted in ports:
        return ok(port=wanted)
    return failed("No active listener", missing=wanted, ports=ports)


async def protocol_listener(call: Call) -> object:
    names = {"amqp091": "amqp", "amqp0.9.1": "amqp", "amqps": "amqp/ssl"}
    wanted = call.path["protocol"]
    protocols = list(dict.fromkeys(protocol for protocol, _, _ in call.bridge.listeners()))
    if names.get(wanted, wanted) in protocols:
        return ok(protocol=wanted)
    return failed("No active listener", missing=wanted, protocols=protocols)


async def certificate_expiration(call: Call) -> object:
    try:
        within = int(call.path["within"])
    except ValueError:
        raise bad_request("Invalid expiration value.") from None
    unit = UNITS.get(call.path["unit"])
    if unit is None:
        raise bad_request("Time unit not recognised. Supported units: days, weeks, months, years.")
    settings = call.bridge.server.settings
    if settings.tls_port is None or settings.tls_cert is None:
        return ok()
    # the standard library decodes a certificate only through this; the alternative is a dependency for one date
    decoded: dict[str, Any] = ssl._ssl._test_decode_cert(str(settings.tls_cert))  # type: ignore[attr-defined]
    ends = datetime.fromtimestamp(ssl.cert_time_to_seconds(decoded["notAfter"]), UTC)
    if ends < datetime.now(UTC) + timedelta(days=within * unit):
        expired = [{"node": call.bridge.node, "cert_expires_on": ends.isoformat()}]
        return failed("Certificates expiring", expired=expired)
    return ok()


async def aliveness(call: Call) -> object:
    """RabbitMQ publishes to a queue and gets the message back; so does this, with a queue of its own for the moment."""
    vhost = call.bridge.vhost(call.path["vhost"])
    try:
        async with call.bridge.direct(call.user, vhost) as channel:
            await channel.call("queue.declare", queue="aliveness-test")
            await channel.publish("", "aliveness-test", Properties(), b"test_message")
            got = await channel.get("aliveness-test", True, 100)
    except AmqpError as error:
        if error.code == ACCESS_REFUSED:
            raise not_authorised(error.text) from None
        raise
    return ok() if got is not None else failed("the message did not come back")


async def log(call: Call) -> object:
    """Is what the broker promised where a start will find it, and can all of it be read?"""
    server = call.bridge.server
    broker = server.broker
    reasons: list[str] = []
    if server.folder.problem:
        reasons.append(server.folder.problem)
    if broker.services.pressure.log_failing:
        reasons.append(f"the log cannot be written: {broker.services.log.reason}")
    damaged = int(broker.services.damaged.count())
    if damaged:
        reasons.append(f"{damaged} damaged messages are kept out of delivery; GET /api/damaged lists them")
    reasons.extend(f"segment {number}: {problem}" for number, problem in broker.services.log.damage.segments.items())
    if not reasons:
        return ok()
    return failed("; ".join(reasons), damaged=damaged, folder=server.folder.problem or None)


async def ledger(call: Call) -> object:
    """Has anything been lost, doubled or miscounted? As of the last look at everything."""
    problem = call.bridge.server.ledger.problem()
    return failed(f"{problem}; GET /api/ledger has all of it") if problem else ok()


async def cluster(call: Call) -> object:
    """Are as many nodes in sync as are wanted, does etcd answer, and do their clocks agree?"""
    found = call.bridge.standing()
    problems = [] if found is None else [one for one in (found.problem, *found.warnings) if one]
    return failed("; ".join(problems)) if problems else ok()


async def journal(call: Call) -> object:
    """Is what happens being written down, if it is to be?"""
    problem = call.bridge.server.journal.problem
    return failed(problem) if problem else ok()


CHECKS = "/health/checks"


def _check(path: str, handler: Handler, summary: str, level: str = MANAGEMENT, changes: bool = False) -> Endpoint:
    return Endpoint("GET", path, level, handler, summary, answer=Status, unwell=Unwell, changes=changes)


ENDPOINTS = [
    _check(f"{CHECKS}/alarms", alarms, "No alarm in the cluster"),
    _check(f"{CHECKS}/local-alarms", alarms, "No alarm on the node"),
    _check(f"{CHECKS}/log", log, "The log is where it was, can be written, and nothing known in it is damaged"),
    _check(f"{CHECKS}/ledger", ledger, "Nothing was lost, doubled or miscounted", MONITORING),
    _check(f"{CHECKS}/journal", journal, "The journal is written, or is off", MONITORING),
    _check(f"{CHECKS}/cluster", cluster, "Enough nodes are in sync, etcd answers, clocks agree"),
    _check(f"{CHECKS}/virtual-hosts", fine, "All vhosts are up"),
    _check(f"{CHECKS}/port-listener/{{port}}", port_listener, "Something listens on the port"),
    _check(f"{CHECKS}/protocol-listener/{{protocol}}", protocol_listener, "The protocol is served"),
    _check(
        f"{CHECKS}/certificate-expiration/{{within}}/{{unit}}",
        certificate_expiration,
        "No certificate expires within that time",
    ),
    _check(f"{CHECKS}/node-is-mirror-sync-critical", single_node, "One node"),
    _check(f"{CHECKS}/node-is-quorum-critical", single_node, "One node"),
    _check(f"{CHECKS}/is-in-service", in_service, "The node takes clients"),
    _check(f"{CHECKS}/ready-to-serve-clients", in_service, "The node takes clients"),
    _check("/aliveness-test/{vhost}", aliveness, "A message goes in and comes out", VHOST, changes=True),
    _check("/healthchecks/node", fine, "The node answers"),
    _check("/healthchecks/node/{node}", fine, "The node answers"),
]
