"""All endpoints below /api, one list. The order does not matter: fixed path segments win over variable ones."""

from __future__ import annotations

from warrenmq.http.endpoint import Endpoint
from warrenmq.http.messages import (
    body,
    damaged,
    deaths,
    delayed,
    flow,
    leases,
    messages,
    peek,
    streams,
    transfers,
    whatif,
)
from warrenmq.http.node import backup, flags, health, ledger, log, nodes, orders, overview
from warrenmq.http.objects import (
    bindings,
    connections,
    definitions,
    exchanges,
    explain,
    in_force,
    limits,
    parameters,
    permissions,
    policies,
    queues,
    users,
    vhosts,
)

MODULES = [
    overview,
    backup,
    nodes,
    vhosts,
    limits,
    users,
    permissions,
    policies,
    in_force,
    parameters,
    definitions,
    exchanges,
    explain,
    queues,
    streams,
    leases,
    peek,
    body,
    deaths,
    transfers,
    bindings,
    flow,
    connections,
    health,
    orders,
    flags,
    log,
    delayed,
    damaged,
    ledger,
    messages,
    whatif,
]

ENDPOINTS: list[Endpoint] = [endpoint for module in MODULES for endpoint in module.ENDPOINTS]
