"""The cookie of a console's session: its name, and what a browser is told to do with it.

Cookies know hosts and no ports, so the port is in the name: two brokers on one machine do not log each other out.
"""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from warrenmq.http.console.sessions import LIFE

CALL = "x-warren-console"  # the console's calls carry it: no page of another origin can add it to what it sends


def is_call(request: Request) -> bool:
    """Is it the console's? Only then a cookie counts, and the browser's own log-in box is not asked for."""
    return CALL in request.headers


def token_of(request: Request) -> str:
    """The session's token, "" without one, or where the request is not the console's."""
    return request.cookies.get(_name(request), "") if is_call(request) else ""


def give(response: Response, request: Request, token: str) -> None:
    response.set_cookie(
        _name(request), token, max_age=LIFE // 1000, httponly=True, samesite="strict", secure=_secure(request)
    )


def take_away(response: Response, request: Request) -> None:
    response.delete_cookie(_name(request), httponly=True, samesite="strict", secure=_secure(request))


def _name(request: Request) -> str:
    return f"warren_session_{request.url.port or (443 if request.url.scheme == 'https' else 80)}"


def _secure(request: Request) -> bool:
    """Under HTTPS, also a proxy's. Who lies about it keeps the cookie from themselves only."""
    return request.url.scheme == "https" or request.headers.get("x-forwarded-proto", "") == "https"
