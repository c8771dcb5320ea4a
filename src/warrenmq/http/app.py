"""The HTTP application: finds the endpoint of a request, lets the right people in, turns results into answers.

Everything under /api comes from the table of endpoints (``table.py``); the console, the metrics and the OpenAPI
description stand beside it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from warrenmq.broker.access.access import Refused, User
from warrenmq.http import auth, names, probes
from warrenmq.http.bridge import Bridge
from warrenmq.http.console import cookie
from warrenmq.http.console.routes import routes as console_routes
from warrenmq.http.description import openapi
from warrenmq.http.encoding import encode
from warrenmq.http.endpoint import Call, Endpoint, Json, NoContent
from warrenmq.http.errors import ApiError, bad_request, not_found, of_amqp
from warrenmq.http.listing import plain_list
from warrenmq.http.metrics.routes import routes as metrics_routes
from warrenmq.http.node import cluster
from warrenmq.http.pieces import InPieces
from warrenmq.http.protocol import origin
from warrenmq.http.protocol.headers import SafeHeaders
from warrenmq.http.protocol.until_whole import UntilWhole
from warrenmq.http.table import ENDPOINTS
from warrenmq.wire.replies import AmqpError

NO_ESCAPE = re.compile(r"%(?![0-9a-fA-F]{2})")
LONGEST_WATCHED = 8 << 20  # octets of an answer
VERBS = ["GET", "HEAD", "PUT", "POST", "DELETE", "OPTIONS"]


def create_app(bridge: Bridge) -> Starlette:
    """The app for one server; it lives on the server's loop."""
    api = Api(bridge)
    return Starlette(
        routes=[
            *console_routes(bridge, api.look),
            Route("/healthz", api.healthz, methods=["GET"]),
            Route("/readyz", api.readyz, methods=["GET"]),
            *metrics_routes(bridge),
            *cluster.routes(bridge.standing),
            Route("/api/openapi.json", api.openapi, methods=["GET"]),
            Route("/api", api.dispatch, methods=VERBS),
            Route("/api/{rest:path}", api.dispatch, methods=VERBS),
        ],
        middleware=[Middleware(SafeHeaders), Middleware(UntilWhole, server=bridge.server)],
    )


class Tree:
    """The endpoints by path segment; a segment in braces takes anything."""

    def __init__(self) -> None:
        self.children: dict[str, Tree] = {}
        self.anything: Tree | None = None
        self.endpoints: dict[str, Endpoint] = {}

    def add(self, endpoint: Endpoint) -> None:
        node = self
        for segment in endpoint.segments:
            if segment.startswith("{"):
                if node.anything is None:
                    node.anything = Tree()
                node = node.anything
            else:
                node = node.children.setdefault(segment, Tree())
        node.endpoints[endpoint.method] = endpoint

    def find(self, segments: list[str]) -> Tree | None:
        node = self
        for number, segment in enumerate(segments):
            fixed = node.children.get(segment)
            if fixed is not None:
                found = fixed.find(segments[number + 1 :])
                if found is not None and found.endpoints:
                    return found
            if node.anything is None:
                return None
            node = node.anything
        return node if node.endpoints else None


class Api:
    """The ASGI application: endpoints by path, authentication, errors as documents."""

    def __init__(self, bridge: Bridge) -> None:
        self._bridge = bridge
        self._tree = Tree()
        self._description = b""
        for endpoint in ENDPOINTS:
            self._tree.add(endpoint)

    async def dispatch(self, request: Request) -> Response:
        try:
            return await self._answer(request)
        except auth.LoginRequired:
            return Response(status_code=401, headers=asking(request))
        except ClientDisconnect:
            return Response(status_code=400)  # nobody is there to read it
        except Exception as error:
            return self._problem(error, request)

    async def _answer(self, request: Request) -> Response:
        segments = path_segments(request)
        node = self._tree.find(segments)
        if request.method == "OPTIONS":
            return Response(headers={"allow": allowed(node)})
        endpoint = None if node is None else node.endpoints.get("GET" if request.method == "HEAD" else request.method)
        if request.method not in origin.SAFE or (endpoint is not None and endpoint.changes):
            allowed_origins = self._bridge.server.settings.http_origins
            upload = endpoint is not None and endpoint.upload
            origin.check(request.headers, request.url.scheme, allowed_origins, upload)
        user = await auth.authenticate(request, self._bridge)
        if node is None:
            if request.method not in origin.SAFE:
                return Response(status_code=405)
            raise not_found()
        if endpoint is None:
            return Response(status_code=405, headers={"allow": allowed(node)})
        return await self._called(request, user, endpoint, segments)

    async def look(self, user: User, path: str, behalf: Request) -> tuple[int, bytes]:
        """Status and JSON of a GET by this user who has logged in with another request; nothing is changed by it."""
        place, _, query = path.partition("?")
        if place == cluster.PATH:  # it has no endpoint
            standing = cluster.answer(self._bridge.standing())
            return standing.status_code, bytes(standing.body)
        raw = f"/api{place}".encode("ascii", "replace")
        scope = {**behalf.scope, "method": "GET", "path": raw.decode(), "raw_path": raw, "query_string": query.encode()}
        request = Request(scope)
        try:
            segments = path_segments(request)
            node = self._tree.find(segments)
            endpoint = None if node is None else node.endpoints.get("GET")
            if endpoint is None or endpoint.changes:
                raise not_found()
            response = await self._called(request, user, endpoint, segments)
            if isinstance(response, InPieces) and response.size <= LONGEST_WATCHED:
                return response.status_code, b"".join(response.pieces)
            if isinstance(response, InPieces):
                raise bad_request(f"{response.size} octets are too many to be watched: ask for a page")
            if response.status_code != 200 or type(response) is not Json:
                raise bad_request("this cannot be watched")
        except Exception as error:
            response = self._problem(error, request)
        return response.status_code, bytes(response.body)

    async def _called(self, request: Request, user: User, endpoint: Endpoint, segments: list[str]) -> Response:
        path = {
            name[1:-1]: value for name, value in zip(endpoint.segments, segments, strict=True) if name.startswith("{")
        }
        auth.authorise(endpoint.level, user, path.get("vhost"), self._bridge)
        names.check_path(endpoint.method, endpoint.segments[0], path)
        call = Call(request, self._bridge, user, path)
        result = await endpoint.handler(call)
        if endpoint.method == "GET" and isinstance(result, (list, Iterator)):
            return await plain_list(call.query, result)
        return answer(result)

    def _problem(self, error: Exception, request: Request) -> Response:
        if isinstance(error, AmqpError):
            error = of_amqp(error)
        if isinstance(error, Refused):
            error = ApiError(400, "bad_request", error.reason)
        if isinstance(error, ApiError):
            headers = asking(request) if error.status == 401 else None
            return Json({"error": error.error, "reason": error.reason}, status_code=error.status, headers=headers)
        notes = self._bridge.broker.services.notes
        notes.crash("http_error", {"method": request.method, "path": request.url.path}, error)
        return Json({"error": "internal_error", "reason": "see the broker's log"}, status_code=500)

    async def healthz(self, request: Request) -> Response:
        return probes.healthz()

    async def readyz(self, request: Request) -> Response:
        return probes.readyz(self._bridge)

    async def openapi(self, request: Request) -> Response:
        if not self._description:  # made once: anybody may ask for it, and it takes long
            self._description = encode(openapi.description(ENDPOINTS, self._bridge.broker.node.version))
        return Json(self._description)


def asking(request: Request) -> dict[str, str] | None:
    """What makes a browser ask for name and password; the console asks for them itself."""
    return None if cookie.is_call(request) else {"www-authenticate": auth.REALM}


def path_segments(request: Request) -> list[str]:
    """The segments below /api, each unquoted by itself: a vhost called / is one segment."""
    raw = request.scope.get("raw_path") or request.scope["path"].encode()
    text = raw.split(b"?")[0].decode("ascii", "replace")
    parts = text.split("/")[2:]
    while parts and parts[-1] == "":
        parts.pop()
    try:
        return [unquoted(part) for part in parts]
    except ValueError:
        raise bad_request("the path is not UTF-8 in percent encoding") from None


def unquoted(part: str) -> str:
    if NO_ESCAPE.search(part):
        raise ValueError
    return unquote(part, errors="strict")


def allowed(node: Tree | None) -> str:
    methods = set(node.endpoints) if node is not None else set()
    if "GET" in methods:
        methods.add("HEAD")
    return ", ".join(sorted(methods | {"OPTIONS"}))


def answer(result: Any) -> Response:
    if result is None:
        return NoContent()
    if isinstance(result, Response):
        return result
    return Json(encode(result))
