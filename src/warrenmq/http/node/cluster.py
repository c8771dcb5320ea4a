"""/api/cluster and /api/health/checks/leader: how the nodes stand, and whether clients belong here.

Both without login, as the metrics are: a node that follows has no users to ask, and whoever looks for the leader asks
all nodes alike. They stand beside the table of endpoints for that reason.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from warrenmq.http.endpoint import Json
from warrenmq.server.standing import NodeStanding, Standing

NO_CLUSTER = "this broker is no cluster"
PATH = "/cluster"


def routes(standing: Callable[[], Standing | None]) -> list[Route]:
    async def cluster(_: Request) -> Response:
        return answer(standing())

    async def leader(_: Request) -> Response:
        found = standing()
        if found is None:
            return Json({"status": "ok", "reason": NO_CLUSTER})
        if found.serves:
            return Json({"status": "ok"})
        return Json({"status": "failed", "reason": found.why_not_leader()}, status_code=503, headers=to_leader(found))

    return [
        Route(f"/api{PATH}", cluster, methods=["GET"]),
        Route("/api/health/checks/leader", leader, methods=["GET"]),
    ]


def answer(found: Standing | None) -> Json:
    """What ``GET /api/cluster`` says."""
    if found is None:
        return Json({"error": "not_found", "reason": NO_CLUSTER}, status_code=404)
    return Json(shown(found))


def to_leader(standing: Standing) -> dict[str, str]:
    """The header that names the leader's HTTP address, where there is one."""
    leader = standing.leader
    return {"warren-leader": leader.url} if leader is not None and leader.url else {}


def shown(found: Standing) -> dict[str, Any]:
    leader = found.leader
    return {
        "cluster": found.cluster,
        "node": found.name,
        "role": found.role,
        "epoch": found.epoch,
        "epoch_since": None if found.epoch_since is None else int(found.epoch_since * 1000),
        "takeovers": found.takeovers,
        "leader": None if leader is None else leader.name,
        "in_sync": [one.name for one in found.nodes if one.in_sync],
        "min_in_sync": found.min_in_sync,
        "problem": found.problem,
        "warnings": found.warnings,
        "paused": found.paused,
        "etcd": {"reachable": found.etcd_reachable, "errors": found.etcd_errors},
        "nodes": [_node(one) for one in found.nodes],
    }


def _node(one: NodeStanding) -> dict[str, Any]:
    return {
        "name": one.name,
        "id": one.id,
        "leads": one.leads,
        "in_sync": one.in_sync,
        "alive": one.alive,
        "address": one.address,
        "amqp": one.amqp,
        "url": one.url,
        "position": one.position,
        "lag_bytes": one.lag_bytes,
        "lag_batches": one.lag_batches,
        "clock_skew": one.clock_skew,
        "stays_out": one.stays_out,
        "version": one.version,
    }
