"""/console/session: to log in, to ask who is logged in, to log out.

The password is judged as for every request with Basic authentication (``auth.log_in``), guessing is slowed alike. A
refusal never asks the browser for its own log-in box.
"""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from warrenmq.broker.access.access import User
from warrenmq.http import auth
from warrenmq.http.bridge import Bridge
from warrenmq.http.console import cookie
from warrenmq.http.endpoint import Json, decode_json
from warrenmq.http.errors import ApiError, bad_request
from warrenmq.http.protocol import origin

LARGEST = 64 << 10  # octets of a log-in


class Login:
    """The log-in of one broker's console."""

    def __init__(self, bridge: Bridge) -> None:
        self._bridge = bridge

    async def session(self, request: Request) -> Response:
        try:
            if request.method == "POST":
                return await self._begin(request)
            if request.method == "DELETE":
                return self._end(request)
            return self._who(request)
        except ApiError as error:
            return Json({"error": error.error, "reason": error.reason}, status_code=error.status)

    async def _begin(self, request: Request) -> Response:
        origin.check(request.headers, request.url.scheme, self._bridge.server.settings.http_origins, False)
        if not cookie.is_call(request):
            raise bad_request(f"a log-in at the console carries the header {cookie.CALL}")
        name, password = _credentials(await _body(request))
        user = await auth.log_in(request, self._bridge, name, password)
        self._bridge.sessions.end(cookie.token_of(request))
        answer = Json(self._shown(user))
        cookie.give(answer, request, self._bridge.sessions.begin(user, self._bridge.now()))
        return answer

    def _end(self, request: Request) -> Response:
        self._bridge.sessions.end(cookie.token_of(request))
        answer = Json({"user": None})
        cookie.take_away(answer, request)
        return answer

    def _who(self, request: Request) -> Response:
        try:
            user = auth.by_session(request, self._bridge)
        except ApiError:
            user = None
        return Json({"user": None} if user is None else self._shown(user))

    def _shown(self, user: User) -> dict[str, object]:
        node = self._bridge.broker.node
        host, port = self._bridge.server.amqp_address
        return {
            "user": user.name,
            "tags": list(user.tags),
            "version": node.version,
            "rabbitmq_version": node.rabbitmq_version,
            "node": node.name,
            "cluster": node.cluster_name,
            "amqp": {"host": host, "port": port},
        }


async def _body(request: Request) -> bytes:
    data = b""
    async for chunk in request.stream():
        data += chunk
        if len(data) > LARGEST:
            raise ApiError(413, "payload_too_large", f"the body is larger than {LARGEST} bytes")
    return data


def _credentials(data: bytes) -> tuple[str, str]:
    values = decode_json(data, LARGEST)
    name = values.get("username") if isinstance(values, dict) else None
    password = values.get("password") if isinstance(values, dict) else None
    if not isinstance(name, str) or not isinstance(password, str):
        raise bad_request("a log-in is a JSON object with username and password")
    return name, password
