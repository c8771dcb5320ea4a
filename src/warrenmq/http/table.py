"""All endpoints below /api, one list. The order does not matter: fixed path segments win over variable ones."""

from __future__ import annotations

from warrenmq.http import (
    backup,
    bindings,
    connections,
    damaged,
    deaths,
    definitions,
    delayed,
    exchanges,
    flags,
    health,
    leases,
    ledger,
    limits,
    messages,
    nodes,
    overview,
    parameters,
    peek,
    permissions,
    policies,
    queues,
    streams,
    transfers,
    users,
    vhosts,
)
from warrenmq.http.endpoint import Endpoint

MODULES = [
    overview,
    backup,
    nodes,
    vhosts,
    limits,
    users,
    permissions,
    policies,
    parameters,
    definitions,
    exchanges,
    queues,
    streams,
    leases,
    peek,
    deaths,
    transfers,
    bindings,
    connections,
    health,
    flags,
    delayed,
    damaged,
    ledger,
    messages,
]

ENDPOINTS: list[Endpoint] = [endpoint for module in MODULES for endpoint in module.ENDPOINTS]
