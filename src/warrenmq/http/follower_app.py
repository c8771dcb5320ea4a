"""What a node that follows answers over HTTP; loaded when somebody comes (``following.py``)."""

from __future__ import annotations

from collections.abc import Callable

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from warrenmq.http import probes
from warrenmq.http.app import VERBS
from warrenmq.http.endpoint import Json
from warrenmq.http.metrics.cluster import page
from warrenmq.http.node.cluster import routes, to_leader
from warrenmq.http.protocol.headers import SafeHeaders
from warrenmq.server.config import Settings
from warrenmq.server.standing import Standing

Look = Callable[[], Standing]


def everything(settings: Settings, standing: Look) -> Starlette:
    async def alive(_: Request) -> Response:
        return probes.healthz()

    async def elsewhere(_: Request) -> Response:
        found = standing()
        said = {"error": "not_leader", "reason": found.why_not_leader()}
        return Json(said, status_code=503, headers=to_leader(found))

    async def elsewhere_for_people(_: Request) -> Response:
        found = standing()
        return PlainTextResponse(found.why_not_leader() + "\n", status_code=503, headers=to_leader(found))

    return _app(
        Route("/healthz", alive, methods=["GET"]),
        *_metrics(settings, standing),
        *routes(standing),
        Route("/api", elsewhere, methods=VERBS),
        Route("/api/{rest:path}", elsewhere, methods=VERBS),
        Route("/{rest:path}", elsewhere_for_people, methods=VERBS),  # /readyz too: no client is taken here
    )


def metrics(settings: Settings, standing: Look) -> Starlette:
    """The metrics and nothing else."""
    return _app(*_metrics(settings, standing))


def _metrics(settings: Settings, standing: Look) -> list[Route]:
    async def measured(_: Request) -> Response:
        return page(standing(), settings)

    return [Route(path, measured, methods=["GET"]) for path in ("/metrics", "/metrics/{name}")]


def _app(*routes: Route) -> Starlette:
    return Starlette(routes=list(routes), middleware=[Middleware(SafeHeaders)])
