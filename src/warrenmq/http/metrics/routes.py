"""Where the metrics are: on the HTTP port beside everything else and, when asked for, alone on a port of their own."""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from warrenmq.http.bridge import Bridge
from warrenmq.http.metrics import detailed, page
from warrenmq.http.protocol.headers import SafeHeaders
from warrenmq.http.protocol.until_whole import UntilWhole


def routes(bridge: Bridge) -> list[Route]:
    async def metrics(_: Request) -> Response:
        return await page.render(bridge, per_object=bridge.server.settings.metrics_per_object == "on")

    async def per_object(_: Request) -> Response:
        return await page.render(bridge, per_object=True)

    async def of_families(request: Request) -> Response:
        return await detailed.render(bridge, request.query_params)

    async def unknown(_: Request) -> Response:
        return PlainTextResponse("Unknown Registry", status_code=404)  # RabbitMQ's words

    return [
        Route("/metrics", metrics, methods=["GET"]),
        Route("/metrics/per-object", per_object, methods=["GET"]),
        Route("/metrics/detailed", of_families, methods=["GET"]),
        Route("/metrics/{name}", unknown, methods=["GET"]),
    ]


def create_app(bridge: Bridge) -> Starlette:
    """The metrics and nothing else."""
    layers = [Middleware(SafeHeaders), Middleware(UntilWhole, server=bridge.server)]
    return Starlette(routes=list(routes(bridge)), middleware=layers)
